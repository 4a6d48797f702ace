//! Certificates for HTTPS: read at the start, and again after HUP and when a file changes. In development, the user's authority
//! issues them (`authority`).

use crate::authority::{self, Local, LocalError};
use crate::configuration::Configuration;
use highball_config::{reader_of, App, BindProtocol, CertificateFiles, Settings, User};
use highball_front::{Certificate, CertificateOwner, Issuer, Pem, SetupError, Tls};
use highball_supervisor::Launcher;
use highball_users::{may_change_users, with_rights_of};
use serde::{Deserialize, Serialize};
use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    Files(Vec<Source>),
    /// What issues certificates in development.
    Local(Local),
}

/// The files of a certificate, as they were read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    file: PathBuf,
    /// The application that it belongs to.
    owner: Option<CertificateOwner>,
    /// What they contain, or why they cannot be read.
    read: Result<Pem, String>,
}

/// What clients are served with.
#[derive(Debug)]
pub(crate) enum Checked {
    Files(Vec<Certificate>, Vec<Problem>),
    Local(Local, Box<Issuer>),
}

/// Why an application has no certificate.
#[derive(Debug)]
pub(crate) struct Problem {
    app: String,
    pub(crate) error: String,
}

/// Whether there are clients that get a certificate.
pub(crate) fn are_needed(settings: &Settings) -> bool {
    settings.binds.iter().any(|bind| bind.protocol == BindProtocol::Https)
}

/// Reads the files.
///
/// # Errors
/// There is no authority for development.
pub(crate) fn read(settings: &Settings) -> Result<Sources, LocalError> {
    if settings.tls.is_local {
        return Ok(Sources::Local(authority::load()?));
    }
    let source = |(files, app): (&CertificateFiles, Option<&App>)| Source {
        file: files.certificate.clone(),
        owner: app.map(|app| CertificateOwner { name: app.name.clone(), hosts: app.hosts.clone() }),
        read: read_files(files),
    };
    Ok(Sources::Files(settings.certificates().map(source).collect()))
}

fn read_files(files: &CertificateFiles) -> Result<Pem, String> {
    as_who_could_change(&[&files.certificate, &files.key], || {
        Pem::read(files).map_err(|error| error.to_string())
    })?
}

/// Reads files of the server's with this process's rights; as root, with those of the first other user who could have put them
/// there, or decided where their paths lead: that user gets nothing served that the user could not read.
fn as_who_could_change<T>(files: &[&Path], read: impl FnOnce() -> T) -> Result<T, String> {
    let reader = if may_change_users() { reader_of_all(files)? } else { None };
    let Some(user) = reader else { return Ok(read()) };
    with_rights_of(Some(&user), read).map_err(|error| format!("cannot read files as {user}: {error}"))
}

fn reader_of_all(files: &[&Path]) -> Result<Option<User>, String> {
    let mut reader = None;
    for file in files {
        match (&reader, reader_of(file)?) {
            (_, None) => {}
            (None, found) => reader = found,
            (Some(first), Some(other)) if *first == other => {}
            (Some(first), Some(other)) => {
                let file = file.display();
                return Err(format!(
                    "{file} belongs to {other}, and its certificate to {first}: let one user have both"
                ));
            }
        }
    }
    Ok(reader)
}

impl Source {
    /// Makes sure of what clients will get.
    fn check(self) -> Result<Certificate, String> {
        let certificate = self.read?.check().map_err(|error| error.to_string())?;
        Ok(certificate.of(self.owner))
    }

    fn is_of(&self, served: &Certificate) -> bool {
        let name = |owner: Option<&CertificateOwner>| owner.map(|owner| owner.name.clone());
        served.file() == self.file && name(served.owner()) == name(self.owner.as_ref())
    }
}

