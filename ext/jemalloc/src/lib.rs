//! jemalloc, built as a library that molds preload (`LD_PRELOAD`): its functions take the place of glibc's malloc.
//!
//! The names are the ones that a program has to define to replace malloc (the GNU C Library manual, "Replacing malloc"), and
//! `mallctl`, by which the extension controls jemalloc (`ext/highball/src/allocator.rs`). jemalloc is built with a prefix, as a
//! Rust library exports only what Rust defines.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libc::{size_t, EINVAL, ENOMEM};
use tikv_jemalloc_sys as jemalloc;

/// Bytes of a page, for `valloc` and `pvalloc`: the largest of the supported processors.
const PAGE: size_t = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };

/// The settings of jemalloc, which reads them before its first allocation.
#[repr(transparent)]
pub struct Settings(*const c_char);

// SAFETY: it points to text that never changes.
unsafe impl Sync for Settings {}

/// One arena for all threads: Ruby's allocate in turn, as they hold the GVL.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static _rjem_malloc_conf: Settings = Settings(c"narenas:1".as_ptr());

/// malloc(3).
#[no_mangle]
pub extern "C" fn malloc(size: size_t) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { jemalloc::malloc(size) }
}

/// calloc(3).
#[no_mangle]
pub extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    // SAFETY: any number may be asked for; jemalloc checks that the product fits.
    unsafe { jemalloc::calloc(count, size) }
}

/// realloc(3).
///
/// # Safety
/// `pointer` is null, or comes from a function of this library and was not freed.
#[no_mangle]
pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: size_t) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { jemalloc::realloc(pointer, size) }
}

/// free(3).
///
/// # Safety
/// As for [`realloc`].
#[no_mangle]
pub unsafe extern "C" fn free(pointer: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { jemalloc::free(pointer) }
}

/// posix_memalign(3).
///
/// # Safety
/// `to` can be written to.
#[no_mangle]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, alignment: size_t, size: size_t) -> c_int {
    // SAFETY: as the caller promises; jemalloc checks the alignment.
    unsafe { jemalloc::posix_memalign(to, alignment, size) }
}

/// aligned_alloc(3).
#[no_mangle]
pub extern "C" fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void {
    let mut made = ptr::null_mut();
    // The function of this name demands that the size is a multiple of the alignment, which callers need not know.
    // SAFETY: `made` can be written to.
    match unsafe { jemalloc::posix_memalign(&raw mut made, alignment.max(size_of::<usize>()), size) } {
        0 => made,
        error => {
            debug_assert!(matches!(error, EINVAL | ENOMEM));
            // SAFETY: the place of this thread's errno.
            unsafe { *libc::__errno_location() = error };
            ptr::null_mut()
        }
    }
}

/// memalign(3).
#[no_mangle]
pub extern "C" fn memalign(alignment: size_t, size: size_t) -> *mut c_void {
    aligned_alloc(alignment, size)
}

/// valloc(3).
#[no_mangle]
pub extern "C" fn valloc(size: size_t) -> *mut c_void {
    aligned_alloc(PAGE, size)
}

/// pvalloc(3).
#[no_mangle]
pub extern "C" fn pvalloc(size: size_t) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(PAGE) {
        Some(size) => aligned_alloc(PAGE, size),
        None => aligned_alloc(PAGE, size), // which jemalloc refuses
    }
}

/// malloc_usable_size(3).
///
/// # Safety
/// As for [`realloc`].
#[no_mangle]
pub unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { jemalloc::malloc_usable_size(pointer) }
}

/// mallctl(3) of jemalloc: reads and changes its state by name.
///
/// # Safety
/// `name` is text, and the other arguments fit what jemalloc's manual says of the name.
#[no_mangle]
pub unsafe extern "C" fn mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_size: *mut size_t,
    new: *mut c_void,
    new_size: size_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { jemalloc::mallctl(name, old, old_size, new, new_size) }
}
