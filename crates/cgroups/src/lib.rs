//! The cgroups (version 2, cgroups(7)) in which the kernel enforces the hard limits of applications.
//!
//! The cgroup that Highball was started in becomes the parent of one for the server, and of one for each application. No
//! process stays in it, as a cgroup that has controllers for others may not have processes itself. Only a process that may
//! write there makes them: root, or the user to whom systemd has delegated the cgroup.
//!
//! In reading order:
//!
//! - [`Limits`] of an application;
//! - `place`: where this process's own cgroup is in the file system;
//! - [`Cgroups`]: making the cgroups, and entering them;
//! - [`Figures`]: what the kernel says of one;
//! - [`outlook`]: whether limits could be kept;
//! - `around`: the cgroups that hold this process, of both versions, and where their limits are;
//! - [`Cpus`], [`available_memory`], [`free_memory`]: what this process may use within them.

mod around;
mod cpus;
mod figures;
mod free_memory;
mod groups;
mod limits;
mod memory;
mod outlook;
mod place;

pub use cpus::{CpuLimit, Cpus};
pub use figures::{number_in, Figures};
pub use free_memory::free_memory;
pub use groups::{Cgroups, Problem, REMEDY, SERVER};
pub use limits::{CpuMax, Limits};
pub use memory::{available_memory, oom_kills};
pub use outlook::outlook;

use std::sync::OnceLock;

/// The cgroups of this process.
static CURRENT: OnceLock<Cgroups> = OnceLock::new();

/// From here on, [`current`] returns these.
pub fn follow(cgroups: Cgroups) -> &'static Cgroups {
    CURRENT.get_or_init(|| cgroups)
}

/// The cgroups that this server has; `None`: no application has a limit, or it cannot be kept here.
pub fn current() -> Option<&'static Cgroups> {
    CURRENT.get()
}
