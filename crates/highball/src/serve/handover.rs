//! Taking over from the process that started this one (a hot restart, seen from the new process). Until then this one
//! is a candidate: it boots, starts its workers, asks the first of them for the probe path, and tells the old process
//! that it is ready. Only when that says so are connections accepted.

use crate::process::pidfile::Pidfile;
use crate::root::at_root;
use crate::serve::CHANNEL_CAPACITY;
use highball_config::{App, AppId, Settings};
use highball_link::{AppCommand, FrontCommand, NewWorker};
use highball_supervisor::{
    checkpoint, longest_boot, time_for_turns, Launcher, Order, Predecessor, Probe, UpgradeContext, PROBATION,
};
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{timeout_at, Instant};
use tracing::{error, info};

/// Time for what a boot takes beyond the application's own.
const OWN_TIME: Duration = Duration::from_secs(10);

/// An event of an application that a candidate waits for.
#[derive(Debug)]
pub(crate) enum News {
    /// The first worker waits for requests, and was sent one.
    FirstAsked,
    /// Another worker waits for requests.
    WorkerReady(u32),
    /// A worker ends in order, as its application falls asleep.
    WorkerRetires(u32),
    /// A worker has died.
    WorkerGone(u32),
    /// It is a static site, of which there is nothing else to wait for.
    SiteOpened,
    /// It was taken out of the configuration.
    Removed,
    /// The first worker has answered its request with this status; or why it has not.
    FirstAnswered(u32, Result<u16, String>),
}

/// Where the news go; none is sent once connections are accepted, or if they were from the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidate {
    to: Option<mpsc::Sender<(AppId, News)>>,
    /// The applications that have to come up; of each the worker that is asked for the probe path.
    awaited: Arc<Mutex<BTreeMap<AppId, Option<u32>>>>,
}

impl Candidate {
    /// A candidate where there is a process to be succeeded, and the receiver of its news. Applications that do not
    /// serve there, or boot when they are asked for, are not waited for.
    pub(crate) fn of(
        predecessor: Option<&Arc<Predecessor>>,
        apps: &[Arc<App>],
    ) -> (Candidate, Option<mpsc::Receiver<(AppId, News)>>) {
        let Some(predecessor) = predecessor else { return (Candidate::default(), None) };
        let awaited = apps.iter().filter(|app| app.prestart && !predecessor.is_without(&app.name));
        let awaited = awaited.map(|app| (app.id, None)).collect();
        let (to, news) = mpsc::channel(CHANNEL_CAPACITY);
        (Candidate { to: Some(to), awaited: Arc::new(Mutex::new(awaited)) }, Some(news))
    }

    /// Whether this process does not serve yet.
    pub(crate) fn is_one(&self) -> bool {
        self.to.as_ref().is_some_and(|to| !to.is_closed())
    }

    /// Takes note of a command for the front; returns the command that the front gets. The first worker of an application has
    /// to show that it answers.
    pub(crate) fn note(&self, app: AppId, command: AppCommand) -> AppCommand {
        match command {
            AppCommand::AddWorker(new) if self.begins_with(app, new.worker) => {
                self.tell(app, News::FirstAsked);
                return AppCommand::AddCanary(new);
            }
            AppCommand::AddWorker(NewWorker { worker, .. }) => self.tell(app, News::WorkerReady(worker)),
            AppCommand::OpenSite { .. } => self.tell(app, News::SiteOpened),
            AppCommand::RetireWorker { worker } => self.tell(app, News::WorkerRetires(worker)),
            AppCommand::RemoveWorker { worker, .. } => self.tell(app, News::WorkerGone(worker)),
            _ => {}
        }
        command
    }

    /// Whether this worker is the first that there is of an awaited application.
    fn begins_with(&self, app: AppId, worker: u32) -> bool {
        if !self.is_one() {
            return false;
        }
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first @ None) = awaited.get_mut(&app) else { return false };
        *first = Some(worker);
        true
    }

    /// Whether this worker was the first.
    pub(crate) fn is_first(&self, app: AppId, worker: u32) -> bool {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.get(&app).is_some_and(|first| *first == Some(worker))
    }

    /// Sends it; the candidate listens as long as it is one.
    pub(crate) fn tell(&self, app: AppId, news: News) {
        if let Some(to) = &self.to {
            let _ = to.try_send((app, news));
        }
    }

    /// The applications that have to come up.
    pub(crate) fn awaited(&self) -> Vec<AppId> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }
}

