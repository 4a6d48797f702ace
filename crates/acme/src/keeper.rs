//! The thread that sees to it that there is a certificate for each name, and that it is renewed in time.
//!
//! It knows nothing of clients: whatever becomes of it or the authority, they are served with the last certificate.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use highball_config::AcmeSettings;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::folder::Folder;
use crate::order::obtain;
use crate::problem::Problem;
use crate::proof::Proof;
use crate::schedule::wait_after;
use crate::validity::Validity;

const NAME: &str = "acme";
/// How often it is tried to lock the folder: a server that is replaced has it until it ends.
const LOCK_EVERY: Duration = Duration::from_millis(500);
/// The longest time between two looks at the clock, which may be set.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// The longest that one attempt may take.
const PATIENCE: Duration = Duration::from_secs(300);

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
    /// The thread ends when this is gone.
    _end: oneshot::Sender<()>,
}

/// Begins to keep certificates for the names of these settings. Another process may keep them for `quiet` longer without a word
/// about it: the one that this process succeeds.
///
/// # Errors
/// There is no thread for it.
pub fn keep(settings: AcmeSettings, owner: Arc<dyn Owner>, quiet: Duration) -> io::Result<Keeping> {
    let keeper = Keeper::new(&settings);
    let reports = keeper.clone();
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = ended => {}
                () = keep_all(&settings, &*owner, &reports, quiet) => {}
            }
        });
    };
    thread::Builder::new().name(NAME.into()).spawn(run)?;
    Ok(Keeping { keeper, _end: end })
}

async fn keep_all(settings: &AcmeSettings, owner: &dyn Owner, keeper: &Keeper, quiet: Duration) {
    let (folder, has_waited) = lock(settings, keeper, quiet).await;
    if has_waited {
        owner.has_changed(); // the process before may have renewed some
    }
    let mut next: Vec<SystemTime> =
        settings.domains.iter().map(|host| look(&folder, host, owner, keeper)).collect();
    loop {
        for (host, next) in settings.domains.iter().zip(&mut next) {
            if *next <= SystemTime::now() {
                *next = attempt(host, settings, &folder, owner, keeper).await;
            }
        }
        let earliest = next.iter().min().copied().unwrap_or(SystemTime::UNIX_EPOCH);
        sleep(earliest.duration_since(SystemTime::now()).unwrap_or_default().min(LOOK_EVERY)).await;
    }
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

/// When something is to be done for this host: now, if it has no certificate.
fn look(folder: &Folder, host: &str, owner: &dyn Owner, keeper: &Keeper) -> SystemTime {
    let now = SystemTime::now();
    let kept = folder.certificate(host).ok().flatten();
    let usable = kept.filter(|_| {
        let checked = owner.can_use(&folder.file_of(host));
        checked
            .inspect_err(|why| warn!(why, "a kept certificate cannot be used, and another is obtained"))
            .is_ok()
    });
    let validity = usable.as_deref().and_then(|pem| Validity::of(pem, host));
    let next = validity.map_or(now, |validity| validity.renewal_at(fastrand::f64()));
    keeper.change(host, |report| {
        report.expires = validity.map(|validity| validity.until);
        report.next = Some(next);
    });
    next
}

/// Obtains a certificate. Returns when something is to be done again.
async fn attempt(
    host: &str,
    settings: &AcmeSettings,
    folder: &Folder,
    owner: &dyn Owner,
    keeper: &Keeper,
) -> SystemTime {
    info!(host, authority = settings.directory, "a certificate is being obtained");
    let obtained = timeout(PATIENCE, obtain(host, settings, folder, owner)).await;
    let obtained = obtained.unwrap_or_else(|_| {
        Err(Problem::new("the authority does not answer in time", "Look whether this machine reaches it"))
    });
    let kept = match obtained {
        Ok(pem) => take(folder, host, pem.as_bytes(), owner).await,
        Err(problem) => Err(problem),
    };
    match kept {
        Ok(()) => {
            keeper.change(host, |report| (report.failures, report.problem) = (0, None));
            let next = look(folder, host, owner, keeper);
            info!(host, "a certificate was obtained");
            next
        }
        Err(problem) => {
            let mut failures = 0;
            keeper.change(host, |report| {
                report.failures += 1;
                failures = report.failures;
            });
            let wait = wait_after(failures, problem.is_at_limit, fastrand::f64());
            let next = SystemTime::now() + wait;
            error!(
                host,
                remedy = problem.remedy,
                next_in_s = wait.as_secs(),
                "no certificate was obtained: {problem}"
            );
            keeper.change(host, |report| {
                report.next = Some(next);
                report.problem = Some((problem.what, problem.remedy));
            });
            next
        }
    }
}

/// Keeps what was issued, and has it served. What would have to be obtained again at once is a problem: the authority is not asked
/// for one after the other.
async fn take(folder: &Folder, host: &str, pem: &[u8], owner: &dyn Owner) -> Result<(), Problem> {
    let validity = keep_one(folder, host, pem)?;
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

/// Keeps what was issued, if it is what was asked for.
fn keep_one(folder: &Folder, host: &str, pem: &[u8]) -> Result<Validity, Problem> {
    let Some(validity) = Validity::of(pem, host) else {
        let what = format!("the authority has issued a certificate that is not for {host}");
        return Err(Problem::new(what, "Look at the documentation of the authority"));
    };
    folder.keep_certificate(host, pem).map(|()| validity).map_err(|error| {
        Problem::new(
            format!("the certificate cannot be kept in {}: {error}", folder.path().display()),
            "Make room on that disk, or let Highball's user write there",
        )
    })
}
