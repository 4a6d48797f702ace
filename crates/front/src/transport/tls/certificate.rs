//! A certificate and its key, as files have them: read, and checked before clients get it.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_config::CertificateFiles;
use highball_link::CertificateReport;
use highball_tenant::OpenError;
use rustix::fs::OFlags;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use webpki::{EndEntityCert, KeyUsage};
use zeroize::Zeroizing;

/// The largest file that may be a certificate or a key.
const MOST_BYTES: u64 = 1 << 20;

/// A time at which no certificate is valid (9999-12-31, RFC 5280 section 4.1.2.5, is the last day that one may name).
const NEVER: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(400_000_000_000));

/// What the two files contain.
#[derive(Serialize, Deserialize)]
pub struct Pem {
    files: CertificateFiles,
    /// With the key, where one file has both.
    certificate: Zeroizing<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
    /// Whether all users of this machine can read the key.
    is_key_public: bool,
}

/// A key is in no log.
impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(formatter)
    }
}

/// The application that a certificate belongs to: others' hosts never get it, whatever names are in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateOwner {
    /// The application's name.
    pub name: String,
    /// Its host names, in small letters.
    pub hosts: Vec<String>,
}

/// A certificate that clients can get.
#[derive(Debug, Clone)]
pub struct Certificate {
    file: PathBuf,
    /// `None`: the server.
    owner: Option<CertificateOwner>,
    key: Arc<CertifiedKey>,
    hosts: Vec<String>,
    expires: SystemTime,
    /// What is not right, although it can be used.
    flaws: Vec<Flaw>,
}

/// Why a certificate cannot be used: which file, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CertificateError {
    #[error("cannot read {}: {error}. {}", .file.display(), remedy_for(.error))]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("{} is empty: write the certificate and its key again", .file.display())]
    Empty { file: PathBuf },
    #[error("{} has no certificate, but {found}: `tls_certificate` names a file with -----BEGIN CERTIFICATE-----", .file.display())]
    NoCertificate { file: PathBuf, found: &'static str },
    #[error("{} has no private key, but {found}: `tls_key` names a file with -----BEGIN PRIVATE KEY-----", .file.display())]
    NoKey { file: PathBuf, found: &'static str },
    #[error("{0} has a key that is encrypted with a passphrase, which a server cannot ask for: write it without one (openssl pkey -in {0} -out new.key), in a file that only the server can read", .file.display())]
    EncryptedKey { file: PathBuf },
    #[error("{} cannot be used: {why}", .file.display())]
    Broken { file: PathBuf, why: String },
    #[error("{} is not the key of {}: each was written for another one. `openssl x509 -noout -pubkey -in CERTIFICATE` and `openssl pkey -pubout -in KEY` print the same for a pair", .key.display(), .certificate.display())]
    OtherKey { certificate: PathBuf, key: PathBuf },
    #[error("{} does not begin with the server's certificate, which is number {place} in the file: put it first, then the certificates that lead to its authority", .file.display())]
    WrongOrder { file: PathBuf, place: usize },
}

/// What is not right with a certificate that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// It is no longer valid.
    Expired(SystemTime),
    /// It is not valid yet.
    NotYet(SystemTime),
    /// A certificate does not follow the certificate that it was issued for. It is at this place, counted from 1.
    Unordered(usize),
    /// All users of this machine can read the key in this file.
    PublicKey(PathBuf),
    /// It is for none of the hosts of its application.
    OtherHosts(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = |time: &SystemTime| httpdate::fmt_http_date(*time);
        match self {
            Flaw::Expired(time) => {
                write!(formatter, "it has expired on {}, and browsers refuse it: renew it", date(time))
            }
            Flaw::NotYet(time) => write!(
                formatter,
                "it is not valid before {}, and browsers refuse it: wait, or set this machine's clock",
                date(time)
            ),
            Flaw::Unordered(place) => write!(
                formatter,
                "its {place}. certificate has not issued the one before it, and some clients will not find the way to its authority: \
                 put each certificate after the certificate that it issued"
            ),
            Flaw::PublicKey(file) => write!(
                formatter,
                "all users of this machine can read its key: chmod 600 {}",
                file.display()
            ),
            Flaw::OtherHosts(app) => write!(
                formatter,
                "it is for none of the hosts of {app}, and no other application may use it: give the application a host that it is for, \
                 or another certificate"
            ),
        }
    }
}

