//! Installs Debian packages that schemes need, so that none of their services starts: on this machine, and in
//! folders that hold other releases of Debian, which are made here too.

use crate::scheme::root::Root;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
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
/// What makes a root.
const FOR_ROOTS: [&str; 2] = ["debootstrap", "debian-archive-keyring"];
/// Runs a command in the root that is `$0`, by `chroot`, as packages are installed there and not only used. The mounts
/// are gone with the command, however it ends.
const IN_ROOT: &str = r#"
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@""#;

/// Packages, and where they are wanted; `None`: on this machine.
pub(crate) type Wanted = BTreeMap<Option<Root>, BTreeSet<String>>;

/// Installs these Debian packages. Reports its steps on standard error. It may take minutes, and is not bounded. A
/// package that the release does not have is named and left out, and so is a root that cannot be made: the schemes that
/// need it are skipped then.
///
/// # Errors
/// This is no Debian, or the user is not root, or apt fails on this machine; the words say what to do.
pub(crate) fn install(wanted: &Wanted) -> Result<(), Failure> {
    let of_machine = wanted.get(&None).cloned().unwrap_or_default();
    let makes_roots = wanted.keys().flatten().any(|root| !root.is_made());
    let for_roots = FOR_ROOTS.map(String::from).into_iter().filter(|_| makes_roots);
    let of_machine: BTreeSet<String> = of_machine.into_iter().chain(for_roots).collect();
    if of_machine.is_empty() && wanted.is_empty() {
        return Ok(());
    }
    check_rights(&of_machine)?;
    Place::Machine.install(&of_machine)?;
    for (root, packages) in wanted {
        let Some(root) = root else { continue };
        if let Err(failure) = make(root).and_then(|()| Place::Root(root).install(packages)) {
            eprintln!("Debian {} in {}: {failure}", root.release, root.folder.display());
        }
    }
    Ok(())
}

/// The packages among these that dpkg does not have. Where there is no dpkg, nothing is known to be missing.
pub(crate) fn not_installed<'a>(packages: impl Iterator<Item = &'a String>) -> Vec<String> {
    let is_missing = |package: &&String| {
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat=${db:Status-Abbrev}", package]);
        query.output().is_ok_and(|output| !output.stdout.starts_with(b"ii"))
    };
    packages.filter(is_missing).cloned().collect()
}

fn check_rights(packages: &BTreeSet<String>) -> Result<(), Failure> {
    let names = joined(packages);
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
    Ok(())
}

fn joined(packages: &BTreeSet<String>) -> String {
    packages.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Makes a root where there is none. It is put in its place only when it is complete.
fn make(root: &Root) -> Result<(), Failure> {
    if root.is_made() {
        return Ok(());
    }
    let new = root.folder.with_extension("new");
    let problem = |error: io::Error| Failure(format!("it cannot be made in {}: {error}", new.display()));
    eprintln!("making a Debian {} in {}", root.release, root.folder.display());
    fs::create_dir_all(root.folder.parent().unwrap_or(Path::new("/"))).map_err(problem)?;
    if new.exists() {
        fs::remove_dir_all(&new).map_err(problem)?;
    }
    // Its mounts too are in a separate namespace.
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "debootstrap", "--variant=minbase", &root.release])
        .arg(&new)
        .env_remove("TMPDIR");
    run(command, &format!("debootstrap --variant=minbase {} {}", root.release, new.display()))?;
    fs::rename(&new, &root.folder).map_err(problem)
}

/// Where packages are installed.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Machine,
    Root(&'a Root),
}

impl Place<'_> {
    fn install(self, packages: &BTreeSet<String>) -> Result<(), Failure> {
        if packages.is_empty() {
            return Ok(());
        }
        let file = self.file(POLICY);
        eprintln!("installing {} (no service of them is started)", joined(packages));
        let policy = Policy::forbid(&file).map_err(|error| {
            Failure(format!("services cannot be kept from starting ({}): {error}", file.display()))
        })?;
        let installed = self.apt_install(packages).or_else(|_| {
            // The lists of packages may be missing, or older than the archive; or a package is in no list.
            self.apt(&["update"])?;
            self.apt_install(&self.available(packages))
        });
        let restored = policy.restore().map_err(|error| {
            Failure(format!("{} could not be put back to what it was before: {error}", file.display()))
        });
        installed.and(restored)
    }

    fn file(self, path: &str) -> PathBuf {
        match self {
            Place::Machine => path.into(),
            Place::Root(root) => root.folder.join(path.trim_start_matches('/')),
        }
    }

    /// The packages of this release.
    fn available(self, packages: &BTreeSet<String>) -> BTreeSet<String> {
        let is_available = |package: &&String| {
            let mut command = self.command("apt-get");
            command.args(["install", "--simulate", "--quiet", "--no-install-recommends", "--", package]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let (available, others): (Vec<&String>, Vec<&String>) = packages.iter().partition(is_available);
        if !others.is_empty() {
            eprintln!("apt-get cannot install {others:?} here: what needs it is left out");
        }
        available.into_iter().cloned().collect()
    }

    fn apt_install(self, packages: &BTreeSet<String>) -> Result<(), Failure> {
        let mut arguments = vec!["install", "--yes", "--no-install-recommends", "--"];
        arguments.extend(packages.iter().map(String::as_str));
        self.apt(&arguments)
    }

    fn apt(self, arguments: &[&str]) -> Result<(), Failure> {
        if let Place::Root(root) = self {
            // It asks the same name servers as this machine.
            let copied = fs::copy("/etc/resolv.conf", root.folder.join("etc/resolv.conf"));
            copied.map_err(|error| Failure(format!("copying /etc/resolv.conf: {error}")))?;
        }
        let mut command = self.command("apt-get");
        command.args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        run(command, &format!("apt-get {}", arguments.join(" ")))
    }

    fn command(self, program: &str) -> Command {
        let Place::Root(root) = self else { return Command::new(program) };
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", IN_ROOT]);
        command.arg(&root.folder).arg(program);
        // What the shell has set is about this machine's folders, but for the way to the archive.
        let kept = ["http_proxy", "https_proxy"].map(|name| (name, std::env::var_os(name)));
        command.env_clear().envs(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
        command.envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LC_ALL", "C.UTF-8"), ("HOME", "/root")]);
        command
    }
}

/// Runs a command; what it prints goes to standard error, since standard output is for results.
fn run(mut command: Command, words: &str) -> Result<(), Failure> {
    let problem = |error: io::Error| Failure(format!("`{words}` could not be run: {error}"));
    let progress = io::stderr().as_fd().try_clone_to_owned().map_err(problem)?;
    let status = command.stdin(Stdio::null()).stdout(progress).status().map_err(problem)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure(format!("`{words}` failed ({status}); its output is above"))),
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
