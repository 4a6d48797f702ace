//! The authority for development, in files of the user who starts Highball: made once, with a key that only this user may read.
//! Its folder gets its name when both files are complete. So a process that is killed leaves no half of a pair behind, and of
//! two processes that make it at the same time, the second takes what the first has made.

use highball_front::{Authority, AuthorityError, AuthorityFiles, Delegate};
use highball_users::trust::why_not_roots;
use highball_users::User;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tracing::info;
use zeroize::Zeroizing;

/// In the folder that is the user's for programs' data.
const FOLDER: &str = "highball";
/// In that, the folder of the authority.
const NAME: &str = "authority";
/// The end of its name before it is complete.
const NEW: &str = ".new";
const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";
/// What it is called among other authorities that programs trust.
const NICKNAME: &str = "highball-development";
/// The largest file.
const MOST_BYTES: u64 = 1 << 16;
const PRIVATE: u32 = 0o077;
const WRITABLE_BY_OTHERS: u32 = 0o022;

const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where a Linux keeps the authorities that its programs trust, and the command that tells them.
const SYSTEMS: [(&str, &str, &str); 2] = [
    ("/etc/pki/ca-trust/source/anchors", "pem", "update-ca-trust"),
    ("/usr/local/share/ca-certificates", "crt", "update-ca-certificates"),
];

/// What a server issues certificates with in development.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Local {
    pub(crate) delegate: Delegate,
    /// The authority's certificate, which clients have to trust.
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    /// Whether the authority was made for this start.
    is_new: bool,
}

/// Why there are no certificates for development: what, at which step, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    #[error("the authority for development has no place: neither XDG_DATA_HOME nor HOME is an absolute path; set one of them")]
    NoHome,
    #[error(
        "the authority for development cannot be kept in {}: {why}, and Highball runs as root. Set XDG_DATA_HOME to a folder of \
         root's, or start Highball as your user", .folder.display()
    )]
    NotRoots { folder: PathBuf, why: String },
    #[error(
        "the authority for development cannot be kept in {}: {error}. Make this folder yours alone (chmod 700), or set \
         XDG_DATA_HOME to another one", .folder.display()
    )]
    Folder { folder: PathBuf, error: io::Error },
    #[error(
        "the authority for development in {} cannot be used: {error}. Remove it (rm -r {0}): the next start makes a new one, \
         which clients have to trust again", .folder.display()
    )]
    Unusable { folder: PathBuf, error: io::Error },
    #[error(
        "the authority for development in {} cannot be used: {error}. Remove it (rm -r {0}): the next start makes a new one, \
         which clients have to trust again", .folder.display()
    )]
    Wrong { folder: PathBuf, error: AuthorityError },
}

/// The authority of this user, or a new one if there is none yet.
///
/// # Errors
/// It cannot be used, or kept.
pub(crate) fn load() -> Result<Local, LocalError> {
    let folder = folder()?;
    let (files, is_new) = kept(&folder)?;
    local(&folder, &files, is_new)
}

/// The file that clients trust, if the authority was made already.
///
/// # Errors
/// It cannot be used.
pub(crate) fn find() -> Result<Option<PathBuf>, LocalError> {
    let folder = folder()?;
    let within = |error: Errno| LocalError::Folder { folder: folder.clone(), error: error.into() };
    let opened = match fs::open(&folder, FOLDER_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened.map_err(within)?,
    };
    let Some(files) = read(&folder, opened.as_fd())? else { return Ok(None) };
    local(&folder, &files, false).map(|local| Some(local.file))
}

fn local(folder: &Path, files: &AuthorityFiles, is_new: bool) -> Result<Local, LocalError> {
    let folder = folder.join(NAME);
    let file = folder.join(CERTIFICATE);
    let authority = Authority::read(files.certificate.as_bytes(), files.key.as_bytes());
    let delegate = authority.and_then(|authority| authority.delegate(file.clone()));
    let delegate = delegate.map_err(|error| LocalError::Wrong { folder, error })?;
    Ok(Local { delegate, file, is_new })
}

/// Below the user's home. For root, it is the home of the user root: HOME may be another user's, who could have root write elsewhere.
fn folder() -> Result<PathBuf, LocalError> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(absolute);
    let is_root = geteuid().is_root();
    let home = if is_root { Some(User::with_uid(0, 0).home).filter(absolute) } else { variable("HOME") };
    let data = variable("XDG_DATA_HOME").or_else(|| Some(home?.join(".local/share")));
    let folder = data.ok_or(LocalError::NoHome)?.join(FOLDER);
    if is_root {
        belongs_to_root(&folder)?;
    }
    Ok(folder)
}

