//! Sessions that need one process: requests of a session go to the worker that has it (option `affinity`).
//!
//! A session is known by a cookie of the front or by a header field of the application. The cookie names the worker. It has
//! a code that only this server can make, so no client can choose a worker. For header fields the front remembers which worker
//! answered last, for a bounded number of sessions. In reading order: [`Session`] (what a request says), [`Affinity`] (which
//! worker that means), [`Recent`] (what is remembered).

mod recent;

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use highball_config::Affinity as Way;
use highball_link::SessionsReport;

use crate::cookies::{set_cookie_line, values_in};
use crate::message::request_head::{known_key, Head};
use recent::Recent;

/// Name of the cookie, with `=`.
const COOKIE: &str = "highball-worker=";
/// Sessions that are remembered, of each kind: about 2 MiB.
const MOST_SESSIONS: usize = 1 << 16;
/// Digits of a session's key, and of the code, in a cookie.
const DIGITS: usize = 16;

/// The session that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    /// Hash of the header field's value, or number in the cookie.
    pub(crate) key: u64,
    /// Worker that the cookie names.
    pub(crate) named: Option<u32>,
    /// Whether the client has named a session. Otherwise it may get one with the response.
    pub(crate) is_known: bool,
}

/// The sessions of an application.
#[derive(Debug)]
pub(crate) struct Affinity {
    way: Option<Way>,
    /// Header field by which the application names sessions.
    field: Option<Rc<str>>,
    /// Hashes with secret keys.
    secret: RandomState,
    /// Number of sessions that got a cookie.
    begun: u64,
    /// Workers of sessions that the application has begun: it has sent their header fields.
    issued: Recent,
    /// Workers of sessions that clients have named. A client may name any number of them, so these do not crowd out the others.
    adopted: Recent,
    pub(crate) counts: SessionsReport,
}

impl Affinity {
    pub(crate) fn new(way: Option<&Way>) -> Self {
        Affinity {
            way: way.cloned(),
            field: match way {
                Some(Way::Header(name)) => Some(name.as_str().into()),
                Some(Way::Cookie) | None => None,
            },
            secret: RandomState::new(),
            begun: 0,
            issued: Recent::new(MOST_SESSIONS),
            adopted: Recent::new(MOST_SESSIONS),
            counts: SessionsReport::default(),
        }
    }

    /// The option may have changed.
    pub(crate) fn set_way(&mut self, way: Option<&Way>) {
        if self.way.as_ref() != way {
            *self = Affinity { counts: self.counts, ..Affinity::new(way) };
        }
    }

    /// Whether the application names sessions by a header field.
    pub(crate) fn has_field(&self) -> bool {
        self.field.is_some()
    }

    /// Returns the header field by which the application names sessions.
    pub(crate) fn field(&self) -> Option<Rc<str>> {
        self.field.clone()
    }

    /// Finds the session of a request. `None`: sessions stay nowhere.
    pub(crate) fn session_of(&mut self, head: Head<'_>) -> Option<Session> {
        match &self.way {
            None => None,
            Some(Way::Header(name)) => {
                let value = named(head, name).filter(|value| !value.is_empty());
                let key = value.map(|value| self.secret.hash_one(value));
                Some(Session { key: key.unwrap_or_default(), named: None, is_known: key.is_some() })
            }
            Some(Way::Cookie) => {
                let known = head.values_of(known_key::COOKIE).find_map(|cookies| self.in_cookies(cookies));
                Some(known.unwrap_or_else(|| {
                    self.begun += 1;
                    let key = self.secret.hash_one(("session", self.begun));
                    Session { key, named: None, is_known: false }
                }))
            }
        }
    }

    /// Reads the cookie out of the value of a `Cookie` field.
    fn in_cookies(&self, cookies: &[u8]) -> Option<Session> {
        values_in(cookies, COOKIE.as_bytes()).find_map(|value| self.read(value))
    }

    /// Reads `WORKER.KEY.CODE`, if this server has written it for this application.
    fn read(&self, value: &[u8]) -> Option<Session> {
        let text = std::str::from_utf8(value).ok()?;
        let (worker, rest) = text.split_once('.')?;
        let (key, code) = rest.split_once('.').filter(|(key, code)| key.len() + code.len() == 2 * DIGITS)?;
        let (named, key) = (worker.parse().ok()?, u64::from_str_radix(key, 16).ok()?);
        let is_ours = u64::from_str_radix(code, 16).ok()? == self.code(named, key);
        is_ours.then_some(Session { key, named: Some(named), is_known: true })
    }

