//! When the authority suggests to renew a certificate (ARI, RFC 9773).

use std::time::{Duration, SystemTime};

use instant_acme::{CertificateIdentifier, RenewalInfo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, Der};

/// The least and the longest time until the authority is asked again.
const LEAST_WAIT: Duration = Duration::from_secs(300);
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);
/// The extension that names the key of the issuer: 2.5.29.35.
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
const EXTENSIONS: u8 = 0xa3;
const KEY_IDENTIFIER: u8 = 0x80;

/// A time between these two, and when to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suggestion {
    pub(crate) window: (SystemTime, SystemTime),
    pub(crate) ask_in: Duration,
}

impl Suggestion {
    pub(crate) fn new(info: &RenewalInfo, ask_in: Duration) -> Self {
        let (start, end) = (info.suggested_window.start.into(), info.suggested_window.end.into());
        Suggestion { window: (start, end), ask_in: ask_in.clamp(LEAST_WAIT, LONGEST_WAIT) }
    }

    /// A time in the window. `jitter` is 0 to 1. A window that ends before it begins is one moment.
    pub(crate) fn time(&self, jitter: f64) -> SystemTime {
        let (start, end) = self.window;
        start + end.duration_since(start).unwrap_or_default().mul_f64(jitter.clamp(0.0, 1.0))
    }
}

/// What the authority calls the first certificate in this PEM: by the key of its issuer and its serial number.
pub(crate) fn identifier(pem: &[u8]) -> Option<CertificateIdentifier<'static>> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    let (serial, key) = serial_and_authority_key(&der)?;
    Some(CertificateIdentifier::new(Der::from_slice(key), Der::from_slice(serial)).into_owned())
}

/// The contents of both, as they are encoded (RFC 5280 section 4.1).
fn serial_and_authority_key(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let certificate = Values(certificate).find(SEQUENCE)?;
    let signed = Values(certificate).find(SEQUENCE)?;
    let mut fields = Values(signed);
    let serial = fields.find(INTEGER)?;
    let extensions = Values(fields.find(EXTENSIONS)?).find(SEQUENCE)?;
    let value = Values(extensions).find_map(|(_, extension)| {
        let mut parts = Values(extension);
        (parts.find(OBJECT)? == AUTHORITY_KEY).then(|| parts.find(OCTETS)).flatten()
    })?;
    Some((serial, Values(Values(value).find(SEQUENCE)?).find(KEY_IDENTIFIER)?))
}

/// Values in DER, one behind the other, as (tag, content).
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// The content of the next one with this tag.
    fn find(&mut self, tag: u8) -> Option<&'a [u8]> {
        Iterator::find(self, |(found, _)| *found == tag).map(|(_, content)| content)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [tag, first, rest @ ..] = self.0 else { return None };
        let (length, rest) = match usize::from(*first) {
            short @ ..=0x7f => (short, rest),
            long @ 0x81..=0x83 => {
                let (length, rest) = rest.split_at_checked(long - 0x80)?;
                (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, Issuer, KeyPair, SerialNumber};

    fn certificate() -> String {
        let key = KeyPair::generate().expect("a key");
        let mut above = CertificateParams::new(vec![]).expect("names");
        above.key_identifier_method = rcgen::KeyIdMethod::PreSpecified(vec![7; 20]);
        let issuer = Issuer::from_params(&above, &key);
        let mut about = CertificateParams::new(vec!["a.test".into()]).expect("names");
        about.serial_number = Some(SerialNumber::from(vec![0x87, 0x65]));
        about.use_authority_key_identifier_extension = true;
        about.signed_by(&key, &issuer).expect("signed").pem()
    }

    #[test]
    fn a_certificate_is_called_by_its_issuers_key_and_its_number() {
        let identifier = identifier(certificate().as_bytes()).expect("both are there");
        assert_eq!(identifier.authority_key_identifier, "BwcHBwcHBwcHBwcHBwcHBwcHBwc");
        assert_eq!(
            identifier.serial, "AIdl",
            "as it is encoded, with the zero before it (RFC 9773 section 4.1)"
        );
    }

    #[test]
    fn what_is_cut_off_or_changed_does_no_harm() {
        let der = CertificateDer::from_pem_slice(certificate().as_bytes()).expect("a certificate").to_vec();
        for length in 0..der.len() {
            assert_eq!(serial_and_authority_key(&der[..length]), None);
        }
        for place in 0..der.len() {
            for value in [0x00, 0x7f, 0x80, 0x83, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[place] = value;
                let _ = serial_and_authority_key(&changed);
            }
        }
    }

    #[test]
    fn a_time_is_in_the_window() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let info = r#"{"suggestedWindow":{"start":"1970-01-01T00:01:40Z","end":"1970-01-01T00:03:20Z"}}"#;
        let info: RenewalInfo = serde_json::from_str(info).expect("an answer");
        let suggestion = Suggestion::new(&info, Duration::ZERO);
        assert_eq!(suggestion.ask_in, LEAST_WAIT);
        assert_eq!([0.0, 0.5, 1.0, 7.0].map(|jitter| suggestion.time(jitter)), [100, 150, 200, 200].map(at));
        let reversed = Suggestion { window: (at(200), at(100)), ..suggestion };
        assert_eq!(reversed.time(0.5), at(200));
    }
}
