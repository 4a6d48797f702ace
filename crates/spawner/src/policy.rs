//! What the spawner may be ordered to do: a table that comes from root's configuration alone. The spawner knows it as
//! this trait; the binary fills it.

use crate::message::ServiceState;
use highball_users::User;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Why an order is not followed.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) errno: i32,
    pub(crate) text: String,
}

impl Refusal {
    /// A refusal with this reason.
    pub fn because(text: impl fmt::Display) -> Refusal {
        Refusal { errno: 0, text: text.to_string() }
    }

    /// What the order names is not in the table.
    pub fn not_in_table() -> Refusal {
        Refusal::because("root's configuration does not have it (any more)")
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { errno: error.raw_os_error().unwrap_or_default(), text: error.to_string() }
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Refusal {
        io::Error::from(errno).into()
    }
}

/// Who an application runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runner {
    /// Root, as root's configuration says, or as all files of the application are root's.
    Root,
    /// This user, who is not root.
    User(User),
}

impl Runner {
    /// The user, if it is not root.
    pub(crate) fn user(&self) -> Option<&User> {
        match self {
            Runner::User(user) => Some(user),
            Runner::Root => None,
        }
    }
}

/// The program that takes over in a hot restart.
#[derive(Debug, Clone)]
pub struct Successor {
    /// Its path.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub arguments: Vec<OsString>,
}

/// The table of what the server may order.
pub trait Policy {
    /// Listens on this address.
    ///
    /// # Errors
    /// Why it cannot.
    fn listen(&mut self, address: &str) -> Result<OwnedFd, Refusal>;

    /// Removes the path of the Unix socket at this address.
    ///
    /// # Errors
    /// Why it cannot.
    fn leave(&mut self, address: &str) -> Result<(), Refusal>;

    /// Opens the log at this path for appending.
    ///
    /// # Errors
    /// Why it cannot.
    fn open_log(&mut self, path: &Path) -> Result<OwnedFd, Refusal>;

    /// Writes the PID file.
    ///
    /// # Errors
    /// Why it cannot.
    fn write_pidfile(&mut self) -> Result<(), Refusal>;

    /// Makes the control socket, and listens on it.
    ///
    /// # Errors
    /// Why it cannot.
    fn open_control_socket(&mut self) -> Result<OwnedFd, Refusal>;

    /// Who the application at this path runs as; `None`: it is not in the table.
    fn runner(&self, app: &Path) -> Option<&Runner>;

    /// The file by which a process enters the cgroup of the application at this path, by writing `0`; `None`: there are none.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn cgroup(&self, app: &Path) -> Result<Option<OwnedFd>, Refusal>;

    /// The program for a hot restart.
    ///
    /// # Errors
    /// Another user than root could have changed it.
    fn successor(&self) -> Result<Successor, Refusal>;

    /// Takes note of how far the server is, and tells systemd.
    ///
    /// # Errors
    /// Why it cannot.
    fn tell(&mut self, state: ServiceState) -> Result<(), Refusal>;

    /// Another process has read root's configuration again, and passes the table on this socket. If it has failed, the table
    /// stays as it was.
    fn read_again(&mut self, passed: &OwnedFd);

    /// Applications whose file systems did not answer when the table was read.
    fn silent(&self) -> &[PathBuf];

    /// A child of the spawner has ended.
    fn child_ended(&mut self);

    /// The server has ended: removes what was made for it.
    fn end(&mut self);

    /// Its applications have ended, too.
    fn all_ended(&mut self);
}
