//! Telling the worker from the processes that an application forks while it answers a request.
//!
//! Such a process inherits the ring and may run on in the middle of a request; a ring has one worker.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// Bytes asked for; the kernel gives a page.
const BYTES: usize = 4096;

/// A mark that the kernel wipes out in every forked process (`MADV_WIPEONFORK`, Linux 4.14), however it was
/// forked. Looking at it costs no system call, as asking for the process id would.
#[derive(Debug)]
pub(crate) struct OwnProcess(NonNull<u32>);

// SAFETY: the page belongs to the value, and is not written after `mark`.
unsafe impl Send for OwnProcess {}

impl OwnProcess {
    /// Marks this process as the owner.
    ///
    /// # Errors
    /// What the system refused.
    pub(crate) fn mark() -> io::Result<Self> {
        // SAFETY: a fresh private mapping at an address of the kernel's choice replaces nothing.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let mark = OwnProcess(NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        // SAFETY: the whole of that mapping, which nothing else uses yet.
        unsafe {
            madvise(page, BYTES, Advice::LinuxWipeOnFork)?;
            mark.0.write(1);
        }
        Ok(mark)
    }

    /// Whether this is the process that was marked.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        // SAFETY: mapped as long as `self` lives; written only before it was shared.
        unsafe { self.0.read_volatile() == 1 }
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        // SAFETY: mapped by `mark` with this length, and not borrowed. It fails only for a bad address.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
