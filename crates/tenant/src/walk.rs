//! From a name to a descriptor without `openat2`: component by component, each opened without following links. Links are
//! read and followed here, by the same rules.
//!
//! Whatever another process renames meanwhile, the way goes from one open folder to the next; and where it must not leave
//! the first one, `..` leads back to the folder that it came from, and never asks the kernel for a parent.

use crate::{file_systems, Links};
use rustix::fs::{fstat, openat, readlinkat, FileType, Mode, OFlags, CWD};
use rustix::io::{retry_on_intr, Errno};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Most links on one way, as the kernel has it.
const MOST_LINKS: usize = 40;

/// Longest path in bytes, with the links in it followed.
const MOST_BYTES: usize = 64 * 1024;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// As `openat2` with the flags for these links.
pub(crate) fn open(
    folder: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let begins_here = !path.is_absolute(); // else it begins in /, if it may
    let way = if begins_here { vec![anchor(folder)?] } else { Vec::new() };
    let mut walk = Walk { links, way, left: Vec::new(), links_followed: 0 };
    walk.push(path.as_os_str().as_bytes())?;
    loop {
        // A path cannot be empty; "." is what is left of "/".
        let component = walk.left.pop().ok_or(Errno::NOENT)?;
        let is_last = walk.left.is_empty();
        if component == b".." {
            walk.back(is_last)?;
        } else if is_last {
            if let Some(opened) = walk.last(&component, flags, mode)? {
                return Ok(opened);
            }
        } else if component != b"." {
            walk.enter(&component)?;
        }
    }
}

/// The folder that the way begins in.
fn anchor(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| openat(folder, c".", FOLDER, Mode::empty()))
}

struct Walk {
    links: Links,
    /// The open folders on the way, the one where it is now last. Where links may lead anywhere, only that one.
    way: Vec<OwnedFd>,
    /// The components that are left, the next one last.
    left: Vec<Vec<u8>>,
    links_followed: usize,
}

impl Walk {
    fn here(&self) -> BorrowedFd<'_> {
        self.way.last().expect("the way begins in a folder").as_fd()
    }

    /// Puts this path before the components that are left.
    fn push(&mut self, path: &[u8]) -> Result<(), Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        if path.len() + self.left.iter().map(Vec::len).sum::<usize>() > MOST_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        if path[0] == b'/' {
            if self.links != Links::Anywhere {
                return Err(Errno::XDEV);
            }
            self.way = vec![retry_on_intr(|| openat(CWD, c"/", FOLDER, Mode::empty()))?];
        }
        let mut components: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
        if path.ends_with(b"/") {
            components.push(b"."); // what a slash ends is a folder
        }
        self.left.extend(components.into_iter().rev().map(<[u8]>::to_vec));
        Ok(())
    }

    fn back(&mut self, is_last: bool) -> Result<(), Errno> {
        if is_last {
            self.left.push(b".".to_vec()); // as what `..` leads to
        }
        if self.links == Links::Anywhere {
            let parent = retry_on_intr(|| openat(self.here(), c"..", FOLDER, Mode::empty()))?;
            self.way = vec![parent];
        } else {
            self.way.pop();
            if self.way.is_empty() {
                return Err(Errno::XDEV);
            }
        }
        Ok(())
    }

    /// Goes into a folder, or follows a link.
    fn enter(&mut self, component: &[u8]) -> Result<(), Errno> {
        match retry_on_intr(|| openat(self.here(), component, FOLDER, Mode::empty())) {
            Ok(folder) if self.links == Links::Anywhere => self.way = vec![folder],
            Ok(folder) => self.way.push(folder),
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => self.follow(component, error)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Opens the last component; `None`: it is a link, and what it leads to is left.
    fn last(&mut self, component: &[u8], flags: OFlags, mode: Mode) -> Result<Option<OwnedFd>, Errno> {
        let opened = retry_on_intr(|| openat(self.here(), component, flags | OFlags::NOFOLLOW, mode));
        let is_link = |opened: &OwnedFd| {
            let stat = fstat(opened)?;
            Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        let error = match opened {
            // With PATH, the link itself can be opened.
            Ok(opened) if is_link(&opened)? => Errno::LOOP,
            Ok(opened) => return Ok(Some(opened)),
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => error,
            Err(error) => return Err(error),
        };
        if flags.contains(OFlags::NOFOLLOW) {
            return Err(error);
        }
        self.follow(component, error).map(|()| None)
    }

    /// Goes where a link leads. If this is none, opening it has failed by `error`.
    fn follow(&mut self, component: &[u8], error: Errno) -> Result<(), Errno> {
        let target = match retry_on_intr(|| readlinkat(self.here(), component, Vec::new())) {
            Ok(target) => target,
            Err(Errno::INVAL) => return Err(error),
            Err(error) => return Err(error),
        };
        self.links_followed += 1;
        // The links of the kernel's file systems may lead into processes; their text says nothing about it.
        let is_refused = self.links == Links::Refused
            || file_systems::of_the_kernel(file_systems::magic_of(self.here())?).is_some();
        if is_refused || self.links_followed > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        self.push(target.as_bytes())
    }
}
