//! Confines the server where root has started it: what the process that reads clients' bytes never does, the kernel refuses
//! from before the first of them is read. `docs/security-reference.md` says what is in force.
//!
//! Two mechanisms, each where the kernel has it: seccomp denies system calls (`system_calls`); Landlock, here, limits
//! which files may be opened, and denies TCP connections and signals to other processes. Descriptors that the server has
//! or receives are not affected: sockets and logs come from the spawner, files of applications from openers.

mod system_calls;

use highball_config::Settings;
use highball_supervisor::checkpoint;
use highball_supervisor::Launcher;
use landlock::{
    make_bitflags, path_beneath_rules, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, ABI,
};
use std::path::{Path, PathBuf};
use tracing::info;

/// The newest Landlock whose rights are known here. Kernels with an older one limit what they can.
const LANDLOCK: ABI = ABI::V6;
/// What the server reads by path: whose process a worker is and which client is on this machine (`/proc`), how many
/// processors there are (`/proc`, `/sys`), what applications use of their limits (`/sys/fs/cgroup`), and its own symbols for
/// a backtrace. Other processes' memory, environment and descriptors in `/proc` stay closed, as Landlock counts reading them
/// as debugging.
const READ: [&str; 4] = ["/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/proc/self/exe"];
/// What the server lists: the threads of a worker, to find the thread that does not end. (The processes of this machine are
/// among it. Their numbers could be tried one by one anyway.)
const LISTED: [&str; 1] = ["/proc"];
/// What the server does in the folder of spool files.
const SPOOL: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | MakeReg | RemoveFile});

/// Confines this process where the spawner has started it, and logs what is in force. To be called before there are threads,
/// as Landlock limits the calling thread and the threads that it starts.
pub(crate) fn confine(settings: &Settings, launcher: &Launcher) {
    if matches!(launcher, Launcher::Direct) {
        return;
    }
    let checkpoints = std::env::var_os(checkpoint::FOLDER_VARIABLE).map(PathBuf::from);
    let written: Vec<&Path> =
        [settings.limits.spool_dir.as_path()].into_iter().chain(checkpoints.as_deref()).collect();
    let landlock = limit_files(&written);
    let seccomp = system_calls::deny();
    match (seccomp, landlock) {
        (Ok(()), Ok(())) => info!(name: "server_confined", "seccomp and Landlock confine the server"),
        (Ok(()), Err(why)) => info!(
            name: "server_confined", landlock = why, "seccomp confines the server; Landlock does not"
        ),
        (Err(why), Ok(())) => info!(
            name: "server_confined", seccomp = why, "Landlock confines the server; seccomp does not"
        ),
        (Err(seccomp), Err(landlock)) => {
            info!(
                name: "server_confined", seccomp, landlock, "neither seccomp nor Landlock confines the server"
            )
        }
    }
}

/// Denies this thread all files but those in [`READ`] and in folders for the server's own files, which are `written`, and all
/// lists of names but those in [`LISTED`].
fn limit_files(written: &[&Path]) -> Result<(), String> {
    let restrict = || -> Result<_, RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .add_rules(path_beneath_rules(READ, AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(LISTED, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(written, SPOOL))?
            .restrict_self()
    };
    let status = restrict().map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced, _) => Ok(()),
        (_, LandlockStatus::NotEnabled) => {
            Err("it is switched off (add landlock to the kernel's parameter lsm=)".into())
        }
        (RulesetStatus::NotEnforced, _) => {
            Err("this kernel or container has none (Linux 5.13 or later)".into())
        }
    }
}

#[cfg(test)]
mod tests;
