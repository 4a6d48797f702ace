//! The companions of an application: processes that run beside its workers, such as background jobs. Each copy of a companion has a
//! place, and a place has one process at a time. A process starts only when no process of the same name is left that runs another
//! version, or is configured otherwise.

use super::ids::Process;
use super::mold::KILL_TIME;
use crate::core::AppAction;
use crate::facts::ending::Ending;
use highball_config::{Companion, RestartRule};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the start of a process may take: a file system may not answer.
const START_TIME: Duration = Duration::from_secs(30);
/// How long a process may be there after its control socket has closed: the kernel may be about to report its end.
const CLOSED_TIME: Duration = Duration::from_secs(1);
/// Time beyond the configured one until a process that was asked to end is killed: for the messages.
const ASKING_TIME: Duration = Duration::from_millis(250);
/// A process that ran this long has not failed to start.
const STEADY: Duration = Duration::from_secs(60);
/// The delay after the second early end in a row; each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay: starting one may take much.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Early ends in a row that make a crash loop.
const MANY: u32 = 3;

/// Where the process of a companion is in its life. Each state but `Running` has a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompanionState {
    /// It was ordered.
    Starting,
    /// It exists.
    Running,
    /// It was asked to end.
    Stopping,
    /// It was killed.
    Halted,
}

/// The words for the state of a place in `highball status` and metrics: the process's, in their order, and without one.
pub const COMPANION_STATES: [&str; 6] = ["starting", "running", "stopping", "halted", "waiting", "ended"];

/// The process in a place.
#[derive(Debug)]
pub(crate) struct Occupant {
    pub(crate) number: u32,
    /// The version of the application that it belongs to.
    pub(crate) generation: u32,
    pub(crate) state: CompanionState,
    /// When the current state has to have ended.
    pub(crate) deadline: Option<Instant>,
    /// When it was ordered.
    pub(crate) since: Instant,
    runs_since: Option<Instant>,
    /// It is to end, so its end is no failure.
    is_asked_to_end: bool,
    /// Its memory in bytes, if it is ended for that.
    over_memory: Option<u64>,
}

impl Occupant {
    /// Asks it to end: what it is sent if it exists, and was not asked before.
    fn stop(&mut self, within: Duration, now: Instant) -> Option<AppAction> {
        let exists = match self.state {
            CompanionState::Starting => false,
            CompanionState::Running => true,
            CompanionState::Stopping | CompanionState::Halted => return None,
        };
        self.state = CompanionState::Stopping;
        self.deadline = Some(now + within + ASKING_TIME);
        exists.then_some(AppAction::EndCompanion { number: self.number })
    }

    fn halt(&mut self, now: Instant) -> AppAction {
        self.state = CompanionState::Halted;
        self.deadline = Some(now + KILL_TIME);
        AppAction::Kill(Process::Companion(self.number))
    }
}

/// The place of one copy of a companion.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) companion: Arc<Companion>,
    /// The number of the copy, from 1.
    pub(crate) copy: u16,
    pub(crate) occupant: Option<Occupant>,
    /// It is configured like this.
    is_wanted: bool,
    /// No process starts here before this.
    due: Instant,
    /// Processes in a row that have ended early.
    early_ends: u32,
    /// The version in which none is started any more.
    rests_in: Option<u32>,
    /// The last process of that version succeeded.
    has_succeeded: bool,
    /// Processes that were started after another one had ended unasked.
    pub(crate) restarts: u64,
    /// How the last process ended that did so unasked, and when.
    pub(crate) last_end: Option<(String, Instant)>,
}

/// How a process has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompanionEnd {
    Ended(Ending),
    /// Why.
    NotStarted(String),
    /// It was ended for its memory: the bytes that it had.
    OverMemory(u64),
}

impl CompanionEnd {
    pub(crate) fn is_success(&self) -> bool {
        *self == CompanionEnd::Ended(Ending::Exited(0))
    }
}

/// What the process did: `exited with code 1`.
impl fmt::Display for CompanionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompanionEnd::Ended(ending) => f.write_str(&ending.of_process()),
            CompanionEnd::NotStarted(why) => f.write_str(why),
            CompanionEnd::OverMemory(bytes) => {
                write!(f, "was ended: its {} MiB are more than its memory_limit", bytes >> 20)
            }
        }
    }
}

