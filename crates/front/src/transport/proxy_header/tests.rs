//! The header of the PROXY protocol: what proxies send, and what they never would.

use proptest::prelude::*;

use super::*;

const BOTH: Versions = Versions { v1: true, v2: true };
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n";

/// The only result of these bytes, with a request behind them.
fn whole(bytes: &[u8]) -> Result<ProxyHeader, HeaderError> {
    let with_request = [bytes, REQUEST].concat();
    let (header, length) = parse(&with_request, BOTH)?.expect("is whole");
    assert_eq!(length, bytes.len(), "the request is left");
    Ok(header)
}

fn addresses(source: &str, destination: &str) -> Option<Addresses> {
    Some(Addresses { source: source.parse().unwrap(), destination: destination.parse().unwrap() })
}

fn v2(command: u8, kind: u8, behind: &[u8]) -> Vec<u8> {
    let length = u16::try_from(behind.len()).unwrap().to_be_bytes();
    [V2_START, &[command, kind], &length, behind].concat()
}

const IP4: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb];

fn ip6() -> Vec<u8> {
    let ip = |last: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).octets();
    [&ip(7)[..], &ip(1), &[0, 80, 1, 0xbb]].concat()
}

fn extension_bytes(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[kind], &length[..], value].concat()
}

fn with_extensions(extensions: &[Vec<u8>]) -> Vec<u8> {
    v2(0x21, 0x11, &[&IP4[..], &extensions.concat()].concat())
}

/// A header with its right checksum.
fn checked() -> Vec<u8> {
    let noop = extension_bytes(0x04, b"xx");
    let mut bytes = with_extensions(&[noop.clone(), extension_bytes(CRC32C, &[0; 4]), noop]);
    let checksum = crc32c(bytes.iter()).to_be_bytes();
    let at = V2_FIXED_BYTES + IP4.len() + 5 + 3;
    bytes[at..at + 4].copy_from_slice(&checksum);
    bytes
}

#[test]
fn lines_of_version_1() {
    for (line, expected) in [
        ("TCP4 192.0.2.7 198.51.100.1 56324 443", addresses("192.0.2.7:56324", "198.51.100.1:443")),
        ("TCP6 2001:db8::7 ::1 1 0", addresses("[2001:db8::7]:1", "[::1]:0")),
        ("UNKNOWN", None),
        ("UNKNOWN ffff::1 whatever 1 2 3", None),
    ] {
        let header = ProxyHeader { addresses: expected, ..ProxyHeader::default() };
        assert_eq!(whole(format!("PROXY {line}\r\n").as_bytes()), Ok(header), "{line}");
    }
}

#[test]
fn malformed_lines_of_version_1() {
    for line in [
        "",
        "TCP4",
        "TCP4 192.0.2.7 198.51.100.1 56324",
        "TCP4 192.0.2.7 198.51.100.1 56324 443 ",
        "TCP4 192.0.2.7 198.51.100.1 56324 443 1",
        "TCP4  192.0.2.7 198.51.100.1 56324 443",
        "TCP4 192.0.2.7 198.51.100.1 65536 443",
        "TCP4 192.0.2.7 198.51.100.1 056 443",
        "TCP4 192.0.2.7 198.51.100.1 +56 443",
        "TCP4 192.0.2.7 198.51.100.1  443",
        "TCP4 192.0.2.07 198.51.100.1 1 443",
        "TCP4 192.0.2 198.51.100.1 1 443",
        "TCP4 ::1 ::1 1 443",
        "TCP6 192.0.2.7 198.51.100.1 1 443",
        "TCP6 [::1] ::1 1 443",
        "TCP6 fe80::1%eth0 ::1 1 443",
        "TCP5 192.0.2.7 198.51.100.1 1 443",
        "tcp4 192.0.2.7 198.51.100.1 1 443",
        "UNKNOWN\u{e9}",
        "TCP4 192.0.2.7 198.51.100.1 1 443\0",
    ] {
        assert_eq!(whole(format!("PROXY {line}\r\n").as_bytes()), Err(HeaderError::BadLine), "{line}");
    }
    assert_eq!(parse(b"PROXY UNKNOWN\n", BOTH), Err(HeaderError::BadLine));
    assert_eq!(parse(b"PROXY UNKNOWN\r\r\n", BOTH), Err(HeaderError::BadLine));
}

