//! Spool files: where a request body goes that is too large for memory, and an answer that is too large for a
//! slow client.
//!
//! A spool file has no name, so that nothing is left behind however the server ends. Where there is no folder for them, it is in
//! memory. The worker gets a separate descriptor: opened again, it reads from the start and cannot write.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use highball_tenant::Backing;
use rustix::fs::{fchmod, ftruncate, memfd_create, open, openat, unlink, MemfdFlags, Mode, OFlags, CWD};

use crate::aside::file_reads::ServedFile;
use crate::aside::Turn;
use crate::budget::{Budget, Full, Permit, Share};

/// Most bytes of spool files that are in memory as there is no folder for them: the server may have little of it.
const MEMORY_BYTES: u64 = 64 << 20;

/// How often a name is tried that turns out to be taken, on file systems that need names.
const NAME_ATTEMPTS: u32 = 16;

/// An open file without a name.
#[derive(Debug)]
pub struct SpoolFile {
    file: Arc<ServedFile>,
    length: u64,
    permit: Rc<Permit>,
    /// Whether another process may have it open too, and keep it.
    is_shared: Cell<bool>,
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
    /// Creates an empty file in `folder`, for the application with this share of the budget.
    ///
    /// # Errors
    /// Those of open(2): no such folder, no permission, too many open files.
    pub fn create(folder: &Path, share: &Rc<Share>) -> io::Result<Self> {
        let descriptor = if share.is_in_memory() { in_memory()? } else { unnamed(folder)? };
        Ok(SpoolFile::of(descriptor, share))
    }

    /// Whether files can be created in this folder.
    ///
    /// # Errors
    /// As for [`SpoolFile::create`].
    pub(crate) fn try_folder(folder: &Path) -> io::Result<()> {
        unnamed(folder).map(drop)
    }

    fn of(descriptor: OwnedFd, share: &Rc<Share>) -> Self {
        static READS: LazyLock<Turn> = LazyLock::new(Turn::of_reads);
        let file = ServedFile::handed_over(File::from(descriptor), Backing::BlockDevice, &READS);
        let (file, permit) = (Arc::new(file), Rc::new(Permit::new(share)));
        SpoolFile { file, length: 0, permit, is_shared: Cell::new(false) }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The budget is used up; or those of write(2): no space above all.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.permit.grow(bytes.len() as u64)?;
        (&**self.file).write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The file itself, to be read at positions.
    pub fn file(&self) -> Arc<ServedFile> {
        Arc::clone(&self.file)
    }

    /// What the file holds of the budget; to be kept as long as the file.
    pub fn permit(&self) -> Rc<Permit> {
        Rc::clone(&self.permit)
    }

    /// Bytes written.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A descriptor of the same file for another process: read only, at the start.
    ///
    /// # Errors
    /// Those of open(2); `/proc` is needed.
    #[allow(clippy::disallowed_methods)] // it is the file that is open already
    pub fn reopen_read_only(&self) -> io::Result<OwnedFd> {
        self.is_shared.set(true);
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// The budget of spool files in this folder, of `limit` bytes or the usual limit. Where the folder cannot be used (in a
/// read-only container, for example) they are kept in memory, within narrower limits, and the log says so.
pub fn budget_of_folder(folder: &Path, limit: Option<u64>) -> Rc<Budget> {
    let Err(error) = SpoolFile::try_folder(folder) else {
        return Budget::new(limit.unwrap_or_else(|| Budget::usual_limit(folder)));
    };
    let limit = limit.unwrap_or(MEMORY_BYTES).min(MEMORY_BYTES);
    tracing::warn!(
        folder = %folder.display(),
        %error,
        limit,
        remedy = "Mount a tmpfs or a volume at this folder (docker run --tmpfs /tmp), or name another one with --spool-dir.",
        "no files can be created in the spool folder: large request bodies are kept in memory, up to the limit in all"
    );
    Budget::of(limit, true)
}

/// Truncates a shared file: a process that keeps it open would take room that is not counted.
impl Drop for SpoolFile {
    fn drop(&mut self) {
        if self.is_shared.get() {
            if let Err(error) = ftruncate(&**self.file, 0) {
                tracing::warn!(%error, "a spool file could not be emptied");
            }
        }
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
    use crate::budget::Budget;

    fn share() -> Rc<Share> {
        Share::new(&Budget::new(20), "app", None)
    }

    fn check(mut spool: SpoolFile, folder: &Path) {
        spool.write_all(b"hello, ").unwrap();
        let mut early = File::from(spool.reopen_read_only().unwrap());
        spool.write_all(b"spool").unwrap();
        assert_eq!(spool.length(), 12);
        for reader in [&mut early, &mut File::from(spool.reopen_read_only().unwrap())] {
            let mut content = String::new();
            reader.read_to_string(&mut content).unwrap();
            assert_eq!(content, "hello, spool");
            assert!(reader.write_all(b"x").is_err(), "a reader cannot write");
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "no name is left in the folder");
        assert!(matches!(spool.write_all(&[0; 10]), Err(SpoolError::Full)));
        let permit = spool.permit();
        drop(spool);
        assert_eq!(permit.share().used(), 12, "as long as the permit is kept");
        assert_eq!(early.metadata().unwrap().len(), 0, "nothing is left to who has kept it open");
    }

    #[test]
    fn what_is_written_can_be_read_from_the_start() {
        let folder = tempfile::tempdir().unwrap();
        check(SpoolFile::create(folder.path(), &share()).unwrap(), folder.path());
    }

    #[test]
    fn file_systems_without_unnamed_files_do_as_well() {
        let folder = tempfile::tempdir().unwrap();
        check(SpoolFile::of(create_and_unlink(folder.path()).unwrap(), &share()), folder.path());
    }

    #[test]
    fn where_there_is_no_folder_they_are_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let share = Share::new(&budget_of_folder(&missing, Some(20)), "app", None);
        check(SpoolFile::create(&missing, &share).unwrap(), folder.path());
        let unlimited = Share::new(&budget_of_folder(&missing, Some(u64::MAX)), "app", None);
        assert_eq!(unlimited.limit(), 64 << 20, "memory is not what the limit was meant for");
        assert!(!Share::new(&budget_of_folder(folder.path(), None), "app", None).is_in_memory());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = SpoolFile::create(&folder.path().join("missing"), &share()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
