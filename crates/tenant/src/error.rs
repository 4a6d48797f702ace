//! Why something was not opened.

use crate::{Kind, Links, Purpose};
use highball_users::User;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why something was not opened or read. The message goes behind the path and a colon.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Nothing has this name.
    #[error("it does not exist")]
    NotFound,
    /// The user must not open it.
    #[error("the user {0} may not open it; give that user access to it and to the folders above it")]
    DeniedTo(String),
    /// Highball's own user must not open it.
    #[error(
        "permission denied; give the user that Highball runs as access to it and to the folders above it"
    )]
    Denied,
    /// It is something else than a regular file.
    #[error("it is {0}; put a regular file in its place")]
    NotAFile(Kind),
    /// It is larger than what may be read.
    #[error("it has {bytes} bytes or more, and at most {max_bytes} are read; shorten it")]
    TooLarge {
        /// Its size, as far as it is known.
        bytes: u64,
        /// The most bytes that are read.
        max_bytes: u64,
    },
    /// The folder has more names than may be read.
    #[error("it holds more than {limit} names; move some elsewhere")]
    TooManyNames {
        /// The most names that are read.
        limit: usize,
    },
    /// A process holds a lease on it.
    #[error("a process holds a lease on it (fcntl F_SETLEASE); try again when that process has released it")]
    Busy,
    /// The opener has not answered in time, or has gone; or a file system of another machine has not.
    #[error(
        "no answer came in time; check whether its file system answers, and whether the process of its user that opens it \
         (highball: opener) is stopped"
    )]
    NoAnswer,
    /// The name, or a link, leads out of the folder.
    #[error("it leads out of its folder; put the file itself there")]
    OutsideOfFolder,
    /// It lies in none of the folders that are allowed.
    #[error("it lies in none of the folders that are allowed, or a link leads out of them")]
    OutsideOfFolders,
    /// There is a symbolic link where none may be.
    #[error("it is a symbolic link, or is reached through one; put the file itself there")]
    LinkRefused,
    /// Links lead in a circle, or one leads into a process.
    #[error("its symbolic links lead in a circle, or into a process (/proc); put the file itself there")]
    BadLink,
    /// No user has written it: the kernel makes its content up.
    #[error("the kernel makes up its content ({0}); put a regular file in its place")]
    Kernel(&'static str),
    /// It is not UTF-8.
    #[error("it is not UTF-8 text; save it as UTF-8")]
    NotText,
    /// Something else failed.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl OpenError {
    /// Why opening failed for this purpose, with the rights of this user.
    pub(crate) fn of(errno: Errno, purpose: Purpose, links: Links, user: Option<&User>) -> OpenError {
        match errno {
            Errno::NOENT | Errno::NOTDIR => OpenError::NotFound,
            Errno::ACCESS | Errno::PERM => {
                user.map_or(OpenError::Denied, |user| OpenError::DeniedTo(user.name.clone()))
            }
            Errno::LOOP if links == Links::Refused || matches!(purpose, Purpose::Append { .. }) => {
                OpenError::LinkRefused
            }
            Errno::LOOP => OpenError::BadLink,
            Errno::XDEV => OpenError::OutsideOfFolder,
            Errno::WOULDBLOCK => OpenError::Busy,
            Errno::TIMEDOUT => OpenError::NoAnswer,
            Errno::ISDIR => OpenError::NotAFile(Kind::Folder),
            // Opening these fails before they can be looked at.
            Errno::NXIO if matches!(purpose, Purpose::Append { .. }) => OpenError::NotAFile(Kind::Pipe),
            Errno::NXIO => OpenError::NotAFile(Kind::Socket),
            Errno::NODEV => OpenError::NotAFile(Kind::Device),
            _ => OpenError::Io(errno.into()),
        }
    }

    /// Whether nothing has this name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, OpenError::NotFound)
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        let kind = match &error {
            OpenError::NotFound => io::ErrorKind::NotFound,
            OpenError::DeniedTo(_) | OpenError::Denied => io::ErrorKind::PermissionDenied,
            OpenError::Busy => io::ErrorKind::WouldBlock,
            OpenError::NoAnswer => io::ErrorKind::TimedOut,
            OpenError::NotText => io::ErrorKind::InvalidData,
            OpenError::Io(error) => error.kind(),
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}
