//! From the head of an HTTP/2 request to the one that all other stages know.
//!
//! The crate h2 has seen to it that there are the pseudo-header fields that a request needs, once each and before all others,
//! that names are tokens in lower case, that no field concerns a connection, and that the body has the length that is
//! announced (RFC 9113 sections 8.1.1 to 8.3). All else stands here.

use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::request::Parts;
use http::Uri;

use highball_config::Limits;

use crate::http_syntax::parse_length;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, RequestHead, Version, MAX_FIELDS};

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
    let target = target(&request.uri)?;
    if target.len() > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    if request.headers.len() > limits.header_fields.min(MAX_FIELDS) {
        return Err(Refusal::TooManyFields);
    }
    let host = host(request)?;
    let text = text_of(request, target, host);
    if text.len() > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    let mut rest = &text[..];
    let mut next = |length: usize| {
        let (part, behind) = rest.split_at(length);
        rest = behind;
        part
    };
    head.begin(next(request.method.as_str().len()), &text);
    let (target, host) = (next(target.len()), next(host.len()));
    for (name, value) in &request.headers {
        let (name, value) = (next(name.as_str().len()), next(value.len()));
        if value.trim_ascii().len() < value.len() {
            return Err(Refusal::BadFieldValue); // RFC 9113 section 8.2.1
        }
        head.add_field(name, value, &text);
    }
    head.set_target(target, Some(host), &text)?;
    head.version = Version::Http2;
    head.framing = framing(request, has_body)?;
    head.expect_continue = expects_continue(request)? && head.framing != BodyFraming::None;
    // The stream ends with the answer.
    (head.keep_alive, head.upgrade) = (false, false);
    Ok(text)
}

/// Everything that the head has spans of, without anything in between.
fn text_of(request: &Parts, target: &[u8], host: &[u8]) -> Vec<u8> {
    let fields = || request.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    let field_bytes: usize = fields().map(|(name, value)| name.len() + value.len()).sum();
    let method = request.method.as_str().as_bytes();
    let mut text = Vec::with_capacity(method.len() + target.len() + host.len() + field_bytes);
    for part in [method, target, host].into_iter().chain(fields().flat_map(|(name, value)| [name, value])) {
        text.extend_from_slice(part);
    }
    text
}

/// `:path`. CONNECT has none.
fn target(uri: &Uri) -> Result<&[u8], Refusal> {
    let path = uri.path_and_query().ok_or(Refusal::ConnectMethod)?;
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
