//! A scheme that runs, and how it leaves nothing behind.
//!
//! In reading order: this file, `ports`, `starting`, `readiness` (whether it answers yet), `family` (its processes,
//! also daemons), `stopping`.

mod family;
mod ports;
pub(crate) mod readiness;
mod starting;
mod stopping;

use crate::scheme::template::Values;
use crate::scheme::{Scheme, StopSignal};
use crate::socket::Protocol;
use crate::{interrupt, Failure};
use family::Family;
use readiness::Listener;
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// How much of the log a failure shows.
const LOG_TAIL_BYTES: usize = 4096;
/// The log's file in the deployment's folder.
const LOG: &str = "log";
/// The folder for temporary files of its processes, in the deployment's folder.
const TEMPORARY: &str = "tmp";
/// The folder for their caches.
const CACHE: &str = "cache";

/// What every scheme is given alike.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The application's folder, absolute.
    pub app: PathBuf,
    /// Worker processes.
    pub workers: u32,
    /// Threads in each, where a server has threads.
    pub threads: u32,
    /// Environment variables of the application.
    pub env: BTreeMap<String, String>,
    /// Asked until its status is below 500.
    pub ready_path: String,
    /// How long that may take.
    pub start_time: Duration,
    /// Set when the benchmark is to end: a server that is still starting is given up.
    pub interrupted: Arc<AtomicBool>,
}

impl Setting {
    /// One worker with one thread, asked for `/` for a minute.
    pub fn new(app: impl Into<PathBuf>) -> Setting {
        Setting {
            app: app.into(),
            workers: 1,
            threads: 1,
            env: BTreeMap::new(),
            ready_path: "/".into(),
            start_time: Duration::from_secs(60),
            interrupted: interrupt::flag(),
        }
    }
}

/// A scheme that runs. When it is dropped, it is stopped.
///
/// The thread that starts it has to outlive it: when that ends, the kernel kills the first processes, as it does
/// when this whole process is killed.
#[derive(Debug)]
pub struct Deployment {
    title: String,
    /// Where clients ask, and how.
    port: u16,
    protocol: Protocol,
    backends: Vec<Values>,
    listeners: Vec<Listener>,
    processes: Vec<Running>,
    family: Family,
    cold_start: Duration,
    /// By the clock of files.
    made: SystemTime,
    /// `None`: it was stopped.
    folder: Option<TempDir>,
}

/// A process that was started.
#[derive(Debug)]
struct Running {
    program: String,
    child: Child,
    ended: Option<ExitStatus>,
    stop_signal: StopSignal,
    stop_time: Duration,
}

impl Deployment {
    /// Starts a scheme, and returns when its first answer was there.
    ///
    /// # Errors
    /// A process cannot be started or ends, or no answer below 500 comes in time: the words hold the end of its log.
    pub fn start(scheme: &Scheme, setting: &Setting) -> Result<Deployment, Failure> {
        let in_words = |Failure(what)| Failure(format!("{} did not start: {what}", scheme.title));
        family::adopt_orphans().map_err(in_words)?;
        let mut deployment = Deployment::prepare(scheme, setting).map_err(in_words)?;
        deployment.launch(scheme, setting).map_err(|Failure(what)| {
            let log = deployment.log_tail();
            let log = if log.is_empty() {
                "It wrote no log.".into()
            } else {
                format!("The end of its log:\n{log}")
            };
            in_words(Failure(format!("{what}. {log}")))
        })?;
        Ok(deployment)
    }

    /// Where clients ask.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// What clients speak there.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Living processes that head its tree: the first ones, and what daemonised. All others descend from them.
    pub fn roots(&self) -> Vec<i32> {
        self.family.clone().heads()
    }

    /// From the start of the first process to the first answer.
    pub fn cold_start(&self) -> Duration {
        self.cold_start
    }

    /// The folder for temporary files of its processes.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path().join(TEMPORARY)
    }

    /// The end of what its processes wrote to standard output and error.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.path().join(LOG)).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        String::from_utf8_lossy(tail).trim().to_owned()
    }

    /// Asks it to end, waits as long as the scheme allows, and kills what is left. Afterwards there is no process of
    /// it, its port is closed, and its folder is gone.
    ///
    /// # Errors
    /// Something is left all the same; the words say what.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.end()
    }
}

impl Deployment {
    /// Its folder; without any meaning once it was stopped.
    fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Notices which of the first processes have ended.
    fn wait_for_roots(&mut self) {
        for process in self.processes.iter_mut().filter(|process| process.ended.is_none()) {
            if let Ok(Some(status)) = process.child.try_wait() {
                process.ended = Some(status);
                self.family.remove_root(process.child.id() as i32);
            }
        }
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if let Err(failure) = self.end() {
            eprintln!("{failure}");
        }
    }
}