/// What is known of a process that has gone.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) label: String,
    pub(crate) how: CompanionEnd,
    pub(crate) next: Next,
    /// It is one of many, of which the log has had enough.
    pub(crate) is_usual: bool,
    /// What starts after it, and does not, since it has failed for good.
    pub(crate) waiting: Vec<String>,
    /// It makes a crash loop: the number of early ends.
    pub(crate) makes_crash_loop: Option<u32>,
}

/// What follows from an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It was asked to end.
    Ordered,
    /// Another one starts after this time.
    After(Duration),
    /// None starts in this version of the application.
    Nothing,
}

impl Place {
    fn new(companion: Arc<Companion>, copy: u16, now: Instant) -> Place {
        Place {
            companion,
            copy,
            occupant: None,
            is_wanted: true,
            due: now,
            early_ends: 0,
            rests_in: None,
            has_succeeded: false,
            restarts: 0,
            last_end: None,
        }
    }

    pub(crate) fn label(&self) -> String {
        self.companion.label(self.copy)
    }

    /// The word for its state.
    pub(crate) fn state(&self) -> &'static str {
        match &self.occupant {
            Some(occupant) => COMPANION_STATES[occupant.state as usize],
            None if self.rests_in.is_some() => COMPANION_STATES[5],
            None => COMPANION_STATES[4],
        }
    }

    /// Its processes end soon after they were started: the number of such ends in a row, if there are many.
    pub(crate) fn crash_loop(&self) -> Option<u32> {
        (self.early_ends >= MANY).then_some(self.early_ends)
    }

    /// Whether a process that starts after this one may start in this version of the application.
    fn lets_others_start(&self, generation: u32) -> bool {
        let runs = self.occupant.as_ref().is_some_and(|occupant| {
            occupant.generation == generation && occupant.state == CompanionState::Running
        });
        let runs_once = self.companion.restart == RestartRule::Never;
        runs && !runs_once || self.rests_in == Some(generation) && self.has_succeeded
    }

    fn begin_version(&mut self, now: Instant) {
        (self.due, self.early_ends, self.rests_in) = (now, 0, None);
    }

    /// When its process has run for long enough to be no part of a crash loop, where that matters.
    fn steady_at(&self) -> Option<Instant> {
        let since = self.occupant.as_ref().and_then(|occupant| occupant.runs_since);
        since.filter(|_| self.early_ends > 0).map(|since| since + STEADY)
    }

    /// Its process has ended, could not be started, or was over its limit. What follows.
    fn ended(&mut self, occupant: &Occupant, how: &CompanionEnd, now: Instant) -> Next {
        if occupant.is_asked_to_end {
            return Next::Ordered;
        }
        self.has_succeeded = how.is_success();
        self.last_end = Some((how.to_string(), now));
        let starts_again = match self.companion.restart {
            RestartRule::Always => true,
            RestartRule::OnFailure => !self.has_succeeded,
            RestartRule::Never => false,
        };
        if !starts_again {
            self.rests_in = Some(occupant.generation);
            return Next::Nothing;
        }
        self.restarts += 1;
        let was_steady = occupant.runs_since.is_some_and(|since| now >= since + STEADY);
        let delay = if was_steady { Duration::ZERO } else { delay_after(self.early_ends) };
        self.early_ends = if was_steady { 0 } else { self.early_ends.saturating_add(1) };
        self.due = now + delay;
        Next::After(delay)
    }
}

/// The delay after `early_ends` earlier ones in a row: none, then 1 s, doubling up to 60 s.
fn delay_after(early_ends: u32) -> Duration {
    match early_ends {
        0 => Duration::ZERO,
        n => FIRST_DELAY.saturating_mul(1 << (n - 1).min(16)).min(LONGEST_DELAY),
    }
}

/// The companions of an application.
#[derive(Debug)]
pub(crate) struct Companions {
    places: Vec<Place>,
    /// The number of the last process.
    last: u32,
    /// The version in which they run, if they do.
    runs_in: Option<u32>,
    /// Whether processes may start: they have to wait until the version serves for the first time.
    may_start: bool,
}

