//! Which answers are stored, and for how long they are fresh (RFC 9111 sections 3 and 4.2).

use std::time::SystemTime;

use super::directives::{delta_seconds, Directives};
use crate::http_syntax::{field_of, lines_of};
use crate::message::conditions::{parse_date, seconds};

/// Statuses of answers that are stored. Others are understood as well, but attackers can cause them by fields that are not
/// part of the key: 400 by a cookie that is too large, 500 by a cookie that the application cannot read.
const STATUSES: [u16; 12] = [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410, 451];

/// The most fields that `Vary` may name.
const MOST_VARY: usize = 16;

/// What is kept of an answer, and until when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Policy {
    /// The time after which it is stale, in ms.
    pub(super) lifetime_ms: u64,
    /// How old it was when it came, in ms.
    pub(super) age_ms: u64,
    /// How long it is used beyond its lifetime while it is fetched again, and if that fails; in ms.
    pub(super) while_revalidate_ms: u64,
    pub(super) if_error_ms: u64,
    /// The fields of requests on which it depends, in small letters, sorted.
    pub(super) vary: Vec<Box<[u8]>>,
    pub(super) etag: Option<Box<[u8]>>,
    pub(super) last_modified: Option<Box<[u8]>>,
    pub(super) has_date: bool,
}

/// Judges an answer by its head. `None`: it is not stored.
pub(super) fn judge(status: u16, lines: &[u8], now: SystemTime) -> Option<Policy> {
    if !STATUSES.contains(&status) {
        return None;
    }
    let facts = Facts::of(lines);
    let says = Directives::of(facts.cache_control.iter().copied());
    let is_for_all = says.public || says.s_maxage.is_some();
    if facts.is_for_one || !is_for_all || says.no_store || says.no_cache || says.private {
        return None;
    }
    let now_seconds = seconds(now);
    let date_seconds = facts.date.unwrap_or(now_seconds);
    let until_expiry = || facts.expires.map(|expires| expires.unwrap_or(0).saturating_sub(date_seconds));
    let lifetime = says.s_maxage.or(says.max_age).or_else(until_expiry)?;
    let age = facts.age.unwrap_or(0).max(now_seconds.saturating_sub(date_seconds));
    if lifetime <= age {
        return None;
    }
    // s-maxage forbids stale answers as proxy-revalidate does (RFC 9111 section 5.2.2.10).
    let may_be_stale = !says.must_revalidate && says.s_maxage.is_none();
    let beyond = |time: Option<u64>| time.filter(|_| may_be_stale).unwrap_or(0) * 1000;
    Some(Policy {
        lifetime_ms: lifetime * 1000,
        age_ms: age * 1000,
        while_revalidate_ms: beyond(says.stale_while_revalidate),
        if_error_ms: beyond(says.stale_if_error),
        vary: vary(&facts.vary)?,
        etag: facts.etag.map(Into::into),
        last_modified: facts.last_modified.map(Into::into),
        has_date: facts.date.is_some(),
    })
}

/// The names in `Vary`. `None`: it names everything, or too much.
fn vary(values: &[&[u8]]) -> Option<Vec<Box<[u8]>>> {
    let names = values.iter().flat_map(|value| value.split(|&byte| byte == b','));
    let names = names.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
    let mut names: Vec<Box<[u8]>> = names.map(|name| name.to_ascii_lowercase().into()).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() <= MOST_VARY && !names.iter().any(|name| **name == *b"*")).then_some(names)
}

/// What the fields of an answer say.
#[derive(Default)]
struct Facts<'a> {
    cache_control: Vec<&'a [u8]>,
    vary: Vec<&'a [u8]>,
    /// Whether it is for one client, or a part of something.
    is_for_one: bool,
    age: Option<u64>,
    date: Option<u64>,
    /// `Some(None)`: a date that is none, which has passed.
    expires: Option<Option<u64>>,
    etag: Option<&'a [u8]>,
    last_modified: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    fn of(lines: &'a [u8]) -> Self {
        let mut facts = Facts::default();
        for (name, value) in lines_of(lines).map(field_of) {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match name.len() {
                3 if is("age") => facts.age = facts.age.max(Some(delta_seconds(value).unwrap_or(0))),
                4 if is("date") => facts.date = parse_date(value),
                4 if is("etag") => facts.etag = Some(value),
                4 if is("vary") => facts.vary.push(value),
                7 if is("expires") => {
                    let expires = parse_date(value);
                    facts.expires = Some(facts.expires.map_or(expires, |before| before.min(expires)));
                }
                10 if is("set-cookie") => facts.is_for_one = true,
                11 if is("set-cookie2") => facts.is_for_one = true,
                13 if is("cache-control") => facts.cache_control.push(value),
                13 if is("content-range") => facts.is_for_one = true,
                13 if is("last-modified") => facts.last_modified = Some(value),
                15 if is("clear-site-data") => facts.is_for_one = true,
                16 if is("www-authenticate") => facts.is_for_one = true,
                _ => {}
            }
        }
        facts
    }
}

