//! How a run ended.

use crate::core::app::App;
use crate::core::condition::{End, Phase};
use crate::upgrade::pid_proxy::PidProxy;
use highball_link::Diagnosis;

/// How a run ended. Where applications have ended differently, the last one of these counts.
#[derive(Debug)]
pub enum Outcome {
    /// Every request was answered.
    Drained,
    /// There was nothing to wait for, or the user did not want to (Ctrl-C in development).
    Stopped,
    /// The time for draining was over, or a second signal came: workers were killed.
    Halted,
    /// The caller that was the mold has gone.
    CallerGone,
    /// Processes kept dying before they served; the last reason.
    BootLoop(String),
    /// The application did not boot the first time.
    BootFailed(Box<Diagnosis>),
    /// Another process has taken over, and this one has nothing left to do but to be its PID proxy.
    HandedOver(Box<PidProxy>),
}

impl Outcome {
    pub(super) fn of<'a>(apps: impl Iterator<Item = &'a App>) -> Outcome {
        let outcomes = apps.map(|app| match &app.phase {
            Phase::Ending(_, end) => Outcome::of_app(end),
            _ => Outcome::Halted,
        });
        outcomes.max_by_key(Outcome::rank).unwrap_or(Outcome::Drained)
    }

    fn of_app(end: &End) -> Outcome {
        match end {
            End::Drained => Outcome::Drained,
            End::Stopped => Outcome::Stopped,
            End::Halted => Outcome::Halted,
            End::CallerGone => Outcome::CallerGone,
            End::BootLoop(why) => Outcome::BootLoop(why.clone()),
            End::BootFailed(diagnosis) => Outcome::BootFailed(Box::new((**diagnosis).clone())),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Outcome::Drained => 0,
            Outcome::Stopped => 1,
            Outcome::Halted => 2,
            Outcome::CallerGone => 3,
            Outcome::BootLoop(_) => 4,
            Outcome::BootFailed(_) => 5,
            Outcome::HandedOver(_) => 6,
        }
    }
}
