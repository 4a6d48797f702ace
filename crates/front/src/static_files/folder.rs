//! The public folder, opened, and the names in it.
//!
//! Most requests are for the application, not for a file. The list of names tells these without asking
//! the file system; it is looked after at most every [`FRESH_MS`] milliseconds, and read again when the
//! folder has changed. Files that appear in folders below are found at once.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use highball_users::{with_rights_of, User};
use rustix::fs::{fstat, open, openat, openat2, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::FRESH_MS;

/// Most names that are kept; larger folders are asked for every request.
const MOST_NAMES: usize = 4096;

/// What has changed more recently than this may change again within the same time stamp.
pub(super) const SETTLED: Duration = Duration::from_secs(2);

/// The public folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    follow_symlinks: bool,
    /// Whose rights files are opened with, if not Highball's own.
    pub(super) user: Option<User>,
    /// When the folder was last looked at.
    checked_ms: Option<u64>,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    descriptor: OwnedFd,
    /// Device, inode and modification time: what changes when a name comes or goes.
    stamp: (u64, u64, i64, i64),
    /// Whether a change after the list was read must show in the stamp.
    settled: bool,
    /// The names, and those of pages (`name.html`) without their ending. `None`: too many.
    names: Option<HashSet<Box<[u8]>>>,
}

impl Folder {
    pub(super) fn new(root: PathBuf, follow_symlinks: bool) -> Self {
        Folder { root, follow_symlinks, user: None, checked_ms: None, opened: None }
    }

    /// Whether a path that begins with this component could be that of a file.
    pub(super) fn may_hold(&mut self, first_component: &[u8], now_ms: u64) -> bool {
        if self.checked_ms.is_none_or(|checked| now_ms >= checked + FRESH_MS) {
            self.checked_ms = Some(now_ms);
            self.opened = self.look();
        }
        let Some(opened) = &self.opened else { return false };
        opened.names.as_ref().is_none_or(|names| names.contains(first_component))
    }

    /// Opens the folder anew (it may have been replaced), and reads its names if they may have changed.
    fn look(&mut self) -> Option<Opened> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || open(&self.root, flags, Mode::empty());
        let descriptor = with_rights_of(self.user.as_ref(), open).ok()?.ok()?;
        let stat = fstat(&descriptor).ok()?;
        let stamp = (stat.st_dev, stat.st_ino, stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        if let Some(known) = self.opened.take() {
            if known.settled && known.stamp == stamp {
                return Some(Opened { descriptor, ..known });
            }
        }
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(stamp.2).unwrap_or(0));
        let settled = changed.elapsed().is_ok_and(|age| age >= SETTLED);
        let names = read_names(&descriptor);
        Some(Opened { descriptor, stamp, settled, names })
    }

    /// Opens a regular file below the folder; `None` if there is none that may be read.
    pub(super) fn open_file(&self, path: &[u8]) -> Option<File> {
        let opened = self.opened.as_ref()?;
        // Without O_NONBLOCK, opening a named pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(self.open_below(opened, path, flags).ok()?);
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }

    /// The names in the folder at `path` below this one (empty for this one itself); none if it is not there. `None`:
    /// they cannot be told, or are too many.
    pub(super) fn names(&self, path: &[u8]) -> Option<Vec<Box<[u8]>>> {
        let Some(opened) = self.opened.as_ref() else { return Some(Vec::new()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = if path.is_empty() { b"." } else { path };
        let descriptor = match self.open_below(opened, path, flags) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOENT | Errno::NOTDIR) => return Some(Vec::new()),
            Err(_) => return None,
        };
        let entries = Dir::read_from(&descriptor).ok()?.take(MOST_NAMES + 1);
        let names: Vec<Box<[u8]>> = entries
            .map(|entry| entry.map(|entry| entry.file_name().to_bytes().into()))
            .collect::<Result<_, _>>()
            .ok()?;
        (names.len() <= MOST_NAMES).then_some(names)
    }

    fn open_below(&self, opened: &Opened, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let open = || {
            if self.follow_symlinks {
                openat(&opened.descriptor, path, flags, Mode::empty())
            } else {
                let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                openat2(&opened.descriptor, path, flags, Mode::empty(), within)
            }
        };
        let opened = with_rights_of(self.user.as_ref(), open);
        opened.unwrap_or_else(|error| Err(Errno::from_io_error(&error).unwrap_or(Errno::PERM)))
    }
}

fn read_names(descriptor: &OwnedFd) -> Option<HashSet<Box<[u8]>>> {
    let mut names = HashSet::new();
    for entry in Dir::read_from(descriptor).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if let Some(page) = name.strip_suffix(b".html") {
            names.insert(page.into());
        }
        names.insert(name.into());
        if names.len() > MOST_NAMES {
            return None;
        }
    }
    Some(names)
}
