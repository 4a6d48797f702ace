//! The authorities whose certificates an application's clients show (option `tls_client_ca`): read with the certificates of the
//! server, at the start and after HUP.

use super::as_who_could_change;
use highball_config::{App, ClientCertificates, Settings};
use highball_front::{ClientAuthorities, SetupError, Tls};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tracing::{error, info};

/// What an application asks its clients for, and its file of authorities as it was read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClientSource {
    app: String,
    hosts: Vec<String>,
    rule: ClientCertificates,
    /// What the file contains, or why it cannot be read; empty if clients are asked for nothing.
    read: Result<Vec<u8>, String>,
}

/// What clients are asked for, and what is wrong with files of authorities.
#[derive(Debug, Default)]
pub(crate) struct CheckedClients {
    pub(crate) authorities: Vec<ClientAuthorities>,
    pub(crate) problems: Vec<String>,
}

/// What was wrong when the files were read last.
static PROBLEMS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reads the files, if an application has one; those of an application only if `may_look` says so.
pub(super) fn read(settings: &Settings, may_look: &dyn Fn(&Path) -> bool) -> Vec<ClientSource> {
    if !settings.asks_clients() {
        return Vec::new();
    }
    let source = |app: &App| {
        let rule = app.client_certificates.clone();
        let file = rule.authorities.as_deref().filter(|_| rule.are_asked_for());
        let read = match file {
            None => Ok(Vec::new()),
            Some(file) if !may_look(&app.path()) => {
                Err(format!("{} is not read because the file system does not answer", file.display()))
            }
            Some(file) => read_file(file),
        };
        ClientSource { app: app.name.clone(), hosts: app.hosts.clone(), rule, read }
    };
    settings.apps.iter().map(|app| source(app)).collect()
}

fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    as_who_could_change(&[file], || ClientAuthorities::read(file).map_err(|error| error.to_string()))?
}

impl ClientSource {
    fn unread(&self) -> ClientAuthorities {
        ClientAuthorities::new(self.hosts.clone(), self.rule.clone())
    }

    fn check(&self) -> Result<ClientAuthorities, String> {
        let pem = self.read.as_ref().map_err(Clone::clone)?;
        if !self.rule.are_asked_for() {
            return Ok(self.unread());
        }
        self.unread().with(pem).map_err(|error| error.to_string())
    }
}

/// Makes sure of what clients are asked for. Where the file of one application of several is unusable, none of its clients is let in.
///
/// # Errors
/// What is wrong with the file of the only application.
pub(super) fn check(sources: &[ClientSource]) -> Result<CheckedClients, String> {
    let mut checked = CheckedClients::default();
    for source in sources {
        match source.check() {
            Ok(authorities) => checked.authorities.push(authorities),
            Err(error) if sources.len() == 1 => return Err(error),
            Err(error) => {
                checked.authorities.push(source.unread());
                checked.problems.push(format!("{}: {error}", source.app));
            }
        }
    }
    Ok(checked)
}

/// From the start on, clients are asked for these.
pub(super) fn set_up(tls: &Tls, checked: CheckedClients) -> Result<(), SetupError> {
    for problem in &checked.problems {
        error!(
            name: "client_authorities_missing", problem,
            "no client is let in, as the authorities of clients are unknown (tls_client_ca)"
        );
    }
    keep_problems(checked.problems);
    tls.ask_clients(checked.authorities)
}

/// From now on, clients are asked for these. Where a file is unusable, the authorities from before stay.
pub(super) fn replace(tls: &Tls, sources: &[ClientSource]) {
    let before = tls.client_authorities();
    let mut problems = Vec::new();
    let now = sources.iter().map(|source| {
        source.check().unwrap_or_else(|problem| {
            error!(
                name: "client_authorities_not_loaded", app = source.app, problem,
                "cannot load the new authorities of clients: keeping the old ones"
            );
            problems.push(format!("{}: {problem}", source.app));
            let old = before.iter().find(|old| *old.rule() == source.rule);
            old.map_or_else(|| source.unread(), |old| source.unread().with_those_of(old))
        })
    });
    let now: Vec<_> = now.collect();
    keep_problems(problems);
    let is_same = now.len() == before.len() && now.iter().zip(&before).all(|(now, old)| now.is_same(old));
    match tls.ask_clients(now) {
        Ok(()) if !is_same => {
            info!(
                name: "client_authorities_reloaded", "authorities of clients reloaded: new connections use them"
            );
        }
        Ok(()) => {}
        Err(error) => error!(
            name: "client_authorities_not_loaded", %error,
            "cannot load the new authorities of clients: keeping the old ones"
        ),
    }
}

fn keep_problems(problems: Vec<String>) {
    *PROBLEMS.lock().unwrap_or_else(PoisonError::into_inner) = problems;
}

/// What was wrong with the files when they were read last.
pub(super) fn problems() -> Vec<String> {
    PROBLEMS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
