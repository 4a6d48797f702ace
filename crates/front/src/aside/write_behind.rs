//! Files that the front writes, without the event loop waiting.
//!
//! What is to be written waits in memory until a thread of the pool has written it, and is read from there until then. So a
//! silent file system holds up only requests whose bytes it has to store. The file itself is created
//! by such a thread, too.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::mem::take;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use rustix::fs::{openat, Mode, OFlags, CWD};

use crate::budget::Permit;

/// Bytes that are written at a time.
const PIECE_BYTES: usize = 128 * 1024;

/// Pieces that are written before others get their turn.
const PIECES: u32 = 8;

/// Beyond this number of bytes, those who add some have to wait.
pub(crate) const WAITING_BYTES: usize = 2 * PIECE_BYTES;

/// The same where buffers are full.
const FEW_BYTES: usize = 64 * 1024;

/// Where the file is created, and how: not every file system has files without names.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) folder: PathBuf,
    pub(crate) create: fn(&Path) -> io::Result<OwnedFd>,
}

/// What is to be written to one file.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    source: Source,
    /// What waits takes this much of the memory for buffers.
    held: Permit,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// In order. The first may be with a thread.
    pieces: VecDeque<Arc<Vec<u8>>>,
    waiting_bytes: usize,
    written_bytes: u64,
    /// A thread is at it, or will be.
    is_busy: bool,
    /// For other processes, once all is written: `None`, they are not wanted.
    readers: Option<Vec<Arc<OwnedFd>>>,
    /// Why nothing is written any more.
    error: Option<io::Error>,
    /// To be woken after every piece.
    waker: Option<Waker>,
}

/// Bytes of the file.
pub(crate) enum Found {
    /// This number of them is in the file.
    InFile(u64),
    /// These are not, yet.
    Waiting(Vec<u8>),
}

/// How often the file is opened for other processes: a second one gets it if the first dies.
const READERS: usize = 2;

