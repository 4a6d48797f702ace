//! The signals that `highball` listens to, and what they mean.
//!
//! | signal | meaning |
//! | --- | --- |
//! | TERM, QUIT | drain: finish what is in flight, then exit; a second one halts |
//! | INT | the same; in development it ends without waiting for requests |
//! | CHLD | a child has ended |
//! | HUP | ignored (a closed terminal ends the foreground group by itself) |

use std::io;
use tokio::signal::unix::{signal, Signal, SignalKind};

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// TERM or QUIT.
    Terminate,
    /// INT, mostly from Ctrl-C.
    Interrupt,
    /// CHLD.
    ChildEnded,
}

/// The listening side of the signals.
#[derive(Debug)]
pub(crate) struct Signals {
    term: Signal,
    quit: Signal,
    int: Signal,
    child: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            int: signal(SignalKind::interrupt())?,
            child: signal(SignalKind::child())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.term.recv() => Received::Terminate,
            _ = self.quit.recv() => Received::Terminate,
            _ = self.int.recv() => Received::Interrupt,
            _ = self.child.recv() => Received::ChildEnded,
        }
    }
}
