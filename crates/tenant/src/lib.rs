//! The one way to open files that an application has a say in: its configuration, version files, sources, logs, error
//! pages and static files.
//!
//! An application of another user may put anything in the place of such a file: a link to a file of root, or into
//! `/proc`, where it shows what is Highball's; a named pipe or a device, which block; a file without an end. And it may
//! swap one for another at any moment. So a file is opened first and judged by its descriptor:
//!
//! - with the rights of the application's user, where Highball runs as root;
//! - by `openat2`, without the links of `/proc` that lead into processes, and as far as the [`Links`] rule allows;
//! - without waiting, neither for the other end of a pipe nor for a process that holds a lease on it;
//! - a regular file alone, and none of a file system whose content the kernel makes up for the process that reads;
//! - and, where it is read as a whole, up to a limit.
//!
//! In reading order:
//!
//! - this file: the folder, and what can be opened in it;
//! - [`OpenError`]: why something was not opened;
//! - `resolve`: from a name to a descriptor;
//! - `walk`: the same where there is no `openat2`;
//! - `file_systems`: the file systems without files of users.
//!
//! - `opener`: opening by another process, which runs as the user.
//!
//! A [`Request`] and its answer, a descriptor with what [is known about it](About), are plain data, so that another
//! process can open it.

mod about;
mod error;
mod file_systems;
mod opener;
mod resolve;
mod walk;

pub use about::{About, Kind};
pub use error::OpenError;
pub use opener::{
    answer_to, is_by_opener, never_ask_on_this_thread, open_by, own_memory, reaches, serve, Answer, Openers,
};
pub use resolve::Links;

use highball_users::{with_rights_of, User};
use resolve::Resolver;
use rustix::fs::{fstat, statat, statx, AtFlags, Dir, FileType, Mode, OFlags, StatxFlags, CWD};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A folder whose content is up to an application, opened.
#[derive(Debug)]
pub struct TenantFolder {
    descriptor: OwnedFd,
    about: About,
    path: PathBuf,
    /// Whose rights names are looked up with, if not Highball's own.
    user: Option<User>,
    resolver: Resolver,
}

/// What to open, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A path below the folder. Where links may lead [anywhere](Links::Anywhere), it may be absolute, too.
    pub name: PathBuf,
    /// Where links may lead.
    pub links: Links,
    /// What for.
    pub purpose: Purpose,
}

/// What something is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read a regular file.
    Read,
    /// To append to a regular file, which is created with this mode if it is not there. The name itself must not be a
    /// link.
    Append {
        /// The permission bits of a new file.
        mode: u32,
    },
    /// To look up names in a folder.
    Folder,
    /// To look at it, whatever it is. Nothing can be read from the descriptor.
    Look,
}

/// What was opened.
#[derive(Debug)]
pub struct Opened {
    /// The open file or folder.
    pub descriptor: OwnedFd,
    /// What is known about it.
    pub about: About,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One path component.
    pub name: OsString,
    /// What it names; a symbolic link is not followed. `None`: the file system does not tell.
    pub kind: Option<Kind>,
}

