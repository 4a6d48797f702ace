//! The pages of Ruby's heap.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};

/// The size of a slot, where there is one size only (before Ruby 3.2).
const SLOT_BYTES: usize = 40;

/// `Native.without_emptiest(fillers, wanted, page_bytes) -> Array`: these objects without those on the pages that hold
/// little else, until `wanted` are left out or there is no such page.
///
/// # Errors
/// There is no memory for the array.
pub(crate) fn without_emptiest(
    ruby: &Ruby,
    fillers: RArray,
    wanted: usize,
    page_bytes: usize,
) -> Result<RArray, Error> {
    let page_of = |filler: &Value| filler.as_raw() as usize / page_bytes;
    // SAFETY: nothing changes the array meanwhile: this thread has the GVL, and runs no Ruby code. It is on the stack of the
    // caller, so its elements stay where they are.
    let fillers: &[Value] = unsafe { fillers.as_slice() };
    let pages = emptiest(fillers.iter().map(page_of), wanted, page_bytes / SLOT_BYTES * 3 / 4);
    let kept: Vec<Value> =
        fillers.iter().filter(|filler| !pages.contains(&page_of(filler))).copied().collect();
    Ok(ruby.ary_new_from_values(&kept))
}

/// The pages with the most fillers, and `least` or more, until they have `wanted` of them.
fn emptiest(page_of_each: impl Iterator<Item = usize>, wanted: usize, least: usize) -> HashSet<usize> {
    let mut fillers_of: HashMap<usize, usize> = HashMap::new();
    page_of_each.for_each(|page| *fillers_of.entry(page).or_default() += 1);
    let mut pages: Vec<_> = fillers_of.into_iter().filter(|(_, fillers)| *fillers >= least).collect();
    pages.sort_unstable_by_key(|&(page, fillers)| (Reverse(fillers), page));
    let mut had = 0;
    let are_needed = |&(_, fillers): &(usize, usize)| {
        let is_needed = had < wanted;
        had += fillers;
        is_needed
    };
    pages.into_iter().take_while(are_needed).map(|(page, _)| page).collect()
}
