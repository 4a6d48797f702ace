//! Which application a request is for: by its host, and by the beginning of its path.
//!
//! An application is reached at hosts, below a path prefix, or at these hosts below that prefix; every request
//! reaches an application that names neither. The host comes first: a request for a configured host goes to an application without hosts
//! only if none with that host matches its path. Among those left the longest prefix decides.

use std::collections::HashMap;
use std::io::Write;
use std::net::Ipv6Addr;

use crate::http_syntax::first_byte;

/// The longest name of a host, in bytes (RFC 1035 section 2.3.4), with the dot at its end.
const HOST_BYTES: usize = 254;

/// Leads from hosts and paths to applications.
#[derive(Debug)]
pub struct Router<T> {
    by_host: HashMap<Box<[u8]>, Vec<Entry<T>>>,
    anywhere: Vec<Entry<T>>,
}

/// Something that is reached below a prefix.
#[derive(Debug)]
struct Entry<T> {
    prefix: Box<[u8]>,
    to: T,
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub struct Route<'a, T> {
    /// Whose it is.
    pub to: &'a T,
    /// The bytes at the beginning of its path that led there, as they were sent. What follows is empty or begins with
    /// `/`.
    pub prefix_bytes: usize,
}

impl<T> Default for Router<T> {
    fn default() -> Self {
        Router { by_host: HashMap::new(), anywhere: Vec::new() }
    }
}

impl<T: Clone> Router<T> {
    /// Adds something that is reached at these hosts (none: at any), below this prefix: `/path`, or empty. Of two that
    /// are reached in the same way, the first is.
    pub fn add(&mut self, hosts: &[String], prefix: &str, to: &T) {
        let prefix = prefix.trim_end_matches('/').as_bytes();
        let insert = |entries: &mut Vec<Entry<T>>| {
            let at = entries.partition_point(|entry| entry.prefix.len() >= prefix.len());
            entries.insert(at, Entry { prefix: prefix.into(), to: to.clone() });
        };
        if hosts.is_empty() {
            return insert(&mut self.anywhere);
        }
        for host in hosts {
            let mut space = [0; HOST_BYTES];
            // A name that no client can send is left out.
            if let Some(name) = normal_host(host.as_bytes(), &mut space) {
                insert(self.by_host.entry(name.into()).or_default());
            }
        }
    }
}

impl<T> Router<T> {
    /// Where a request goes that asks this host (without port; an IPv6 address in brackets), if it names one, for
    /// this path, as it was sent.
    pub fn route(&self, host: Option<&[u8]>, path: &[u8]) -> Option<Route<'_, T>> {
        let of_host = if self.by_host.is_empty() { None } else { host.and_then(|host| self.of_host(host)) };
        let of_host = of_host.and_then(|entries| longest(entries, path));
        of_host.or_else(|| longest(&self.anywhere, path))
    }

    fn of_host(&self, host: &[u8]) -> Option<&[Entry<T>]> {
        let mut space = [0; HOST_BYTES];
        let name = normal_host(host, &mut space)?;
        self.by_host.get(name).map(Vec::as_slice)
    }
}

/// The one with the longest prefix that the path lies below; longer ones stand before shorter ones.
fn longest<'a, T>(entries: &'a [Entry<T>], path: &[u8]) -> Option<Route<'a, T>> {
    entries.iter().find_map(|Entry { prefix, to }| {
        let prefix_bytes = below(prefix, path)?;
        Some(Route { to, prefix_bytes })
    })
}

/// How many bytes of the path are the prefix, if it lies below that. Percent-encoding makes no difference (RFC 3986
/// section 6.2.2.2), but that an encoded slash separates nothing.
///
/// A path with a dot segment lies below no prefix: who resolves it, a proxy that guards the prefix for example, may find
/// it elsewhere.
fn below(prefix: &[u8], path: &[u8]) -> Option<usize> {
    if prefix.is_empty() {
        return Some(0);
    }
    let mut rest = path;
    for &byte in prefix {
        let (sent, after) = first_byte(rest)?;
        if sent != byte || (byte == b'/' && rest[0] != b'/') {
            return None;
        }
        rest = after;
    }
    let on_boundary = rest.first().is_none_or(|&byte| byte == b'/');
    (on_boundary && !path.split(|&byte| byte == b'/').any(is_dot_segment)).then_some(path.len() - rest.len())
}

/// `.` or `..`, encoded or not.
fn is_dot_segment(segment: &[u8]) -> bool {
    let mut rest = segment;
    let mut dots = 0;
    while let Some((b'.', after)) = first_byte(rest) {
        dots += 1;
        rest = after;
    }
    rest.is_empty() && matches!(dots, 1 | 2)
}

/// A host as it is compared: in small letters, without a dot at its end, an IPv6 address in its canonical form. `None`:
/// it is the name of nothing.
fn normal_host<'a>(host: &[u8], space: &'a mut [u8; HOST_BYTES]) -> Option<&'a [u8]> {
    let literal = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
    if memchr::memchr(b':', literal).is_some() {
        let address: Ipv6Addr = std::str::from_utf8(literal).ok()?.parse().ok()?;
        let mut free = &mut space[..];
        write!(free, "{address}").ok()?;
        let length = HOST_BYTES - free.len();
        return Some(&space[..length]);
    }
    let name = host.strip_suffix(b".").unwrap_or(host);
    let space = space.get_mut(..name.len()).filter(|space| !space.is_empty())?;
    space.copy_from_slice(name);
    space.make_ascii_lowercase();
    Some(space)
}

#[cfg(test)]
mod tests;
