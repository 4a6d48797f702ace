//! Acting with another user's rights for a moment.

use crate::User;
use rustix::fs::{open, Mode, OFlags};
use rustix::process::{getegid, geteuid, getgroups, Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::error::Error;
use std::fmt;
use std::fs::metadata;
use std::io;
use std::path::{Path, PathBuf};

/// Does something with the rights of this user, where one is given: files are found and opened by it as by the user's own
/// processes. For files whose paths an application has a say in: Highball, as root, could open them all.
///
/// Only the calling thread gives its rights up; in `act` no thread may be started. The user cannot reach the thread
/// meanwhile: who may send it signals, or look into it, depends on its real and saved users (kill(2), ptrace(2)), which
/// stay root's.
///
/// # Errors
/// The rights cannot be given up; then nothing was done.
///
/// # Panics
/// They cannot be taken back.
pub fn with_rights_of<T>(user: Option<&User>, act: impl FnOnce() -> T) -> io::Result<T> {
    let Some(user) = user else { return Ok(act()) };
    let _rights = Rights::of(user)?;
    Ok(act())
}

/// The calling thread has a user's rights while this lives.
struct Rights {
    own_group: Gid,
    own_groups: Vec<Gid>,
}

impl Rights {
    fn of(user: &User) -> io::Result<Rights> {
        if !geteuid().is_root() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // From here on all is undone, wherever it ends.
        let rights = Rights { own_group: getegid(), own_groups: getgroups()? };
        let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Gid::from_raw(user.gid), None)?;
        // Last: with it the capabilities go, until the thread is root's again.
        set_thread_res_uid(None, Uid::from_raw(user.uid), None)?;
        Ok(rights)
    }

    fn give_back(&self) -> io::Result<()> {
        set_thread_res_uid(None, Uid::ROOT, None)?;
        set_thread_res_gid(None, self.own_group, None)?;
        set_thread_groups(&self.own_groups)?;
        Ok(())
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.give_back().expect("a thread of root takes its rights back");
    }
}

/// A file or folder that a user may not read.
#[derive(Debug)]
pub struct OutOfReach {
    /// The user's name.
    pub user: String,
    /// What was to be read.
    pub path: PathBuf,
    /// What keeps the user out: the first folder on the way that may not be entered, or the path itself.
    pub barrier: PathBuf,
    source: io::Error,
}

impl User {
    /// Looks whether this user may read the file, or enter the folder, at an absolute path.
    ///
    /// # Errors
    /// The user may not; the error names the path that is closed.
    pub fn reaches(&self, path: &Path) -> Result<(), OutOfReach> {
        let found = with_rights_of(Some(self), || barrier(path)).unwrap_or_else(|error| Some((path, error)));
        OutOfReach::of(&self.name, path, found)
    }
}

impl OutOfReach {
    /// As another process has found it.
    pub fn new(user: String, path: PathBuf, barrier: PathBuf, source: io::Error) -> OutOfReach {
        OutOfReach { user, path, barrier, source }
    }

    /// The system's error number.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    fn of(user: &str, path: &Path, found: Option<(&Path, io::Error)>) -> Result<(), OutOfReach> {
        found.map_or(Ok(()), |(barrier, source)| {
            Err(OutOfReach::new(user.into(), path.into(), barrier.into(), source))
        })
    }
}

/// What keeps the calling thread from reading this file, or from entering this folder.
pub fn barrier(path: &Path) -> Option<(&Path, io::Error)> {
    let folder_opens = |folder: &Path| metadata(folder.join(".")).map(drop);
    // Whatever is there by now: a named pipe is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file_opens = || Ok(open(path, flags, Mode::empty()).map(drop)?);
    let opens = || if path.is_dir() { folder_opens(path) } else { file_opens() };
    let error = opens().err()?;
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let closed = above.into_iter().find(|folder| folder_opens(folder).is_err());
    Some((closed.unwrap_or(path), error))
}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfReach { user, path, barrier, source } = self;
        write!(f, "the user {user} cannot read {}: ", path.display())?;
        if barrier == path {
            write!(f, "{source}")
        } else {
            write!(f, "{} is closed to {user}", barrier.display())
        }
    }
}

impl Error for OutOfReach {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::may_change_users;
    use rustix::process::geteuid;
    use std::fs::{set_permissions, File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// A folder that everybody may enter, with a file that only root may read, and a closed folder with an open file.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        for (path, mode) in [("secret", 0o600), ("open", 0o644), ("closed/open", 0o644)] {
            std::fs::write(folder.path().join(path), "text").unwrap();
            set_permissions(folder.path().join(path), Permissions::from_mode(mode)).unwrap();
        }
        set_permissions(closed, Permissions::from_mode(0o700)).unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn files_are_opened_with_the_rights_of_the_user_and_then_with_ones_own_again() {
        if !may_change_users() {
            return println!("skipped: only root can try it");
        }
        let folder = folder();
        let (secret, open) = (folder.path().join("secret"), folder.path().join("open"));
        let nobody = User::of("nobody").unwrap();
        let groups = getgroups().unwrap();
        let tried =
            with_rights_of(Some(&nobody), || (File::open(&secret).is_ok(), File::open(&open).is_ok()));
        assert_eq!(tried.unwrap(), (false, true));
        assert!(File::open(&secret).is_ok());
        assert_eq!((geteuid().as_raw(), getegid().as_raw(), getgroups().unwrap()), (0, 0, groups));
        assert!(with_rights_of(None, || File::open(&secret).is_ok()).unwrap());
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        if !may_change_users() {
            return println!("skipped: only root can try it");
        }
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let nobody = User::of("nobody").unwrap();
        assert!(nobody.reaches(&path("open")).is_ok() && nobody.reaches(folder.path()).is_ok());
        for (name, barrier) in [("secret", "secret"), ("closed/open", "closed"), ("closed", "closed")] {
            let out = nobody.reaches(&path(name)).unwrap_err();
            assert_eq!(out.barrier, path(barrier));
            assert!(out.to_string().contains("nobody"), "{out}");
        }
    }

    #[test]
    fn a_panic_gives_the_rights_back_too() {
        if !may_change_users() {
            return println!("skipped: only root can try it");
        }
        let nobody = User::of("nobody").unwrap();
        let panicked = std::panic::catch_unwind(|| with_rights_of(Some(&nobody), || panic!("on purpose")));
        assert!(panicked.is_err());
        assert!(geteuid().is_root());
    }
}
