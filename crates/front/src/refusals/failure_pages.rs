//! What clients get of an application that did not boot or answer: developers the diagnosis, possible developers how to
//! open it, and all others that something is wrong, by the application's own page where it has one.

use super::answers::Content;
use super::failure::DevelopmentPages;
use crate::developer_key::DeveloperKey;
use crate::message::forwarded::is_report;
use crate::message::request_head::{known_key, Head};
use crate::refusals::page::{Escaped, STYLE};
use highball_config::{Bind, ShowDiagnosis};
use highball_text::counted;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Where a client that is not known as a developer finds the details, and how to become known.
const WHERE: &str = "See the terminal that Highball runs in, or its log.";
const HOW: &str =
    "Open the link that Highball printed there (it ends with ?highball=…), once in each browser.";

/// Fields that proxies add, beside those in which they report clients: the client behind a proxy is unknown. (That there is
/// none proves nothing.)
const OF_PROXIES: [&[u8]; 2] = [b"via", b"cf-ray"];

/// The page names no other place, and is for no other place.
const FIELDS: &str =
    "cache-control: no-store\r\nx-content-type-options: nosniff\r\nx-frame-options: DENY\r\n\
                      cross-origin-resource-policy: same-origin\r\nreferrer-policy: no-referrer\r\n";

/// The kind of client, as far as failures are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Audience {
    /// Anybody.
    #[default]
    Public,
    /// A possible developer without proof, who gets instructions.
    Unproven(Form),
    /// A developer.
    Developer(Form),
}

/// What a client likes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Json,
    Text,
}

/// What a request is judged by.
pub(crate) struct Evidence<'a> {
    pub(crate) head: Head<'a>,
    /// The client's address.
    pub(crate) remote_addr: &'a str,
    /// Whether it uses TLS.
    pub(crate) is_tls: bool,
    /// Where the server listens.
    pub(crate) binds: &'a [Bind],
    pub(crate) key: &'a DeveloperKey,
}

impl Evidence<'_> {
    /// The kind of client under this rule. `is_ours`: whether the client's process is of the user who started Highball;
    /// it is asked last, as that takes a while to find out.
    pub(crate) fn audience(&self, rule: ShowDiagnosis, is_ours: impl FnOnce() -> bool) -> Audience {
        if rule == ShowDiagnosis::Off || !self.may_be_developer() || self.is_from_another_site() {
            return Audience::Public;
        }
        if rule == ShowDiagnosis::Local || (self.has_cookie() && is_ours()) {
            return Audience::Developer(self.form());
        }
        Audience::Unproven(self.form())
    }

    /// Whether nothing speaks against it that a developer asks: it is from this machine, by a name of this machine (a
    /// page from elsewhere whose name was made to lead here has another), and not by way of a proxy.
    pub(crate) fn may_be_developer(&self) -> bool {
        let is_local = self.remote_addr.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let host = self.head.field(known_key::HOST);
        let host = host.and_then(|host| std::str::from_utf8(host).ok());
        let is_of_proxy =
            |name: &[u8]| is_report(name) || OF_PROXIES.iter().any(|field| name.eq_ignore_ascii_case(field));
        let is_proxied = self.head.fields().any(|(name, _)| is_of_proxy(name));
        // A target may name a host, too, which then counts.
        let named = std::str::from_utf8(self.host()).unwrap_or_default();
        is_local
            && !is_proxied
            && host.is_some_and(|host| is_ours(host, self.binds))
            && is_ours(named, self.binds)
    }

    /// The host of the request, as the cookie is kept for.
    pub(crate) fn host(&self) -> &[u8] {
        self.head.host_name().unwrap_or_default()
    }

    /// Whether a page of another origin has the browser ask. Browsers say so in `Sec-Fetch-Site`, and in `Origin` unless they
    /// only follow a link. A client that sends neither (an old browser, or none) may still name the page itself.
    fn is_from_another_site(&self) -> bool {
        let mut sites = self.values(b"sec-fetch-site").peekable();
        let is_vouched_for = sites.peek().is_some();
        if sites.any(|site| !matches!(site, b"same-origin" | b"same-site" | b"none")) {
            return true;
        }
        let is_foreign = |origin: &[u8]| match origin {
            // A page that is not to be named is: its browser reports where that is from in the other field, or does not.
            b"null" => !is_vouched_for,
            origin => !self.is_own_origin(origin),
        };
        let mut origins = self.values(b"origin").peekable();
        let names_page = !is_vouched_for && origins.peek().is_none();
        origins.any(is_foreign)
            || (names_page && self.values(b"referer").any(|page| !self.is_own_origin(origin_of(page))))
    }

    /// Whether it is the origin of the request: `http://localhost:3000`.
    fn is_own_origin(&self, origin: &[u8]) -> bool {
        let (scheme, usual): (&[u8], _) = if self.is_tls { (b"https://", 443) } else { (b"http://", 80) };
        let Some(host) = self.head.host() else { return false };
        let (name, port) = (host.name(self.head.text), host.port.unwrap_or(usual));
        let Some((start, named)) = origin.split_at_checked(scheme.len()) else { return false };
        let rest = named.split_at_checked(name.len()).filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let is_port = |(_, rest): (&[u8], &[u8])| match rest {
            [] => port == usual,
            [b':', digits @ ..] => digits == port.to_string().as_bytes(),
            _ => false,
        };
        start.eq_ignore_ascii_case(scheme) && rest.is_some_and(is_port)
    }

    fn has_cookie(&self) -> bool {
        self.values(b"cookie").any(|cookies| self.key.is_in_cookies(cookies, self.host()))
    }

    fn form(&self) -> Form {
        let accepts = |part: &[u8]| self.values(b"accept").any(|value| holds(value, part));
        match () {
            () if accepts(b"text/html") => Form::Html,
            () if accepts(b"json") => Form::Json,
            () => Form::Text,
        }
    }

    fn values<'a>(&'a self, field: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.head.fields();
        fields.filter(move |(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, value)| value)
    }
}