fn remedy_for(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "Look at the path in `tls_certificate` and `tls_key`",
        io::ErrorKind::PermissionDenied => {
            "Let the user that Highball is started as read it (and for a key, no other user)"
        }
        _ => "Name a file that can be read",
    }
}

impl Pem {
    /// Reads the files, with the rights of this process.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(files: &CertificateFiles) -> Result<Pem, CertificateError> {
        let (certificate, _) = read(&files.certificate)?;
        let (key, is_key_public) = read(&files.key)?;
        Ok(Pem { files: files.clone(), certificate, key, is_key_public })
    }

    /// Makes sure of what clients will get.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn check(&self) -> Result<Certificate, CertificateError> {
        let CertificateFiles { certificate: file, key: key_file } = &self.files;
        let chain = self.chain()?;
        let key = self.private_key()?;
        let broken = |file: &Path, why: String| CertificateError::Broken { file: file.into(), why };
        let key = super::provider().key_provider.load_private_key(key);
        let key = key.map_err(|error| {
            broken(key_file, format!("its private key is not of a kind that TLS uses ({error})"))
        })?;
        let public = key.public_key();
        let is_for = |der: &CertificateDer<'_>| {
            let parsed = EndEntityCert::try_from(der).ok();
            parsed.is_some_and(|parsed| {
                public.as_ref().is_some_and(|key| parsed.subject_public_key_info() == *key)
            })
        };
        let first = EndEntityCert::try_from(&chain[0])
            .map_err(|error| broken(file, format!("its first certificate cannot be read ({error})")))?;
        if public.is_some() && !is_for(&chain[0]) {
            return Err(match chain.iter().position(is_for) {
                Some(index) => CertificateError::WrongOrder { file: file.clone(), place: index + 1 },
                None => CertificateError::OtherKey { certificate: file.clone(), key: key_file.clone() },
            });
        }
        let mut flaws = Vec::from_iter(flaw_of_dates(&first));
        flaws.extend(flaw_of_order(&chain));
        flaws.extend(self.is_key_public.then(|| Flaw::PublicKey(key_file.clone())));
        let hosts = first.valid_dns_names().map(str::to_owned).collect();
        let expires = expiry(&first);
        Ok(Certificate {
            file: file.clone(),
            owner: None,
            key: Arc::new(CertifiedKey::new(chain, key)),
            hosts,
            expires,
            flaws,
        })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
        let file = || self.files.certificate.clone();
        if self.certificate.trim_ascii().is_empty() {
            return Err(CertificateError::Empty { file: file() });
        }
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        match read {
            Ok(chain) if chain.is_empty() => {
                Err(CertificateError::NoCertificate { file: file(), found: kind_of(&self.certificate) })
            }
            Ok(chain) => Ok(chain),
            Err(_) => Err(CertificateError::Broken { file: file(), why: CUT_OFF.into() }),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, CertificateError> {
        let file = || self.files.key.clone();
        if self.key.trim_ascii().is_empty() {
            return Err(CertificateError::Empty { file: file() });
        }
        if has(&self.key, b"ENCRYPTED PRIVATE KEY-----") || has(&self.key, b"Proc-Type: 4,ENCRYPTED") {
            return Err(CertificateError::EncryptedKey { file: file() });
        }
        PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => {
                CertificateError::NoKey { file: file(), found: kind_of(&self.key) }
            }
            // Its words may have bytes of the key.
            _ => CertificateError::Broken { file: file(), why: CUT_OFF.into() },
        })
    }
}

pub(super) const CUT_OFF: &str =
    "it is damaged or cut off (an END line is missing, or the text before it is not base64); copy it again";

/// What else a file contains, for people.
pub(super) fn kind_of(bytes: &[u8]) -> &'static str {
    match () {
        () if has(bytes, b"PRIVATE KEY-----") => "a private key",
        () if has(bytes, b"-----BEGIN CERTIFICATE REQUEST") => {
            "a certificate request, which an authority has to sign"
        }
        () if has(bytes, b"-----BEGIN CERTIFICATE") => "a certificate",
        () if has(bytes, b"-----BEGIN ") => "something else in PEM",
        () if bytes.first() == Some(&0x30) => {
            "DER: `openssl x509 -inform der` and `openssl pkey -inform der` make PEM of it"
        }
        () => "something else",
    }
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

/// The file, and whether all users can read it.
fn read(path: &Path) -> Result<(Zeroizing<Vec<u8>>, bool), CertificateError> {
    read_file(path).map_err(|error| CertificateError::Unreadable { file: path.into(), error })
}

