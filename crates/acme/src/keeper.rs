//! The thread that sees to it that there is a certificate for each name, and that it is renewed in time.
//!
//! It knows nothing of clients: whatever becomes of it or the authority, they are served with the last certificate.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use highball_config::AcmeSettings;
use tokio::sync::{oneshot, Semaphore};
use tokio::task::LocalSet;
use tokio::time::sleep;
use tracing::{debug, error, info, warn};
use zeroize::Zeroizing;

use crate::backoff::Backoff;
use crate::folder::Folder;
use crate::order::Authority;
use crate::problem::Problem;
use crate::proof::Proof;
use crate::renewal::{self, Suggestion};
use crate::validity::Validity;

const NAME: &str = "acme";
/// How often it is tried to lock the folder: a server that is replaced has it until it ends.
const LOCK_EVERY: Duration = Duration::from_millis(500);
/// The longest time between two looks at the clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// How often an authority is asked for a time that has suggested none.
const ASK_EVERY: Duration = Duration::from_secs(21_600);
/// How long the end of the thread is waited for.
const END_WITHIN: Duration = Duration::from_secs(1);
/// As many attempts are under way at a time.
const AT_ONCE: usize = 4;

/// Who serves clients and the authority.
pub trait Owner: Send + Sync {
    /// From now on the authority is shown this,
    fn show(&self, proof: &Proof);
    /// and no longer.
    fn take_back(&self, proof: &Proof);
    /// Whether clients can get the certificate in this file, with its key; if not, why.
    ///
    /// # Errors
    /// The reason.
    fn can_use(&self, file: &Path) -> Result<(), String>;
    /// There is another certificate in the folder.
    fn has_changed(&self);
    /// A step is passed at which a test may end this process.
    fn passes(&self, step: &'static str) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// How things are with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameReport {
    /// The name.
    pub host: String,
    /// When its certificate expires; `None`: there is none.
    pub expires: Option<SystemTime>,
    /// When it is renewed, or tried again.
    pub next: Option<SystemTime>,
    /// Failures in a row.
    pub failures: u32,
    /// Why the last attempt has failed, if it has, and what to do.
    pub problem: Option<(String, String)>,
}

/// What is known of all names.
#[derive(Debug, Clone)]
pub struct Keeper(Arc<Mutex<Vec<NameReport>>>);

impl Keeper {
    fn new(settings: &AcmeSettings) -> Self {
        let report = |host: &String| NameReport {
            host: host.clone(),
            expires: None,
            next: None,
            failures: 0,
            problem: None,
        };
        Keeper(Arc::new(Mutex::new(settings.domains.iter().map(report).collect())))
    }

    /// How things are.
    pub fn report(&self) -> Vec<NameReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut NameReport)) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = reports.iter_mut().find(|report| report.host == host) {
            change(report);
        }
    }

    /// The same, for all names.
    fn change_all(&self, change: impl Fn(&mut NameReport)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(change);
    }
}

/// Certificates are kept until this is dropped.
#[derive(Debug)]
pub struct Keeping {
    /// What is known.
    pub keeper: Keeper,
    /// The thread ends when this is gone,
    end: Option<oneshot::Sender<()>>,
    /// and then the other end of this.
    ended: Receiver<()>,
}

impl Drop for Keeping {
    /// Waits until the thread has killed the programs that it has started: they would outlive this process.
    fn drop(&mut self) {
        self.end = None;
        let _ = self.ended.recv_timeout(END_WITHIN);
    }
}

/// Begins to keep certificates for the names of these settings. Another process may keep them for `quiet` longer without a word
/// about it: the one that this process succeeds.
///
/// # Errors
/// There is no thread for it.
pub fn keep(settings: AcmeSettings, owner: Arc<dyn Owner>, quiet: Duration) -> io::Result<Keeping> {
    let keeper = Keeper::new(&settings);
    let reports = keeper.clone();
    let (end, end_asked) = oneshot::channel();
    let (has_ended, ended) = sync_channel(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = end_asked => {}
                () = keep_all(settings, owner, reports, quiet) => {}
            }
        });
        drop::<SyncSender<()>>(has_ended);
    };
    thread::Builder::new().name(NAME.into()).spawn(run)?;
    Ok(Keeping { keeper, end: Some(end), ended })
}

/// Keeps all certificates side by side, so that an attempt for one name that takes long holds up no other.
async fn keep_all(settings: AcmeSettings, owner: Arc<dyn Owner>, keeper: Keeper, quiet: Duration) {
    let (folder, has_waited) = lock(&settings, &keeper, quiet).await;
    if has_waited {
        owner.has_changed(); // the process before may have renewed some
    }
    let domains = settings.domains.clone();
    let authority = Authority::new(settings, folder, owner);
    let names = Rc::new(Names { authority, keeper, turns: Semaphore::new(AT_ONCE) });
    let tasks = LocalSet::new();
    for host in domains {
        tasks.spawn_local(Rc::clone(&names).keep(host));
    }
    tasks.await;
}

