//! The requests that wait or are with a worker, for operators.

use std::rc::Rc;

use highball_link::{RequestStage, RunningRequest};

use super::worker::Worker;
use super::Dispatcher;
use crate::clock::now_us;
use crate::exchange::response::Progress;
use crate::exchange::{Exchange, Place};
use crate::refusals::failure::received_us;
use crate::running::running_request;

impl Dispatcher {
    /// The oldest requests, at most `most`, and the number of all others. Texts are made for the oldest alone: a queue may
    /// have a hundred thousand requests.
    pub(crate) fn running(&self, most: usize) -> (Vec<RunningRequest>, usize) {
        let in_workers = self.workers.iter().flat_map(|worker| worker.slots.iter().flatten());
        let all: Vec<(u64, &Rc<Exchange>)> = in_workers
            .chain(self.workers.iter().flat_map(|worker| &worker.streams))
            .chain(&self.queue)
            .map(|exchange| (received_us(&exchange.borrow().request.head), exchange))
            .collect();
        let (oldest, more) = oldest(all, most);
        let now = now_us(); // once, so that of two requests the first is never the younger
        (oldest.into_iter().map(|exchange| self.running_request(exchange, now)).collect(), more)
    }

    fn running_request(&self, exchange: &Exchange, now_us: u64) -> RunningRequest {
        let inner = exchange.borrow();
        let (stage, at) = match inner.place {
            Place::Connection | Place::Queue => (RequestStage::Queued, None),
            Place::Stream(number, ticket) => (RequestStage::Streaming, Some((number, ticket.pack()))),
            Place::Worker(number, ticket) => {
                let worker = self.position(number).map(|index| &self.workers[index]);
                let is_begun = worker.is_none_or(|worker: &Worker| worker.ring.is_claimed(ticket));
                let stage = match inner.response.progress() {
                    _ if !is_begun => RequestStage::Placed,
                    Progress::Waiting => RequestStage::Running,
                    Progress::Streaming | Progress::Ended => RequestStage::Answering,
                    Progress::Aborted | Progress::Refused(_) | Progress::GivenBack => RequestStage::Abandoned,
                };
                (stage, Some((number, ticket.pack())))
            }
        };
        running_request(&inner.request.head, now_us, stage, at, inner.response.body_bytes)
    }
}

/// The first received, in order, and the number of all others.
fn oldest<T>(mut all: Vec<(u64, T)>, most: usize) -> (Vec<T>, usize) {
    let more = all.len().saturating_sub(most);
    if more > 0 {
        all.select_nth_unstable_by_key(most, |(received, _)| *received);
        all.truncate(most);
    }
    all.sort_by_key(|(received, _)| *received);
    (all.into_iter().map(|(_, one)| one).collect(), more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_hundred_thousand_are_found() {
        let all: Vec<(u64, u64)> =
            (0..100_000).map(|number| number * 7919 % 100_000).map(|time| (time, time)).collect();
        assert_eq!(oldest(all, 4), (vec![0, 1, 2, 3], 99_996));
        assert_eq!(oldest(vec![(2, 'b'), (1, 'a')], 4), (vec!['a', 'b'], 0));
        assert_eq!(oldest(vec![(2, 'b'), (1, 'a')], 0), (vec![], 2));
    }
}
