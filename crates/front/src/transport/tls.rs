//! TLS: what is offered to clients that connect to an address for HTTPS.
//!
//! In reading order: [`certificate`] (files, and what is wrong with them), [`authority`] (certificates for development), `served`
//! (the certificate for a host name), [`challenges`] (what an authority is shown), [`clients`] (certificates that clients show),
//! `tickets` (by which clients resume sessions), `stream` (the connection after its handshake).

pub mod authority;
pub mod certificate;
pub mod challenges;
pub mod clients;
mod served;
pub(crate) mod stream;
mod tickets;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use highball_link::TlsReport;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ServerSessionMemoryCache};
use rustls::ServerConfig;

use authority::Issuer;
use certificate::Certificate;
use challenges::{Challenges, ACME_TLS};
use clients::{ClientAuthorities, Demand, Demands};
use served::Served;
use tickets::{TicketKeys, Tickets};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

/// What the protocols are called that clients may choose from (RFC 7301), the best first.
const PROTOCOLS: [&[u8]; 3] = [HTTP_2, b"http/1.1", ACME_TLS];
const HTTP_2: &[u8] = b"h2";

/// What a client has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// HTTP/1.1, by name or by naming none.
    Http1,
    Http2,
}

/// Most sessions of clients that know no tickets.
const SESSIONS: usize = 1024;

#[cfg(feature = "aws-lc")]
use rustls::crypto::aws_lc_rs as cryptography;
#[cfg(not(feature = "aws-lc"))]
use rustls::crypto::ring as cryptography;

#[cfg(feature = "aws-lc")]
use aws_lc_rs as primitives;
#[cfg(not(feature = "aws-lc"))]
use ring as primitives;

/// What all connections with TLS share. Certificates can be replaced from any thread, and connections that there are keep
/// theirs.
pub struct Tls {
    config: Arc<ServerConfig>,
    served: Arc<Served>,
    tickets: Arc<TicketKeys>,
    demands: RwLock<Arc<Demands>>,
    most_handshakes: usize,
    handshakes: Handshakes,
    problem: Mutex<Option<String>>,
    obtain: OnceLock<Obtain>,
}

/// Has the certificate for a name obtained, or renewed if it is time. The answer comes when that is done, or has failed.
pub type Obtain = Box<dyn Fn(String) -> oneshot::Receiver<()> + Send + Sync>;

/// How handshakes have ended, since the start.
#[derive(Debug, Default)]
struct Handshakes {
    /// Handshakes that are computed, or wait for it.
    under_way: AtomicUsize,
    completed: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    refused: AtomicU64,
}

/// How a handshake has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handshake {
    Completed,
    /// The client has left, or has nothing in common with this server.
    Failed,
    TimedOut,
    /// Too many were under way.
    TurnedAway,
}

/// One of the handshakes that are computed, or wait for that.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Tls>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.handshakes.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct SetupError(String);

impl From<rustls::Error> for SetupError {
    fn from(error: rustls::Error) -> Self {
        SetupError(error.to_string())
    }
}

pub(crate) fn provider() -> CryptoProvider {
    let mut provider = cryptography::default_provider();
    // All are strong, so the cheapest for this server comes first: AES with 128 bits. (A stable sort: TLS 1.3 stays first.)
    provider.cipher_suites.sort_by_key(|suite| {
        let name = suite.suite().as_str().unwrap_or_default();
        (
            suite.tls13().is_none(),
            ["_128_", "_256_GCM"].iter().position(|part| name.contains(part)).unwrap_or(2),
        )
    });
    provider
}

/// How handshakes are led. Sessions are resumed for this purpose alone.
fn configure(
    served: &Arc<Served>,
    tickets: &Arc<TicketKeys>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    purpose: &[u8],
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(rustls::ALL_VERSIONS)?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(served) as Arc<_>);
    config.ignore_client_order = true;
    config.alpn_protocols = PROTOCOLS.map(Vec::from).to_vec();
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    config.ticketer = Arc::new(Tickets { keys: Arc::clone(tickets), purpose: purpose.to_vec() });
    Ok(config)
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("certificates", &self.certificates()).finish_non_exhaustive()
    }
}

impl Tls {
    /// With these certificates; the first is for clients that name a host which none is for. At most this number
    /// of handshakes is computed, or waits for that, at a time. `tickets` are the [keys](Tls::ticket_keys) of the server before.
    ///
    /// # Errors
    /// The cryptography does not work.
    pub fn new(
        certificates: Vec<Certificate>,
        most_handshakes: usize,
        tickets: Option<&str>,
    ) -> Result<Tls, SetupError> {
        let inherited = tickets.and_then(TicketKeys::inherited);
        let tickets = inherited.map_or_else(TicketKeys::random, Ok);
        let tickets = Arc::new(tickets.map_err(|error| SetupError(error.to_string()))?);
        let served = Arc::new(Served::new(certificates));
        let config = configure(&served, &tickets, None, &[])?;
        Ok(Tls {
            config: Arc::new(config),
            served,
            tickets,
            demands: RwLock::default(),
            most_handshakes,
            handshakes: Handshakes::default(),
            problem: Mutex::default(),
            obtain: OnceLock::new(),
        })
    }

