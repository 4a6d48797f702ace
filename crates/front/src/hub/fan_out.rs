//! Wakes the subscribers of streams with new messages: a few in each turn of the event loop, so that neither a stream with
//! many subscribers nor an application that publishes without end holds up requests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::hub::streams::Stream;
use crate::hub::{Hub, TURN_BYTES};

/// Number of subscribers to wake in a turn. Each writes to its socket, which takes a few microseconds.
const WAKES: usize = 32;

/// Hubs with new messages, which take turns.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    hubs: RefCell<VecDeque<Rc<Hub>>>,
    due: Notify,
}

impl FanOut {
    fn add(&self, hub: Rc<Hub>) {
        self.hubs.borrow_mut().push_back(hub);
        self.due.notify_one();
    }

    fn next(&self) -> Option<Rc<Hub>> {
        self.hubs.borrow_mut().pop_front()
    }

    /// Wakes subscribers for ever.
    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            self.due.notified().await;
            while let Some(hub) = self.next() {
                if hub.wake_some() {
                    self.hubs.borrow_mut().push_back(hub);
                }
                // The event loop looks at the sockets next.
                yield_now().await;
            }
        }
    }
}

impl Hub {
    /// Queues the subscribers of a stream that has a new message.
    pub(super) fn has_news(self: &Rc<Self>, stream: Rc<Stream>, bytes: u64) {
        let (messages, before) = self.ahead.get();
        self.ahead.set((messages + 1, before + bytes));
        let everything = Some(Rc::clone(&self.everything)).filter(|all| all.has_subscribers());
        for stream in [Some(stream), everything].into_iter().flatten() {
            if stream.woken.get().is_some() {
                stream.has_more.set(true);
            } else {
                stream.woken.set(Some(0));
                self.news.borrow_mut().push_back(stream);
            }
        }
        if !self.is_queued.replace(true) {
            self.fan_out.add(Rc::clone(self));
        }
    }

    /// Wakes some subscribers. Returns false when all are awake and have had the turns that they need for the new messages.
    fn wake_some(&self) -> bool {
        let mut news = self.news.borrow_mut();
        if let Some(stream) = news.pop_front() {
            let last = stream.woken.get().and_then(|after| stream.wake_some(after, WAKES));
            let begins_again = last.is_none() && stream.has_more.replace(false);
            stream.woken.set(if begins_again { Some(0) } else { last });
            if stream.woken.get().is_some() {
                news.push_back(stream);
            }
            self.turns_left.set(self.ahead.get().1 / TURN_BYTES as u64);
            return true;
        }
        let turns_left = self.turns_left.get();
        self.turns_left.set(turns_left.saturating_sub(1));
        if turns_left == 0 {
            self.is_queued.set(false);
            self.ahead.set((0, 0));
            self.caught_up.notify_waiters();
        }
        turns_left > 0
    }
}
