//! The WebSockets of Action Cable that the front holds for an application: how many there are, and whether it can hold them.

use std::cell::{Cell, RefCell};

use super::Hub;
use crate::clock::Tally;

/// The log says at most this often that commands were lost or rejected, in ms.
const LOG_MS: u64 = 60_000;

/// What a request for a WebSocket says to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CableOffer {
    /// The front would hold it.
    Held,
    /// There are as many as there may be.
    Full,
}

/// What is known of all of them.
#[derive(Debug, Default)]
pub(super) struct Cables {
    clients: Cell<usize>,
    commands: Cell<u64>,
    lost: Tally,
    rejected: Tally,
    /// The generation whose WebSockets workers have to keep.
    relayed: RefCell<Option<u32>>,
}

impl Cables {
    pub(super) fn clients(&self) -> usize {
        self.clients.get()
    }

    pub(super) fn commands(&self) -> u64 {
        self.commands.get()
    }
}

impl Hub {
    /// What a request for a WebSocket says to the application, whose newest generation that serves is this. `None`: nothing.
    pub(crate) fn cable_offer(&self, generation: u32) -> Option<CableOffer> {
        let limits = self.limits();
        let may_hold = limits.hold_cable && *self.cables.relayed.borrow() != Some(generation);
        may_hold.then(|| match self.cables.clients.get() < limits.cable_clients as usize {
            true => CableOffer::Held,
            false => CableOffer::Full,
        })
    }

    /// The application needs what cannot be held: workers keep the WebSockets of this generation from now on.
    pub(crate) fn relay_cables(&self, generation: u32, app: &str, why: &str) {
        if self.cables.relayed.borrow_mut().replace(generation) != Some(generation) {
            tracing::warn!(
                name: "cable_not_held",
                application = app,
                why,
                "Action Cable's WebSockets are given to workers, and close when these restart"
            );
        }
    }

    pub(super) fn cable_begins(&self) {
        self.cables.clients.set(self.cables.clients.get() + 1);
    }

    pub(super) fn cable_ends(&self) {
        self.cables.clients.set(self.cables.clients.get() - 1);
    }

    /// A worker is asked something for a WebSocket.
    pub(crate) fn note_command(&self) {
        self.cables.commands.set(self.cables.commands.get() + 1);
    }

    /// What a worker was asked has got no answer.
    pub(crate) fn note_lost_command(&self, app: &str, why: &str) {
        if let Some(times) = self.cables.lost.note(LOG_MS) {
            tracing::warn!(
                name: "cable_command_unanswered",
                application = app,
                times,
                why,
                "a message of a client of Action Cable got no answer from its worker"
            );
        }
    }

    /// A client has too many subscriptions.
    pub(crate) fn note_rejected_subscription(&self, app: &str) {
        if let Some(times) = self.cables.rejected.note(LOG_MS) {
            tracing::warn!(
                name: "cable_streams_full",
                application = app,
                times,
                "a client of Action Cable has as many subscriptions or streams as max_cable_streams allows"
            );
        }
    }
}
