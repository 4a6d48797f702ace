//! What the worker keeps of each slot: its request, and how far the answer has come.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;

use crate::request_clock::Begun;

/// How far an answer has come. The front treats frames out of order as a protocol error, so a method that is
/// called at the wrong stage writes nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing final was written.
    #[default]
    Waiting,
    /// The head was written; a body may follow.
    Body,
    /// The head was written; a hijack follows (partial hijack).
    Promised,
    /// The app has the connection, after a head of ours.
    Upgraded,
    /// The app has the connection, and answers over it (full hijack).
    Hijacked,
}

/// What the worker keeps of a slot. With the GVL held only.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The position of the open request, 0 if there is none.
    pub(crate) position: Cell<u64>,
    /// Bytes of its answer written so far, free-running.
    pub(crate) written: Cell<u32>,
    pub(crate) stage: Cell<Stage>,
    /// Whether the application writes a line about this request itself.
    pub(crate) is_logged: Cell<bool>,
    /// When it began, where its time is taken: of a few requests a second.
    pub(crate) timed: RefCell<Option<Box<Begun>>>,
    /// Whether a thread has waited for room, and perhaps still does.
    pub(crate) waited: Cell<bool>,
    /// The descriptor that another thread has received for this request, or for the next one (the file of its body, or its
    /// socket), and the request's position.
    received: RefCell<Option<(u64, OwnedFd)>>,
}

impl Slot {
    /// Ready for the answer to the request at `position`.
    pub(crate) fn begin(&self, position: u64) {
        self.position.set(position);
        self.written.set(0);
        self.stage.set(Stage::Waiting);
        self.is_logged.set(false);
        self.waited.set(false);
    }

    /// Keeps a descriptor for the request at `position`: the open one, or one after `newest`, which was claimed last. Others
    /// have ended, or were taken back.
    pub(crate) fn keep(&self, position: u64, newest: u64, descriptor: OwnedFd) {
        if position == self.position.get() || position > newest {
            self.received.replace(Some((position, descriptor)));
        }
    }

    /// Closes what is kept for a request that was taken back.
    pub(crate) fn sweep(&self, newest: u64) {
        let mut received = self.received.borrow_mut();
        received.take_if(|(position, _)| *position <= newest && *position != self.position.get());
    }

    /// The descriptor that is kept for the request at `position`.
    pub(crate) fn take_kept(&self, position: u64) -> Option<OwnedFd> {
        let is_its = self.received.borrow().as_ref().is_some_and(|(kept_for, _)| *kept_for == position);
        is_its.then(|| self.received.take()).flatten().map(|(_, descriptor)| descriptor)
    }

    /// The answer has ended.
    pub(crate) fn end(&self) {
        drop(self.take_kept(self.position.replace(0)));
    }
}
