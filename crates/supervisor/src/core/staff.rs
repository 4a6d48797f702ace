//! The workers of an application, and what may happen to them: how many there should be ([`size`]), their lives and deaths,
//! and which of them are replaced ([`replacing`]).

mod replacing;
mod size;

use super::action::{AppAction, WorkerOrder};
use super::config::AppConfig;
use super::crash_loop::{CrashLoop, Crashes, Death};
use super::ids::Process;
use super::mold::DUMP_TIME;
use super::replacement::Replacements;
use super::restart_policy::{Life, RestartPolicy, Verdict};
use super::rolling::Tally;
use super::sizing::{Room, Sizing};
use super::worker::{StartFailure, Worker, WorkerState};
use super::workers::Workers;
use crate::facts::ending::Ending;
pub(crate) use replacing::NextReplacement;
use std::time::{Duration, Instant};

/// Forks under way at a time: their messages and descriptors fit into the mold's control socket.
const FORKS_AT_A_TIME: usize = 8;

#[derive(Debug)]
pub(crate) struct Staff {
    workers: Workers,
    wanted: u16,
    /// How many workers the load needs, if their number follows it.
    sizing: Option<Sizing>,
    /// Processes beyond the wanted number while others take the places of workers.
    surge: usize,
    /// The memory for more workers, once it was measured.
    room: Option<Room>,
    replacements: Replacements,
    /// No worker is forked before this.
    fork_due: Instant,
    /// For workers that do not get ready.
    policy: RestartPolicy,
    /// For all others.
    crash_loop: CrashLoop,
    /// The front knows of a crash loop.
    is_crashing: bool,
}

impl Staff {
    pub(crate) fn new(config: &AppConfig, now: Instant) -> Staff {
        Staff {
            workers: Workers::default(),
            wanted: config.workers_at_first(),
            sizing: config.pool.map(|range| Sizing::new(range, now)),
            surge: 1,
            room: None,
            replacements: Replacements::new(now),
            fork_due: now,
            policy: RestartPolicy::new(config.max_boot_failures),
            crash_loop: CrashLoop::new(now),
            is_crashing: false,
        }
    }

    // --- what there is

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn get(&self, worker: u32) -> Option<&Worker> {
        self.workers.get(worker)
    }

    pub(crate) fn any_serves(&self) -> bool {
        self.workers.in_state(WorkerState::Serving) > 0
    }

    /// The worker, if there is one alone, and it is to stay.
    pub(crate) fn only_one(&self) -> Option<&Worker> {
        let mut workers = self.workers.iter();
        let (Some((_, worker)), None) = (workers.next(), workers.next()) else { return None };
        let stays = worker.state == WorkerState::Serving
            && worker.replacement.is_none()
            && worker.leaves_at.is_none();
        stays.then_some(worker)
    }

    /// The numbers of workers, seen from the line that is to stay; workers of the line `apart` do not count. `replaces`: workers
    /// may be replaced now.
    pub(crate) fn tally(
        &self,
        staying: u32,
        apart: Option<u32>,
        wanted: usize,
        replaces: bool,
        now: Instant,
    ) -> Tally {
        let (reliefs, held) = if replaces { (self.relieved().len(), self.places_held(now)) } else { (0, 0) };
        let mut tally = self.workers.tally(staying, apart, wanted + reliefs, self.surge);
        tally.coming += held; // nothing is forked for these places yet
        tally
    }

    // --- forks

    /// Whether one more may be forked now.
    pub(crate) fn may_fork(&self, now: Instant) -> bool {
        now >= self.fork_due && self.workers.in_state(WorkerState::Forking) < FORKS_AT_A_TIME
    }

    /// No worker is forked before this.
    pub(crate) fn fork_due(&self) -> Instant {
        self.fork_due
    }

    /// Deaths so far are no reason to wait.
    pub(crate) fn fork_at_once(&mut self, now: Instant) {
        self.fork_due = now;
    }