#[test]
fn a_line_of_version_1_has_107_bytes_at_most() {
    let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES - 16));
    assert_eq!(longest.len(), V1_BYTES);
    assert_eq!(whole(longest.as_bytes()), Ok(ProxyHeader::default()));
    let longer = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES - 15));
    assert_eq!(parse(longer.as_bytes(), BOTH), Err(HeaderError::LineTooLong));
    assert_eq!(parse(&longer.as_bytes()[..V1_BYTES - 1], BOTH), Ok(None));
    assert_eq!(parse(&longer.as_bytes()[..V1_BYTES], BOTH), Err(HeaderError::LineTooLong), "no byte later");
}

#[test]
fn families_of_version_2() {
    let unix = vec![b'a'; 216];
    for (kind, behind, expected) in [
        (0x11, IP4.to_vec(), addresses("192.0.2.7:56324", "198.51.100.1:443")),
        (0x21, ip6(), addresses("[2001:db8::7]:80", "[2001:db8::1]:443")),
        (0x31, unix, None),
        (0x12, IP4.to_vec(), None), // UDP
        (0x00, Vec::new(), None),
        (0x00, b"any".to_vec(), None),
    ] {
        let header = ProxyHeader { addresses: expected, ..ProxyHeader::default() };
        assert_eq!(whole(&v2(0x21, kind, &behind)), Ok(header), "{kind:#x}");
    }
    // A connection of the proxy's own: all behind is ignored.
    for (kind, behind) in [(0x11, &IP4[..]), (0x00, b""), (0xff, b"x")] {
        assert_eq!(whole(&v2(0x20, kind, behind)), Ok(ProxyHeader::default()));
    }
}

#[test]
fn malformed_headers_of_version_2() {
    for (bytes, error) in [
        (v2(0x22, 0x11, &IP4), HeaderError::Unknown),
        (v2(0x11, 0x11, &IP4), HeaderError::Unknown),
        (v2(0x21, 0x41, &IP4), HeaderError::Unknown),
        (v2(0x21, 0x13, &IP4), HeaderError::Unknown),
        (v2(0x21, 0x11, &IP4[..11]), HeaderError::BadLength),
        (v2(0x21, 0x21, &IP4), HeaderError::BadLength),
        (v2(0x21, 0x31, &[0; 215]), HeaderError::BadLength),
        (with_extensions(&[vec![0x04, 0]]), HeaderError::BadLength),
        (with_extensions(&[vec![0x04, 0, 2, 1]]), HeaderError::BadLength),
        (with_extensions(&[extension_bytes(SSL, &[1, 0, 0, 0])]), HeaderError::BadLength),
        (with_extensions(&[extension_bytes(CRC32C, &[0; 3])]), HeaderError::BadLength),
        (with_extensions(&[extension_bytes(CRC32C, &[0; 4])]), HeaderError::BadChecksum),
        (v2(0x21, 0x00, &[0; V2_MOST_BYTES + 1]), HeaderError::TooLong),
        (v2(0x20, 0x00, &[0; V2_MOST_BYTES + 1]), HeaderError::TooLong),
    ] {
        assert_eq!(whole(&bytes), Err(error), "{bytes:?}");
    }
    assert_eq!(whole(&v2(0x20, 0x00, &[0; V2_MOST_BYTES])), Ok(ProxyHeader::default()));
    // As soon as it shows, not once the rest is there.
    let long = v2(0x21, 0x00, &[0; V2_MOST_BYTES + 1]);
    assert_eq!(parse(&long[..V2_FIXED_BYTES], BOTH), Err(HeaderError::TooLong));
    assert_eq!(parse(&v2(0x31, 0x11, &IP4)[..13], BOTH), Err(HeaderError::Unknown));
}

