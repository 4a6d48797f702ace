//! Messages from processes, the front and operators, as events for the core. Messages that decide nothing (questions about
//! heaps and threads, lines for the log) are handled here.

use super::app::{log_slow_request, AppSupervisor};
use super::Supervisor;
use crate::asked_heap::AskedHeap;
use crate::asked_profile::{profile_file, AskedProfile, ProfileOrder};
use crate::control::message::{FromMold, FromWorker, ToWorker};
use crate::control::questions::NotAsked;
use crate::core::replacement::ReplacementCause;
use crate::core::worker::{StartFailure, WorkerState};
use crate::core::{App as Core, AppEvent, Process};
use crate::diagnosis::overrun::{describe, look, of_unresponsive};
use crate::diagnosis::thread_states::{AskedThreads, WorkersRequests};
use crate::diagnosis::{self, start_failure_without_secrets};
use crate::process::companion_process::FromCompanion;
use crate::process::launcher::Who;
use crate::process::watcher::SocketEvent;
use crate::process::worker_handle::WorkerHandle;
use crate::shell::app_files::in_turn;
use crate::shell::event::Found;
use highball_config::AppId;
use highball_link::{Diagnosis, FrontAppEvent, Overrun, OverrunReport, RequestFailure, DETAIL};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::dispatcher::with_default;
use tracing::{error, info, warn, Dispatch, Span};

/// How long a worker may take to report where its threads are: it cannot while one of them does not let the others run.
pub(super) const THREADS_TIME: Duration = Duration::from_secs(1);

/// Workers that make a profile at the same time.
const MOST_PROFILED: usize = 64;

impl Supervisor {
    /// A process of an application has sent a message, or closed its control socket.
    pub(super) fn socket_event(&mut self, id: AppId, event: SocketEvent) {
        let alone = self.apps.len() == 1;
        let (Some(app), Some(core)) = (self.apps.get_mut(&id), self.core.apps.get(&id)) else { return };
        let (span, now) = (app.span(alone), Instant::now());
        self.is_quiet = !app.message_log.takes(&event, now);
        if let Some(messages) = app.message_log.notice(now) {
            span.in_scope(|| {
                warn!(
                    name: "messages_dropped",
                    messages, "the application's processes send too many messages: some were not logged"
                );
            });
        }
        let for_core = || match event {
            SocketEvent::Mold { boot, message } => app.mold_sent(boot, message, core),
            SocketEvent::Worker { worker, message, descriptors } => {
                app.worker_sent(worker, message, descriptors)
            }
            SocketEvent::Companion { companion, message, descriptors } => {
                app.companion_sent(companion, message, descriptors)
            }
            SocketEvent::ProtocolError(who, error) => {
                Some(AppEvent::Misbehaved { process: process(who)?, error: error.to_string() })
            }
            SocketEvent::Closed(who) => Some(AppEvent::Closed { process: process(who)? }),
            SocketEvent::Successor(..) | SocketEvent::Succeeded { .. } => None, // the supervisor's
        };
        let event =
            if self.is_quiet { with_default(&Dispatch::none(), for_core) } else { span.in_scope(for_core) };
        if let Some(event) = event {
            self.happens(id, event);
        }
    }

    /// Something was found out about the files of an application.
    pub(super) fn found(&mut self, id: AppId, found: Found) {
        let alone = self.apps.len() == 1;
        let (Some(app), Some(core)) = (self.apps.get_mut(&id), self.core.apps.get(&id)) else { return };
        let event = app.span(alone).in_scope(|| app.found(found, core));
        if let Some(event) = event {
            self.happens(id, event);
        }
    }

    /// Asks every mold and worker for its heap. Nothing is waited for here.
    pub(super) fn ask_heaps(&mut self, gc: bool) -> Vec<AskedHeap> {
        let cores = &self.core.apps;
        let apps = self.apps.iter_mut().filter_map(|(id, app)| Some((app, cores.get(id)?)));
        apps.flat_map(|(app, core)| app.ask_heaps(core, gc)).collect()
    }

