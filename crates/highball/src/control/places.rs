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
use tokio::net::UnixStream;

/// The variable that names a control socket, or a folder of them.
pub(crate) const VARIABLE: &str = "HIGHBALL_CONTROL";

/// The folder of control sockets in a runtime folder.
const FOLDER: &str = "highball";
/// The same where there is no runtime folder, before its user's number: where all users may write, and only the owner may
/// rename or remove. Container engines mount `/dev/shm` writable even in a container that is read-only.
const SHARED: [&str; 2] = ["/tmp/highball-", "/dev/shm/highball-"];
/// Folders of other users that are looked at,
const MOST_FOLDERS: usize = 128;
/// names in a folder,
const MOST_NAMES: usize = 4096;
/// and sockets in one of another user's: other users decide how many there are.
const MOST_SOCKETS: usize = 8;

/// Where the control sockets of this user are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlPlaces {
    /// In these folders. A server uses the first one that it can; commands look in all.
    Usual(Vec<PathBuf>),
    /// In these folders of other users, each with its user's number.
    OfOthers(Vec<(PathBuf, u32)>),
    /// At this path, or, if it is a folder, in it.
    Named(PathBuf),
}

/// Whose instance may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This user's.
    Ours,
    /// That of another user with this number: root asks.
    Users(u32),
    /// That which was named: this user's, or, where root asks, any user's.
    Named,
}

impl Whose {
    fn includes(self, uid: u32) -> bool {
        let own = geteuid();
        match self {
            Whose::Ours => uid == own.as_raw(),
            Whose::Users(other) => own.is_root() && uid == other,
            Whose::Named => own.is_root() || uid == own.as_raw(),
        }
    }
}

/// A folder of control sockets, which is held.
#[derive(Debug)]
pub(crate) struct ControlFolder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its process id; none where it is not visible from here.
    pub(crate) pid: Option<i32>,
    /// Its user.
    pub(crate) uid: u32,
}

impl ControlPlaces {
    /// Those of this user and environment, for a server.
    pub(crate) fn of_server() -> ControlPlaces {
        ControlPlaces::of(geteuid().as_raw(), &|name| std::env::var_os(name).map(PathBuf::from), &[])
    }

    /// Those of this user and environment, for a command: also where a server has them that has another environment.
    pub(crate) fn of_commands() -> ControlPlaces {
        let uid = geteuid().as_raw();
        let mut others = vec![PathBuf::from(format!("/run/user/{uid}"))];
        others.extend(subfolders("/run").filter(|folder| owner_of(&folder.join(FOLDER)) == Some(uid)));
        ControlPlaces::of(uid, &|name| std::env::var_os(name).map(PathBuf::from), &others)
    }

    /// Those of other users, where root asks and has not named any. Who may put a folder there decides nothing but what a
    /// server of that user answers: it has to belong to the same user as the folder.
    pub(crate) fn of_others() -> ControlPlaces {
        let is_named = std::env::var_os(VARIABLE).is_some_and(|named| !named.is_empty());
        if is_named || !geteuid().is_root() {
            return ControlPlaces::OfOthers(Vec::new());
        }
        let of_services = subfolders("/run").chain(subfolders("/run/user")).map(|folder| folder.join(FOLDER));
        let shared = subfolders("/tmp").chain(subfolders("/dev/shm"));
        let others =
            of_services.chain(shared.filter(|folder| uid_in_name(folder).is_some())).filter_map(|folder| {
                let uid = owner_of(&folder).filter(|uid| *uid != 0)?;
                uid_in_name(&folder).is_none_or(|named| named == uid).then_some((folder, uid))
            });
        ControlPlaces::OfOthers(others.take(MOST_FOLDERS).collect())
    }

    fn of(uid: u32, env: &dyn Fn(&str) -> Option<PathBuf>, others: &[PathBuf]) -> ControlPlaces {
        let set = |name| env(name).filter(|path| !path.as_os_str().is_empty());
        if let Some(named) = set(VARIABLE) {
            return ControlPlaces::Named(std::path::absolute(&named).unwrap_or(named));
        }
        let [temporary, memory] = SHARED.map(|start| PathBuf::from(format!("{start}{uid}")));
        if uid == 0 {
            return ControlPlaces::Usual(vec!["/run/highball".into(), memory]);
        }
        let runtime = set("XDG_RUNTIME_DIR").into_iter().chain(others.iter().cloned());
        let mut folders: Vec<PathBuf> = runtime.map(|folder| folder.join(FOLDER)).collect();
        folders.extend([temporary, memory]);
        let mut seen = std::collections::BTreeSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        ControlPlaces::Usual(folders)
    }
}

