//! Networks: the peers that are trusted to report who their clients are.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::spelling::guess;

/// Addresses that share their first bits: `10.0.0.0/8`, `192.0.2.7`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    first: IpAddr,
    /// How many bits all its addresses have in common.
    prefix_bits: u8,
}

/// Words for several networks.
const WORDS: [(&str, &[Network]); 3] = [
    ("none", &[]),
    ("loopback", &[v4([127, 0, 0, 0], 8), v6([0, 0, 0, 0, 0, 0, 0, 1], 128)]),
    // RFC 1918, RFC 4193, and the link-local addresses of RFC 3927 and RFC 4291.
    (
        "private",
        &[
            v4([10, 0, 0, 0], 8),
            v4([172, 16, 0, 0], 12),
            v4([192, 168, 0, 0], 16),
            v4([169, 254, 0, 0], 16),
            v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
            v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        ],
    ),
];

const fn v4(parts: [u8; 4], prefix_bits: u8) -> Network {
    let [a, b, c, d] = parts;
    Network { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix_bits }
}

const fn v6(parts: [u16; 8], prefix_bits: u8) -> Network {
    let [a, b, c, d, e, f, g, h] = parts;
    Network { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix_bits }
}

impl Network {
    /// Whether the address belongs to it. An IPv4 address that is written as one of IPv6 is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(other)) => (first.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(first), IpAddr::V6(other)) => (first.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= u32::from(self.prefix_bits)
    }

    /// Whether the address belongs to one of these.
    pub fn any_contains(networks: &[Network], address: IpAddr) -> bool {
        networks.iter().any(|network| network.contains(address))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_bits)
    }
}

/// The networks of a text: an address, a network in the notation of CIDR, or a word.
///
/// # Errors
/// It is none of these; what it may be.
pub fn networks(text: &str) -> Result<Vec<Network>, String> {
    if let Some((_, networks)) = WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(networks.to_vec());
    }
    one(text).map(|network| vec![network]).ok_or_else(|| {
        let guess = guess(text, WORDS.iter().map(|(word, _)| *word));
        format!(
            "`{text}` is not a network; write an IP address or a network, such as 10.0.0.0/8, or loopback, private or none{guess}"
        )
    })
}

fn one(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let first: IpAddr = address.parse().ok()?;
    let most = if first.is_ipv4() { 32 } else { 128 };
    let is_number = |bits: &&str| bits.bytes().all(|byte| byte.is_ascii_digit());
    let prefix_bits = match bits {
        Some(bits) => Some(bits).filter(is_number)?.parse().ok().filter(|bits| *bits <= most)?,
        None => most,
    };
    Some(Network { first, prefix_bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(text: &str, address: &str) -> bool {
        let address = address.parse().unwrap();
        Network::any_contains(&networks(text).unwrap(), address)
    }

    #[test]
    fn addresses_are_in_networks() {
        for (text, address) in [
            ("10.0.0.0/8", "10.255.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.4/30", "192.0.2.7"),
            ("0.0.0.0/0", "203.0.113.9"),
            ("::/0", "2001:db8::1"),
            ("2001:db8::/33", "2001:db8:7fff::1"),
            ("loopback", "127.0.0.9"),
            ("loopback", "::1"),
            ("private", "172.31.255.255"),
            ("private", "fd12::1"),
        ] {
            assert!(contains(text, address), "{address} in {text}");
        }
        for (text, address) in [
            ("10.0.0.0/8", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.6"),
            ("192.0.2.4/30", "192.0.2.8"),
            ("0.0.0.0/0", "::1"),
            ("::/0", "127.0.0.1"),
            ("2001:db8::/33", "2001:db8:8000::1"),
            ("loopback", "::2"),
            ("private", "172.32.0.0"),
        ] {
            assert!(!contains(text, address), "{address} in {text}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "::/129",
            "10.0.0/8",
            "1.2.3.4:80",
            "Private",
        ] {
            assert!(networks(text).is_err(), "{text}");
        }
    }
}
