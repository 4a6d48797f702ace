//! Certificates that clients show: which authorities count (option `tls_client_ca`), and what a client has proved.
//!
//! TLS comes before the request, so the host that a client asks for (SNI) decides what it has to show. Its connection keeps that
//! as a [`ClientProof`], and each request is measured by it (`request::steps::client_certificate`): a request for an
//! application that would have asked for something else is refused.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use highball_config::ClientCertificates;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection};

use super::certificate::{kind_of, read_file, CUT_OFF};
use super::primitives::digest::{digest, SHA256};

/// Largest certificate of a client, in bytes: workers get it with each request.
const MOST_BYTES: usize = 8 * 1024;

/// The bytes that it takes in the head of a request for a worker, at most: in PEM, with the names of its fields.
pub(crate) const MOST_BYTES_IN_HEAD: usize = 2 * MOST_BYTES;

/// The authorities of an application's clients, as their file has them.
#[derive(Debug, Clone)]
pub struct ClientAuthorities {
    hosts: Vec<String>,
    rule: ClientCertificates,
    /// `None`: the file cannot be used, and no client is let in.
    roots: Option<Arc<RootCertStore>>,
    /// What sessions are resumed for: another rule's are not.
    purpose: Vec<u8>,
}

/// Why a file of authorities cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AuthoritiesError {
    #[error("cannot read {}: {error}. {}", .file.display(), remedy_for(.error))]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("{} is empty: write the certificates of your clients' authorities into it", .file.display())]
    Empty { file: PathBuf },
    #[error("{} has no certificate, but {found}: `tls_client_ca` names a file with -----BEGIN CERTIFICATE-----", .file.display())]
    NoCertificate { file: PathBuf, found: &'static str },
    #[error("{} cannot be used: {why}", .file.display())]
    Broken { file: PathBuf, why: String },
}

fn remedy_for(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "Look at the path in `tls_client_ca`",
        io::ErrorKind::PermissionDenied => "Let the user that Highball is started as read it",
        _ => "Name a file that can be read",
    }
}

impl ClientAuthorities {
    /// Reads a file of authorities, with the rights of this process.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(file: &Path) -> Result<Vec<u8>, AuthoritiesError> {
        let read = read_file(file).map_err(|error| AuthoritiesError::Unreadable { file: file.into(), error });
        Ok(read?.0.to_vec())
    }

    /// Returns what clients of these hosts (none: of all that others have not) show, if anything.
    pub fn new(hosts: Vec<String>, rule: ClientCertificates) -> Self {
        ClientAuthorities { hosts, rule, roots: None, purpose: Vec::new() }
    }

    /// The same, with the authorities that the rule's file has.
    ///
    /// # Errors
    /// It has none.
    pub fn with(self, pem: &[u8]) -> Result<Self, AuthoritiesError> {
        let file = self.rule.authorities.clone().unwrap_or_default();
        if pem.trim_ascii().is_empty() {
            return Err(AuthoritiesError::Empty { file });
        }
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let Ok(certificates) = read else {
            return Err(AuthoritiesError::Broken { file, why: CUT_OFF.into() });
        };
        if certificates.is_empty() {
            return Err(AuthoritiesError::NoCertificate { file, found: kind_of(pem) });
        }
        let mut purpose = format!("{:?}", self.rule.auth).into_bytes();
        let mut roots = RootCertStore::empty();
        for (index, certificate) in certificates.into_iter().enumerate() {
            purpose.extend_from_slice(digest(&SHA256, &certificate).as_ref());
            roots.add(certificate).map_err(|error| AuthoritiesError::Broken {
                file: file.clone(),
                why: format!("its {}. certificate cannot be read ({error})", index + 1),
            })?;
        }
        let purpose = digest(&SHA256, &purpose).as_ref().to_vec();
        Ok(ClientAuthorities { roots: Some(Arc::new(roots)), purpose, ..self })
    }

    /// The same, with the authorities that another has for the same rule.
    #[must_use]
    pub fn with_those_of(self, other: &ClientAuthorities) -> Self {
        ClientAuthorities { roots: other.roots.clone(), purpose: other.purpose.clone(), ..self }
    }

    /// What clients show.
    pub fn rule(&self) -> &ClientCertificates {
        &self.rule
    }

    /// Whether both ask the same of the clients of the same hosts.
    pub fn is_same(&self, other: &ClientAuthorities) -> bool {
        (&self.hosts, &self.rule, &self.purpose) == (&other.hosts, &other.rule, &other.purpose)
    }

    /// The number of authorities.
    pub fn number(&self) -> usize {
        self.roots.as_ref().map_or(0, |roots| roots.len())
    }
}

