//! Names under which Highball makes files that others look for: Unix sockets and PID files.
//!
//! The folder is opened once and held by its descriptor, so that swapping a folder on the way for a link changes
//! nothing. A file, but for a socket that clients connect to, is made under a random name and renamed into place when it
//! is complete. It is removed only as long as the name in that very folder still leads to it. Where this process is root,
//! it uses no folder that another user may write to.

use rustix::fs::{
    flock, fstat, open, openat, readlinkat, renameat, statat, unlinkat, AtFlags, FileType, FlockOperation,
    Mode, OFlags, Stat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{getrandom, GetRandomFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Files are opened without following a link, and are not inherited by other programs.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// Symbolic links on the way to a folder, as in the kernel.
const LINKS: usize = 40;
/// Time for another process to be done with the same name, which takes it some system calls.
const LOCK_TIME: Duration = Duration::from_secs(5);
/// How often the lock is tried.
const LOCK_EVERY: Duration = Duration::from_millis(5);
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why there is no safe place at a path.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The path ends in no file name.
    #[error("{} names a folder, not a file", .0.display())]
    NoName(PathBuf),
    /// A folder cannot be opened.
    #[error("cannot open the folder {}: {source} (create it, or check its permissions)", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
    /// The way to a file of one user's leads through what belongs to another.
    #[error(
        "{} {why}, but the way to it is another user's: as root, Highball follows no path by which one user leads to what is \
         another's", folder.display()
    )]
    Mixed {
        /// The folder, or a symbolic link on the way to it.
        folder: PathBuf,
        /// Whose it is.
        why: String,
    },
    /// Another user could swap what root makes there.
    #[error(
        "{} {why}, and Highball runs as root: it makes files only where root alone may write. Choose a folder of root's \
         (with systemd: RuntimeDirectory=NAME makes /run/NAME), or make this one root's: \
         chown root:root {0} && chmod 755 {0}", folder.display()
    )]
    Unsafe {
        /// The folder, or a symbolic link on the way to it.
        folder: PathBuf,
        /// Who may write to it.
        why: String,
    },
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(stat: &Stat) -> FileId {
        FileId { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The file that has the name of a place, held by an `O_PATH` descriptor: it stays the same file whatever becomes of the
/// name.
#[derive(Debug)]
pub struct Found {
    descriptor: OwnedFd,
    id: FileId,
    uid: u32,
    mode: u32,
}

impl Found {
    /// Whether it is a Unix socket.
    pub fn is_socket(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Socket
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    /// What kind of file it is, in words.
    pub fn kind(&self) -> &'static str {
        match FileType::from_raw_mode(self.mode) {
            FileType::RegularFile => "a regular file",
            FileType::Directory => "a folder",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a FIFO",
            FileType::Socket => "a socket",
            _ => "a device",
        }
    }

    /// The owner's number.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether its owner alone may read and write it.
    pub fn is_private(&self) -> bool {
        self.mode & 0o077 == 0
    }

    /// A path that leads to this very file, as long as it is held: for connecting, and for opening a regular file.
    pub fn address(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()).into()
    }
}

/// A file name in a folder that is held.
#[derive(Debug)]
pub struct Place {
    folder: OwnedFd,
    name: OsString,
    path: PathBuf,
    folder_uid: u32,
    folder_mode: u32,
}

impl Place {
    /// Opens the folder of this path. Root refuses one to which others may write, unless it is sticky and root's.
    ///
    /// # Errors
    /// [`PlaceError`] says which folder it is, and what to do.
    pub fn open(path: &Path) -> Result<Place, PlaceError> {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(PlaceError::NoName(path.into()));
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let is_root = geteuid().is_root();
        let folder = if is_root { open_trusted(parent, Trust::Root)? } else { open_folder(parent)? };
        Place::within(folder, parent, name)
    }

    /// Opens the folder of this path only to find a file there. Root follows a path into the folders of a user, but from
    /// there on to nothing that is another's.
    ///
    /// # Errors
    /// As for [`Place::open`].
    pub fn open_to_find(path: &Path) -> Result<Place, PlaceError> {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(PlaceError::NoName(path.into()));
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Place::within(open_folder_to_find(parent)?, parent, name)
    }

    /// A name in a folder that was opened, and judged, already; `parent` is its path for messages.
    ///
    /// # Errors
    /// The folder does not say what it is.
    pub fn within(folder: OwnedFd, parent: &Path, name: &OsStr) -> Result<Place, PlaceError> {
        let stat = fstat(&folder).map_err(|error| failed(parent, error))?;
        let (name, path) = (name.to_owned(), parent.join(name));
        Ok(Place { folder, name, path, folder_uid: stat.st_uid, folder_mode: stat.st_mode })
    }

    /// Whether only this user, and root, can swap a file of this user's in the folder.
    pub fn is_safe(&self) -> bool {
        let is_trusted = [0, geteuid().as_raw()].contains(&self.folder_uid);
        is_trusted && (self.folder_mode & WRITABLE_BY_OTHERS == 0 || self.is_sticky())
    }

    /// The owner of the folder: its number.
    pub fn folder_uid(&self) -> u32 {
        self.folder_uid
    }

    fn is_sticky(&self) -> bool {
        self.folder_mode & STICKY != 0
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of this name, if there is one. No link is followed.
    ///
    /// # Errors
    /// The folder cannot be searched.
    pub fn find(&self) -> io::Result<Option<Found>> {
        self.find_named(&self.name)
    }

    fn find_named(&self, name: &OsStr) -> io::Result<Option<Found>> {
        let descriptor = match openat(&self.folder, name, OFlags::PATH | PLAIN, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        let stat = fstat(&descriptor)?;
        Ok(Some(Found { descriptor, id: FileId::of(&stat), uid: stat.st_uid, mode: stat.st_mode }))
    }

    /// Whether this process may replace this file: in a sticky folder everybody's files lie side by side, and only our
    /// own are replaced.
    pub fn may_replace(&self, found: &Found) -> bool {
        !self.is_sticky() || found.uid() == geteuid().as_raw()
    }

    /// A random name in the same folder, under which a file is made that then gets the name of this place.
    ///
    /// # Errors
    /// The kernel gives out no random numbers.
    pub fn temporary(&self) -> io::Result<Temporary<'_>> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!(".highball-{:016x}", u64::from_ne_bytes(random));
        Ok(Temporary { place: self, name: name.into() })
    }

    /// Removes this file if it still has the name of this place. Another that has got the name meanwhile stays.
    ///
    /// # Errors
    /// The lock cannot be had, or the file cannot be removed.
    pub fn remove(&self, file: &Found) -> io::Result<()> {
        self.lock()?.remove(file)
    }

    /// Keeps other Highballs from claiming, replacing or removing this name, until the lock is dropped. The lock is a file
    /// beside it that only its owner may open, and is gone with the lock: others cannot hold it.
    ///
    /// # Errors
    /// It cannot be made, belongs to another user, or another process keeps it.
    pub fn lock(&self) -> io::Result<PlaceLock<'_>> {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".lock");
        let deadline = Instant::now() + LOCK_TIME;
        while Instant::now() < deadline {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NONBLOCK | PLAIN;
            let file = openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
            let stat = fstat(&file)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
                || stat.st_uid != geteuid().as_raw()
            {
                let message =
                    format!("its lock file {} is not ours", self.path.with_file_name(&name).display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => wait_for_lock(),
                locked => {
                    locked?;
                    // The process that had it before may have removed this very file meanwhile.
                    let now = statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW);
                    if now.is_ok_and(|now| FileId::of(&now) == FileId::of(&stat)) {
                        return Ok(PlaceLock { place: self, name, _file: file });
                    }
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another Highball is busy with the same file"))
    }
}

/// No lock of a file can be waited for until a deadline: it is tried, for as long as [`LOCK_TIME`].
#[allow(clippy::disallowed_methods)]
fn wait_for_lock() {
    std::thread::sleep(LOCK_EVERY);
}

/// The lock of a place.
#[derive(Debug)]
pub struct PlaceLock<'a> {
    place: &'a Place,
    name: OsString,
    _file: OwnedFd,
}

impl PlaceLock<'_> {
    /// As [`Place::remove`], by the holder of the lock.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self, file: &Found) -> io::Result<()> {
        let Place { folder, name, .. } = self.place;
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if FileId::of(&now) == file.id => Ok(unlinkat(folder, name, AtFlags::empty())?),
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for PlaceLock<'_> {
    fn drop(&mut self) {
        // Before it is unlocked, so that no process locks a file without a name. A remaining file is used again.
        let _ = unlinkat(&self.place.folder, &self.name, AtFlags::empty());
    }
}

/// A random name in the folder of a place; what is there goes with it, unless it was published.
#[derive(Debug)]
pub struct Temporary<'a> {
    place: &'a Place,
    name: OsString,
}

impl Temporary<'_> {
    /// A path by which this name is reached, whatever becomes of the folders on the way: for binding a socket.
    pub fn address(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.place.folder.as_raw_fd())).join(&self.name)
    }

    /// Makes a new file of this name, for reading and writing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(&self, mode: u32) -> io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | PLAIN;
        Ok(openat(&self.place.folder, &self.name, flags, Mode::from_raw_mode(mode))?)
    }

    /// Gives the file the name of the place, and replaces what is there.
    ///
    /// # Errors
    /// There is no file, or it cannot be renamed.
    pub fn publish(self) -> io::Result<Found> {
        let Place { folder, name, .. } = self.place;
        let file = self.place.find_named(&self.name)?.ok_or(io::ErrorKind::NotFound)?;
        renameat(folder, &self.name, folder, name)?;
        Ok(file)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(&self.place.folder, &self.name, AtFlags::empty()); // after `publish` there is none
    }
}

