//! Users of this machine, and acting as one of them where Highball runs as root.
//!
//! In reading order:
//!
//! - this file: who there is, as the system's databases say (`/etc/passwd` and what stands beside it, see
//!   nsswitch.conf(5));
//! - `command`: a process that becomes another user;
//! - `own_place`: paths that lead to where no other user can put anything;
//! - `rights`: files that are opened with another user's rights, and what is out of such a user's reach;
//! - [`trust`]: who could have put a file where it is;
//! - `place`: sockets and PID files, made and removed so that no other user can have root touch anything else.

mod command;
mod own_place;
mod place;
mod rights;
pub mod trust;

pub use command::{become_user, without_new_privileges};
pub use own_place::{NotOwn, OwnPlace};
pub use place::{open_folder_to_find, Found, Place, PlaceError, PlaceLock, Temporary};
pub use rights::{barrier, with_rights_of, OutOfReach};

use rustix::process::geteuid;
use rustix::thread::{capabilities, CapabilitySet};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use uzers::os::unix::UserExt;

/// Home folder and shell of a user of whom the system knows only a number.
const HOME_OF_UNKNOWN: &str = "/";
const SHELL_OF_UNKNOWN: &str = "/bin/sh";

/// A user, as a login would have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The login name; the number, where there is none.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the primary group.
    pub gid: u32,
    /// The numbers of all groups, the primary one among them.
    pub groups: Vec<u32>,
    /// The home folder.
    #[serde(with = "highball_text::exact")]
    pub home: PathBuf,
    /// The login shell.
    #[serde(with = "highball_text::exact")]
    pub shell: PathBuf,
}

impl User {
    /// The user who is called so, or who has this number; `None` if there is none.
    pub fn of(text: &str) -> Option<User> {
        if text.contains('\0') {
            return None;
        }
        let by_number = || uzers::get_user_by_uid(text.parse().ok()?);
        uzers::get_user_by_name(text).or_else(by_number).map(|found| User::known(&found))
    }

    /// The user with this number, and `gid` for a group where the system knows no such user: files may belong to
    /// a user of another machine, or of the one around a container.
    pub fn with_uid(uid: u32, gid: u32) -> User {
        uzers::get_user_by_uid(uid).map_or_else(
            || User {
                name: uid.to_string(),
                uid,
                gid,
                groups: vec![gid],
                home: HOME_OF_UNKNOWN.into(),
                shell: SHELL_OF_UNKNOWN.into(),
            },
            |found| User::known(&found),
        )
    }

    fn known(found: &uzers::User) -> User {
        let gid = found.primary_group_id();
        let mut groups: Vec<u32> = found.groups().unwrap_or_default().iter().map(uzers::Group::gid).collect();
        if !groups.contains(&gid) {
            groups.insert(0, gid); // one without a name
        }
        User {
            name: found.name().to_string_lossy().into_owned(),
            uid: found.uid(),
            gid,
            groups,
            home: or(found.home_dir().as_os_str(), HOME_OF_UNKNOWN),
            shell: or(found.shell().as_os_str(), SHELL_OF_UNKNOWN),
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn or(path: &OsStr, otherwise: &str) -> PathBuf {
    if path.as_bytes().is_empty() {
        otherwise.into()
    } else {
        path.into()
    }
}

/// The name of the user with this number, where the system knows one.
pub fn name_of(uid: u32) -> Option<String> {
    uzers::get_user_by_uid(uid).map(|user| user.name().to_string_lossy().into_owned())
}

/// Whether this process may start others as any user: root may, but for root without the capabilities for it, as some
/// containers have it.
pub fn may_change_users() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    geteuid().is_root() && capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let root = User::of("root").unwrap();
        assert_eq!((root.uid, root.gid, root.name.as_str()), (0, 0, "root"));
        assert!(root.groups.contains(&0));
        assert_eq!(User::of("0"), Some(root));
        for unknown in ["", "no such user", "ro\0ot", "-1", "4000000000"] {
            assert_eq!(User::of(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn one_of_another_machine_has_a_number_and_a_group() {
        let user = User::with_uid(4_000_000_000, 7);
        assert_eq!((user.name.as_str(), user.gid, user.groups), ("4000000000", 7, vec![7]));
        assert_eq!(User::with_uid(0, 7).name, "root");
    }
}