/// Waits until the folder is this process's. Whether it had to.
async fn lock(settings: &AcmeSettings, keeper: &Keeper, quiet: Duration) -> (Folder, bool) {
    let path = &settings.state_dir;
    let began = Instant::now();
    let mut has_waited = false;
    let mut reported = String::new();
    loop {
        let (what, remedy) = match Folder::lock(path, &settings.directory) {
            Ok(None) if began.elapsed() < quiet => {
                has_waited = true;
                sleep(LOCK_EVERY).await;
                continue;
            }
            Ok(Some(folder)) => {
                keeper.change_all(|report| report.problem = None);
                return (folder, has_waited);
            }
            Ok(None) => (
                format!("another process keeps the certificates in {}", path.display()),
                "This one takes over when that one ends; give each server a folder by `state_dir`".to_owned(),
            ),
            Err(error) => (
                format!("the certificates cannot be kept in {}: {error}", path.display()),
                "Let Highball's user write there, and no other read; or name another folder with `state_dir`"
                    .to_owned(),
            ),
        };
        has_waited = true;
        if reported != what {
            warn!(remedy, "{what}");
            reported.clone_from(&what);
        }
        keeper.change_all(|report| report.problem = Some((what.clone(), remedy.clone())));
        sleep(LOCK_EVERY).await;
    }
}

/// What the tasks of all names share.
struct Names {
    authority: Authority,
    keeper: Keeper,
    /// As many attempts may be under way.
    turns: Semaphore,
}

/// When something is to be done for a name.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// A certificate is obtained.
    due: SystemTime,
    /// The authority is asked when that should be; `None`: there is no certificate, or an attempt has failed.
    ask_at: Option<SystemTime>,
    /// What it has suggested last.
    suggestion: Option<Suggestion>,
}

impl Plan {
    fn new(due: SystemTime, ask_at: Option<SystemTime>) -> Self {
        Plan { due, ask_at, suggestion: None }
    }

    /// How long nothing is to be done.
    fn rest(&self) -> Duration {
        let next = self.ask_at.map_or(self.due, |ask_at| ask_at.min(self.due));
        next.duration_since(SystemTime::now()).unwrap_or_default().min(LOOK_EVERY)
    }
}

impl Names {
    /// Sees to the certificate of one name, for ever.
    async fn keep(self: Rc<Self>, host: String) {
        let mut plan = self.look(&host, true);
        loop {
            if plan.due <= SystemTime::now() {
                let _turn = self.turns.acquire().await;
                plan = self.attempt(&host).await;
            } else if plan.ask_at.is_some_and(|at| at <= SystemTime::now()) {
                let _turn = self.turns.acquire().await;
                self.ask(&host, &mut plan).await;
            }
            sleep(plan.rest()).await;
        }
    }

    /// What is to be done for this host, by what is kept: now, if it has no certificate.
    fn look(&self, host: &str, reports_failures: bool) -> Plan {
        let now = SystemTime::now();
        let validity = self.usable(host).and_then(|pem| Validity::of(&pem, host));
        let backoff = self.backoff(host);
        let renewal = validity.map_or(now, |validity| validity.renewal_at(fastrand::f64()));
        let due = renewal.max(backoff.next(now));
        self.keeper.change(host, |report| {
            report.expires = validity.map(|validity| validity.until);
            report.next = Some(due);
            if reports_failures && (renewal <= now || backoff.failures > 0) {
                report.failures = backoff.failures;
                report.problem = backoff.problem.clone().zip(backoff.remedy.clone());
            }
        });
        Plan::new(due, validity.filter(|_| renewal > now).map(|_| now))
    }

    /// The certificate that is kept, if clients can get it.
    fn usable(&self, host: &str) -> Option<Zeroizing<Vec<u8>>> {
        let Authority { folder, owner, .. } = &self.authority;
        let kept = folder.certificate(host).ok().flatten();
        kept.filter(|_| {
            let checked = owner.can_use(&folder.file_of(host));
            checked
                .inspect_err(|why| warn!(why, "a kept certificate cannot be used, and another is obtained"))
                .is_ok()
        })
    }

    /// What is remembered of failed attempts. What cannot be read does not count.
    fn backoff(&self, host: &str) -> Backoff {
        let read = self.authority.folder.attempts(host).unwrap_or_else(|error| {
            warn!(host, %error, "what is kept of failed attempts cannot be read, and does not count");
            None
        });
        let Some(bytes) = read else { return Backoff::default() };
        Backoff::read(&bytes).unwrap_or_else(|| {
            warn!(host, "what is kept of failed attempts is damaged, and does not count");
            Backoff::default()
        })
    }