fn failed(folder: &Path, source: impl Into<io::Error>) -> PlaceError {
    PlaceError::Folder { folder: folder.into(), source: source.into() }
}

fn open_folder(path: &Path) -> Result<OwnedFd, PlaceError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| failed(path, error))
}

/// Opens a folder in which files are only looked for, as [`Place::open_to_find`] does.
///
/// # Errors
/// [`PlaceError`] says which folder cannot be used, and why.
pub fn open_folder_to_find(path: &Path) -> Result<OwnedFd, PlaceError> {
    if geteuid().is_root() {
        open_trusted(path, Trust::RootAnd(None))
    } else {
        open_folder(path)
    }
}

/// Whose folders and links a path may lead through where this process is root.
#[derive(Debug, Clone, Copy)]
enum Trust {
    /// Root's.
    Root,
    /// Root's, and from the first one on that is not root's only those of the same user.
    RootAnd(Option<u32>),
}

impl Trust {
    fn admits(&mut self, uid: u32, at: &Path) -> Result<(), PlaceError> {
        match self {
            Trust::Root if uid != 0 => Err(PlaceError::Unsafe { folder: at.into(), why: belongs_to(uid) }),
            Trust::RootAnd(user @ None) if uid != 0 => {
                *user = Some(uid);
                Ok(())
            }
            Trust::RootAnd(Some(user)) if uid != *user => {
                Err(PlaceError::Mixed { folder: at.into(), why: belongs_to(uid) })
            }
            _ => Ok(()),
        }
    }
}

