//! Where control sockets are, and who may be at the other end of one.
//!
//! The usual places are folders that only their user may enter, with a socket `PID.sock` for each instance. A server that
//! cron or systemd has started may have another environment than a login shell, so commands look in all of them: also in
//! `/run/NAME/highball`, where a service of systemd has its runtime folder. A container that is read-only has a place in
//! `/dev/shm`. Root's commands look in those of other users as well. `HIGHBALL_CONTROL` names a socket, or a folder of them,
//! instead.

use highball_users::{open_folder_to_find, Place, PlaceError, User};
use rustix::fs::{fstat, open, Dir, FileType, Mode, OFlags};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tokio::net::unix::UCred;
use tokio::net::UnixStream;

/// The variable that names a control socket, or a folder of them.
pub(crate) const VARIABLE: &str = "HIGHBALL_CONTROL";

/// The folder of control sockets in a runtime folder.
const FOLDER: &str = "highball";
/// The same where there is no runtime folder, before its user's number: where all users may write, and only the owner may
/// rename or remove. Container engines mount `/dev/shm` writable even in a container that is read-only.
const SHARED: [&str; 2] = ["/tmp/highball-", "/dev/shm/highball-"];
/// Most folders of other users that are looked at.
const MOST_FOLDERS: usize = 128;
/// Most names in a folder that are looked at.
const MOST_NAMES: usize = 4096;
/// Most sockets in another user's folder that are asked: other users decide how many there are.
const MOST_SOCKETS: usize = 8;

/// Where control sockets are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlPlaces {
    /// In these folders, each with the number of the user that it has to belong to. A server uses the first folder that it can;
    /// commands look in all.
    Folders(Vec<(PathBuf, u32)>),
    /// At this path, or, if it is a folder, in it.
    Named(PathBuf),
}

/// A folder of control sockets, which is held.
#[derive(Debug)]
pub(crate) struct ControlFolder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl ControlPlaces {
    /// The places of this user and environment, for a server.
    pub(crate) fn of_server() -> ControlPlaces {
        ControlPlaces::of(geteuid().as_raw(), &variable)
    }

    /// The same for commands, with those of servers that have another environment.
    pub(crate) fn of_commands() -> ControlPlaces {
        let uid = geteuid().as_raw();
        let mut places = ControlPlaces::of(uid, &variable);
        if let (ControlPlaces::Folders(folders), false) = (&mut places, uid == 0) {
            let usual = folders.clone();
            folders.extend(on_this_machine().filter(|found| found.1 == uid && !usual.contains(found)));
        }
        places
    }

    /// The places of other users, where root asks and has not named any. Who may put a folder there decides nothing but what a
    /// server of that user answers: it has to belong to the same user as the folder.
    pub(crate) fn of_others() -> ControlPlaces {
        let most = if is_named() || !geteuid().is_root() { 0 } else { MOST_FOLDERS };
        ControlPlaces::Folders(on_this_machine().filter(|(_, owner)| *owner != 0).take(most).collect())
    }

    /// Whether other users decide what is there.
    pub(crate) fn are_of_others(&self) -> bool {
        let own = geteuid().as_raw();
        matches!(self, ControlPlaces::Folders(folders) if folders.iter().any(|(_, uid)| *uid != own))
    }

    fn of(uid: u32, env: &dyn Fn(&str) -> Option<PathBuf>) -> ControlPlaces {
        if let Some(named) = env(VARIABLE) {
            return ControlPlaces::Named(std::path::absolute(&named).unwrap_or(named));
        }
        let [temporary, memory] = SHARED.map(|start| PathBuf::from(format!("{start}{uid}")));
        let folders = if uid == 0 {
            vec!["/run/highball".into(), memory]
        } else {
            let runtime = env("XDG_RUNTIME_DIR").map(|folder| folder.join(FOLDER));
            runtime.into_iter().chain([temporary, memory]).collect()
        };
        ControlPlaces::Folders(folders.into_iter().map(|folder| (folder, uid)).collect())
    }
}

