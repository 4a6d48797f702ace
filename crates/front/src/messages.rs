//! What the front and the binary say to each other: commands, events, reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use highball_config::{App, AppId};
use highball_ring::{FrontRing, RequestTimes};
use tokio::sync::oneshot;

use crate::cache::CacheReport;
use crate::figures::{Figures, RequestCounts};
use crate::files::Assets;
use crate::refusals::failure::{DevelopmentPages, Failure};
use crate::running::RunningRequests;

/// When the front begins to accept connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// From the start: what comes before there are workers waits for them.
    AtOnce,
    /// At [`Command::Open`].
    OnCommand,
}

/// A command for the front.
#[derive(Debug)]
pub enum Command {
    /// Accept connections.
    Open,
    /// Another server accepts connections by now: accept no more, finish what is there, and send [`Event::Drained`].
    /// Connections that are idle may wait for one more answer, as long as the time for draining.
    HandOver {
        /// The addresses ([`Listener::address`]) on which the other server accepts. What is in the backlogs of the
        /// rest is accepted first.
        kept: Vec<String>,
    },
    /// The server stops soon: go on, but let each answer be the last of its connection.
    AnnounceStop,
    /// Stop accepting, finish what is there, and send [`Event::Drained`].
    Drain,
    /// Go on in new files where those that are written may have been moved away: the access logs.
    ReopenLogs,
    /// Report the state.
    Report(oneshot::Sender<Report>),
    /// List the requests that wait or are with a worker, by application.
    ListRequests {
        /// The most of each application: the oldest ones.
        most: usize,
        /// Where the list goes.
        to: oneshot::Sender<Vec<RunningRequests>>,
    },
    /// There is one application more.
    AddApp(Arc<App>),
    /// An application is reached elsewhere, has other limits, or another access log.
    ChangeApp(Arc<App>),
    /// Route no more requests to an application, finish those that it has begun, send [`AppEvent::Drained`], and forget
    /// it.
    RemoveApp(AppId),
    /// This concerns one application.
    ToApp(AppId, AppCommand),
}

/// A command that concerns one application.
#[derive(Debug)]
pub enum AppCommand {
    /// It is there; where its static files are, and what header fields they get.
    Booted {
        /// Its public folder.
        public: Option<PathBuf>,
        /// Header fields for static files.
        headers: Vec<(String, String)>,
        /// Where the assets of a Rails application are.
        assets: Option<Box<Assets>>,
    },
    /// From now on there is no application: the files of this folder are all that there is.
    OpenSite {
        /// The folder.
        root: PathBuf,
    },
    /// It did not boot: the answer for its clients.
    Failed(AppFailure),
    /// The server stops before it serves: requests that wait for it, and new ones, are refused.
    Abandon,
    /// A worker waits for requests.
    AddWorker(NewWorker),
    /// A worker waits for requests, and is to get none from clients yet: send it the front's own, and then
    /// [`AppEvent::CanaryAnswered`].
    AddCanary(NewWorker),
    /// A canary may have requests from clients.
    AdmitCanary {
        /// The worker's number.
        worker: u32,
    },
    /// This generation, the newest, is taken back: connections that it has answered may be answered by the one before.
    WithdrawGeneration {
        /// The generation's number.
        generation: u32,
    },
    /// Its workers die soon after they were started, or do so no more.
    CrashLoop {
        /// Whether they do.
        is_on: bool,
    },
    /// What was seen of a worker: comes again and again while there is something wrong, and once when there is not any more.
    SignOfLife {
        /// The worker's number.
        worker: u32,
        /// It answers questions.
        answers: bool,
        /// A signal has stopped its process.
        is_stopped: bool,
    },
    /// Place nothing more with a worker, and send [`AppEvent::WorkerIdle`] when it has finished: its requests have been
    /// answered, and the connections that it has taken over have ended, or have been ended as their time was over.
    RetireWorker {
        /// The worker's number.
        worker: u32,
    },
    /// Count the requests that each worker answers from now on, and send [`AppEvent::WorkerWarm`], once, as soon as one
    /// has answered this number; 0: at once, for the one that has answered the most. Replaces an earlier such command.
    NameWarmWorker {
        /// Requests before a worker counts as warm.
        requests: u64,
    },
    /// A worker is dead, or no longer serves.
    RemoveWorker {
        /// The worker's number.
        worker: u32,
        /// It was killed on purpose. What a retiring worker was at then has had its time, and is not repeated.
        killed: bool,
    },
}

