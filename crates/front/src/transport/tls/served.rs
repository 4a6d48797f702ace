//! The certificate for a host name.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use highball_link::CertificateReport;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};

use super::authority::Issuer;
use super::certificate::{wildcard_for, Certificate};
use super::challenges::{Challenges, ACME_TLS};

/// The certificates in use.
#[derive(Debug)]
pub(super) struct Served {
    by_host: RwLock<Arc<ByHost>>,
    /// For an authority alone.
    pub(super) challenges: Challenges,
    /// In development, it issues what clients ask for, and there are no others.
    issuer: RwLock<Option<Arc<Issuer>>>,
}

#[derive(Debug)]
struct ByHost {
    all: Vec<Certificate>,
    /// Whether all keys sign in less than 0.1 ms.
    is_quick: bool,
    /// By name, in small letters; `*.example.com` is for every host one label below. Indices of `all`.
    hosts: HashMap<String, Vec<usize>>,
}

impl Served {
    pub(super) fn new(certificates: Vec<Certificate>) -> Self {
        Served {
            by_host: RwLock::new(Arc::new(ByHost::new(certificates))),
            challenges: Challenges::default(),
            issuer: RwLock::default(),
        }
    }

    pub(super) fn replace(&self, certificates: Vec<Certificate>) {
        *self.by_host.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ByHost::new(certificates));
    }

    pub(super) fn issue_by(&self, issuer: Issuer) {
        *self.issuer.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(issuer));
    }

    pub(super) fn issuer(&self) -> Option<Arc<Issuer>> {
        self.issuer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether handshakes take about 0.1 ms.
    pub(super) fn is_quick(&self) -> bool {
        self.now().is_quick && self.issuer().is_none()
    }

    fn now(&self) -> Arc<ByHost> {
        Arc::clone(&self.by_host.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate for this name, in small letters.
    pub(super) fn certificate_for(&self, host: &str) -> Option<Certificate> {
        let now = self.now();
        let found = now.named(host).and_then(|named| named.first().copied());
        found.map(|index| now.all[index].clone())
    }

    /// As [`super::Tls::is_misdirected`]. In development each name has its own certificate, and tools that pass on requests name
    /// another host in them: nothing is misdirected there.
    pub(super) fn is_misdirected(&self, server_name: &str, host: &str) -> bool {
        if self.issuer().is_some() {
            return false;
        }
        let now = self.now();
        let (of_connection, of_host) = (now.for_name(Some(server_name)), now.for_name(Some(host)));
        !of_connection.iter().any(|index| of_host.contains(index) || now.all[*index].serves(host))
    }

    pub(super) fn all(&self) -> Vec<Certificate> {
        self.now().all.clone()
    }

    pub(super) fn report(&self) -> Vec<CertificateReport> {
        let issued = self.issuer().map(|issuer| issuer.report());
        issued.into_iter().chain(self.now().all.iter().map(Certificate::report)).collect()
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|mut offered| offered.any(|protocol| protocol == ACME_TLS)) {
            return self.challenges.certificate(hello.server_name()?);
        }
        if let Some(issuer) = self.issuer() {
            return issuer.certificate_for(hello.server_name());
        }
        self.now().find(hello.server_name(), hello.signature_schemes()).map(|found| Arc::clone(found.key()))
    }
}

impl ByHost {
    fn new(all: Vec<Certificate>) -> Self {
        let mut hosts: HashMap<String, Vec<usize>> = HashMap::new();
        // For its own hosts, an application's goes before the server's.
        let (of_apps, of_server): (Vec<_>, Vec<_>) =
            all.iter().enumerate().partition(|(_, certificate)| certificate.owner().is_some());
        for (index, certificate) in of_apps.into_iter().chain(of_server) {
            for host in certificate.served_hosts() {
                hosts.entry(host).or_default().push(index);
            }
        }
        let is_quick =
            |certificate: &Certificate| certificate.key().key.algorithm() != SignatureAlgorithm::RSA;
        ByHost { is_quick: all.iter().all(is_quick), all, hosts }
    }

    /// Those for this host, in small letters.
    fn named(&self, host: &str) -> Option<&Vec<usize>> {
        self.hosts.get(host).or_else(|| self.hosts.get(&wildcard_for(host)?))
    }

    /// Those for this host, in small letters, else the server's first, as with other web servers, and others for the same hosts with
    /// another kind of key.
    fn for_name(&self, host: Option<&str>) -> Vec<usize> {
        if let Some(named) = host.and_then(|host| self.named(host)) {
            return named.clone();
        }
        let is_of_server = |index: &usize| self.all[*index].owner().is_none();
        let mut of_server = (0..self.all.len()).filter(is_of_server).peekable();
        let hosts = of_server.peek().map(|first| self.all[*first].hosts());
        of_server.filter(|other| Some(self.all[*other].hosts()) == hosts).collect()
    }

    /// The one for this host. Of several (RSA and ECDSA), the first that the client can check.
    fn find(&self, host: Option<&str>, schemes: &[SignatureScheme]) -> Option<&Certificate> {
        let host = host.map(str::to_ascii_lowercase);
        let found = self.for_name(host.as_deref());
        let can_check = |index: &&usize| self.all[**index].key().key.choose_scheme(schemes).is_some();
        found.iter().find(can_check).or(found.first()).map(|index| &self.all[*index])
    }
}
