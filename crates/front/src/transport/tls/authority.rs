//! Certificates for development: an authority of one user, for names of this machine alone.
//!
//! In reading order: [`Authority`] (what the user trusts, from files), [`Delegate`] (which it issues for one start of the
//! server), [`Issuer`] (which issues certificates for the names that clients ask for). So a server that runs does not have the
//! authority's key.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use highball_link::CertificateReport;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints, SanType, SerialNumber,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::sign::{CertifiedKey, SigningKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webpki::{anchor_from_trusted_cert, EndEntityCert, KeyUsage};
use zeroize::Zeroizing;

use super::certificate::expiry;

const DAY: Duration = Duration::from_secs(86_400);
/// A certificate counts from a day before it was issued: clocks of containers and virtual machines differ.
const LEEWAY: Duration = DAY;
const AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 86_400);
/// For one start of the server, and the certificates that it issues. Apple's systems accept 825 days.
const DELEGATE_LIFE: Duration = Duration::from_secs(397 * 86_400);

/// The name of this machine, below which all others are for which there are certificates (RFC 6761 section 6.3).
const LOCALHOST: &str = "localhost";

/// Most certificates that are kept; beyond it, all of them are issued again.
const MOST_KEPT: usize = 256;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The cryptography does not work.
    #[error("certificates for development cannot be issued: {0}")]
    Issuing(#[from] rcgen::Error),
    /// A file is not what it has to be.
    #[error("it is damaged, or not one of Highball's")]
    Damaged,
    /// It is past its last day.
    #[error("it has expired on {}", httpdate::fmt_http_date(*.0))]
    Expired(SystemTime),
}

/// An authority that its user has clients trust. Its certificate permits these clients no other names than those of this
/// machine, so a stolen key issues none that they accept.
#[derive(Debug)]
pub struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// The two files of an authority, PEM.
pub struct AuthorityFiles {
    /// What clients are to trust.
    pub certificate: String,
    /// For its user alone.
    pub key: Zeroizing<String>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// The cryptography does not work.
    pub fn create() -> Result<AuthorityFiles, AuthorityError> {
        let key = new_key()?;
        let mut params = authority_params(&key, 1);
        set_dates(&mut params, SystemTime::now() + AUTHORITY_LIFE);
        let certificate = params.self_signed(&key)?;
        Ok(AuthorityFiles {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: Zeroizing::new(pem("PRIVATE KEY", key.serialized_der())),
        })
    }

    /// The authority of these files.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Authority, AuthorityError> {
        let damaged = |_| AuthorityError::Damaged;
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(damaged)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(key).map_err(damaged)?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256);
        let authority = Authority { certificate, key: key.map_err(|_| AuthorityError::Damaged)? };
        let expires = authority.expires()?;
        if expires <= SystemTime::now() {
            return Err(AuthorityError::Expired(expires));
        }
        Ok(authority)
    }

    /// Its last day.
    fn expires(&self) -> Result<SystemTime, AuthorityError> {
        let parsed = EndEntityCert::try_from(&self.certificate).map_err(|_| AuthorityError::Damaged)?;
        Ok(expiry(&parsed))
    }

    /// What a server issues certificates with. `file`: the authority's certificate, for reports.
    ///
    /// # Errors
    /// The files do not belong together, or the cryptography does not work.
    pub fn delegate(&self, file: PathBuf) -> Result<Delegate, AuthorityError> {
        let key = new_key()?;
        let expires = self.expires()?.min(SystemTime::now() + DELEGATE_LIFE);
        let mut params = authority_params(&key, 0);
        params.use_authority_key_identifier_extension = true;
        set_dates(&mut params, expires);
        let issuer = rcgen::Issuer::new(authority_params(&self.key, 1), &self.key);
        let certificate = params.signed_by(&key, &issuer)?;
        let delegate = Delegate {
            file,
            certificate: certificate.der().to_vec(),
            key: Zeroizing::new(key.serialize_der()),
            expires,
        };
        self.accepts(&Issuer::new(&delegate)?)?;
        Ok(delegate)
    }

    /// Whether clients that trust this authority accept what is issued in its name.
    fn accepts(&self, issuer: &Issuer) -> Result<(), AuthorityError> {
        let check = || -> Result<(), webpki::Error> {
            let anchor = anchor_from_trusted_cert(&self.certificate)?;
            let (chain, algorithms) =
                (&issuer.usual.cert, super::provider().signature_verification_algorithms);
            let leaf = EndEntityCert::try_from(&chain[0])?;
            let usage = KeyUsage::server_auth();
            leaf.verify_for_usage(
                algorithms.all,
                &[anchor],
                &chain[1..],
                UnixTime::now(),
                usage,
                None,
                None,
            )?;
            Ok(())
        };
        check().map_err(|_| AuthorityError::Damaged)
    }
}

/// An authority below the user's, for one server.
#[derive(Serialize, Deserialize)]
pub struct Delegate {
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    expires: SystemTime,
}

/// A key is in no log.
impl std::fmt::Debug for Delegate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(formatter)
    }
}

