//! How the server ends a connection that an application has taken over: when its worker is to end, its application, or the
//! server itself.
//!
//! Each WebSocket gets its close frame at another moment, so that the clients of a worker do not all connect again at once.
//! From then on the application's frames are dropped, since none may follow. The client's still go to the application, up to
//! the close frame by which it answers: so nothing that it has sent before is lost, and the application learns of the end as if
//! the client had begun it (RFC 6455 section 7.1). Other protocols have no such end, and are cut off when their time is over.

use std::time::Duration;

use crate::clock::now_ms;
use crate::clock::spread::Spread;

/// The longest time that is left for the client's close frame.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// The part of the whole time that is left for it, if that is less.
const ANSWER_PART: u32 = 5;

/// How far the end has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ServerClose {
    /// The connection may last.
    #[default]
    NotDue,
    /// It is to end: a WebSocket at its moment, which is the connection's deadline, others at the end of the time.
    Planned { until_ms: u64 },
    /// The close frame goes behind the frame that the application is sending. The deadline is the end of the time.
    Due { until_ms: u64 },
    /// It was sent, and the client has until the deadline to answer it.
    Sent,
}

impl ServerClose {
    /// It is to end within `time`.
    pub(super) fn plan(time: Duration) -> ServerClose {
        ServerClose::Planned { until_ms: now_ms().saturating_add(time.as_millis() as u64) }
    }

    /// Whether what the application sends still goes to the client.
    pub(super) fn passes(self) -> bool {
        self != ServerClose::Sent
    }

    /// The time for the client's answer, from now on.
    pub(super) fn answer_time(self) -> Duration {
        match self {
            ServerClose::NotDue | ServerClose::Sent => ANSWER_TIME,
            ServerClose::Planned { until_ms } | ServerClose::Due { until_ms } => {
                ANSWER_TIME.min(Duration::from_millis(until_ms.saturating_sub(now_ms())))
            }
        }
    }
}

/// How much of `time` a WebSocket has before its close frame.
pub(super) fn moment(spread: &Spread, time: Duration) -> Duration {
    spread.next(time - (time / ANSWER_PART).min(ANSWER_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_frames_leave_time_for_an_answer() {
        let last = |seconds| {
            let spread = Spread::default();
            (0..10_000).map(|_| moment(&spread, Duration::from_secs(seconds))).max().unwrap()
        };
        let within = |moment: Duration, most| {
            moment > Duration::from_millis(most - 10) && moment <= Duration::from_millis(most)
        };
        assert!(within(last(5), 4_000));
        assert!(within(last(60), 58_000));
        assert_eq!(last(0), Duration::ZERO);
    }

    #[test]
    fn the_answer_has_to_come_within_the_whole_time() {
        assert_eq!(ServerClose::plan(Duration::from_secs(60)).answer_time(), ANSWER_TIME);
        assert!(ServerClose::plan(Duration::from_millis(300)).answer_time() <= Duration::from_millis(300));
        assert_eq!(ServerClose::plan(Duration::ZERO).answer_time(), Duration::ZERO);
    }
}
