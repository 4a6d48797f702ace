//! The header of the PROXY protocol, with which a proxy reports its client at the beginning of a connection. HAProxy's
//! specification (`proxy-protocol.txt`, sections 2.1 and 2.2) describes both versions.
//!
//! [`parse`] reads a header from bytes, `connection/proxied.rs` from a connection.

mod refusals;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

pub(crate) use refusals::Refusals;

/// Longest line of version 1, with its line break (section 2.1).
const V1_BYTES: usize = 107;
/// How each version begins.
const V1_START: &[u8] = b"PROXY ";
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before the addresses.
const V2_FIXED_BYTES: usize = 16;
/// Most bytes of version 2 behind those: addresses, and extensions (TLVs), of which a certificate's name may be one.
const V2_MOST_BYTES: usize = 2048;

/// The types of extensions that are read (section 2.2).
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const SSL: u8 = 0x20;
/// The bit of the SSL extension that shows that the client uses TLS.
const CLIENT_SSL: u8 = 0x01;

/// What a proxy reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client's address and the address that it has connected to. `None`: the connection's own, as it is the
    /// proxy's own (a health check), or as the client has no address of the Internet.
    pub addresses: Option<Addresses>,
    /// Whether the client uses TLS.
    pub is_tls: bool,
    /// The host name that the client has asked for in TLS.
    pub authority: Option<String>,
}

/// The two ends of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The client's.
    pub source: SocketAddr,
    /// The proxy's, to which the client has connected.
    pub destination: SocketAddr,
}

/// The versions that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The text form.
    pub v1: bool,
    /// The binary form.
    pub v2: bool,
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// They begin otherwise.
    #[error("the connection begins with no PROXY header of a version that `proxy_protocol` names")]
    NoHeader,
    /// Version 1: the line has no end where it must have one.
    #[error("the PROXY header is longer than {V1_BYTES} bytes")]
    LineTooLong,
    /// Version 1: the line has other parts.
    #[error("the line of the PROXY header is malformed")]
    BadLine,
    /// Version 2: a command, a family or a transport that there is not.
    #[error("the PROXY header has an unknown command or address family")]
    Unknown,
    /// Version 2: it is longer than is allowed here.
    #[error("the PROXY header is longer than {} bytes", V2_FIXED_BYTES + V2_MOST_BYTES)]
    TooLong,
    /// Version 2: its parts are longer than the whole.
    #[error("the parts of the PROXY header do not fit its length")]
    BadLength,
    /// Version 2: the checksum is another one.
    #[error("the checksum of the PROXY header is wrong")]
    BadChecksum,
}

/// Reads the header at the beginning of `bytes`. Returns it and its length; `None`: it has not arrived whole.
///
/// # Errors
/// The bytes are no header, nor the beginning of one.
pub fn parse(bytes: &[u8], versions: Versions) -> Result<Option<(ProxyHeader, usize)>, HeaderError> {
    if versions.v1 && begins(bytes, V1_START) {
        return parse_v1(bytes);
    }
    if versions.v2 && begins(bytes, V2_START) {
        return parse_v2(bytes);
    }
    Err(HeaderError::NoHeader)
}

/// Whether `bytes` begins with `start`, as far as it has arrived.
fn begins(bytes: &[u8], start: &[u8]) -> bool {
    let length = bytes.len().min(start.len());
    bytes[..length] == start[..length]
}

fn parse_v1(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, HeaderError> {
    let most = &bytes[..bytes.len().min(V1_BYTES)];
    match most.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = most[..end].strip_suffix(b"\r").ok_or(HeaderError::BadLine)?;
            let header = v1_line(line).ok_or(HeaderError::BadLine)?;
            Ok(Some((header, end + 1)))
        }
        None if most.len() == V1_BYTES => Err(HeaderError::LineTooLong),
        None => Ok(None),
    }
}

/// `PROXY TCP4 192.0.2.7 198.51.100.1 56324 443`. Behind `PROXY UNKNOWN`, everything is ignored.
fn v1_line(line: &[u8]) -> Option<ProxyHeader> {
    let line = std::str::from_utf8(line).ok().filter(|line| line.is_ascii())?;
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(ProxyHeader::default());
    }
    let mut address = || {
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_of_family = if family == "TCP4" { address.is_ipv4() } else { address.is_ipv6() };
        is_of_family.then_some(address)
    };
    let (source, destination) = (address()?, address()?);
    let (source_port, destination_port) = (port(words.next()?)?, port(words.next()?)?);
    let is_whole = words.next().is_none() && ["TCP4", "TCP6"].contains(&family);
    let addresses = Addresses {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
    };
    is_whole.then(|| ProxyHeader { addresses: Some(addresses), ..ProxyHeader::default() })
}

/// Digits without zeros before them.
fn port(word: &str) -> Option<u16> {
    let is_plain = word == "0" || !word.starts_with('0');
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && digits).then(|| word.parse().ok())?
}