/// A variable of this process, unless it is empty.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Whether the place is named: then no other is meant.
pub(crate) fn is_named() -> bool {
    variable(VARIABLE).is_some()
}

/// The folders of control sockets on this machine, with their owners: in runtime folders, of users and services, and where all
/// users may write. No link is followed.
fn on_this_machine() -> impl Iterator<Item = (PathBuf, u32)> {
    let runtime = subfolders("/run").chain(subfolders("/run/user")).map(|folder| folder.join(FOLDER));
    let shared = subfolders("/tmp").chain(subfolders("/dev/shm"));
    let folders = runtime.chain(shared.filter(|folder| uid_in_name(folder).is_some()));
    folders.filter_map(|folder| {
        let found = folder.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
        uid_in_name(&folder).is_none_or(|named| named == found.uid()).then(|| (folder, found.uid()))
    })
}

/// The folders in this one.
fn subfolders(folder: &str) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The user in the name of a folder `/tmp/highball-UID` or `/dev/shm/highball-UID`.
fn uid_in_name(folder: &Path) -> Option<u32> {
    let folder = folder.to_str()?;
    SHARED.iter().find_map(|start| folder.strip_prefix(start))?.parse().ok()
}

impl ControlFolder {
    /// Makes the folder where there is none. It has to be ours, and closed to other users.
    pub(crate) fn claim(path: &Path) -> io::Result<ControlFolder> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => ControlFolder::open(path, geteuid().as_raw()),
        }
    }

    /// Opens a folder of this user's that is closed to others. No link is followed to it: another user may have made it.
    pub(crate) fn open(path: &Path, uid: u32) -> io::Result<ControlFolder> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = open(path, flags, Mode::empty())?;
        let found = fstat(&descriptor)?;
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_folder && found.st_uid == uid && found.st_mode & 0o077 == 0 {
            return Ok(ControlFolder { descriptor, path: path.into() });
        }
        let owner = User::with_uid(found.st_uid, 0);
        Err(denied(format!(
            "{} belongs to {owner} (mode {:04o}), and is not a folder of this user's alone (mode 0700): it is not used. Have \
             it removed, or name another place in {VARIABLE}",
            path.display(),
            found.st_mode & 0o7777
        )))
    }

    /// Opens a folder that was named: others may enter it, but not swap what is in it.
    pub(crate) fn open_named(path: &Path) -> io::Result<ControlFolder> {
        let descriptor = open_folder_to_find(path).map_err(in_folder)?;
        // What was found is opened for reading: the same folder, wherever the path leads by now.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&descriptor, c".", flags, Mode::empty())?;
        let folder = ControlFolder { descriptor, path: path.into() };
        let place = folder.place(OsStr::new("any"))?;
        if place.is_safe() || geteuid().is_root() {
            return Ok(folder);
        }
        let owner = User::with_uid(place.folder_uid(), 0);
        Err(denied(format!(
            "{} belongs to {owner}, or others may write to it: {VARIABLE} has to name a folder of this user's",
            path.display()
        )))
    }

    /// The name of an instance's socket in it.
    pub(crate) fn place(&self, name: &OsStr) -> io::Result<Place> {
        Place::within(self.descriptor.try_clone()?, &self.path, name).map_err(in_folder)
    }

    /// The sockets of instances in it: their names. `is_ours`: no other user decides how many there are.
    pub(crate) fn sockets(&self, is_ours: bool) -> io::Result<Vec<Place>> {
        let most = if is_ours { MOST_NAMES } else { MOST_SOCKETS };
        let mut places = Vec::new();
        for entry in Dir::read_from(&self.descriptor)?.take(MOST_NAMES) {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if pid_of(name).is_some() {
                places.push(self.place(name)?);
            }
            if places.len() == most {
                break;
            }
        }
        Ok(places)
    }
}

/// The process whose socket has this name.
pub(crate) fn pid_of(name: &OsStr) -> Option<i32> {
    name.to_str()?.strip_suffix(".sock")?.parse().ok()
}