    /// Asks these workers where their threads are that are at these requests. Nothing is waited for here.
    pub(super) fn ask_threads(&mut self, requests: Vec<WorkersRequests>) -> Vec<AskedThreads> {
        let asked = requests.into_iter().filter_map(|WorkersRequests { app: id, worker, tickets }| {
            let (app, core) = (self.apps.get_mut(&id)?, self.core.apps.get(&id)?);
            let pid = app.pid_of_worker(worker);
            let (answer, late) = match app.workers.get_mut(&worker).filter(|_| hears(core, worker)) {
                Some(handle) => {
                    (handle.ask_threads_unless_silent(&tickets), handle.thread_questions.late().cloned())
                }
                None => (Err(NotAsked::NotServing), None),
            };
            Some(AskedThreads { app: id, worker, tickets, pid, answer, late })
        });
        asked.collect()
    }

    /// Has the workers of an application make a profile, or one of them. Nothing is waited for here.
    pub(super) fn begin_profile(
        &mut self,
        id: AppId,
        worker: Option<u32>,
        order: ProfileOrder,
    ) -> Result<Vec<AskedProfile>, String> {
        match (self.apps.get_mut(&id), self.core.apps.get(&id)) {
            (Some(app), Some(core)) => app.begin_profile(core, worker, order),
            _ => Err("there is no such application any more".into()),
        }
    }
}

impl Supervisor {
    /// Has the workers of an application end their profiles.
    pub(super) fn end_profile(&mut self, id: AppId) {
        let workers = self.apps.get(&id).into_iter().flat_map(|app| app.workers.values());
        for handle in workers.filter(|handle| handle.profile_questions.unanswered_for().is_some()) {
            let _ = handle.send(&ToWorker::EndProfile); // a worker that cannot be reached ends
        }
    }
}

fn process(who: Who) -> Option<Process> {
    match who {
        Who::Mold(boot) => Some(Process::Mold(boot)),
        Who::Worker(worker) => Some(Process::Worker(worker)),
        Who::Companion(number) => Some(Process::Companion(number)),
        Who::Successor(_) | Who::Succeeded => None,
    }
}

/// What is wrong with a process that answers without having been asked.
fn unasked(process: Process) -> AppEvent {
    let error = io::Error::new(io::ErrorKind::InvalidData, "it answers a question that was not asked");
    AppEvent::Misbehaved { process, error: error.to_string() }
}

impl AppSupervisor {
    fn mold_sent(&mut self, boot: u32, message: FromMold, core: &Core) -> Option<AppEvent> {
        let process = Process::Mold(boot);
        let mold = self.molds.get_mut(&boot)?;
        let boots = core.molds.iter().any(|mold| mold.boot == boot && mold.boots_since().is_some());
        match message {
            FromMold::Step { step } => return Some(AppEvent::MoldStep { boot, step }),
            FromMold::Found { app, because } if boots => info!(
                name: "application_found", target: DETAIL, app, because, "found"
            ),
            FromMold::Warning { warning, remedy } if boots => warn!(
                name: "boot_warning", remedy, "{warning}"
            ),
            FromMold::Found { .. } | FromMold::Warning { .. } => {
                warn!(
                    name: "mold_unexpected_message", boot, "the mold sent an unexpected message about its boot"
                );
            }
            FromMold::Booted(app) => {
                mold.reports_pid(app.pid);
                return Some(AppEvent::MoldBooted { boot, app: Some(Arc::new(app)) });
            }
            FromMold::Bare { pid } => {
                mold.reports_pid(pid);
                return Some(AppEvent::MoldBooted { boot, app: None });
            }
            FromMold::Failed(failure) => return Some(AppEvent::MoldFailed { boot, failure }),
            FromMold::ForkFailed { worker, message } => {
                return Some(AppEvent::ForkFailed { worker, message });
            }
            FromMold::LaidOut { worker } => return Some(AppEvent::MoldLaidOut { boot, worker }),
            FromMold::CompanionNotForked { companion: number, message } => {
                let why = format!("could not be forked: {message}");
                return Some(AppEvent::CompanionNotStarted { number, why });
            }
            FromMold::Stop => return Some(AppEvent::MoldAsksToStop { boot }),
            FromMold::Heap { heap } if mold.heap_questions.answered(heap) => {}
            FromMold::Memory { memory } if mold.memory_questions.answered(memory) => {}
            FromMold::Heap { .. } | FromMold::Memory { .. } => return Some(unasked(process)),
        }
        None
    }