    fn code(&self, worker: u32, key: u64) -> u64 {
        self.secret.hash_one(("worker", worker, key))
    }

    /// Returns the line by which a client gets its cookie. `None`: it has the right one, or needs none.
    pub(crate) fn cookie_line(
        &self,
        session: Session,
        worker: u32,
        path: &str,
        is_tls: bool,
    ) -> Option<Vec<u8>> {
        if !matches!(self.way, Some(Way::Cookie)) || session.named == Some(worker) {
            return None;
        }
        let (key, code) = (session.key, self.code(worker, session.key));
        let cookie = format!("{COOKIE}{worker}.{key:016x}.{code:016x}");
        Some(set_cookie_line(&cookie, path, None, is_tls))
    }

    /// Returns the worker that had the session last.
    pub(crate) fn worker_of(&mut self, session: Session) -> Option<u32> {
        session.is_known.then_some(())?;
        self.issued.get(session.key).or_else(|| self.adopted.get(session.key))
    }

    /// Notes that a request of the session is at this worker.
    pub(crate) fn note_placed(&mut self, session: Session, worker: u32) {
        if !session.is_known || session.named == Some(worker) {
            return;
        }
        match self.issued.get(session.key) {
            Some(_) => self.issued.set(session.key, worker),
            None => self.adopted.set(session.key, worker),
        }
    }

    /// Notes that a worker has sent the header field that names a session.
    pub(crate) fn note_issued(&mut self, value: &[u8], worker: u32) {
        let key = self.secret.hash_one(value);
        self.adopted.remove(key);
        self.issued.set(key, worker);
    }
}

/// Returns the value of a header field.
fn named<'a>(head: Head<'a>, name: &str) -> Option<&'a [u8]> {
    let mut fields = head.passed_fields();
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Session = Session { key: 7, named: None, is_known: false };

    fn value(line: &[u8]) -> Vec<u8> {
        let text = String::from_utf8(line.to_vec()).unwrap();
        text.strip_prefix("set-cookie: ").unwrap().split(';').next().unwrap().into()
    }

    #[test]
    fn a_cookie_names_its_worker_and_nobody_else_can_write_one() {
        let (own, other) = (Affinity::new(Some(&Way::Cookie)), Affinity::new(Some(&Way::Cookie)));
        let line = own.cookie_line(NEW, 12, "/shop", true).unwrap();
        assert!(line.ends_with(b"; Path=/shop; HttpOnly; SameSite=Lax; Secure\r\n"));
        let cookie = value(&line);
        let among = [b"a=b; ", &cookie[..], b"; c"].concat();
        let known = Session { key: 7, named: Some(12), is_known: true };
        assert_eq!(own.in_cookies(&among), Some(known));
        assert_eq!(own.cookie_line(known, 12, "", false), None);
        assert!(own
            .cookie_line(known, 13, "", false)
            .unwrap()
            .ends_with(b"; Path=/; HttpOnly; SameSite=Lax\r\n"));
        assert_eq!(other.in_cookies(&among), None);
        for (from, to) in [("=12.", "=13."), ("0007.", "0008."), (".", ".+"), ("=12.", "=012.0")] {
            let forged = String::from_utf8(cookie.clone()).unwrap().replacen(from, to, 1);
            assert_eq!(own.in_cookies(forged.as_bytes()), None, "{forged}");
        }
    }

    #[test]
    fn sessions_that_clients_name_do_not_crowd_out_others() {
        let mut affinity = Affinity::new(Some(&Way::Header("mcp-session-id".into())));
        affinity.note_issued(b"of the application", 3);
        for key in 0..4 * MOST_SESSIONS as u64 {
            affinity.note_placed(Session { key, named: None, is_known: true }, 1);
        }
        let key = affinity.secret.hash_one(&b"of the application"[..]);
        let issued = Session { key, named: None, is_known: true };
        assert_eq!(affinity.worker_of(issued), Some(3));
        affinity.note_placed(issued, 4);
        assert_eq!(affinity.worker_of(issued), Some(4));
    }
}
