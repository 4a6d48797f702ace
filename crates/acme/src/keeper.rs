//! The thread that sees to it that there is a certificate for each name, and that it is renewed in time.
//!
//! It knows nothing of clients: if it or the authority fails, they are served with the last certificate.

use std::io;
use std::rc::Rc;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use highball_config::AcmeSettings;
use tokio::sync::{mpsc, oneshot, Semaphore};
use tokio::task::{spawn_local, LocalSet};
use tokio::time::sleep;
use tracing::{debug, error, info, warn};
use zeroize::Zeroizing;

use crate::backoff::Backoff;
use crate::folder::{on_demand_in, Folder};
use crate::order::Authority;
use crate::owner::Owner;
use crate::problem::Problem;
use crate::renewal::{self, Suggestion};
use crate::schedule::Allowance;
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
const HOUR: Duration = Duration::from_secs(3600);
/// As many attempts are under way at a time, for names of the configuration, and as many for others.
const AT_ONCE: usize = 4;
/// Names beside those of the configuration.
const MOST_ON_DEMAND: usize = 1000;
/// As many demands wait.
const MOST_DEMANDS: usize = 64;
/// Attempts for such names within an hour. Let's Encrypt takes 300 orders of an account in three hours.
const ATTEMPTS_AN_HOUR: u32 = 100;

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

/// A certificate for a name that the configuration does not have. What is at the other end of `done` learns that it is there, or that
/// there will be none for now.
#[derive(Debug)]
struct Demand {
    host: String,
    done: oneshot::Sender<()>,
}

/// What is known of all names, and the way to have certificates obtained for others.
#[derive(Debug, Clone)]
pub struct Keeper {
    reports: Arc<Mutex<Vec<NameReport>>>,
    demands: mpsc::Sender<Demand>,
}

/// How a name that was asked for was added.
enum Added {
    Beside,
    /// There is no room for more, and this one, without a certificate, is forgotten.
    InPlaceOf(String),
    /// There is no room for more, and all have certificates.
    NotAtAll,
}

impl NameReport {
    fn of(host: &str) -> Self {
        NameReport { host: host.to_owned(), expires: None, next: None, failures: 0, problem: None }
    }
}

impl Keeper {
    fn new(settings: &AcmeSettings, demands: mpsc::Sender<Demand>) -> Self {
        let reports = settings.domains.iter().map(|host| NameReport::of(host)).collect();
        Keeper { reports: Arc::new(Mutex::new(reports)), demands }
    }

    /// How things are.
    pub fn report(&self) -> Vec<NameReport> {
        self.reports().clone()
    }

    /// Has a certificate obtained for a name that the configuration does not have, or renewed if it is time. The answer comes when
    /// that is done, or an attempt has failed; or at once, where too many are ordered.
    pub fn obtain(&self, host: String) -> oneshot::Receiver<()> {
        let (done, answer) = oneshot::channel();
        // Without room, `done` is dropped, which is the answer.
        let _ = self.demands.try_send(Demand { host, done });
        answer
    }

    fn reports(&self) -> MutexGuard<'_, Vec<NameReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut NameReport)) {
        if let Some(report) = self.reports().iter_mut().find(|report| report.host == host) {
            change(report);
        }
    }

    /// The same, for all names.
    fn change_all(&self, change: impl Fn(&mut NameReport)) {
        self.reports().iter_mut().for_each(change);
    }

    /// From now on, this name counts as asked for.
    fn add(&self, host: &str, of_configuration: &[String]) -> Added {
        let mut reports = self.reports();
        if reports.iter().any(|report| report.host == host) {
            return Added::Beside;
        }
        let mut added = Added::Beside;
        if reports.len() >= of_configuration.len() + MOST_ON_DEMAND {
            let is_useless =
                |report: &NameReport| report.expires.is_none() && !of_configuration.contains(&report.host);
            let Some(place) = reports.iter().position(is_useless) else { return Added::NotAtAll };
            added = Added::InPlaceOf(reports.remove(place).host);
        }
        reports.push(NameReport::of(host));
        added
    }
}

/// Certificates are kept until this is dropped.
#[derive(Debug)]
pub struct Keeping {
    /// What is known.
    pub keeper: Keeper,
    /// Dropping it ends the thread.
    end: Option<oneshot::Sender<()>>,
    /// Its other end is dropped when the thread has ended.
    ended: Receiver<()>,
}

impl Drop for Keeping {
    /// Waits until the thread has killed the programs that it has started: they would outlive this process.
    fn drop(&mut self) {
        self.end = None;
        let _ = self.ended.recv_timeout(END_WITHIN);
    }
}

