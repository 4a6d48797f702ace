//! What is known about a file.

use rustix::fs::{FileType, Stat};
use std::fmt;
use std::time::{Duration, SystemTime};

/// What is known about a file, folder or anything else with a name, as of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// The permission bits.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// Which file it is: its device, and the inode there.
    pub id: (u64, u64),
    /// Size in bytes, of a regular file.
    pub bytes: u64,
    /// When its content was changed last, in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// When anything about it was changed last, in seconds and nanoseconds since 1970. A process cannot choose that.
    pub changed: (i64, i64),
}

impl About {
    // The types of these fields differ between platforms.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub(crate) fn of(stat: &Stat) -> About {
        About {
            kind: Kind::of(FileType::from_raw_mode(stat.st_mode)),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            id: (stat.st_dev as u64, stat.st_ino as u64),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// When its content was changed last. Times before 1970 count as 1970.
    pub fn modified_at(&self) -> SystemTime {
        at(self.modified)
    }

    /// When anything about it was changed last. Times before 1970 count as 1970.
    pub fn changed_at(&self) -> SystemTime {
        at(self.changed)
    }
}

fn at((seconds, nanoseconds): (i64, i64)) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let later = seconds + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(later).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or something that this system has and others do not.
    Device,
}

impl Kind {
    pub(crate) fn of(kind: FileType) -> Kind {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::File => "a file",
            Kind::Folder => "a folder",
            Kind::Link => "a symbolic link",
            Kind::Pipe => "a named pipe",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
        })
    }
}
