//! The file with our process id. It stays open for as long as this process runs.

use crate::process::owner::parent_and_uid_of;
use highball_users::{Found, Place, PlaceError, User};
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest text that can be a process id.
const PID_BYTES: u64 = 32;
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// A PID file that is ours; it goes when this is dropped, unless another process has replaced it.
#[derive(Debug)]
pub(crate) struct Pidfile {
    place: Place,
    found: Found,
    /// The file itself.
    file: File,
}

/// Why there can be no PID file.
#[derive(Debug, Error)]
pub(crate) enum PidfileError {
    /// Another Highball has written it, and runs.
    #[error("{path} belongs to a Highball that runs (pid {pid}): stop it first (highball stop), or give another --pidfile")]
    Taken { path: PathBuf, pid: u32 },
    /// Something else stands at the path.
    #[error(
        "cannot write the PID file {path}: {what} is there already; remove it, or give another --pidfile"
    )]
    NoPidfile { path: PathBuf, what: String },
    /// Its folder is none that can be used.
    #[error("cannot write the PID file {path}: {source}; or give another --pidfile")]
    Place { path: PathBuf, source: PlaceError },
    /// It cannot be written.
    #[error("cannot write the PID file {path}: {source}; give another --pidfile")]
    Write { path: PathBuf, source: io::Error },
}

impl Pidfile {
    /// Writes our process id, unless the file names another Highball that runs. A stale one is replaced.
    pub(crate) fn claim(path: &Path) -> Result<Pidfile, PidfileError> {
        let us = std::process::id();
        Pidfile::replace(path, |there| match there.filter(|(pid, file)| *pid != us && runs(*pid, file)) {
            Some((pid, _)) => Err(PidfileError::Taken { path: path.into(), pid }),
            None => Ok(()),
        })
    }

    /// Replaces the process id of the process that we have taken over from by ours.
    pub(crate) fn write(path: &Path) -> Result<Pidfile, PidfileError> {
        Pidfile::replace(path, |_| Ok(()))
    }

    /// Writes it where `judge` allows to replace the process id that is there.
    fn replace(
        path: &Path,
        judge: impl FnOnce(Option<(u32, Found)>) -> Result<(), PidfileError>,
    ) -> Result<Pidfile, PidfileError> {
        let failed = |source| PidfileError::Write { path: path.into(), source };
        let place = Place::open(path).map_err(|source| PidfileError::Place { path: path.into(), source })?;
        // Of two that start at the same time one comes first, and the other finds it.
        let lock = place.lock().map_err(failed)?;
        judge(pid_in(&place)?)?;
        let temporary = place.temporary().map_err(failed)?;
        let write = || {
            let mut file = File::from(temporary.create(0o644)?);
            file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
            Ok((file, temporary.publish()?))
        };
        let (file, found) = write().map_err(failed)?;
        drop(lock);
        Ok(Pidfile { place, found, file })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        let mut text = [0; PID_BYTES as usize];
        let length = self.file.read_at(&mut text, 0).unwrap_or(0);
        // Another program may have written into it.
        if parse(&text[..length]) == Some(std::process::id()) {
            let _ = self.place.remove(&self.found); // if it cannot be removed, the next start replaces it
        }
    }
}

/// The process id that the file of this place names, and the file. Whatever is no PID file stays as it is, and is an error.
fn pid_in(place: &Place) -> Result<Option<(u32, Found)>, PidfileError> {
    let path = || place.path().to_owned();
    let failed = |source| PidfileError::Write { path: path(), source };
    let Some(found) = place.find().map_err(failed)? else { return Ok(None) };
    let other = |what| Err(PidfileError::NoPidfile { path: path(), what });
    if !found.is_regular() {
        return other(found.kind().to_owned());
    }
    if !place.may_replace(&found) {
        return other(format!("a file of {}'s", User::with_uid(found.uid(), 0)));
    }
    let read = || {
        let file = File::options().read(true).custom_flags(NONBLOCK).open(found.address())?;
        let mut text = Vec::new();
        file.take(PID_BYTES + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(failed)?;
    match parse(&text) {
        None if !text.trim_ascii().is_empty() => other("a file that holds something else".to_owned()),
        pid => Ok(pid.map(|pid| (pid, found))),
    }
}

fn parse(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Whether the process with this id is the Highball that has written this file. Since that one ended, the kernel may have given
/// its id to another process, and any user's process can call itself `highball`.
fn runs(pid: u32, file: &Found) -> bool {
    let process = i32::try_from(pid).ok().and_then(parent_and_uid_of);
    let is_highball =
        || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "highball");
    match process {
        None => false,
        Some((_, uid)) if uid == geteuid().as_raw() => has_open(pid, file).unwrap_or_else(|_| is_highball()),
        // What another user's process has open is not looked at: the file system behind it may never answer.
        Some((_, uid)) => uid == file.uid() && is_highball(),
    }
}

/// Whether a process has this file open, as a Highball has its PID file for as long as it runs.
fn has_open(pid: u32, file: &Found) -> io::Result<bool> {
    let id = |file: fs::Metadata| (file.dev(), file.ino());
    let wanted = id(fs::metadata(file.address())?);
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    // A descriptor that was closed meanwhile has no file.
    Ok(open.filter_map(|descriptor| fs::metadata(descriptor.path()).ok()).any(|open| id(open) == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::{Child, Command, Stdio};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_stale_one_is_replaced() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        for stale in ["1\n", ""] {
            fs::write(&path, stale).unwrap(); // lives, but is no Highball
            assert!(Pidfile::claim(&path).is_ok());
        }
    }

    /// A process by the name of `highball`, with this file open or without.
    fn highball(folder: &Path, open: Stdio) -> Child {
        let program = folder.join("highball");
        let _ = symlink("/bin/sleep", &program);
        Command::new(program).arg("100").stdin(open).spawn().unwrap()
    }

    #[test]
    fn one_of_a_process_that_has_it_open_is_taken() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        fs::write(&path, "").unwrap();
        let mut other = highball(folder.path(), File::open(&path).unwrap().into());
        fs::write(&path, other.id().to_string()).unwrap();
        let error = Pidfile::claim(&path).unwrap_err();
        (other.kill(), other.wait()).1.unwrap();
        assert!(matches!(error, PidfileError::Taken { pid, .. } if pid == other.id()), "{error}");
    }

    #[test]
    fn one_of_a_process_id_that_has_become_another_highballs_is_replaced() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        let mut other = highball(folder.path(), Stdio::null());
        fs::write(&path, other.id().to_string()).unwrap();
        let claimed = Pidfile::claim(&path);
        (other.kill(), other.wait()).1.unwrap();
        claimed.unwrap();
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Pidfile::claim(Path::new("/nonexistent/server.pid")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.to_string().contains("server.pid"), "{error}");
    }
}
