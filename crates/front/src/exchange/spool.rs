//! Spool files: where a request body goes that is too large for memory, and an answer that is too large for a
//! slow client.
//!
//! A spool file has no name, so that nothing is left behind however the server ends. Where there is no folder for them, it is in
//! memory. The worker gets a separate descriptor: opened again, it reads from the start and cannot write.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use rustix::fs::{fchmod, memfd_create, open, unlink, MemfdFlags, Mode, OFlags};

use crate::aside::file_reads::ServedFile;
use crate::aside::write_behind::{reopen_read_only, Source, WriteBehind};
use crate::aside::PoolShare;
use crate::budget::{Account, Full, Kind, Permit};

/// How often a name is tried that turns out to be taken, on file systems that need names.
const NAME_ATTEMPTS: u32 = 16;

/// The threads that write, read and close spool files.
static POOL: LazyLock<PoolShare> = LazyLock::new(PoolShare::of_reads);

/// A file without a name.
#[derive(Debug)]
pub struct SpoolFile {
    file: Arc<ServedFile>,
    length: u64,
    /// How often it was given to another process.
    readers: Cell<usize>,
}

/// Why bytes were not stored.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The budget is used up.
    #[error("spool files are full")]
    Full,
    /// What the system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Full> for SpoolError {
    fn from(Full: Full) -> Self {
        SpoolError::Full
    }
}

impl SpoolFile {
    /// An empty file in `folder`, which is created when there is something to write. `buffers` counts what is not written
    /// yet.
    ///
    /// # Errors
    /// There is no folder, and the file cannot be in memory: too many open files.
    pub fn create(folder: &Path, account: &Account, buffers: &Account) -> io::Result<Self> {
        if account.kind() != Kind::SpoolFiles {
            return SpoolFile::in_memory(account);
        }
        let source = Source { folder: folder.to_owned(), create: unnamed };
        Ok(SpoolFile::from_source(source, account, buffers))
    }

    fn from_source(source: Source, account: &Account, buffers: &Account) -> Self {
        let behind = WriteBehind::new(source, Permit::new(buffers.clone()));
        SpoolFile::of(ServedFile::to_be_written(behind, Permit::new(account.clone()), &POOL))
    }

    /// An empty file in memory, which no disk has to do with.
    ///
    /// # Errors
    /// Too many open files.
    pub fn in_memory(account: &Account) -> io::Result<Self> {
        let file = File::from(in_memory()?);
        Ok(SpoolFile::of(ServedFile::in_memory(file, Permit::new(account.clone()), &POOL)))
    }

    fn of(file: ServedFile) -> Self {
        SpoolFile { file: Arc::new(file), length: 0, readers: Cell::new(0) }
    }

    /// Whether files can be created in this folder. This may take long, and is not for the event loop.
    ///
    /// # Errors
    /// Errors of open(2): no such folder, no permission, too many open files.
    pub(crate) fn try_folder(folder: &Path) -> io::Result<()> {
        unnamed(folder).map(drop)
    }