/// The pages about an application that did not boot.
#[derive(Debug)]
pub struct AppFailure {
    /// For developers at this machine; `None` outside of development. Their requests then wait for the answer to
    /// [`AppEvent::Wanted`].
    pub development: Option<DevelopmentPages>,
    /// The application's folder of static files, where it may have a page for all other clients: `503.html`.
    pub public: PathBuf,
}

/// A worker that is new to the front.
#[derive(Debug)]
pub struct NewWorker {
    /// The worker's number; an application's numbers are never used twice.
    pub worker: u32,
    /// Which release of the application it runs; a later one has a larger number, and the first is 1. A connection
    /// that was answered by one is not answered by an earlier one again, unless that one is withdrawn.
    pub generation: u32,
    /// Its serving threads.
    pub threads: u16,
    /// The front's end of its ring.
    pub ring: FrontRing,
}

/// Requests that were not answered as a whole, from when the front was to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Their clients took too long to send them: they got 408.
    pub incomplete: usize,
    /// Their clients have left before the end of the answer.
    pub left: usize,
    /// Their answers were cut off: the client took nothing, or the application failed.
    pub cut_off: usize,
    /// They were not finished when the front ended.
    pub in_flight: usize,
}

/// What the front says.
#[derive(Debug)]
pub enum Event {
    /// Nothing is left to finish, and nothing is accepted.
    Drained,
    /// This concerns one application.
    OfApp(AppId, AppEvent),
}

/// An event that concerns one application.
#[derive(Debug)]
pub enum AppEvent {
    /// A request waits for it, and no worker serves: it sleeps, was not started yet, or did not boot last time and a
    /// developer requests it. Sent once until a worker is added, or [`AppCommand::Failed`] arrives (again).
    Wanted,
    /// A developer's request got an error: answer with the pages about it, or drop the sender.
    PagesWanted(Box<Failure>, oneshot::Sender<DevelopmentPages>),
    /// It received no requests for the time after which it may sleep ([`App::sleep_after`]). Sent again after as much
    /// time, if it still serves then.
    Idle,
    /// It was removed, has nothing in flight any more, and is forgotten.
    Drained,
    /// A canary has answered the request for [`probe_path`](highball_config::Process::probe_path) with this status, or why it has not;
    /// and those for its [`warm_up`](highball_config::Process::warm_up).
    CanaryAnswered {
        /// The worker's number.
        worker: u32,
        /// The status, or what went wrong.
        answer: Result<u16, String>,
    },
    /// A worker broke the protocol of its ring: it must be killed and replaced.
    WorkerBroken {
        /// The worker's number.
        worker: u32,
        /// What it did.
        why: String,
    },
    /// A worker's ring ends in a billion requests: it must be replaced, in order, and serves until it is. Sent once.
    RingEndsSoon {
        /// The worker's number.
        worker: u32,
    },
    /// How busy its workers were, while their number may follow that ([`App::pool`]).
    Load(ReportedLoad),
    /// A request that a worker has begun has exceeded its time limit, and goes on. Sent once for each.
    RequestTimedOut(Box<TimedOutRequest>),
    /// A request goes on although some time has passed since it exceeded its time limit: its worker should be replaced.
    WorkerStuck {
        /// The worker's number.
        worker: u32,
    },
    /// A worker does not begin the requests that it is given, or shows no sign of life: it should be replaced. Sent again as long as that is so.
    WorkerUnresponsive {
        /// The worker's number.
        worker: u32,
    },
    /// A retired worker has nothing in flight any more that a client waits for.
    WorkerIdle {
        /// The worker's number.
        worker: u32,
        /// It is still at requests that have exceeded their time limits, or takes no requests.
        is_stuck: bool,
    },
    /// The worker that was asked for by [`AppCommand::NameWarmWorker`].
    WorkerWarm {
        /// The worker's number.
        worker: u32,
    },
}

/// How busy the workers of an application were since the last report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedLoad {
    /// Time since then.
    pub elapsed: Duration,
    /// Requests that workers had, on average.
    pub busy: f64,
    /// Requests that waited for one, on average.
    pub queue: f64,
    /// The longest time that one of them has waited so far.
    pub waited: Duration,
}

