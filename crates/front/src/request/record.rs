//! What remains of a request: its place in the figures and its line in the access log.

use std::mem::{replace, take};
use std::rc::Rc;

use super::transaction::{Phase, Transaction};
use crate::access_log::{AccessLog, Entry, Outcome, CLIENT_LEFT};
use crate::clock::{now_us, turn_us};
use crate::exchange::response::Progress;
use crate::message::request_head::{known_key, Version};
use crate::message::request_id::RequestId;
use crate::moments::Moments;
use crate::shared::Shared;
use crate::trace::TraceEnd;
use crate::transport::stream::Peer;

impl Transaction {
    /// Begins to record the received request, unless it has waited and the record began before.
    pub(crate) fn open(&mut self) {
        if !matches!(self.phase, Phase::Open { .. }) {
            self.phase = Phase::Open { entry: None };
        }
    }

    /// Remembers what the access log and the trace will say of the request: that it was for this target, if it should not log the
    /// sent one.
    pub(crate) fn note(&mut self, target: Option<&[u8]>, text: &[u8], shared: &Shared) {
        if self.access_log(shared).is_some() {
            self.begin_entry(target, text);
        }
        if let (Some(tracer), Some(trace)) = (&shared.tracer, &mut self.trace) {
            tracer.describe(trace, self.head.with(text), target, &shared.key);
        }
    }

    #[inline(never)]
    fn begin_entry(&mut self, target: Option<&[u8]>, text: &[u8]) {
        let head = self.head.with(text);
        let version = match head.version {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        };
        let field = |key| head.field(key);
        let texts = [
            Some(head.method_name()),
            Some(target.unwrap_or(head.target())),
            field(known_key::REFERER),
            field(known_key::USER_AGENT),
            field(known_key::HOST),
        ];
        // A request that has waited began before it did.
        let begun_us = match &self.phase {
            Phase::Open { entry: Some(entry) } => entry.begun_us,
            _ => turn_us(),
        };
        self.phase = Phase::Open { entry: Some(Entry::new(texts, version, begun_us)) };
    }

    /// The same for a request that is refused: its head may not have been readable.
    pub(crate) fn note_refused(&mut self, shared: &Shared) {
        let is_noted = matches!(self.phase, Phase::Open { entry: Some(_) });
        if !is_noted {
            let entry = self.access_log(shared).map(|_| Entry::unreadable());
            self.phase = Phase::Open { entry };
        }
    }

    /// The response cache answers the request.
    pub(crate) fn note_hit(&mut self) {
        if let Phase::Open { entry: Some(entry) } = &mut self.phase {
            entry.is_hit = true;
        }
        self.trace.iter_mut().for_each(|trace| trace.note_hit());
    }

    /// The application itself logs the request.
    pub(crate) fn is_logged_elsewhere(&mut self) {
        self.phase = match take(&mut self.phase) {
            Phase::Open { .. } => Phase::Open { entry: None },
            phase => phase,
        };
    }

    /// The answer is cut off.
    #[cold]
    pub(crate) fn note_cut_off(&mut self) {
        self.trace.iter_mut().for_each(|trace| trace.note_cut_off());
    }

    /// Counts the request, adds its line to the access log, and ends its trace; once.
    pub(crate) fn record(&mut self, status: u16, body_bytes: u64, peer: &Peer, shared: &Shared) {
        let Phase::Open { entry } = replace(&mut self.phase, Phase::Recorded) else { return };
        let moments = take(&mut self.exchange.borrow().moments);
        match &self.visit {
            Some(app) => {
                let exported = self.trace.as_ref().filter(|trace| trace.is_sampled()).map(|trace| trace.id());
                moments.add_to(&mut app.figures.borrow_mut(), self.head.method, status, exported);
                self.visitor.iter().for_each(|visitor| app.count_visit(*visitor, moments, status));
            }
            None => shared.unrouted.borrow_mut().add(self.head.method as usize, status),
        }
        self.end_trace(status, moments, peer, shared);
        let (Some(log), Some(entry)) = (self.access_log(shared), entry) else { return };
        let settings = self.visit.as_ref().map(|app| app.settings());
        let outcome = Outcome {
            address: &peer.remote_addr,
            user: self.user.as_deref(),
            is_tls: peer.is_tls,
            app: settings.as_ref().map(|settings| &*settings.name),
            status,
            body_bytes,
            moments,
            id: self.request_id.as_ref().map(RequestId::as_str),
            trace: self.trace.as_ref().map(|trace| trace.id()),
            now_us: now_us(),
        };
        log.add(&entry, &outcome, &shared.key);
    }

    fn end_trace(&mut self, status: u16, moments: Moments, peer: &Peer, shared: &Shared) {
        let (Some(tracer), Some(trace)) = (&shared.tracer, &mut self.trace) else { return };
        let settings = self.visit.as_ref().map(|app| app.settings());
        let app = settings.as_ref().map(|settings| &*settings.name);
        tracer.end(trace, TraceEnd { status, moments, peer, app }, &mut shared.random.borrow_mut());
    }

    /// Ends the trace of a request that another process goes on with.
    pub(crate) fn end_trace_here(&mut self, status: u16, peer: &Peer, shared: &Shared) {
        let moments = take(&mut self.exchange.borrow().moments);
        self.end_trace(status, moments, peer, shared);
    }

    /// Records that the client has left.
    pub(crate) fn record_departure(&mut self, peer: &Peer, shared: &Shared) {
        let body_bytes = {
            let response = &self.exchange.borrow().response;
            if response.progress() == Progress::Streaming {
                response.body_bytes
            } else {
                0
            }
        };
        self.record(CLIENT_LEFT, body_bytes, peer, shared);
    }

    /// Where the request is logged, if it is.
    pub(crate) fn access_log(&self, shared: &Shared) -> Option<Rc<AccessLog>> {
        match &self.visit {
            Some(visit) => visit.access_log(),
            None => shared.access_log.as_ref().map(Rc::clone),
        }
    }
}
