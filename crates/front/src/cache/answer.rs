//! A stored answer: what is sent of it, and for how long.

use std::rc::Rc;
use std::time::SystemTime;

use super::body::{Body, Bytes};
use super::key::Key;
use super::policy::{self, Policy};
use super::AppCache;
use crate::budget::Permit;
use crate::compression::accept_encoding::Coding;
use crate::compression::room::AppRoom;
use crate::compression::{coding_for, write_compressed};
use crate::http_syntax::{field_of, lines_of, write_number};
use crate::message::answer::{AnswerBody, AnswerHead, FieldLines};
use crate::message::conditions::{parse_date, Validators};
use crate::message::request_head::Head;

/// What an answer takes beside its bytes: its place among the others.
const OVERHEAD_BYTES: usize = 512;

/// A stored answer.
#[derive(Debug)]
pub(crate) struct StoredAnswer {
    pub(super) key: Rc<Key>,
    pub(super) status: u16,
    /// The fields, as lines.
    lines: Box<[u8]>,
    body: Rc<Body>,
    /// The values of the request in the fields that `Vary` names.
    varied: Varied,
    pub(super) policy: Policy,
    /// When it came, in ms.
    at_ms: u64,
    _permit: Permit,
}

/// What a request says in the fields that an answer depends on: names, and values if there are some.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Varied(Vec<(Box<[u8]>, Value)>);

/// The value of a field, if there is one.
type Value = Option<Box<[u8]>>;

impl Varied {
    /// What this request says in these fields.
    pub(super) fn of(names: &[Box<[u8]>], head: Head<'_>) -> Self {
        Varied(names.iter().map(|name| (name.clone(), value_in(name, head))).collect())
    }

    /// Whether another request says the same.
    pub(super) fn is_said_by(&self, head: Head<'_>) -> bool {
        self.0.iter().all(|(name, value)| *value == value_in(name, head))
    }

    fn bytes(&self) -> usize {
        let of_one = |(name, value): &(Box<[u8]>, Value)| {
            name.len() + value.as_ref().map_or(0, |value| value.len()) + 32
        };
        self.0.iter().map(of_one).sum()
    }
}

/// What a request says in a field, as it is compared (RFC 9111 section 4.1): several fields are one list, space around its
/// items makes no difference, and if the case makes none either, letters are small.
pub(super) fn value_in(name: &[u8], head: Head<'_>) -> Value {
    let mut joined: Option<Vec<u8>> = None;
    for (other, value) in head.passed_fields() {
        if !other.eq_ignore_ascii_case(name) {
            continue;
        }
        for item in value.split(|&byte| byte == b',') {
            match &mut joined {
                Some(joined) => joined.push(b','),
                None => joined = Some(Vec::new()),
            }
            joined.iter_mut().for_each(|joined| joined.extend_from_slice(item.trim_ascii()));
        }
    }
    if matches!(name, b"accept-encoding" | b"accept-language") {
        joined.iter_mut().for_each(|joined| joined.make_ascii_lowercase());
    }
    joined.map(Into::into)
}

/// What an answer is made of.
pub(super) struct Parts {
    pub(super) key: Rc<Key>,
    pub(super) status: u16,
    pub(super) lines: Vec<u8>,
    pub(super) varied: Varied,
    pub(super) policy: Policy,
    pub(super) at_ms: u64,
}

impl Parts {
    /// The memory that it takes beside its body.
    pub(super) fn bytes(&self) -> u64 {
        (self.key.whole().len() + self.lines.len() + self.varied.bytes() + OVERHEAD_BYTES) as u64
    }

    /// The answer, in the memory that the permit stands for.
    pub(super) fn with(self, body: Rc<Body>, permit: Permit) -> StoredAnswer {
        let Parts { key, status, lines, varied, policy, at_ms } = self;
        StoredAnswer { key, status, lines: lines.into(), body, varied, policy, at_ms, _permit: permit }
    }
}

/// The lines that are kept of an answer's head, with a date.
pub(super) fn kept_lines(lines: &[u8], has_date: bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(lines.len() + 40);
    for line in lines_of(lines).filter(|line| policy::is_stored(field_of(line).0)) {
        kept.extend_from_slice(line);
    }
    if !has_date {
        let date = httpdate::fmt_http_date(SystemTime::now());
        FieldLines::at_end_of(&mut kept).add(b"date", date.as_bytes());
    }
    kept
}

impl StoredAnswer {
    pub(super) fn body(&self) -> &Rc<Body> {
        &self.body
    }

    /// Whether it is the answer to this request, too, which has the same key.
    pub(super) fn is_for(&self, head: Head<'_>) -> bool {
        self.varied.is_said_by(head)
    }

    /// Its age, in ms.
    pub(super) fn age_ms(&self, now_ms: u64) -> u64 {
        self.policy.age_ms + now_ms.saturating_sub(self.at_ms)
    }

