//! From the head of an answer to HTTP/2's.

use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::http_syntax::DateCache;
use crate::message::answer::{AddedField, AnswerHead};
use crate::message::refusal::Refusal;
use crate::protocol::cgi::fields_of_all;

/// The head with these field lines, without lines about a connection and the answer to a WebSocket's key: there are none
/// in HTTP/2 (RFC 9113 section 8.2.2, RFC 8441 section 5). `date` adds one where there is none.
pub(super) fn response(
    head: &AnswerHead,
    lines: &[&[u8]],
    date: Option<&DateCache>,
) -> Result<Response<()>, Refusal> {
    if head.status == 101 {
        return Err(bad("answers 101, which HTTP/2 does not have"));
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status).map_err(|_| bad("has an unknown status"))?;
    let fields = response.headers_mut();
    if let Some(date) = date.filter(|_| !head.has.has(AddedField::Date) && !head.is_interim()) {
        add(fields, DATE, &date.now())?;
    }
    for (name, value) in fields_of_all(lines).filter(|(name, _)| !is_of_connection(name)) {
        let name = HeaderName::from_bytes(name).map_err(|_| bad("has a malformed field name"))?;
        add(fields, name, value.trim_ascii())?;
    }
    if let Some(length) = head.content_length {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    Ok(response)
}

fn add(fields: &mut HeaderMap, name: HeaderName, value: &[u8]) -> Result<(), Refusal> {
    let value = HeaderValue::from_bytes(value).map_err(|_| bad("has a malformed field value"))?;
    let added = fields.try_append(name, value);
    added.map(drop).map_err(|_| bad("has too many fields for HTTP/2"))
}

fn is_of_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
        b"sec-websocket-accept",
    ];
    NAMES.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn bad(why: &'static str) -> Refusal {
    Refusal::BadResponse { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[u8]) -> Vec<(String, String)> {
        let response = response(&AnswerHead::new(200), &[lines], None).unwrap();
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn names_become_lower_case_and_repeated_fields_stay_apart() {
        let lines = b"Content-Type: text/plain\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Empty: \r\n";
        let expected =
            [("content-type", "text/plain"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-empty", "")];
        assert_eq!(fields(lines), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn fields_of_the_connection_are_left_out() {
        let lines = b"Upgrade: h2c\r\nTransfer-Encoding: identity\r\nKeep-Alive: 5\r\nserver: x\r\n";
        assert_eq!(fields(lines), [("server".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn interim_heads_have_no_date() {
        let of = |status| {
            response(&AnswerHead::new(status), &[b"link: </a>\r\n"], Some(&DateCache::new())).unwrap()
        };
        assert!(!of(103).headers().contains_key(DATE));
        assert!(of(200).headers().contains_key(DATE));
    }

    #[test]
    fn there_is_no_switching_of_protocols() {
        let head = AnswerHead { is_upgrade: true, ..AnswerHead::new(101) };
        let refused = response(&head, &[], Some(&DateCache::new())).unwrap_err();
        assert_eq!(refused.status(), 502);
    }
}