    /// The mold of this boot is to fork one of this generation and line.
    pub(crate) fn fork(&mut self, boot: u32, of: (u32, u32), limit: Duration, now: Instant) -> AppAction {
        let worker = self.workers.add(Worker::forking(of, now, limit));
        AppAction::Fork { boot, worker }
    }

    /// The mold could not fork it. `None`: it is not waited for. Else its state: it may have been forked all the same.
    pub(crate) fn fork_failed(&mut self, number: u32, message: String) -> Option<WorkerState> {
        let worker = self.workers.get_mut(number).filter(|worker| worker.counts())?;
        worker.failure = Some(Box::new(StartFailure::of_ours(message)));
        Some(worker.state)
    }

    /// The mold of this line has gone: what it was asked for and has not forked will not come.
    pub(crate) fn mold_gone(&mut self, line: u32, now: Instant) {
        for worker in self.workers.values_mut().filter(|worker| worker.line == line) {
            worker.mold_gone(now);
        }
    }

    /// A line is given up: what is left of it counts as of another.
    pub(crate) fn join_line(&mut self, line: u32, into: u32) {
        self.workers.join_line(line, into);
    }

    /// Forgets the workers that do not exist yet. Should one be forked all the same, it finds its control socket closed
    /// and ends.
    pub(crate) fn forget_unborn(&mut self) -> Vec<AppAction> {
        self.forget_unborn_if(|_| true)
    }

    fn forget_unborn_if(&mut self, which: impl Fn(&Worker) -> bool) -> Vec<AppAction> {
        let unborn = self.workers.which(|worker| worker.state == WorkerState::Forking && which(worker));
        let forget = |worker| {
            self.workers.remove(worker);
            AppAction::Forget { process: Process::Worker(worker), ending: None }
        };
        unborn.into_iter().map(forget).collect()
    }

    // --- starts

    /// The worker exists, and has to be ready by then. If nothing waits for it, it is killed.
    pub(crate) fn said_hello(&mut self, number: u32, ready_by: Instant) -> Option<AppAction> {
        match self.workers.get_mut(number) {
            Some(worker) => {
                worker.exists(ready_by);
                None
            }
            None => Some(AppAction::Kill(Process::Worker(number))),
        }
    }

    /// It could not start, or not become a mold. Whether it was to become one.
    pub(crate) fn failed_to_start(&mut self, number: u32, failure: StartFailure) -> Option<bool> {
        let worker = self.workers.get_mut(number)?;
        worker.failure = Some(Box::new(failure));
        Some(worker.state == WorkerState::Promoting)
    }

    /// Its time for getting ready is over. True: it should say where it hangs. False: it has had the time to say so.
    pub(crate) fn starts_too_long(&mut self, number: u32, now: Instant) -> bool {
        self.workers.get_mut(number).is_some_and(|worker| worker.dump(now, DUMP_TIME))
    }

    /// It is ready: it serves, or is probed until then. How long that took; `None`: it was not starting.
    pub(crate) fn ready(
        &mut self,
        number: u32,
        probed_until: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let worker = self.workers.get_mut(number)?;
        let state = if probed_until.is_some() { WorkerState::Probing } else { WorkerState::Serving };
        if !worker.becomes(state, probed_until, now) {
            return None;
        }
        let took = now - worker.forked_at;
        if state == WorkerState::Serving {
            self.policy.ready();
        }
        Some(took)
    }

    /// It was probed, and may have clients' requests.
    pub(crate) fn admit(&mut self, number: u32, slow_start_until: Option<Instant>) {
        if let Some(worker) = self.workers.get_mut(number) {
            worker.admit(slow_start_until);
        }
    }

    /// The same, of a version that is known to get ready.
    pub(crate) fn admit_prepared(&mut self, number: u32, slow_start_until: Option<Instant>) {
        self.policy.ready();
        self.admit(number, slow_start_until);
    }

