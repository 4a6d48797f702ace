//! The secret by which a developer's browser is known, in a file that only its user may read: a browser that has opened
//! the link once is still known after restarts.

use highball_front::developer_key::{DeveloperKey, SECRET_BYTES};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{geteuid, getpid};
use rustix::rand::{getrandom, GetRandomFlags};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tracing::warn;

const NAME: &str = "developer-key";

/// The key of this user, from its file; a new one, if there is none yet. Where none can be kept, one for this process.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn load() -> io::Result<DeveloperKey> {
    match secret() {
        Ok(secret) => Ok(DeveloperKey::new(secret)),
        Err(error) => {
            let folder = folder().display().to_string();
            warn!(
                name: "developer_key_not_stored",
                folder, %error, "cannot store the key for developers' browsers: their link changes with each start"
            );
            temporary()
        }
    }
}

/// The secret of this user, from its file; a new one, if there is none yet.
///
/// # Errors
/// It cannot be kept, or the system has no random bytes.
pub(crate) fn secret() -> io::Result<[u8; SECRET_BYTES]> {
    kept(&folder(), &random()?)
}

/// A key for this process alone, where none that lasts is needed.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn temporary() -> io::Result<DeveloperKey> {
    Ok(DeveloperKey::new(random()?))
}

fn random() -> io::Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    let filled = getrandom(&mut secret, GetRandomFlags::empty())?;
    if filled == SECRET_BYTES {
        Ok(secret)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into()) // random(4): not for so few bytes
    }
}

/// Below the user's home. Not for root: HOME may be another user's, who could have root write elsewhere.
fn folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = || variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    match state().filter(|_| !geteuid().is_root()) {
        Some(state) => state.join("highball"),
        None if geteuid().is_root() => "/run/highball".into(),
        None => format!("/tmp/highball-{}", geteuid().as_raw()).into(),
    }
}

/// The secret in this folder: the existing one, else `fresh` from now on.
fn kept(folder: &Path, fresh: &[u8; SECRET_BYTES]) -> io::Result<[u8; SECRET_BYTES]> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = fs::open(folder, flags, Mode::empty())?;
    let about = fs::fstat(&folder)?;
    if about.st_uid != geteuid().as_raw() || about.st_mode & 0o022 != 0 {
        return Err(io::Error::other("the folder is another user's, or others may write to it"));
    }
    if let Some(secret) = read(&folder)? {
        return Ok(secret);
    }
    let new = format!("{NAME}.{}.new", getpid().as_raw_nonzero());
    let _ = fs::unlinkat(&folder, &new, AtFlags::empty()); // of a process with our id that was killed
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(&folder, &new, flags, Mode::RUSR | Mode::WUSR)?;
    let written = File::from(file).write_all(fresh);
    // Another process may do the same at this moment: both then have the key of the first.
    let named = written.map(|()| fs::linkat(&folder, &new, &folder, NAME, AtFlags::empty()));
    fs::unlinkat(&folder, &new, AtFlags::empty())?;
    match named? {
        Ok(()) => Ok(*fresh),
        Err(Errno::EXIST) => read(&folder)?.ok_or_else(|| io::Error::other("the key was removed meanwhile")),
        Err(error) => Err(error.into()),
    }
}

/// The secret in the file; `None`: there is no file yet.
fn read(folder: &OwnedFd) -> io::Result<Option<[u8; SECRET_BYTES]>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match fs::openat(folder, NAME, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    let is_ours = about.is_file() && about.uid() == geteuid().as_raw() && about.mode() & 0o077 == 0;
    if !is_ours || about.len() != SECRET_BYTES as u64 {
        let why =
            format!("{NAME} is not a file of {SECRET_BYTES} bytes that only this user may read; remove it");
        return Err(io::Error::other(why));
    }
    let mut secret = [0; SECRET_BYTES];
    file.read_exact(&mut secret)?;
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_stays_the_same_and_is_private() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("state/highball");
        assert_eq!(kept(&folder, &[1; 32]).unwrap(), [1; 32]);
        assert_eq!(kept(&folder, &[2; 32]).unwrap(), [1; 32]);
        let names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [NAME]);
        assert_eq!(folder.join(NAME).metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_others_may_read_or_have_put_there_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join(NAME);
        let refused = || kept(folder.path(), &[1; 32]).is_err();
        std::fs::write(&key, [7; 32]).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(refused(), "readable for others");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&key, [7; 5]).unwrap();
        assert!(refused(), "too short");
        std::fs::remove_file(&key).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &key).unwrap();
        assert!(refused(), "a link");
        std::fs::remove_file(&key).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refused(), "a folder that others may write to");
    }
}
