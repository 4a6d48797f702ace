//! The arenas of malloc: the heaps among which glibc divides the threads of a process.
#![allow(unsafe_code)]

use std::env;

/// Variables by which a user chooses for all programs (mallopt(3)).
const CHOSEN_BY: [&str; 2] = ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"];

/// `Native.share_malloc_arena -> nil`: from now on all threads share one arena, unless the user has chosen otherwise. By default
/// glibc gives each of the first threads its own, up to eight for each core. What a request leaves then lies between what others free, in each of them. Ruby's threads
/// allocate one at a time, since they hold the GVL, and keep small pieces at hand for themselves.
pub(crate) fn share_one() {
    if CHOSEN_BY.iter().any(|name| env::var_os(name).is_some()) {
        return;
    }
    // SAFETY: it sets a number that malloc reads when a thread needs its first arena; another malloc has no use for it.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
