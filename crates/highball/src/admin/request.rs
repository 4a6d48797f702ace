//! A request for health, metrics or the dashboard, and its answer.

use highball_front::http_syntax;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

/// The longest head.
const HEAD_BYTES: usize = 8 * 1024;
/// The most fields.
const FIELDS: usize = 64;

/// What is asked.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without a query.
    pub(super) path: String,
    /// The client asks for JSON.
    pub(super) wants_json: bool,
    /// It asks for metrics in the format OpenMetrics.
    pub(super) wants_open_metrics: bool,
    /// None in a request of HTTP/1.0.
    pub(super) host: Option<String>,
    pub(super) authorization: Option<String>,
    /// `Origin`: the origin of the page that made a browser send the request.
    pub(super) origin: Option<String>,
    /// `Sec-Fetch-Site`: whether that page is of this server.
    pub(super) fetch_site: Option<String>,
}

/// It is no request: the status, and what is wrong.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) u16, pub(super) &'static str);

/// Reads a request from what has come; `None`: more of it is to come. A body that follows is not read.
pub(super) fn read(head: &[u8]) -> Option<Result<Request, Wrong>> {
    match parse(head) {
        Ok(None) if head.len() >= HEAD_BYTES => Some(Err(Wrong(431, "the request's head is too long\n"))),
        parsed => parsed.transpose(),
    }
}

/// `None`: more of it is to come.
fn parse(head: &[u8]) -> Result<Option<Request>, Wrong> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let wrong = |_| Wrong(400, "this is not a request of HTTP/1\n");
    if parsed.parse(head).map_err(wrong)?.is_partial() {
        return Ok(None);
    }
    let target = parsed.path.unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(Wrong(400, "the request names no path\n"));
    }
    let mut request =
        Request { method: parsed.method.unwrap_or_default().into(), path: path.into(), ..Request::default() };
    for field in parsed.headers.iter() {
        let value = String::from_utf8_lossy(field.value);
        if field.name.eq_ignore_ascii_case("host") {
            if request.host.replace(value.trim().to_ascii_lowercase()).is_some() {
                return Err(Wrong(400, "the request has two fields Host\n"));
            }
        } else if field.name.eq_ignore_ascii_case("accept") {
            request.wants_json |= value.contains("application/json");
            request.wants_open_metrics |= value.contains("application/openmetrics-text");
        } else if field.name.eq_ignore_ascii_case("authorization") {
            request.authorization = Some(value.trim().to_owned());
        } else if field.name.eq_ignore_ascii_case("origin") {
            request.origin = Some(value.trim().to_ascii_lowercase());
        } else if field.name.eq_ignore_ascii_case("sec-fetch-site") {
            request.fetch_site = Some(value.trim().to_owned());
        }
    }
    Ok(Some(request))
}

/// Whether a request is for this host: a website can have a browser send requests here by a name that leads here for
/// a moment, but not by an address.
pub(super) fn is_host_allowed(request: &Request, allowed: &[String]) -> bool {
    let Some(host) = &request.host else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address =
        bare.map_or_else(|| name.parse::<IpAddr>().is_ok(), |bare| bare.parse::<Ipv6Addr>().is_ok());
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_local = name == "localhost" || name.ends_with(".localhost");
    is_address || is_local || allowed.iter().any(|allowed| allowed == "*" || allowed == name)
}

/// An answer. The connection ends with it.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    field: Option<(&'static str, Cow<'static, str>)>,
    pub(super) body: String,
}

impl Response {
    pub(super) fn new(status: u16, content_type: &'static str, body: String) -> Response {
        Response { status, content_type, field: None, body }
    }

    pub(super) fn text(status: u16, body: impl Into<String>) -> Response {
        Response::new(status, "text/plain; charset=utf-8", body.into())
    }

    /// With one more field.
    pub(super) fn with(self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Response {
        Response { field: Some((name, value.into())), ..self }
    }

    /// As it is sent.
    pub(super) fn bytes(&self, is_head: bool) -> Vec<u8> {
        let Response { status, content_type, field, body } = self;
        let reason = http_syntax::reason_phrase(*status);
        let field = field.as_ref().map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        let length = body.len();
        let body = if is_head { "" } else { body };
        format!(
            "HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{field}cache-control: \
             no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: Option<&str>, allowed: &[&str]) -> bool {
        let request = Request { host: host.map(str::to_owned), ..Request::default() };
        is_host_allowed(&request, &allowed.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn only_known_hosts_are_allowed() {
        for name in
            ["127.0.0.1", "127.0.0.1:9394", "10.1.2.3:1", "[::1]:9394", "[::1]", "localhost:1", "a.localhost"]
        {
            assert!(host(Some(name), &[]), "{name}");
        }
        for name in [
            "evil.example",
            "evil.example:9394",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "[x]",
        ] {
            assert!(!host(Some(name), &[]), "{name}");
        }
        assert!(host(None, &[]));
        assert!(host(Some("blog.internal:9394"), &["blog.internal"]));
        assert!(host(Some("blog.internal."), &["blog.internal"]));
        assert!(host(Some("x"), &["*"]));
    }

    #[test]
    fn heads_are_read() {
        let request = parse(b"GET /readyz?x HTTP/1.1\r\nHost: A:1\r\nAccept: application/json\r\n\r\n");
        let request = request.unwrap().unwrap();
        assert!(!request.wants_open_metrics);
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), request.wants_json),
            ("GET", "/readyz", true)
        );
        assert_eq!(request.host.as_deref(), Some("a:1"));
        assert!(parse(b"GET / HTTP/1.1\r\n").unwrap().is_none());
        for wrong in [
            "GET / HTTP/2.0\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n\r\n",
            "\x16\x03\x01",
            "G\0T / HTTP/1.1\r\n\r\n",
        ] {
            assert!(matches!(parse(wrong.as_bytes()), Err(Wrong(400, _))), "{wrong:?}");
        }
        assert!(parse(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").is_err());
    }
}
