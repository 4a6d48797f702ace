//! What clients are told of an application that did not boot or answer: developers everything, everybody else that
//! something is wrong, by the application's own page where it has one.

use crate::refusal::Content;
use crate::request_head::{known_key, RequestHead};
use crate::DevelopmentPages;
use highball_config::{Bind, User};
use highball_tenant::{Links, TenantFolder};
use std::net::IpAddr;
use std::path::Path;

/// The largest page of the application's own, in bytes.
const PUBLIC_BYTES: u64 = 256 * 1024;

const HTML: &str = "text/html; charset=utf-8";

/// Fields that proxies add: whoever is at the other end of one may be anybody.
const OF_PROXIES: [&[u8]; 6] =
    [b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"x-forwarded-proto"];

/// The page names no other place, and is for no other place.
const FIELDS: &str =
    "cache-control: no-store\r\nx-content-type-options: nosniff\r\nx-frame-options: DENY\r\n\
                      cross-origin-resource-policy: same-origin\r\nreferrer-policy: no-referrer\r\n";

/// Who asks, as far as failures are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Audience {
    /// Anybody.
    #[default]
    Public,
    /// The developer at this machine, by a browser,
    Browser,
    /// by a program that asks for JSON,
    Api,
    /// or by another.
    Program,
}

impl Audience {
    /// A developer asks from this machine, by a name of this machine (a page from elsewhere whose name was made to
    /// lead here has another), and not by way of a proxy.
    pub(crate) fn of(head: &RequestHead, bytes: &[u8], remote_addr: &str, binds: &[Bind]) -> Audience {
        let is_local = remote_addr.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let host = head.field(known_key::HOST, bytes).and_then(|host| std::str::from_utf8(host).ok());
        let is_proxied = head
            .fields(bytes)
            .any(|(name, _)| OF_PROXIES.iter().any(|field| name.eq_ignore_ascii_case(field)));
        if !is_local || is_proxied || !host.is_some_and(|host| is_ours(host, binds)) {
            return Audience::Public;
        }
        let accepts = |part: &[u8]| {
            head.fields(bytes).any(|(name, value)| name.eq_ignore_ascii_case(b"accept") && holds(value, part))
        };
        if accepts(b"text/html") {
            Audience::Browser
        } else if accepts(b"json") {
            Audience::Api
        } else {
            Audience::Program
        }
    }
}

fn holds(value: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(value, part).is_some()
}

/// Whether a Host field names this machine: by a loopback name or address, or by one that it listens on.
fn is_ours(host: &str, binds: &[Bind]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        let listens = |bind: &Bind| matches!(bind, Bind::Tcp(listens) if listens.ip() == address);
        return address.is_loopback() || (!address.is_unspecified() && binds.iter().any(listens));
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// What is shown in the place of an answer.
pub(crate) struct Page {
    content_type: &'static str,
    fields: String,
    body: Vec<u8>,
}

impl Page {
    /// For developers; `None` for others.
    pub(crate) fn of(pages: &DevelopmentPages, audience: Audience) -> Option<Page> {
        let (content_type, body, policy) = match audience {
            Audience::Public => return None,
            Audience::Browser => (HTML, &pages.html, pages.policy.as_str()),
            Audience::Api => ("application/json", &pages.json, ""),
            Audience::Program => ("text/plain; charset=utf-8", &pages.text, ""),
        };
        let mut fields = FIELDS.to_owned();
        if !policy.is_empty() {
            fields += &format!("content-security-policy: {policy}\r\nhighball-diagnosis: {}\r\n", pages.id);
        }
        Some(Page { content_type, fields, body: body.clone() })
    }

    /// `503.html` and the like in the application's folder of static files, for visitors. It is read when it is needed:
    /// that is seldom, and it may have been replaced.
    pub(crate) fn of_the_application(public: &Path, status: u16, user: Option<&User>) -> Option<Page> {
        let name = format!("{status}.html");
        let page = TenantFolder::open(public, user)
            .and_then(|folder| folder.read(&name, Links::Anywhere, PUBLIC_BYTES));
        match page {
            Ok(body) => Some(Page { content_type: HTML, fields: FIELDS.into(), body }),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                let path = public.join(name);
                // No warning: the application decides how many there would be.
                tracing::debug!(path = %path.display(), %error, "the application's page for errors is not shown");
                None
            }
        }
    }

    pub(crate) fn content(&self) -> Content<'_> {
        Content { content_type: self.content_type, fields: &self.fields, body: &self.body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_limits::limits;

    fn audience(fields: &str, remote_addr: &str) -> Audience {
        let bytes = format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n");
        let mut head = RequestHead::new();
        head.parse(bytes.as_bytes(), &limits()).unwrap();
        let binds =
            [Bind::Tcp("192.0.2.7:3000".parse().unwrap()), Bind::Tcp("0.0.0.0:3000".parse().unwrap())];
        Audience::of(&head, bytes.as_bytes(), remote_addr, &binds)
    }

    #[test]
    fn developers_ask_from_this_machine_by_a_name_of_it() {
        for host in [
            "localhost",
            "localhost:3000",
            "blog.localhost:3000",
            "127.0.0.1:3000",
            "[::1]:3000",
            "192.0.2.7",
        ] {
            assert_eq!(audience(&format!("Host: {host}"), "127.0.0.1"), Audience::Program, "{host}");
            assert_eq!(audience(&format!("Host: {host}"), "192.0.2.9"), Audience::Public, "{host}");
        }
        assert_eq!(audience("Host: localhost\r\nAccept: text/html,*/*", "::1"), Audience::Browser);
        assert_eq!(audience("Host: localhost\r\nAccept: application/json, */*", "::1"), Audience::Api);
    }

    #[test]
    fn everybody_else_is_the_public() {
        for host in [
            "evil.example",
            "evil.example:3000",
            "localhost.evil.example",
            "0.0.0.0",
            "127.0.0.1.evil.example",
        ] {
            assert_eq!(audience(&format!("Host: {host}"), "127.0.0.1"), Audience::Public, "{host}");
        }
        for field in
            ["X-Forwarded-For: 192.0.2.1", "forwarded: for=192.0.2.1", "Via: 1.1 x", "X-Real-IP: 192.0.2.1"]
        {
            assert_eq!(
                audience(&format!("Host: localhost\r\n{field}"), "127.0.0.1"),
                Audience::Public,
                "{field}"
            );
        }
    }
}
