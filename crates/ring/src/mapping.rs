//! Memory that is shared with another process, by mmap; private memory in unit tests, for Miri knows no mmap.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use crate::layout::RingError;

/// A mapping, from its first byte on; its end is page-aligned too.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value until it is dropped and is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; it only hands out a raw pointer.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Where it begins. Good for [`Mapping::bytes`] bytes, as long as the mapping lives.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(not(test))]
impl Mapping {
    /// Maps the first `bytes` bytes of a file that is that long and can never become shorter.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> Result<Self, RingError> {
        use rustix::mm::{mmap, MapFlags, ProtFlags};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice replaces nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }
            .map_err(|e| RingError::system("map the ring's memory", e))?;
        let base = NonNull::new(base.cast()).ok_or(RingError::NotARing)?;
        Ok(Mapping { base, bytes })
    }
}

#[cfg(not(test))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing borrowed from it outlives `self`.
        let done = unsafe { rustix::mm::munmap(self.base().cast(), self.bytes) };
        debug_assert!(done.is_ok());
    }
}

#[cfg(test)]
impl Mapping {
    pub(crate) fn new(_file: BorrowedFd<'_>, bytes: usize) -> Result<Self, RingError> {
        Ok(Mapping::private(bytes))
    }

    pub(crate) fn private(bytes: usize) -> Self {
        // SAFETY: the layout is not empty.
        let base = unsafe { std::alloc::alloc_zeroed(Mapping::layout(bytes)) };
        Mapping { base: NonNull::new(base).expect("memory"), bytes }
    }

    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, crate::layout::PAGE).expect("a layout")
    }
}

#[cfg(test)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated by `private` with this layout.
        unsafe { std::alloc::dealloc(self.base(), Mapping::layout(self.bytes)) };
    }
}