    /// Asks the authority when the certificate should be renewed. Without an answer, what was planned stays.
    async fn ask(&self, host: &str, plan: &mut Plan) {
        let Some(pem) = self.authority.folder.certificate(host).ok().flatten() else { return };
        let asked = self.authority.suggestion(host, &pem).await;
        let now = SystemTime::now();
        plan.ask_at = Some(now + ASK_EVERY);
        let suggestion = match asked {
            Ok(Some(suggestion)) => suggestion,
            Ok(None) => return,
            Err(problem) => return debug!(host, "the authority does not suggest a time to renew: {problem}"),
        };
        plan.ask_at = Some(now + suggestion.ask_in);
        if plan.suggestion.is_some_and(|before| before.window == suggestion.window) {
            return; // the time in it was chosen already
        }
        plan.suggestion = Some(suggestion);
        let latest = Validity::of(&pem, host).map_or(plan.due, Validity::latest_renewal);
        plan.due = suggestion.time(fastrand::f64()).min(latest).max(self.backoff(host).next(now));
        self.keeper.change(host, |report| report.next = Some(plan.due));
        let in_s = plan.due.duration_since(now).unwrap_or_default().as_secs();
        info!(host, in_s, "the authority suggests when to renew the certificate");
    }

    /// Obtains a certificate.
    async fn attempt(&self, host: &str) -> Plan {
        let Authority { settings, folder, .. } = &self.authority;
        info!(host, authority = settings.directory, "a certificate is being obtained");
        let mut backoff = self.backoff(host);
        backoff.begin(SystemTime::now(), fastrand::f64());
        let taken = match self.remember(host, &backoff).await {
            Ok(()) => self.obtain(host).await,
            Err(problem) => Err(problem), // the authority is not asked if nothing can be kept
        };
        if let Err(problem) = taken {
            return self.fail(host, problem, backoff).await;
        }
        if let Err(error) = folder.forget_attempts(host) {
            warn!(host, %error, "what is kept of failed attempts cannot be removed");
        }
        self.keeper.change(host, |report| (report.failures, report.problem) = (0, None));
        info!(host, "a certificate was obtained");
        self.look(host, false)
    }

    async fn obtain(&self, host: &str) -> Result<(), Problem> {
        let before = self.authority.folder.certificate(host).ok().flatten();
        let replaced = before.and_then(|pem| renewal::identifier(&pem));
        let pem = self.authority.obtain(host, replaced).await?;
        self.take(host, pem.as_bytes()).await
    }

    async fn remember(&self, host: &str, backoff: &Backoff) -> Result<(), Problem> {
        let Authority { folder, owner, .. } = &self.authority;
        folder.keep_attempts(host, &backoff.bytes(), &**owner).await.map_err(|error| self.unkept(&error))
    }

    fn unkept(&self, error: &io::Error) -> Problem {
        Problem::new(
            format!("the certificate cannot be kept in {}: {error}", self.authority.folder.path().display()),
            "Make room on that disk, or let Highball's user write there",
        )
    }

    async fn fail(&self, host: &str, problem: Problem, mut backoff: Backoff) -> Plan {
        let wait = backoff.fail(&problem, SystemTime::now(), fastrand::f64());
        let (remedy, next_in_s) = (&problem.remedy, wait.as_secs());
        error!(host, remedy, next_in_s, "no certificate was obtained: {problem}");
        let next = SystemTime::now() + wait;
        self.keeper.change(host, |report| {
            report.next = Some(next);
            report.failures = report.failures.saturating_add(1).max(backoff.failures);
            report.problem = Some((problem.what, problem.remedy));
        });
        if let Err(problem) = self.remember(host, &backoff).await {
            warn!(host, "a new start will ask at once: {problem}");
        }
        Plan::new(next, None)
    }

    /// Keeps what was issued, if it is what was asked for, and has it served. What would have to be obtained again at once is a
    /// problem: the authority is not asked for one after the other.
    async fn take(&self, host: &str, pem: &[u8]) -> Result<(), Problem> {
        let Authority { folder, owner, .. } = &self.authority;
        let Some(validity) = Validity::of(pem, host) else {
            let what = format!("the authority has issued a certificate that is not for {host}");
            return Err(Problem::new(what, "Look at the documentation of the authority"));
        };
        folder.keep_certificate(host, pem, &**owner).await.map_err(|error| self.unkept(&error))?;
        owner.passes("acme.kept").await;
        owner.has_changed();
        owner.can_use(&folder.file_of(host)).map_err(|why| {
            Problem::new(
                format!("what the authority has issued cannot be used: {why}"),
                "Use another authority (`acme_directory`)",
            )
        })?;
        if validity.renewal_at(0.0) <= SystemTime::now() {
            return Err(Problem::new(
                "the certificate that was issued is to be renewed already",
                "Set the clock of this machine: by it, the certificate's life is nearly over",
            ));
        }
        Ok(())
    }
}