/// A request that has exceeded its time limit, and goes on.
#[derive(Debug, Clone)]
pub struct TimedOutRequest {
    /// The worker's number.
    pub worker: u32,
    /// The number by which the worker knows the request.
    pub ticket: u64,
    /// Method and path, without what may be a token.
    pub request: String,
}

/// How things are.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Each application, but for those that were removed and have finished.
    pub apps: Vec<AppLoad>,
    /// The server stops, or will soon, and no other serves in its place.
    pub is_stopping: bool,
    /// It accepts connections, also while it will stop soon.
    pub accepts: bool,
    /// Requests that were for no application, or could not be read.
    pub unrouted: RequestCounts,
    /// Client connections since the start.
    pub accepted: u64,
    /// Open client connections.
    pub connections: usize,
    /// Those that an application has taken over.
    pub hijacked: usize,
    /// Bytes in spool files.
    pub spool_bytes: u64,
    /// The most that there may be.
    pub max_spool_bytes: u64,
    /// What is wrong with the folder of spool files, if something is.
    pub spool_problem: Option<String>,
    /// Bytes of requests and answers in memory,
    pub buffer_bytes: u64,
    /// and the most that there may be.
    pub max_buffer_bytes: u64,
    /// Why the server's access log is not written as it should be, if so.
    pub log_problem: Option<String>,
}

/// The condition of an application, as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// A worker takes requests, and begins them.
    Serving,
    /// Its workers die soon after they were started, and none has lived for longer.
    Crashing,
    /// Its workers do not begin the requests that they are given.
    Stuck,
    /// It will, or it will turn out that it does not boot.
    Booting,
    /// It did not boot.
    Failed,
    /// The next request boots it.
    Asleep,
}

impl Condition {
    /// The state of an application, in a word, and whether it should get requests. `has_served`: it has come up before. One
    /// that is stuck has had no free thread for long.
    #[must_use]
    pub fn state(self, has_served: bool, is_stuck: bool) -> (&'static str, bool) {
        match self {
            Condition::Booting if !has_served => ("booting", false),
            Condition::Failed => ("failed", false),
            Condition::Crashing => ("crashing", false),
            Condition::Stuck => ("stuck", false),
            Condition::Serving | Condition::Booting if is_stuck => ("stuck", false),
            Condition::Serving => ("serving", true),
            // Its workers are being replaced; requests wait meanwhile.
            Condition::Booting => ("booting", true),
            Condition::Asleep => ("asleep", true),
        }
    }
}

/// How things are with an application.
#[derive(Debug, Clone)]
pub struct AppLoad {
    /// The application's number.
    pub app: AppId,
    /// Whether it answers.
    pub condition: Condition,
    /// It has answered, or could have, since the start.
    pub has_served: bool,
    /// Time since it last had a worker with a free thread, or ended an answer; zero, where it has one.
    pub busy_for: Duration,
    /// Each of its workers.
    pub workers: Vec<WorkerReport>,
    /// Requests that wait for a worker.
    pub queue: usize,
    /// Bytes in spool files.
    pub spool_bytes: u64,
    /// Why its own access log is not written as it should be, if so.
    pub log_problem: Option<String>,
    /// Its response cache, if it has one.
    pub cache: Option<CacheReport>,
    /// What was counted since the start.
    pub figures: Figures,
}

impl AppLoad {
    /// Its state in a word, and whether it should get requests. One without a free thread for `stuck_after` is stuck.
    #[must_use]
    pub fn state(&self, stuck_after: Option<Duration>) -> (&'static str, bool) {
        let is_stuck = stuck_after.is_some_and(|limit| self.busy_for >= limit);
        self.condition.state(self.has_served, is_stuck)
    }
}

/// How things are with a worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: u32,
    /// Its serving threads.
    pub threads: usize,
    /// It gets requests from clients, and begins them; in a crash loop, it has lived for longer than others.
    pub serves: bool,
    /// It gets them, and does not begin them.
    pub is_stuck: bool,
    /// Requests that it has begun.
    pub in_flight: usize,
    /// Requests that it was given and has not begun.
    pub placed: usize,
    /// Requests that it has answered.
    pub served: u64,
    /// What requests did with their time, by what it says.
    pub times: RequestTimes,
}
