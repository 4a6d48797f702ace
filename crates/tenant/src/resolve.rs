//! From a name to a descriptor.

use crate::{opener, walk, About, Kind, OpenError, Opened, Purpose, Request};
use highball_users::{with_rights_of, User};
use rustix::fs::{fstat, openat2, readlink, Mode, OFlags, ResolveFlags, CWD};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How often opening is tried where a rename at the same time keeps the kernel from telling whether it stays in the
/// folder. It reports that as it reports leases.
const TRIES: usize = 4;

/// Where links may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Anywhere below the folder. Absolute links lead out of it.
    Beneath,
    /// To whatever the user itself could read, except for what is in `/proc` and the like.
    Anywhere,
    /// Nowhere: neither the name nor the way to it may be one.
    Refused,
}

/// What follows names and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The kernel: `openat2`.
    Kernel,
    /// This crate, component by component.
    Walk,
}

impl Resolver {
    /// What this system has: kernels before 5.6 have no `openat2`, and the filters of some containers deny it.
    pub(crate) fn available() -> Resolver {
        static AVAILABLE: OnceLock<Resolver> = OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let works = openat2(CWD, c"/", flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).is_ok();
            if works {
                Resolver::Kernel
            } else {
                Resolver::Walk
            }
        })
    }

    /// Opens what the request names, from this folder on and with the rights of this user.
    pub(crate) fn open(
        self,
        folder: BorrowedFd<'_>,
        request: &Request,
        user: Option<&User>,
    ) -> Result<Opened, OpenError> {
        let descriptor = match opener::openers_of(user) {
            Some(openers) => {
                let folder = (folder.as_raw_fd() != CWD.as_raw_fd()).then_some(folder);
                opener::open(openers, user, folder, request)
            }
            None => with_rights_of(user, || self.descriptor(folder, request)).map_err(OpenError::Io)?,
        };
        let failed = |errno| OpenError::of(errno, request.purpose, request.links, user);
        judged(descriptor.map_err(failed)?, request.purpose)
    }

    pub(crate) fn descriptor(self, folder: BorrowedFd<'_>, request: &Request) -> Result<OwnedFd, Errno> {
        let flags = request.purpose.flags();
        let mode = request.purpose.mode();
        if self == Resolver::Walk {
            return walk::open(folder, &request.name, request.links, flags, mode);
        }
        let mut tried = 0;
        loop {
            let opened = openat2(folder, &request.name, flags, mode, request.links.flags());
            tried += 1;
            match opened {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if request.links != Links::Anywhere && tried < TRIES => {}
                opened => return opened,
            }
        }
    }
}

impl Links {
    fn flags(self) -> ResolveFlags {
        let rule = match self {
            Links::Beneath => ResolveFlags::BENEATH,
            Links::Anywhere => ResolveFlags::empty(),
            Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        };
        rule | ResolveFlags::NO_MAGICLINKS
    }
}

impl Purpose {
    fn flags(self) -> OFlags {
        // Without NONBLOCK, opening a named pipe waits for its other end, and opening a file waits for a process that
        // holds a lease on it. A terminal that is opened without NOCTTY becomes this process's controlling terminal.
        let careful = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match self {
            Purpose::Read => OFlags::RDONLY | careful,
            Purpose::Append { .. } => {
                OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | careful
            }
            Purpose::Folder => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Purpose::Look => OFlags::PATH | OFlags::CLOEXEC,
        }
    }

    fn mode(self) -> Mode {
        match self {
            Purpose::Append { mode } => Mode::from_raw_mode(mode),
            Purpose::Read | Purpose::Folder | Purpose::Look => Mode::empty(),
        }
    }
}

/// What was opened, if it is what the purpose needs.
fn judged(descriptor: OwnedFd, purpose: Purpose) -> Result<Opened, OpenError> {
    let failed = |errno: Errno| OpenError::Io(errno.into());
    let about = About::of(&fstat(&descriptor).map_err(failed)?);
    let needs_file = matches!(purpose, Purpose::Read | Purpose::Append { .. });
    if needs_file && about.kind != Kind::File {
        return Err(OpenError::NotAFile(about.kind));
    }
    if purpose == Purpose::Folder && about.kind != Kind::Folder {
        return Err(OpenError::NotFound); // only another process passes such a descriptor
    }
    // A folder holds nothing itself; what is opened in it is judged, and so it is where its names are read.
    if purpose != Purpose::Folder {
        crate::file_system(&descriptor)?;
    }
    Ok(Opened { descriptor, about })
}

/// The path of something open, without links.
pub(crate) fn path_of(descriptor: impl AsFd) -> Result<PathBuf, OpenError> {
    let failed = |errno: Errno| OpenError::Io(errno.into());
    if fstat(&descriptor).map_err(failed)?.st_nlink == 0 {
        return Err(OpenError::NotFound); // the kernel would give a path with a remark behind it
    }
    let link = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    let path = readlink(link, Vec::new()).map_err(failed)?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}