/// The scheme and the host of a page's address.
fn origin_of(page: &[u8]) -> &[u8] {
    let host = memchr::memmem::find(page, b"://").map_or(0, |at| at + 3);
    let length = page[host..].iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &page[..length.map_or(page.len(), |length| host + length)]
}

fn holds(value: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(value, part).is_some()
}

/// Whether a Host field names this machine: by a loopback name or address, or an address that it listens on.
fn is_ours(host: &str, binds: &[Bind]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        let listens = |bind: &Bind| bind.tcp_address().is_some_and(|listens| listens.ip() == address);
        return address.is_loopback() || (!address.is_unspecified() && binds.iter().any(listens));
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// What is shown instead of an answer.
#[derive(Debug)]
pub(crate) struct Page {
    content_type: &'static str,
    fields: String,
    body: Vec<u8>,
}

impl Page {
    /// For a developer.
    pub(crate) fn of(pages: &DevelopmentPages, form: Form) -> Page {
        let (content_type, body, policy) = match form {
            Form::Html => (HTML, &pages.html, pages.policy.as_str()),
            Form::Json => ("application/json", &pages.json, ""),
            Form::Text => (TEXT, &pages.text, ""),
        };
        let mut fields = FIELDS.to_owned();
        if !policy.is_empty() {
            fields += &format!("content-security-policy: {policy}\r\nhighball-diagnosis: {}\r\n", pages.id);
        }
        Page { content_type, fields, body: body.clone() }
    }

    /// For a possible developer: how to see more. It names nothing of the application that other clients do not get.
    pub(crate) fn of_link(what: &str, form: Form) -> Page {
        if form != Form::Html {
            let body = format!("{what}\n\n{WHERE}\n{HOW}\nhighball status prints the link again.\n");
            return Page { content_type: TEXT, fields: FIELDS.into(), body: body.into() };
        }
        let rest = format!(
            "<p>{WHERE}</p>\n</header>\n<section>\n<h2>Show the error in this browser</h2>\n<p>{HOW} This prints the link \
             again:</p>\n<pre><code>highball status</code></pre>\n\
             <p class=\"why\">The link shows that this browser is yours. Without it, every client that reaches this server \
             through a proxy would also see the error.</p>\n\
             </section>\n"
        );
        Page::styled(what, include_str!("link_page.css"), &rest)
    }

    /// For visitors during maintenance: this message, and when to come back.
    pub(crate) fn of_maintenance(message: Option<&str>, retry_after_seconds: u32) -> Page {
        let message = message.map(|message| format!("<p>{}</p>\n", Escaped(message))).unwrap_or_default();
        let time = in_words(retry_after_seconds);
        let rest = format!(
            "{message}<p class=\"when\">Please try again in <time datetime=\"PT{retry_after_seconds}S\">{time}</time>.</p>\n\
             </header>\n"
        );
        Page::styled("Down for maintenance", include_str!("maintenance_page.css"), &rest)
    }

    /// With this heading and style. `rest` is the HTML behind the heading, from within its header.
    fn styled(heading: &str, style: &str, rest: &str) -> Page {
        let nonce = format!("{:016x}", RandomState::new().hash_one(heading));
        let body = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n\
             <style nonce=\"{nonce}\">\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{0}</h1>\n\
             {rest}</main>\n</body>\n</html>\n",
            Escaped(heading)
        );
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let fields = format!("{FIELDS}content-security-policy: {policy}\r\n");
        Page { content_type: HTML, fields, body: body.into() }
    }

    /// One of the application's own, for visitors.
    pub(crate) fn of_the_application(body: Vec<u8>) -> Page {
        Page { content_type: HTML, fields: FIELDS.into(), body }
    }

    pub(crate) fn content(&self) -> Content<'_> {
        Content { content_type: self.content_type, fields: &self.fields, body: &self.body }
    }
}

