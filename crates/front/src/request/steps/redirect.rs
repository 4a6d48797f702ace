//! Redirects of an application: from its other hosts to the canonical one (option `canonical_host`), and from paths that have
//! moved (`redirects`). One response does both, and leads to HTTPS as well.

use std::ops::ControlFlow::{Break, Continue};

use highball_config::App;

use crate::basic_auth::is_open;
use crate::http_syntax::write_number;
use crate::https::Https;
use crate::location;
use crate::message::request_head::Head;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Status for another host: clients repeat the request with its method and body.
const OTHER_HOST: u16 = 308;

/// The target of a redirect.
pub(super) struct Moved {
    pub(super) status: u16,
    to: Place,
    path: Vec<u8>,
    query: Vec<u8>,
}

enum Place {
    /// The requested host.
    SameHost,
    /// The application's canonical host.
    Host(String),
    /// Another site, with its scheme.
    Site(String),
}

/// Answers a request that should go elsewhere.
pub(in crate::request) fn answer(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    match routed.app.settings().redirects.are_any() {
        true => redirect(transaction, routed),
        false => Continue(()),
    }
}

#[inline(never)]
fn redirect(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let head = transaction.head.with(routed.text());
    match moved(&routed.app.settings(), head, routed.prefix_bytes) {
        Some(moved) => Break(send(&moved, transaction, routed)),
        None => Continue(()),
    }
}

fn send(moved: &Moved, transaction: &mut Transaction, routed: Routed<'_>) -> Decision {
    let to = moved.over_same_scheme(transaction.head.with(routed.text()), routed.arrived.client.peer.is_tls);
    transaction.answer_whole(moved.status, b"", |fields| fields.add(b"location", &to))
}

/// Returns where the application's options send this request, if anywhere. Probes and challenges of authorities are not
/// redirected.
pub(super) fn moved(app: &App, head: Head<'_>, prefix_bytes: usize) -> Option<Moved> {
    let redirects = &app.redirects;
    if !redirects.are_any() || head.path() == b"*" || is_open(head, prefix_bytes, &app.process.probe_path) {
        return None;
    }
    let canonical = redirects.canonical_host.as_ref().filter(|host| is_other(host, head)).cloned();
    let to = canonical.map_or(Place::SameHost, Place::Host);
    let path = Some(&head.path()[prefix_bytes..]).filter(|path| !path.is_empty()).unwrap_or(b"/");
    if let Some(redirect) = redirects.of(path) {
        let target = redirect.target(path);
        let (path, query) = split(&target);
        if !redirect.host().is_some_and(|host| is_here(host, path, head)) {
            let prefix = if redirect.site.is_some() { "" } else { app.prefix.as_str() };
            let path = [prefix.as_bytes(), path].concat();
            let to = redirect.site.clone().map_or(to, Place::Site);
            return Some(Moved { status: redirect.status, to, path, query: joined(query, head.query()) });
        }
    }
    let here = || (head.path().to_vec(), head.query().to_vec());
    matches!(to, Place::Host(_)).then(here).map(|(path, query)| Moved { status: OTHER_HOST, to, path, query })
}

/// Returns whether the client names a host other than this one. A client that names none would not name it after a redirect
/// either.
fn is_other(canonical: &str, head: Head<'_>) -> bool {
    let asked = head.host_name().map(|name| name.strip_suffix(b".").unwrap_or(name));
    asked.is_some_and(|asked| !asked.eq_ignore_ascii_case(canonical.as_bytes()))
}

/// Returns whether a redirect leads to where the client already is, whatever the scheme: it would be a circle.
fn is_here(host: &str, path: &[u8], head: Head<'_>) -> bool {
    let asked = head.host().map(|asked| asked.whole(head.text));
    path == head.path() && asked.is_some_and(|asked| asked.eq_ignore_ascii_case(host.as_bytes()))
}

fn split(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, b""),
    }
}

/// The query of the target, followed by the request's.
fn joined(own: &[u8], asked: &[u8]) -> Vec<u8> {
    match (own.is_empty(), asked.is_empty()) {
        (false, false) => [own, asked].join(&b'&'),
        _ => [own, asked].concat(),
    }
}

impl Moved {
    /// Returns the address for a client that should use HTTPS from now on.
    pub(super) fn over_https(&self, https: &Https, head: Head<'_>, server_name: &str) -> Vec<u8> {
        let origin = match &self.to {
            Place::SameHost => https.origin_of(head, head.host_name().unwrap_or(server_name.as_bytes())),
            Place::Host(host) => https.origin_of(head, host.as_bytes()),
            Place::Site(site) => site.clone().into_bytes(),
        };
        location::at(&origin, &self.path, &self.query)
    }

    /// Returns the address for a client that uses the right scheme. Within a host, the address names no host, so a forged
    /// host leads nowhere.
    fn over_same_scheme(&self, head: Head<'_>, is_tls: bool) -> Vec<u8> {
        let mut origin = match &self.to {
            Place::SameHost => return location::of_same_origin(&self.path, &self.query),
            Place::Host(host) => format!("http{}://{host}", if is_tls { "s" } else { "" }).into_bytes(),
            Place::Site(site) => site.clone().into_bytes(),
        };
        if let (Place::Host(_), Some(port)) = (&self.to, head.host().and_then(|host| host.port)) {
            origin.push(b':');
            write_number(u64::from(port), &mut origin);
        }
        location::at(&origin, &self.path, &self.query)
    }
}
