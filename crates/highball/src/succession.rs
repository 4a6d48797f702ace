//! Taking over from the process that started this one (a hot restart, seen from the new process). Until then this one
//! is a candidate: it boots, starts its workers, asks the first of them for the probe path, and tells the old process
//! that it is ready. Only when that says so are connections accepted.

use crate::pidfile::Pidfile;
use highball_config::{App, Settings};
use highball_front::{AppCommand, Command};
use highball_supervisor::{checkpoint, Heritage, Order, Predecessor};
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{timeout_at, Instant};
use tracing::{error, info};

/// What may be told without having been heard yet.
const UNHEARD: usize = 1024;
/// Time for what a boot takes beyond the application's own.
const OWN_TIME: Duration = Duration::from_secs(10);

/// What a candidate has to know.
#[derive(Debug)]
pub(crate) enum News {
    /// The first worker waits for requests, and was sent one.
    FirstAsked,
    /// Another worker waits for requests.
    WorkerReady(u32),
    /// A worker has died.
    WorkerGone(u32),
    /// It is a static site, and there is nothing else to wait for.
    SiteOpened,
    /// The first worker has answered its request with this status; or why it has not.
    FirstAnswered(u32, Result<u16, String>),
}

/// Where the news go; nobody is told once connections are accepted, or if they were from the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidate {
    to: Option<mpsc::Sender<News>>,
    /// The worker that is asked for the probe path.
    first: Arc<Mutex<Option<u32>>>,
}

impl Candidate {
    /// A candidate where there is somebody to be succeeded, and where the news of it arrive.
    pub(crate) fn of(predecessor: Option<&Arc<Predecessor>>) -> (Candidate, Option<mpsc::Receiver<News>>) {
        if predecessor.is_none() {
            return (Candidate::default(), None);
        }
        let (to, news) = mpsc::channel(UNHEARD);
        (Candidate { to: Some(to), ..Candidate::default() }, Some(news))
    }

    /// Whether this process does not serve yet.
    pub(crate) fn is_one(&self) -> bool {
        self.to.as_ref().is_some_and(|to| !to.is_closed())
    }

    /// Whether this worker is the first that there is, and has to show that it answers.
    pub(crate) fn begins_with(&self, worker: u32) -> bool {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_one() || first.is_some() {
            return false;
        }
        *first = Some(worker);
        self.tell(News::FirstAsked);
        true
    }

    /// Whether this worker was the first.
    pub(crate) fn is_first(&self, worker: u32) -> bool {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) == Some(worker)
    }

    /// Tells it; the candidate listens as long as it is one.
    pub(crate) fn tell(&self, news: News) {
        if let Some(to) = &self.to {
            let _ = to.try_send(news);
        }
    }
}

/// When the old process should give this one up: the mold and the workers have their time each, and so has the probe.
pub(crate) fn patience(app: &App) -> Duration {
    2 * app.process.boot_timeout + app.process.probe_timeout + OWN_TIME
}

/// All that taking over takes.
pub(crate) struct Succession {
    pub(crate) settings: Arc<Settings>,
    pub(crate) app: Arc<App>,
    /// The addresses.
    pub(crate) binds: Vec<String>,
    /// Those whose sockets were inherited.
    pub(crate) kept: Vec<String>,
    pub(crate) front: mpsc::Sender<Command>,
    pub(crate) supervisor: mpsc::Sender<Order>,
    /// What the next process will be made from.
    pub(crate) heritage: Option<Heritage>,
    /// Becomes true when connections are accepted.
    pub(crate) serving: watch::Sender<bool>,
    /// How the workers come up.
    pub(crate) news: Option<mpsc::Receiver<News>>,
}

impl Succession {
    /// Takes over, where there is somebody to take over from, or has this process end; then waits for ever. The file
    /// with the process id is ours once we serve.
    pub(crate) async fn take_over(
        &mut self,
        predecessor: Option<&Predecessor>,
        pidfile: &mut Option<Pidfile>,
    ) {
        if let (Some(old), Some(mut news)) = (predecessor, self.news.take()) {
            if let Err(why) = self.be_let_in(old, &mut news).await {
                error!(why, "not taking over");
                old.failed(&why);
                let _ = self.supervisor.send(Order::Stop).await; // it may be ending already
                return pending().await;
            }
            *pidfile = self.begin_to_serve(old).await;
        }
        if let Some(heritage) = self.heritage.take() {
            let _ = self.supervisor.send(Order::MayUpgrade(Box::new(heritage))).await;
            // as above
        }
        self.serving.send_replace(true);
        pending().await
    }

    /// Waits until everything is there to serve, and the old process agrees.
    async fn be_let_in(&self, old: &Predecessor, news: &mut mpsc::Receiver<News>) -> Result<(), String> {
        let gone = || "the process that was to be succeeded has gone, or wants it no more".to_string();
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
        let _ = self.front.send(Command::Open).await; // if it has gone, the run is ending
        info!(pid = std::process::id(), old = old.pid(), "serving on {}", self.binds.join(" "));
        let pidfile = self.settings.pidfile.as_deref().map(Pidfile::write).transpose();
        pidfile.unwrap_or_else(|error| {
            error!(%error, "the new process id is not written");
            None
        })
    }

    /// Waits until all workers wait for requests, and the first of them has answered one.
    async fn staffed(&self, news: &mut mpsc::Receiver<News>) -> Result<(), String> {
        let mut ready = BTreeSet::new();
        let mut first_has_answered = false;
        let mut deadline = None;
        while ready.len() < usize::from(self.app.workers.saturating_sub(1)) || !first_has_answered {
            let heard = match deadline {
                Some(at) => timeout_at(at, news.recv()).await.map_err(|_| self.silent())?,
                None => news.recv().await,
            };
            match heard {
                Some(News::FirstAsked) => deadline = Some(Instant::now() + self.app.process.probe_timeout),
                Some(News::WorkerReady(worker)) => drop(ready.insert(worker)),
                Some(News::WorkerGone(worker)) => drop(ready.remove(&worker)),
                Some(News::FirstAnswered(worker, answer)) => {
                    self.judge(answer)?;
                    let _ = self
                        .front
                        .send(Command::ToApp(self.settings.apps[0].id, AppCommand::AdmitCanary { worker }))
                        .await; // if it has gone, so has the run
                    (first_has_answered, deadline) = (true, None);
                }
                Some(News::SiteOpened) => return Ok(()),
                None => return Err("the run has ended".into()),
            }
        }
        Ok(())
    }

    fn silent(&self) -> String {
        let (path, limit) = (&self.app.process.probe_path, self.app.process.probe_timeout);
        format!(
            "probing the new process failed: GET {path} was not answered within {limit:?}.\nFind out what it waits \
             for. If it really needs longer, raise --probe-timeout, or name another path with --probe-path."
        )
    }

    fn judge(&self, answer: Result<u16, String>) -> Result<(), String> {
        let path = &self.app.process.probe_path;
        match answer {
            Ok(status) if status < 500 => {
                info!(status, path, "the new process answers");
                Ok(())
            }
            Ok(status) => Err(format!(
                "probing the new process failed: GET {path} was answered with status {status}.\nLook for the \
                 exception in the log above, or name another path with --probe-path."
            )),
            Err(why) => Err(format!(
                "probing the new process failed: GET {path} was not answered: {why}.\nLook at the log above."
            )),
        }
    }
}
