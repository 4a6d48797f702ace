//! What is known of a request, from the first byte of its head to the last of its answer.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use highball_config::AppId;

use super::flow::Decision;
use super::without_client;
use crate::access_log::Entry;
use crate::basic_auth::Verdict;
use crate::compression::Stage;
use crate::exchange::Exchange;
use crate::message::answer::{AnswerEvents, FieldLines};
use crate::message::refusal::Refusal;
use crate::message::request_head::{Method, RequestHead};
use crate::message::request_id::RequestId;
use crate::refusals::failure_pages::Audience;
use crate::response_headers::HeaderChanges;
use crate::rollout::Visitor;
use crate::route::app_state::Visit;
use crate::shared::Shared;
use crate::trace::Trace;

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// The head; its memory serves the next request's, too.
    pub(crate) head: RequestHead,
    /// The request and its answer, as the application's dispatcher knows them. Used again for the next request.
    pub(crate) exchange: Rc<Exchange>,
    /// Events of the answer that wait for the protocol to write them.
    pub(crate) answer: AnswerEvents,
    /// Versions of applications that have answered on the connection.
    pub(crate) served_by: ServedBy,
    /// How far the request has come.
    pub(crate) phase: Phase,
    /// What the request has waited for until now.
    pub(crate) waited: Waited,
    /// The application that the request is for.
    pub(crate) visit: Option<Visit>,
    /// Time limit of the answer.
    pub(crate) limit: Option<Duration>,
    /// Compression of the answer, if the client accepts one.
    pub(crate) compression: Option<Box<Stage>>,
    /// User whose password came with the request.
    pub(crate) user: Option<Rc<[u8]>>,
    /// Request id, if requests get one.
    pub(crate) request_id: Option<RequestId>,
    /// Field lines that say what a rate limit leaves to the client, if one covers the request.
    pub(crate) quota_fields: Option<Box<str>>,
    /// Trace of the request, if requests are traced.
    pub(crate) trace: Option<Box<Trace>>,
    /// Changes to the header fields of the answer, if any apply.
    pub(crate) header_changes: Option<Box<HeaderChanges>>,
    /// Whether a worker's answer says how long the request has waited and taken.
    pub(crate) reports_timing: bool,
    /// Whether a worker's answer may give the client a cookie for its session.
    pub(crate) has_session: bool,
    /// The visitor, in a rollout of the application.
    pub(crate) visitor: Option<Visitor>,
    /// Who gets the page about a failure of the application.
    pub(crate) audience: Audience,
}

/// How far a request has come.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Its head has not been read.
    #[default]
    Reading,
    /// It has been received, and is to be counted, and to be logged if it has an entry.
    Open { entry: Option<Entry> },
    /// It has been counted and logged.
    Recorded,
}

/// What a request has waited for, so that it waits for the same no second time.
#[derive(Debug, Default)]
pub(crate) struct Waited {
    /// Check of its password.
    pub(crate) login: Option<Login>,
    /// Number of waits until more was known of a file.
    pub(crate) files: u8,
    /// Number of waits for the answer to another request.
    pub(crate) cache: u8,
    /// What the client's rate limits say of it.
    pub(crate) rated: Rated,
}

/// What a client's rate limits say of a request.
#[derive(Debug, Default)]
pub(crate) enum Rated {
    /// It does not count yet.
    #[default]
    No,
    /// It counts, and may go on.
    Passed,
    /// It is refused. The client may send the next one after this time.
    Refused { retry_after_seconds: u32 },
}

/// Check of a password.
#[derive(Debug)]
pub(crate) struct Login {
    /// Application that the password is for.
    pub(crate) app: AppId,
    pub(crate) verdict: Rc<OnceCell<Verdict>>,
}

/// The versions of applications that have answered on a connection.
#[derive(Debug, Default)]
pub(crate) struct ServedBy {
    /// Application of the previous request; its generation is in the exchange.
    last_app: Option<AppId>,
    /// Per other application, the generation that last answered.
    generations: Vec<(AppId, u32)>,
}

/// Whether to finish an answer that other requests wait for, when its own request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It comes in to its end.
    MayFinish,
    /// Nothing runs any more.
    AtOnce,
}

impl Transaction {
    /// The first request of a connection.
    pub(crate) fn new() -> Self {
        Transaction {
            head: RequestHead::new(),
            exchange: Rc::new(Exchange::new()),
            answer: AnswerEvents::default(),
            served_by: ServedBy::default(),
            phase: Phase::default(),
            waited: Waited::default(),
            visit: None,
            limit: None,
            compression: None,
            user: None,
            request_id: None,
            quota_fields: None,
            trace: None,
            header_changes: None,
            reports_timing: false,
            has_session: false,
            visitor: None,
            audience: Audience::Public,
        }
    }

