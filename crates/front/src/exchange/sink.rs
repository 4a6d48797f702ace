//! Where a request's body goes as it comes: to a buffer, then to a spool file in memory, and only a large one, or one for
//! which there is no memory, to a spool file on a disk.

use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::budget::{Account, Permit};
use crate::exchange::spool::{SpoolError, SpoolFile};
use crate::exchange::Body;

/// Bodies up to this size do not go to a disk.
pub(crate) const MEMORY_BYTES: u64 = 1 << 20;

/// Bytes in memory, and what they hold of the budget for buffers.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: Vec<u8>,
    permit: Permit,
}

impl Buffered {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Deref for Buffered {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that is received.
#[derive(Debug)]
pub(crate) struct Sink {
    store: Store,
    length: u64,
    /// The length of the whole body, if it is known.
    expected: Option<u64>,
    /// Bytes that fit into the buffer.
    buffer_bytes: usize,
    folder: PathBuf,
    spool: Account,
    buffers: Account,
}

#[derive(Debug)]
enum Store {
    Buffer(Buffered),
    InMemory(SpoolFile),
    OnDisk(SpoolFile),
}

impl Sink {
    /// For a body of this length, if it is known. Its client has an account for `spool` files and one for `buffers`.
    pub(crate) fn new(
        expected: Option<u64>,
        buffer_bytes: usize,
        folder: PathBuf,
        spool: Account,
        buffers: Account,
    ) -> Self {
        let buffered = Buffered { bytes: Vec::new(), permit: Permit::new(buffers.clone()) };
        // Where the length is known, a larger body does not go there first.
        let buffer_bytes =
            if expected.is_some_and(|length| length > buffer_bytes as u64) { 0 } else { buffer_bytes };
        Sink { store: Store::Buffer(buffered), length: 0, expected, buffer_bytes, folder, spool, buffers }
    }

    /// Bytes that have come.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// What it may hold of spool files.
    pub(crate) fn account(&self) -> &Account {
        &self.spool
    }

    /// Whether a body of this length goes to a disk.
    pub(crate) fn is_for_disk(length: u64, buffer_bytes: usize) -> bool {
        length > MEMORY_BYTES.max(buffer_bytes as u64)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// There is no room; or what came before could not be stored.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.length += bytes.len() as u64;
        if self.take_in_memory(bytes)? {
            return Ok(());
        }
        if let Store::OnDisk(spool) = &mut self.store {
            return spool.append(bytes);
        }
        let mut spool = self.copy_to_disk()?;
        spool.append(bytes)?;
        self.store = Store::OnDisk(spool);
        Ok(())
    }

    /// Takes the next bytes unless the body is on the disk. `false`: it is, or has to go there.
    fn take_in_memory(&mut self, bytes: &[u8]) -> Result<bool, SpoolError> {
        let is_small = self.length.max(self.expected.unwrap_or(0)) <= MEMORY_BYTES;
        if let Store::Buffer(buffered) = &mut self.store {
            let fits = buffered.bytes.len() + bytes.len() <= self.buffer_bytes;
            if fits && buffered.permit.grow(bytes.len() as u64).is_ok() {
                buffered.bytes.extend_from_slice(bytes);
                return Ok(true);
            }
            if is_small {
                let mut spool = SpoolFile::in_memory(&self.buffers)?;
                if spool.append(&buffered.bytes).is_ok() {
                    self.store = Store::InMemory(spool);
                }
            }
        }
        let is_taken = match &mut self.store {
            Store::OnDisk(_) => return Ok(false),
            Store::InMemory(spool) => is_small && spool.append(bytes).is_ok(),
            Store::Buffer(_) => false,
        };
        if is_small && !is_taken {
            self.buffers.note_full();
        }
        Ok(is_taken)
    }

    /// A file on the disk with what is in memory.
    fn copy_to_disk(&self) -> Result<SpoolFile, SpoolError> {
        let mut disk = SpoolFile::create(&self.folder, &self.spool, &self.buffers)?;
        match &self.store {
            Store::Buffer(buffered) => disk.append(buffered)?,
            Store::InMemory(spool) => {
                let mut bytes = vec![0; spool.length() as usize];
                spool.file().read_exact_at(&mut bytes, 0)?;
                disk.append(&bytes)?;
            }
            Store::OnDisk(_) => {}
        }
        Ok(disk)
    }

    /// Waits until the disk has taken enough of what came.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        match &self.store {
            Store::OnDisk(spool) => spool.poll_room(context),
            Store::Buffer(_) | Store::InMemory(_) => Poll::Ready(()),
        }
    }

    /// Whether some of it went to a disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.store, Store::OnDisk(_))
    }

    /// All of it has come.
    pub(crate) fn finish(&self) {
        if let Store::OnDisk(spool) = &self.store {
            spool.finish();
        }
    }

    /// Waits until it is stored.
    pub(crate) fn poll_finished(&self, context: &Context<'_>) -> Poll<Result<(), SpoolError>> {
        match &self.store {
            Store::OnDisk(spool) => spool.poll_finished(context).map_err(SpoolError::from),
            Store::Buffer(_) | Store::InMemory(_) => Poll::Ready(Ok(())),
        }
    }

    /// The body.
    pub(crate) fn into_body(self) -> Body {
        match self.store {
            Store::Buffer(buffered) if buffered.is_empty() => Body::None,
            Store::Buffer(buffered) => Body::Memory(buffered),
            Store::InMemory(spool) | Store::OnDisk(spool) => Body::Spooled(Rc::new(spool)),
        }
    }
}