    /// The front gives it as many requests as others from now on.
    pub(crate) fn slow_start_ended(&mut self, number: u32) {
        if let Some(worker) = self.workers.get_mut(number) {
            worker.slow_start_until = None;
        }
    }

    /// The front should have reported the end of these slow starts by now.
    pub(crate) fn end_slow_starts(&mut self, now: Instant) {
        for worker in self.workers.values_mut() {
            worker.slow_start_until.take_if(|until| *until <= now);
        }
    }

    // --- departures

    /// It was sent TERM, and is retired at this time.
    pub(crate) fn leaves(&mut self, number: u32, at: Instant) {
        if let Some(worker) = self.workers.get_mut(number) {
            worker.leaves_at = Some(at);
        }
    }

    /// The front is to give it nothing more. False: it does not serve.
    pub(crate) fn retire(&mut self, number: u32, limit: Duration, now: Instant) -> bool {
        self.workers.get_mut(number).is_some_and(|worker| worker.retire(now, limit))
    }

    /// It has finished its requests, and is to become a mold.
    pub(crate) fn promote(&mut self, number: u32, until: Instant) -> Option<AppAction> {
        let retires = |worker: &&mut Worker| worker.state == WorkerState::Retiring;
        let worker = self.workers.get_mut(number).filter(retires)?;
        worker.state = WorkerState::Promoting;
        worker.deadline = Some(until);
        Some(AppAction::Tell { worker: number, order: WorkerOrder::Promote })
    }

    /// It is a mold now. False: it was not to become one.
    pub(crate) fn promoted(&mut self, number: u32) -> bool {
        let promotes = self.workers.get(number).is_some_and(|worker| worker.state == WorkerState::Promoting);
        promotes && self.workers.remove(number).is_some()
    }

    /// Orders it to exit, where it has got far enough to receive that; else kills it.
    pub(crate) fn drain(&mut self, number: u32, until: Instant, now: Instant) -> Option<AppAction> {
        let worker = self.workers.get_mut(number)?;
        if worker.hears() {
            worker.state = WorkerState::Draining;
            worker.deadline = Some(until);
            return Some(AppAction::Tell { worker: number, order: WorkerOrder::Drain });
        }
        if worker.state == WorkerState::Draining {
            return None;
        }
        self.halt(number, now)
    }

    pub(crate) fn drain_all(&mut self, until: Instant, now: Instant) -> Vec<AppAction> {
        let all = self.workers.which(|_| true);
        all.into_iter().filter_map(|worker| self.drain(worker, until, now)).collect()
    }

    /// Kills it.
    pub(crate) fn halt(&mut self, number: u32, now: Instant) -> Option<AppAction> {
        self.workers.get_mut(number)?.halt(now);
        Some(AppAction::Kill(Process::Worker(number)))
    }

    pub(crate) fn halt_all(&mut self, now: Instant) -> Vec<AppAction> {
        let all = self.workers.which(|_| true);
        all.into_iter().filter_map(|worker| self.halt(worker, now)).collect()
    }

    /// Ends the workers of a line that do not serve yet.
    pub(crate) fn halt_coming(&mut self, line: u32, now: Instant) -> Vec<AppAction> {
        let mut actions = self.forget_unborn_if(|worker| worker.line == line);
        let coming = |worker: &Worker| {
            worker.line == line && matches!(worker.state, WorkerState::Starting | WorkerState::Probing)
        };
        let coming = self.workers.which(coming);
        actions.extend(coming.into_iter().filter_map(|worker| self.halt(worker, now)));
        actions
    }

    // --- deaths

    /// Kills a serving worker that no order reaches any more, as it has closed its control socket.
    pub(crate) fn control_is_closed(&mut self, number: u32, now: Instant) -> Option<AppAction> {
        let what =
            "it has closed its control socket, by `exec` or by closing descriptors that are not its own";
        let worker = self.workers.get_mut(number)?;
        worker.failure.get_or_insert_with(|| Box::new(StartFailure::of_ours(what.into())));
        self.halt(number, now)
    }