/// Whether a field is stored with an answer: not if it is about this request alone, or about a proxy.
pub(super) fn is_stored(name: &[u8]) -> bool {
    const NOT: [&[u8]; 8] = [
        b"age",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"traceparent",
        b"tracestate",
        b"x-request-id",
        b"x-runtime",
    ];
    !NOT.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether a field of a 304 replaces the stored one (RFC 9111 section 3.2): not if it describes the body.
pub(super) fn is_updated(name: &[u8]) -> bool {
    const NOT: [&[u8]; 5] =
        [b"content-encoding", b"content-length", b"content-range", b"content-type", b"etag"];
    is_stored(name) && !NOT.iter().any(|other| name.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW_SECONDS: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT

    fn judged(status: u16, lines: &str) -> Option<Policy> {
        let lines = lines.replace('\n', "\r\n");
        judge(status, lines.as_bytes(), SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_SECONDS))
    }

    #[test]
    fn how_long_answers_are_fresh() {
        for (lines, seconds) in [
            ("cache-control: max-age=300, public\n", 300),
            ("cache-control: public\ncache-control: max-age=300\n", 300),
            ("cache-control: s-maxage=60\n", 60),
            ("cache-control: s-maxage=60, max-age=300\n", 60),
            ("cache-control: s-maxage=600, max-age=3, public\n", 600),
            ("cache-control: public, max-age=5\nexpires: Sun, 06 Nov 1994 09:49:37 GMT\n", 5),
            ("cache-control: public\nexpires: Sun, 06 Nov 1994 08:50:37 GMT\n", 60),
            (
                "cache-control: public\ndate: Sun, 06 Nov 1994 08:49:37 GMT\nexpires: Sun, 06 Nov 1994 08:50:37 GMT\n",
                60,
            ),
            ("cache-control: public, must-revalidate, max-age=5\n", 5),
            ("cache-control: public, max-age=5, unheard-of=1\n", 5),
        ] {
            assert_eq!(judged(200, lines).map(|policy| policy.lifetime_ms), Some(seconds * 1000), "{lines}");
        }
    }

    #[test]
    fn what_is_not_stored() {
        for lines in [
            "",
            "cache-control: max-age=300\n",
            "cache-control: public\n",
            "cache-control: public, max-age=0\n",
            "cache-control: public, max-age=300, max-age=0\n",
            "cache-control: public, max-age=300s\n",
            "cache-control: s-maxage=0, max-age=300, public\n",
            "cache-control: public, max-age=300, private\n",
            "cache-control: public, max-age=300, private=\"x\"\n",
            "cache-control: public, max-age=300\ncache-control: no-store\n",
            "cache-control: public, max-age=300, no-cache\n",
            "cache-control: public, max-age=300, no-cache=\"set-cookie\"\n",
            "cache-control: public, max-age=300\nset-cookie: a=b\n",
            "cache-control: public, max-age=300\nvary: *\n",
            "cache-control: public, max-age=300\nvary: accept, *\n",
            "cache-control: public, max-age=300\nage: 300\n",
            "cache-control: public, max-age=300\nclear-site-data: \"cookies\"\n",
            "cache-control: public, max-age=300\ncontent-range: bytes 0-1/2\n",
            "cache-control: public, max-age=60\ndate: Sun, 06 Nov 1994 08:48:37 GMT\n",
            "cache-control: public\nexpires: 0\n",
            "cache-control: public\nexpires: Sun, 06 Nov 1994 08:50:37 GMT\nexpires: 0\n",
            "cache-control: public\nexpires: Sun, 06 Nov 1994 08:49:37 GMT\n",
        ] {
            assert_eq!(judged(200, lines), None, "{lines}");
        }
    }

    #[test]
    fn statuses() {
        let lines = "cache-control: public, max-age=300\n";
        for status in [200, 204, 301, 302, 308, 404, 410] {
            assert!(judged(status, lines).is_some(), "{status}");
            assert!(judged(status, "").is_none(), "{status} without a lifetime");
        }
        for status in
            [101, 201, 206, 304, 400, 401, 403, 405, 406, 412, 414, 416, 429, 431, 500, 502, 503, 999]
        {
            assert!(judged(status, lines).is_none(), "{status}");
        }
    }

    #[test]
    fn ages_and_times_beyond_the_lifetime() {
        let of =
            |control: &str, more: &str| judged(200, &format!("cache-control: {control}\n{more}")).unwrap();
        let stale = "public, max-age=60, stale-while-revalidate=10, stale-if-error=20";
        let policy = of(stale, "age: 7\n");
        assert_eq!((policy.age_ms, policy.while_revalidate_ms, policy.if_error_ms), (7000, 10_000, 20_000));
        assert_eq!(of(stale, "date: Sun, 06 Nov 1994 08:49:07 GMT\nage: 7\n").age_ms, 30_000);
        for strict in ["must-revalidate", "proxy-revalidate", "s-maxage=60"] {
            let policy = of(&format!("{stale}, {strict}"), "");
            assert_eq!((policy.while_revalidate_ms, policy.if_error_ms), (0, 0), "{strict}");
        }
    }

    #[test]
    fn names_in_vary() {
        let names = |value: &str| {
            judged(200, &format!("cache-control: s-maxage=1\n{value}")).map(|policy| policy.vary)
        };
        let two = Some(vec![b"accept"[..].into(), b"cookie"[..].into()]);
        assert_eq!(names("vary: Cookie, accept\n"), two);
        assert_eq!(names("vary: accept\nVary: ,COOKIE, accept\n"), two);
        let many: Vec<String> = (0..17).map(|number| format!("x{number}")).collect();
        assert_eq!(names(&format!("vary: {}\n", many.join(","))), None);
    }
}
