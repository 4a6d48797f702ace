//! Conditional requests and ranges (RFC 9110 sections 13 and 14): how much a client gets of a file, whether the front
//! has found it or an application sends it.

use std::time::SystemTime;

use crate::http_syntax::parse_length;
use crate::message::request_head::{known_key, FieldKey, Head, Method};

/// What the client gets of a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// 200
    Whole,
    /// 206; the part is never empty.
    Part { offset: u64, length: u64 },
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
    /// 416
    RangeNotSatisfiable,
}

impl Verdict {
    /// The status, and the offset and the length of what is sent; `whole`: the length of everything.
    pub(crate) fn part_of(self, whole: u64) -> (u16, u64, u64) {
        match self {
            Verdict::Whole => (200, 0, whole),
            Verdict::Part { offset, length } => (206, offset, length),
            Verdict::NotModified => (304, 0, 0),
            Verdict::PreconditionFailed => (412, 0, 0),
            Verdict::RangeNotSatisfiable => (416, 0, 0),
        }
    }
}

/// What a representation is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    /// Its entity tag, with its quotes; a weak one with `W/`.
    pub(crate) etag: Option<&'a [u8]>,
    /// When it was last modified, in seconds since 1970.
    pub(crate) last_modified: Option<u64>,
    /// Its length in bytes.
    pub(crate) length: u64,
}

/// The fields of a request that may be conditions.
pub(crate) trait Asked {
    /// Whether the method is GET.
    fn is_get(&self) -> bool;

    /// The values of a field, in the order they came.
    fn values(&self, key: FieldKey) -> impl Iterator<Item = &[u8]>;
}

impl Asked for Head<'_> {
    fn is_get(&self) -> bool {
        self.method == Method::Get
    }

    fn values(&self, key: FieldKey) -> impl Iterator<Item = &[u8]> {
        self.values_of(key)
    }
}

/// The conditions of a request, copied: the file is known when the application answers.
#[derive(Debug)]
pub(crate) struct Conditions {
    is_get: bool,
    fields: Vec<(FieldKey, Box<[u8]>)>,
}

impl Conditions {
    const KEYS: [FieldKey; 6] = [
        known_key::IF_MATCH,
        known_key::IF_UNMODIFIED_SINCE,
        known_key::IF_NONE_MATCH,
        known_key::IF_MODIFIED_SINCE,
        known_key::IF_RANGE,
        known_key::RANGE,
    ];

    /// The conditions of a request; `None`: it has none, or its method does not read.
    pub(crate) fn of(head: Head<'_>) -> Option<Self> {
        let reads = matches!(head.method, Method::Get | Method::Head);
        let has_some = Conditions::KEYS.iter().any(|key| head.has(*key));
        (reads && has_some).then(|| Conditions::copied(head))
    }

    #[inline(never)]
    fn copied(head: Head<'_>) -> Self {
        let values = |key| head.values_of(key).map(move |value| (key, value.into()));
        let fields = Conditions::KEYS.into_iter().flat_map(values).collect();
        Conditions { is_get: head.method == Method::Get, fields }
    }
}

impl Asked for Conditions {
    fn is_get(&self) -> bool {
        self.is_get
    }

    fn values(&self, key: FieldKey) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().filter(move |(of, _)| *of == key).map(|(_, value)| &**value)
    }
}

/// Weighs the conditions in the order of RFC 9110 section 13.2.2.
pub(crate) fn judge(asked: &impl Asked, validators: Validators<'_>) -> Verdict {
    let field = |key| asked.values(key).next();
    // A list may come in several fields (RFC 9110 section 5.3).
    let lists = |key, comparison| asked.values(key).any(|list| lists_tag(list, validators.etag, comparison));
    let modified_after =
        |date: &[u8]| validators.last_modified.zip(parse_date(date)).map(|(modified, date)| modified > date);
    if field(known_key::IF_MATCH).is_some() {
        if !lists(known_key::IF_MATCH, Comparison::Strong) {
            return Verdict::PreconditionFailed;
        }
    } else if field(known_key::IF_UNMODIFIED_SINCE).and_then(modified_after) == Some(true) {
        return Verdict::PreconditionFailed;
    }
    if field(known_key::IF_NONE_MATCH).is_some() {
        if lists(known_key::IF_NONE_MATCH, Comparison::Weak) {
            return Verdict::NotModified;
        }
    } else if field(known_key::IF_MODIFIED_SINCE).and_then(modified_after) == Some(false) {
        return Verdict::NotModified;
    }
    // Range is for GET only, and is ignored where If-Range does not hold.
    let range = field(known_key::RANGE).filter(|_| asked.is_get());
    let holds = field(known_key::IF_RANGE).is_none_or(|validator| is_current(validator, &validators));
    range.filter(|_| holds).map_or(Verdict::Whole, |range| judge_range(range, validators.length))
}

/// How entity tags are compared (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    Strong,
    Weak,
}

fn lists_tag(list: &[u8], etag: Option<&[u8]>, comparison: Comparison) -> bool {
    list == b"*"
        || etag.is_some_and(|etag| {
            list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).any(|tag| match comparison {
                Comparison::Strong => tag == etag && is_strong(tag),
                Comparison::Weak => opaque(tag) == opaque(etag),
            })
        })
}

