//! What other machines publish, on a bus such as Redis: one process of the application brings it into the hub. Others are ready to go
//! on with it.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Whose turn it is to bring messages in, and the messages that were brought in.
#[derive(Debug, Default)]
pub(crate) struct Bus {
    turns: Arc<Mutex<()>>,
    /// Where the last message was on the bus, in the words of the process that has brought it in.
    position: RefCell<String>,
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
