//! What was ordered, announced and is being answered, and what has to hold for each action.

use crate::core::app::App;
use crate::core::crash_loop::PROBATION;
use crate::core::replacement::{at_a_time, ReplacementCause, REST, SOON};
use crate::core::restart::Stage;
use crate::core::restart_policy::Life;
use crate::core::server::Server;
use crate::core::sizing::{Decision, Room};
use crate::core::worker::{Worker, WorkerState};
use crate::core::{Action, AppAction, AppEvent, AppLog, Event, Receipt, ServerLog};
use highball_config::AppId;
use highball_link::{AppCommand, NewWorker, Rollout};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

/// What was ordered, announced and is being answered.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Orders without an answer.
    orders: BTreeSet<Receipt>,
    /// Restarts that were accepted, of which no outcome is known yet.
    restarts: Vec<(AppId, u32)>,
    /// Workers that the front knows.
    announced: BTreeSet<(AppId, u32)>,
    /// Diagnoses that are being made.
    pub(super) diagnoses: BTreeSet<(AppId, Receipt)>,
    /// Looks at folders that are under way.
    pub(super) looks: BTreeSet<(AppId, Receipt)>,
    /// Molds of which it is not known yet whether they were started.
    pub(super) spawning: BTreeSet<(AppId, u32)>,
    /// The time of the step.
    now: Option<Instant>,
    /// The most workers that an application has wanted.
    most_wanted: BTreeMap<AppId, u16>,
    /// The memory for more workers, as it was reported last.
    rooms: BTreeMap<AppId, Option<Room>>,
    /// When replacements of workers began lately.
    replacements: BTreeMap<(AppId, &'static str), Vec<Instant>>,
    /// When workers that served have died lately.
    deaths: BTreeMap<AppId, Vec<Instant>>,
    /// When the first worker of each new version was ready.
    canaries: BTreeMap<(AppId, u32), Instant>,
    /// The rollout of each application, as the front knows it: generation, and share of the visitors.
    shares: BTreeMap<AppId, (u32, u16)>,
    has_ended: bool,
    /// How often each of these came about.
    pub(super) reached: BTreeMap<String, u64>,
}

pub(super) type Checked = Result<(), String>;

pub(super) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(what())
    }
}

impl Books {
    pub(super) fn note_event(&mut self, event: &Event, now: Instant) {
        self.now = Some(now);
        match event {
            Event::Upgrade(receipt) => {
                self.orders.insert(*receipt);
            }
            Event::OfApp(app, event) => match event {
                AppEvent::Restart { receipt: Some(receipt), .. }
                | AppEvent::Rollout { receipt: Some(receipt), .. }
                | AppEvent::Refork { receipt: Some(receipt), .. } => {
                    self.orders.insert(*receipt);
                }
                AppEvent::Load(load) => {
                    self.rooms.insert(*app, load.room);
                }
                AppEvent::Diagnosed { receipt, .. } => {
                    self.diagnoses.remove(&(*app, *receipt));
                }
                AppEvent::FolderSeen { receipt, .. } => {
                    self.looks.remove(&(*app, *receipt));
                }
                AppEvent::MoldStarted { boot, .. } | AppEvent::MoldNotStarted { boot, .. } => {
                    self.spawning.remove(&(*app, *boot));
                }
                _ => {}
            },
            _ => {}
        }
    }

    pub(super) fn note_actions(&mut self, actions: &[Action], server: &Server) -> Checked {
        ensure(!self.has_ended || actions.is_empty(), || "it acts after its end".into())?;
        for (id, app) in &server.apps {
            let most = self.most_wanted.entry(*id).or_default();
            *most = app.staff.wanted().max(*most);
        }
        let mut leaving = None;
        for action in actions {
            match action {
                Action::Answer(receipt, _) => self.answered(*receipt)?,
                Action::Log(ServerLog::Unsettled) | Action::OfApp(_, AppAction::Log(AppLog::Unsettled)) => {
                    return Err("a step does not end".into());
                }
                Action::End => self.has_ended = true,
                Action::HandOver { .. } => *self.reached.entry("hot restart: done".into()).or_default() += 1,
                Action::Log(ServerLog::HotRestartFailed { .. }) => {
                    *self.reached.entry("hot restart: failed".into()).or_default() += 1;
                }
                Action::Log(ServerLog::SecondSignal) => {
                    *self.reached.entry("a second signal".into()).or_default() += 1;
                }
                Action::ForgetApp(app) => self.announced.retain(|(of, _)| of != app),
                Action::OfApp(app, action) => self.note_app_action(*app, action, &mut leaving, server)?,
                _ => {}
            }
        }
        ensure(self.orders.is_empty(), || "an order got no answer".into())?;
        self.check_restarts(server)
    }

    fn answered(&mut self, receipt: Receipt) -> Checked {
        ensure(self.orders.remove(&receipt), || "an order was answered twice, or was none".into())
    }