/// Opens a folder for root: step by step from `/`. Only trusted users may be able to change the folders and links on
/// the way. So no other user decides where the path leads, now or later.
fn open_trusted(path: &Path, mut trust: Trust) -> Result<OwnedFd, PlaceError> {
    let absolute = std::path::absolute(path).map_err(|error| failed(path, error))?;
    let mut current = open_folder(Path::new("/"))?;
    let mut at = PathBuf::from("/");
    let mut links = 0;
    let mut left = steps(&absolute);
    judge(&current, &at, &mut trust)?;
    while let Some(step) = left.pop() {
        let next_at = at.join(&step);
        let next = openat(&current, &step, OFlags::PATH | PLAIN, Mode::empty());
        let next = next.map_err(|error| failed(&next_at, error))?;
        let stat = fstat(&next).map_err(|error| failed(&next_at, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            judge(&next, &next_at, &mut trust)?;
            (current, at) = (next, next_at);
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(failed(&next_at, Errno::LOOP));
        }
        trust.admits(stat.st_uid, &next_at)?;
        let target = readlinkat(&next, c"", Vec::new()).map_err(|error| failed(&next_at, error))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            (current, at) = (open_folder(Path::new("/"))?, "/".into());
        }
        left.extend(steps(&target));
    }
    Ok(current)
}

/// The names in a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut names: Vec<_> = names.collect();
    names.reverse();
    names
}

