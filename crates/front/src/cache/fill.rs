//! A request on its way to the application whose answer may be stored: what comes is recorded beside what the client gets,
//! as fast as the worker sends it, however slow the client is.

use std::rc::Rc;
use std::time::SystemTime;

use super::answer::{kept_lines, Parts, StoredAnswer, Varied};
use super::body::{Body, Bytes, Codings};
use super::flights::Flying;
use super::key::Key;
use super::policy::{self, Policy};
use super::AppCache;
use crate::budget::Permit;
use crate::clock::now_ms;
use crate::message::answer::{AnswerBody, AnswerHead, FieldLines};
use crate::message::conditions::{self, Conditions, Verdict};
use crate::message::request_head::{append_field, known_key, RequestHead};

/// Statuses that mean that the application cannot answer now (RFC 5861 section 4).
const ERRORS: [u16; 4] = [500, 502, 503, 504];

/// What a body that is recorded begins with, in bytes, where its length is unknown.
const FIRST_BYTES: usize = 4096;

/// A request whose answer may be stored.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(super) cache: Rc<AppCache>,
    pub(super) key: Rc<Key>,
    /// The request, for what `Vary` will name.
    pub(super) head: RequestHead,
    pub(super) buffer: Box<[u8]>,
    /// Others may wait for it.
    pub(super) flying: Option<Flying>,
    /// What it may turn out to be the same as, or be replaced by where it is an error.
    pub(super) stale: Option<Rc<StoredAnswer>>,
    /// Why the application is asked (RFC 9211 section 2.2).
    pub(super) forwarded: &'static str,
    /// When the request came: that in time, and that among the changes of the URIs.
    pub(super) begun_ms: u64,
    pub(super) begun: u64,
    /// The generation of the worker that answers.
    pub(super) generation: u32,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// Nothing final has come.
    Asked,
    /// The body comes.
    Recording(Box<Recording>),
    /// There is nothing to be stored, or it is.
    Done,
}

/// An answer while it comes.
#[derive(Debug)]
pub(super) struct Recording {
    status: u16,
    lines: Vec<u8>,
    policy: Policy,
    body: Vec<u8>,
    memory: Memory,
}

/// The memory of a body that is recorded.
#[derive(Debug)]
struct Memory {
    permit: Permit,
    bytes: u64,
    cache: Rc<AppCache>,
}

/// What the client gets in the place of the application's answer.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) answer: Rc<StoredAnswer>,
    says: String,
    is_not_modified: bool,
}

impl Replacement {
    pub(super) fn new(answer: Rc<StoredAnswer>, says: String, asked: Option<&Conditions>) -> Self {
        let known_by = answer.known_by();
        let is_not_modified = answer.status() == 200
            && asked.is_some_and(|asked| conditions::judge(asked, known_by) == Verdict::NotModified);
        Replacement { answer, says, is_not_modified }
    }

    /// Writes its head.
    pub(crate) fn write_head(&self, lines: &mut FieldLines<'_>) -> AnswerHead {
        if self.is_not_modified {
            return self.answer.write_not_modified(&self.says, now_ms(), lines);
        }
        self.answer.write_head(&self.says, now_ms(), false, lines)
    }

    /// The body.
    pub(crate) fn body(&self) -> &[u8] {
        if self.is_not_modified {
            b""
        } else {
            self.answer.plain().piece(0, usize::MAX)
        }
    }
}

impl Fill {
    /// Has the application say whether a stored answer is still the same, in the place of the client's own conditions.
    pub(crate) fn add_conditions(&self, block: &mut Vec<u8>) {
        let Some(stale) = &self.stale else { return };
        if let Some(etag) = &stale.policy.etag {
            append_field(block, known_key::IF_NONE_MATCH, etag);
        }
        if let Some(date) = &stale.policy.last_modified {
            append_field(block, known_key::IF_MODIFIED_SINCE, date);
        }
    }

    /// Whether the application is asked with other conditions than the client's.
    pub(crate) fn has_conditions(&self) -> bool {
        self.stale.as_ref().is_some_and(|stale| stale.has_validator())
    }

