//! Commands for the front.
#![allow(missing_docs)] // where a name says all

use crate::boot::Booted;
use crate::diagnosis::Diagnosis;
use crate::report::FrontReport;
use crate::running::RunningRequests;
use highball_config::{App, AppId};
use highball_ring::FrontRing;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A command for the front.
#[derive(Debug)]
pub enum FrontCommand {
    /// Accept connections.
    Open,
    /// A new process was started that may take over. Over this socket, it gets what the hubs keep and the clients whose WebSockets
    /// are held, if it asks for them.
    NewProcess(OwnedFd),
    /// Another server accepts connections by now: accept no more, finish what is there, and send
    /// [`FrontEvent::Drained`](crate::FrontEvent::Drained). Idle connections may wait for one more answer, as long as the
    /// time for draining. `kept`: the addresses on which the other server accepts. What is in the backlogs of the rest is
    /// accepted first.
    HandOver { kept: Vec<String> },
    /// End: what is not answered by now is not answered.
    End,
    /// The server stops soon: serve as before, but let each answer be the last of its connection.
    AnnounceStop,
    /// Stop accepting, finish what is there, and send [`FrontEvent::Drained`](crate::FrontEvent::Drained).
    Drain,
    /// Go on in new access logs: the files may have been moved away.
    ReopenLogs,
    /// Report the state.
    Report(oneshot::Sender<FrontReport>),
    /// List the requests that wait or are with a worker, by application: of each at `most` the oldest.
    ListRequests { most: usize, to: oneshot::Sender<Vec<RunningRequests>> },
    /// Serve one application more.
    AddApp(Arc<App>),
    /// An application is reached elsewhere, has other limits, or another access log.
    ChangeApp(Arc<App>),
    /// Route no more requests to an application, finish its last ones, send
    /// [`FrontAppEvent::Drained`](crate::FrontAppEvent::Drained), and forget it.
    RemoveApp(AppId),
    /// A command about one application.
    ToApp(AppId, AppCommand),
}

/// A command about one application. `R`: the front's end of a worker's ring. The supervisor's core decides without one.
#[derive(Debug, Clone)]
pub enum AppCommand<R = FrontRing> {
    /// The application has booted: it reports its static files, header fields and assets.
    Booted(Arc<Booted>),
    /// There is no application: serve the files of this absolute folder.
    OpenSite { root: PathBuf },
    /// The application did not boot, and nothing serves: answer with this failure.
    Failed(Arc<Diagnosis>),
    /// The server stops before the application serves: refuse its requests.
    Abandon,
    /// A worker waits for requests.
    AddWorker(NewWorker<R>),
    /// A worker waits for requests. Send it the front's own requests, no client's, and then the event `CanaryAnswered`.
    AddCanary(NewWorker<R>),
    /// A canary may get requests of clients: few at first if it is of a new version, until the event `SlowStartEnded`.
    AdmitCanary { worker: u32 },
    /// The newest generation is taken back, and with it its rollout: the one before it may answer connections and visitors that this
    /// one has answered.
    WithdrawGeneration { generation: u32 },
    /// A rollout is under way: which visitors the newest generation is for. Sent before its first worker is admitted, and again
    /// whenever that changes.
    Rollout(Rollout),
    /// The rollout has ended with the new version: any worker is for any visitor.
    EndRollout,
    /// A crash loop begins or ends (`is_on`): workers die soon after they were started.
    CrashLoop { is_on: bool },
    /// What was seen of a worker: whether it answers questions, and whether a signal has stopped its process. Repeated while
    /// something is wrong; sent a last time when all is well again.
    SignOfLife { worker: u32, answers: bool, is_stopped: bool },
    /// Give a worker no more requests, and send the event `WorkerIdle` when it has finished: its requests are answered, and
    /// the connections that it has taken over have ended or reached their time limit.
    RetireWorker { worker: u32 },
    /// The same, unless something lasts that would end with this worker: a connection that the application has taken over, a
    /// request for a WebSocket, or a stream. Then it serves on, and the event is `WorkerKept`.
    RelieveWorker { worker: u32 },
    /// Count the requests of each worker from now on, and send the event `WorkerWarm` once, for the first worker that has
    /// answered this number; 0: choose the worker that has answered the most, at once. Replaces an earlier such command.
    NameWarmWorker { requests: u64 },
    /// A worker is dead, or serves no more: fail or repeat its requests. `killed`: on purpose; requests that a retiring worker
    /// has begun are not repeated.
    RemoveWorker { worker: u32, killed: bool },
}

/// Which visitors the new version is for, beside the served one.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The new version.
    pub generation: u32,
    /// Its share of the visitors, in thousandths: each visitor has a number below 1000, and visitors with smaller numbers than this
    /// get the new version.
    pub thousandths: u16,
    /// Whether all other visitors get the old version. Otherwise they get any: the new version takes the place of the old one.
    pub is_held: bool,
    /// What the new version reported once it was booted, with its static files.
    pub app: Arc<Booted>,
}

/// A worker that waits for requests.
#[derive(Debug, Clone)]
pub struct NewWorker<R = FrontRing> {
    /// The worker's number, unique among all workers that the application has had.
    pub worker: u32,
    /// The version of the application that it runs, from 1; later versions have larger numbers. No connection goes back to
    /// an earlier version, unless the later one is withdrawn.
    pub generation: u32,
    /// The way to it.
    pub ring: R,
}

impl<R> AppCommand<R> {
    /// The same command, with the ring that `ring` has for the worker of this number; `None`: it has none.
    pub fn with_ring<S>(self, ring: impl FnOnce(u32) -> Option<S>) -> Option<AppCommand<S>> {
        let with_ring = |NewWorker { worker, generation, .. }: NewWorker<R>| {
            Some(NewWorker { worker, generation, ring: ring(worker)? })
        };
        Some(match self {
            AppCommand::AddWorker(new) => AppCommand::AddWorker(with_ring(new)?),
            AppCommand::AddCanary(new) => AppCommand::AddCanary(with_ring(new)?),
            AppCommand::Booted(app) => AppCommand::Booted(app),
            AppCommand::OpenSite { root } => AppCommand::OpenSite { root },
            AppCommand::Failed(diagnosis) => AppCommand::Failed(diagnosis),
            AppCommand::Abandon => AppCommand::Abandon,
            AppCommand::AdmitCanary { worker } => AppCommand::AdmitCanary { worker },
            AppCommand::WithdrawGeneration { generation } => AppCommand::WithdrawGeneration { generation },
            AppCommand::Rollout(rollout) => AppCommand::Rollout(rollout),
            AppCommand::EndRollout => AppCommand::EndRollout,
            AppCommand::CrashLoop { is_on } => AppCommand::CrashLoop { is_on },
            AppCommand::SignOfLife { worker, answers, is_stopped } => {
                AppCommand::SignOfLife { worker, answers, is_stopped }
            }
            AppCommand::RetireWorker { worker } => AppCommand::RetireWorker { worker },
            AppCommand::RelieveWorker { worker } => AppCommand::RelieveWorker { worker },
            AppCommand::NameWarmWorker { requests } => AppCommand::NameWarmWorker { requests },
            AppCommand::RemoveWorker { worker, killed } => AppCommand::RemoveWorker { worker, killed },
        })
    }
}