/// Checks that only trusted users decide what is in this folder; or, in a sticky folder, only of one's own
/// files.
fn judge(folder: &OwnedFd, path: &Path, trust: &mut Trust) -> Result<(), PlaceError> {
    let stat = fstat(folder).map_err(|error| failed(path, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(failed(path, Errno::NOTDIR));
    }
    trust.admits(stat.st_uid, path)?;
    let mode = stat.st_mode & 0o7777;
    if mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
        let why = format!("may be written by other users (mode {mode:04o})");
        return Err(PlaceError::Unsafe { folder: path.into(), why });
    }
    Ok(())
}

fn belongs_to(uid: u32) -> String {
    format!("belongs to {}", crate::User::with_uid(uid, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in("/tmp").unwrap()
    }

    /// Puts a file with this text in its place.
    fn put(place: &Place, text: &str) -> Found {
        let temporary = place.temporary().unwrap();
        let file = temporary.create(0o600).unwrap();
        rustix::io::write(file, text.as_bytes()).unwrap();
        temporary.publish().unwrap()
    }

    #[test]
    fn a_file_goes_only_as_long_as_the_name_is_its_own() {
        let folder = folder();
        let path = folder.path().join("x");
        let place = Place::open(&path).unwrap();
        let (first, second) = (put(&place, "1"), put(&place, "2"));
        place.remove(&first).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2");
        place.remove(&second).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nor are locks and random names left");
    }

    #[test]
    fn the_folder_stays_the_same_wherever_its_path_leads() {
        let outer = folder();
        let path = |name: &str| outer.path().join(name);
        fs::create_dir(path("a")).unwrap();
        fs::create_dir(path("b")).unwrap();
        fs::write(path("b/x"), "untouched").unwrap();
        let place = Place::open(&path("a/x")).unwrap();
        let file = put(&place, "ours");
        fs::rename(path("a"), path("moved")).unwrap();
        symlink("b", path("a")).unwrap();
        place.remove(&file).unwrap();
        assert!(!path("moved/x").exists());
        assert_eq!(fs::read_to_string(path("b/x")).unwrap(), "untouched");
    }

    #[test]
    fn only_one_has_the_lock() {
        let folder = folder();
        let path = folder.path().join("count");
        fs::write(&path, "0").unwrap();
        let add = || {
            let place = Place::open(&path).unwrap();
            let _lock = place.lock().unwrap();
            let count: u32 = fs::read_to_string(&path).unwrap().parse().unwrap();
            fs::write(&path, (count + 1).to_string()).unwrap();
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..25).for_each(|_| add()));
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "200");
    }

    #[test]
    fn root_uses_no_folder_that_is_another_users_to_change() {
        if !crate::may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let outer = folder();
        let path = |name: &str| outer.path().join(name);
        let opened = |name: &str| Place::open(&path(name)).map(drop);
        fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
        for (name, mode) in [("own", 0o755), ("shared", 0o775), ("open", 0o777), ("sticky", 0o1777)] {
            fs::create_dir(path(name)).unwrap();
            fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        symlink("own", path("link")).unwrap();
        symlink("own", path("foreign")).unwrap();
        lchown(path("foreign"), Some(1), None).unwrap();
        for name in ["own/x", "sticky/x", "link/x", "sticky/../own/x"] {
            opened(name).unwrap();
        }
        for name in ["shared/x", "open/x", "foreign/x", "open/../own/x"] {
            let error = opened(name).unwrap_err();
            assert!(matches!(error, PlaceError::Unsafe { .. }), "{name}: {error}");
        }
        chown(path("own"), Some(1), None).unwrap();
        assert!(opened("own/x").unwrap_err().to_string().contains("belongs to daemon"));
        assert!(opened("link/x").is_err());
    }

    #[test]
    fn root_finds_what_is_one_users_and_not_what_that_user_leads_to() {
        if !crate::may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let outer = folder();
        let path = |name: &str| outer.path().join(name);
        fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(path("own")).unwrap();
        fs::create_dir(path("theirs")).unwrap();
        symlink("../own", path("theirs/out")).unwrap();
        for name in ["theirs", "theirs/out"] {
            lchown(path(name), Some(1), None).unwrap();
        }
        Place::open_to_find(&path("theirs/x")).unwrap();
        let error = Place::open_to_find(&path("theirs/out/x")).unwrap_err();
        assert!(matches!(error, PlaceError::Mixed { .. }), "{error}");
    }
}
