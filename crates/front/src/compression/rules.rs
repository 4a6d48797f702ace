//! Whether an answer is compressed, and what its head says then.

use super::accept_encoding::{AcceptEncoding, Coding};
use super::content::is_compressible;
use crate::http_syntax::{field_of, has_list_token, lines_of};
use crate::message::answer::{AnswerBody, AnswerHead, FieldLines};
use crate::message::request_head::{known_key, BodyFraming, Head, Method};

/// What is shorter fits into the packet that the head goes in anyway.
pub(crate) const LEAST_BYTES: u64 = 1024;

/// The codings for bodies that are made for one response, in the order of preference: zstd takes a fraction of the time.
const CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

/// What a request says about the compression of its answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `None`: its Accept-Encoding names none of ours.
    coding: Option<Coding>,
    secrets: Secrets,
    /// Its If-None-Match, if weak tags are among them: those may be ours, which the application does not know.
    weak_tags: Option<Box<[u8]>>,
}

/// Whether the length of the compressed answer may tell an attacker about secrets in it (BREACH): one who can have a
/// victim's browser send requests with guesses, and sees how long the answers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrets {
    /// There are none, or no other site has a say in the request.
    Safe,
    /// They may be at risk if the answer sets a cookie.
    AtRiskWithCookie,
    /// They may be at risk.
    AtRisk,
}

/// Whether an answer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is sent as it is.
    AsItIs,
    /// The same; another client would get it compressed.
    Varies,
    /// It is compressed.
    Compressed(Coding),
    /// The client has it compressed already.
    NotModified,
    /// It is a 304 for a client that has it compressed.
    StillNotModified,
}

impl Asked {
    /// `None`: the request has no Accept-Encoding. (It gets what any client can read, which caches may give to any.)
    pub(crate) fn of(head: Head<'_>) -> Option<Self> {
        head.field(known_key::ACCEPT_ENCODING)?;
        let coding = AcceptEncoding::of(head.values_of(known_key::ACCEPT_ENCODING)).choose(&CODINGS);
        let reads = matches!(head.method, Method::Get | Method::Head);
        let tags = head
            .field(known_key::IF_NONE_MATCH)
            .filter(|tags| reads && coding.is_some() && tags.windows(2).any(|two| two == b"W/"));
        Some(Asked { coding, secrets: Secrets::of(head), weak_tags: tags.map(Into::into) })
    }
}

impl Secrets {
    fn of(head: Head<'_>) -> Self {
        let has = |key| head.field(key).is_some();
        if !has(known_key::COOKIE) && !has(known_key::AUTHORIZATION) {
            return Secrets::Safe;
        }
        match head.field(known_key::SEC_FETCH_SITE) {
            Some(b"same-origin" | b"none") => Secrets::Safe,
            Some(_) => Secrets::AtRisk,
            // No browser, an old one, or no https. Without input, there is no guess.
            None if head.query().is_empty() && head.framing == BodyFraming::None => Secrets::Safe,
            None => Secrets::AtRiskWithCookie,
        }
    }
}

/// What the fields of an answer say about its compression.
#[derive(Default)]
struct Facts<'a> {
    is_compressible: bool,
    /// It is encoded or a part, must not be transformed, or its fields hold for these very bytes.
    is_fixed: bool,
    sets_cookie: bool,
    strong_tag: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    fn of(lines: &'a [u8]) -> Self {
        let mut facts = Facts::default();
        for (name, value) in lines_of(lines).map(field_of) {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match name.len() {
                4 if is("etag") => facts.strong_tag = Some(value).filter(|tag| tag.starts_with(b"\"")),
                10 if is("set-cookie") => facts.sets_cookie = true,
                12 if is("content-type") => facts.is_compressible = is_compressible(value),
                13 if is("cache-control") => facts.is_fixed |= has_list_token(value, "no-transform"),
                6 if is("digest") => facts.is_fixed = true,
                11 if is("content-md5") || is("repr-digest") => facts.is_fixed = true,
                13 if is("content-range") => facts.is_fixed = true,
                14 if is("content-digest") => facts.is_fixed = true,
                16 if is("content-encoding") => facts.is_fixed = true,
                _ => {}
            }
        }
        facts
    }
}

