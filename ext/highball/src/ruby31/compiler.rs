//! Ruby 3.1's compiler, for `lib/highball/ruby31/compiler.rb`.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use highball_yjit31::Switch;

static SWITCH: OnceLock<Switch> = OnceLock::new();

/// `Native.hold_compiler(code_mib, calls) -> bool`: turns the compiler off. Returns whether it could. To be called in a Ruby 3.1
/// that was started with `--yjit` and these values of its options, before there are other threads. `calls` has to be a number that
/// occurs nowhere else in Ruby's memory.
pub(crate) fn hold(code_mib: u32, calls: u32) -> bool {
    // SAFETY: the function is Ruby's. This thread has the GVL, and Ruby has no others yet.
    let Some(switch) = (unsafe { Switch::find(rb_sys::rb_gc as *const (), code_mib, calls) }) else {
        return false;
    };
    SWITCH.get_or_init(|| switch).hold();
    true
}

/// `Native.release_compiler(calls) -> nil`: turns the compiler on again, for methods that are called this number of times from
/// now on. It does nothing where the compiler was not held, in this process or before it was forked.
pub(crate) fn release(calls: u32) {
    if let Some(switch) = SWITCH.get() {
        switch.release(calls);
    }
}

/// `Native.free_unused_code -> Integer`: gives the memory back that is set aside for code and has none. Returns the bytes.
pub(crate) fn free_unused_code() -> usize {
    highball_yjit31::free_unused()
}
