//! Certificates for HTTPS: read at the start, and again after HUP and when a file changes. In development, the user's authority
//! issues them (`authority`).

use crate::authority::{self, Local, LocalError};
use crate::configuration::Configuration;
use highball_config::{BindProtocol, CertificateFiles, Settings};
use highball_front::{AuthorityError, Certificate, CertificateError, Issuer, Pem, SetupError, Tls};
use highball_supervisor::Launcher;
use serde::{Deserialize, Serialize};
use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tracing::{error, info, warn};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What was read for clients that get a certificate.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Sources {
    /// Files, in the order of the configuration.
    Files(Vec<Pem>),
    /// What issues certificates in development.
    Local(Local),
}

/// The same, and clients can be served with it.
#[derive(Debug)]
pub(crate) enum Checked {
    Files(Vec<Certificate>),
    Local(Local, Box<Issuer>),
}

/// Why clients cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Files(#[from] CertificateError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Issuer(#[from] AuthorityError),
}

/// Whether there are clients that get a certificate.
pub(crate) fn are_needed(settings: &Settings) -> bool {
    settings.binds.iter().any(|bind| bind.protocol == BindProtocol::Https)
}

/// Reads the files, with the rights of this process.
///
/// # Errors
/// What is wrong with one of them.
pub(crate) fn read(settings: &Settings) -> Result<Sources, ReadError> {
    if settings.tls.is_local {
        return Ok(Sources::Local(authority::load()?));
    }
    let read: Result<_, _> = settings.tls.certificates.iter().map(Pem::read).collect();
    Ok(Sources::Files(read?))
}

/// Makes sure of what clients will get.
///
/// # Errors
/// What is wrong with one of them.
pub(crate) fn check(sources: Sources) -> Result<Checked, ReadError> {
    match sources {
        Sources::Files(pems) => Ok(Checked::Files(pems.iter().map(Pem::check).collect::<Result<_, _>>()?)),
        Sources::Local(local) => {
            let issuer = Box::new(Issuer::new(&local.delegate)?);
            Ok(Checked::Local(local, issuer))
        }
    }
}

/// TLS with these certificates, and the keys of session tickets of the server before.
///
/// # Errors
/// The cryptography does not work.
pub(crate) fn set_up(
    settings: &Settings,
    checked: Checked,
    tickets: Option<&str>,
) -> Result<Arc<Tls>, SetupError> {
    let (certificates, local) = match checked {
        Checked::Files(certificates) => (certificates, None),
        Checked::Local(local, issuer) => (Vec::new(), Some((local, issuer))),
    };
    warn_of_flaws(&certificates);
    let tls = Tls::new(certificates, settings.tls.max_handshakes, tickets)?;
    if let Some((local, issuer)) = local {
        local.report();
        tls.issue_by(*issuer);
    }
    Ok(Arc::new(tls))
}

fn warn_of_flaws(certificates: &[Certificate]) {
    for certificate in certificates {
        let file = certificate.file().display();
        for flaw in certificate.flaws() {
            warn!("the certificate in {file} is served, but {flaw}");
        }
    }
}

/// From now on clients get these, unless something is wrong with them. One that browsers refuse takes the place of none that
/// they accept.
pub(crate) fn replace(tls: &Tls, read: Result<Sources, String>) {
    let checked = read.and_then(|sources| check(sources).map_err(|error| error.to_string()));
    let checked = match checked {
        Ok(Checked::Local(_, issuer)) if tls.is_local() => return tls.issue_by(*issuer),
        Ok(Checked::Files(certificates)) if !tls.is_local() => Ok(certificates),
        Ok(_) => return, // options of the server stay as they were
        Err(error) => Err(error),
    };
    let checked = checked.and_then(|certificates| {
        let served = tls.report().certificates;
        for new in certificates.iter().filter(|new| new.is_out_of_date()) {
            let file = new.file().display().to_string();
            if served.iter().any(|old| old.file == file && !old.is_out_of_date) {
                let flaws: Vec<String> = new.flaws().iter().map(ToString::to_string).collect();
                return Err(format!("the certificate in {file} has changed, but {}", flaws.join("; ")));
            }
        }
        Ok(certificates)
    });
    match &checked {
        Ok(certificates) => {
            warn_of_flaws(certificates);
            let hosts: Vec<&str> =
                certificates.iter().flat_map(Certificate::hosts).map(String::as_str).collect();
            info!(hosts = hosts.join(" "), "new connections get the certificates that the files have by now");
        }
        Err(error) => error!(error, "the certificates stay as they were"),
    }
    tls.replace(checked);
}

/// What shows that a file has changed.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

fn stamps(files: &[CertificateFiles]) -> Vec<Stamp> {
    let stamp = |path| {
        let found = metadata(path).ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    };
    files.iter().flat_map(|files| [stamp(&files.certificate), stamp(&files.key)]).collect()
}

/// Has clients get what changed files have, once no more of them changes: a certificate comes a moment before its key. Never
/// returns. Where another user's processes read the files for this one, they are read after HUP alone.
pub(crate) async fn follow_files(configuration: &Configuration, tls: Option<&Arc<Tls>>, launcher: &Launcher) {
    let (Some(tls), Launcher::Direct) = (tls, launcher) else { return std::future::pending().await };
    let mut served: Option<Vec<Stamp>> = None;
    let mut before = None;
    loop {
        let settings = configuration.now();
        let look = spawn_blocking(move || stamps(&settings.tls.certificates));
        let Ok(found) = look.await else { return std::future::pending().await };
        if served.as_ref().is_some_and(|served| *served != found) && before.as_ref() == Some(&found) {
            let settings = configuration.now();
            let tls = Arc::clone(tls);
            let follow = move || replace(&tls, read(&settings).map_err(|error| error.to_string()));
            if let Err(error) = spawn_blocking(follow).await {
                error!(%error, "reading the certificates has failed");
            }
            served = Some(found.clone());
        }
        served.get_or_insert_with(|| found.clone());
        before = Some(found);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
