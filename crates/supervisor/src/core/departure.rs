//! The end of a process, in both of its halves: the kernel reports that it has ended, and its control socket closes
//! after its last message. They come in any order. A process that dies while it starts has gone only when both are
//! there, because its last message may say why.

use crate::facts::ending::Ending;
use std::time::Duration;

/// How long the second half may be missing: a child of the process may hold its control socket open.
pub(crate) const LAST_MESSAGES_TIME: Duration = Duration::from_millis(500);

/// What is known of the end of a process.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    ending: Option<Ending>,
    is_heard_out: bool,
}

impl Departure {
    /// It has ended. The first report counts: later ones know less.
    pub(crate) fn ended(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    /// Its control socket is closed, and all messages have been handled.
    pub(crate) fn heard_out(&mut self) {
        self.is_heard_out = true;
    }

    /// How it ended, once that is known, even before its last message.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// How it ended, once there is nothing more to come.
    pub(crate) fn complete(&self) -> Option<Ending> {
        self.ending.filter(|_| self.is_heard_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_complete_when_both_halves_are_there_in_any_order() {
        let mut departure = Departure::default();
        departure.ended(Ending::Exited(1));
        assert_eq!((departure.ending(), departure.complete()), (Some(Ending::Exited(1)), None));
        departure.heard_out();
        assert_eq!(departure.complete(), Some(Ending::Exited(1)));

        let mut departure = Departure::default();
        departure.heard_out();
        assert_eq!(departure.complete(), None);
        departure.ended(Ending::Killed(9));
        departure.ended(Ending::Unknown);
        assert_eq!(departure.complete(), Some(Ending::Killed(9)));
    }
}
