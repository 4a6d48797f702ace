//! Reports what happens to requests that no client waits for any more ([`super::overrun`]), so that their threads are not lost
//! for good; and workers that begin no requests ([`super::stall`]), or show no sign of life ([`super::silence`]).

use std::rc::Rc;

use highball_link::{FrontAppEvent, Overrun};
use highball_ring::Ticket;

use super::overrun::OverrunNews;
use super::silence::{AtWork, Sign};
use super::stall::{patience_ms, Seen};
use super::worker::DispatchState;
use super::Dispatcher;
use crate::clock::now_ms;
use crate::exchange::response::Progress;
use crate::exchange::{Exchange, Place};
use crate::refusals::failure::method_and_path;

impl Dispatcher {
    /// No client waits for the answer to a request that a worker has begun. `progress`: what there was of the answer; the
    /// time limit is for its beginning.
    pub(super) fn note_overrun(&mut self, exchange: &Exchange, progress: Progress) {
        let inner = exchange.borrow();
        let (Place::Worker(number, ticket), Some(limit_ms)) = (inner.place, inner.limit_ms) else { return };
        drop(inner);
        if progress != Progress::Waiting {
            return;
        }
        if let Some(index) = self.position(number) {
            self.workers[index].overruns.add(ticket, limit_ms);
        }
    }

    /// The answer of a request that runs on a fiber has not begun, and no client waits for it: its time may be over. It holds no
    /// place, so nothing else need be watched.
    pub(super) fn note_overrun_of_fiber(&self, exchange: &Rc<Exchange>, worker: u32, ticket: Ticket) {
        let inner = exchange.borrow();
        let is_over = inner.limit_ms.is_some_and(|limit_ms| now_ms() >= limit_ms);
        let has_begun = inner.response.progress() != Progress::Waiting;
        drop(inner);
        if is_over && !has_begun {
            self.events.send(FrontAppEvent::RequestTimedOut(timed_out(worker, ticket, Some(exchange))));
        }
    }

    /// Reports workers that do not begin what they are given, or show no sign of life. Requests of this application may wait for `limit_ms`.
    pub(crate) fn report_stalls(&mut self, limit_ms: Option<u64>, is_development: bool) {
        let now_ms = self.loop_time.tick(now_ms());
        let patience_ms = patience_ms(limit_ms, is_development);
        for worker in &mut self.workers {
            let gets_requests = matches!(worker.state, DispatchState::Serving | DispatchState::Retiring);
            let busy = worker.busy_threads();
            let seen = Seen {
                missed: worker.unresponsive,
                waits: worker.is_overdue(),
                // In development, a request may have come to a breakpoint, where all threads stop.
                is_expected: gets_requests
                    && busy < worker.ring.places()
                    && !(is_development && busy > 0)
                    && !worker.is_suspect(), // a request that does not end explains it, and has its own limit
            };
            let at_work = AtWork { served: worker.served, busy_threads: busy, is_development };
            let is_silent = worker.silence.look(at_work, now_ms);
            let begins_none = worker.stall.look(seen, now_ms, patience_ms);
            if begins_none || (is_silent && !worker.stall.is_stalled()) {
                self.events.send(FrontAppEvent::WorkerUnresponsive { worker: worker.number });
            }
            worker.is_on_trial = worker.stall.is_on_trial(now_ms);
        }
    }

    /// What the supervisor has seen of a worker.
    pub(crate) fn note_sign_of_life(&mut self, number: u32, answers: bool, is_stopped: bool) {
        let sign = match (is_stopped, answers) {
            (true, _) => Sign::Stopped,
            (false, false) => Sign::Silent,
            (false, true) => Sign::Answers,
        };
        if let Some(index) = self.position(number) {
            self.workers[index].silence.note(sign);
        }
    }

    /// Reports requests whose time limits, or the grace after that, have passed.
    pub(crate) fn report_overruns(&mut self) {
        let now_ms = now_ms();
        let mut is_news = false;
        for worker in &mut self.workers {
            for news in worker.overruns.news(now_ms) {
                is_news = true;
                self.events.send(match news {
                    OverrunNews::TimedOut(ticket) => {
                        let exchange = worker.slots[usize::from(ticket.slot)].as_ref();
                        FrontAppEvent::RequestTimedOut(timed_out(worker.number, ticket, exchange))
                    }
                    OverrunNews::Stuck => FrontAppEvent::WorkerStuck { worker: worker.number },
                });
            }
        }
        if is_news {
            self.settle();
        }
    }
}

fn timed_out(worker: u32, ticket: Ticket, exchange: Option<&Rc<Exchange>>) -> Overrun {
    let request = exchange.map(|exchange| method_and_path(&exchange.borrow().request.head));
    Overrun { worker, ticket: ticket.pack(), request: request.unwrap_or_default() }
}