    /// Whether certificates are issued for the names that clients ask for.
    pub fn is_local(&self) -> bool {
        self.served.issuer().is_some()
    }

    /// Whether a handshake takes about 0.1 ms: signatures with keys for RSA take longer, and so does issuing a certificate.
    pub(crate) fn is_quick(&self) -> bool {
        self.served.is_quick()
    }

    /// From now on clients get what this issues for the names that they ask for.
    pub fn issue_by(&self, issuer: Issuer) {
        self.served.issue_by(issuer);
    }

    /// Certificates for names that clients ask for are obtained so.
    pub fn obtain_by(&self, obtain: Obtain) {
        // There is one keeper of certificates in the life of a process.
        let _ = self.obtain.set(obtain);
    }

    /// Has this name's certificate obtained or renewed. `None`: none are obtained.
    pub(crate) fn obtain(&self, host: &str) -> Option<oneshot::Receiver<()>> {
        self.obtain.get().map(|obtain| obtain(host.to_owned()))
    }

    /// The certificate that clients get for this name, in small letters; `None`: none is for it.
    pub(crate) fn certificate_for(&self, host: &str) -> Option<Certificate> {
        self.served.certificate_for(host)
    }

    /// Whether a client that has opened a connection by this name, in small letters, would get another certificate for this host,
    /// in small letters, and its certificate is not for it (RFC 9110 section 7.4).
    pub(crate) fn is_misdirected(&self, server_name: &str, host: &str) -> bool {
        self.served.is_misdirected(server_name, host)
    }

    /// The certificates in use.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.served.all()
    }

    /// From now on these are served.
    pub fn replace(&self, certificates: Vec<Certificate>) {
        self.served.replace(certificates);
    }

    /// From now on clients are asked for certificates of these authorities.
    ///
    /// # Errors
    /// The cryptography does not work.
    pub fn ask_clients(&self, authorities: Vec<ClientAuthorities>) -> Result<(), SetupError> {
        let configure: clients::Configure<'_> =
            &|verifier, purpose| configure(&self.served, &self.tickets, Some(verifier), purpose);
        let demands = Demands::new(authorities, &self.demands(), configure)?;
        *self.demands.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(demands);
        Ok(())
    }

    /// The authorities of which clients are asked for certificates.
    pub fn client_authorities(&self) -> Vec<ClientAuthorities> {
        self.demands().authorities.clone()
    }

    /// What a client that begins so is asked for; `None`: nothing. An authority that looks whether a name is ours shows nothing, and
    /// gets to no application.
    pub(crate) fn demand_of(&self, hello: &ClientHello<'_>) -> Option<Arc<Demand>> {
        let demands = self.demands();
        let found = demands.of(hello.server_name())?;
        let is_authority =
            hello.alpn().is_some_and(|mut offered| offered.any(|protocol| protocol == ACME_TLS));
        (!is_authority).then(|| Arc::clone(found))
    }

    fn demands(&self) -> Arc<Demands> {
        Arc::clone(&self.demands.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why newer files are not used, for reports; `None`: they are.
    pub fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// The keys of session tickets, for the server that takes over in a hot restart.
    pub fn ticket_keys(&self) -> Zeroizing<String> {
        self.tickets.text()
    }

    pub(crate) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }

    /// A handshake is to be computed. `None`: too many are.
    pub(crate) fn compute(self: &Arc<Self>) -> Option<UnderWay> {
        let under_way = UnderWay(Arc::clone(self));
        let before = self.handshakes.under_way.fetch_add(1, Ordering::Relaxed);
        (before < self.most_handshakes).then_some(under_way)
    }

    pub(crate) fn count(&self, ended: Handshake) {
        let Handshakes { completed, failed, timed_out, refused, .. } = &self.handshakes;
        let count = match ended {
            Handshake::Completed => completed,
            Handshake::Failed => failed,
            Handshake::TimedOut => timed_out,
            Handshake::TurnedAway => refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// What an authority is shown that looks whether a name is ours.
    pub fn challenges(&self) -> &Challenges {
        &self.served.challenges
    }

    /// How things are.
    pub fn report(&self) -> TlsReport {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TlsReport {
            certificates: self.served.report(),
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            handshakes: count(&self.handshakes.completed),
            failed_handshakes: count(&self.handshakes.failed),
            slow_handshakes: count(&self.handshakes.timed_out),
            refused_handshakes: count(&self.handshakes.refused),
            domains: Vec::new(), // the binary keeps those
        }
    }
}
