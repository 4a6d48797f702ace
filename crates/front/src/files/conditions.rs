//! Conditional requests and ranges (RFC 9110 sections 13 and 14).

use std::time::SystemTime;

use super::found_file::Representation;
use crate::http_syntax::parse_length;
use crate::message::request_head::{known_key, Method, RequestHead};

/// What the client gets of a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
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

/// Weighs the conditions in the order of RFC 9110 section 13.2.2.
pub(super) fn judge(head: &RequestHead, buffer: &[u8], representation: &Representation) -> Verdict {
    let field = |key| head.field(key, buffer);
    // A list may come in several fields (RFC 9110 section 5.3).
    let lists = |key, comparison| {
        let mut lists = head.values_of(key, buffer);
        lists.any(|list| lists_tag(list, &representation.etag, comparison))
    };
    let modified_after = |date: &[u8]| parse_date(date).map(|date| whole_seconds(representation) > date);
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
    let range = field(known_key::RANGE).filter(|_| head.method == Method::Get);
    let holds = field(known_key::IF_RANGE).is_none_or(|validator| is_current(validator, representation));
    range.filter(|_| holds).map_or(Verdict::Whole, |range| judge_range(range, representation.length))
}

/// How entity tags are compared (RFC 9110 section 8.8.3.2). Ours are strong.
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    Strong,
    Weak,
}

fn lists_tag(list: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    list == b"*"
        || list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).any(|tag| match tag.strip_prefix(b"W/") {
            Some(weak) => comparison == Comparison::Weak && weak == etag,
            None => tag == etag,
        })
}

/// Whether the validator of If-Range is exactly that of the representation.
fn is_current(validator: &[u8], representation: &Representation) -> bool {
    if validator.ends_with(b"\"") {
        return validator == representation.etag;
    }
    parse_date(validator) == Some(whole_seconds(representation))
}

fn whole_seconds(representation: &Representation) -> u64 {
    seconds(representation.last_modified)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn parse_date(date: &[u8]) -> Option<u64> {
    let date = std::str::from_utf8(date).ok()?;
    httpdate::parse_http_date(date).ok().map(seconds)
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
        let etag = b"\"a\"";
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
        }
    }
}