/// Makes sure of what clients will get. Where something is wrong with an application's, it has none, and others are served.
///
/// # Errors
/// What is wrong with one of the server's.
pub(crate) fn check(sources: Sources) -> Result<Checked, String> {
    let sources = match sources {
        Sources::Files(sources) => sources,
        Sources::Local(local) => {
            let issuer = Issuer::new(&local.delegate).map_err(|error| error.to_string())?;
            return Ok(Checked::Local(local, Box::new(issuer)));
        }
    };
    let (mut certificates, mut problems) = (Vec::new(), Vec::new());
    for source in sources {
        let app = source.owner.as_ref().map(|owner| owner.name.clone());
        match (source.check(), app) {
            (Ok(certificate), _) => certificates.push(certificate),
            (Err(error), Some(app)) => problems.push(Problem { app, error }),
            (Err(error), None) => return Err(error),
        }
    }
    Ok(Checked::Files(certificates, problems))
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
    let tls = |certificates| Tls::new(certificates, settings.tls.max_handshakes, tickets);
    let (certificates, problems) = match checked {
        Checked::Files(certificates, problems) => (certificates, problems),
        Checked::Local(local, issuer) => {
            let tls = tls(Vec::new())?;
            local.report();
            tls.issue_by(*issuer);
            return Ok(Arc::new(tls));
        }
    };
    certificates.iter().for_each(warn_of_flaws);
    for Problem { app, error } in &problems {
        error!(app, error, "the application has no certificate of its own");
    }
    let tls = tls(certificates)?;
    tls.set_problem(joined(problems.into_iter().map(|problem| problem.error).collect()));
    Ok(Arc::new(tls))
}

fn joined(problems: Vec<String>) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn warn_of_flaws(certificate: &Certificate) {
    let file = certificate.file().display();
    for flaw in certificate.flaws() {
        warn!("the certificate in {file} is served, but {flaw}");
    }
}

/// From now on clients get these. Where something is wrong with one, they get the one of the same file from before.
pub(crate) fn replace(tls: &Tls, read: Result<Sources, String>) {
    let sources = match read {
        Ok(Sources::Files(sources)) if !tls.is_local() => sources,
        Ok(sources @ Sources::Local(_)) if tls.is_local() => {
            match check(sources) {
                Ok(Checked::Local(_, issuer)) => tls.issue_by(*issuer),
                Ok(Checked::Files(..)) => {}
                Err(error) => error!(error, "the certificates stay as they were"),
            }
            return;
        }
        Ok(_) => return, // options of the server stay as they were
        Err(error) => {
            error!(error, "the certificates stay as they were");
            return tls.set_problem(Some(error));
        }
    };
    let before = tls.certificates();
    let (mut certificates, mut problems, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for source in sources {
        let owner = source.owner.clone();
        let old = before.iter().find(|certificate| source.is_of(certificate));
        match source.check().and_then(|new| is_better(&new, old).map(|()| new)) {
            Ok(new) => {
                warn_of_flaws(&new);
                hosts.extend(new.hosts().iter().cloned());
                certificates.push(new);
            }
            Err(error) => {
                error!(error, "the certificate stays as it was");
                problems.push(error);
                certificates.extend(old.map(|old| old.clone().of(owner)));
            }
        }
    }
    if !hosts.is_empty() {
        info!(hosts = hosts.join(" "), "new connections get the certificates that the files have by now");
    }
    tls.replace(certificates);
    tls.set_problem(joined(problems));
}

/// One that browsers refuse takes the place of none that they accept.
fn is_better(new: &Certificate, old: Option<&Certificate>) -> Result<(), String> {
    if !new.is_out_of_date() || old.is_none_or(Certificate::is_out_of_date) {
        return Ok(());
    }
    let flaws: Vec<String> = new.flaws().iter().map(ToString::to_string).collect();
    Err(format!("the certificate in {} has changed, but {}", new.file().display(), flaws.join("; ")))
}

/// What shows that a file has changed.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

fn stamps(settings: &Settings) -> Vec<Stamp> {
    let stamp = |path: &Path| {
        let found = as_who_could_change(&[path], || metadata(path)).ok()?.ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    };
    settings.certificates().flat_map(|(files, _)| [stamp(&files.certificate), stamp(&files.key)]).collect()
}

/// Has clients get what changed files have, once no more of them changes: a certificate comes a moment before its key. Never
/// returns. Where another user's processes read the files for this one, they are read after HUP alone.
pub(crate) async fn follow_files(configuration: &Configuration, tls: Option<&Arc<Tls>>, launcher: &Launcher) {
    let (Some(tls), Launcher::Direct) = (tls, launcher) else { return std::future::pending().await };
    let mut served: Option<Vec<Stamp>> = None;
    let mut before = None;
    loop {
        let settings = configuration.now();
        let look = spawn_blocking(move || stamps(&settings));
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
