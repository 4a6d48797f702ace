//! Installs Debian packages that schemes need, so that nothing they bring starts by itself.

use crate::Failure;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Asked by packages whether their services may start.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// No: 101 is "action forbidden by policy".
const FORBID: &str = "#!/bin/sh\nexit 101\n";
/// What was there before, for the time of an installation.
const SET_ASIDE: &str = "before-highball-bench";

/// Installs these Debian packages. What apt says goes to standard error; it may take minutes, and is not bounded.
///
/// # Errors
/// This is no Debian, or the user is not root, or apt fails; the words say what to do.
pub fn install(packages: &BTreeSet<String>) -> Result<(), Failure> {
    if packages.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    let names = names.join(" ");
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Failure(format!(
            "packages can be installed on Debian and its relatives only (there is no apt-get): bring {names} by your \
             system's own means"
        )));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure(format!(
            "installing packages needs root: run with sudo, or install them before:\n\
             sudo apt-get install --no-install-recommends {names}"
        )));
    }
    let policy = Policy::forbid(Path::new(POLICY))
        .map_err(|error| Failure(format!("services cannot be kept from starting ({POLICY}): {error}")))?;
    let installed = apt_install(packages).or_else(|_| {
        // The lists of packages may be missing, or older than the archive.
        apt(&["update"])?;
        apt_install(packages)
    });
    let restored = policy
        .restore()
        .map_err(|error| Failure(format!("{POLICY} could not be put back to what it was before: {error}")));
    installed.and(restored)
}

fn apt_install(packages: &BTreeSet<String>) -> Result<(), Failure> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends", "--"];
    arguments.extend(packages.iter().map(String::as_str));
    apt(&arguments)
}

fn apt(arguments: &[&str]) -> Result<(), Failure> {
    let words = format!("apt-get {}", arguments.join(" "));
    let problem = |error: io::Error| Failure(format!("`{words}` could not be run: {error}"));
    // Standard output is for results.
    let progress = io::stderr().as_fd().try_clone_to_owned().map_err(problem)?;
    let status = Command::new("apt-get")
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(progress)
        .status()
        .map_err(problem)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure(format!("`{words}` failed ({status}); what it said stands above"))),
    }
}

/// The policy on services while packages are installed.
#[derive(Debug)]
struct Policy {
    file: PathBuf,
    set_aside: PathBuf,
    restored: bool,
}

impl Policy {
    /// Forbids all services to start, until it is restored or dropped.
    fn forbid(file: &Path) -> io::Result<Policy> {
        let policy = Policy { file: file.into(), set_aside: file.with_extension(SET_ASIDE), restored: false };
        // Left by an installation that was killed: that is what belongs here.
        if policy.set_aside.exists() {
            fs::rename(&policy.set_aside, file)?;
        }
        if file.exists() {
            fs::rename(file, &policy.set_aside)?;
        }
        fs::write(file, FORBID)?;
        fs::set_permissions(file, Permissions::from_mode(0o755))?;
        Ok(policy)
    }

    fn restore(mut self) -> io::Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> io::Result<()> {
        if self.restored {
            return Ok(());
        }
        self.restored = true;
        match fs::rename(&self.set_aside, &self.file) {
            // There was none.
            Err(error) if error.kind() == ErrorKind::NotFound => fs::remove_file(&self.file),
            done => done,
        }
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            eprintln!("{} could not be put back: {error}", self.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn the_policy_is_what_it_was_before() {
        let folder = folder();
        let file = folder.path().join("policy-rc.d");
        fs::write(&file, "mine").expect("written");
        let policy = Policy::forbid(&file).expect("forbidden");
        assert_eq!(fs::read_to_string(&file).expect("there"), FORBID);
        policy.restore().expect("restored");
        assert_eq!(fs::read_to_string(&file).expect("there"), "mine");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
    }

    #[test]
    fn without_a_policy_there_is_none_afterwards() {
        let folder = folder();
        drop(Policy::forbid(&folder.path().join("policy-rc.d")).expect("forbidden"));
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
    }

    #[test]
    fn what_a_killed_installation_left_is_put_back() {
        let folder = folder();
        let file = folder.path().join("policy-rc.d");
        fs::write(&file, "mine").expect("written");
        std::mem::forget(Policy::forbid(&file).expect("forbidden"));
        drop(Policy::forbid(&file).expect("forbidden"));
        assert_eq!(fs::read_to_string(&file).expect("there"), "mine");
    }
}