impl TenantFolder {
    /// Opens a folder with the rights of this user, if one is given. The path may lead through links.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, user: Option<&User>) -> Result<TenantFolder, OpenError> {
        TenantFolder::open_by(Resolver::available(), path, user)
    }

    fn open_by(resolver: Resolver, path: &Path, user: Option<&User>) -> Result<TenantFolder, OpenError> {
        let request = Request { name: path.into(), links: Links::Anywhere, purpose: Purpose::Folder };
        let Opened { descriptor, about } = resolver.open(CWD, &request, user)?;
        Ok(TenantFolder { descriptor, about, path: path.into(), user: user.cloned(), resolver })
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose rights names are looked up with, if not Highball's own.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// What is known about the folder itself, as it was when it was opened.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where the folder is now: its path without links.
    ///
    /// # Errors
    /// It has been removed, or the kernel cannot tell.
    pub fn real_path(&self) -> Result<PathBuf, OpenError> {
        resolve::path_of(&self.descriptor)
    }

    /// A path by which a child of this process begins in the folder, whatever has been put in its place since it was
    /// opened: a child enters it before it becomes another user. It is valid while this is open.
    pub fn working_folder(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()).into()
    }

    /// Opens what the request names.
    ///
    /// # Errors
    /// It cannot be opened, or is not what the purpose needs.
    pub fn answer(&self, request: &Request) -> Result<Opened, OpenError> {
        self.resolver.open(self.descriptor.as_fd(), request, self.user.as_ref())
    }

    fn opened(&self, name: &Path, links: Links, purpose: Purpose) -> Result<Opened, OpenError> {
        self.answer(&Request { name: name.into(), links, purpose })
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn file(&self, name: impl AsRef<Path>, links: Links) -> Result<(File, About), OpenError> {
        let Opened { descriptor, about } = self.opened(name.as_ref(), links, Purpose::Read)?;
        Ok((descriptor.into(), about))
    }

    /// Reads a regular file of at most `max_bytes`.
    ///
    /// # Errors
    /// It cannot be opened or read, is no regular file, or is larger.
    pub fn read(&self, name: impl AsRef<Path>, links: Links, max_bytes: u64) -> Result<Vec<u8>, OpenError> {
        let (file, about) = self.file(name, links)?;
        read_whole(file, &about, max_bytes)
    }

    /// Reads a text file of at most `max_bytes`.
    ///
    /// # Errors
    /// As for [`read`](Self::read), or it is not UTF-8.
    pub fn read_text(
        &self,
        name: impl AsRef<Path>,
        links: Links,
        max_bytes: u64,
    ) -> Result<String, OpenError> {
        String::from_utf8(self.read(name, links, max_bytes)?).map_err(|_| OpenError::NotText)
    }

    /// Opens a log: a regular file that is appended to. It is created with this mode if it is not there. Links may lead to
    /// its folder, as wherever logs of several releases are kept in one; the name itself must not be a link, which
    /// would say which file of the user's to write to.
    ///
    /// # Errors
    /// It cannot be opened or created, or is no regular file.
    pub fn append(&self, name: impl AsRef<Path>, mode: u32) -> Result<File, OpenError> {
        let purpose = Purpose::Append { mode };
        Ok(self.opened(name.as_ref(), Links::Anywhere, purpose)?.descriptor.into())
    }

    /// What is known about a file, folder or anything else. It need not be readable.
    ///
    /// # Errors
    /// It cannot be found.
    pub fn look(&self, name: impl AsRef<Path>, links: Links) -> Result<About, OpenError> {
        Ok(self.opened(name.as_ref(), links, Purpose::Look)?.about)
    }

    /// Whether there is a regular file of this name, which the user may find.
    pub fn has_file(&self, name: impl AsRef<Path>) -> bool {
        self.look(name, Links::Anywhere).is_ok_and(|about| about.kind == Kind::File)
    }

    /// Opens a folder below this one.
    ///
    /// # Errors
    /// It cannot be opened, or is no folder.
    pub fn folder(&self, name: impl AsRef<Path>, links: Links) -> Result<TenantFolder, OpenError> {
        let Opened { descriptor, about } = self.opened(name.as_ref(), links, Purpose::Folder)?;
        let path = self.path.join(name);
        Ok(TenantFolder { descriptor, about, path, user: self.user.clone(), resolver: self.resolver })
    }

    /// The names in the folder, in no order, at most `limit` of them.
    ///
    /// # Errors
    /// It cannot be read, or has more names.
    pub fn entries(&self, limit: usize) -> Result<Vec<Entry>, OpenError> {
        if let Some(openers) = opener::openers_of(self.user()) {
            let list = opener::list(openers, self.user(), self.as_fd());
            return self.entries_of(list, limit);
        }
        self.with_rights(|| self.entries_now(limit))
    }

    /// The names in the folder as [`entries`](Self::entries), each with what is known about it. Links are not followed.
    /// Names that go meanwhile are left out.
    ///
    /// # Errors
    /// It cannot be read, or has more names.
    pub fn survey(&self, limit: usize) -> Result<Vec<(OsString, About)>, OpenError> {
        if let Some(openers) = opener::openers_of(self.user()) {
            return opener::survey(openers, self.user(), self.as_fd(), limit);
        }
        self.with_rights(|| {
            let known = |name: OsString| {
                let stat = statat(&self.descriptor, &name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT);
                Some((name, About::of(&stat.ok()?)))
            };
            Ok(self.entries_now(limit)?.into_iter().filter_map(|entry| known(entry.name)).collect())
        })
    }

    fn entries_now(&self, limit: usize) -> Result<Vec<Entry>, OpenError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.entries_of(rustix::fs::openat(&self.descriptor, c".", flags, Mode::empty()), limit)
    }

    fn entries_of(&self, list: Result<OwnedFd, Errno>, limit: usize) -> Result<Vec<Entry>, OpenError> {
        let failed = |errno| OpenError::of(errno, Purpose::Folder, Links::Refused, self.user.as_ref());
        let list = list.map_err(failed)?;
        file_system(&list)?;
        match walk_limit(list, limit) {
            Err(Errno::OVERFLOW) => Err(OpenError::TooManyNames { limit }),
            Err(errno) => Err(failed(errno)),
            Ok(entries) => Ok(entries.into_iter().map(|(name, kind)| Entry { name, kind }).collect()),
        }
    }

    fn with_rights<T>(&self, act: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
        with_rights_of(self.user.as_ref(), act).unwrap_or_else(|error| Err(OpenError::Io(error)))
    }
}