/// Returns this time for people: in the largest unit that has it nearly exactly, and not less than it is.
fn in_words(seconds: u32) -> String {
    let (length, unit) = match seconds {
        0..=119 => (1, "second"),
        120..=7199 => (60, "minute"),
        7200..=172_799 => (3600, "hour"),
        _ => (86_400, "day"),
    };
    counted(seconds.div_ceil(length).into(), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::heads::head_of;

    fn key() -> DeveloperKey {
        DeveloperKey::new([7; 32])
    }

    fn audience(fields: &str, remote_addr: &str, rule: ShowDiagnosis) -> Audience {
        let bytes = format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n");
        let head = head_of(&bytes);
        let binds =
            [Bind::tcp("192.0.2.7:3000".parse().unwrap()), Bind::tcp("0.0.0.0:3000".parse().unwrap())];
        let evidence = Evidence {
            head: head.with(bytes.as_bytes()),
            remote_addr,
            is_tls: false,
            binds: &binds,
            key: &key(),
        };
        evidence.audience(rule, || true)
    }

    /// The fields of a request for this host, with the cookie of the host.
    fn with_cookie(host: &str) -> String {
        let name = host.strip_suffix(":3000").unwrap_or(host);
        let set = key().set_cookie(name.as_bytes());
        format!("Host: {host}\r\nCookie: a=b; {}", set.split(';').next().unwrap())
    }

    #[test]
    fn developers_ask_from_this_machine_by_a_name_of_it_and_with_a_cookie() {
        for host in [
            "localhost",
            "localhost:3000",
            "blog.localhost:3000",
            "127.0.0.1:3000",
            "[::1]:3000",
            "192.0.2.7",
        ] {
            let (bare, with_cookie) = (format!("Host: {host}"), with_cookie(host));
            let seen = |fields: &str, address, rule| audience(fields, address, rule);
            let (link, local, off) = (ShowDiagnosis::Link, ShowDiagnosis::Local, ShowDiagnosis::Off);
            assert_eq!(seen(&with_cookie, "127.0.0.1", link), Audience::Developer(Form::Text), "{host}");
            assert_eq!(seen(&bare, "127.0.0.1", link), Audience::Unproven(Form::Text), "{host}");
            assert_eq!(seen(&bare, "127.0.0.1", local), Audience::Developer(Form::Text), "{host}");
            assert_eq!(seen(&with_cookie, "192.0.2.9", link), Audience::Public, "{host}");
            assert_eq!(seen(&bare, "192.0.2.9", local), Audience::Public, "{host}");
            assert_eq!(seen(&with_cookie, "127.0.0.1", off), Audience::Public, "{host}");
        }
        let form = |accept: &str| {
            let fields = format!("{}\r\nAccept: {accept}", with_cookie("localhost"));
            audience(&fields, "::1", ShowDiagnosis::Link)
        };
        assert_eq!(form("text/html,*/*"), Audience::Developer(Form::Html));
        assert_eq!(form("application/json, */*"), Audience::Developer(Form::Json));
    }

    #[test]
    fn the_cookie_of_another_host_proves_nothing() {
        let fields = with_cookie("blog.localhost").replace("Host: blog.", "Host: ");
        assert_eq!(audience(&fields, "127.0.0.1", ShowDiagnosis::Link), Audience::Unproven(Form::Text));
    }

    #[test]
    fn other_clients_are_the_public() {
        for host in [
            "evil.example",
            "evil.example:3000",
            "localhost.evil.example",
            "0.0.0.0",
            "127.0.0.1.evil.example",
        ] {
            for rule in [ShowDiagnosis::Link, ShowDiagnosis::Local] {
                assert_eq!(audience(&with_cookie(host), "127.0.0.1", rule), Audience::Public, "{host}");
            }
        }
        let others = ["forwarded: for=192.0.2.1", "Via: 1.1 x", "Sec-Fetch-Site: cross-site"];
        let of_proxies = [
            "forwarded",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded-server",
            "x-real-ip",
            "x-client-ip",
            "x-cluster-client-ip",
            "x-original-forwarded-for",
            "x-original-host",
            "cf-connecting-ip",
            "cf-ray",
            "true-client-ip",
            "fastly-client-ip",
            "fly-client-ip",
        ];
        let addresses = of_proxies.into_iter().map(|name| format!("{name}: 192.0.2.1"));
        for field in addresses.chain(others.map(String::from)) {
            for rule in [ShowDiagnosis::Link, ShowDiagnosis::Local] {
                let fields = format!("{}\r\n{field}", with_cookie("localhost"));
                assert_eq!(audience(&fields, "127.0.0.1", rule), Audience::Public, "{field}");
            }
        }
    }

    #[test]
    fn no_page_of_another_origin_gets_it() {
        let seen = |fields: &str, rule| {
            audience(&format!("{}\r\n{fields}", with_cookie("localhost:3000")), "::1", rule)
        };
        let (origin, site) = ("Origin: http://localhost:3000", "Sec-Fetch-Site: same-origin");
        for rule in [ShowDiagnosis::Link, ShowDiagnosis::Local] {
            for own in [
                origin,
                "Origin: http://LOCALHOST:3000",
                site,
                "Sec-Fetch-Site: same-site",
                "Sec-Fetch-Site: none",
                &format!("{site}\r\n{origin}"),
                &format!("{site}\r\nOrigin: null"),
                "Referer: http://localhost:3000/a?b",
                "Referer: http://localhost:3000",
                &format!("{origin}\r\nReferer: http://evil.example/"),
                "Sec-Fetch-Site: none\r\nReferer: http://evil.example/",
            ] {
                assert_eq!(seen(own, rule), Audience::Developer(Form::Text), "{own}");
            }
            for foreign in [
                "Origin: http://evil.example",
                "Origin: http://evil.example:3000",
                "Origin: http://localhost",
                "Origin: http://localhost:30000",
                "Origin: http://localhost:3000.evil.example",
                "Origin: http://localhost:3000@evil.example",
                "Origin: https://localhost:3000",
                "Origin: http://127.0.0.1:3000",
                "Origin: null",
                "Origin: localhost:3000",
                "Origin: file://",
                "Origin:",
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Site: unknown",
                &format!("{origin}\r\nOrigin: http://evil.example"),
                &format!("{site}\r\nOrigin: http://evil.example"),
                &format!("Sec-Fetch-Site: cross-site\r\n{origin}"),
                &format!("{site}\r\nSec-Fetch-Site: cross-site"),
                "Referer: http://evil.example/http://localhost:3000/",
                "Referer: http://localhost:3000@evil.example/",
                "Referer: http://localhost:3000\\@evil.example/",
            ] {
                assert_eq!(seen(foreign, rule), Audience::Public, "{foreign}");
            }
        }
        let https = |port: &str| {
            let bytes = format!("GET / HTTP/1.1\r\nHost: localhost{port}\r\n\r\n");
            let head = head_of(&bytes);
            let (bytes, key) = (bytes.as_bytes(), key());
            let evidence =
                Evidence { head: head.with(bytes), remote_addr: "::1", is_tls: true, binds: &[], key: &key };
            evidence.is_own_origin(b"https://localhost")
        };
        assert!(https("") && https(":443") && !https(":80"));
    }

    #[test]
    fn a_host_in_the_target_counts() {
        let bytes = format!("GET http://evil.example/ HTTP/1.1\r\n{}\r\n\r\n", with_cookie("localhost"));
        let head = head_of(&bytes);
        let (bytes, key) = (bytes.as_bytes(), key());
        let evidence =
            Evidence { head: head.with(bytes), remote_addr: "::1", is_tls: false, binds: &[], key: &key };
        assert!(!evidence.may_be_developer());
    }

    #[test]
    fn pages_name_no_other_place() {
        let text = "<script>x()</script>";
        for page in [Page::of_link(text, Form::Html), Page::of_maintenance(Some(text), 600)] {
            let text = String::from_utf8(page.body).unwrap();
            for part in ["<script", "src=", "href=", "url(", "http://", "https://"] {
                assert!(!text.contains(part), "{part}");
            }
        }
    }

    #[test]
    fn times_are_in_words_that_promise_no_less() {
        for (seconds, words) in [
            (1, "1 second"),
            (90, "90 seconds"),
            (120, "2 minutes"),
            (600, "10 minutes"),
            (601, "11 minutes"),
            (3600, "60 minutes"),
            (7200, "2 hours"),
            (86_400, "24 hours"),
            (172_800, "2 days"),
            (u32::MAX, "49711 days"),
        ] {
            assert_eq!(in_words(seconds), words);
        }
    }
}
