//! When a certificate is valid.

use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// Times at which no certificate is valid any more (9999-12-31 is the last day that one may name, RFC 5280 section 4.1.2.5), or
/// was valid already.
const AFTER_ALL: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(400_000_000_000));
const BEFORE_ALL: UnixTime = UnixTime::since_unix_epoch(Duration::ZERO);

/// The time in which browsers accept a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: SystemTime,
    pub(crate) until: SystemTime,
}

impl Validity {
    /// Of the first certificate in this PEM, if it is for this host.
    pub(crate) fn of(pem: &[u8], host: &str) -> Option<Validity> {
        let der = CertificateDer::from_pem_slice(pem).ok()?;
        let certificate = EndEntityCert::try_from(&der).ok()?;
        certificate.valid_dns_names().any(|name| name.eq_ignore_ascii_case(host)).then_some(())?;
        // What is wrong with the dates is all that is asked: no authority is trusted.
        let at =
            |time| certificate.verify_for_usage(&[], &[], &[], time, KeyUsage::server_auth(), None, None);
        let (Err(Error::CertNotValidYet { not_before, .. }), Err(Error::CertExpired { not_after, .. })) =
            (at(BEFORE_ALL), at(AFTER_ALL))
        else {
            return None;
        };
        let time = |time: UnixTime| SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs());
        Some(Validity { from: time(not_before), until: time(not_after) })
    }
}