/// When the old process should give this one up: the mold and the workers have their time each, and so has the probe;
/// and several applications take turns. Before that, this process gives up a boot that hangs.
fn patience(settings: &Settings) -> Duration {
    let patience = |app: &Arc<App>| {
        let limit = app.process.boot_timeout;
        longest_boot(limit) + limit + app.process.probe_timeout
    };
    let longest = settings.apps.iter().map(patience).max().unwrap_or_default();
    longest + time_for_turns(settings.apps.len()) + OWN_TIME
}

/// How far an application has come.
struct Staffing {
    app: Arc<App>,
    /// Its workers that wait for requests, but for the first.
    ready: BTreeSet<u32>,
    first_has_answered: bool,
    /// When the first was ready, and when it has to have answered.
    ready_at: Option<Instant>,
    deadline: Option<Instant>,
    is_site: bool,
}

impl Staffing {
    fn of(app: &Arc<App>) -> Staffing {
        let app = Arc::clone(app);
        Staffing {
            app,
            ready: BTreeSet::new(),
            first_has_answered: false,
            ready_at: None,
            deadline: None,
            is_site: false,
        }
    }

    fn is_done(&self) -> bool {
        let others = usize::from(self.app.workers.saturating_sub(1));
        self.is_site || (self.first_has_answered && self.ready.len() >= others)
    }

    /// Records the news. Returns the worker that may be admitted by now, or why the handover fails.
    fn record(&mut self, news: News) -> Result<Option<u32>, String> {
        match news {
            News::FirstAsked => {
                let now = Instant::now();
                (self.ready_at, self.deadline) = (Some(now), Some(now + self.app.process.probe_timeout));
            }
            News::WorkerReady(worker) => drop(self.ready.insert(worker)),
            News::WorkerRetires(_) => {}
            News::WorkerGone(worker) => drop(self.ready.remove(&worker)),
            News::SiteOpened => self.is_site = true,
            News::Removed => {} // it is not waited for any more
            News::FirstAnswered(worker, answer) => {
                let status = self.probe().judge(answer).map_err(|failure| failure.to_string())?;
                info!(
                    name: "new_process_answers", status, path = self.app.process.probe_path, "the new process answers"
                );
                (self.first_has_answered, self.deadline) = (true, None);
                return Ok(Some(worker));
            }
        }
        Ok(None)
    }

    fn probe(&self) -> Probe<'_> {
        let path = &self.app.process.probe_path;
        Probe { of: "the new process", path, try_again: "Look at the log above." }
    }

    fn unanswered(&self) -> String {
        self.probe().unanswered(self.app.process.probe_timeout).to_string()
    }
}

/// What taking over needs.
pub(crate) struct Handover {
    pub(crate) settings: Arc<Settings>,
    /// The addresses.
    pub(crate) binds: Vec<String>,
    /// The addresses whose sockets were inherited.
    pub(crate) kept: Vec<String>,
    pub(crate) front: mpsc::Sender<FrontCommand>,
    pub(crate) supervisor: mpsc::Sender<Order>,
    /// What the next process will be made from.
    pub(crate) upgrade_context: Option<UpgradeContext>,
    /// Becomes true when connections are accepted.
    pub(crate) serving: watch::Sender<bool>,
    /// How the workers come up.
    pub(crate) news: Option<mpsc::Receiver<(AppId, News)>>,
    /// The applications that have to come up.
    pub(crate) awaited: Vec<AppId>,
    pub(crate) launcher: Launcher,
}

