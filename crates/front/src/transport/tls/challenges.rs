//! What an authority is shown that looks whether a name is ours, before it issues a certificate over HTTP (HTTP-01, RFC 8555
//! section 8.3), or in a TLS handshake (TLS-ALPN-01, RFC 8737).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Where the authority looks.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

/// The protocol of clients that look at a certificate and say nothing.
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";

/// A few, for some seconds. Set from any thread.
#[derive(Debug, Default)]
pub struct Challenges {
    /// By their tokens.
    texts: RwLock<HashMap<String, String>>,
    /// By their hosts.
    certificates: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

impl Challenges {
    /// Publishes the text for this token.
    pub fn show(&self, token: &str, text: &str) {
        let mut shown = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        shown.insert(token.to_owned(), text.to_owned());
    }

    /// Withdraws it.
    pub fn take_back(&self, token: &str) {
        self.texts.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    /// The answer for a path, if there is one. Applications may have others.
    pub(crate) fn answer(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = std::str::from_utf8(path.strip_prefix(PATH)?).ok()?;
        let shown = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        shown.get(token).map(|text| text.as_bytes().to_vec())
    }
}

impl Challenges {
    /// Publishes the certificate (PEM, with its key) for this host, to clients that speak [`ACME_TLS`].
    ///
    /// # Errors
    /// The text has no certificate and key that can be used.
    pub fn show_certificate(&self, host: &str, pem: &[u8]) -> Result<(), String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let chain = chain.map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| "it has no key")?;
        let key = super::provider().key_provider.load_private_key(key).map_err(|error| error.to_string())?;
        let mut certificates = self.certificates.write().unwrap_or_else(PoisonError::into_inner);
        certificates.insert(host.to_ascii_lowercase(), Arc::new(CertifiedKey::new(chain, key)));
        Ok(())
    }

    /// Withdraws it.
    pub fn take_back_certificate(&self, host: &str) {
        let mut certificates = self.certificates.write().unwrap_or_else(PoisonError::into_inner);
        certificates.remove(&host.to_ascii_lowercase());
    }

    pub(super) fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        let certificates = self.certificates.read().unwrap_or_else(PoisonError::into_inner);
        certificates.get(&host.to_ascii_lowercase()).map(Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_at_its_place_until_it_is_taken_back() {
        let challenges = Challenges::default();
        challenges.show("token", "token.print");
        let answer = |path: &str| challenges.answer(path.as_bytes());
        assert_eq!(answer("/.well-known/acme-challenge/token").as_deref(), Some(&b"token.print"[..]));
        for path in [
            "/",
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge/token/",
            "/x/.well-known/acme-challenge/token",
        ] {
            assert_eq!(answer(path), None, "{path}");
        }
        challenges.take_back("token");
        assert_eq!(answer("/.well-known/acme-challenge/token"), None);
    }
}