/// Begins to keep certificates for the names of these settings. The predecessor of this process may keep them for `quiet`
/// longer without a word about it.
///
/// # Errors
/// There is no thread for it.
pub fn keep(settings: AcmeSettings, owner: Arc<dyn Owner>, quiet: Duration) -> io::Result<Keeping> {
    let (demands_in, demands) = mpsc::channel(MOST_DEMANDS);
    let keeper = Keeper::new(&settings, demands_in);
    let reports = keeper.clone();
    let (end, end_asked) = oneshot::channel();
    let (has_ended, ended) = sync_channel(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = end_asked => {}
                () = keep_all(settings, owner, reports, demands, quiet) => {}
            }
        });
        drop::<SyncSender<()>>(has_ended);
    };
    thread::Builder::new().name(NAME.into()).spawn(run)?;
    Ok(Keeping { keeper, end: Some(end), ended })
}

/// Keeps all certificates side by side, so that an attempt for one name that takes long holds up no other.
async fn keep_all(
    settings: AcmeSettings,
    owner: Arc<dyn Owner>,
    keeper: Keeper,
    demands: mpsc::Receiver<Demand>,
    quiet: Duration,
) {
    let (folder, has_waited) = lock(&settings, &keeper, quiet).await;
    if has_waited {
        owner.has_changed(); // the process before may have renewed some
    }
    let domains = settings.domains.clone();
    let authority = Authority::new(settings, folder, owner);
    let names = Rc::new(Names {
        authority,
        keeper,
        turns: Semaphore::new(AT_ONCE),
        turns_on_demand: Semaphore::new(AT_ONCE),
        allowance: Allowance::of(ATTEMPTS_AN_HOUR, HOUR),
    });
    names.recall_on_demand();
    let tasks = LocalSet::new();
    for host in domains {
        tasks.spawn_local(Rc::clone(&names).keep(host));
    }
    tasks.spawn_local(names.take_demands(demands));
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
                "This server takes over when the other ends. Give each server its own `state_dir`".to_owned(),
            ),
            Err(error) => (
                format!("cannot store the certificates in {}: {error}", path.display()),
                "Give this folder to Highball's user alone (mode 0700), or name another one with `state_dir`"
                    .to_owned(),
            ),
        };
        has_waited = true;
        if reported != what {
            warn!(name: "certificates_locked", remedy, "{what}");
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
    /// For names that the configuration does not have: those who ask for them hold up no renewal.
    turns_on_demand: Semaphore,
    /// How many attempts there may be for such names.
    allowance: Allowance,
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

    // --- Names that the configuration does not have ----------------------------------------------------

    /// Finds the certificates that were obtained before this process began. Removes expired ones: no client has asked for
    /// these names for long.
    fn recall_on_demand(&self) {
        let Authority { settings, folder, .. } = &self.authority;
        for host in on_demand_in(settings) {
            let kept = folder.certificate(&host).ok().flatten();
            let validity = kept.and_then(|pem| Validity::of(&pem, &host));
            if validity.is_none_or(|validity| validity.until > SystemTime::now()) {
                self.take_in(&host);
                self.look(&host, true);
            } else if let Err(error) = folder.forget_certificate(&host) {
                warn!(name: "certificate_not_removed", host, %error, "cannot remove an expired certificate");
            }
        }
    }

    async fn take_demands(self: Rc<Self>, mut demands: mpsc::Receiver<Demand>) {
        while let Some(Demand { host, done }) = demands.recv().await {
            let names = Rc::clone(&self);
            spawn_local(async move {
                names.look_after(&host).await;
                let _ = done.send(()); // the client may have left
            });
        }
    }

    /// Obtains the certificate of such a name, or renews it, if it is time. Demands for one name come one after the other.
    async fn look_after(&self, host: &str) {
        if !self.take_in(host) {
            return warn!(
                name: "certificate_not_requested",
                host,
                "no certificate requested: {MOST_ON_DEMAND} names beyond `domain` have one already"
            );
        }
        let _turn = self.turns_on_demand.acquire().await;
        let mut plan = self.look(host, true);
        if plan.ask_at.is_some() {
            self.ask(host, &mut plan).await;
        }
        if plan.due > SystemTime::now() {
            return;
        }
        if !self.allowance.take(Instant::now()) {
            let remedy = "Check which names these are. List names one by one in `domain_on_demand`, or let the path of `domain_ask` \
                          accept only the names of your customers";
            return warn!(
                name: "certificate_not_requested",
                host,
                remedy, "no certificate requested: there were {ATTEMPTS_AN_HOUR} attempts within an hour"
            );
        }
        self.attempt(host).await;
    }

    /// Whether there is room for this name.
    fn take_in(&self, host: &str) -> bool {
        let Authority { settings, folder, .. } = &self.authority;
        match self.keeper.add(host, &settings.domains) {
            Added::Beside => true,
            Added::InPlaceOf(other) => {
                if let Err(error) = folder.forget_attempts(&other) {
                    warn!(
                        name: "certificate_attempts_not_removed", host = other, %error, "cannot remove the record of failed attempts"
                    );
                }
                true
            }
            Added::NotAtAll => false,
        }
    }

    // --- One name --------------------------------------------------------------------------------------

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
                .inspect_err(|why| warn!(
                    name: "certificate_unusable", why, "cannot use the stored certificate: requesting a new one"
                ))
                .is_ok()
        })
    }

    /// What is remembered of failed attempts. What cannot be read does not count.
    fn backoff(&self, host: &str) -> Backoff {
        let read = self.authority.folder.attempts(host).unwrap_or_else(|error| {
            warn!(
                name: "certificate_attempts_unreadable", host, %error, "cannot read the record of failed attempts: ignoring it"
            );
            None
        });
        let Some(bytes) = read else { return Backoff::default() };
        Backoff::read(&bytes).unwrap_or_else(|| {
            warn!(
                name: "certificate_attempts_damaged", host, "the record of failed attempts is damaged: ignoring it"
            );
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
        info!(
            name: "certificate_renewal_suggested", host, in_s, "the authority suggests when to renew the certificate"
        );
    }

    /// Obtains a certificate.
    async fn attempt(&self, host: &str) -> Plan {
        let Authority { settings, folder, .. } = &self.authority;
        info!(
            name: "certificate_requested", host, authority = settings.directory, "requesting a certificate"
        );
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
            warn!(
                name: "certificate_attempts_not_removed", host, %error, "cannot remove the record of failed attempts"
            );
        }
        self.keeper.change(host, |report| (report.failures, report.problem) = (0, None));
        info!(name: "certificate_obtained", host, "certificate obtained");
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
            format!("cannot store the certificate in {}: {error}", self.authority.folder.path().display()),
            "Make room on that disk, or let Highball's user write there",
        )
    }

    async fn fail(&self, host: &str, problem: Problem, mut backoff: Backoff) -> Plan {
        let wait = backoff.fail(&problem, SystemTime::now(), fastrand::f64());
        let (remedy, next_in_s) = (&problem.remedy, wait.as_secs());
        error!(
            name: "certificate_not_obtained", host, %problem, remedy, next_in_s, "no certificate obtained"
        );
        let next = SystemTime::now() + wait;
        self.keeper.change(host, |report| {
            report.next = Some(next);
            report.failures = report.failures.saturating_add(1).max(backoff.failures);
            report.problem = Some((problem.what, problem.remedy));
        });
        if let Err(problem) = self.remember(host, &backoff).await {
            warn!(
                name: "certificate_attempts_not_recorded",
                host, %problem, "cannot record failed attempts: the next start asks the authority at once"
            );
        }
        Plan::new(next, None)
    }

    /// Keeps what was issued, if it is what was asked for, and has it served. What would have to be obtained again at once is a
    /// problem: the authority is not asked for one after the other.
    async fn take(&self, host: &str, pem: &[u8]) -> Result<(), Problem> {
        let Authority { folder, owner, .. } = &self.authority;
        let Some(validity) = Validity::of(pem, host) else {
            let what = format!("the authority has issued a certificate that is not for {host}");
            return Err(Problem::new(what, "See the documentation of the authority"));
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
                "the new certificate is already due for renewal",
                "Check this machine's clock",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_certificate_makes_room_for_another() {
        let domains = vec!["site.test".to_owned()];
        let keeper = Keeper {
            reports: Arc::new(Mutex::new(vec![NameReport::of("site.test")])),
            demands: mpsc::channel(1).0,
        };
        let expires = Some(SystemTime::now());
        for number in 0..MOST_ON_DEMAND {
            let host = format!("name{number}.test");
            assert!(matches!(keeper.add(&host, &domains), Added::Beside));
            keeper.change(&host, |report| report.expires = expires.filter(|_| number != 7));
        }
        assert!(matches!(keeper.add("name3.test", &domains), Added::Beside), "it is there already");
        assert!(matches!(keeper.add("new.test", &domains), Added::InPlaceOf(other) if other == "name7.test"));
        keeper.change("new.test", |report| report.expires = expires);
        assert!(
            matches!(keeper.add("one-more.test", &domains), Added::NotAtAll),
            "the certificate of `domain` stays"
        );
        assert_eq!(keeper.report().len(), MOST_ON_DEMAND + 1);
    }
}
