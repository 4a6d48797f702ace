//! Stacks of fibers. Ruby keeps the stack of a fiber that has ended for the next one, with the memory that it has touched: Ruby
//! 3.1 says that it needs it no more by posix_madvise(3), which glibc ignores. So a fiber gives this memory back itself, at its end.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use rustix::mm::{madvise, Advice};
use rustix::param::page_size;

/// What lies right below the frame of `give_back` stays: the call of the system has its frames there.
const KEPT: usize = 4 * 1024;
/// A fiber that is about to end is as deep in its stack as when it began, or nearly.
const NEAR: usize = 16 * 1024;

/// `Native.stack_place -> Integer`: where in its stack the caller is. For [`give_back`].
#[inline(never)]
pub(crate) fn place() -> usize {
    let here = 0_u8;
    ptr::from_ref(black_box(&here)) as usize
}

/// `Native.give_back_stack(began, size) -> Integer`: gives back what a fiber has touched of its stack, below the caller. `began`: what
/// `stack_place` has returned at the beginning of the same fiber; `size`: of its stack. Returns the bytes of address space, 0 if the
/// caller is not where the fiber began.
pub(crate) fn give_back(began: usize, size: usize) -> usize {
    let here = place();
    let page = page_size();
    let low = began.saturating_sub(size / 2).next_multiple_of(page);
    let high = here.saturating_sub(KEPT) / page * page;
    if began.abs_diff(here) > NEAR || low >= high {
        return 0;
    }
    // SAFETY: this is memory of the stack on which this function runs. It is below the stack pointer by more than what the ABI allows a
    // function to use there (128 bytes), so nothing is kept in it. It is within the stack: the fiber began near its upper end, at most `NEAR` bytes
    // from here and has `size` bytes, of which half are left out. Pages that were given back are zero when they are touched again.
    let given = unsafe { madvise(low as *mut c_void, high - low, Advice::LinuxDontNeed) };
    given.map_or(0, |()| high - low)
}
