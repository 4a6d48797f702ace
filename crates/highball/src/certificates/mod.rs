//! Certificates for HTTPS: read at the start, and again after HUP and when a file changes (`root::certificate_watch`). An authority
//! may issue them (`acme`); in development, the user's own does (`local_authority`). Certificates that clients show: `clients`.

pub(crate) mod acme;
pub(crate) mod clients;
pub(crate) mod local_authority;

use clients::{CheckedClients, ClientSource};
use highball_acme::{certificate_file, kept_hosts};
use highball_config::{App, BindProtocol, CertificateFiles, Settings, User};
use highball_front::{Certificate, CertificateError, CertificateOwner, Issuer, Pem, SetupError, Tls};
use highball_proc::write_no_core_files;
use highball_users::trust::reader_of;
use highball_users::{may_change_users, with_rights_of};
use local_authority::{Local, LocalError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{error, info, warn};

/// What was read for HTTPS.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sources {
    served: PemSources,
    clients: Vec<ClientSource>,
}

/// What was read for clients that get a certificate.
#[derive(Debug, Serialize, Deserialize)]
enum PemSources {
    /// Files, in the order of the configuration.
    Files(Vec<PemSource>),
    /// What issues certificates in development.
    Local(Local),
}

/// The files of a certificate, as they were read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PemSource {
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    /// The application that it belongs to.
    owner: Option<CertificateOwner>,
    /// What they contain, or why they cannot be read.
    read: Result<Pem, String>,
}

/// What clients are served with, and asked for.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) served: CheckedCertificates,
    pub(crate) clients: CheckedClients,
}

/// What clients are served with.
#[derive(Debug)]
pub(crate) enum CheckedCertificates {
    /// And why applications have none.
    Files(Vec<Certificate>, Problems),
    Local(Local, Box<Issuer>),
}

/// Whether there are clients that get a certificate.
pub(crate) fn are_needed(settings: &Settings) -> bool {
    settings.binds.iter().any(|bind| bind.protocol == BindProtocol::Https)
}

/// Reads the files; those of an application only if `may_look` says so.
///
/// # Errors
/// There is no authority for development.
pub(crate) fn read(settings: &Settings, may_look: &dyn Fn(&Path) -> bool) -> Result<Sources, LocalError> {
    Ok(Sources { served: read_served(settings, may_look)?, clients: clients::read(settings, may_look) })
}

fn read_served(settings: &Settings, may_look: &dyn Fn(&Path) -> bool) -> Result<PemSources, LocalError> {
    if settings.tls.is_local {
        return Ok(PemSources::Local(local_authority::load()?));
    }
    let named = settings.certificates().map(|(files, app)| match app {
        Some(app) if !may_look(&app.path()) => {
            let file = files.certificate.display();
            PemSource::new(
                files,
                Some(app),
                Err(format!("{file} is not read because the file system does not answer")),
            )
        }
        app => read_source(files, app),
    });
    Ok(PemSources::Files(named.chain(kept(settings)).collect()))
}

/// The certificates of an authority. A missing or unusable one is being obtained, and the log says why.
fn kept(settings: &Settings) -> impl Iterator<Item = PemSource> + '_ {
    let acme = settings.tls.acme.iter();
    let files = acme.flat_map(|acme| kept_hosts(acme).into_iter().map(|host| certificate_file(acme, &host)));
    files.filter_map(|file| {
        let pem = kept_in(&file).ok()?;
        Some(PemSource { file, owner: None, read: Ok(pem) })
    })
}

/// What an authority has issued, with its key, in one file.
///
/// # Errors
/// Why clients cannot get it.
pub(crate) fn kept_in(file: &Path) -> Result<Pem, CertificateError> {
    let pem = Pem::read(&CertificateFiles { certificate: file.into(), key: file.into() })?;
    pem.check().map(|_| pem)
}

/// Reads the files of one certificate.
pub(crate) fn read_source(files: &CertificateFiles, app: Option<&App>) -> PemSource {
    PemSource::new(files, app, read_files(files))
}

fn read_files(files: &CertificateFiles) -> Result<Pem, String> {
    as_who_could_change(&[&files.certificate, &files.key], || {
        Pem::read(files).map_err(|error| error.to_string())
    })?
}