impl Handover {
    /// Takes over, where there is an old process, or has this process end; then waits for ever. The file with the
    /// process id is ours once we serve.
    pub(crate) async fn take_over(
        &mut self,
        predecessor: Option<&Predecessor>,
        pidfile: &mut Option<Pidfile>,
    ) {
        if let (Some(old), Some(mut news)) = (predecessor, self.news.take()) {
            if let Err(why) = self.be_let_in(old, &mut news).await {
                error!(name: "not_taking_over", why, "not taking over");
                old.failed(&why);
                let _ = self.supervisor.send(Order::Stop).await; // it may be ending already
                return pending().await;
            }
            *pidfile = self.begin_to_serve(old).await;
        }
        if let Some(upgrade_context) = self.upgrade_context.take() {
            let _ = self.supervisor.send(Order::MayUpgrade(Box::new(upgrade_context))).await;
            // as above
        }
        self.serving.send_replace(true);
        if let Some(old) = predecessor {
            old.has_no_companions().await;
            let _ = self.supervisor.send(Order::PredecessorWithoutCompanions).await;
            // as above
        }
        pending().await
    }

    /// Waits until everything is there to serve, and the old process agrees.
    async fn be_let_in(
        &self,
        old: &Predecessor,
        news: &mut mpsc::Receiver<(AppId, News)>,
    ) -> Result<(), String> {
        // By then the supervisor listens to signals: from here on the old process passes HUP on.
        tokio::task::yield_now().await;
        old.booting(env!("CARGO_PKG_VERSION"), patience(&self.settings));
        let gone = || "the old process has gone, or has cancelled the hot restart".to_string();
        tokio::select! {
            staffed = self.staffed(news) => staffed?,
            _ = old.yields() => return Err(gone()),
        }
        checkpoint::pass("upgrade.ready").await;
        old.ready(self.kept.clone());
        if old.yields().await {
            Ok(())
        } else {
            Err(gone())
        }
    }

    async fn begin_to_serve(&self, old: &Predecessor) -> Option<Pidfile> {
        checkpoint::pass("upgrade.let_in").await;
        let _ = self.front.send(FrontCommand::Open).await; // if it has gone, the run is ending
        info!(
            name: "serving",
            pid = self.launcher.pid().as_raw_pid(),
            old = old.pid(),
            addresses = self.binds.join(" "),
            "serving"
        );
        let path = self.settings.pidfile.as_deref()?;
        at_root::write_pidfile(path, true, &self.launcher).unwrap_or_else(|error| {
            error!(name: "pidfile_not_written", error, "cannot write the new process id to the pidfile");
            None
        })
    }

    /// Waits until all workers wait for requests, and the first of each application has answered one.
    async fn staffed(&self, news: &mut mpsc::Receiver<(AppId, News)>) -> Result<(), String> {
        let apps = self.settings.apps.iter();
        let mut coming: BTreeMap<AppId, Staffing> = apps
            .filter(|app| self.awaited.contains(&app.id))
            .map(|app| (app.id, Staffing::of(app)))
            .collect();
        let mut proven_at = Instant::now();
        while !coming.values().all(Staffing::is_done) {
            let next = coming.values().filter_map(|app| Some((app.deadline?, app))).min_by_key(|(at, _)| *at);
            let received = match next {
                Some((at, app)) => timeout_at(at, news.recv()).await.map_err(|_| app.unanswered())?,
                None => news.recv().await,
            };
            let Some((id, news)) = received else { return Err("the run has ended".into()) };
            if matches!(news, News::Removed) {
                coming.remove(&id);
            }
            let Some(app) = coming.get_mut(&id) else { continue };
            if let Some(worker) = app.record(news)? {
                proven_at = proven_at.max(app.ready_at.unwrap_or_else(Instant::now) + PROBATION);
                let admitted = FrontCommand::ToApp(id, AppCommand::AdmitCanary { worker });
                let _ = self.front.send(admitted).await; // if it has gone, so has the run
            }
        }
        last_until(proven_at, news).await
    }
}

/// Whether all workers live until then, except orderly retired ones.
async fn last_until(proven_at: Instant, news: &mut mpsc::Receiver<(AppId, News)>) -> Result<(), String> {
    let mut retired = BTreeSet::new();
    while let Ok(received) = timeout_at(proven_at, news.recv()).await {
        match received {
            Some((app, News::WorkerRetires(worker))) => drop(retired.insert((app, worker))),
            Some((app, News::WorkerGone(worker))) if !retired.contains(&(app, worker)) => {
                return Err(format!(
                    "worker {worker} of the new process died soon after it was ready; see the log above"
                ))
            }
            Some(_) => {}
            None => return Err("the run has ended".into()),
        }
    }
    Ok(())
}
