//! What the server needs to listen: addresses, certificates, a folder for large bodies.

use super::check::{Check, CheckState};
use crate::certificates::{self, local_authority, Checked, CheckedCertificates};
use crate::control::finding::Instance;
use highball_config::{Bind, Settings};
use highball_front as front;

/// Whether it could be listened on.
pub(super) fn address(bind: &Bind, running: &[Instance]) -> Check {
    let is_bound = |instance: &Instance| instance.status.binds.contains(&bind.url());
    match front::bind(bind) {
        Ok(listener) => Check::ok("address", format!("{} is free", listener.address())),
        Err(front::BindError { address, why: front::BindFault::InUse }) if running.iter().any(is_bound) => {
            Check::ok("address", format!("{address} is in use by Highball, for this application"))
        }
        Err(error) => Check {
            name: error.cause().into(),
            state: CheckState::Failed,
            what: error.to_string(),
            at: None,
            remedy: Some(
                "Stop the program that uses it, or choose another address with --port or --bind.".into(),
            ),
            command: Some("ss -ltnp".into()),
        },
    }
}

/// Whether there is room for large request bodies: as the running server has it, or as it looks now.
pub(super) fn spool_folder(settings: &Settings, running: &[Instance]) -> Option<Check> {
    let limits = &settings.limits;
    let of_running = running.iter().find_map(|instance| instance.status.requests.spool_problem.clone());
    let what = of_running.or_else(|| front::spool_problem(&limits.spool_dir, limits.spool_bytes))?;
    let remedy = format!("To have room for uploads, {}.", front::SPOOL_REMEDY);
    Some(Check { state: CheckState::Warning, remedy: Some(remedy), ..Check::ok("small_spool", what) })
}

/// Whether clients with TLS could be served.
pub(super) fn all_certificates(settings: &Settings) -> Vec<Check> {
    if !certificates::are_needed(settings) {
        return Vec::new();
    }
    let failed = |error: String| {
        vec![Check { state: CheckState::Failed, ..Check::ok("certificate", error.to_string()) }]
    };
    if settings.tls.is_local {
        return match local_authority::find() {
            Ok(Some(file)) => {
                let what = format!("{} issues those for localhost; clients have to trust it", file.display());
                vec![Check::ok("certificate", what)]
            }
            Ok(None) => {
                vec![Check::ok("certificate", "the first start makes an authority for localhost".into())]
            }
            Err(error) => failed(error.to_string()),
        };
    }
    match certificates::read(settings, &|_| true)
        .map_err(|error| error.to_string())
        .and_then(certificates::check)
    {
        Ok(Checked { served: CheckedCertificates::Files(certificates, problems), clients }) => {
            let problems = problems.into_values().chain(clients.problems).flat_map(failed);
            let asked = clients.authorities.iter().filter_map(authorities);
            certificates.iter().flat_map(certificate).chain(asked).chain(problems).collect()
        }
        Ok(Checked { served: CheckedCertificates::Local(..), .. }) => Vec::new(),
        Err(error) => failed(error),
    }
}

/// Whose certificates clients have to show.
fn authorities(authorities: &front::ClientAuthorities) -> Option<Check> {
    let file = authorities.rule().authorities.as_ref().filter(|_| authorities.number() > 0)?;
    let what = format!("{} has the authorities of clients ({})", file.display(), authorities.number());
    Some(Check::ok("certificate", what))
}

fn certificate(certificate: &front::Certificate) -> Vec<Check> {
    let file = certificate.file().display();
    if certificate.flaws().is_empty() {
        let what = format!("{file} is for {}", certificate.hosts().join(" "));
        return vec![Check::ok("certificate", what)];
    }
    let flaw = |flaw: &front::Flaw| {
        let is_refused = matches!(flaw, front::Flaw::Expired(_) | front::Flaw::NotYet(_));
        let state = if is_refused { CheckState::Failed } else { CheckState::Warning };
        Check { state, ..Check::ok("certificate", format!("{file}: {flaw}")) }
    };
    certificate.flaws().iter().map(flaw).collect()
}