impl AsFd for TenantFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The names in an open folder, and what they name. More than `limit` of them are an [overflow](Errno::OVERFLOW).
fn walk_limit(list: OwnedFd, limit: usize) -> Result<Vec<(OsString, Option<Kind>)>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::new(list)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if entries.len() == limit {
            return Err(Errno::OVERFLOW);
        }
        let kind = entry.file_type();
        let kind = (kind != FileType::Unknown).then(|| Kind::of(kind));
        entries.push((OsStr::from_bytes(name).into(), kind));
    }
    Ok(entries)
}

/// Opens a regular file at a path that comes from the application itself, as those in a backtrace.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub fn open_anywhere(path: &Path, user: Option<&User>) -> Result<(File, About), OpenError> {
    let request = Request { name: path.into(), links: Links::Anywhere, purpose: Purpose::Read };
    let Opened { descriptor, about } = Resolver::available().open(CWD, &request, user)?;
    Ok((descriptor.into(), about))
}

/// Opens a regular file at an absolute path that comes from the application itself, if the file lies in one of these folders
/// wherever links lead. Nothing is opened elsewhere, be it only to find out what it is.
///
/// # Errors
/// It cannot be opened, is no regular file, or lies in none of the folders.
pub fn open_within(
    path: &Path,
    folders: &[impl AsRef<Path>],
    user: Option<&User>,
) -> Result<(File, About), OpenError> {
    let request = Request { name: path.into(), links: Links::Anywhere, purpose: Purpose::Look };
    let Opened { descriptor, about } = Resolver::available().open(CWD, &request, user)?;
    let real = resolve::path_of(&descriptor)?;
    for folder in folders {
        // A missing folder holds no file.
        let Ok(folder) = TenantFolder::open(folder.as_ref(), user) else { continue };
        let Ok(name) = real.strip_prefix(folder.real_path()?) else { continue };
        return match about.kind {
            // It has been replaced if there is a link by now.
            Kind::File => folder.file(name, Links::Refused),
            other => Err(OpenError::NotAFile(other)),
        };
    }
    Err(OpenError::OutsideOfFolders)
}

/// What is known about whatever is at a path that comes from the application itself, or from its user's environment.
///
/// # Errors
/// It cannot be found.
pub fn look_anywhere(path: &Path, user: Option<&User>) -> Result<About, OpenError> {
    let request = Request { name: path.into(), links: Links::Anywhere, purpose: Purpose::Look };
    Ok(Resolver::available().open(CWD, &request, user)?.about)
}

/// Reads all of an open file, if that is at most `max_bytes`. It may grow meanwhile.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read_whole(file: File, about: &About, max_bytes: u64) -> Result<Vec<u8>, OpenError> {
    if about.bytes > max_bytes {
        return Err(OpenError::TooLarge { bytes: about.bytes, max_bytes });
    }
    let mut content = Vec::with_capacity(usize::try_from(about.bytes).unwrap_or(0));
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).map_err(OpenError::Io)?;
    let bytes = content.len() as u64;
    if bytes > max_bytes {
        return Err(OpenError::TooLarge { bytes, max_bytes });
    }
    Ok(content)
}

/// What is behind a file that the application itself has opened and handed over, if it is a regular file. Never waits: no
/// file system is asked, as one may not answer.
///
/// # Errors
/// It is no regular file.
pub fn handed_over(descriptor: impl AsFd) -> Result<Backing, OpenError> {
    let failed = |errno: Errno| OpenError::Io(errno.into());
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(&descriptor, "", flags, StatxFlags::TYPE).map_err(failed)?;
    match Kind::of(FileType::from_raw_mode(stat.stx_mode.into())) {
        Kind::File if stat.stx_dev_major != 0 => Ok(Backing::BlockDevice),
        Kind::File => Ok(Backing::Unknown),
        other => Err(OpenError::NotAFile(other)),
    }
}

/// What is behind an open file, as far as that can be found out without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A file system on a block device.
    BlockDevice,
    /// The file system has to be asked, and may be [the kernel's](file_system).
    Unknown,
}

/// The kind of file system of an open file, by its magic number (statfs(2)). May wait for that file system.
///
/// # Errors
/// It is one whose content the kernel makes up for the process that reads it; or it does not answer.
pub fn file_system(descriptor: impl AsFd) -> Result<u32, OpenError> {
    let magic = file_systems::magic_of(descriptor).map_err(|errno| OpenError::Io(errno.into()))?;
    file_systems::of_the_kernel(magic).map_or(Ok(magic), |name| Err(OpenError::Kernel(name)))
}

/// What is known about an open file by now.
///
/// # Errors
/// The kernel cannot tell.
pub fn about(descriptor: impl AsFd) -> Result<About, OpenError> {
    fstat(descriptor).map(|stat| About::of(&stat)).map_err(|errno| OpenError::Io(errno.into()))
}

#[cfg(test)]
mod tests;