impl Companions {
    pub(crate) fn new(companions: &[Arc<Companion>], now: Instant) -> Companions {
        let mut new = Companions { places: Vec::new(), last: 0, runs_in: None, may_start: false };
        new.adopt(companions, now);
        new
    }

    // --- what there is

    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// Whether some are to be forked from the mold.
    pub(crate) fn need_mold(&self) -> bool {
        self.places.iter().any(|place| place.is_wanted && place.companion.fork)
    }

    /// Whether no process is left.
    pub(crate) fn are_gone(&self) -> bool {
        self.places.iter().all(|place| place.occupant.is_none())
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Occupant> {
        self.places
            .iter()
            .filter_map(|place| place.occupant.as_ref())
            .find(|occupant| occupant.number == number)
    }

    /// What this process is configured to be.
    pub(crate) fn configured(&self, number: u32) -> Option<&Companion> {
        self.places.iter().find(|place| is_in(place, number)).map(|place| &*place.companion)
    }

    /// What people call this process.
    pub(crate) fn label(&self, number: u32) -> Option<String> {
        self.places.iter().find(|place| is_in(place, number)).map(Place::label)
    }

    /// When the last process has to have ended, of all that were asked to.
    pub(crate) fn last_deadline(&self) -> Option<Instant> {
        let occupants = self.places.iter().filter_map(|place| place.occupant.as_ref());
        occupants.filter_map(|occupant| occupant.deadline).max()
    }

    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let of_place = |place: &Place| {
            let deadline = place.occupant.as_ref().and_then(|occupant| occupant.deadline);
            let waits =
                place.occupant.is_none() && place.is_wanted && self.may_start && place.rests_in.is_none();
            let due = Some(place.due).filter(|due| waits && self.runs_in.is_some() && *due > now);
            [deadline, due, place.steady_at()].into_iter().flatten().min()
        };
        self.places.iter().filter_map(of_place).min()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Occupant> {
        let occupants = self.places.iter_mut().filter_map(|place| place.occupant.as_mut());
        occupants.into_iter().find(|occupant| occupant.number == number)
    }

    // --- what is wanted

    /// They are configured like this from now on.
    pub(crate) fn adopt(&mut self, companions: &[Arc<Companion>], now: Instant) {
        self.places.iter_mut().for_each(|place| place.is_wanted = false);
        for companion in companions {
            for copy in 1..=companion.count {
                let same = |place: &&mut Place| place.companion == *companion && place.copy == copy;
                match self.places.iter_mut().find(same) {
                    Some(place) => place.is_wanted = true,
                    None => self.places.push(Place::new(Arc::clone(companion), copy, now)),
                }
            }
        }
        self.places.retain(|place| place.is_wanted || place.occupant.is_some());
    }

    /// Asks processes to end that should not be there, and starts those to come. `runs_in`: the version in which they are to run;
    /// `boot`: its mold, if that can fork; `serves`: whether its workers do; `most`: the longest time that they get
    /// to end.
    pub(crate) fn advance(
        &mut self,
        (runs_in, folder, boot): (Option<u32>, &Path, Option<u32>),
        serves: bool,
        most: Duration,
        now: Instant,
    ) -> Vec<AppAction> {
        if self.runs_in != runs_in {
            (self.runs_in, self.may_start) = (runs_in, false);
            self.places.iter_mut().for_each(|place| place.begin_version(now));
        }
        self.may_start |= serves && runs_in.is_some();
        let mut actions: Vec<AppAction> =
            self.places.iter_mut().filter_map(|place| end_if_unwanted(place, runs_in, most, now)).collect();
        let Some(generation) = runs_in.filter(|_| self.may_start) else { return actions };
        for index in 0..self.places.len() {
            if self.may_occupy(index, generation, now) {
                actions.push(self.occupy(index, (generation, folder, boot), now));
            }
        }
        actions
    }

    fn may_occupy(&self, index: usize, generation: u32, now: Instant) -> bool {
        let place = &self.places[index];
        // Another one of this name that is about to go.
        let is_other = |other: &Place| {
            let its = other.occupant.as_ref().map(|occupant| occupant.generation);
            let is_same = other.companion == place.companion && its == Some(generation);
            other.companion.name == place.companion.name && its.is_some() && !is_same
        };
        place.is_wanted
            && place.occupant.is_none()
            && place.rests_in.is_none()
            && place.due <= now
            && !self.places.iter().any(is_other)
            && self.comes_after(place).all(|other| other.lets_others_start(generation))
    }

    /// The places whose processes have to run, or to have succeeded, before one starts here.
    fn comes_after<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Place> {
        let is_named = |other: &&Place| place.companion.start_after.contains(&other.companion.name);
        self.places.iter().filter(|other| other.is_wanted).filter(is_named)
    }

    /// The places without a process whose processes start after this companion.
    fn waiting_for(&self, companion: &String) -> Vec<String> {
        let waits = |place: &&Place| {
            place.is_wanted && place.occupant.is_none() && place.companion.start_after.contains(companion)
        };
        self.places.iter().filter(waits).map(Place::label).collect()
    }

    fn occupy(
        &mut self,
        index: usize,
        (generation, folder, boot): (u32, &Path, Option<u32>),
        now: Instant,
    ) -> AppAction {
        self.last += 1;
        let (number, place) = (self.last, &mut self.places[index]);
        place.occupant = Some(Occupant {
            number,
            generation,
            state: CompanionState::Starting,
            deadline: Some(now + START_TIME),
            since: now,
            runs_since: None,
            is_asked_to_end: false,
            over_memory: None,
        });
        let (companion, copy) = (Arc::clone(&place.companion), place.copy);
        let boot = boot.filter(|_| companion.fork);
        AppAction::SpawnCompanion { number, companion, copy, folder: folder.to_owned(), boot }
    }

    // --- what happens

    /// It exists. True: it was waited for.
    pub(crate) fn started(&mut self, number: u32, now: Instant) -> (bool, Option<AppAction>) {
        let Some(occupant) = self.get_mut(number) else { return (false, None) };
        if occupant.runs_since.is_some() {
            return (false, None);
        }
        occupant.runs_since = Some(now);
        match occupant.state {
            CompanionState::Starting => {
                (occupant.state, occupant.deadline) = (CompanionState::Running, None);
                (true, None)
            }
            // It was to end before it began.
            CompanionState::Stopping => (false, Some(AppAction::EndCompanion { number })),
            CompanionState::Running | CompanionState::Halted => (false, None),
        }
    }

    /// It has more memory than its limit: it is asked to end. `None`: it ends already.
    pub(crate) fn over_memory(&mut self, number: u32, bytes: u64, now: Instant) -> Option<AppAction> {
        let place = self.places.iter_mut().find(|place| is_in(place, number))?;
        let stop_timeout = place.companion.stop_timeout;
        let occupant = place.occupant.as_mut().filter(|it| it.state == CompanionState::Running)?;
        occupant.over_memory = Some(bytes);
        occupant.stop(stop_timeout, now)
    }

    /// Its control socket is closed: it follows no order any more.
    pub(crate) fn closed(&mut self, number: u32, now: Instant) {
        if let Some(occupant) = self.get_mut(number) {
            let until = now + CLOSED_TIME;
            occupant.deadline = Some(occupant.deadline.map_or(until, |before| before.min(until)));
        }
    }

    /// Kills it.
    pub(crate) fn halt(&mut self, number: u32, now: Instant) -> Option<AppAction> {
        let occupant = self.get_mut(number).filter(|occupant| occupant.state != CompanionState::Halted)?;
        Some(occupant.halt(now))
    }

    /// Kills all that are left.
    pub(crate) fn halt_all(&mut self, now: Instant) -> Vec<AppAction> {
        let occupants = self.places.iter_mut().filter_map(|place| place.occupant.as_mut());
        let halt = |occupant: &mut Occupant| {
            occupant.is_asked_to_end = true;
            (occupant.state != CompanionState::Halted).then(|| occupant.halt(now))
        };
        occupants.filter_map(halt).collect()
    }

    /// It has ended, or could not be started. `None`: it was not waited for.
    pub(crate) fn gone(&mut self, number: u32, how: CompanionEnd, now: Instant) -> Option<Gone> {
        let place = self.places.iter_mut().find(|place| is_in(place, number))?;
        let occupant = place.occupant.take()?;
        let how = occupant.over_memory.map_or(how, CompanionEnd::OverMemory);
        let (before, next) = (place.early_ends, place.ended(&occupant, &how, now));
        let has_failed = next == Next::Nothing && !how.is_success();
        let mut gone = Gone {
            label: place.label(),
            how,
            next,
            is_usual: before >= MANY,
            waiting: Vec::new(),
            makes_crash_loop: place.crash_loop().filter(|_| before < MANY),
        };
        if has_failed {
            let name = place.companion.name.clone();
            gone.waiting = self.waiting_for(&name);
        }
        self.places.retain(|place| place.is_wanted || place.occupant.is_some());
        Some(gone)
    }

    /// The processes that have been in a state for too long, and that state.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<(u32, CompanionState)> {
        let occupants = self.places.iter().filter_map(|place| place.occupant.as_ref());
        let overdue = occupants.filter(|occupant| occupant.deadline.is_some_and(|at| at <= now));
        overdue.map(|occupant| (occupant.number, occupant.state)).collect()
    }

