//! The file with our process id.

use highball_users::{Found, Place, PlaceError, User};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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
    Taken {
        /// The PID file.
        path: PathBuf,
        /// The one that runs.
        pid: u32,
    },
    /// Something else stands at the path.
    #[error(
        "cannot write the PID file {path}: {what} is there already; remove it, or give another --pidfile"
    )]
    NoPidfile {
        /// The PID file.
        path: PathBuf,
        /// What stands there.
        what: String,
    },
    /// Its folder is none that can be used.
    #[error("cannot write the PID file {path}: {source}; or give another --pidfile")]
    Place {
        /// The PID file.
        path: PathBuf,
        /// What is wrong with it.
        source: PlaceError,
    },
    /// It cannot be written.
    #[error("cannot write the PID file {path}: {source}; give another --pidfile")]
    Write {
        /// The PID file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Pidfile {
    /// Writes our process id, unless the file names another Highball that runs. A stale one is replaced.
    pub(crate) fn claim(path: &Path) -> Result<Pidfile, PidfileError> {
        let us = std::process::id();
        Pidfile::replace(path, |there| match there.filter(|pid| *pid != us && is_highball(*pid)) {
            Some(pid) => Err(PidfileError::Taken { path: path.into(), pid }),
            None => Ok(()),
        })
    }

    /// Writes our process id over that of the process that we have taken over from.
    pub(crate) fn write(path: &Path) -> Result<Pidfile, PidfileError> {
        Pidfile::replace(path, |_| Ok(()))
    }

    /// Writes it where `judge` allows to replace the process id that is there.
    fn replace(
        path: &Path,
        judge: impl FnOnce(Option<u32>) -> Result<(), PidfileError>,
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

/// The process id that the file of this place names. Whatever is no PID file stays as it is, and is an error.
fn pid_in(place: &Place) -> Result<Option<u32>, PidfileError> {
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
        pid => Ok(pid),
    }
}

fn parse(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn is_highball(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "highball")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn pid_at(path: &Path) -> Option<u32> {
        parse(&fs::read(path).unwrap())
    }

    #[test]
    fn it_is_written_and_goes_again() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        let pidfile = Pidfile::claim(&path).unwrap();
        assert_eq!(pid_at(&path), Some(std::process::id()));
        drop(pidfile);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
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

    #[test]
    fn one_that_another_process_has_taken_over_stays() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        let pidfile = Pidfile::claim(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(pidfile);
        assert!(path.exists());
        let pidfile = Pidfile::claim(&path).unwrap();
        let other = Pidfile::write(&path).unwrap();
        drop(pidfile);
        assert!(path.exists(), "the same process id, but another file");
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_pid_file_is_not_overwritten() {
        let folder = folder();
        let (path, text) = (folder.path().join("server.pid"), folder.path().join("text"));
        fs::write(&text, "not a number").unwrap();
        symlink(&text, &path).unwrap();
        for (what, next) in [("a symbolic link", "link"), ("something else", "text")] {
            let error = Pidfile::claim(&path).unwrap_err().to_string();
            assert!(error.contains(what), "{next}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "not a number");
            fs::rename(&text, &path).unwrap_or_default();
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Pidfile::claim(Path::new("/nonexistent/server.pid")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.to_string().contains("server.pid"), "{error}");
    }
}