    /// Whether other requests wait for the answer, so that it is wanted although the client has left.
    pub(crate) fn is_awaited(&self) -> bool {
        self.flying.as_ref().is_some_and(Flying::is_awaited)
    }

    /// Whether there is something to come that may be stored.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Done)
    }

    pub(crate) fn answered_by(&mut self, generation: u32) {
        self.generation = generation;
    }

    // --- The answer ----------------------------------------------------------------------------------

    /// Takes in a final head, with its fields as lines, and adds what the cache says about itself; or has something else be
    /// sent in its place.
    pub(super) fn take_head(
        &mut self,
        head: &AnswerHead,
        asked: Option<&Conditions>,
        lines: &mut FieldLines<'_>,
    ) -> Option<Replacement> {
        if let Some(replacement) = self.replacement(head.status, lines.written(), asked) {
            self.give_up();
            return Some(replacement);
        }
        let forwarded = self.forwarded;
        let is_recorded = self.record(head, lines.written());
        let stored = if is_recorded { "; stored" } else { "" };
        lines.add(b"cache-status", format!("highball; fwd={forwarded}{stored}").as_bytes());
        None
    }

    fn replacement(&mut self, status: u16, lines: &[u8], asked: Option<&Conditions>) -> Option<Replacement> {
        let stale = self.stale.as_ref()?;
        if status == 304 && stale.has_validator() {
            let answer = self.freshen(Rc::clone(stale), lines);
            let says = format!("{}; fwd=stale; fwd-status=304", answer.hit(now_ms()));
            return Some(Replacement::new(answer, says, asked));
        }
        if ERRORS.contains(&status) {
            return self.in_place_of_error(status, asked);
        }
        None
    }

    /// What the client gets in the place of an error, if the application has allowed that.
    pub(super) fn in_place_of_error(&self, status: u16, asked: Option<&Conditions>) -> Option<Replacement> {
        let now_ms = now_ms();
        let stale =
            self.stale.as_ref().filter(|stale| stale.is_stale_by(stale.policy.if_error_ms, now_ms))?;
        let says = format!("{}; fwd=stale; fwd-status={status}", stale.hit(now_ms));
        Some(Replacement::new(Rc::clone(stale), says, asked))
    }

    /// The stored answer, as the application says that it is still the same (RFC 9111 section 4.3.4).
    fn freshen(&mut self, stale: Rc<StoredAnswer>, lines: &[u8]) -> Rc<StoredAnswer> {
        let lines = stale.updated_lines(lines);
        let policy = policy::judge(stale.status, &lines, SystemTime::now());
        let is_stored = policy.is_some();
        let parts = Parts {
            key: Rc::clone(&self.key),
            status: stale.status,
            policy: policy.unwrap_or_else(|| stale.policy.clone()),
            varied: Varied::of(&stale.policy.vary, self.head.with(&self.buffer)),
            lines,
            at_ms: self.begun_ms,
        };
        let permit = self.cache.permit();
        if is_stored && self.is_current() && self.cache.make_room(parts.bytes()) {
            permit.set(parts.bytes());
            let answer = Rc::new(parts.with(Rc::clone(stale.body()), permit));
            self.cache.put(Rc::clone(&answer), self.head.with(&self.buffer));
            return answer;
        }
        Rc::new(parts.with(Rc::clone(stale.body()), permit))
    }

    /// Begins to record the answer, if it may be stored. If not, no request waits for it any more.
    fn record(&mut self, head: &AnswerHead, lines: &[u8]) -> bool {
        let recording = if self.is_open() { self.recording(head, lines) } else { None };
        if recording.is_none() {
            self.refuse(self.begun_ms);
        }
        recording.map(|recording| self.state = State::Recording(recording)).is_some()
    }

    fn recording(&self, head: &AnswerHead, lines: &[u8]) -> Option<Box<Recording>> {
        let most = self.cache.most_body_bytes();
        let length = match head.body {
            AnswerBody::None => 0,
            AnswerBody::Length(length) if length <= most => length as usize,
            AnswerBody::Unknown => FIRST_BYTES,
            AnswerBody::Length(_) | AnswerBody::Connection => return None,
        };
        if head.is_upgrade || lines.len() as u64 > most {
            return None;
        }
        let policy = policy::judge(head.status, lines, SystemTime::now())?;
        let mut memory = Memory { permit: self.cache.permit(), bytes: 0, cache: Rc::clone(&self.cache) };
        memory.grow_to(length)?;
        let kept = kept_lines(lines, policy.has_date);
        let body = Vec::with_capacity(length);
        Some(Box::new(Recording { status: head.status, lines: kept, policy, body, memory }))
    }

    /// Takes in bytes of the body.
    pub(super) fn take_body(&mut self, bytes: &[u8]) {
        let State::Recording(recording) = &mut self.state else { return };
        if recording.take_body(bytes, self.cache.most_body_bytes()).is_none() {
            self.refuse(now_ms());
        }
    }

    /// The answer is complete: it is stored.
    pub(super) fn complete(&mut self) {
        let State::Recording(recording) = std::mem::replace(&mut self.state, State::Done) else { return };
        if self.is_current() {
            self.store(*recording);
        }
        self.flying = None;
    }

    fn store(&self, recording: Recording) {
        let Recording { status, lines, policy, mut body, mut memory } = recording;
        body.shrink_to_fit();
        memory.shrink_to(body.len());
        let varied = Varied::of(&policy.vary, self.head.with(&self.buffer));
        let parts = Parts { key: Rc::clone(&self.key), status, lines, varied, policy, at_ms: self.begun_ms };
        if !self.cache.make_room(parts.bytes()) {
            return;
        }
        let permit = self.cache.permit();
        permit.set(parts.bytes());
        let plain = Rc::new(Bytes { bytes: body, _permit: memory.into_permit() });
        let body = Rc::new(Body { plain, codings: Codings::default() });
        self.cache.put(Rc::new(parts.with(body, permit)), self.head.with(&self.buffer));
    }

    /// Whether the answer is of the application as it is now: no other release serves, and nothing has changed the URI.
    fn is_current(&self) -> bool {
        self.cache.is_current(&self.key, self.begun, self.generation)
    }

    /// The answer turns out to be none that is stored, and so will the next ones.
    pub(super) fn refuse(&mut self, now_ms: u64) {
        if self.is_open() {
            self.cache.note_useless(&self.key, now_ms);
        }
        self.give_up();
    }

    /// Nothing will be stored. Waiting requests go to the application.
    pub(super) fn give_up(&mut self) {
        self.state = State::Done;
        self.flying = None;
    }
}

impl Recording {
    /// `None`: there is no room for it.
    fn take_body(&mut self, bytes: &[u8], most: u64) -> Option<()> {
        let length = self.body.len() + bytes.len();
        if length as u64 > most {
            return None;
        }
        if length > self.body.capacity() {
            let capacity = length.max(2 * self.body.capacity()).min(most as usize);
            self.memory.grow_to(capacity)?;
            self.body.reserve_exact(capacity - self.body.len());
        }
        self.body.extend_from_slice(bytes);
        Some(())
    }
}

impl Memory {
    fn grow_to(&mut self, bytes: usize) -> Option<()> {
        let more = (bytes as u64).saturating_sub(self.bytes);
        if !self.cache.may_record(more) || !self.cache.make_room(more) {
            return None;
        }
        self.permit.set(self.bytes + more);
        self.bytes += more;
        self.cache.count_recorded(more as i64);
        Some(())
    }

    fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes as u64);
        self.bytes -= less;
        self.permit.set(self.bytes);
        self.cache.count_recorded(-(less as i64));
    }

    /// It is no recording's any more.
    fn into_permit(self) -> Permit {
        let permit = self.cache.permit();
        permit.set(self.bytes);
        permit
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.cache.count_recorded(-(self.bytes as i64));
    }
}