    fn note_app_action(
        &mut self,
        app: AppId,
        action: &AppAction,
        leaving: &mut Option<u32>,
        server: &Server,
    ) -> Checked {
        match action {
            AppAction::Answer(receipt, _) => self.answered(*receipt)?,
            AppAction::Diagnose { receipt, .. } => {
                self.diagnoses.insert((app, *receipt));
            }
            AppAction::LookAtFolder { receipt } => {
                self.looks.insert((app, *receipt));
            }
            AppAction::SpawnMold { boot, .. } => {
                self.spawning.insert((app, *boot));
            }
            AppAction::Log(log) => {
                self.note_reached(log, leaving);
                match log {
                    AppLog::Replacing { worker, cause, .. } => {
                        self.check_pace(app, *worker, *cause, server)?
                    }
                    AppLog::Resized(decision) => self.check_resized(app, *decision, server)?,
                    AppLog::WorkerDied { state: WorkerState::Serving, .. } => self.check_deaths(app)?,
                    AppLog::CanaryPassed { .. } => drop(self.deaths.remove(&app)),
                    AppLog::Restarted { generation, .. } => self.check_proven(app, *generation)?,
                    _ => {}
                }
            }
            AppAction::Notify(AppCommand::AddCanary(NewWorker { worker, generation, .. })) => {
                if let Some(now) = self.now {
                    self.canaries.entry((app, *generation)).or_insert(now);
                }
                let is_new = self.announced.insert((app, *worker));
                ensure(is_new, || format!("worker {worker} was announced twice"))?;
            }
            AppAction::Notify(AppCommand::Rollout(rollout)) => self.check_share(app, rollout)?,
            AppAction::Notify(AppCommand::EndRollout | AppCommand::WithdrawGeneration { .. }) => {
                self.shares.remove(&app);
            }
            AppAction::Notify(AppCommand::OpenSite { .. }) => {
                *self.reached.entry("site: found".into()).or_default() += 1
            }
            AppAction::Notify(AppCommand::AddWorker(NewWorker { worker, .. })) => {
                let is_new = self.announced.insert((app, *worker));
                ensure(is_new, || format!("worker {worker} was announced twice"))?;
            }
            AppAction::Notify(AppCommand::RemoveWorker { worker, .. }) => {
                let was_known = self.announced.remove(&(app, *worker));
                ensure(was_known, || format!("the front never heard of worker {worker}"))?;
            }
            AppAction::Notify(AppCommand::RetireWorker { worker } | AppCommand::RelieveWorker { worker })
                if *leaving != Some(*worker) =>
            {
                self.check_retired(app, *worker, server)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What the simulation comes to; a test asks for it.
    fn note_reached(&mut self, log: &AppLog, leaving: &mut Option<u32>) {
        if let AppLog::ReplacedAfterTerm { worker } | AppLog::ReplacedForRing { worker } = log {
            *leaving = Some(*worker);
        }
        let kind = match log {
            AppLog::Replaced { retires_first: true, .. } => "the old one first".into(),
            AppLog::Replaced { cause, .. } => cause.name().into(),
            AppLog::Resized(decision) => variant(&decision.reason),
            AppLog::NotResized(hindrance) => variant(hindrance),
            AppLog::RestartFailed { stage, .. } => (*stage).into(),
            AppLog::Rollout(log) => variant(log),
            AppLog::Unfit { careful: is, .. } | AppLog::ReforkOutcome { is_last: is, .. } => is.to_string(),
            _ => String::new(),
        };
        *self.reached.entry(format!("{} {kind}", variant(log))).or_default() += 1;
    }

    /// The number of workers follows the load only within its range and the memory, and not while others take the places of
    /// workers.
    fn check_resized(&self, id: AppId, decision: Decision, server: &Server) -> Checked {
        let Some(app) = server.apps.get(&id) else { return Ok(()) };
        let Decision { from, to, .. } = decision;
        let grown = to.saturating_sub(from);
        let room = self.rooms.get(&id).copied().flatten().map_or(0, |room| room.workers);
        ensure(grown <= room, || format!("it grows from {from} to {to}, and there is memory for {room}"))?;
        ensure(grown <= from, || format!("it grows from {from} to {to} at once"))?;
        let rolls = app.restarts.going().is_some_and(|restart| restart.stage == Stage::Rolling);
        let is_old = |now| app.reforks.going().is_some_and(|refork| refork.took(now) > Duration::ZERO);
        let reforks = self.now.is_some_and(is_old);
        ensure(!rolls && !reforks, || "the number of workers changes while they are replaced".into())
    }

    /// However often replacements are asked for, there is a limit to them.
    fn check_pace(&mut self, app: AppId, worker: u32, cause: ReplacementCause, server: &Server) -> Checked {
        let Some(now) = self.now else { return Ok(()) };
        let worker = server.apps.get(&app).and_then(|app| app.staff.get(worker));
        let served = match worker.map(|worker| worker.life(now)) {
            Some(Life::Ready(served)) => served,
            _ => return Err("a worker is replaced that does not serve".into()),
        };
        if cause.is_usual() || (cause == ReplacementCause::OverMemory && served >= SOON) {
            return Ok(()); // one for each boot; or a leak that takes its time
        }
        let lately = self.replacements.entry((app, cause.name())).or_default();
        lately.retain(|at| *at + REST > now);
        lately.push(now);
        let most = usize::from(self.most_wanted.get(&app).copied().unwrap_or_default()) + 1;
        ensure(lately.len() <= most, || format!("{} workers were replaced within {REST:?}", lately.len()))
    }

    /// However soon workers die, not too many of them do: the next ones are forked later.
    fn check_deaths(&mut self, app: AppId) -> Checked {
        const MINUTE: Duration = Duration::from_secs(60);
        let Some(now) = self.now else { return Ok(()) };
        let lately = self.deaths.entry(app).or_default();
        lately.retain(|at| *at + MINUTE > now);
        lately.push(now);
        let pool = usize::from(self.most_wanted.get(&app).copied().unwrap_or_default());
        // Each may die at once, one more, and each again that was forked for those; then one of each place in five seconds.
        let most = 3 * pool + 4 + 12 * pool;
        ensure(lately.len() <= most, || format!("{} of {pool} workers died in a minute", lately.len()))
    }

    /// A restart is a success when the first worker of the new version has lived for a while.
    fn check_proven(&self, app: AppId, generation: u32) -> Checked {
        let (Some(now), Some(ready_at)) = (self.now, self.canaries.get(&(app, generation))) else {
            return Ok(());
        };
        ensure(now >= *ready_at + PROBATION, || format!("generation {generation} is a success too soon"))
    }

    /// No visitor gets the old version again before the rollout ends.
    fn check_share(&mut self, app: AppId, rollout: &Rollout) -> Checked {
        let (generation, thousandths) = (rollout.generation, rollout.thousandths);
        let before = self.shares.insert(app, (generation, thousandths));
        ensure(before.is_none_or(|(before, least)| before == generation && least <= thousandths), || {
            format!("the share of generation {generation} is {thousandths}, and was {before:?}")
        })
    }

    /// One worker is replaced at a time, or several of a large pool for one cause.
    pub(super) fn check_replacements(&self, id: AppId, app: &App) -> Checked {
        let replacements = app.staff.workers().iter().filter_map(|(_, worker)| worker.replacement);
        let causes: Vec<ReplacementCause> =
            replacements.filter(|it| it.relieved_by.is_some()).map(|it| it.cause).collect();
        let Some(cause) = causes.first() else { return Ok(()) };
        let most = at_a_time(self.most_wanted.get(&id).copied().unwrap_or_default(), *cause);
        ensure(causes.len() <= most, || format!("{} workers are replaced at a time", causes.len()))?;
        ensure(causes.windows(2).all(|two| two[0] == two[1]), || "workers are replaced for two causes".into())
    }

    /// A worker is only retired where enough others serve.
    fn check_retired(&self, app: AppId, worker: u32, server: &Server) -> Checked {
        let Some(app) = server.apps.get(&app) else { return Ok(()) };
        let wanted = if app.condition.is_serving() { app.staff.wanted().into() } else { 0 };
        let serving = app.staff.workers().in_state(WorkerState::Serving);
        // Where there is no memory for both, the old one goes before another one is there.
        let goes_first = |worker: &Worker| {
            worker.replacement.is_some_and(|it| it.retires_first() && it.relieved_by.is_some())
        };
        let wanted = wanted - app.staff.workers().which(goes_first).len().min(wanted);
        ensure(serving >= wanted || !app.phase.is_running(), || {
            format!("worker {worker} was retired, and {serving} of {wanted} workers are left")
        })
    }

    /// Every restart that was accepted is going on, waits, or has an outcome.
    fn check_restarts(&mut self, server: &Server) -> Checked {
        for (id, app) in &server.apps {
            for generation in [
                app.restarts.wish().map(|wish| wish.generation),
                app.restarts.going().map(|restart| restart.next.number()),
            ]
            .into_iter()
            .flatten()
            {
                if !self.restarts.contains(&(*id, generation)) {
                    self.restarts.push((*id, generation));
                }
            }
        }
        let mut lost = None;
        self.restarts.retain(|(id, generation)| {
            let Some(app) = server.apps.get(id) else { return false };
            let waits = app.restarts.wish().is_some_and(|wish| wish.generation == *generation);
            let goes = app.restarts.going().is_some_and(|restart| restart.next.number() == *generation);
            let has_outcome = app.restarts.past().iter().any(|past| past.generation == *generation);
            if !(waits || goes || has_outcome) {
                lost = Some(*generation);
            }
            goes || (waits && !has_outcome)
        });
        match lost {
            Some(generation) => Err(format!("the restart to generation {generation} was lost")),
            None => Ok(()),
        }
    }
}

/// The name of a variant: the first word of what it shows for debugging.
fn variant(of: &impl fmt::Debug) -> String {
    let mut name = FirstWord(String::new());
    let _ = write!(name, "{of:?}"); // it ends behind the word
    name.0
}

struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|letter: char| !letter.is_alphanumeric());
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        end.map_or(Ok(()), |_| Err(fmt::Error))
    }
}