    /// Appends bytes. They are written later.
    ///
    /// # Errors
    /// The budget is used up; or an error of open(2) and write(2), for bytes that were appended before: no space above all.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.file.permit().map_or(Ok(()), |permit| permit.grow(bytes.len() as u64))?;
        match self.file.behind() {
            Some(behind) if behind.add(bytes)? => self.file.start_writing(),
            Some(_) => {}
            None => (&**self.file).write_all(bytes)?,
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// For how many more bytes there is room until some have been written, or the system does not write any.
    pub fn room(&self) -> usize {
        self.file.behind().map_or(usize::MAX, WriteBehind::room)
    }

    /// Waits for room for more.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        self.wake(context);
        match self.file.behind() {
            Some(behind) if behind.room() == 0 && !behind.has_failed() => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// This task is woken whenever there is room for more.
    pub(crate) fn wake(&self, context: &Context<'_>) {
        self.file.behind().into_iter().for_each(|behind| behind.wake(context.waker()));
    }

    /// All was appended: the file is prepared for another process.
    pub fn finish(&self) {
        if self.file.behind().is_some_and(WriteBehind::finish) {
            self.file.start_writing();
        }
    }

    /// Waits until it is.
    pub(crate) fn poll_finished(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.wake(context);
        match self.file.behind().map_or(Ok(true), WriteBehind::finished) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The file itself, to be read at positions.
    pub(crate) fn file(&self) -> Arc<ServedFile> {
        Arc::clone(&self.file)
    }

    /// What it is counted for.
    pub(crate) fn account(&self) -> &Account {
        self.file.permit().expect("a spool file is counted").account()
    }

    /// Bytes appended.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A descriptor of the same file for another process: read only, at the start. The file is
    /// [finished](SpoolFile::finish).
    ///
    /// # Errors
    /// Errors of open(2); `/proc` is needed.
    pub fn reader(&self) -> io::Result<Arc<OwnedFd>> {
        self.file.share();
        let number = self.readers.replace(self.readers.get() + 1);
        match self.file.behind().and_then(|behind| behind.reader(number)) {
            Some(reader) => Ok(reader),
            // In memory; or several workers have died before they began with it.
            None => reopen_read_only(&self.file).map(Arc::new),
        }
    }
}

/// What was not written by now is not wanted any more.
impl Drop for SpoolFile {
    fn drop(&mut self) {
        self.file.behind().into_iter().for_each(WriteBehind::abandon);
    }
}

/// A file in memory. Only this user may open it to write, as in a folder.
fn in_memory() -> io::Result<OwnedFd> {
    let descriptor = memfd_create(c"highball-spool", MemfdFlags::CLOEXEC)?;
    fchmod(&descriptor, Mode::RUSR | Mode::WUSR)?;
    Ok(descriptor)
}

#[allow(clippy::disallowed_methods)] // the folder is Highball's own
fn unnamed(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => Ok(descriptor),
        // File systems that know no files without names, and kernels before them (open(2), BUGS).
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => create_and_unlink(folder),
        Err(error) => Err(error.into()),
    }
}

#[allow(clippy::disallowed_methods)] // the folder is Highball's own
fn create_and_unlink(folder: &Path) -> io::Result<OwnedFd> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    for _ in 0..NAME_ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".highball-spool-{}-{number}", std::process::id()));
        match open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => {
                unlink(&path)?;
                return Ok(descriptor);
            }
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a spool file"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::budget::{Budget, Holder, Share};
    use crate::exchange::spool_room::SpoolRoom;

    fn accounts() -> (Account, Account) {
        let account =
            |kind| Account::new(&Share::new(&Budget::new(20, kind), "app", None), Holder::default());
        (account(Kind::SpoolFiles), account(Kind::Buffers))
    }

    fn check(mut spool: SpoolFile, folder: &Path) {
        spool.append(b"hello, ").unwrap();
        spool.append(b"spool").unwrap();
        assert_eq!(spool.length(), 12);
        spool.finish();
        let mut early = File::from(spool.reader().unwrap().try_clone().unwrap());
        for reader in [&mut early, &mut File::from(spool.reader().unwrap().try_clone().unwrap())] {
            let mut content = String::new();
            reader.read_to_string(&mut content).unwrap();
            assert_eq!(content, "hello, spool");
            assert!(reader.write_all(b"x").is_err(), "a reader cannot write");
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "no name is left in the folder");
        assert!(matches!(spool.append(&[0; 10]), Err(SpoolError::Full)));
        let (file, account) = (spool.file(), spool.account().clone());
        drop(spool);
        assert_eq!(account.free(), 8, "as long as it is sent");
        drop(file);
        assert_eq!(account.free(), 20);
        assert_eq!(early.metadata().unwrap().len(), 0, "nothing is left to who has kept it open");
    }

    #[test]
    fn what_is_written_can_be_read_from_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let (account, buffers) = accounts();
        check(SpoolFile::create(folder.path(), &account, &buffers).unwrap(), folder.path());
        check(SpoolFile::in_memory(&account).unwrap(), folder.path());
    }

    #[test]
    fn file_systems_without_unnamed_files_do_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let (account, buffers) = accounts();
        let source = Source { folder: folder.path().to_owned(), create: create_and_unlink };
        check(SpoolFile::from_source(source, &account, &buffers), folder.path());
    }

    #[test]
    fn where_there_is_no_folder_they_are_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let room = SpoolRoom::new(&missing, Some(20));
        let account = Account::new(&Share::new(room.budget(), "app", None), Holder::default());
        check(SpoolFile::create(&missing, &account, &accounts().1).unwrap(), folder.path());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (account, buffers) = accounts();
        let mut spool = SpoolFile::create(&folder.path().join("missing"), &account, &buffers).unwrap();
        spool.append(b"x").unwrap();
        let Err(SpoolError::System(error)) = spool.append(b"y") else { panic!("it was appended") };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