fn is_strong(tag: &[u8]) -> bool {
    !tag.starts_with(b"W/")
}

/// A tag without the mark of a weak one.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether the validator of If-Range is exactly the representation's.
fn is_current(validator: &[u8], of: &Validators<'_>) -> bool {
    if validator.ends_with(b"\"") {
        return is_strong(validator) && of.etag == Some(validator);
    }
    of.last_modified.is_some_and(|modified| parse_date(validator) == Some(modified))
}

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A date of HTTP, in seconds since 1970.
pub(crate) fn parse_date(date: &[u8]) -> Option<u64> {
    let date = std::str::from_utf8(date).ok()?;
    httpdate::parse_http_date(date).ok().map(seconds)
}

/// `part`: offset and length; without one, none can be had (RFC 9110 section 14.4).
pub(crate) fn content_range(part: Option<(u64, u64)>, whole: u64) -> Vec<u8> {
    match part {
        Some((offset, length)) => format!("bytes {offset}-{}/{whole}", offset + length - 1).into_bytes(),
        None => format!("bytes */{whole}").into_bytes(),
    }
}

/// One range is served; several (which may be ignored, RFC 9110 section 14.2) or none at all that can be
/// understood give the whole.
fn judge_range(range: &[u8], whole: u64) -> Verdict {
    match parse_range(range) {
        None => Verdict::Whole,
        Some(Range::Last(length)) if length > 0 && whole > 0 => {
            let length = length.min(whole);
            Verdict::Part { offset: whole - length, length }
        }
        Some(Range::From(first, last)) if first < whole => {
            Verdict::Part { offset: first, length: last.min(whole - 1) - first + 1 }
        }
        Some(_) => Verdict::RangeNotSatisfiable,
    }
}

#[derive(Debug, PartialEq)]
enum Range {
    /// From one position to another, both included.
    From(u64, u64),
    /// The last bytes, of this number.
    Last(u64),
}

fn parse_range(range: &[u8]) -> Option<Range> {
    let (unit, set) = range.split_at_checked(b"bytes=".len())?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut ends = set.trim_ascii().splitn(2, |&byte| byte == b'-');
    match (ends.next()?, ends.next()?) {
        (b"", last) => Some(Range::Last(parse_length(last)?)),
        (first, b"") => Some(Range::From(parse_length(first)?, u64::MAX)),
        (first, last) => {
            let (first, last) = (parse_length(first)?, parse_length(last)?);
            (first <= last).then_some(Range::From(first, last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |offset, length| Verdict::Part { offset, length };
        for (range, whole, verdict) in [
            ("bytes=0-0", 10, part(0, 1)),
            ("bytes=2-5", 10, part(2, 4)),
            ("Bytes=2-", 10, part(2, 8)),
            ("bytes=2-100", 10, part(2, 8)),
            ("bytes=-3", 10, part(7, 3)),
            ("bytes=-100", 10, part(0, 10)),
            ("bytes=10-", 10, Verdict::RangeNotSatisfiable),
            ("bytes=-0", 10, Verdict::RangeNotSatisfiable),
            ("bytes=0-", 0, Verdict::RangeNotSatisfiable),
            ("bytes=-1", 0, Verdict::RangeNotSatisfiable),
            ("bytes=0-18446744073709551615", 10, part(0, 10)),
            ("bytes=0-18446744073709551616", 10, Verdict::Whole),
            ("bytes=5-2", 10, Verdict::Whole),
            ("bytes=0-1,3-4", 10, Verdict::Whole),
            ("bytes=-", 10, Verdict::Whole),
            ("bytes=+1-2", 10, Verdict::Whole),
            ("bytes", 10, Verdict::Whole),
            ("lines=0-1", 10, Verdict::Whole),
            ("", 10, Verdict::Whole),
        ] {
            assert_eq!(judge_range(range.as_bytes(), whole), verdict, "{range} of {whole}");
        }
    }

    #[test]
    fn tags_are_compared_as_asked() {
        let etag = Some(&b"\"a\""[..]);
        let weak_etag = Some(&b"W/\"a\""[..]);
        for (list, strong, weak) in [
            ("*", true, true),
            ("\"a\"", true, true),
            ("\"b\", \"a\"", true, true),
            ("W/\"a\"", false, true),
            ("\"b\"", false, false),
            ("a", false, false),
        ] {
            assert_eq!(lists_tag(list.as_bytes(), etag, Comparison::Strong), strong, "{list}");
            assert_eq!(lists_tag(list.as_bytes(), etag, Comparison::Weak), weak, "{list}");
            assert_eq!(lists_tag(list.as_bytes(), weak_etag, Comparison::Strong), list == "*", "{list}");
            assert_eq!(lists_tag(list.as_bytes(), weak_etag, Comparison::Weak), weak, "{list}");
            assert_eq!(lists_tag(list.as_bytes(), None, Comparison::Weak), list == "*", "{list}");
        }
    }
}