fn parse_v2(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, HeaderError> {
    // As early as possible, as the rest may never come.
    let command = bytes.get(12).map_or(Ok(Command::Local), |byte| command(*byte))?;
    let Some((fixed, rest)) = bytes.split_at_checked(V2_FIXED_BYTES) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > V2_MOST_BYTES {
        return Err(HeaderError::TooLong);
    }
    let kind = match command {
        // Everything behind is ignored, the family too.
        Command::Local => Kind::Other,
        Command::Proxy => kind(fixed[13])?,
    };
    if length < kind.bytes() {
        return Err(HeaderError::BadLength);
    }
    if rest.len() < length {
        return Ok(None);
    }
    let whole = &bytes[..V2_FIXED_BYTES + length];
    let header = if kind == Kind::Other { ProxyHeader::default() } else { proxied(kind, whole)? };
    Ok(Some((header, whole.len())))
}

/// What version 2 is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    /// The connection is the proxy's own.
    Local,
    /// It is for a client.
    Proxy,
}

/// The version and the command.
fn command(byte: u8) -> Result<Command, HeaderError> {
    match byte {
        0x20 => Ok(Command::Local),
        0x21 => Ok(Command::Proxy),
        _ => Err(HeaderError::Unknown),
    }
}

/// What addresses stand in version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ip4,
    Ip6,
    Unix,
    /// None that are read.
    Other,
}

impl Kind {
    /// Bytes that the addresses take.
    fn bytes(self) -> usize {
        match self {
            Kind::Ip4 => 12,
            Kind::Ip6 => 36,
            Kind::Unix => 216,
            Kind::Other => 0,
        }
    }
}

/// The family and the transport. Allowed ones that are not read count as unspecified, as the specification says.
fn kind(byte: u8) -> Result<Kind, HeaderError> {
    match byte {
        0x11 => Ok(Kind::Ip4),
        0x21 => Ok(Kind::Ip6),
        0x31 => Ok(Kind::Unix),
        _ if byte >> 4 <= 3 && byte & 0xf <= 2 => Ok(Kind::Other),
        _ => Err(HeaderError::Unknown),
    }
}

fn proxied(kind: Kind, whole: &[u8]) -> Result<ProxyHeader, HeaderError> {
    let (addresses, mut rest) = whole[V2_FIXED_BYTES..].split_at(kind.bytes());
    let mut header = ProxyHeader { addresses: v2_addresses(kind, addresses), ..ProxyHeader::default() };
    while !rest.is_empty() {
        let (kind, value) = extension(&mut rest)?;
        match kind {
            AUTHORITY => header.authority = std::str::from_utf8(value).ok().map(str::to_owned),
            SSL => {
                // Behind the flags stands whether the client's certificate is valid.
                let flags = value.first().filter(|_| value.len() >= 5).ok_or(HeaderError::BadLength)?;
                header.is_tls = flags & CLIENT_SSL != 0;
            }
            CRC32C => check(value, whole, whole.len() - rest.len() - value.len())?,
            _ => {}
        }
    }
    Ok(header)
}

fn v2_addresses(kind: Kind, bytes: &[u8]) -> Option<Addresses> {
    let port = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    match kind {
        Kind::Ip4 => {
            let ip = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
            let source = SocketAddr::new(ip(0)?.into(), port(8)?);
            Some(Addresses { source, destination: SocketAddr::new(ip(4)?.into(), port(10)?) })
        }
        Kind::Ip6 => {
            let ip = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?));
            let source = SocketAddr::new(ip(0)?.into(), port(32)?);
            Some(Addresses { source, destination: SocketAddr::new(ip(16)?.into(), port(34)?) })
        }
        Kind::Unix | Kind::Other => None,
    }
}

/// Takes the next extension from `rest`: its type and its value.
fn extension<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8]), HeaderError> {
    let (start, behind) = rest.split_at_checked(3).ok_or(HeaderError::BadLength)?;
    let length = usize::from(u16::from_be_bytes([start[1], start[2]]));
    let (value, behind) = behind.split_at_checked(length).ok_or(HeaderError::BadLength)?;
    *rest = behind;
    Ok((start[0], value))
}

/// Checks the checksum at `at`: it is of the whole header, with zeros in its place.
fn check(value: &[u8], whole: &[u8], at: usize) -> Result<(), HeaderError> {
    let given = <[u8; 4]>::try_from(value).map_err(|_| HeaderError::BadLength)?;
    let zeros = [0; 4];
    let parts = whole[..at].iter().chain(&zeros).chain(&whole[at + 4..]);
    (crc32c(parts) == u32::from_be_bytes(given)).then_some(()).ok_or(HeaderError::BadChecksum)
}

/// The checksum of RFC 3720, appendix B.4. A header is short, so bit by bit is fast enough.
fn crc32c<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let shift = |crc: u32| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
    !bytes.fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc)))
}
