//! How clients reach a server: with TLS or without.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, NamedGroup, SignatureScheme, StreamOwned,
};
use serde::Deserialize;

/// What clients speak with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// HTTP/2 over TLS. Answers are checked over HTTP/1.1.
    Http2,
}

impl Protocol {
    /// How an address begins.
    pub fn scheme(self) -> &'static str {
        if self.has_tls() {
            "https"
        } else {
            "http"
        }
    }

    pub(crate) fn has_tls(self) -> bool {
        self != Protocol::Http
    }
}

/// A client's connection.
pub enum Socket {
    /// Over TCP.
    Plain(TcpStream),
    /// Over TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Connects, which may take this long, as may each read and write later.
    ///
    /// # Errors
    /// There is no server, or it does not answer in time.
    pub fn open(address: SocketAddr, protocol: Protocol, at_most: Duration) -> io::Result<Socket> {
        let stream = TcpStream::connect_timeout(&address, at_most)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(at_most))?;
        stream.set_write_timeout(Some(at_most))?;
        if !protocol.has_tls() {
            return Ok(Socket::Plain(stream));
        }
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let client = ClientConnection::new(config()?, name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(client, stream);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Socket::Tls(Box::new(stream)))
    }

    /// Reads a byte if one is there: `WouldBlock` if not.
    pub(crate) fn look(&mut self) -> io::Result<usize> {
        self.tcp().set_nonblocking(true)?;
        let read = self.read(&mut [0; 1]);
        self.tcp().set_nonblocking(false)?;
        read
    }

    /// The connection below TLS.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(stream) => stream,
            Socket::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read(into),
            // Some servers end the connection without an end of TLS.
            Socket::Tls(stream) => match stream.read(into) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.write(bytes),
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.flush(),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}

/// One for all connections: they resume no sessions.
fn config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    // A server that does not know the post-quantum exchange would need a round trip more for a client that begins with it.
    provider.kx_groups.sort_by_key(|group| group.name() == NamedGroup::X25519MLKEM768);
    let provider = Arc::new(provider);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

/// The certificates are made for the measurement, and the servers are on this machine.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
