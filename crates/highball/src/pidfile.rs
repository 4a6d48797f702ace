//! The file with our process id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A PID file that is ours; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Pidfile {
    path: PathBuf,
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
    /// It cannot be written.
    #[error("cannot write the PID file {path}: {source}; create its folder, or give another --pidfile")]
    Write {
        /// The PID file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Pidfile {
    /// Writes our process id, unless the file names another Highball that runs. A stale one is replaced.
    pub(crate) fn claim(path: &Path) -> Result<Pidfile, PidfileError> {
        let us = std::process::id();
        if let Some(pid) = read(path).filter(|pid| *pid != us && is_highball(*pid)) {
            return Err(PidfileError::Taken { path: path.into(), pid });
        }
        Pidfile::write(path)
    }

    /// Writes our process id, whoever stands there: the one that we have taken over from.
    pub(crate) fn write(path: &Path) -> Result<Pidfile, PidfileError> {
        let us = std::process::id();
        // Written beside it and renamed, so that nobody reads half of it.
        let beside = path.with_extension(format!("{us}.new"));
        fs::write(&beside, format!("{us}\n"))
            .and_then(|()| fs::rename(&beside, path))
            .map_err(|source| PidfileError::Write { path: path.into(), source })?;
        Ok(Pidfile { path: path.into() })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        if read(&self.path) == Some(std::process::id()) {
            let _ = fs::remove_file(&self.path); // if it cannot be removed, the next start replaces it
        }
    }
}

fn read(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_highball(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "highball")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn it_is_written_and_goes_again() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        let pidfile = Pidfile::claim(&path).unwrap();
        assert_eq!(read(&path), Some(std::process::id()));
        drop(pidfile);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_one_is_replaced() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        fs::write(&path, "1\n").unwrap(); // lives, but is no Highball
        assert!(Pidfile::claim(&path).is_ok());
    }

    #[test]
    fn one_that_somebody_else_has_taken_over_stays() {
        let folder = folder();
        let path = folder.path().join("server.pid");
        let pidfile = Pidfile::claim(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(pidfile);
        assert!(path.exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Pidfile::claim(Path::new("/nonexistent/server.pid")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/server.pid"));
    }
}