/// The same, without a reason in words.
pub(super) fn read_file(path: &Path) -> io::Result<(Zeroizing<Vec<u8>>, bool)> {
    // The configuration of root or of this process's user names it. A pipe or a device could block for ever.
    #[allow(clippy::disallowed_methods)]
    let opened = std::fs::File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(OpenError::Busy.into()),
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if found.len() > MOST_BYTES {
        return Err(io::Error::other("it is larger than 1 MB, which no certificate is"));
    }
    // With room for all of it at once: no copy of a key is left behind by growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MOST_BYTES as usize));
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
    Ok((bytes, mode & 0o004 != 0))
}

/// What a check of a certificate says about its dates at this time. The check goes no further: no authority is trusted.
fn check_at(certificate: &EndEntityCert<'_>, time: UnixTime) -> Result<(), webpki::Error> {
    certificate.verify_for_usage(&[], &[], &[], time, KeyUsage::server_auth(), None, None).map(drop)
}

fn flaw_of_dates(certificate: &EndEntityCert<'_>) -> Option<Flaw> {
    match check_at(certificate, UnixTime::now()) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(Flaw::Expired(system_time(not_after))),
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => Some(Flaw::NotYet(system_time(not_before))),
        _ => None,
    }
}

pub(super) fn expiry(certificate: &EndEntityCert<'_>) -> SystemTime {
    match check_at(certificate, NEVER) {
        Err(webpki::Error::CertExpired { not_after, .. }) => system_time(not_after),
        _ => system_time(NEVER),
    }
}

fn system_time(time: UnixTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs())
}

fn flaw_of_order(chain: &[CertificateDer<'_>]) -> Option<Flaw> {
    let parsed: Vec<EndEntityCert<'_>> =
        chain.iter().map_while(|der| EndEntityCert::try_from(der).ok()).collect();
    let follows = |pair: &[EndEntityCert<'_>]| pair[0].issuer() == pair[1].subject();
    let at = parsed.windows(2).position(|pair| !follows(pair))?;
    Some(Flaw::Unordered(at + 2))
}

/// The name in certificates that stands for all hosts beside this one: `*.example.com`.
pub(super) fn wildcard_for(host: &str) -> Option<String> {
    host.split_once('.').map(|(_, above)| format!("*.{above}"))
}

impl Certificate {
    /// Its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn expires(&self) -> SystemTime {
        self.expires
    }

    /// The host names that are in it.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The same, of an application, or of the server.
    #[must_use]
    pub fn of(mut self, owner: Option<CertificateOwner>) -> Certificate {
        self.flaws.retain(|flaw| !matches!(flaw, Flaw::OtherHosts(_)));
        self.owner = owner;
        if let Some(owner) = self.owner.as_ref().filter(|_| self.served_hosts().is_empty()) {
            self.flaws.push(Flaw::OtherHosts(owner.name.clone()));
        }
        self
    }

    /// Whether it is the same, for the same hosts.
    pub fn is_same(&self, other: &Certificate) -> bool {
        self.key.cert == other.key.cert && self.owner == other.owner
    }

    /// The application that it belongs to.
    pub fn owner(&self) -> Option<&CertificateOwner> {
        self.owner.as_ref()
    }

    /// The names, in small letters, for which clients get it: those in it, wildcards among them, or of an application's the hosts
    /// that it is for.
    pub(super) fn served_hosts(&self) -> Vec<String> {
        let names: Vec<String> = self.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let Some(owner) = &self.owner else { return names };
        let is_for = |host: &&String| {
            let above = wildcard_for(host);
            names.iter().any(|name| name == *host || Some(name) == above.as_ref())
        };
        owner.hosts.iter().filter(is_for).cloned().collect()
    }

    /// Whether clients can get it for this host, in small letters.
    pub(super) fn serves(&self, host: &str) -> bool {
        let above = wildcard_for(host);
        self.served_hosts().iter().any(|name| name == host || Some(name) == above.as_ref())
    }

    /// What is not right with it.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// Whether browsers refuse it because of its dates.
    pub fn is_out_of_date(&self) -> bool {
        self.flaws.iter().any(|flaw| matches!(flaw, Flaw::Expired(_) | Flaw::NotYet(_)))
    }

    pub(super) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    pub(super) fn report(&self) -> CertificateReport {
        let expires = self.expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        CertificateReport {
            file: self.file.display().to_string(),
            hosts: self.served_hosts(),
            expires_at: expires.as_secs(),
        }
    }
}