/// Reads files of the server's with this process's rights; as root, with those of the first other user who could have put them
/// there, or decided where their paths lead: that user gets nothing served that the user could not read.
pub(crate) fn as_who_could_change<T>(files: &[&Path], read: impl FnOnce() -> T) -> Result<T, String> {
    let reader = if may_change_users() { reader_of_all(files)? } else { None };
    let Some(user) = reader else { return Ok(read()) };
    with_rights_of(Some(&user), read).map_err(|error| format!("cannot read files as {user}: {error}"))
}

pub(crate) fn reader_of_all(files: &[&Path]) -> Result<Option<User>, String> {
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

impl Sources {
    /// Nothing, for a server without HTTPS.
    pub(crate) fn none() -> Self {
        Sources { served: PemSources::Files(Vec::new()), clients: Vec::new() }
    }
}

impl PemSource {
    fn new(files: &CertificateFiles, app: Option<&App>, read: Result<Pem, String>) -> PemSource {
        PemSource {
            file: files.certificate.clone(),
            owner: app.map(|app| CertificateOwner { name: app.name.clone(), hosts: app.hosts.clone() }),
            read,
        }
    }

    /// Makes sure of what clients will get.
    fn check(self) -> Result<Certificate, String> {
        let certificate = self.read?.check().map_err(|error| error.to_string())?;
        Ok(certificate.of(self.owner))
    }

    fn identity(&self) -> Identity {
        (self.owner.as_ref().map(|owner| owner.name.clone()), self.file.clone())
    }
}

/// Makes sure of what clients will get, and are asked for. Where something is wrong with an application's, it has none, and others
/// are served.
///
/// # Errors
/// What is wrong with one of the server's, or of its only application.
pub(crate) fn check(sources: Sources) -> Result<Checked, String> {
    Ok(Checked { served: check_served(sources.served)?, clients: clients::check(&sources.clients)? })
}

fn check_served(sources: PemSources) -> Result<CheckedCertificates, String> {
    let sources = match sources {
        PemSources::Files(sources) => sources,
        PemSources::Local(local) => {
            let issuer = Issuer::new(&local.delegate).map_err(|error| error.to_string())?;
            return Ok(CheckedCertificates::Local(local, Box::new(issuer)));
        }
    };
    let (mut certificates, mut problems) = (Vec::new(), Problems::new());
    for source in sources {
        let identity = source.identity();
        match source.check() {
            Ok(certificate) => certificates.push(certificate),
            Err(error) if identity.0.is_none() => return Err(error),
            Err(error) => drop(problems.insert(identity, error)),
        }
    }
    Ok(CheckedCertificates::Files(certificates, problems))
}

/// Keys get into no core file of this process. To be called before it is confined.
pub(crate) fn keep_out_of_core_files() {
    if let Err(error) = write_no_core_files() {
        warn!(
            name: "core_files_not_disabled", %error, "cannot disable core files; one would contain the private keys"
        );
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
    let Checked { served, clients } = checked;
    let tls = |certificates| {
        let tls = Tls::new(certificates, settings.tls.max_handshakes, tickets)?;
        clients::set_up(&tls, clients)?;
        Ok::<Tls, SetupError>(tls)
    };
    let (certificates, problems) = match served {
        CheckedCertificates::Files(certificates, problems) => (certificates, problems),
        CheckedCertificates::Local(local, issuer) => {
            let tls = tls(Vec::new())?;
            local.report();
            tls.issue_by(*issuer);
            return Ok(Arc::new(tls));
        }
    };
    certificates.iter().for_each(warn_of_flaws);
    for ((app, _), error) in &problems {
        error!(name: "certificate_missing", app, error, "the application has no certificate");
    }
    let tls = tls(certificates)?;
    report(&tls, &problems);
    *PROBLEMS.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    Ok(Arc::new(tls))
}

fn warn_of_flaws(certificate: &Certificate) {
    let file = certificate.file().display();
    for flaw in certificate.flaws() {
        warn!(name: "certificate_flawed", %file, problem = %flaw, "flaw in a served certificate");
    }
}

/// From now on clients get these, and are asked for these. Where something is wrong with one, the one of the same file from before
/// stays.
pub(crate) fn replace(tls: &Tls, read: Result<Sources, String>) {
    let served = read.map(|sources| {
        clients::replace(tls, &sources.clients);
        sources.served
    });
    let sources = match served {
        Ok(PemSources::Files(sources)) if !tls.is_local() => sources,
        Ok(sources @ PemSources::Local(_)) if tls.is_local() => {
            match check_served(sources) {
                Ok(CheckedCertificates::Local(_, issuer)) => tls.issue_by(*issuer),
                Ok(CheckedCertificates::Files(..)) => {}
                Err(error) => error!(
                    name: "certificates_not_loaded", error, "cannot load new certificates: keeping the old ones"
                ),
            }
            return;
        }
        Ok(_) => return, // options of the server stay as they were
        Err(error) => {
            error!(
                name: "certificates_not_loaded", error, "cannot load new certificates: keeping the old ones"
            );
            return tls.set_problem(Some(error));
        }
    };
    renew(tls, sources, true);
}

/// What is wrong with files, by what they are.
type Problems = BTreeMap<Identity, String>;
/// The application, and the file.
type Identity = (Option<String>, PathBuf);

/// While they are locked, others change no certificates.
static PROBLEMS: Mutex<Problems> = Mutex::new(Problems::new());

fn report(tls: &Tls, problems: &Problems) {
    let all: Vec<String> = problems.values().cloned().chain(clients::problems()).collect();
    tls.set_problem((!all.is_empty()).then(|| all.join("; ")));
}

/// From now on clients get these. `are_all`: and no others; else those of other files stay.
pub(crate) fn renew(tls: &Tls, sources: Vec<PemSource>, are_all: bool) {
    let mut problems = PROBLEMS.lock().unwrap_or_else(PoisonError::into_inner);
    let before = tls.certificates();
    let mut known = problems.clone();
    if are_all {
        problems.clear();
    }
    let (mut renewed, mut hosts) = (Vec::new(), Vec::new());
    for source in sources {
        let (identity, owner) = (source.identity(), source.owner.clone());
        let old = before.iter().find(|certificate| identity_of(certificate) == identity);
        problems.remove(&identity);
        match source.check().and_then(|new| is_better(&new, old).map(|()| new)) {
            Ok(new) => {
                if old.is_none_or(|old| !old.is_same(&new)) {
                    warn_of_flaws(&new);
                    hosts.extend(new.hosts().iter().cloned());
                }
                renewed.push((identity, Some(new)));
            }
            Err(error) => {
                if known.remove(&identity).as_ref() != Some(&error) {
                    error!(
                        name: "certificates_not_loaded", error, "cannot load the new certificate: keeping the old one"
                    );
                }
                problems.insert(identity.clone(), error);
                renewed.push((identity, old.map(|old| old.clone().of(owner))));
            }
        }
    }
    if !hosts.is_empty() {
        info!(
            name: "certificates_reloaded", hosts = hosts.join(" "), "certificates reloaded: new connections use them"
        );
    }
    if !are_all {
        let is_renewed =
            |kept: &&Certificate| !renewed.iter().any(|(identity, _)| *identity == identity_of(kept));
        let kept = before.iter().filter(is_renewed).map(|kept| (identity_of(kept), Some(kept.clone())));
        renewed.extend(kept.collect::<Vec<_>>());
        // The first is the one for unknown hosts.
        let place = |identity: &Identity| before.iter().position(|old| identity_of(old) == *identity);
        renewed.sort_by_key(|(identity, _)| place(identity).unwrap_or(usize::MAX));
    }
    tls.replace(renewed.into_iter().filter_map(|(_, certificate)| certificate).collect());
    report(tls, &problems);
}

fn identity_of(certificate: &Certificate) -> Identity {
    (certificate.owner().map(|owner| owner.name.clone()), certificate.file().to_owned())
}

/// A certificate that browsers refuse never replaces one they accept.
fn is_better(new: &Certificate, old: Option<&Certificate>) -> Result<(), String> {
    if !new.is_out_of_date() || old.is_none_or(Certificate::is_out_of_date) {
        return Ok(());
    }
    let flaws: Vec<String> = new.flaws().iter().map(ToString::to_string).collect();
    Err(format!("the certificate in {} has changed, but {}", new.file().display(), flaws.join("; ")))
}
