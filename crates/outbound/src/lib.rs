//! TLS to other machines, for the few connections that the server opens: to an authority for certificates (`highball-acme`) and to a
//! collector of traces (`highball-otlp`). Each is opened only where the configuration asks for it.

use std::path::Path;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Who vouches for the other machine.
#[derive(Debug, Clone, Copy)]
pub enum Authorities<'a> {
    /// The certificates in this file.
    File(&'a Path),
    /// The certificate authorities that this machine trusts.
    OfMachine,
    /// None: there is no TLS.
    None,
}

/// How TLS is spoken with a machine that these authorities vouch for.
///
/// # Errors
/// There are no usable certificates of authorities.
pub fn client_config(authorities: Authorities<'_>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match authorities {
        Authorities::File(file) => builder.with_root_certificates(roots(file)?),
        Authorities::OfMachine => builder.try_with_platform_verifier().map_err(|error| error.to_string())?,
        Authorities::None => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(config.with_no_client_auth())
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".into());
    }
    Ok(roots)
}

fn provider() -> CryptoProvider {
    #[cfg(feature = "aws-lc")]
    return rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc"))]
    return rustls::crypto::ring::default_provider();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_vouches_for_nothing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let refused = client_config(Authorities::File(file.path())).expect_err("refused");
        assert!(refused.contains("no certificate"), "{refused}");
    }
}