/// What clients are asked for, by the host that they name.
#[derive(Debug, Default)]
pub(super) struct Demands {
    /// By name, in small letters; `None`: its clients are asked for nothing.
    by_host: HashMap<String, Option<Arc<Demand>>>,
    /// For clients that name another host, or none.
    elsewhere: Option<Arc<Demand>>,
    pub(super) authorities: Vec<ClientAuthorities>,
}

/// What the clients of some hosts are asked for.
#[derive(Debug)]
pub(crate) struct Demand {
    rule: ClientCertificates,
    purpose: Vec<u8>,
    /// `None`: no client is let in.
    asking: Option<Asking>,
}

/// How they are asked, and what is made of the answer.
#[derive(Debug)]
struct Asking {
    config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Asking {
    fn of(
        roots: &Arc<RootCertStore>,
        rule: &ClientCertificates,
        purpose: &[u8],
        configure: Configure<'_>,
    ) -> Result<Asking, rustls::Error> {
        let provider = Arc::new(super::provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
        let builder = if rule.are_required() { builder } else { builder.allow_unauthenticated() };
        let verifier = builder.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        let config = Arc::new(configure(Arc::clone(&verifier), purpose)?);
        Ok(Asking { config, verifier })
    }
}

/// Makes a configuration with this verifier, whose sessions are resumed for this purpose alone.
pub(super) type Configure<'a> =
    &'a dyn Fn(Arc<dyn ClientCertVerifier>, &[u8]) -> Result<ServerConfig, rustls::Error>;

impl Demands {
    /// Makes what all applications ask for. What is asked for as before stays, with its sessions.
    pub(super) fn new(
        authorities: Vec<ClientAuthorities>,
        before: &Demands,
        configure: Configure<'_>,
    ) -> Result<Demands, rustls::Error> {
        let mut made: Vec<Arc<Demand>> = before.all().map(Arc::clone).collect();
        let mut demands = Demands::default();
        for of_app in &authorities {
            let is_same =
                |demand: &&Arc<Demand>| demand.rule == of_app.rule && demand.purpose == of_app.purpose;
            let demand = match made.iter().find(is_same) {
                _ if !of_app.rule.are_asked_for() => None,
                Some(demand) => Some(Arc::clone(demand)),
                None => Some(Arc::new(Demand::of(of_app, configure)?)),
            };
            made.extend(demand.clone());
            if of_app.hosts.is_empty() {
                demands.elsewhere = demands.elsewhere.take().or(demand.clone());
            }
            for host in &of_app.hosts {
                let known = demands.by_host.entry(host.clone()).or_default();
                *known = known.take().or(demand.clone());
            }
        }
        Ok(Demands { authorities, ..demands })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Demand>> {
        self.by_host.values().flatten().chain(&self.elsewhere)
    }

    /// Returns what clients are asked for that name this host in their handshake.
    pub(super) fn of(&self, server_name: Option<&str>) -> Option<&Arc<Demand>> {
        let name = server_name.map(|name| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase());
        match name.and_then(|name| self.by_host.get(&name)) {
            Some(of_host) => of_host.as_ref(),
            None => self.elsewhere.as_ref(),
        }
    }
}

impl Demand {
    fn of(authorities: &ClientAuthorities, configure: Configure<'_>) -> Result<Demand, rustls::Error> {
        let ClientAuthorities { rule, roots, purpose, .. } = authorities;
        let asking = roots.as_ref().map(|roots| Asking::of(roots, rule, purpose, configure)).transpose()?;
        Ok(Demand { rule: rule.clone(), purpose: purpose.clone(), asking })
    }

    /// How a client is asked; `None`: it is not let in.
    pub(crate) fn config(&self) -> Option<&Arc<ServerConfig>> {
        self.asking.as_ref().map(|asking| &asking.config)
    }

    /// Makes sure that what the client of a resumed session has shown is still valid.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn verify_again(&self, shown: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let (Some(asking), [own, others @ ..]) = (&self.asking, shown) else { return Ok(()) };
        asking.verifier.verify_client_cert(own, others, UnixTime::now()).map(drop)
    }

    /// What the client of this connection has proved, whose handshake has ended.
    ///
    /// # Errors
    /// Its certificate is too large to be passed on.
    pub(crate) fn proof(&self, connection: &ServerConnection) -> Result<ClientProof, String> {
        let own = connection.peer_certificates().and_then(<[_]>::first);
        if own.is_some_and(|own| own.len() > MOST_BYTES) {
            return Err(format!("its certificate is larger than {MOST_BYTES} bytes"));
        }
        Ok(ClientProof { rule: self.rule.clone(), certificate: own.map(|own| pem(own)) })
    }
}

/// Whether this connection goes on with a session whose client has shown a certificate before.
pub(crate) fn shown_before(connection: &ServerConnection) -> Option<Vec<CertificateDer<'static>>> {
    let is_resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
    let shown = connection.peer_certificates().filter(|_| is_resumed)?;
    Some(shown.to_vec())
}

/// What the client of a connection was asked for, and the certificate that it has shown: it is valid.
#[derive(Debug)]
pub(crate) struct ClientProof {
    rule: ClientCertificates,
    certificate: Option<String>,
}

impl ClientProof {
    /// Whether it is what this rule asks for.
    pub(crate) fn is_for(&self, rule: &ClientCertificates) -> bool {
        self.rule == *rule
    }