    fn worker_sent(
        &mut self,
        worker: u32,
        message: FromWorker,
        mut descriptors: Vec<OwnedFd>,
    ) -> Option<AppEvent> {
        let process = Process::Worker(worker);
        let handle = self.workers.get_mut(&worker)?;
        Some(match message {
            FromWorker::Hello { pid, .. } => {
                match handle.exists(worker, pid, descriptors.pop(), &self.watcher) {
                    Ok(true) => AppEvent::WorkerHello { worker },
                    Ok(false) => return None, // it has sent that before
                    Err(error) => {
                        error!(
                            name: "worker_unexpected_message", worker, %error, "the worker's hello is invalid"
                        );
                        return None;
                    }
                }
            }
            FromWorker::Ready => AppEvent::WorkerReady { worker },
            FromWorker::Booted(app) => AppEvent::WorkerBooted { worker, app: Arc::new(app) },
            FromWorker::Failed { error, mut boot } => {
                let account = boot.as_mut().map(|boot| &mut boot.account);
                let error = start_failure_without_secrets(&error, account, &self.app);
                AppEvent::WorkerFailed { worker, failure: Box::new(StartFailure { error, boot }) }
            }
            FromWorker::Fit => AppEvent::WorkerFit { worker },
            FromWorker::Unfit { why } => AppEvent::WorkerUnfit { worker, why },
            FromWorker::Promoted => AppEvent::WorkerPromoted { worker },
            FromWorker::Leaving => AppEvent::WorkerLeaving { worker },
            FromWorker::Heap { heap } => {
                let was_asked = handle.heap_questions.answered(heap);
                return (!was_asked).then(|| unasked(process));
            }
            FromWorker::Memory { memory } => {
                let was_asked = handle.memory_questions.answered(memory);
                return (!was_asked).then(|| unasked(process));
            }
            FromWorker::Profile { problem } => {
                let was_asked = handle.profile_questions.answered(problem);
                return (!was_asked).then(|| unasked(process));
            }
            FromWorker::Threads { threads } => {
                let was_asked = handle.thread_questions.answered(threads);
                return (!was_asked).then(|| unasked(process));
            }
            FromWorker::Slow(request) => {
                let ended = self.slow_requests.add(worker, request, Instant::now());
                ended.iter().for_each(log_slow_request);
                return None;
            }
        })
    }

    fn companion_sent(
        &mut self,
        number: u32,
        message: FromCompanion,
        mut descriptors: Vec<OwnedFd>,
    ) -> Option<AppEvent> {
        let handle = self.companions.get_mut(&number)?;
        match message {
            FromCompanion::Exists { pid } => {
                let process = Process::Companion(number);
                let error = handle.exists(number, pid, descriptors.pop(), &self.watcher).err()?;
                Some(AppEvent::Misbehaved { process, error: error.to_string() })
            }
            FromCompanion::Started { pid } => {
                handle.runs_as(pid);
                Some(AppEvent::CompanionStarted { number })
            }
            FromCompanion::Failed { trouble } => {
                let why = format!("could not be run: {}", io::Error::from(trouble));
                Some(AppEvent::CompanionNotStarted { number, why })
            }
            FromCompanion::LeftBehind { processes } => {
                let remedy = "Have it run in the foreground, and end with all that it has started.";
                let (process, left) = (&handle.label, processes);
                warn!(
                    name: "process_left_others",
                    process,
                    left, remedy, "the process ended and left others behind: ending these as well"
                );
                None
            }
        }
    }