#[test]
fn extensions() {
    let tls = |flags: u8| extension_bytes(SSL, &[flags, 0, 0, 0, 0]);
    let header = |extensions: &[Vec<u8>]| whole(&with_extensions(extensions)).unwrap();
    assert!(header(&[tls(1)]).is_tls);
    assert!(header(&[extension_bytes(SSL, b"\x07\0\0\0\0\x21\0\x07TLSv1.3")]).is_tls);
    assert!(!header(&[tls(6)]).is_tls);
    assert!(!header(&[extension_bytes(0xe0, b"anything")]).is_tls);
    let named = header(&[extension_bytes(0x04, b""), extension_bytes(AUTHORITY, b"example.org"), tls(1)]);
    assert_eq!((named.authority.as_deref(), named.is_tls), (Some("example.org"), true));
    assert_eq!(header(&[extension_bytes(AUTHORITY, b"\xff")]).authority, None);
}

#[test]
fn a_checksum_is_checked() {
    assert_eq!(crc32c(b"123456789".iter()), 0xe306_9283, "as RFC 3720 has it");
    let bytes = checked();
    assert_eq!(whole(&bytes).unwrap().addresses, addresses("192.0.2.7:56324", "198.51.100.1:443"));
    // Anything else: the addresses, the checksum, and what is behind it.
    for at in [16, 27, 36, 37, 38, 39, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert_eq!(whole(&other), Err(HeaderError::BadChecksum), "byte {at}");
    }
}

#[test]
fn only_the_named_versions_are_read() {
    let [v1, v2] = [b"PROXY UNKNOWN\r\n".to_vec(), v2(0x20, 0, b"")];
    let only_v1 = Versions { v1: true, v2: false };
    let only_v2 = Versions { v1: false, v2: true };
    assert!(parse(&v1, only_v1).is_ok() && parse(&v2, only_v2).is_ok());
    assert_eq!(parse(&v1, only_v2), Err(HeaderError::NoHeader));
    assert_eq!(parse(&v2, only_v1), Err(HeaderError::NoHeader));
    for bytes in [REQUEST, b"P ", b"\r\n\r\n\0\r\nQUIT\r", b"\0", b"PROXY\tTCP4"] {
        assert_eq!(parse(bytes, BOTH), Err(HeaderError::NoHeader), "{bytes:?}");
    }
}

fn headers() -> Vec<Vec<u8>> {
    let v1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n".to_vec();
    vec![
        v1,
        b"PROXY UNKNOWN\r\n".to_vec(),
        v2(0x21, 0x11, &IP4),
        v2(0x21, 0x21, &ip6()),
        v2(0x20, 0, b""),
        checked(),
    ]
}

proptest! {
    #[test]
    fn a_part_of_a_header_is_no_header_yet(which in 0..6usize, cut in any::<prop::sample::Index>()) {
        let header = &headers()[which];
        prop_assert_eq!(parse(&header[..cut.index(header.len())], BOTH), Ok(None));
    }

    /// However the bytes arrive, the answer comes once, and stays.
    #[test]
    fn anything_behind_a_start_has_one_answer(version_2: bool, rest in prop::collection::vec(any::<u8>(), 0..300)) {
        let start = if version_2 { V2_START } else { V1_START };
        let bytes = [start, &rest].concat();
        let answers: Vec<_> = (0..=bytes.len()).map(|end| parse(&bytes[..end], BOTH)).collect();
        let first = answers.iter().position(|answer| *answer != Ok(None)).unwrap_or(answers.len());
        prop_assert!(answers[first..].windows(2).all(|two| two[0] == two[1]));
        if let Some(Ok(Some((_, length)))) = answers.get(first) {
            prop_assert_eq!(*length, first, "no byte too late");
        }
    }
}