    /// The certificate, in PEM.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }
}

/// A proof that is shared by the requests on a connection.
pub(crate) type SharedProof = Rc<ClientProof>;

fn pem(der: &[u8]) -> String {
    const LINE: usize = 64;
    let text = STANDARD.encode(der);
    let mut pem = String::with_capacity(text.len() + text.len() / LINE + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::ClientAuth;

    fn rule(file: &str, auth: ClientAuth) -> ClientCertificates {
        ClientCertificates { authorities: Some(file.into()), auth }
    }

    fn authority(name: &str) -> String {
        pem(&issue(name))
    }

    fn issue(name: &str) -> CertificateDer<'static> {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn demands(all: Vec<ClientAuthorities>, before: &Demands) -> Demands {
        let configure: Configure<'_> = &|verifier, _| {
            let builder = ServerConfig::builder_with_provider(Arc::new(crate::transport::tls::provider()));
            let builder = builder.with_safe_default_protocol_versions()?.with_client_cert_verifier(verifier);
            Ok(builder.with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new())))
        };
        Demands::new(all, before, configure).unwrap()
    }

    #[test]
    fn the_host_decides_what_a_client_shows() {
        let (blog, shop) = (authority("Blog"), authority("Shop"));
        let of = |hosts: &[&str], file: &str, auth, pem: &str| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            ClientAuthorities::new(hosts, rule(file, auth)).with(pem.as_bytes()).unwrap()
        };
        let open = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            ClientAuthorities::new(hosts, ClientCertificates::default())
        };
        let all = vec![
            of(&["blog.test"], "blog.pem", ClientAuth::Required, &blog),
            open(&["open.test"]),
            of(&[], "shop.pem", ClientAuth::Optional, &shop),
        ];
        let now = demands(all.clone(), &Demands::default());
        let file = |name: Option<&str>| {
            now.of(name).map(|demand| demand.rule.authorities.clone().unwrap().display().to_string())
        };
        for name in ["blog.test", "BLOG.test", "blog.test."] {
            assert_eq!(file(Some(name)).as_deref(), Some("blog.pem"), "{name}");
        }
        assert_eq!(file(Some("open.test")), None);
        for name in [Some("other.test"), None] {
            assert_eq!(file(name).as_deref(), Some("shop.pem"));
        }
        let mut changed = all;
        changed[0] = of(&["blog.test"], "blog.pem", ClientAuth::Required, &shop);
        let later = demands(changed, &now);
        let is_kept = |name| Arc::ptr_eq(now.of(Some(name)).unwrap(), later.of(Some(name)).unwrap());
        assert!(is_kept("other.test") && !is_kept("blog.test"), "what has changed begins again");
    }

    #[test]
    fn without_its_authorities_an_application_lets_no_client_in() {
        let unusable = ClientAuthorities::new(Vec::new(), rule("gone.pem", ClientAuth::Optional));
        let demands = demands(vec![unusable], &Demands::default());
        assert!(demands.of(None).is_some_and(|demand| demand.config().is_none()));
    }

    #[test]
    fn files_without_authorities_are_refused() {
        let refusal = |pem: &str| {
            let authorities = ClientAuthorities::new(Vec::new(), rule("ca.pem", ClientAuth::Required));
            authorities.with(pem.as_bytes()).unwrap_err().to_string()
        };
        let cut = &authority("A")[..200];
        for (text, reason) in [
            (" \n", "ca.pem is empty"),
            ("hello", "ca.pem has no certificate, but something else"),
            ("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", "but a private key"),
            (cut, "damaged or cut off"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "its 1. certificate cannot be read",
            ),
        ] {
            assert!(refusal(text).contains(reason), "{}", refusal(text));
        }
    }

    #[test]
    fn a_certificate_is_written_as_pem() {
        let der = issue("A");
        let written = pem(&der);
        assert_eq!(CertificateDer::from_pem_slice(written.as_bytes()).unwrap(), der);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines[0], "-----BEGIN CERTIFICATE-----");
        assert!(lines[1..lines.len() - 2].iter().all(|line| line.len() == 64), "{written}");
    }
}