    /// Begins the next request: nothing is known of it.
    pub(crate) fn begin(&mut self) {
        // By name, so that no field is forgotten.
        let Transaction {
            head: _,      // the protocol writes it
            exchange: _,  // its generation is the connection's, and `record` has taken its moments
            answer: _,    // all of it was sent
            served_by: _, // the connection's
            phase,
            waited,
            visit,
            limit,
            compression,
            user,
            request_id,
            quota_fields,
            trace,
            header_changes,
            reports_timing,
            has_session,
            visitor,
            audience,
        } = self;
        (*phase, *waited, *visit, *limit, *compression) = Default::default();
        (*user, *request_id, *quota_fields, *trace, *header_changes) = Default::default();
        (*reports_timing, *has_session, *visitor, *audience) = Default::default();
    }

    /// Answers with this, which is all of the answer; the body is left out where the method is HEAD.
    pub(crate) fn answer_whole(
        &mut self,
        status: u16,
        body: &[u8],
        write: impl FnOnce(&mut FieldLines<'_>),
    ) -> Decision {
        self.answer.push_whole(status, self.head.method == Method::Head, body, write);
        Decision::Answer
    }

    /// Answers a browser that follows a link with a secret: it gets a cookie in its place, and goes to the address without it.
    pub(crate) fn answer_link(&mut self, to: &[u8], cookie: Option<&str>) -> Decision {
        self.answer_whole(303, b"", |fields| {
            fields.add(b"location", to);
            if let Some(cookie) = cookie {
                fields.add(b"set-cookie", cookie.as_bytes());
            }
            fields.add(b"cache-control", b"no-store");
            fields.add(b"referrer-policy", b"no-referrer");
        })
    }

    /// Answers with a refusal in plain words, with these header lines beside its own, and leaves the connection open
    /// where the protocol can.
    pub(crate) fn answer_refusal(&mut self, refusal: Refusal, fields: &str) -> Decision {
        self.visit.iter().for_each(|app| app.count_refusal(refusal));
        let id = self.request_id.as_ref().map(RequestId::as_str);
        refusal.answer_in_words(id, fields, self.head.method == Method::Head, &mut self.answer);
        Decision::Answer
    }

    /// Returns the line by which a client gets a cookie that names the worker of its session, if it needs one.
    #[inline(never)]
    pub(crate) fn session_cookie(&self, is_tls: bool) -> Option<Vec<u8>> {
        let inner = self.exchange.borrow();
        let (session, worker) = (inner.request.session?, inner.moments.worker);
        drop(inner);
        self.visit.as_ref().filter(|_| worker > 0)?.session_cookie(session, worker, is_tls)
    }

    /// Goes on where other requests of the same client were answered by these generations, the last of all at the end.
    pub(crate) fn follow(&mut self, mut generations: Vec<(AppId, u32)>) {
        if let Some((app, generation)) = generations.pop() {
            self.exchange = Rc::new(Exchange::after(generation));
            self.served_by.last_app = Some(app);
        }
        self.served_by.generations = generations;
    }

    /// The application that has answered last, and its generation.
    pub(crate) fn answered_by(&self) -> Option<(AppId, u32)> {
        let generation = self.exchange.borrow().generation;
        self.served_by.last_app.map(|app| (app, generation)).filter(|_| generation > 0)
    }

    /// The generation of this application that answered last on this connection, 0 before its first answer. From now on
    /// the exchange is this application's.
    pub(crate) fn generation_of(&mut self, app: AppId) -> u32 {
        let generation = self.exchange.borrow().generation;
        let ServedBy { last_app, generations } = &mut self.served_by;
        let Some(before) = last_app.replace(app).filter(|before| *before != app) else {
            return generation;
        };
        generations.push((before, generation));
        let known = generations.iter().position(|(other, _)| *other == app);
        known.map_or(0, |at| generations.swap_remove(at).1)
    }

    /// Ends the request's visit to its application: its worker or its place in the queue is released, whatever the reason.
    pub(crate) fn leave_app(&mut self, leave: Leave, shared: &Shared) {
        let Some(visit) = self.visit.take() else { return };
        let goes_on =
            leave == Leave::MayFinish && without_client::finish_for_others(&self.exchange, &visit, shared);
        if !goes_on {
            visit.dispatcher.borrow_mut().cancel(&self.exchange);
            self.exchange.borrow().response.settle();
        }
        if Rc::strong_count(&self.exchange) > 1 {
            self.leave_exchange();
        }
    }

    /// A worker still has it, and the next request may be for an application where its place is another's.
    #[cold]
    fn leave_exchange(&mut self) {
        let generation = {
            let mut inner = self.exchange.borrow();
            inner.waker = None; // what comes of that answer is no news here
            inner.generation
        };
        self.exchange = Rc::new(Exchange::after(generation));
    }
}
