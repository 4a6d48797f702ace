//! Certificates from an authority (ACME): what this process shows it, and where issued certificates go.

use crate::certificates;
use crate::configuration::Configuration;
use highball_acme::{keep, Keeping, Owner, Proof};
use highball_config::Settings;
use highball_front::Tls;
use highball_supervisor::{checkpoint, Launcher};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tracing::error;

/// How long a process may take to end once it has drained.
const EXIT: Duration = Duration::from_secs(30);

/// Why the certificates of `domain` cannot be kept by this process, if so.
pub(crate) fn why_not(settings: &Settings, launcher: &Launcher) -> Option<&'static str> {
    match launcher {
        // It may neither open files nor connect to anything.
        Launcher::Spawner(_) if settings.tls.acme.is_some() => Some(
            "`domain` is not possible where root starts Highball for applications of other users, whose server may keep no keys: obtain \
             the certificates with certbot, and name their files with `tls_certificate` and `tls_key`; or start Highball as the user \
             of the application (systemd: User= and AmbientCapabilities=CAP_NET_BIND_SERVICE)",
        ),
        Launcher::Spawner(_) | Launcher::Direct => None,
    }
}

/// Sees to it that there is a certificate for each `domain`, until what it returns is dropped. `is_successor`: another one did
/// so before, and is about to end.
///
/// # Errors
/// There is no thread for it.
pub(crate) fn keep_certificates(
    configuration: &Configuration,
    tls: Option<&Arc<Tls>>,
    is_successor: bool,
) -> io::Result<Option<Keeping>> {
    let settings = configuration.now();
    let (Some(tls), Some(acme)) = (tls, settings.tls.acme.clone()) else { return Ok(None) };
    let server = AcmeServer { tls: Arc::clone(tls), configuration: configuration.clone() };
    // The process before keeps them until it has drained.
    let quiet = if is_successor { settings.drain_timeout + EXIT } else { Duration::ZERO };
    let keeping = keep(acme, Arc::new(server), quiet)?;
    let keeper = keeping.keeper.clone();
    tls.obtain_by(Box::new(move |host| keeper.obtain(host)));
    Ok(Some(keeping))
}

/// Who clients get the certificates from.
struct AcmeServer {
    tls: Arc<Tls>,
    configuration: Configuration,
}

impl Owner for AcmeServer {
    fn show(&self, proof: &Proof) {
        match proof {
            Proof::Text { token, text } => self.tls.challenges().show(token, text),
            Proof::Certificate { host, pem } => {
                if let Err(error) = self.tls.challenges().show_certificate(host, pem.as_bytes()) {
                    error!(
                        name: "challenge_not_answered",
                        %error, host, "cannot prove to the authority that this server controls the name"
                    );
                }
            }
        }
    }

    fn take_back(&self, proof: &Proof) {
        match proof {
            Proof::Text { token, .. } => self.tls.challenges().take_back(token),
            Proof::Certificate { host, .. } => self.tls.challenges().take_back_certificate(host),
        }
    }

    fn can_use(&self, file: &Path) -> Result<(), String> {
        certificates::kept_in(file).map(drop).map_err(|error| error.to_string())
    }

    fn has_changed(&self) {
        let read =
            certificates::read(&self.configuration.now(), &|_| true).map_err(|error| error.to_string());
        certificates::replace(&self.tls, read);
    }

    fn passes(&self, step: &'static str) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(checkpoint::pass(step))
    }
}