/// Issues a certificate for each name of this machine that clients ask for. All have the same key, so that issuing one takes a
/// signature, as a handshake does.
#[derive(Debug)]
pub struct Issuer {
    file: PathBuf,
    expires: SystemTime,
    authority: CertificateDer<'static>,
    params: CertificateParams,
    authority_key: KeyPair,
    key: KeyPair,
    signing: Arc<dyn SigningKey>,
    /// For clients that name no host, and for the addresses of this machine.
    usual: Arc<CertifiedKey>,
    /// By name, in small letters.
    kept: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Issuer {
    /// By what the authority has issued for this server.
    ///
    /// # Errors
    /// The cryptography does not work.
    pub fn new(delegate: &Delegate) -> Result<Issuer, AuthorityError> {
        let authority_key = PrivatePkcs8KeyDer::from(delegate.key.as_slice());
        let authority_key = KeyPair::from_pkcs8_der_and_sign_algo(&authority_key, &PKCS_ECDSA_P256_SHA256)?;
        let key = new_key()?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing = super::provider().key_provider.load_private_key(private);
        let signing = signing.map_err(|_| AuthorityError::Damaged)?;
        let authority = CertificateDer::from(delegate.certificate.clone());
        let params = authority_params(&authority_key, 0);
        let usual = Arc::new(CertifiedKey::new(vec![authority.clone()], Arc::clone(&signing)));
        let (file, expires) = (delegate.file.clone(), delegate.expires);
        let kept = Mutex::default();
        let mut issuer =
            Issuer { file, expires, authority, params, authority_key, key, signing, usual, kept };
        let names = vec![
            SanType::DnsName(LOCALHOST.try_into()?),
            SanType::IpAddress(Ipv4Addr::LOCALHOST.into()),
            SanType::IpAddress(Ipv6Addr::LOCALHOST.into()),
        ];
        issuer.usual = Arc::new(issuer.issue(names)?);
        Ok(issuer)
    }

    /// The certificate for clients that ask for this host.
    pub(super) fn certificate_for(&self, host: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let Some(host) = host.filter(|host| is_below_localhost(host)).map(str::to_ascii_lowercase) else {
            return Some(Arc::clone(&self.usual));
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&host) {
            return Some(Arc::clone(found));
        }
        let name = SanType::DnsName(host.as_str().try_into().ok()?);
        let issued = self.issue(vec![name]).map_err(|error| {
            tracing::error!(
                name: "local_certificate_not_issued", %error, host, "no certificate could be issued"
            );
        });
        let issued = Arc::new(issued.ok()?);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(host, Arc::clone(&issued));
        Some(issued)
    }

    fn issue(&self, names: Vec<SanType>) -> Result<CertifiedKey, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Highball development certificate");
        params.subject_alt_names = names;
        // By default the key's, which all have. Some clients refuse two certificates with one number.
        params.serial_number = Some(serial_number()?);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_dates(&mut params, self.expires);
        let issuer = rcgen::Issuer::from_params(&self.params, &self.authority_key);
        let certificate = params.signed_by(&self.key, &issuer)?;
        let chain = vec![certificate.der().clone(), self.authority.clone()];
        Ok(CertifiedKey::new(chain, Arc::clone(&self.signing)))
    }

    pub(super) fn report(&self) -> CertificateReport {
        let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let names = [LOCALHOST.to_owned(), format!("*.{LOCALHOST}")];
        CertificateReport {
            file: self.file.display().to_string(),
            hosts: names.into_iter().chain(addresses.map(|address| address.to_string())).collect(),
            expires_at: since_1970(self.expires).as_secs(),
        }
    }
}

fn is_below_localhost(host: &str) -> bool {
    let above =
        host.len().checked_sub(LOCALHOST.len() + 1).filter(|at| *at > 0).and_then(|at| host.get(at..));
    above.is_some_and(|end| end.starts_with('.') && end[1..].eq_ignore_ascii_case(LOCALHOST))
}

/// The parameters of an authority with this key, which can be made again from it, but for its dates. `below`: the number of authorities
/// that may stand between it and a server's certificate.
fn authority_params(key: &KeyPair, below: u8) -> CertificateParams {
    let number: String =
        Sha256::digest(key.public_key_raw())[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Highball");
    params.distinguished_name.push(DnType::CommonName, format!("Highball development authority {number}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![
            GeneralSubtree::DnsName(LOCALHOST.into()),
            GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix(Ipv4Addr::LOCALHOST.octets(), 32)),
            GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix(Ipv6Addr::LOCALHOST.octets(), 128)),
        ],
        excluded_subtrees: Vec::new(),
    });
    params
}

fn new_key() -> Result<KeyPair, AuthorityError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

fn serial_number() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = [0; 16];
    let filled = super::provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| AuthorityError::Issuing(rcgen::Error::RingUnspecified))?;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; // positive, and of the same length always
    Ok(SerialNumber::from_slice(&bytes))
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// From now on, until then. Certificates have whole seconds.
fn set_dates(params: &mut CertificateParams, until: SystemTime) {
    let date = |time| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(since_1970(time).as_secs());
    (params.not_before, params.not_after) = (date(SystemTime::now() - LEEWAY), date(until));
}

