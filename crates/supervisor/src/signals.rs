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
//! | PWR | the backtraces of all threads go to the log |
//! | CHLD | a child has ended |
//! | HUP | from a terminal that closes: the same as TERM; without a terminal, or with `nohup`: log files are reopened |

use crate::core::event::ReceivedSignal;
use highball_spawner::exec::ends_with_terminal;
use std::io;
use tokio::signal::unix::{signal, Signal, SignalKind};

/// The signal by which this is passed on to another process; none, where it concerns this process alone.
pub(crate) fn to_pass_on(signal: ReceivedSignal) -> Option<rustix::process::Signal> {
    use rustix::process::Signal;
    match signal {
        ReceivedSignal::Terminate => Some(Signal::TERM),
        ReceivedSignal::Interrupt => Some(Signal::INT),
        ReceivedSignal::Hangup => Some(Signal::HUP),
        ReceivedSignal::Restart => Some(Signal::USR1),
        ReceivedSignal::Refork => Some(Signal::URG),
        ReceivedSignal::Upgrade => Some(Signal::USR2),
        ReceivedSignal::MoreWorkers => Some(Signal::TTIN),
        ReceivedSignal::FewerWorkers => Some(Signal::TTOU),
        ReceivedSignal::DumpThreads => Some(Signal::POWER),
        ReceivedSignal::ChildEnded => None,
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
    pwr: Signal,
    child: Signal,
    /// Whether it ends with its terminal. Looked at once: a terminal that has closed is none any more.
    ends_with_terminal: bool,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Signals> {
        let ends_with_terminal = ends_with_terminal();
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
            pwr: signal(SignalKind::from_raw(rustix::process::Signal::POWER.as_raw()))?,
            child: signal(SignalKind::child())?,
            ends_with_terminal,
        })
    }

    pub(crate) async fn next(&mut self) -> ReceivedSignal {
        tokio::select! {
            _ = self.term.recv() => ReceivedSignal::Terminate,
            _ = self.quit.recv() => ReceivedSignal::Terminate,
            _ = self.int.recv() => ReceivedSignal::Interrupt,
            _ = self.hup.recv() => if self.ends_with_terminal { ReceivedSignal::Terminate } else { ReceivedSignal::Hangup },
            _ = self.usr1.recv() => ReceivedSignal::Restart,
            _ = self.urg.recv() => ReceivedSignal::Refork,
            _ = self.usr2.recv() => ReceivedSignal::Upgrade,
            _ = self.ttin.recv() => ReceivedSignal::MoreWorkers,
            _ = self.ttou.recv() => ReceivedSignal::FewerWorkers,
            _ = self.pwr.recv() => ReceivedSignal::DumpThreads,
            _ = self.child.recv() => ReceivedSignal::ChildEnded,
        }
    }
}