/// Whether this user may ask a server of the user `uid`, where one of `owner` is meant, or any. Only root asks those of others.
fn may_be_asked(uid: u32, owner: Option<u32>) -> bool {
    let own = geteuid();
    (own.is_root() || uid == own.as_raw()) && owner.is_none_or(|owner| owner == uid)
}

/// Connects to a control socket of `owner`'s, or anybody's, after a look at whose it is, and who listens there.
pub(crate) async fn connect(place: &Place, owner: Option<u32>) -> io::Result<(UnixStream, UCred)> {
    let found = place.find()?.ok_or(io::ErrorKind::NotFound)?;
    let path = place.path().display();
    if !found.is_socket() {
        return Err(denied(format!("{path} is {}, not a control socket", found.kind())));
    }
    if !may_be_asked(found.uid(), owner) {
        let owner = User::with_uid(found.uid(), 0);
        return Err(denied(format!("the control socket {path} belongs to {owner}, and is not used")));
    }
    if !found.is_private() {
        return Err(denied(format!("the control socket {path} is open to other users, and is not used")));
    }
    let connection = UnixStream::connect(found.address()).await?;
    let peer = connection.peer_cred()?;
    if peer.uid() != found.uid() {
        let (owner, other) = (User::with_uid(found.uid(), 0), User::with_uid(peer.uid(), 0));
        return Err(denied(format!("a process of {other} listens on {owner}'s control socket {path}")));
    }
    Ok((connection, peer))
}

/// Whether a process that has connected to our control socket may ask: one of this user, or of root.
pub(crate) fn may_ask(connection: &UnixStream) -> io::Result<()> {
    let uid = connection.peer_cred()?.uid();
    if uid == 0 || uid == geteuid().as_raw() {
        return Ok(());
    }
    Err(denied(format!("a process of {} has asked, and gets no answer", User::with_uid(uid, 0))))
}

fn denied(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// What is wrong with a folder; a missing one keeps its error kind.
pub(crate) fn in_folder(error: PlaceError) -> io::Error {
    let kind = match &error {
        PlaceError::Folder { source, .. } => source.kind(),
        _ => io::ErrorKind::PermissionDenied,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(uid: u32, env: &[(&str, &str)]) -> ControlPlaces {
        let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        ControlPlaces::of(uid, &env)
    }

    fn folders(uid: u32, folders: &[&str]) -> ControlPlaces {
        ControlPlaces::Folders(folders.iter().map(|folder| (folder.into(), uid)).collect())
    }

    #[test]
    fn a_server_uses_its_runtime_folder_else_one_in_a_shared_place() {
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        let shared = ["/tmp/highball-7", "/dev/shm/highball-7"];
        assert_eq!(places(7, &[runtime]), folders(7, &["/run/user/7/highball", shared[0], shared[1]]));
        assert_eq!(places(7, &[]), folders(7, &shared));
        assert_eq!(places(0, &[runtime]), folders(0, &["/run/highball", "/dev/shm/highball-0"]));
        let uids =
            ["/dev/shm/highball-7", "/tmp/highball-7", "/tmp/highball-", "/tmp/other-7"].map(Path::new);
        assert_eq!(uids.map(uid_in_name), [Some(7), Some(7), None, None]);
    }

    #[test]
    fn one_that_is_named_is_the_only_one() {
        let named = [("HIGHBALL_CONTROL", "/run/blog/control"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        for uid in [0, 7] {
            assert_eq!(places(uid, &named), ControlPlaces::Named("/run/blog/control".into()));
        }
    }

    #[test]
    fn sockets_are_known_by_their_names() {
        assert_eq!(pid_of(OsStr::new("42.sock")), Some(42));
        for other in ["42", "x.sock", ".highball-42.sock", ".42.sock.lock", "42.sock.sock"] {
            assert_eq!(pid_of(OsStr::new(other)), None, "{other}");
        }
    }
}
