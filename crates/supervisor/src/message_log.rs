//! Which messages of an application's processes lead to lines in the log. A process can repeat a message a million
//! times. Pure: the time is an argument.

use crate::control::message::{FromMold, FromWorker, SlowRequest};
use crate::process::companion_process::FromCompanion;
use crate::process::watcher::SocketEvent;
use crate::rate_limit::RateLimit;
use std::time::{Duration, Instant};

/// Messages of an application that may be logged in a second.
const PER_SECOND: u64 = 10;
/// Messages that may be logged at once: more than many workers send when all of them start.
const AT_ONCE: u64 = 500;
/// How often messages that were not logged are reported.
const NOTICE_EVERY: Duration = Duration::from_secs(1);

/// The limit of one application.
#[derive(Debug)]
pub(crate) struct MessageLog {
    limit: RateLimit,
    not_logged: u64,
    noticed_at: Option<Instant>,
}

impl MessageLog {
    pub(crate) fn new(now: Instant) -> MessageLog {
        MessageLog { limit: RateLimit::new(PER_SECOND, AT_ONCE, now), not_logged: 0, noticed_at: None }
    }

    /// Whether what this leads to is logged.
    pub(crate) fn takes(&mut self, event: &SocketEvent, now: Instant) -> bool {
        if !is_logged(event) {
            return true;
        }
        let takes = self.limit.allows(now);
        if takes {
            self.limit.spend(1);
        } else {
            self.not_logged += 1;
        }
        takes
    }

    /// The number of messages that were not logged since the last report, if it is time for another.
    pub(crate) fn notice(&mut self, now: Instant) -> Option<u64> {
        let is_due = self.noticed_at.is_none_or(|at| now.saturating_duration_since(at) >= NOTICE_EVERY);
        (is_due && self.not_logged > 0).then(|| {
            self.noticed_at = Some(now);
            std::mem::take(&mut self.not_logged)
        })
    }
}

/// Whether a message usually leads to a line. The end of a process, or of its socket, comes once.
fn is_logged(event: &SocketEvent) -> bool {
    match event {
        SocketEvent::Mold { message, .. } => {
            !matches!(message, FromMold::Step { .. } | FromMold::Heap { .. })
        }
        SocketEvent::Worker { message, .. } => !matches!(
            message,
            FromWorker::Hello { .. }
                | FromWorker::Heap { .. }
                | FromWorker::Threads { .. }
                | FromWorker::Slow(SlowRequest { ended: false, .. })
        ),
        SocketEvent::Companion { message, .. } => matches!(message, FromCompanion::LeftBehind { .. }),
        SocketEvent::Successor(..)
        | SocketEvent::Succeeded { .. }
        | SocketEvent::ProtocolError(..)
        | SocketEvent::Closed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promoted() -> SocketEvent {
        SocketEvent::Worker { worker: 1, message: FromWorker::Promoted, descriptors: Vec::new() }
    }

    #[test]
    fn a_flood_is_counted_and_the_count_is_reported_once_a_second() {
        let start = Instant::now();
        let mut log = MessageLog::new(start);
        assert_eq!((0..1500).filter(|_| log.takes(&promoted(), start)).count(), 500);
        assert_eq!(log.notice(start), Some(1000));
        let later = start + Duration::from_millis(500);
        assert_eq!((0..10).filter(|_| log.takes(&promoted(), later)).count(), 5);
        assert_eq!((log.notice(later), log.notice(start + Duration::from_secs(1))), (None, Some(5)));
        assert_eq!(log.notice(start + Duration::from_secs(9)), None);
    }

    #[test]
    fn what_leads_to_no_line_is_free() {
        let start = Instant::now();
        let mut log = MessageLog::new(start);
        let heap = SocketEvent::Mold { boot: 1, message: FromMold::Heap { heap: None } };
        assert!((0..1000).all(|_| log.takes(&heap, start)) && log.takes(&promoted(), start));
    }
}