/// The folders in this one.
fn subfolders(folder: &str) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whose folder this is; no link is followed.
fn owner_of(folder: &Path) -> Option<u32> {
    let found = folder.symlink_metadata().ok()?;
    found.is_dir().then(|| found.uid())
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
            _ => ControlFolder::open(path),
        }
    }

    /// Opens a folder that is ours, and closed to other users. No link is followed to it: another user may have made
    /// it.
    pub(crate) fn open(path: &Path) -> io::Result<ControlFolder> {
        ControlFolder::open_of(path, geteuid().as_raw())
    }

    /// The same for a folder that has to be this user's.
    pub(crate) fn open_of(path: &Path, uid: u32) -> io::Result<ControlFolder> {
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

    /// The sockets of instances in it: their names.
    pub(crate) fn sockets(&self, whose: Whose) -> io::Result<Vec<Place>> {
        let most = if let Whose::Users(_) = whose { MOST_SOCKETS } else { MOST_NAMES };
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

/// Connects to a control socket, after a look at whose it is, and who listens there.
pub(crate) async fn connect(place: &Place, whose: Whose) -> io::Result<(UnixStream, Peer)> {
    let found = place.find()?.ok_or(io::ErrorKind::NotFound)?;
    let path = place.path().display();
    if !found.is_socket() {
        return Err(denied(format!("{path} is {}, not a control socket", found.kind())));
    }
    if !whose.includes(found.uid()) {
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
    Ok((connection, Peer { pid: peer.pid().filter(|pid| *pid > 0), uid: peer.uid() }))
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
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn places(uid: u32, env: &[(&str, &str)], others: &[&str]) -> ControlPlaces {
        let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let others: Vec<PathBuf> = others.iter().map(PathBuf::from).collect();
        ControlPlaces::of(uid, &env, &others)
    }

    fn usual(folders: &[&str]) -> ControlPlaces {
        ControlPlaces::Usual(folders.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn a_server_without_a_session_is_looked_for_from_one_and_the_other_way_round() {
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        let shared = ["/tmp/highball-7", "/dev/shm/highball-7"];
        let in_session = ["/run/user/7/highball", shared[0], shared[1]];
        assert_eq!(places(7, &[runtime], &[]), usual(&in_session));
        assert_eq!(places(7, &[], &["/run/user/7"]), usual(&in_session));
        assert_eq!(places(7, &[("XDG_RUNTIME_DIR", "")], &[]), usual(&shared));
        assert_eq!(places(7, &[runtime], &["/run/user/7"]), places(7, &[runtime], &[]), "each place once");
        let of_root = ["/run/highball", "/dev/shm/highball-0"];
        assert_eq!(places(0, &[runtime], &["/run/user/0"]), usual(&of_root));
        let uids =
            ["/dev/shm/highball-7", "/tmp/highball-7", "/tmp/highball-", "/tmp/other-7"].map(Path::new);
        assert_eq!(uids.map(uid_in_name), [Some(7), Some(7), None, None]);
    }

    #[test]
    fn one_that_is_named_is_the_only_one() {
        let named = [("HIGHBALL_CONTROL", "/run/blog/control"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        for uid in [0, 7] {
            assert_eq!(places(uid, &named, &[]), ControlPlaces::Named("/run/blog/control".into()));
        }
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        ControlFolder::claim(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let error = ControlFolder::claim(&folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("mode 0755"), "{error}");
    }

    #[test]
    fn a_link_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        symlink("/tmp", &folder).unwrap();
        assert!(ControlFolder::claim(&folder).is_err());
    }

    #[test]
    fn sockets_are_known_by_their_names() {
        assert_eq!(pid_of(OsStr::new("42.sock")), Some(42));
        for other in ["42", "x.sock", ".highball-42.sock", ".42.sock.lock", "42.sock.sock"] {
            assert_eq!(pid_of(OsStr::new(other)), None, "{other}");
        }
    }
}
