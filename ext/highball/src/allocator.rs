//! The allocator of this process: what a mold and its workers ask of it, if it is jemalloc. `highball` preloads its own
//! (`ext/jemalloc`); a user's that was preloaded is asked in the same way.
//!
//! A process that was forked shares the heap page by page, until it writes there. jemalloc does not write to memory that is free, so
//! it suffices that a worker allocates in another arena than its mold.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::mem::{size_of, transmute};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// jemalloc's function that reads and changes its state by name (jemalloc(3), MALLCTL NAMESPACE).
type Mallctl =
    unsafe extern "C" fn(*const c_char, *mut c_void, *mut libc::size_t, *mut c_void, libc::size_t) -> c_int;

/// All arenas, in the names that begin with `arena.` (`MALLCTL_ARENAS_ALL`).
const PURGE_ALL: &CStr = c"arena.4096.purge";

/// The number of the arena in which this process allocates; 0, which every process has, before it was chosen.
static ARENA: AtomicU32 = AtomicU32::new(0);

/// `None` if the allocator is another than jemalloc.
fn mallctl() -> Option<Mallctl> {
    static FOUND: OnceLock<Option<Mallctl>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: looks a name up among what is loaded.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallctl".as_ptr()) };
        // SAFETY: jemalloc alone has a function of this name, of this type.
        (!found.is_null()).then(|| unsafe { transmute::<*mut c_void, Mallctl>(found) })
    })
}

/// `Native.allocator_version -> String or nil`: jemalloc's version, for example `5.3.1`; nil if the allocator is another.
pub(crate) fn version() -> Option<String> {
    let mut version: *const c_char = ptr::null();
    read(c"version", &mut version)?;
    // SAFETY: jemalloc's own text, which lasts.
    let text = unsafe { CStr::from_ptr(version) }.to_string_lossy();
    text.split('-').next().map(String::from)
}

/// `Native.separate_heap -> nil`: this process, which was forked, allocates apart from what it shares with its mold from now on: this
/// thread does, and others by [`join`].
pub(crate) fn separate() {
    let mut arena: u32 = 0;
    if read(c"arenas.create", &mut arena).is_some() {
        ARENA.store(arena, Ordering::Relaxed);
        join();
    }
}

/// `Native.join_heap -> nil`: this thread allocates where the process does.
pub(crate) fn join() {
    let mut arena = ARENA.load(Ordering::Relaxed);
    if arena > 0 {
        act(c"thread.tcache.flush"); // pieces of the other arena
        write(c"thread.arena", &mut arena);
    }
}

/// `Native.trim_malloc -> nil`: gives unused memory back to the system, while other Ruby threads run.
pub(crate) fn trim() {
    crate::nogvl::step_aside(&|| {
        if act(PURGE_ALL).is_none() {
            #[cfg(target_env = "gnu")]
            // SAFETY: it takes malloc's own locks, and touches only what is free (malloc_trim(3)).
            unsafe {
                libc::malloc_trim(0);
            }
        }
    });
}

/// Reads what has this name. `None`: the allocator is another than jemalloc, or does not know the name.
fn read<T>(name: &CStr, to: &mut T) -> Option<()> {
    let mut size = size_of::<T>();
    control(name, ptr::from_mut(to).cast(), &raw mut size, ptr::null_mut(), 0)
}

fn write<T>(name: &CStr, value: &mut T) -> Option<()> {
    control(name, ptr::null_mut(), ptr::null_mut(), ptr::from_mut(value).cast(), size_of::<T>())
}

fn act(name: &CStr) -> Option<()> {
    control(name, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0)
}

/// `old` and `new` are null, or lead to as many bytes as the sizes beside them say.
fn control(
    name: &CStr,
    old: *mut c_void,
    old_size: *mut libc::size_t,
    new: *mut c_void,
    new_size: libc::size_t,
) -> Option<()> {
    // SAFETY: the callers are above and pass such arguments; jemalloc touches no more than these bytes.
    let result = unsafe { mallctl()?(name.as_ptr(), old, old_size, new, new_size) };
    (result == 0).then_some(())
}