    /// How long it is fresh, in ms.
    pub(super) fn fresh_ms(&self, now_ms: u64) -> u64 {
        self.policy.lifetime_ms.saturating_sub(self.age_ms(now_ms))
    }

    /// Whether it is stale, and by no more than this.
    pub(super) fn is_stale_by(&self, most_ms: u64, now_ms: u64) -> bool {
        most_ms > 0 && self.age_ms(now_ms) < self.policy.lifetime_ms + most_ms
    }

    /// Whether the application can be asked whether it is still the same.
    pub(super) fn has_validator(&self) -> bool {
        self.policy.etag.is_some() || self.policy.last_modified.is_some()
    }

    /// What it is known by.
    pub(crate) fn known_by(&self) -> Validators<'_> {
        Validators {
            etag: self.policy.etag.as_deref(),
            last_modified: self.policy.last_modified.as_deref().and_then(parse_date),
            length: self.body.plain.length() as u64,
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Lines of this answer as a 304 to it has updated them (RFC 9111 section 3.2).
    pub(super) fn updated_lines(&self, by: &[u8]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(self.lines.len() + by.len());
        let of_304 = || lines_of(by).filter(|line| policy::is_updated(field_of(line).0));
        for line in lines_of(&self.lines) {
            let name = field_of(line).0;
            if !of_304().any(|other| field_of(other).0.eq_ignore_ascii_case(name)) {
                lines.extend_from_slice(line);
            }
        }
        of_304().for_each(|line| lines.extend_from_slice(line));
        lines
    }

    // --- Sending -------------------------------------------------------------------------------------

    /// Writes the head, with the age and what the cache says about itself.
    pub(crate) fn write_head(
        &self,
        says: &str,
        now_ms: u64,
        is_head: bool,
        lines: &mut FieldLines<'_>,
    ) -> AnswerHead {
        lines.add_lines(&self.lines);
        self.write_own(says, now_ms, lines);
        let length = (self.status != 204).then_some(self.body.plain.length() as u64);
        let body = length.filter(|_| !is_head).map_or(AnswerBody::None, AnswerBody::Length);
        AnswerHead { body, content_length: length, ..AnswerHead::new(self.status) }
    }

    /// Writes the head of a 304: the client has this answer.
    pub(crate) fn write_not_modified(
        &self,
        says: &str,
        now_ms: u64,
        fields: &mut FieldLines<'_>,
    ) -> AnswerHead {
        let lines = lines_of(&self.lines).filter(|line| {
            let name = field_of(line).0;
            let describes = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"));
            !describes
                || name.eq_ignore_ascii_case(b"content-location")
                || name.eq_ignore_ascii_case(b"content-security-policy")
        });
        lines.for_each(|line| fields.add_lines(line));
        self.write_own(says, now_ms, fields);
        AnswerHead::new(304)
    }

    fn write_own(&self, says: &str, now_ms: u64, lines: &mut FieldLines<'_>) {
        let mut age = Vec::new();
        write_number(self.age_ms(now_ms) / 1000, &mut age);
        lines.add(b"age", &age);
        lines.add(b"cache-status", says.as_bytes());
    }

    /// What the cache says about itself in the answer to a request that this is for: how many seconds it stays fresh, or has
    /// not been (RFC 9211 section 2.2).
    pub(crate) fn hit(&self, now_ms: u64) -> String {
        let ttl_ms = self.policy.lifetime_ms as i64 - self.age_ms(now_ms) as i64;
        format!("highball; hit; ttl={}", ttl_ms.div_euclid(1000))
    }

    /// The body.
    pub(crate) fn plain(&self) -> &Rc<Bytes> {
        &self.body.plain
    }

    /// The body in the coding that the client gets, if the answer is compressed for it, and was before.
    pub(crate) fn encoded(
        &self,
        head: Head<'_>,
        cache: &Rc<AppCache>,
        room: &AppRoom,
    ) -> Option<(Coding, Rc<Bytes>)> {
        let length = self.body.plain.length() as u64;
        let framing = AnswerHead { body: AnswerBody::Length(length), ..AnswerHead::new(self.status) };
        let coding = coding_for(head, &framing, &self.lines, length)?;
        self.body.in_coding(coding, cache, room).map(|bytes| (coding, bytes))
    }

    /// Writes the head of the answer in a coding, as [`StoredAnswer::write_head`].
    pub(crate) fn write_encoded_head(
        &self,
        (coding, bytes): &(Coding, Rc<Bytes>),
        says: &str,
        now_ms: u64,
        is_head: bool,
        lines: &mut FieldLines<'_>,
    ) -> AnswerHead {
        write_compressed(&self.lines, *coding, lines);
        self.write_own(says, now_ms, lines);
        // The answer to HEAD says what it says of other answers: no length.
        let length = Some(bytes.length() as u64).filter(|_| !is_head);
        let body = length.map_or(AnswerBody::None, AnswerBody::Length);
        AnswerHead { body, content_length: length, ..AnswerHead::new(self.status) }
    }
}