/// Makes sure that no other user decides where this path leads.
fn belongs_to_root(folder: &Path) -> Result<(), LocalError> {
    // Of what is not there yet, root makes the rest.
    let there = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(folder);
    let why = why_not_roots(there);
    why.map_or(Ok(()), |why| Err(LocalError::NotRoots { folder: folder.into(), why }))
}

/// The files in this folder, which are made if they are missing. Whether they are new.
fn kept(folder: &Path) -> Result<(AuthorityFiles, bool), LocalError> {
    let within = |error| LocalError::Folder { folder: folder.into(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(within)?;
    let opened = fs::open(folder, FOLDER_FLAGS, Mode::empty()).map_err(|error| within(error.into()))?;
    is_ours(opened.as_fd(), WRITABLE_BY_OTHERS).map_err(within)?;
    if let Some(files) = read(folder, opened.as_fd())? {
        return Ok((files, false));
    }
    let files = Authority::create();
    let files = files.map_err(|error| LocalError::Wrong { folder: folder.join(NAME), error })?;
    match publish(opened.as_fd(), &files) {
        Ok(()) => Ok((files, true)),
        // Another process has been faster.
        Err(error) => match read(folder, opened.as_fd())? {
            Some(files) => Ok((files, false)),
            None => Err(within(error)),
        },
    }
}

fn is_ours(folder: BorrowedFd<'_>, forbidden: u32) -> io::Result<()> {
    let about = fs::fstat(folder)?;
    if about.st_uid != geteuid().as_raw() || about.st_mode & forbidden != 0 {
        return Err(io::Error::other("it is another user's, or open to others"));
    }
    Ok(())
}

/// The files of the authority; `None`: there is none yet.
fn read(folder: &Path, opened: BorrowedFd<'_>) -> Result<Option<AuthorityFiles>, LocalError> {
    let read = || -> io::Result<Option<AuthorityFiles>> {
        let place = match fs::openat(opened, NAME, FOLDER_FLAGS, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            place => place?,
        };
        is_ours(place.as_fd(), PRIVATE)?;
        let certificate = read_file(place.as_fd(), CERTIFICATE, WRITABLE_BY_OTHERS)?.to_string();
        Ok(Some(AuthorityFiles { certificate, key: read_file(place.as_fd(), KEY, PRIVATE)? }))
    };
    read().map_err(|error| LocalError::Unusable { folder: folder.join(NAME), error })
}

fn read_file(folder: BorrowedFd<'_>, name: &str, forbidden: u32) -> io::Result<Zeroizing<String>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
    let read = || -> io::Result<Zeroizing<String>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(folder, name, flags, Mode::empty())?);
        let about = file.metadata()?;
        if !about.is_file() || about.uid() != geteuid().as_raw() || about.mode() & forbidden != 0 {
            return Err(io::Error::other("it is not a file of this user's, or open to others"));
        }
        // With room for all of it at once: no copy of a key is left behind by growing.
        let mut text = Zeroizing::new(String::with_capacity(MOST_BYTES as usize));
        file.take(MOST_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(named)
}

/// Writes the files, and gives them their place, unless others have it.
fn publish(folder: BorrowedFd<'_>, files: &AuthorityFiles) -> io::Result<()> {
    let name = OsString::from(format!("{NAME}.{:016x}{NEW}", random()?));
    fs::mkdirat(folder, &name, Mode::RWXU)?;
    let write = || -> io::Result<()> {
        let place = fs::openat(folder, &name, FOLDER_FLAGS, Mode::empty())?;
        write_file(&place, KEY, 0o600, &files.key)?;
        write_file(&place, CERTIFICATE, 0o644, &files.certificate)?;
        fs::fsync(&place)?;
        // A folder with files is never replaced.
        fs::renameat(folder, &name, folder, NAME)?;
        Ok(fs::fsync(folder)?)
    };
    let written = write();
    match &written {
        Ok(()) => remove_unfinished(folder),
        Err(_) => remove(folder, &name),
    }
    written
}

fn write_file(folder: &OwnedFd, name: &str, mode: u32, text: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(fs::openat(folder, name, flags, Mode::from_raw_mode(mode))?);
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Removes what killed processes have left. A process that is about to finish finds that there is an authority.
fn remove_unfinished(folder: BorrowedFd<'_>) {
    let Ok(entries) = fs::Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy();
        if name.starts_with(NAME) && name.ends_with(NEW) {
            remove(folder, &OsString::from(&*name));
        }
    }
}

fn remove(folder: BorrowedFd<'_>, name: &OsString) {
    if let Ok(place) = fs::openat(folder, name, FOLDER_FLAGS, Mode::empty()) {
        for file in [KEY, CERTIFICATE] {
            let _ = fs::unlinkat(&place, file, AtFlags::empty()); // it may not have got that far
        }
        let _ = fs::unlinkat(folder, name, AtFlags::REMOVEDIR); // what is in use by another stays
    }
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

impl Local {
    /// Logs which authority clients have to trust, and the first time, how.
    pub(crate) fn report(&self) {
        let file = self.file.display();
        if !self.is_new {
            return info!(
                name: "local_authority_untrusted", %file, "local certificate authority for localhost; browsers must trust it once"
            );
        }
        info!(name: "local_authority_created", %file, "created a local certificate authority for localhost");
        for (whom, command) in how_to_trust(&self.file) {
            info!(name: "local_authority_command", command, "to let {whom} trust it, run this command");
        }
        let [_, undo] = of_system(&self.file);
        info!(
            name: "local_authority_removal",
            "to remove it: {undo}; certutil -d sql:$HOME/.pki/nssdb -D -n {NICKNAME}; rm -r {}",
            self.file.parent().unwrap_or(&self.file).display()
        );
    }
}

/// Commands that have programs trust this file.
fn how_to_trust(file: &Path) -> [(&'static str, String); 4] {
    let [of_system, _] = of_system(file);
    let file = file.display();
    let nss = format!("-A -t C,, -n {NICKNAME} -i {file}");
    [
        ("this system's programs", of_system),
        (
            "Chromium and Chrome",
            format!("certutil -d sql:$HOME/.pki/nssdb {nss} (Debian: apt install libnss3-tools)"),
        ),
        (
            "Firefox",
            format!("import it in Settings, Certificates, Authorities; or certutil -d PROFILE {nss}"),
        ),
        ("curl", format!("curl --cacert {file} https://localhost:3000/")),
    ]
}

/// The commands that have this system's programs trust the file, and no longer.
fn of_system(file: &Path) -> [String; 2] {
    let there = SYSTEMS.iter().find(|(folder, ..)| Path::new(folder).is_dir());
    let (folder, end, update) = there.unwrap_or(&SYSTEMS[1]);
    let installed = format!("{folder}/{NICKNAME}.{end}");
    let file = file.display();
    [
        format!("sudo cp {file} {installed} && sudo {update}"),
        format!("sudo rm -f {installed} && sudo {update}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{read_dir, set_permissions, write};
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn names(folder: &Path) -> Vec<String> {
        let names = read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_has_left_goes() {
        let outer = tempfile::tempdir().unwrap();
        let left = outer.path().join(format!("{NAME}.0{NEW}"));
        set_permissions(outer.path(), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::create_dir(&left).unwrap();
        write(left.join(KEY), "half a k").unwrap();
        kept(outer.path()).unwrap();
        assert_eq!(names(outer.path()), [NAME]);
    }

    #[test]
    fn what_others_may_read_or_have_put_there_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        kept(&folder).unwrap();
        let (place, key) = (folder.join(NAME), folder.join(NAME).join(KEY));
        for (path, bad, good) in [(&key, 0o640, 0o600), (&place, 0o750, 0o700), (&folder, 0o777, 0o700)] {
            set_permissions(path, PermissionsExt::from_mode(bad)).unwrap();
            assert!(kept(&folder).is_err(), "{} with {bad:o}", path.display());
            set_permissions(path, PermissionsExt::from_mode(good)).unwrap();
        }
        let elsewhere = outer.path().join("elsewhere");
        std::fs::rename(&key, &elsewhere).unwrap();
        symlink(&elsewhere, &key).unwrap();
        assert!(kept(&folder).is_err(), "a link for the key");
        std::fs::remove_dir_all(&place).unwrap();
        symlink(outer.path(), &place).unwrap();
        assert!(kept(&folder).is_err(), "a link for the folder");
        std::fs::remove_file(&place).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        std::fs::create_dir(outer.path().join("other")).unwrap();
        symlink("other", &folder).unwrap();
        assert!(kept(&folder).is_err(), "a link for the folder around it");
        assert!(names(&outer.path().join("other")).is_empty());
    }
}