    /// The kernel reports its end. How it ended, if it has gone.
    pub(crate) fn ended(&mut self, number: u32, ending: Ending, now: Instant) -> Option<Ending> {
        self.workers.get_mut(number)?.ended(ending, now)
    }

    /// Its control socket is closed. How it ended, if it has gone.
    pub(crate) fn heard_out(&mut self, number: u32, now: Instant) -> Option<Ending> {
        self.workers.get_mut(number)?.heard_out(now)
    }

    /// It is gone, or was never forked.
    pub(crate) fn gone(&mut self, number: u32) -> Option<Worker> {
        self.workers.remove(number)
    }

    /// One has died that is missed. What there is to say of a crash loop, if it is one.
    pub(crate) fn died(
        &mut self,
        number: u32,
        worker: &Worker,
        ending: Ending,
        now: Instant,
    ) -> Option<Crashes> {
        let failure = worker.failure.as_ref().map(|failure| failure.error.to_string());
        let death = Death { worker: number, life: worker.life(now), ending, failure };
        self.crash_loop.died(death, self.wanted, now)
    }

    /// Delays the replacement of a dead worker, if it has to wait. How many workers in a row did not get ready, if there should
    /// be no further one.
    pub(crate) fn delay_next(&mut self, life: Life, now: Instant) -> Option<u32> {
        if let Life::Ready(_) = life {
            self.fork_due = self.fork_due.max(self.crash_loop.due(self.wanted));
            return None;
        }
        match self.policy.died(life, self.any_serves()) {
            Verdict::StartAfter(delay) => {
                self.fork_due = self.fork_due.max(now + delay);
                None
            }
            Verdict::GiveUp => Some(self.policy.boot_failures()),
        }
    }

    /// There are other limits. What has not got ready so far does not count.
    pub(crate) fn configure(&mut self, max_failures: u32) {
        self.policy = RestartPolicy::new(max_failures);
    }

    /// It was given up: what has not got ready so far does not count.
    pub(crate) fn given_up(&mut self) {
        self.policy.begin_again();
    }

    /// What is forked from now on has nothing to do with what was forked so far; from when on. (Requests do not speed a
    /// crash loop up.)
    pub(crate) fn begin_line(&mut self, now: Instant) -> Instant {
        self.fork_due = now.max(self.crash_loop.due(self.wanted));
        self.fork_due
    }

    /// What is forked from now on has nothing to do with what has died. True: the front has to know that there is no
    /// crash loop any more.
    pub(crate) fn new_version(&mut self, now: Instant) -> bool {
        self.replacements.forget_limit(); // it may need less
        self.crash_loop = CrashLoop::new(now);
        self.policy.begin_again();
        self.fork_due = now;
        std::mem::take(&mut self.is_crashing)
    }

    // --- crash loops

    pub(crate) fn is_crashing(&self) -> bool {
        self.is_crashing
    }

    /// The crash loop, if there is one.
    pub(crate) fn crashes(&self, now: Instant) -> Option<Crashes> {
        self.crash_loop.crashes(now)
    }

    /// There is a crash loop. False: the front knows.
    pub(crate) fn crash_loop_begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_crashing, true)
    }

    /// When the crash loop is over, if there is one and no worker dies until then.
    pub(crate) fn crash_loop_over(&self) -> Option<Instant> {
        self.crash_loop.over_at().filter(|_| self.is_crashing)
    }

    /// Whether a crash loop is over by now: no worker has died for long enough.
    pub(crate) fn ends_crash_loop(&mut self, now: Instant) -> bool {
        let is_over = self.crash_loop_over().is_some_and(|over_at| now >= over_at);
        self.is_crashing &= !is_over;
        is_over
    }
}