/// The text of a file with one thing in it (RFC 7468).
fn pem(label: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const BYTES_OF_LINE: usize = 48;
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in bytes.chunks(BYTES_OF_LINE) {
        for three in line.chunks(3) {
            let bits = three.iter().fold(0, |bits, byte| (bits << 8) | u32::from(*byte));
            let bits = bits << (8 * (3 - three.len()));
            let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]);
            text.extend((0..4).map(|place| if place <= three.len() { digit(place) } else { '=' }));
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority() -> Authority {
        let files = Authority::create().unwrap();
        Authority::read(files.certificate.as_bytes(), files.key.as_bytes()).unwrap()
    }

    fn issuer(authority: &Authority) -> Issuer {
        Issuer::new(&authority.delegate("authority.pem".into()).unwrap()).unwrap()
    }

    /// Whether a client that trusts the authority accepts this for a host.
    fn is_accepted(authority: &Authority, issued: &CertifiedKey, host: &str) -> bool {
        let anchors = [anchor_from_trusted_cert(&authority.certificate).unwrap()];
        let leaf = EndEntityCert::try_from(&issued.cert[0]).unwrap();
        let algorithms = super::super::provider().signature_verification_algorithms.all;
        let (usage, now) = (KeyUsage::server_auth(), UnixTime::now());
        let path = leaf.verify_for_usage(algorithms, &anchors, &issued.cert[1..], now, usage, None, None);
        path.is_ok() && leaf.verify_is_valid_for_subject_name(&host.try_into().unwrap()).is_ok()
    }

    #[test]
    fn names_of_this_machine_get_certificates() {
        let authority = authority();
        let issuer = issuer(&authority);
        let served = |host: Option<&str>| issuer.certificate_for(host).unwrap();
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert!(is_accepted(&authority, &served(None), host), "{host}");
        }
        for host in ["blog.localhost", "Acme.Blog.LOCALHOST"] {
            assert!(is_accepted(&authority, &served(Some(host)), host), "{host}");
        }
        assert!(!is_accepted(&authority, &served(Some("blog.localhost")), "shop.localhost"));
        assert!(Arc::ptr_eq(&served(Some("blog.localhost")), &served(Some("BLOG.localhost"))));
        assert_ne!(served(Some("a.localhost")).cert[0], served(Some("b.localhost")).cert[0]);
    }

    #[test]
    fn no_other_names_get_one() {
        let issuer = issuer(&authority());
        for host in ["example.com", "localhost.example.com", "notlocalhost", ".localhost.", "localhost"] {
            assert!(Arc::ptr_eq(&issuer.certificate_for(Some(host)).unwrap(), &issuer.usual), "{host}");
        }
    }

    /// With the key of the authority, or of a server.
    #[test]
    fn other_names_are_not_accepted() {
        let authority = authority();
        let issuer = issuer(&authority);
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        for host in ["example.com", "localhost.example.com"] {
            assert!(!is_accepted(&authority, &issuer.issue(vec![dns(host)]).unwrap(), host), "{host}");
        }
        let other = SanType::IpAddress(Ipv4Addr::new(192, 168, 0, 1).into());
        assert!(!is_accepted(&authority, &issuer.issue(vec![other]).unwrap(), "192.168.0.1"));
        assert!(is_accepted(&authority, &issuer.issue(vec![dns("x.localhost")]).unwrap(), "x.localhost"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let issuer = issuer(&authority());
        for number in 0..=MOST_KEPT {
            issuer.certificate_for(Some(&format!("{number}.localhost"))).unwrap();
        }
        assert!(issuer.kept.lock().unwrap().len() <= MOST_KEPT);
    }

    #[test]
    fn files_that_cannot_be_used() {
        let (one, other) = (Authority::create().unwrap(), Authority::create().unwrap());
        let read = |certificate: &str, key: &str| {
            Authority::read(certificate.as_bytes(), key.as_bytes())?.delegate(PathBuf::new()).map(drop)
        };
        read(&one.certificate, &one.key).unwrap();
        assert!(matches!(read(&one.certificate, &other.key), Err(AuthorityError::Damaged)));
        assert!(matches!(read("", &one.key), Err(AuthorityError::Damaged)));
        assert!(matches!(read(&one.certificate, &one.key[..100]), Err(AuthorityError::Damaged)));
        let key = new_key().unwrap();
        let mut params = authority_params(&key, 1);
        set_dates(&mut params, SystemTime::now() - DAY);
        let old = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        let key = pem("PRIVATE KEY", key.serialized_der());
        assert!(matches!(read(&old, &key), Err(AuthorityError::Expired(_))));
    }

    #[test]
    fn a_line_has_64_digits() {
        let text = pem("X", &[0xff; 50]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["-----BEGIN X-----", &"/".repeat(64), "//8=", "-----END X-----"]);
    }
}