    /// An event of the front, as one for the core, if it is.
    pub(super) fn front_sent(&mut self, event: FrontAppEvent, core: &Core) -> Option<AppEvent> {
        Some(match event {
            FrontAppEvent::Wanted => AppEvent::Wanted,
            FrontAppEvent::Idle => AppEvent::Idle,
            FrontAppEvent::Drained => AppEvent::Drained,
            FrontAppEvent::WorkerBroken { worker, why } => {
                if core.staff.get(worker).is_some() {
                    self.deaths.broke_the_rules(worker, self.pid_of_worker(worker), &why);
                }
                AppEvent::WorkerBroken { worker, why }
            }
            FrontAppEvent::RingEndsSoon { worker } => AppEvent::RingEndsSoon { worker },
            FrontAppEvent::WorkerStuck { worker } => {
                AppEvent::ReplaceWorker { worker, cause: ReplacementCause::TimedOut }
            }
            FrontAppEvent::WorkerUnresponsive { worker } => {
                self.describe_unresponsive(worker, core);
                AppEvent::ReplaceWorker { worker, cause: ReplacementCause::Unresponsive }
            }
            FrontAppEvent::WorkerIdle { worker, is_stuck } => AppEvent::WorkerIdle { worker, is_stuck },
            FrontAppEvent::WorkerKept { worker } => AppEvent::WorkerKept { worker },
            FrontAppEvent::CanaryAnswered { worker, answer } => AppEvent::CanaryAnswered { worker, answer },
            FrontAppEvent::WorkerWarm { worker } => AppEvent::WorkerWarm { worker },
            FrontAppEvent::SlowStartEnded { worker } => AppEvent::SlowStartEnded { worker },
            FrontAppEvent::RequestTimedOut(overrun) => {
                self.overran(overrun, core);
                return None;
            }
            FrontAppEvent::AnswerLeaves { worker, ticket } => {
                if let Some(handle) = self.workers.get(&worker).filter(|_| hears(core, worker)) {
                    // If the worker cannot be reached, the request keeps its place until the answer ends.
                    let _ = handle.send(&ToWorker::LeavePlace { ticket });
                }
                return None;
            }
            FrontAppEvent::DiagnosisWanted(failure, to) => {
                self.diagnose_request(*failure, to, core);
                return None;
            }
            FrontAppEvent::Load(_) => return None, // the supervisor's: it looks at the load of all
        })
    }

    /// Puts together what is known, beside the loop: it may have to wait for a worker, and reads files.
    fn diagnose_request(&mut self, failure: RequestFailure, mut to: oneshot::Sender<Diagnosis>, core: &Core) {
        let death = failure.dead_worker().and_then(|worker| self.deaths.of(worker));
        let stuck = failure.stuck_worker().filter(|worker| hears(core, *worker));
        let asked = stuck.and_then(|worker| self.workers.get_mut(&worker)?.ask_threads(&[]).ok());
        let (app, folder) = (Arc::clone(&self.app), core.current.folder().to_owned());
        let turn = self.files.turn();
        tokio::spawn(async move {
            let threads = match asked {
                Some(answer) => timeout(THREADS_TIME, answer).await.ok().and_then(Result::ok),
                None => None,
            };
            let threads = threads.unwrap_or_default();
            let made = in_turn(turn, move || {
                diagnosis::of_request(&failure, death.as_ref(), threads, &app, &folder)
            });
            tokio::select! {
                Some(diagnosis) = made => drop(to.send(diagnosis)),
                () = to.closed() => {} // the client has stopped waiting
                else => {}
            }
        });
    }

    /// A request has exceeded its time limit: where its worker is with it is logged, and the request is interrupted if the
    /// application wants that. Nothing is waited for here.
    fn overran(&mut self, overrun: Overrun, core: &Core) {
        let (worker, ticket) = (overrun.worker, overrun.ticket);
        self.slow_requests.timed_out(worker, ticket);
        self.describe_overrun(overrun, core);
        let interrupts = self.app.limits.timeout_interrupts && hears(core, worker);
        if let Some(handle) = self.workers.get(&worker).filter(|_| interrupts) {
            // If the worker cannot be reached, it is replaced when the request does not end.
            let _ = handle.send(&ToWorker::Interrupt { ticket });
        }
    }

    fn describe_overrun(&mut self, overrun: Overrun, core: &Core) {
        let Overrun { worker, ticket, request } = overrun;
        let now = Instant::now();
        let is_allowed = self.overrun_lines.allows(now);
        let handle = self.workers.get_mut(&worker).filter(|_| is_allowed && hears(core, worker));
        // A worker that has not answered earlier questions was described then.
        let Some(asked) = handle.and_then(|handle| handle.ask_threads(&[ticket]).ok()) else {
            self.overruns_left_out += 1;
            return;
        };
        self.overrun_lines.spend(1);
        let left_out = std::mem::take(&mut self.overruns_left_out);
        let (pid, last, span) = (self.pid_of_worker(worker), self.overruns.clone(), Span::current());
        tokio::spawn(async move {
            let threads = timeout(THREADS_TIME, asked).await.ok().and_then(Result::ok);
            let seen = match pid {
                Some(pid) => look(pid).await,
                None => Vec::new(),
            };
            let described = describe(ticket, threads.as_deref(), &seen);
            let Some((doing, backtrace)) = described else { return }; // it has ended meanwhile
            span.in_scope(|| {
                let left_out = (left_out > 0).then_some(left_out);
                let message = "a request has exceeded its time limit and goes on in its worker";
                error!(
                    name: "request_overran", worker, pid, request, doing, backtrace, left_out, "{message}"
                );
            });
            last.add(OverrunReport { worker, request, doing, backtrace, seconds_ago: 0 }, now);
        });
    }

