//! Files for clients, read without the event loop waiting.
//!
//! Reading a file may wait for a disk, and for ever where another machine or a process is behind the file system; so may
//! closing it. The event loop does so only with what is known to be in memory. Everything else is done by a thread of the
//! pool, within the [`PoolShare`] of the application, which has few threads:
//!
//! - of a file on a disk, the next piece is read into the page cache, and the kernel sends it from there;
//! - of a file elsewhere (NFS, FUSE), the next piece is read into a buffer.
//!
//! A [`ServedFile`] knows where it is. [`Ahead`] is what one client's connection is about to send of it.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{ready, Context, Poll};
use std::time::Duration;

use highball_tenant::{file_system, Backing};
use rustix::io::{preadv2, Errno, ReadWriteFlags};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::aside::write_behind::{Found, WriteBehind};
use crate::aside::PoolShare;
use crate::budget::Permit;
use crate::clock::now_ms;

/// Most bytes of a file sent at a time, so that one client does not keep the others waiting.
pub(crate) const PIECE_BYTES: u64 = 256 * 1024;

/// The same where they go through a buffer. A client that takes nothing has none.
const BUFFER_BYTES: u64 = 64 * 1024;

/// Between the bytes that are looked for in the page cache: it takes in, and drops, more than that at a time.
const PROBE_BYTES: u64 = 16 * 1024;

/// How long a file is believed to stay in the page cache, in milliseconds.
const CACHED_MS: u64 = 1000;

/// How long a client waits for a piece before its answer is cut off.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the bytes of a file come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    /// Memory alone.
    Memory,
    /// A disk of this machine. The kernel tells whether a byte is in the page cache.
    Disk,
    /// The same, but it does not tell.
    SilentDisk,
    /// Another machine, a process, or something unknown: each read may have to ask.
    Elsewhere,
}

/// File systems in memory, by their magic numbers (statfs(2), linux/magic.h): tmpfs, ramfs, hugetlbfs.
const IN_MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// File systems of disks that do not tell, or not with every kernel: overlayfs, ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, squashfs,
/// EROFS.
const ON_DISKS: [u32; 9] = [
    0x794c_7630,
    0x0000_ef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xca45_1a4e,
    0x7371_7368,
    0xe0f5_e1e2,
];

impl Medium {
    /// May wait for the file system.
    ///
    /// # Errors
    /// The kernel makes up its content, or the file system does not answer.
    fn of(file: &File) -> io::Result<Medium> {
        let magic = file_system(file)?;
        Ok(if IN_MEMORY.contains(&magic) {
            Medium::Memory
        } else if is_cached(file, 0).is_some() {
            Medium::Disk
        } else if ON_DISKS.contains(&magic) {
            Medium::SilentDisk
        } else {
            Medium::Elsewhere
        })
    }
}

