//! Requests for the same answer at the same time: one goes to the application, and the others wait for what it brings.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::pending::Pending;

/// How long a request waits for another one's answer. Then it goes to the application itself.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Most requests that wait for one.
const MOST_WAITING: usize = 4096;

/// The requests that others wait for, or may.
#[derive(Debug, Default)]
pub(super) struct Flights(RefCell<HashMap<Box<[u8]>, Rc<Flight>>>);

#[derive(Debug, Default)]
struct Flight {
    landed: Notify,
    has_landed: Cell<bool>,
    waiting: Cell<usize>,
}

/// A request that others may wait for, until this is dropped.
#[derive(Debug)]
pub(super) struct Flying {
    key: Box<[u8]>,
    flight: Rc<Flight>,
    flights: Rc<Flights>,
}

/// A waiting request.
struct Waiting(Rc<Flight>);

impl Flights {
    /// Whether there is a request for this.
    pub(super) fn is_there(&self, key: &[u8]) -> bool {
        self.0.borrow().contains_key(key)
    }

    /// Waits for the request for this. `None`: there is none, or enough others wait for it.
    pub(super) fn wait(&self, key: &[u8]) -> Option<Pending> {
        let flight = Rc::clone(self.0.borrow().get(key)?);
        if flight.waiting.get() >= MOST_WAITING {
            return None;
        }
        let waiting = Waiting::of(flight);
        Some(Pending::new(async move {
            let landed = waiting.0.landed.notified();
            if !waiting.0.has_landed.get() {
                // The next look into the cache shows its outcome.
                let _ = timeout(WAIT, landed).await;
            }
        }))
    }

    /// Others may wait for this request from now on.
    pub(super) fn begin(self: &Rc<Self>, key: Vec<u8>) -> Flying {
        let (key, flight): (Box<[u8]>, _) = (key.into(), Rc::new(Flight::default()));
        self.0.borrow_mut().insert(key.clone(), Rc::clone(&flight));
        Flying { key, flight, flights: Rc::clone(self) }
    }
}

impl Flying {
    /// Whether others wait for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.flight.waiting.get() > 0
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.flights.0.borrow_mut().remove(&self.key);
        self.flight.has_landed.set(true);
        self.flight.landed.notify_waiters();
    }
}

impl Waiting {
    fn of(flight: Rc<Flight>) -> Self {
        flight.waiting.set(flight.waiting.get() + 1);
        Waiting(flight)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}
