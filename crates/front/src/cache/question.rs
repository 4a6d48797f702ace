//! What a request wants of the cache: whether it is asked at all, and what it may answer (RFC 9111 section 5.2.1).

use super::answer::StoredAnswer;
use super::directives::Directives;
use super::key::{base_of, is_safe, Key};
use super::Asking;
use crate::message::request_head::{known_key, BodyFraming, Method};

/// A request that the cache may answer.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: Key,
    pub(super) is_head: bool,
    /// What its Cache-Control says; `Pragma: no-cache` counts where there is none.
    pub(super) says: Directives,
    /// Whether it has conditions itself.
    pub(super) is_conditional: bool,
}

/// Why the cache is not asked.
#[derive(Debug)]
pub(super) enum NotAsked {
    /// The answer is of no use here; with the reason for that (RFC 9211 section 2.2).
    Pass(&'static str),
    /// It may change a URI.
    Write { base: Vec<u8>, is_tls: bool, host: Vec<u8> },
}

impl Question {
    pub(super) fn of(asking: &Asking<'_>) -> Result<Question, NotAsked> {
        let Asking { head, is_tls, .. } = *asking;
        if !is_safe(head.method) {
            let host = head.host().map(|host| host.whole(head.text).to_vec());
            let target = || origin_form(head.target());
            let base = host.as_ref().and_then(|host| base_of(is_tls, host, target()?));
            return Err(match base.zip(host) {
                Some((base, host)) => NotAsked::Write { base, is_tls, host },
                None => NotAsked::Pass("method"),
            });
        }
        if !matches!(head.method, Method::Get | Method::Head) {
            return Err(NotAsked::Pass("method"));
        }
        // A body that is not part of the key; an answer for one client, or to a range; and what is no answer.
        const NOT: [crate::message::request_head::FieldKey; 5] = [
            known_key::AUTHORIZATION,
            known_key::RANGE,
            known_key::IF_RANGE,
            known_key::IF_MATCH,
            known_key::IF_UNMODIFIED_SINCE,
        ];
        let has = |key| head.field(key).is_some();
        if head.framing != BodyFraming::None || head.upgrade || NOT.into_iter().any(has) {
            return Err(NotAsked::Pass("bypass"));
        }
        let says = says(asking);
        let key = Key::of(head, is_tls).filter(|_| !says.no_store).ok_or(NotAsked::Pass("bypass"))?;
        let is_conditional = has(known_key::IF_NONE_MATCH) || has(known_key::IF_MODIFIED_SINCE);
        Ok(Question { key, is_head: head.method == Method::Head, says, is_conditional })
    }

    /// Whether what is stored has to be compared with what the application has, however fresh it is.
    pub(super) fn is_forced(&self) -> bool {
        self.says.no_cache || self.says.max_age == Some(0)
    }

    /// Whether this answer may be sent as it is.
    pub(super) fn accepts(&self, answer: &StoredAnswer, now_ms: u64) -> bool {
        let age_ms = answer.age_ms(now_ms);
        let fresh_ms = answer.fresh_ms(now_ms);
        let is_young = self.says.max_age.is_none_or(|seconds| age_ms <= seconds * 1000);
        let stays_fresh = self.says.min_fresh.is_none_or(|seconds| fresh_ms >= seconds * 1000);
        fresh_ms > 0 && !self.is_forced() && is_young && stays_fresh
    }

    /// Whether it may be sent while the application is asked for a newer one.
    pub(super) fn accepts_meanwhile(&self, answer: &StoredAnswer, now_ms: u64) -> bool {
        let is_undemanding =
            !self.is_forced() && self.says.max_age.is_none() && self.says.min_fresh.is_none();
        is_undemanding && answer.is_stale_by(answer.policy.while_revalidate_ms, now_ms)
    }
}

/// The path and the query of a target that may be a whole URI.
fn origin_form(target: &[u8]) -> Option<&[u8]> {
    if target.starts_with(b"/") {
        return Some(target);
    }
    let authority = memchr::memmem::find(target, b"://")? + 3;
    let path = memchr::memchr(b'/', &target[authority..])?;
    Some(&target[authority + path..])
}

fn says(asking: &Asking<'_>) -> Directives {
    let fields = |name: &'static [u8]| {
        let named = asking.head.fields().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value)
    };
    if fields(b"cache-control").next().is_some() {
        return Directives::of(fields(b"cache-control"));
    }
    Directives { no_cache: Directives::of(fields(b"pragma")).no_cache, ..Directives::default() }
}
