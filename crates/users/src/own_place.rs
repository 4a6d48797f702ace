//! Whether a path leads to where only root, or the user of this process, can put anything.

use rustix::fs::{fstat, open, openat, readlinkat, FileType, Mode, OFlags, Stat};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Symbolic links on the way, as in the kernel.
const LINKS: usize = 40;
const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;
/// Groups whose only members are daemons that write logs: `/var/log` may be open to them.
const OF_LOGS: [&str; 3] = ["adm", "root", "syslog"];

/// A file name in a folder that is held by a descriptor: what the path leads to cannot be exchanged.
#[derive(Debug)]
pub struct OwnPlace {
    /// The folder.
    pub folder: OwnedFd,
    /// The name in it: of a file, or of nothing yet, and not of a link.
    pub name: OsString,
}

/// Why a path does not lead to such a place.
#[derive(Debug)]
pub enum NotOwn {
    /// Others may put something there.
    OfOthers {
        /// The first folder or link on the way that another user can change.
        at: PathBuf,
        /// Who can.
        why: String,
    },
    /// It cannot be followed.
    Io(PathBuf, io::Error),
}

impl fmt::Display for NotOwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOwn::OfOthers { at, why } => write!(f, "{} {why}", at.display()),
            NotOwn::Io(at, error) => write!(f, "{}: {error}", at.display()),
        }
    }
}

impl OwnPlace {
    /// Follows an absolute path, step by step from `/`, and its last name too where that is a link of root's.
    ///
    /// # Errors
    /// Another user can change where it leads, or it leads nowhere.
    pub fn of(path: &Path) -> Result<OwnPlace, NotOwn> {
        Walk { at: "/".into(), folder: root()?, ahead: steps(path), links: 0 }.arrive()
    }
}

/// A walk along a path.
struct Walk {
    /// Where it is, for messages.
    at: PathBuf,
    folder: OwnedFd,
    /// What is still ahead, the next step last.
    ahead: Vec<OsString>,
    links: usize,
}

impl Walk {
    fn arrive(mut self) -> Result<OwnPlace, NotOwn> {
        loop {
            check(&self.at, &self.stat(&self.folder)?, false)?;
            let Some(name) = self.ahead.pop() else {
                return Err(NotOwn::Io(self.at, io::Error::from(io::ErrorKind::IsADirectory)));
            };
            let path = self.at.join(&name);
            let failed = |error: rustix::io::Errno| NotOwn::Io(path.clone(), error.into());
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match openat(&self.folder, &name, flags, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) if self.ahead.is_empty() => return self.end(name),
                found => found.map_err(failed)?,
            };
            let stat = self.stat(&found)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    check(&path, &stat, true)?;
                    let target = readlinkat(&self.folder, &name, Vec::new()).map_err(failed)?;
                    self.follow(&OsString::from_vec(target.into_bytes()), path)?;
                }
                FileType::Directory => {
                    (self.folder, self.at) = (found, path);
                }
                _ if self.ahead.is_empty() => return self.end(name),
                _ => return Err(failed(rustix::io::Errno::NOTDIR)),
            }
        }
    }

    /// In a folder that is everybody's, the name may be another user's by the time it is opened.
    fn end(self, name: OsString) -> Result<OwnPlace, NotOwn> {
        if self.stat(&self.folder)?.st_mode & BY_ALL != 0 {
            return Err(NotOwn::OfOthers { at: self.at, why: "can be written to by everybody".into() });
        }
        Ok(OwnPlace { folder: self.folder, name })
    }

    fn follow(&mut self, target: &OsStr, link: PathBuf) -> Result<(), NotOwn> {
        self.links += 1;
        if self.links > LINKS {
            return Err(NotOwn::Io(link, rustix::io::Errno::LOOP.into()));
        }
        if Path::new(target).is_absolute() {
            (self.folder, self.at) = (root()?, "/".into());
        }
        self.ahead.extend(steps(Path::new(target)));
        Ok(())
    }

    fn stat(&self, descriptor: &OwnedFd) -> Result<Stat, NotOwn> {
        fstat(descriptor).map_err(|error| NotOwn::Io(self.at.clone(), error.into()))
    }
}

fn root() -> Result<OwnedFd, NotOwn> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open("/", flags, Mode::empty()).map_err(|error| NotOwn::Io("/".into(), error.into()))
}

/// The steps of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let steps =
        path.components().rev().filter(|step| matches!(step, Component::Normal(_) | Component::ParentDir));
    steps.map(|step| step.as_os_str().to_owned()).collect()
}

/// Checks that no other user can change a folder, or a link. A sticky folder may be everybody's: what is root's there
/// stays.
fn check(at: &Path, stat: &Stat, is_link: bool) -> Result<(), NotOwn> {
    let of_others = |why: String| Err(NotOwn::OfOthers { at: at.into(), why });
    let mode = if is_link { 0 } else { stat.st_mode };
    if ![0, geteuid().as_raw()].contains(&stat.st_uid) {
        let name = crate::name_of(stat.st_uid).unwrap_or_else(|| stat.st_uid.to_string());
        return of_others(format!("belongs to {name}"));
    }
    if mode & BY_ALL != 0 && mode & STICKY == 0 {
        return of_others("can be written to by everybody".into());
    }
    if mode & BY_GROUP != 0 && mode & STICKY == 0 {
        let group =
            uzers::get_group_by_gid(stat.st_gid).map(|group| group.name().to_string_lossy().into_owned());
        if !group.as_deref().is_some_and(|name| OF_LOGS.contains(&name)) {
            let name = group.unwrap_or_else(|| stat.st_gid.to_string());
            return of_others(format!("can be written to by the group {name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, set_permissions, write, Permissions};
    use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};

    #[test]
    fn only_where_no_other_user_may_write() {
        if !crate::may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let outer = tempfile::tempdir().unwrap();
        set_permissions(outer.path(), Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| outer.path().join(name);
        for (name, mode) in
            [("own", 0o755), ("group", 0o775), ("open", 0o777), ("sticky", 0o1777), ("theirs", 0o755)]
        {
            create_dir(path(name)).unwrap();
            set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        write(path("own/there"), "").unwrap();
        create_dir(path("sticky/own")).unwrap();
        chown(path("theirs"), Some(1), None).unwrap();
        chown(path("group"), None, Some(60)).unwrap();
        symlink("own", path("link")).unwrap();
        symlink("../own/there", path("own/to-file")).unwrap();
        symlink(path("theirs/x"), path("own/to-theirs")).unwrap();
        symlink("loop", path("own/loop")).unwrap();
        symlink("../own/there", path("own/foreign")).unwrap();
        lchown(path("own/foreign"), Some(1), None).unwrap();
        let of = |name: &str| OwnPlace::of(&path(name)).map(|place| place.name.into_string().unwrap());
        for (name, found) in [
            ("own/there", "there"),
            ("own/new", "new"),
            ("link/new", "new"),
            ("own/to-file", "there"),
            ("sticky/own/x", "x"),
        ] {
            assert_eq!(of(name).unwrap(), found, "{name}");
        }
        for (name, why) in [
            ("group/x", "can be written to by the group games"),
            ("open/x", "can be written to by everybody"),
            ("sticky/x", "can be written to by everybody"),
            ("theirs/x", "belongs to daemon"),
            ("theirs/../own/x", "belongs to daemon"),
            ("own/to-theirs", "belongs to daemon"),
            ("own/foreign", "belongs to daemon"),
            ("own/loop", "symbolic links"),
            ("own/none/x", "No such file"),
            ("own", "directory"),
        ] {
            let error = of(name).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
