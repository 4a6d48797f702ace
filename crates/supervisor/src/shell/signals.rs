//! The signals that `highball` listens to, and what they mean.
//!
//! | signal | meaning |
//! | --- | --- |
//! | TERM, QUIT | drain: finish what is in flight, then exit; a second one halts |
//! | INT | the same; in development it ends without waiting for requests |
//! | USR1 | rolling restart |
//! | URG | refork |
//! | USR2 | hot restart |
//! | TTIN, TTOU | one worker more, one fewer |
//! | CHLD | a child has ended |
//! | HUP | from a terminal that closes: the same as TERM; without a terminal: log files are reopened |

use crate::core::event::Received;
use std::io::{self, IsTerminal};
use tokio::signal::unix::{signal, Signal, SignalKind};

/// The signal by which this is passed on to another process; none, where it concerns this process alone.
pub(crate) fn to_pass_on(signal: Received) -> Option<rustix::process::Signal> {
    use rustix::process::Signal;
    match signal {
        Received::Terminate => Some(Signal::TERM),
        Received::Interrupt => Some(Signal::INT),
        Received::Hangup => Some(Signal::HUP),
        Received::Restart => Some(Signal::USR1),
        Received::Refork => Some(Signal::URG),
        Received::Upgrade => Some(Signal::USR2),
        Received::MoreWorkers => Some(Signal::TTIN),
        Received::FewerWorkers => Some(Signal::TTOU),
        Received::ChildEnded => None,
    }
}

/// The listening side of the signals.
#[derive(Debug)]
pub(crate) struct Signals {
    term: Signal,
    quit: Signal,
    int: Signal,
    hup: Signal,
    usr1: Signal,
    urg: Signal,
    usr2: Signal,
    ttin: Signal,
    ttou: Signal,
    child: Signal,
    /// Looked at once: a terminal that has closed is none any more.
    has_terminal: bool,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            urg: signal(SignalKind::from_raw(rustix::process::Signal::URG.as_raw()))?,
            usr2: signal(SignalKind::user_defined2())?,
            ttin: signal(SignalKind::from_raw(rustix::process::Signal::TTIN.as_raw()))?,
            ttou: signal(SignalKind::from_raw(rustix::process::Signal::TTOU.as_raw()))?,
            child: signal(SignalKind::child())?,
            has_terminal: io::stdin().is_terminal(),
        })
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.term.recv() => Received::Terminate,
            _ = self.quit.recv() => Received::Terminate,
            _ = self.int.recv() => Received::Interrupt,
            _ = self.hup.recv() => if self.has_terminal { Received::Terminate } else { Received::Hangup },
            _ = self.usr1.recv() => Received::Restart,
            _ = self.urg.recv() => Received::Refork,
            _ = self.usr2.recv() => Received::Upgrade,
            _ = self.ttin.recv() => Received::MoreWorkers,
            _ = self.ttou.recv() => Received::FewerWorkers,
            _ = self.child.recv() => Received::ChildEnded,
        }
    }
}