/// Whether the byte at `offset` is in the page cache; `None`: the file system does not tell. Never waits.
fn is_cached(file: &File, offset: u64) -> Option<bool> {
    match preadv2(file, &mut [IoSliceMut::new(&mut [0])], offset, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// An open file that clients get.
#[derive(Debug)]
pub struct ServedFile {
    /// None while it is dropped, and before a spool file is created.
    file: OnceLock<File>,
    /// Where the front writes it: what was not written yet.
    behind: Option<Box<WriteBehind>>,
    /// What a spool file holds of the budget, until it is closed.
    permit: Option<Permit>,
    /// Whether another process may have it open too, and keep it.
    is_shared: AtomicBool,
    medium: OnceLock<Medium>,
    /// The number of bytes from the start that were in the page cache.
    cached_bytes: AtomicU64,
    /// When `cached_bytes` is no longer believed, in milliseconds.
    cached_until_ms: AtomicU64,
    pool: PoolShare,
}

impl ServedFile {
    /// Takes a file that an application has opened and that has this behind it; it is read within this share of the pool. Never waits.
    pub(crate) fn handed_over(file: File, backing: Backing, pool: &PoolShare) -> Self {
        let is_on_disk = backing == Backing::BlockDevice && is_cached(&file, 0).is_some();
        let mut served = ServedFile::not_opened(pool);
        served.file = file.into();
        if is_on_disk {
            served.medium = Medium::Disk.into();
        }
        served
    }

    fn not_opened(pool: &PoolShare) -> Self {
        ServedFile {
            file: OnceLock::new(),
            behind: None,
            permit: None,
            is_shared: false.into(),
            medium: OnceLock::new(),
            cached_bytes: 0.into(),
            cached_until_ms: 0.into(),
            pool: pool.clone(),
        }
    }

    /// A spool file in memory.
    pub(crate) fn in_memory(file: File, permit: Permit, pool: &PoolShare) -> Self {
        let mut served = ServedFile::not_opened(pool);
        served.file = file.into();
        served.medium = Medium::Memory.into();
        served.permit = Some(permit);
        served
    }

    /// A spool file that is created and written within this share of the pool.
    pub(crate) fn to_be_written(behind: WriteBehind, permit: Permit, pool: &PoolShare) -> Self {
        let mut served = ServedFile::not_opened(pool);
        served.behind = Some(Box::new(behind));
        served.permit = Some(permit);
        served
    }

    /// What is to be written to it, unless it is written at once.
    pub(crate) fn behind(&self) -> Option<&WriteBehind> {
        self.behind.as_deref()
    }

    /// What it holds of the budget.
    pub(crate) fn permit(&self) -> Option<&Permit> {
        self.permit.as_ref()
    }

    /// Another process may keep it open, which would take room that is not counted: it is emptied at the end.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Has threads write what waits. At most one at a time is at it.
    pub(crate) fn start_writing(self: &Arc<Self>) {
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Arc::clone(self).write_waiting())),
            // There is no event loop that would wait.
            Err(_) => while self.write_some() {},
        }
    }

    async fn write_waiting(self: Arc<Self>) {
        loop {
            let (pool, file) = (self.pool.clone(), Arc::clone(&self));
            let done = pool.take().await.spend(move || file.write_some()).await;
            if !matches!(done, Some((true, _))) {
                return;
            }
        }
    }

    fn write_some(&self) -> bool {
        let Some(behind) = &self.behind else { return false };
        let goes_on = behind.write_some(&self.file);
        if self.file.get().is_some() {
            // Without an answer now, it is looked for again when the file is read.
            let _ = self.find_medium();
        }
        goes_on
    }

    /// How many of these bytes are in the file; or the bytes that are not yet.
    fn find(&self, offset: u64, length: u64) -> Found {
        self.behind.as_ref().map_or(Found::InFile(length), |behind| behind.find(offset, length))
    }

    /// The same, on a thread that may wait.
    pub(crate) fn opened(file: File, pool: &PoolShare) -> Self {
        let served = ServedFile::handed_over(file, Backing::Unknown, pool);
        // Without an answer now, it is looked for again when the file is read.
        let _ = served.find_medium();
        served
    }

    fn find_medium(&self) -> io::Result<Medium> {
        match self.medium.get() {
            Some(medium) => Ok(*medium),
            None => {
                let medium = Medium::of(self)?;
                Ok(*self.medium.get_or_init(|| medium))
            }
        }
    }

    /// Whether these bytes can be read at once; `now_ms` is the time.
    fn is_ready(&self, offset: u64, length: u64, now_ms: u64) -> bool {
        match self.medium.get() {
            Some(Medium::Memory) => true,
            Some(Medium::Disk | Medium::SilentDisk) if self.was_cached(offset + length, now_ms) => true,
            Some(Medium::Disk) => {
                let mut probes = (offset..offset + length).step_by(PROBE_BYTES as usize);
                let is_ready = probes.all(|offset| is_cached(self, offset) == Some(true))
                    && is_cached(self, offset + length - 1) == Some(true);
                if is_ready {
                    self.note_cached(offset, length, now_ms);
                }
                is_ready
            }
            Some(Medium::SilentDisk | Medium::Elsewhere) | None => false,
        }
    }

    fn was_cached(&self, until: u64, now_ms: u64) -> bool {
        until <= self.cached_bytes.load(Ordering::Relaxed)
            && now_ms < self.cached_until_ms.load(Ordering::Relaxed)
    }

    fn note_cached(&self, offset: u64, length: u64, now_ms: u64) {
        if offset == 0 || self.was_cached(offset, now_ms) {
            self.cached_bytes.store(offset + length, Ordering::Relaxed);
            if offset == 0 {
                self.cached_until_ms.store(now_ms + CACHED_MS, Ordering::Relaxed);
            }
        }
    }

    /// Reads some of these bytes. This may take long, and is not for the event loop.
    fn read(&self, offset: u64, length: u64) -> io::Result<Piece> {
        let medium = self.find_medium()?;
        let mut buffer = vec![0; length.min(BUFFER_BYTES) as usize];
        match medium {
            Medium::Memory => Ok(Piece::Cached(length)),
            Medium::Disk | Medium::SilentDisk => {
                let mut read = 0;
                while read < length {
                    let most = (length - read).min(BUFFER_BYTES) as usize;
                    read += some(self.read_at(&mut buffer[..most], offset + read))?;
                }
                Ok(Piece::Cached(length))
            }
            Medium::Elsewhere => {
                let read = some(self.read_at(&mut buffer, offset))?;
                buffer.truncate(read as usize);
                Ok(Piece::Read(buffer))
            }
        }
    }
}

/// A file that has become shorter is an error.
fn some(read: io::Result<usize>) -> io::Result<u64> {
    match read? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => Ok(read as u64),
    }
}

impl Deref for ServedFile {
    type Target = File;

    fn deref(&self) -> &File {
        self.file.get().expect("it is open until it is dropped, and read once something was written")
    }
}