    /// A worker does not begin requests, or does not answer: what it does instead is logged. Nothing is waited for here.
    fn describe_unresponsive(&mut self, worker: u32, core: &Core) {
        if !self.overrun_lines.allows(Instant::now()) || !hears(core, worker) {
            return;
        }
        self.overrun_lines.spend(1);
        let asked = self.workers.get_mut(&worker).and_then(|handle| handle.ask_all_threads().ok());
        let (pid, span) = (self.pid_of_worker(worker), Span::current());
        tokio::spawn(async move {
            let answers = async {
                match asked {
                    Some(asked) => timeout(THREADS_TIME, asked).await.is_ok_and(|answer| answer.is_ok()),
                    None => false,
                }
            };
            let seen = async {
                match pid {
                    Some(pid) => look(pid).await,
                    None => Vec::new(),
                }
            };
            // Side by side: it may be killed in a moment.
            let (answers, seen) = tokio::join!(answers, seen);
            let doing = of_unresponsive(answers, &seen);
            span.in_scope(|| {
                error!(
                    name: "worker_stuck",
                    worker,
                    pid, doing, "the worker does not respond: it begins no requests, or does not answer"
                );
            });
        });
    }

    /// Asks the mold and the workers for their heaps. Nothing is waited for here.
    fn ask_heaps(&mut self, core: &Core, gc: bool) -> Vec<AskedHeap> {
        let id = self.app.id;
        let mold = core.molds.of(core.current.line()).map(|mold| {
            let (pid, handle) = (self.pid_of_mold(mold.boot), self.molds.get_mut(&mold.boot));
            let answer = match handle.filter(|_| mold.is_booted()) {
                Some(handle) => handle.ask_heap(),
                None => Err(NotAsked::NotServing),
            };
            AskedHeap { app: id, worker: None, pid, state: mold.state.name(), answer }
        });
        let mut heaps: Vec<AskedHeap> = mold.into_iter().collect();
        for (number, worker) in core.staff.workers().iter() {
            let (pid, handle) = (self.pid_of_worker(number), self.workers.get_mut(&number));
            let answer = match handle.filter(|_| hears(core, number)) {
                Some(handle) => handle.ask_heap(gc),
                None => Err(NotAsked::NotServing),
            };
            let state = worker.state.name();
            heaps.push(AskedHeap { app: id, worker: Some(number), pid, state, answer });
        }
        heaps
    }

    fn begin_profile(
        &mut self,
        core: &Core,
        worker: Option<u32>,
        order: ProfileOrder,
    ) -> Result<Vec<AskedProfile>, String> {
        let is_meant = |number: &u32| worker.is_none_or(|worker| worker == *number);
        let serving = core.staff.workers().iter().map(|(number, _)| number);
        let serving: Vec<u32> =
            serving.filter(|number| is_meant(number) && hears(core, *number)).take(MOST_PROFILED).collect();
        match (serving.is_empty(), worker) {
            (true, Some(worker)) => return Err(format!("there is no worker {worker} that serves")),
            (true, None) => return Err("no worker of the application serves".into()),
            (false, _) => {}
        }
        let is_at_one = |handle: &WorkerHandle| handle.profile_questions.unanswered_for().is_some();
        if self.workers.values().any(is_at_one) {
            return Err(
                "another profile of this application is running; try again when its time is over".into()
            );
        }
        let ask = |number: u32| -> Result<AskedProfile, String> {
            let file =
                profile_file().map_err(|error| format!("there is no memory for its result: {error}"))?;
            let handle = self.workers.get_mut(&number);
            let answer =
                handle.map_or(Err(NotAsked::NotServing), |handle| handle.ask_profile(order, file.as_fd()));
            Ok(AskedProfile { worker: number, file, answer })
        };
        serving.into_iter().map(ask).collect()
    }
}

/// Whether the worker's main thread waits for questions.
pub(super) fn hears(core: &Core, worker: u32) -> bool {
    let hears = |state| matches!(state, WorkerState::Serving | WorkerState::Retiring);
    core.staff.get(worker).is_some_and(|worker| hears(worker.state))
}
