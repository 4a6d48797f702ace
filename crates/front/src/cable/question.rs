//! What a worker is asked about a WebSocket: the client's first request again, with a mark and a body of the front.

use std::rc::Rc;
use std::task::{Context, Poll};

use serde::Serialize;

use crate::budget::Account;
use crate::clock::{now_ms, now_us};
use crate::exchange::response::Progress;
use crate::exchange::response_head::HeadContext;
use crate::exchange::sink::Sink;
use crate::exchange::Exchange;
use crate::message::refusal::Refusal;
use crate::message::request_head::{make_cable_question, patch_limit};
use crate::refusals::failure::path;
use crate::refusals::failure_pages::Audience;
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// A question. The worker gets it as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Question<'a> {
    pub(super) kind: &'a str,
    /// What the application remembers of the client.
    pub(super) state: &'a str,
    /// The channels that it is about.
    pub(super) channels: Vec<Known<'a>>,
    /// What the client or the application has sent.
    pub(super) text: &'a str,
}

/// A channel, and what the application remembers of it.
#[derive(Debug, Serialize)]
pub(super) struct Known<'a> {
    pub(super) identifier: &'a str,
    pub(super) state: &'a str,
}

/// A question that was asked.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) exchange: Rc<Exchange>,
    app: Rc<AppState>,
    /// Number of the last message that was published before.
    pub(super) after: u64,
    /// Until when it may be answered, in milliseconds.
    pub(super) ends_ms: u64,
    /// Whether it may be asked twice.
    pub(super) is_repeatable: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("{}", .0.why())]
    Refused(Refusal),
    #[error("it took too long")]
    Late,
    #[error("the answer was cut off: its worker has died, it has more than 1 MiB, or max_buffers has no room for it")]
    CutOff,
    #[error("there is no memory for the question; max_buffers allows more")]
    NoMemory,
    /// A worker that knows nothing of held WebSockets.
    #[error("the worker has given another answer")]
    Foreign,
}

impl Question<'_> {
    /// Asks a worker of this generation or a newer one, by the client's request with this head.
    ///
    /// # Errors
    /// None takes it now.
    pub(super) fn ask(
        &self,
        head: &[u8],
        generation: u32,
        is_repeatable: bool,
        app: &Rc<AppState>,
        shared: &Shared,
    ) -> Result<Running, Lost> {
        let body = serde_json::to_vec(self).map_err(|_| Lost::NoMemory)?; // no type here can fail
        let limits = &shared.settings.limits;
        let account = || Account::new(&app.buffers, None);
        let (length, folder) = (body.len() as u64, limits.spool_dir.clone());
        let spool = Account::new(&app.spool, None);
        let mut sink = Sink::new(Some(length), limits.body_memory_bytes, folder, spool, account());
        if sink.take(&body).is_err() || sink.is_on_disk() {
            return Err(Lost::NoMemory);
        }
        let exchange = Rc::new(Exchange::after(generation));
        let mut inner = exchange.borrow();
        inner.request.head = head.to_vec();
        make_cable_question(&mut inner.request.head, length, now_us());
        let limit = app.settings().limits.time_for(|| path(&inner.request.head));
        let limit_ms = limit.map_or(0, |limit| u32::try_from(limit.as_millis()).unwrap_or(u32::MAX));
        patch_limit(&mut inner.request.head, limit_ms);
        let ends_ms = limit.map_or(u64::MAX, |_| now_ms() + u64::from(limit_ms));
        inner.limit_ms = limit.map(|_| ends_ms);
        inner.request.body = sink.into_body();
        inner.request.repeatable = is_repeatable;
        inner.response.assign_to(&app.reads, account());
        inner.response.reset(HeadContext { cable: true, ..HeadContext::default() });
        drop(inner);
        let running =
            Running { exchange, app: Rc::clone(app), after: app.hub.last(), ends_ms, is_repeatable };
        app.hub.note_command();
        shared.turn.activate(app);
        app.submit(&running.exchange, Audience::Public).map_err(Lost::Refused)?;
        shared.turn.step();
        Ok(running)
    }
}

impl Running {
    /// The text of the answer.
    pub(super) fn poll(&self, context: &Context<'_>, app: &AppState) -> Poll<Result<Vec<u8>, Lost>> {
        let mut inner = self.exchange.borrow();
        let is_for_front = inner.response.is_for_front();
        let lost = match inner.response.progress() {
            Progress::Ended => match inner.response.take_for_front() {
                Some((text, _)) => return Poll::Ready(Ok(text)),
                None => Lost::Foreign,
            },
            Progress::Streaming if !is_for_front => Lost::Foreign,
            Progress::Waiting | Progress::Streaming if now_ms() < self.ends_ms => {
                inner.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            Progress::Waiting | Progress::Streaming => Lost::Late,
            Progress::Refused(refusal) => Lost::Refused(refusal),
            Progress::Aborted | Progress::GivenBack => Lost::CutOff,
        };
        drop(inner);
        app.dispatcher.borrow_mut().cancel(&self.exchange);
        Poll::Ready(Err(lost))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.app.dispatcher.borrow_mut().cancel(&self.exchange);
        self.exchange.borrow().response.settle();
    }
}
