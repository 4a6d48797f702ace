//! The pages of Ruby's heap, for `lib/highball/ruby31/heap_pages.rb`.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::HashMap;

use magnus::rb_sys::AsRawValue;
use magnus::{RArray, Ruby, Value};

/// The size of a slot, where there is one size only (before Ruby 3.2).
const SLOT_BYTES: usize = 40;

/// `Native.by_page(fillers, page_bytes) -> [Array, Array]`: these objects, apart by what else is on their pages: those on
/// pages that hold little else, the emptiest page first, and all others.
pub(crate) fn by_page(ruby: &Ruby, fillers: RArray, page_bytes: usize) -> (RArray, RArray) {
    let page_of = |filler: &Value| filler.as_raw() as usize / page_bytes;
    // SAFETY: nothing changes the array meanwhile: this thread has the GVL, and runs no Ruby code. It is on the stack of the
    // caller, so its elements stay where they are.
    let fillers: &[Value] = unsafe { fillers.as_slice() };
    let mut fillers_of: HashMap<usize, usize> = HashMap::new();
    fillers.iter().for_each(|filler| *fillers_of.entry(page_of(filler)).or_default() += 1);
    let is_nearly_empty = |filler: &Value| fillers_of[&page_of(filler)] >= page_bytes / SLOT_BYTES * 3 / 4;
    let (mut apart, beside_others): (Vec<Value>, Vec<Value>) =
        fillers.iter().copied().partition(is_nearly_empty);
    apart.sort_by_cached_key(|filler| (Reverse(fillers_of[&page_of(filler)]), page_of(filler)));
    (ruby.ary_new_from_values(&apart), ruby.ary_new_from_values(&beside_others))
}
