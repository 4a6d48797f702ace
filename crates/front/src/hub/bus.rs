//! What other machines publish, on a bus such as Redis: one process of the application brings it into the hub. Others are ready to go
//! on with it.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::{watch, Mutex, OwnedMutexGuard};

/// Whose turn it is to bring messages in, and the messages that were brought in.
#[derive(Debug, Default)]
pub(crate) struct Bus {
    turns: Arc<Mutex<()>>,
    /// Where the last message was on the bus, in the words of the process that has brought it in.
    position: RefCell<String>,
    /// The last such place that came without a message. All processes know it that receive messages by then.
    mark: watch::Sender<String>,
}

/// The turn of a process, until it is dropped.
#[derive(Debug)]
pub(crate) struct BusTurn {
    _taken: OwnedMutexGuard<()>,
}

impl Bus {
    /// Returns the turn, if no other process has it.
    pub(crate) fn free_turn(&self) -> Option<BusTurn> {
        Arc::clone(&self.turns).try_lock_owned().ok().map(|taken| BusTurn { _taken: taken })
    }

    /// Waits for the turn. Processes get it in the order in which they have asked.
    pub(crate) async fn turn(&self) -> BusTurn {
        BusTurn { _taken: Arc::clone(&self.turns).lock_owned().await }
    }

    /// Returns where the next process goes on; empty: there was none before.
    pub(crate) fn position(&self) -> String {
        self.position.borrow().clone()
    }

    /// Returns the last place that came without a message (empty: none has), and all that come from now on.
    pub(crate) fn marks(&self) -> watch::Receiver<String> {
        self.mark.subscribe()
    }

    /// Notes a place that came without a message.
    pub(crate) fn set_mark(&self, position: &str) {
        self.set_position(position);
        self.mark.send_replace(position.into());
    }

    /// Notes what was brought in.
    pub(crate) fn set_position(&self, position: &str) {
        let mut known = self.position.borrow_mut();
        known.clear();
        known.push_str(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_stand_by_learn_of_marks() {
        let bus = Bus::default();
        let mut marks = bus.marks();
        assert_eq!(*marks.borrow_and_update(), "");
        bus.set_position("a:1");
        bus.set_mark("b:0");
        marks.changed().await.unwrap();
        assert_eq!((marks.borrow_and_update().as_str(), bus.position().as_str()), ("b:0", "b:0"));
        assert_eq!(*bus.marks().borrow(), "b:0");
    }

    #[tokio::test]
    async fn one_process_at_a_time_has_the_turn() {
        let bus = Bus::default();
        let first = bus.free_turn();
        assert!(first.is_some() && bus.free_turn().is_none());
        bus.set_position("a:1");
        drop(first);
        let next = bus.turn().await;
        assert_eq!((bus.position().as_str(), bus.free_turn().is_none()), ("a:1", true));
        drop(next);
        assert!(bus.free_turn().is_some());
    }
}
