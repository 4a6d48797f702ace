//! What an authority is shown, so that it knows that a name is ours.

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use zeroize::Zeroizing;

/// What is shown.
#[derive(Debug)]
pub enum Proof {
    /// The answer to `GET /.well-known/acme-challenge/TOKEN` at port 80 (HTTP-01, RFC 8555 section 8.3).
    Text {
        /// The last part of the path.
        token: String,
        /// The body.
        text: String,
    },
    /// A certificate for clients that speak `acme-tls/1` at port 443 (TLS-ALPN-01, RFC 8737).
    Certificate {
        /// The name that they ask for.
        host: String,
        /// The certificate and its key (PEM).
        pem: Zeroizing<String>,
    },
}

impl Proof {
    /// A certificate with this digest of the answer.
    pub(crate) fn certificate(host: &str, digest: &[u8]) -> Result<Proof, rcgen::Error> {
        let mut about = CertificateParams::new(vec![host.to_owned()])?;
        about.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = about.self_signed(&key)?;
        let pem = Zeroizing::new(format!("{}{}", certificate.pem(), key.serialize_pem()));
        Ok(Proof::Certificate { host: host.to_owned(), pem })
    }
}
