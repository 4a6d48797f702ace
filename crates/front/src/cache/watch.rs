//! Follows a worker's answer on its way to the client: stores it, or invalidates stored ones.

use std::rc::Rc;

use super::fill::{Fill, Replacement};
use super::key::base_of;
use super::AppCache;
use crate::clock::now_ms;
use crate::http_syntax::{field_of, lines_of};
use crate::message::answer::{AnswerHead, FieldLines};
use crate::message::conditions::Conditions;

/// What is done with an answer beside sending it.
#[derive(Debug)]
pub(crate) enum Watch {
    /// It may be stored.
    Fill(Box<Fill>),
    /// It may mean that what is stored has changed.
    Write(Box<Write>),
    /// Nothing; and why (RFC 9211 section 2.2).
    Pass(&'static str),
}

/// A request that may change a URI.
#[derive(Debug)]
pub(crate) struct Write {
    pub(super) cache: Rc<AppCache>,
    /// What the answers of the URI are stored under.
    pub(super) base: Vec<u8>,
    pub(super) is_tls: bool,
    pub(super) host: Vec<u8>,
}

impl Watch {
    /// Takes in a final head, and adds what the cache says about itself; or has something else be sent in its place.
    pub(crate) fn take_head(
        &mut self,
        head: &AnswerHead,
        asked: Option<&Conditions>,
        lines: &mut FieldLines<'_>,
    ) -> Option<Replacement> {
        match self {
            Watch::Fill(fill) => return fill.take_head(head, asked, lines),
            Watch::Write(write) => {
                write.take_head(head.status, lines.written());
                lines.add(b"cache-status", b"highball; fwd=method");
            }
            Watch::Pass(why) => lines.add(b"cache-status", format!("highball; fwd={why}").as_bytes()),
        }
        None
    }

    /// What the client gets in the place of an error of the server's own.
    pub(crate) fn in_place_of_error(&self, status: u16, asked: Option<&Conditions>) -> Option<Replacement> {
        self.fill()?.in_place_of_error(status, asked)
    }

    /// Takes in bytes of the body.
    pub(crate) fn take_body(&mut self, bytes: &[u8]) {
        if let Watch::Fill(fill) = self {
            fill.take_body(bytes);
        }
    }

    /// The answer is none that may be stored, whatever it says.
    pub(crate) fn give_up(&mut self) {
        if let Watch::Fill(fill) = self {
            fill.refuse(now_ms());
        }
    }

    /// The answer is complete.
    pub(crate) fn complete(&mut self) {
        if let Watch::Fill(fill) = self {
            fill.complete();
        }
    }

    /// The answer comes from a worker of this generation.
    pub(crate) fn answered_by(&mut self, generation: u32) {
        if let Watch::Fill(fill) = self {
            fill.answered_by(generation);
        }
    }

    pub(crate) fn fill(&self) -> Option<&Fill> {
        match self {
            Watch::Fill(fill) => Some(fill),
            Watch::Write(_) | Watch::Pass(_) => None,
        }
    }
}

impl Write {
    /// On success, invalidates this URI and the same-origin URIs that the response names (RFC 9111 section 4.4).
    fn take_head(&self, status: u16, lines: &[u8]) {
        if !(200..400).contains(&status) {
            return;
        }
        self.cache.invalidate(&self.base);
        for (name, value) in lines_of(lines).map(field_of) {
            if name.eq_ignore_ascii_case(b"location") || name.eq_ignore_ascii_case(b"content-location") {
                if let Some(base) = self.base_of_reference(value) {
                    self.cache.invalidate(&base);
                }
            }
        }
    }

    /// What answers of this URI are stored under, if it is a path, or a URI of the same origin.
    fn base_of_reference(&self, reference: &[u8]) -> Option<Vec<u8>> {
        let without_fragment = reference.split(|&byte| byte == b'#').next()?;
        let scheme: &[u8] = if self.is_tls { b"https://" } else { b"http://" };
        let rest = without_fragment.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme));
        if rest.is_none() {
            let is_path = !without_fragment.starts_with(b"//");
            return base_of(self.is_tls, &self.host, without_fragment).filter(|_| is_path);
        }
        let rest = &without_fragment[scheme.len()..];
        let (host, target) = rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len()));
        let target: &[u8] = if target.is_empty() { b"/" } else { target };
        host.eq_ignore_ascii_case(&self.host).then(|| base_of(self.is_tls, host, target))?
    }
}
