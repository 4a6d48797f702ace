//! Requests that workers are still at although nobody waits for their answers: their time limit has passed, or their client
//! has left before that. What becomes of them is reported, so that their threads are not lost for good.

use std::rc::Rc;

use highball_ring::Ticket;

use super::worker::Worker;
use super::Dispatcher;
use crate::clock::now_ms;
use crate::exchange::response::Progress;
use crate::exchange::{Exchange, Place};
use crate::messages::{AppEvent, TimedOutRequest};
use crate::refusals::failure::method_and_path;

/// How long a request may go on after its time limit without costing its worker.
const GRACE_MS: u64 = 2000;

/// A request that nobody waits for any more.
#[derive(Debug)]
pub(crate) struct Overrun {
    ticket: Ticket,
    /// When its time limit passes.
    limit_ms: u64,
    stage: Stage,
}

/// What the supervisor knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: its time limit has not passed.
    InTime,
    /// It has exceeded its time limit.
    Reported,
    /// It goes on: its worker is to be replaced.
    Stuck,
}

impl Worker {
    /// Requests that have exceeded their time limits.
    fn overdue_requests(&self) -> u32 {
        self.overruns.iter().filter(|overrun| overrun.stage != Stage::InTime).count() as u32
    }

    /// Whether it has nothing left but requests that have exceeded their time limits.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.is_idle() && self.overdue_requests() == self.in_flight
    }

    /// Whether a request of it goes on although its time limit has passed: its threads may wait for that one.
    pub(crate) fn is_suspect(&self) -> bool {
        !self.overruns.is_empty() && self.overdue_requests() > 0
    }

    /// The request in this slot has ended.
    pub(super) fn forget_overrun(&mut self, slot: u16) {
        self.overruns.retain(|overrun| overrun.ticket.slot != slot);
    }

    fn overrun(&mut self, ticket: Ticket, limit_ms: u64) {
        self.forget_overrun(ticket.slot);
        self.overruns.push(Overrun { ticket, limit_ms, stage: Stage::InTime });
    }
}

impl Dispatcher {
    /// Nobody waits for the answer to a request that a worker has begun. `progress`: what there was of the answer; the
    /// time limit is for its beginning.
    pub(super) fn note_overrun(&mut self, exchange: &Exchange, progress: Progress) {
        let inner = exchange.borrow();
        let (Place::Worker(number, ticket), Some(limit_ms)) = (inner.place, inner.limit_ms) else { return };
        drop(inner);
        if progress != Progress::Waiting {
            return;
        }
        if let Some(index) = self.position(number) {
            self.workers[index].overrun(ticket, limit_ms);
        }
    }

    /// Reports requests whose time limits, or the grace after that, have passed.
    pub(crate) fn report_overruns(&mut self) {
        let now_ms = now_ms();
        let mut is_news = false;
        for worker in self.workers.iter_mut().filter(|worker| !worker.overruns.is_empty()) {
            for at in 0..worker.overruns.len() {
                let Overrun { ticket, limit_ms, stage } = &mut worker.overruns[at];
                let (ticket, number) = (*ticket, worker.number);
                let event = match stage {
                    Stage::InTime if now_ms >= *limit_ms => {
                        *stage = Stage::Reported;
                        let exchange = worker.slots[usize::from(ticket.slot)].as_ref();
                        AppEvent::RequestTimedOut(Box::new(timed_out(number, ticket, exchange)))
                    }
                    Stage::Reported if now_ms >= *limit_ms + GRACE_MS => {
                        *stage = Stage::Stuck;
                        AppEvent::WorkerStuck { worker: number }
                    }
                    Stage::InTime | Stage::Reported | Stage::Stuck => continue,
                };
                is_news = true;
                self.events.send(event);
            }
        }
        if is_news {
            self.settle();
        }
    }
}

fn timed_out(worker: u32, ticket: Ticket, exchange: Option<&Rc<Exchange>>) -> TimedOutRequest {
    let request = exchange.map(|exchange| method_and_path(&exchange.borrow().request.head));
    TimedOutRequest { worker, ticket: ticket.pack(), request: request.unwrap_or_default() }
}