impl WriteBehind {
    /// Nothing yet. What waits is counted by this permit.
    pub(crate) fn new(source: Source, held: Permit) -> Self {
        WriteBehind { source, held, queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // It is whole at every moment.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes. `true`: a thread is needed.
    ///
    /// # Errors
    /// What was added before could not be written.
    pub(crate) fn add(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut queue = self.queue();
        queue.check()?;
        let last = queue.pieces.back_mut().and_then(Arc::get_mut);
        match last.filter(|last| last.len() + bytes.len() <= PIECE_BYTES) {
            Some(last) => last.extend_from_slice(bytes),
            None => queue.pieces.push_back(Arc::new(bytes.to_vec())),
        }
        queue.waiting_bytes += bytes.len();
        self.held.set(queue.waiting_bytes as u64);
        Ok(!std::mem::replace(&mut queue.is_busy, true))
    }

    /// All was added, and other processes are to read it. `true`: a thread is needed.
    pub(crate) fn finish(&self) -> bool {
        let mut queue = self.queue();
        queue.readers.get_or_insert_default();
        !std::mem::replace(&mut queue.is_busy, true)
    }

    /// The rest is not wanted any more. What is open stays open: closing it may take long.
    pub(crate) fn abandon(&self) {
        let mut queue = self.queue();
        queue.pieces.clear();
        queue.waiting_bytes = 0;
        self.held.set(0);
    }

    /// This task is woken after each piece from now on.
    pub(crate) fn wake(&self, waker: &Waker) {
        let mut queue = self.queue();
        if !queue.waker.as_ref().is_some_and(|other| other.will_wake(waker)) {
            queue.waker = Some(waker.clone());
        }
    }

    /// For how many more bytes there is room.
    pub(crate) fn room(&self) -> usize {
        let waiting_bytes = self.queue().waiting_bytes;
        let most = if self.held.account().free() == 0 { FEW_BYTES } else { WAITING_BYTES };
        most.saturating_sub(waiting_bytes)
    }

    /// What the file is for others, once it is [finished](WriteBehind::finish).
    ///
    /// # Errors
    /// It could not be written.
    pub(crate) fn finished(&self) -> io::Result<bool> {
        let queue = self.queue();
        queue.check()?;
        Ok(!queue.is_busy && queue.pieces.is_empty())
    }

    /// The file, opened for another process. Each gets its own: they share no position. `None`: that was the last.
    pub(crate) fn reader(&self, number: usize) -> Option<Arc<OwnedFd>> {
        self.queue().readers.as_ref()?.get(number).map(Arc::clone)
    }

    /// Whether what was added could not be written. It is read from memory, then.
    pub(crate) fn has_failed(&self) -> bool {
        self.queue().error.is_some()
    }

    /// Where the bytes from `offset` on are, of which at most `length` are wanted.
    pub(crate) fn find(&self, offset: u64, length: u64) -> Found {
        let queue = self.queue();
        let Some(mut skipped) = offset.checked_sub(queue.written_bytes) else {
            return Found::InFile(length.min(queue.written_bytes - offset));
        };
        for piece in &queue.pieces {
            match piece.get(skipped as usize..).filter(|rest| !rest.is_empty()) {
                Some(rest) => return Found::Waiting(rest[..rest.len().min(length as usize)].to_vec()),
                None => skipped -= piece.len() as u64,
            }
        }
        Found::InFile(0)
    }

    /// Writes some of what waits, on a thread that may wait. `true`: there is more.
    pub(crate) fn write_some(&self, file: &OnceLock<File>) -> bool {
        for _ in 0..PIECES {
            let mut queue = self.queue();
            let (piece, offset) = (queue.pieces.front().map(Arc::clone), queue.written_bytes);
            let has_to_open = queue.readers.as_ref().is_some_and(|readers| readers.is_empty());
            if queue.error.is_some() || (piece.is_none() && !has_to_open) {
                queue.end();
                return false;
            }
            drop(queue);
            let done = match piece {
                Some(piece) => self.write(file, &piece, offset),
                None => self.open_readers(file),
            };
            let mut queue = self.queue();
            if let Err(error) = done {
                queue.error = Some(error);
            }
            queue.waker.as_ref().inspect(|waker| waker.wake_by_ref());
        }
        true
    }

    fn write(&self, file: &OnceLock<File>, piece: &Arc<Vec<u8>>, offset: u64) -> io::Result<()> {
        self.opened(file)?.write_all_at(piece, offset)?;
        let mut queue = self.queue();
        // Unless it was abandoned meanwhile.
        if queue.pieces.front().is_some_and(|first| Arc::ptr_eq(first, piece)) {
            queue.pieces.pop_front();
            queue.waiting_bytes -= piece.len();
            queue.written_bytes += piece.len() as u64;
            self.held.set(queue.waiting_bytes as u64);
        }
        Ok(())
    }

    fn opened<'a>(&self, file: &'a OnceLock<File>) -> io::Result<&'a File> {
        match file.get() {
            Some(file) => Ok(file),
            None => {
                let created = File::from((self.source.create)(&self.source.folder)?);
                Ok(file.get_or_init(|| created))
            }
        }
    }

    fn open_readers(&self, file: &OnceLock<File>) -> io::Result<()> {
        let file = self.opened(file)?;
        let opened = (0..READERS).map(|_| reopen_read_only(file).map(Arc::new));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        let mut queue = self.queue();
        if let Some(readers) = &mut queue.readers {
            *readers = opened;
        }
        Ok(())
    }

    /// What has to be closed by a thread that may wait.
    pub(crate) fn take_readers(&self) -> Vec<Arc<OwnedFd>> {
        take(&mut self.queue().readers).unwrap_or_default()
    }
}

/// Opens a file again for another process: to be read only, from the start.
///
/// # Errors
/// Errors of open(2); `/proc` is needed.
#[allow(clippy::disallowed_methods)] // it is the file that is open already
pub(crate) fn reopen_read_only(file: &File) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Queue {
    fn check(&self) -> io::Result<()> {
        match &self.error {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }

    /// The thread ends.
    fn end(&mut self) {
        self.is_busy = false;
        self.waker.as_ref().inspect(|waker| waker.wake_by_ref());
    }
}