    /// The crash loops that are over by now.
    pub(crate) fn calm_down(&mut self, now: Instant) -> Vec<String> {
        let mut over = Vec::new();
        for place in self.places.iter_mut().filter(|place| place.steady_at().is_some_and(|at| at <= now)) {
            over.extend(place.crash_loop().map(|_| place.label()));
            place.early_ends = 0;
        }
        over
    }
}

fn is_in(place: &Place, number: u32) -> bool {
    place.occupant.as_ref().is_some_and(|occupant| occupant.number == number)
}

/// Asks the process of a place to end, if it runs another version than it should.
fn end_if_unwanted(
    place: &mut Place,
    runs_in: Option<u32>,
    most: Duration,
    now: Instant,
) -> Option<AppAction> {
    let (is_wanted, stop_timeout) = (place.is_wanted, place.companion.stop_timeout);
    let occupant = place.occupant.as_mut()?;
    if is_wanted && runs_in == Some(occupant.generation) {
        return None;
    }
    occupant.is_asked_to_end = true;
    occupant.stop(stop_timeout.min(most), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::companion;

    struct Scene {
        companions: Companions,
        now: Instant,
    }

    impl Scene {
        fn of(companions: &[Companion]) -> Scene {
            let now = Instant::now();
            let companions: Vec<_> = companions.iter().cloned().map(Arc::new).collect();
            Scene { companions: Companions::new(&companions, now), now }
        }

        fn advance(&mut self, runs_in: Option<u32>, serves: bool) -> Vec<String> {
            let actions =
                self.companions.advance((runs_in, Path::new("/"), Some(7)), serves, Duration::MAX, self.now);
            let name = |action: &AppAction| match action {
                AppAction::SpawnCompanion { number, companion, copy, .. } => {
                    format!("spawn {number}: {}.{copy}", companion.name)
                }
                AppAction::EndCompanion { number } => format!("end {number}"),
                other => format!("{other:?}"),
            };
            actions.iter().map(name).collect()
        }

        fn run(&mut self, number: u32) {
            assert!(self.companions.started(number, self.now).0);
        }

        fn end(&mut self, number: u32, ending: Ending) -> Gone {
            self.companions.gone(number, CompanionEnd::Ended(ending), self.now).unwrap()
        }
    }

    #[test]
    fn they_start_when_the_version_serves_and_go_on_when_it_does_not() {
        let mut scene = Scene::of(&[companion("jobs", 2)]);
        assert!(scene.advance(Some(1), false).is_empty());
        assert_eq!(scene.advance(Some(1), true), ["spawn 1: jobs.1", "spawn 2: jobs.2"]);
        scene.run(1);
        scene.run(2);
        assert!(scene.advance(Some(1), false).is_empty());
        let gone = scene.end(2, Ending::Killed(9));
        assert_eq!((gone.label.as_str(), gone.next), ("jobs.2", Next::After(Duration::ZERO)));
        assert_eq!(scene.advance(Some(1), false), ["spawn 3: jobs.2"]);
    }

    #[test]
    fn no_two_versions_of_a_name_run_at_a_time() {
        let mut scene = Scene::of(&[companion("clock", 1), companion("jobs", 2)]);
        scene.advance(Some(1), true);
        (1..=3).for_each(|number| scene.run(number));
        assert_eq!(scene.advance(Some(2), true), ["end 1", "end 2", "end 3"]);
        assert_eq!(scene.end(2, Ending::Exited(0)).next, Next::Ordered);
        assert!(scene.advance(Some(2), true).is_empty(), "the other one has not ended");
        scene.end(1, Ending::Exited(0));
        assert_eq!(scene.advance(Some(2), true), ["spawn 4: clock.1"]);
        scene.end(3, Ending::Killed(9));
        assert_eq!(scene.advance(Some(2), true), ["spawn 5: jobs.1", "spawn 6: jobs.2"]);
    }

    #[test]
    fn a_changed_one_takes_the_place_of_the_one_before() {
        let mut scene = Scene::of(&[companion("jobs", 1)]);
        scene.advance(Some(1), true);
        scene.run(1);
        let mut other = companion("jobs", 1);
        other.env.insert("A".into(), "1".into());
        scene.companions.adopt(&[Arc::new(other)], scene.now);
        assert_eq!(scene.advance(Some(1), true), ["end 1"]);
        assert!(scene.advance(Some(1), true).is_empty());
        scene.end(1, Ending::Exited(0));
        assert_eq!(scene.advance(Some(1), true), ["spawn 2: jobs.1"]);
        assert_eq!(scene.companions.places().count(), 1);
    }

    #[test]
    fn the_rule_decides_whether_another_one_starts() {
        let next = |restart, ending| {
            let mut scene = Scene::of(&[Companion { restart, ..companion("jobs", 1) }]);
            scene.advance(Some(1), true);
            scene.run(1);
            let next = scene.end(1, ending).next;
            let again = scene.advance(Some(1), true).len();
            assert_eq!(next == Next::Nothing, again == 0);
            (next, scene.advance(Some(2), true).len() + again)
        };
        let at_once = Next::After(Duration::ZERO);
        assert_eq!(next(RestartRule::Always, Ending::Exited(0)).0, at_once);
        assert_eq!(next(RestartRule::OnFailure, Ending::Exited(1)).0, at_once);
        assert_eq!(next(RestartRule::OnFailure, Ending::Exited(0)), (Next::Nothing, 1));
        assert_eq!(next(RestartRule::Never, Ending::Killed(11)), (Next::Nothing, 1));
    }

    #[test]
    fn early_ends_are_answered_ever_later_and_make_a_crash_loop() {
        let mut scene = Scene::of(&[companion("jobs", 1)]);
        let (mut delays, mut reports) = (Vec::new(), Vec::new());
        for number in 1..=9 {
            scene.advance(Some(1), true);
            scene.run(number);
            let gone = scene.end(number, Ending::Exited(1));
            let Next::After(delay) = gone.next else { panic!("{gone:?}") };
            delays.push(delay.as_secs());
            reports.extend(gone.makes_crash_loop);
            assert!(delay.is_zero() || scene.advance(Some(1), true).is_empty());
            assert!(delay.is_zero() || scene.companions.next_deadline(scene.now) == Some(scene.now + delay));
            scene.now += delay;
        }
        assert_eq!((delays, reports), (vec![0, 1, 2, 4, 8, 16, 32, 60, 60], vec![3]));
        scene.advance(Some(1), true);
        scene.run(10);
        scene.now += STEADY;
        assert_eq!(scene.companions.calm_down(scene.now), ["jobs"]);
        assert_eq!(scene.end(10, Ending::Exited(1)).next, Next::After(Duration::ZERO));
    }

    #[test]
    fn one_starts_after_others_run_or_have_succeeded() {
        let once = Companion { restart: RestartRule::Never, ..companion("schema", 1) };
        let start_after = vec!["redis".to_owned(), "schema".to_owned()];
        let jobs = Companion { start_after, ..companion("jobs", 1) };
        let mut scene = Scene::of(&[jobs, companion("redis", 2), once]);
        let first = ["spawn 1: redis.1", "spawn 2: redis.2", "spawn 3: schema.1"];
        assert_eq!(scene.advance(Some(1), true), first);
        (1..=3).for_each(|number| scene.run(number));
        assert!(scene.advance(Some(1), true).is_empty(), "what runs once has to succeed");
        let gone = scene.end(3, Ending::Exited(1));
        assert_eq!((gone.next, gone.waiting), (Next::Nothing, vec!["jobs".to_owned()]));
        assert!(scene.advance(Some(1), true).is_empty());
        // The next version.
        scene.advance(Some(2), true);
        (1..=2).for_each(|number| assert_eq!(scene.end(number, Ending::Exited(0)).next, Next::Ordered));
        assert_eq!(scene.advance(Some(2), true).len(), 2, "redis, and schema before");
        (4..=6).for_each(|number| scene.run(number));
        assert_eq!(scene.end(4, Ending::Exited(0)).waiting, [""; 0]);
        assert_eq!(scene.advance(Some(2), true), ["spawn 7: jobs.1"]);
        scene.run(7);
        scene.end(5, Ending::Killed(9));
        assert_eq!(scene.advance(Some(2), true), ["spawn 8: redis.1"], "what runs goes on");
    }

    #[test]
    fn one_that_is_over_its_limit_is_ended_and_starts_again() {
        let mut scene = Scene::of(&[companion("jobs", 1)]);
        scene.advance(Some(1), true);
        assert!(scene.companions.over_memory(1, 5 << 20, scene.now).is_none(), "it does not run yet");
        scene.run(1);
        scene.now += STEADY;
        let action = scene.companions.over_memory(1, 5 << 20, scene.now);
        assert!(matches!(action, Some(AppAction::EndCompanion { number: 1 })));
        assert!(scene.companions.over_memory(1, 6 << 20, scene.now).is_none(), "it was asked already");
        let gone = scene.end(1, Ending::Exited(0));
        assert_eq!((gone.how, gone.next), (CompanionEnd::OverMemory(5 << 20), Next::After(Duration::ZERO)));
        // Soon after it was started: ever later.
        for number in 2..=3 {
            scene.advance(Some(1), true);
            scene.run(number);
            scene.companions.over_memory(number, 5 << 20, scene.now);
            scene.end(number, Ending::Exited(0));
        }
        assert!(scene.advance(Some(1), true).is_empty());
        let (how, _) = scene.companions.places().next().unwrap().last_end.clone().unwrap();
        assert_eq!(how, "was ended: its 5 MiB are more than its memory_limit");
    }

    #[test]
    fn one_is_forked_where_it_says_so_and_there_is_a_mold() {
        let (plain, forked) = (companion("mail", 1), Companion { fork: true, ..companion("jobs", 1) });
        let boots = |boot| {
            let mut scene = Scene::of(&[plain.clone(), forked.clone()]);
            assert!(scene.companions.need_mold());
            let place = (Some(1), Path::new("/"), boot);
            let actions = scene.companions.advance(place, true, Duration::MAX, scene.now);
            let boot = |action| match action {
                AppAction::SpawnCompanion { boot, .. } => boot,
                other => panic!("{other:?}"),
            };
            actions.into_iter().map(boot).collect::<Vec<_>>()
        };
        assert_eq!((boots(Some(3)), boots(None)), (vec![None, Some(3)], vec![None, None]));
        assert!(!Scene::of(&[companion("mail", 1)]).companions.need_mold());
    }

    #[test]
    fn one_that_is_asked_to_end_before_it_exists_is_told_then() {
        let mut scene = Scene::of(&[companion("jobs", 1)]);
        scene.advance(Some(1), true);
        assert!(scene.advance(None, false).is_empty());
        let (is_new, action) = scene.companions.started(1, scene.now);
        assert!(!is_new && matches!(action, Some(AppAction::EndCompanion { number: 1 })));
        assert_eq!(scene.end(1, Ending::Exited(0)).next, Next::Ordered);
        assert!(scene.companions.are_gone());
    }
}