/// Closing may wait for the file system: FUSE asks its process, and NFS its server. The end of a large file takes a disk
/// long.
impl Drop for ServedFile {
    fn drop(&mut self) {
        let is_elsewhere = matches!(self.medium.get(), None | Some(Medium::Elsewhere));
        let Some(file) = self.file.take() else { return };
        let (permit, is_shared) = (self.permit.take(), *self.is_shared.get_mut());
        let readers = self.behind.as_ref().map(|behind| behind.take_readers());
        let close = move || {
            if is_shared {
                if let Err(error) = rustix::fs::ftruncate(&file, 0) {
                    tracing::warn!(
                        name: "spool_file_not_emptied", %error, "a spool file could not be emptied"
                    );
                }
            }
            drop((readers, file, permit));
        };
        let pool = self.pool.clone();
        match Handle::try_current() {
            Ok(runtime) if is_elsewhere || self.behind.is_some() => {
                runtime.spawn(async move { pool.take().await.spend(close).await.map(drop) });
            }
            // It takes no time, or there is no event loop that would wait.
            _ => close(),
        }
    }
}

/// What can be sent now.
#[derive(Debug)]
enum Piece {
    /// This many bytes, which are in memory.
    Cached(u64),
    /// These bytes.
    Read(Vec<u8>),
}

/// The next piece of a file for one client.
#[derive(Default)]
pub struct Ahead(State);

#[derive(Default)]
enum State {
    /// It was not looked for.
    #[default]
    Unknown,
    /// A thread of the pool reads it.
    Reading(Pin<Box<dyn Future<Output = io::Result<Piece>>>>),
    /// The bytes up to this offset are in memory; until that time, in milliseconds.
    Cached { until: u64, until_ms: u64 },
    /// These bytes of the file are next, from the `sent`th on.
    Read { bytes: Vec<u8>, sent: usize },
}

/// How the next bytes are sent.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// By the kernel, up to this many.
    FromCache(usize),
    /// These.
    Bytes(&'a [u8]),
}

/// What became of a part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileProgress {
    /// Some of it has been sent.
    Sent,
    /// The client would take more, which is being read.
    Reading,
}

impl Ahead {
    /// The next bytes, of at most `length` from `offset` on.
    ///
    /// # Errors
    /// They cannot be read, or not in time; the file has become shorter.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        file: &Arc<ServedFile>,
        offset: u64,
        length: u64,
    ) -> Poll<io::Result<Next<'_>>> {
        let now_ms = now_ms();
        let length = length.min(PIECE_BYTES);
        if matches!(self.0, State::Cached { until, until_ms } if until <= offset || until_ms <= now_ms) {
            self.0 = State::Unknown;
        }
        if matches!(self.0, State::Unknown) {
            self.0 = match file.find(offset, length) {
                Found::Waiting(bytes) => State::Read { bytes, sent: 0 },
                Found::InFile(length) if file.is_ready(offset, length, now_ms) => {
                    State::Cached { until: offset + length, until_ms: now_ms + CACHED_MS }
                }
                Found::InFile(length) => State::Reading(Box::pin(read(Arc::clone(file), offset, length))),
            };
        }
        if let State::Reading(reading) = &mut self.0 {
            let read = ready!(reading.as_mut().poll(context));
            self.0 = State::Unknown;
            self.0 = match read? {
                Piece::Cached(length) => {
                    file.note_cached(offset, length, now_ms);
                    State::Cached { until: offset + length, until_ms: now_ms + CACHED_MS }
                }
                Piece::Read(bytes) => State::Read { bytes, sent: 0 },
            };
        }
        Poll::Ready(Ok(match &self.0 {
            State::Cached { until, .. } => Next::FromCache((until - offset).min(length) as usize),
            State::Read { bytes, sent } => Next::Bytes(&bytes[*sent..]),
            State::Unknown | State::Reading(_) => unreachable!("it has just been found out"),
        }))
    }

    /// This many of the next bytes have been sent.
    pub(crate) fn advance(&mut self, length: usize) {
        if let State::Read { bytes, sent } = &mut self.0 {
            *sent += length;
            if *sent == bytes.len() {
                self.0 = State::Unknown;
            }
        }
    }

    /// The client takes nothing for now: what was read is read again when it does, and takes no memory meanwhile.
    pub(crate) fn forget(&mut self) {
        if matches!(self.0, State::Read { .. }) {
            self.0 = State::Unknown;
        }
    }
}

async fn read(file: Arc<ServedFile>, offset: u64, length: u64) -> io::Result<Piece> {
    let pool = file.pool.clone();
    let reading = async move { pool.take().await.spend(move || file.read(offset, length)).await };
    let read = match timeout(PATIENCE, reading).await {
        Ok(Some((piece, _held))) => piece,
        Ok(None) => Err(io::Error::other("the thread that read it has panicked")),
        Err(_) => Err(io::Error::other(format!("the file system has not answered within {PATIENCE:?}"))),
    };
    read.inspect_err(|error| {
        tracing::error!(
            name: "response_file_unreadable", %error, "an answer is cut off: cannot read its file"
        )
    })
}

impl fmt::Debug for Ahead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ahead")
    }
}

#[cfg(test)]
mod tests;
