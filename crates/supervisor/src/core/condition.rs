//! Whether an application is there, and how far it is from its end.

use super::ids::Receipt;
use crate::facts::folder_state::FolderState;
use highball_link::Diagnosis;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the folder of an application that did not boot is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// No more than one part in this many of the time is spent with that, however large the folder is.
const LOOK_SHARE: u32 = 100;
/// How often a boot is repeated without a change of files and without requests.
pub(crate) const TRY_UNASKED: Duration = Duration::from_secs(60);

/// Why the application ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Drained,
    Stopped,
    Halted,
    CallerGone,
    BootLoop(String),
    BootFailed(Arc<Diagnosis>),
}

/// How far the application is from its end.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Molds and workers are kept alive.
    Running,
    /// The front finishes what is in flight, until then.
    Draining(Instant),
    /// Workers have been ordered to exit, by then. `quick`: being killed is no failure then, because the user wanted it
    /// (Ctrl-C in development).
    Finishing { until: Instant, quick: bool },
    /// Everything was killed; it is gone by then, or is left behind.
    Ending(Instant, End),
}

impl Phase {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Phase::Running)
    }

    /// Whether the user wants no request to be waited for.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self, Phase::Finishing { quick: true, .. })
    }

    pub(crate) fn is_ending(&self) -> bool {
        matches!(self, Phase::Ending(..))
    }

    /// Whether every worker was ordered to exit, or killed.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Phase::Finishing { .. } | Phase::Ending(..))
    }

    /// When it has to have ended.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Phase::Running => None,
            Phase::Draining(until) | Phase::Finishing { until, .. } | Phase::Ending(until, _) => Some(*until),
        }
    }
}

/// Whether the application is there, as long as it has not come to its end.
#[derive(Debug)]
pub(crate) enum Condition {
    /// It is idle and has no processes. It boots for the next request.
    Asleep,
    /// It has not booted; its mold boots, or waits for its turn.
    Booting,
    /// The boot failed; the diagnosis with this receipt is being made.
    Explaining(Receipt),
    /// The boot failed, and it waits for a reason to try again.
    Failed(Failed),
    /// It has booted.
    Serving,
}

impl Condition {
    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self, Condition::Asleep)
    }

    pub(crate) fn is_failed(&self) -> bool {
        matches!(self, Condition::Failed(_))
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(self, Condition::Serving)
    }

    /// Whether it has a mold, or workers, or should.
    pub(crate) fn is_present(&self) -> bool {
        matches!(self, Condition::Booting | Condition::Serving)
    }
}

/// What comes of a look at the folder of an application that did not boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderVerdict {
    /// Its files have changed.
    Changed,
    /// They have not, but it was not booted again for a long time.
    TryUnasked,
    /// What was changed before the request arrived may not have been seen.
    LookAgain,
    /// Requests wait, and would get the same failure.
    FailAgain,
    Nothing,
}

/// An application that did not boot.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Its files as they were when the boot had failed: what a boot itself writes is no reason for another.
    /// `None`: they could not be looked at then; the next look takes note of them.
    files: Option<FolderState>,
    since: Instant,
    /// When the folder is looked at next.
    due: Instant,
    /// The look at the folder that is under way.
    look: Option<FolderLook>,
    /// Requests have arrived, and wait for what a look at the folder shows.
    is_wanted: bool,
}

/// A look at the folder of an application that did not boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderLook {
    receipt: Receipt,
    /// It began after a request had arrived, so it sees what was changed before that.
    is_for_request: bool,
}

impl Failed {
    pub(crate) fn new(files: Option<FolderState>, now: Instant) -> Failed {
        Failed { files, since: now, due: now + LOOK_EVERY, look: None, is_wanted: false }
    }

    /// Since when it waits for a reason to try again.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// When the folder is looked at next; `None`: that is under way.
    pub(crate) fn look_due(&self) -> Option<Instant> {
        self.look.is_none().then_some(self.due)
    }

    /// The look at the folder that is under way.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> Option<Receipt> {
        self.look.map(|look| look.receipt)
    }

    /// A request has arrived, and waits for what a look at the folder shows.
    pub(crate) fn is_wanted(&mut self) {
        self.is_wanted = true;
    }

    /// A look begins.
    pub(crate) fn look(&mut self, receipt: Receipt, is_for_request: bool) {
        self.look = Some(FolderLook { receipt, is_for_request });
    }

    /// The state of the folder now, if it could be read. `is_a_reason`: it may boot again for that; `is_repeated`: also
    /// without requests. `None`: this look was not waited for.
    pub(crate) fn seen(
        &mut self,
        (receipt, files, took): (Receipt, Option<FolderState>, Duration),
        is_a_reason: bool,
        is_repeated: bool,
        now: Instant,
    ) -> Option<FolderVerdict> {
        let look = self.look.take_if(|look| look.receipt == receipt)?;
        self.due = now + LOOK_EVERY.max(LOOK_SHARE * took);
        if !is_a_reason {
            return Some(FolderVerdict::Nothing);
        }
        if files.is_some_and(|files| files != *self.files.get_or_insert(files)) {
            return Some(FolderVerdict::Changed);
        }
        Some(match (self.is_wanted, look.is_for_request) {
            (true, false) => FolderVerdict::LookAgain,
            (true, true) => {
                self.is_wanted = false;
                FolderVerdict::FailAgain
            }
            (false, _) if is_repeated && now >= self.since + TRY_UNASKED => FolderVerdict::TryUnasked,
            (false, _) => FolderVerdict::Nothing,
        })
    }
}