/// Judges an answer by its head; `length`: the body's, if it is known.
pub(super) fn judge(asked: &Asked, head: &AnswerHead, lines: &[u8], length: Option<u64>) -> Verdict {
    let has_tag = |tag: Option<&[u8]>| {
        tag.zip(asked.weak_tags.as_deref()).is_some_and(|(tag, tags)| lists_weakly(tags, tag))
    };
    match (head.status, head.body) {
        (304, _) if has_tag(Facts::of(lines).strong_tag) => return Verdict::StillNotModified,
        (0..=199 | 204..=206 | 304, _) | (_, AnswerBody::Connection) => return Verdict::AsItIs,
        _ if head.is_upgrade => return Verdict::AsItIs,
        _ => {}
    }
    let facts = Facts::of(lines);
    if !facts.is_compressible || facts.is_fixed || length.is_some_and(|length| length < LEAST_BYTES) {
        return Verdict::AsItIs;
    }
    let is_at_risk = match asked.secrets {
        Secrets::Safe => false,
        Secrets::AtRiskWithCookie => facts.sets_cookie,
        Secrets::AtRisk => true,
    };
    match asked.coding.filter(|_| !is_at_risk) {
        None => Verdict::Varies,
        Some(_) if head.status == 200 && has_tag(facts.strong_tag) => Verdict::NotModified,
        Some(coding) => Verdict::Compressed(coding),
    }
}

/// The coding in which the answer to this request is sent, with this head and a body of this length; `None`: as it is.
pub(crate) fn coding_for(request: Head<'_>, head: &AnswerHead, lines: &[u8], length: u64) -> Option<Coding> {
    match judge(&Asked::of(request)?, head, lines, Some(length)) {
        Verdict::Compressed(coding) => Some(coding),
        _ => None,
    }
}

/// Writes the fields of an answer in a coding that came with `lines`.
pub(crate) fn write_compressed(lines: &[u8], coding: Coding, fields: &mut FieldLines<'_>) {
    write_fields(lines, Verdict::Compressed(coding), fields);
}

/// Whether a list of entity tags has this strong one as a weak one.
fn lists_weakly(tags: &[u8], tag: &[u8]) -> bool {
    tags.split(|&byte| byte == b',').any(|other| other.trim_ascii().strip_prefix(b"W/") == Some(tag))
}

/// Writes the fields of an answer that came with `lines`, as the verdict says.
pub(super) fn write_fields(lines: &[u8], verdict: Verdict, fields: &mut FieldLines<'_>) {
    if verdict == Verdict::AsItIs {
        return fields.add_lines(lines);
    }
    let is_changed = verdict != Verdict::Varies;
    let is_not_modified = matches!(verdict, Verdict::NotModified | Verdict::StillNotModified);
    let mut varies = false;
    for line in lines_of(lines) {
        let (name, value) = field_of(line);
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match name.len() {
            4 if is("vary") => {
                let is_said = value == b"*" || has_list_token(value, "accept-encoding");
                if is_said || varies {
                    fields.add_lines(line);
                } else {
                    fields.add(name, &[value, b", accept-encoding"].concat());
                }
                varies = true;
            }
            // Strong ones are for the same bytes (RFC 9110 section 8.8.3.3).
            4 if is_changed && is("etag") && value.starts_with(b"\"") => {
                fields.add(name, &[b"W/", value].concat());
            }
            // A part of these bytes would be one of other bytes.
            13 if is_changed && is("accept-ranges") => {}
            12 if is_not_modified && is("content-type") => {}
            _ => fields.add_lines(line),
        }
    }
    if !varies {
        fields.add(b"vary", b"accept-encoding");
    }
    if let Verdict::Compressed(coding) = verdict {
        fields.add(b"content-encoding", coding.name().as_bytes());
    }
}

#[cfg(test)]
mod tests;
