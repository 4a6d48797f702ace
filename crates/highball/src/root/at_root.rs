//! Work that only root may do: done by the server, or by the spawner where root has started the server as another user.

use crate::certificates::{self, Sources};
use crate::control::places::ControlPlaces;
use crate::control::socket::InstanceSocket;
use crate::development::developer_key;
use crate::process::pidfile::Pidfile;
use crate::process::service_notification;
use crate::root::reading::{has_developers, roots_secret, take_certificates};
use highball_config::{Bind, Settings};
use highball_front as front;
use highball_front::developer_key::DeveloperKey;
use highball_spawner::ServiceState;
use highball_supervisor::Launcher;
use rustix::fs::{accessat, Access, AtFlags, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// The number of the user root.
const ROOT: u32 = 0;

/// The files of the certificates, read with root's rights where root's configuration names them: no tenant can read a key, and
/// the server itself none later.
///
/// # Errors
/// What is wrong with one of them.
pub(crate) fn read_certificates(settings: &Settings, launcher: &Launcher) -> Result<Sources, String> {
    match launcher {
        Launcher::Direct => certificates::read(settings, &|_| true).map_err(|error| error.to_string()),
        Launcher::Spawner(_) => take_certificates()
            .unwrap_or_else(|| Err("the certificates were not read with the configuration".into())),
    }
}

/// How browsers of developers are known.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn developer_key(settings: &Settings, launcher: &Launcher) -> io::Result<DeveloperKey> {
    match launcher {
        Launcher::Direct if has_developers(settings) => developer_key::load(),
        Launcher::Direct => developer_key::temporary(),
        Launcher::Spawner(_) => {
            let kept = roots_secret().map(|secret| Ok(DeveloperKey::new(secret)));
            Ok(kept.unwrap_or_else(developer_key::temporary)?.of_user(ROOT))
        }
    }
}

/// Why there can be no spool files: root has read that option, and may write everywhere.
pub(crate) fn why_no_spool_files(settings: &Settings, launcher: &Launcher) -> Option<String> {
    let folder = settings.limits.spool_dir.as_path();
    // Where nothing can be written to, spool files are in memory.
    let may_write = || match accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) | Err(Errno::ROFS) => true,
        Err(_) => false,
    };
    if matches!(launcher, Launcher::Direct) || may_write() {
        return None;
    }
    let user = geteuid().as_raw();
    let user = highball_users::name_of(user).unwrap_or_else(|| user.to_string());
    let folder = folder.display();
    Some(format!(
        "option spool_dir: {folder} is not a folder that {user}, the user of the server, may write to; let it belong to this \
         user (install -d -o {user} -m 700 {folder}), or name another one"
    ))
}

/// Listens on an address.
pub(crate) fn listen(bind: &Bind, launcher: &Launcher) -> Result<front::Listener, Box<dyn Error>> {
    match launcher {
        Launcher::Direct => Ok(front::bind(bind)?),
        Launcher::Spawner(spawner) => Ok(front::over(bind, spawner.listen(&bind.to_string())?, false)?),
    }
}

/// Writes the PID file; where the spawner has written it, it also removes it. `succeeds`: it is another server's so far.
pub(crate) fn write_pidfile(
    path: &Path,
    succeeds: bool,
    launcher: &Launcher,
) -> Result<Option<Pidfile>, Box<dyn Error>> {
    match launcher {
        Launcher::Direct if succeeds => Ok(Some(Pidfile::write(path)?)),
        Launcher::Direct => Ok(Some(Pidfile::claim(path)?)),
        Launcher::Spawner(spawner) => {
            spawner.write_pidfile()?;
            Ok(None)
        }
    }
}

/// Takes over the socket that another server has for an address, and that listens on.
pub(crate) fn adopt(
    bind: &Bind,
    socket: OwnedFd,
    launcher: &Launcher,
) -> Result<front::Listener, front::BindError> {
    match launcher {
        Launcher::Direct => front::adopt(bind, socket),
        Launcher::Spawner(_) => front::over(bind, socket, true),
    }
}

/// Makes the control socket.
pub(crate) async fn control_socket(
    launcher: &Launcher,
    predecessor: Option<i32>,
) -> io::Result<InstanceSocket> {
    match launcher {
        Launcher::Direct => InstanceSocket::open(&ControlPlaces::of_server(), predecessor).await,
        Launcher::Spawner(spawner) => InstanceSocket::over(spawner.open_control_socket()?),
    }
}

/// A server that has taken over does not listen on this address. Where the spawner has made its path, it removes it; else
/// the front does.
pub(crate) fn leave(address: &str, launcher: &Launcher) {
    let Launcher::Spawner(spawner) = launcher else { return };
    let is_path = address.starts_with("unix:") || address.contains("+unix:");
    if let Some(error) = is_path.then(|| spawner.leave(address)).and_then(Result::err) {
        warn!(
            name: "socket_not_removed", address, %error, "cannot remove the socket's file; the next start replaces it"
        );
    }
}

/// Whether systemd knows that this process serves.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Whether systemd knows that this process serves: only then it may learn of reloads.
pub(crate) fn is_ready() -> bool {
    IS_READY.load(Ordering::Relaxed)
}

/// Tells systemd.
pub(crate) fn tell(state: ServiceState, launcher: &Launcher) {
    IS_READY.fetch_or(state == ServiceState::Ready, Ordering::Relaxed);
    let done = match launcher {
        Launcher::Direct => service_notification::notify(state),
        Launcher::Spawner(spawner) => spawner.tell(state),
    };
    if let Err(error) = done {
        warn!(name: "systemd_not_notified", %error, "cannot notify systemd");
    }
}
