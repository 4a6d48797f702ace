//! From the head of an HTTP/2 request to the form that all other stages know.
//!
//! The crate h2 has seen to it that there are the pseudo-header fields that a request needs, once each and before all others,
//! that names are tokens in lower case, that no field concerns a connection, and that the body has the length that is
//! announced (RFC 9113 sections 8.1.1 to 8.3). All else stands here.

use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::request::Parts;
use http::{Method, Uri};

use highball_config::Limits;

use crate::http_syntax::parse_length;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, RequestHead, Version, MAX_FIELDS, METHOD_BYTES};

/// By these fields, an application knows a request for a WebSocket, whatever the protocol of the client. The key shows a client
/// that its server has understood it; here nothing looks at that.
const WEB_SOCKET: [(&[u8], &[u8]); 3] = [
    (b"connection", b"upgrade"),
    (b"upgrade", b"websocket"),
    (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Whether a client asks for a WebSocket (RFC 8441 section 5).
pub(super) fn is_for_web_socket(request: &Parts) -> bool {
    let protocol = request.extensions.get::<h2::ext::Protocol>();
    request.method == Method::CONNECT && protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
}

/// Reads the head of `request` into `head`. Returns what that has spans of. `has_body`: whether a body follows.
///
/// # Errors
/// The refusal for the client.
pub(super) fn read(
    request: &Parts,
    has_body: bool,
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<Vec<u8>, Refusal> {
    let is_for_web_socket = is_for_web_socket(request);
    let method = if is_for_web_socket { "GET" } else { request.method.as_str() }.as_bytes();
    if method == b"CONNECT" {
        return Err(Refusal::ConnectMethod);
    }
    if method.len() > METHOD_BYTES {
        return Err(Refusal::MethodTooLong);
    }
    let target = target(&request.uri)?;
    if target.len() > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    if request.headers.len() > limits.header_fields.min(MAX_FIELDS) {
        return Err(Refusal::TooManyFields);
    }
    let host = host(request)?;
    let fields = fields(request, is_for_web_socket);
    let text =
        [method, target, host].into_iter().chain(fields.iter().flat_map(|(name, value)| [*name, *value]));
    let text = text.collect::<Vec<_>>().concat();
    if text.len() > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    let mut rest = &text[..];
    let mut next = |length: usize| {
        let (part, behind) = rest.split_at(length);
        rest = behind;
        part
    };
    head.begin(next(method.len()), &text);
    let (target, host) = (next(target.len()), next(host.len()));
    for (name, value) in fields {
        if value.trim_ascii().len() < value.len() {
            return Err(Refusal::BadFieldValue); // RFC 9113 section 8.2.1
        }
        let (name, value) = (next(name.len()), next(value.len()));
        head.add_field(name, value, &text);
    }
    head.finish(target, Some(host), &text)?;
    head.version = Version::Http2;
    // What follows the request for a WebSocket is not a body.
    head.framing = framing(request, has_body && !is_for_web_socket)?;
    head.expect_continue = expects_continue(request)? && head.framing != BodyFraming::None;
    // The stream ends with the answer.
    (head.keep_alive, head.upgrade) = (false, is_for_web_socket);
    Ok(text)
}

/// All fields, and the extra fields by which a request for a WebSocket becomes one of HTTP/1.
fn fields(request: &Parts, is_for_web_socket: bool) -> Vec<(&[u8], &[u8])> {
    let added = if is_for_web_socket { &WEB_SOCKET[..] } else { &[] };
    let sent = request.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    sent.filter(|(name, _)| !added.iter().any(|(added, _)| added == name))
        .chain(added.iter().copied())
        .collect()
}

/// `:path`, where an absolute target of HTTP/1 may have this `:scheme`. The crate takes any, also an empty one, and
/// forgets it where there is no `:authority`.
fn target(uri: &Uri) -> Result<&[u8], Refusal> {
    let is_known = |scheme: &str| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if uri.scheme_str().is_some_and(|scheme| !is_known(scheme)) {
        return Err(Refusal::BadTarget);
    }
    let path = uri.path_and_query().ok_or(Refusal::BadTarget)?;
    Ok(path.as_str().as_bytes())
}

/// `:authority`, or where that is missing, as in what comes from HTTP/1, the Host field. Where there are both, they must not
/// differ: not all who read the request would read the same one (RFC 9113 section 8.3.1).
fn host(request: &Parts) -> Result<&[u8], Refusal> {
    let mut fields = request.headers.get_all(HOST).iter();
    let field = fields.next().map(|host| host.as_bytes());
    if fields.next().is_some() {
        return Err(Refusal::HostRepeated);
    }
    match (request.uri.authority(), field) {
        (None, None) => Err(Refusal::HostMissing),
        (None, Some(host)) => Ok(host),
        (Some(authority), None) => Ok(authority.as_str().as_bytes()),
        (Some(authority), Some(host)) if host.eq_ignore_ascii_case(authority.as_str().as_bytes()) => Ok(host),
        (Some(_), Some(_)) => Err(Refusal::HostDiffers),
    }
}

fn framing(request: &Parts, has_body: bool) -> Result<BodyFraming, Refusal> {
    let mut lengths = request.headers.get_all(CONTENT_LENGTH).iter();
    let length =
        lengths.next().map(|length| parse_length(length.as_bytes()).ok_or(Refusal::BadContentLength));
    if lengths.next().is_some() {
        return Err(Refusal::ContentLengthRepeated);
    }
    Ok(match (has_body, length.transpose()?) {
        (false, _) | (true, Some(0)) => BodyFraming::None,
        (true, Some(length)) => BodyFraming::Length(length),
        (true, None) => BodyFraming::Unknown,
    })
}

fn expects_continue(request: &Parts) -> Result<bool, Refusal> {
    let mut expectations = request.headers.get_all(EXPECT).iter();
    let are_known = expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    are_known.then(|| request.headers.contains_key(EXPECT)).ok_or(Refusal::UnknownExpectation)
}

#[cfg(test)]
mod tests;
