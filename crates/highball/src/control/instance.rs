//! What a running Highball tells about itself, by a Unix socket that only its user and root may talk to
//! (`places`). One line of JSON asks, one line of JSON answers.

use crate::control::actions::Action;
use crate::control::callers::{Caller, Callers};
use crate::control::places::{connect, in_folder, may_ask, ControlFolder, ControlPlaces, Whose, VARIABLE};
use crate::status::kernel_limits::KernelLimitsStatus;
use crate::status::overview::report::Overview;
use highball_link::{Diagnosis, RubyHeap, Tuning};
use highball_text::json;
use highball_users::{Found, Place};
use rustix::fs::{fchmod, Mode};
use rustix::net::{bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::getpid;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tracing::{info, warn};

/// The longest question, in bytes.
const QUESTION_BYTES: usize = 1024;
/// Connections that the kernel holds for us; it cuts this down to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// Connections at a time.
const CONNECTIONS: usize = 64;
/// Time for finding an answer where that asks no Ruby process.
const EXCHANGE_TIME: Duration = Duration::from_secs(2);
/// Time that Ruby processes have to tell their heaps.
const HEAP_TIME: Duration = Duration::from_secs(1);
/// The same where they run a full garbage collection first.
const COLLECTED_HEAP_TIME: Duration = Duration::from_secs(10);

/// What can be asked of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Question {
    /// How are things?
    Status,
    /// Replace the version that is served by a new one.
    Restart {
        /// The number of the application.
        app: u32,
    },
    /// Re-fork the workers from a warm one.
    Refork {
        /// The number of the application.
        app: u32,
    },
    /// Replace this process by a new one.
    Upgrade,
    /// Drain and stop.
    Stop,
    /// Which processes are there, and how are their Ruby heaps?
    Memory {
        /// Whether workers run a full garbage collection first.
        gc: bool,
    },
    /// What does it do at this moment?
    Overview {
        /// Whether workers are asked what their threads do.
        states: bool,
    },
    /// Do this with an application.
    Act {
        /// The number of the application.
        app: u32,
        /// What to do.
        #[serde(flatten)]
        action: Action,
    },
    /// By which token does the dashboard take orders?
    DashboardToken,
}

impl Question {
    /// Time for finding the answer.
    pub(crate) fn time_limit(self) -> Duration {
        match self {
            Question::Memory { gc } => EXCHANGE_TIME + heap_time(gc),
            Question::Overview { .. } => 2 * EXCHANGE_TIME,
            _ => EXCHANGE_TIME,
        }
    }
}

/// Time that Ruby processes have to tell their heaps; with `gc`, after a full garbage collection.
pub(crate) fn heap_time(gc: bool) -> Duration {
    if gc {
        COLLECTED_HEAP_TIME
    } else {
        HEAP_TIME
    }
}

/// What an instance answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// How things are.
    Status(Box<Status>),
    /// It restarts, or will when it is done with the restart before; `Status` shows its progress.
    Restarting {
        /// Its process id.
        pid: i32,
        /// The generation that the restart brings.
        generation: u32,
    },
    /// It reforks; `Status` shows its progress.
    Reforking {
        /// Its process id.
        pid: i32,
        /// The refork's number, from 1.
        number: u32,
    },
    /// It starts a new process in its place; `Status` shows its progress.
    Upgrading {
        /// Its process id.
        pid: i32,
        /// The number of the hot restart.
        number: u32,
    },
    /// It refuses.
    Refused {
        /// Why not, and what to do.
        why: String,
    },
    /// It has begun to stop, and takes no longer than this.
    Stopping {
        /// Its process id.
        pid: i32,
        /// The time limit for draining.
        drain_seconds: u64,
    },
    /// Its Ruby processes, by application: the mold first, then the workers by number.
    Memory {
        /// All that there are.
        ruby: Vec<RubyProcess>,
    },
    /// What it does.
    Overview(Box<Overview>),
    /// It does what was asked for.
    Begun {
        /// What that is, in words.
        what: String,
    },
    /// The token for the dashboard.
    DashboardToken {
        /// None: the dashboard takes no orders.
        token: Option<String>,
    },
}

/// A mold or worker and its Ruby heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RubyProcess {
    /// The number of the application.
    pub(crate) app: u32,
    /// The worker's number; `None` is the mold.
    pub(crate) worker: Option<u32>,
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    /// Its heap, or why that is not known.
    pub(crate) heap: Result<RubyHeap, String>,
}

/// How an instance is doing; this is also what `highball status --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) pid: i32,
    pub(crate) version: String,
    /// `serving` or `draining`; with a single application, its phase.
    pub(crate) phase: String,
    pub(crate) uptime_seconds: u64,
    /// `http://127.0.0.1:3000` or `unix:/path`.
    pub(crate) binds: Vec<String>,
    pub(crate) ports: Vec<u16>,
    /// Addresses for health checks and metrics.
    #[serde(default)]
    pub(crate) admin: Vec<String>,
    /// Addresses for agent checks.
    #[serde(default)]
    pub(crate) agent_check: Vec<String>,
    /// Open client connections, hijacked ones included.
    pub(crate) connections: usize,
    /// Connections that an application has taken over (WebSockets and the like).
    pub(crate) hijacked: usize,
    /// Bytes in spool files,
    #[serde(default)]
    pub(crate) spool_bytes: u64,
    /// and the most that there may be; 0 from versions that do not report it.
    #[serde(default)]
    pub(crate) max_spool_bytes: u64,
    /// What is wrong with the folder of spool files, if something is.
    #[serde(default)]
    pub(crate) spool_problem: Option<String>,
    /// Bytes of requests and responses in memory,
    #[serde(default)]
    pub(crate) buffer_bytes: u64,
    /// and the most that there may be; 0 from versions that do not report it.
    #[serde(default)]
    pub(crate) max_buffer_bytes: u64,
    /// The memory of all applications, once it was looked at.
    #[serde(default)]
    pub(crate) memory: Option<MachineMemoryStatus>,
    /// Why the access log of the server is not written as it should be, if so.
    #[serde(default)]
    pub(crate) log_problem: Option<String>,
    /// Addresses with HTTPS; none: there are none.
    #[serde(default)]
    pub(crate) tls: Option<TlsStatus>,
    /// The last hot restart, or the one under way.
    pub(crate) upgrade: Option<UpgradeStatus>,
    /// The process that this one has succeeded by a hot restart.
    pub(crate) predecessor: Option<i32>,
    /// The process that has succeeded this one, which only finishes what it has.
    pub(crate) successor: Option<i32>,
    /// The applications, in the order in which they were configured.
    pub(crate) apps: Vec<AppStatus>,
}

/// How clients with TLS are served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TlsStatus {
    /// What clients get; the first is for those that name no host, or an unknown one.
    pub(crate) certificates: Vec<CertificateStatus>,
    /// Why newer files are not used, if so.
    pub(crate) problem: Option<String>,
    /// Handshakes since the start,
    pub(crate) handshakes: u64,
    /// and those that failed,
    pub(crate) failed_handshakes: u64,
    /// took too long,
    pub(crate) slow_handshakes: u64,
    /// or were turned away, as too many were under way.
    pub(crate) refused_handshakes: u64,
    /// Names whose certificates are obtained from an authority.
    #[serde(default)]
    pub(crate) domains: Vec<DomainStatus>,
}

/// A name whose certificate is obtained from an authority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DomainStatus {
    pub(crate) name: String,
    /// When its certificate expires: seconds since 1970; `None`: there is none.
    pub(crate) expires_at: Option<u64>,
    /// When it is renewed, or tried again.
    pub(crate) next_at: Option<u64>,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Why the last attempt has failed, if so,
    pub(crate) problem: Option<String>,
    /// and what to do.
    pub(crate) remedy: Option<String>,
}

/// A certificate in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CertificateStatus {
    pub(crate) file: String,
    pub(crate) hosts: Vec<String>,
    /// Seconds since 1970.
    pub(crate) expires_at: u64,
}

/// The response cache of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CacheStatus {
    /// Requests that it has answered.
    pub(crate) hits: u64,
    /// Requests that went to the application.
    pub(crate) misses: u64,
    /// Stored responses.
    pub(crate) responses: usize,
    pub(crate) bytes: u64,
    pub(crate) max_bytes: u64,
}

/// How an application is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppStatus {
    /// The application's number, which no other application of this process has had.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// `booting`, `failed` (until it is fixed), `serving`, `asleep`, `stuck` (its workers take no requests), `crashing` (they die
    /// soon after they were started), `draining` or `ending`.
    pub(crate) phase: String,
    /// The host names that it is reached by; none: every one.
    pub(crate) hosts: Vec<String>,
    /// The path that it is reached below; `` is none.
    pub(crate) prefix: String,
    /// Where to look at it.
    pub(crate) url: String,
    /// The link that lets a developer's browser see what went wrong, in development.
    #[serde(default)]
    pub(crate) browser_link: Option<String>,
    /// The folder of the version that is served.
    #[serde(with = "highball_text::shown")]
    pub(crate) app: PathBuf,
    /// The folder as it was given, with its symbolic links.
    #[serde(with = "highball_text::shown")]
    pub(crate) link: PathBuf,
    pub(crate) environment: String,
    /// The user that it runs as; empty from versions that do not report it.
    #[serde(default)]
    pub(crate) user: String,
    /// `Rails 6.1.7`, once the application was booted.
    pub(crate) framework: Option<String>,
    pub(crate) ruby: Option<String>,
    /// Ruby's compiler, once the application was booted.
    #[serde(default)]
    pub(crate) jit: Option<Box<Tuning>>,
    /// How Ruby collects garbage.
    #[serde(default)]
    pub(crate) gc: Option<Box<Tuning>>,
    /// What serves its malloc.
    #[serde(default)]
    pub(crate) allocator: Option<Box<Tuning>>,
    /// What its boot cache had.
    #[serde(default)]
    pub(crate) boot_cache: Option<Box<Tuning>>,
    /// The version of the application that is served: 1 from the start, larger after each restart.
    pub(crate) generation: u32,
    /// False where the application was given as an object; unknown before the first boot.
    pub(crate) restartable: Option<bool>,
    pub(crate) mold: Option<MoldStatus>,
    /// Whether there is none because nothing is to be forked.
    #[serde(default)]
    pub(crate) mold_rests: bool,
    /// How many workers there should be.
    pub(crate) workers_wanted: u16,
    /// How that follows the load, if it does.
    #[serde(default)]
    pub(crate) sizing: Option<SizingStatus>,
    pub(crate) workers: Vec<WorkerStatus>,
    /// What requests of these workers did with their time.
    #[serde(default)]
    pub(crate) request_times: RequestTimesStatus,
    /// Requests that wait for a worker.
    pub(crate) queue: usize,
    /// Bytes in its spool files.
    #[serde(default)]
    pub(crate) spool_bytes: u64,
    /// Its response cache, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheStatus>,
    /// The last restarts, the one under way, and the one that waits for it, in this order.
    pub(crate) restarts: Vec<RestartStatus>,
    /// The refork that is under way, or the last one.
    pub(crate) refork: Option<ReforkStatus>,
    /// Why the schedule of reforks is not followed, for as long as this version is served.
    pub(crate) no_refork: Option<String>,
    /// Why the application's own access log is not written as it should be, if so.
    #[serde(default)]
    pub(crate) log_problem: Option<String>,
    /// Its memory.
    #[serde(default)]
    pub(crate) memory: AppMemoryStatus,
    /// The limits that the kernel keeps, if it has any.
    #[serde(default)]
    pub(crate) kernel_limits: Option<KernelLimitsStatus>,
    /// Its crash loop, if there is one.
    #[serde(default)]
    pub(crate) crash_loop: Option<CrashLoopStatus>,
    /// The last requests that exceeded their time limits in a worker, oldest first.
    #[serde(default)]
    pub(crate) overruns: Vec<OverrunStatus>,
    /// What failed last, if anything did.
    pub(crate) last_failure: Option<String>,
    /// The last boot that failed, if one did since the start.
    pub(crate) diagnosis: Option<Diagnosis>,
}

/// Workers that die soon after they were started, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CrashLoopStatus {
    /// Workers that died,
    pub(crate) deaths: u32,
    /// from the first death to the last.
    pub(crate) seconds: u64,
    /// `32 workers died in 25 s; the last one, worker 32, exited with code 1`
    pub(crate) what: String,
    /// What to do.
    pub(crate) remedy: String,
}

/// How the number of workers follows the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SizingStatus {
    /// Its range.
    pub(crate) min: u16,
    /// As above.
    pub(crate) max: u16,
    /// The processors that it may use, such as `cpu.max 1.5`.
    pub(crate) cpus: String,
    /// The memory of the machine or container, once it was looked at.
    pub(crate) memory_bytes: Option<u64>,
    /// The last change and its reason,
    pub(crate) decided: Option<String>,
    /// and when that was.
    pub(crate) decided_seconds_ago: Option<u64>,
    /// What keeps it from growing although the load would need it.
    pub(crate) hindered: Option<String>,
}

/// What requests do with the time in which a thread is at them. The time of a few requests a second is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestTimesStatus {
    /// The requests whose time was taken.
    pub(crate) requests: u64,
    /// Their threads computed.
    pub(crate) computed_ms: u64,
    /// Other threads of the same worker computed.
    pub(crate) beside_ms: u64,
    /// They waited for something else.
    pub(crate) waited_ms: u64,
}

impl RequestTimesStatus {
    /// Of both.
    pub(crate) fn plus(self, more: RequestTimesStatus) -> RequestTimesStatus {
        RequestTimesStatus {
            requests: self.requests.saturating_add(more.requests),
            computed_ms: self.computed_ms.saturating_add(more.computed_ms),
            beside_ms: self.beside_ms.saturating_add(more.beside_ms),
            waited_ms: self.waited_ms.saturating_add(more.waited_ms),
        }
    }
}

/// The memory of an application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppMemoryStatus {
    /// What its processes have together.
    pub(crate) bytes: u64,
    /// What each worker may have.
    pub(crate) worker_limit_bytes: Option<u64>,
    /// What all may have together, if it is not a part of what all applications share.
    pub(crate) budget_bytes: Option<u64>,
    /// Why workers are not replaced although a limit is exceeded, and what to do.
    pub(crate) problem: Option<String>,
    /// Workers that were replaced for their memory.
    pub(crate) replaced: u64,
    /// Workers that the kernel has killed for lack of memory.
    pub(crate) oom_kills: u64,
}

/// The memory that all applications share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineMemoryStatus {
    /// What they may have together with the server, of the memory of the machine or container.
    pub(crate) usable_bytes: u64,
    /// What they have.
    pub(crate) used_bytes: u64,
}

/// A request that exceeded its time limit in a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverrunStatus {
    pub(crate) worker: u32,
    /// Method and path.
    pub(crate) request: String,
    /// What the worker did at it.
    pub(crate) doing: String,
    /// The calls that led there, innermost first, one a line.
    pub(crate) backtrace: Option<String>,
    pub(crate) seconds_ago: u64,
}

/// The mold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MoldStatus {
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    /// The number that it had as a worker, if it was promoted.
    pub(crate) promoted_from: Option<u32>,
}

/// A refork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReforkStatus {
    /// The refork's number, from 1.
    pub(crate) number: u32,
    /// `highball refork`, `URG`, or a number of requests.
    pub(crate) asked_by: String,
    /// The worker that is or was promoted, once one is chosen.
    pub(crate) worker: Option<u32>,
    /// `choosing`, `asking`, `relieving`, `retiring`, `promoting`, `rolling`, `done`, `refused` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// Why it came to nothing.
    pub(crate) failure: Option<String>,
    /// The promoted mold, while it is under way.
    pub(crate) mold: Option<MoldStatus>,
}

/// A restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RestartStatus {
    /// The version that it brings.
    pub(crate) generation: u32,
    /// `highball restart`, `USR1` or `tmp/restart.txt`.
    pub(crate) asked_by: String,
    /// `queued`, `booting`, `probing`, `rolling`, `undoing`, `done` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// Why it failed, and what to do.
    pub(crate) failure: Option<String>,
    /// The new mold, while it is under way.
    pub(crate) mold: Option<MoldStatus>,
}

/// A hot restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UpgradeStatus {
    /// The hot restart's number in this process, from 1.
    pub(crate) number: u32,
    /// `highball upgrade` or `USR2`.
    pub(crate) asked_by: String,
    /// `queued`, `booting`, `taking over`, `done` or `failed`.
    pub(crate) state: String,
    /// How long it has taken.
    pub(crate) seconds: f64,
    /// The new process.
    pub(crate) pid: Option<i32>,
    /// Its version.
    pub(crate) version: Option<String>,
    /// Why it failed, and what to do.
    pub(crate) failure: Option<String>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerStatus {
    pub(crate) worker: u32,
    /// The version of the application that it runs.
    pub(crate) generation: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) state: String,
    pub(crate) threads: u16,
    pub(crate) uptime_seconds: u64,
    /// Requests that it has begun, or that are placed ahead in its ring.
    pub(crate) in_flight: usize,
    /// Requests that it has answered.
    pub(crate) served: u64,
    /// Its memory and that of processes that it has started, once it was looked at.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
}

/// The file of a control socket, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct MadeSocket {
    place: Place,
    file: Found,
}

impl Drop for MadeSocket {
    fn drop(&mut self) {
        let _ = self.place.remove(&self.file); // the next `highball status` removes what is left behind
    }
}

/// The listening socket of this instance; its file goes when this is dropped, unless another process has replaced it.
#[derive(Debug)]
pub(crate) struct InstanceSocket {
    listener: UnixListener,
    /// What this process has made; none where another process has, which removes it too.
    made: Option<(Place, Found)>,
}

impl InstanceSocket {
    /// Opens the socket of this process in the first of these places that can be used. One that is named may be
    /// another's already: that of the process that this one takes over from is replaced.
    pub(crate) async fn open(places: &ControlPlaces, predecessor: Option<i32>) -> io::Result<InstanceSocket> {
        match places {
            ControlPlaces::Named(path) if path.is_dir() => {
                InstanceSocket::bind(own_place(&ControlFolder::open_named(path)?)?)
            }
            ControlPlaces::Named(path) => InstanceSocket::open_named(path, predecessor).await,
            ControlPlaces::OfOthers(_) => Err(io::ErrorKind::PermissionDenied.into()),
            ControlPlaces::Usual(folders) => {
                let mut unusable = Unusable::default();
                for folder in folders {
                    match InstanceSocket::open_in(folder) {
                        Ok(socket) => {
                            unusable.report(socket.path());
                            return Ok(socket);
                        }
                        Err(error) => unusable.add(folder, &error),
                    }
                }
                Err(io::Error::other(unusable.problems.join("; ")))
            }
        }
    }

    fn open_in(folder: &Path) -> io::Result<InstanceSocket> {
        InstanceSocket::bind(own_place(&ControlFolder::claim(folder)?)?)
    }

    async fn open_named(path: &Path, predecessor: Option<i32>) -> io::Result<InstanceSocket> {
        let place = Place::open(path).map_err(in_folder)?;
        let problem = |what: &str| {
            let message = format!("{} {what}: name another path in {VARIABLE}", path.display());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        };
        if !place.is_safe() {
            return problem("lies in a folder that others may write to");
        }
        if let Some(found) = place.find()? {
            if !found.is_socket() || !place.may_replace(&found) {
                return problem("is no control socket of this user's");
            }
            if let Ok((_, peer)) = connect(&place, Whose::Ours).await {
                if peer.pid != predecessor || predecessor.is_none() {
                    return problem("is the control socket of another Highball that runs");
                }
            }
        }
        InstanceSocket::bind(place)
    }

    /// Makes the socket; it gets its name when a process listens at it.
    fn bind(place: Place) -> io::Result<InstanceSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file is made with the rights of the socket: it was never open to others.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        let temporary = place.temporary()?;
        bind(&socket, &SocketAddrUnix::new(temporary.address())?)?;
        listen(&socket, BACKLOG)?;
        let listener = UnixListener::from_std(socket.into())?;
        let file = temporary.publish()?;
        Ok(InstanceSocket { listener, made: Some((place, file)) })
    }

    /// Takes over a socket that another process has made.
    pub(crate) fn over(socket: OwnedFd) -> io::Result<InstanceSocket> {
        Ok(InstanceSocket { listener: UnixListener::from_std(socket.into())?, made: None })
    }

    /// Makes it for another process: the socket, and what this one has made.
    pub(crate) fn into_parts(mut self) -> io::Result<(OwnedFd, Option<MadeSocket>)> {
        let socket = self.listener.as_fd().try_clone_to_owned()?;
        Ok((socket, self.made.take().map(|(place, file)| MadeSocket { place, file })))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.made.as_ref().map_or(Path::new(""), |(place, _)| place.path())
    }

    /// Answers questions for ever, several at a time: one may wait for a worker that is busy.
    pub(crate) async fn answer<R>(&self, respond: impl Fn(Question) -> R + Clone + Send + 'static)
    where
        R: Future<Output = Option<Answer>> + Send + 'static,
    {
        let callers = Callers::new("commands", CONNECTIONS);
        let serve = |connection, caller| {
            let (respond, callers) = (respond.clone(), callers.clone());
            tokio::spawn(serve(connection, caller, callers, respond));
        };
        callers.accept_all(&self.listener, serve).await;
    }
}

impl Drop for InstanceSocket {
    fn drop(&mut self) {
        if let Some((place, file)) = self.made.take() {
            drop(MadeSocket { place, file });
        }
    }
}

/// Places that could not be used for the control socket.
#[derive(Debug, Default)]
struct Unusable {
    problems: Vec<String>,
    /// One was refused or cannot be written to, where it should be usable.
    is_odd: bool,
}

impl Unusable {
    fn add(&mut self, folder: &Path, error: &io::Error) {
        self.problems.push(format!("{}: {error}", folder.display()));
        // That is as usual in containers.
        self.is_odd |= !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ReadOnlyFilesystem);
    }

    /// Reports that the socket is in a further place. Commands look there, too.
    fn report(&self, path: &Path) {
        let (path, problems) = (path.display(), self.problems.join("; "));
        if self.is_odd {
            warn!(%path, "the control socket is elsewhere: {problems}");
        } else if !self.problems.is_empty() {
            info!(%path, "the control socket is elsewhere: {problems}");
        }
    }
}

/// The name of this process's socket in a folder.
fn own_place(folder: &ControlFolder) -> io::Result<Place> {
    folder.place(format!("{}.sock", getpid().as_raw_nonzero()).as_ref())
}

/// Answers a connection. What is wrong with one is logged once a minute at most: another process decides how many come.
async fn serve<R>(
    mut connection: UnixStream,
    caller: Caller,
    callers: Callers,
    respond: impl Fn(Question) -> R,
) where
    R: Future<Output = Option<Answer>>,
{
    if let Err(error) = may_ask(&connection) {
        if callers.is_to_be_logged() {
            warn!(%error, "the control socket is for this user and root alone");
        }
        return;
    }
    let exchanged = tokio::select! {
        exchanged = exchange(&mut connection, &caller, respond) => exchanged,
        () = caller.dismissed() => Ok(()),
    };
    match exchanged {
        Err(error) if callers.is_to_be_logged() => warn!(%error, "a question on the control socket failed"),
        _ => {}
    }
}

/// A client that leaves without a question, or before its answer, is no fault.
async fn exchange<R>(
    connection: &mut UnixStream,
    caller: &Caller,
    respond: impl Fn(Question) -> R,
) -> io::Result<()>
where
    R: Future<Output = Option<Answer>>,
{
    let Some(line) = caller.hear(connection, &mut Vec::new(), read_line).await else { return Ok(()) };
    let question: Question = serde_json::from_slice(&line?)?;
    let Some(answer) = timeout(question.time_limit(), respond(question)).await? else {
        return Ok(()); // ending already: the connection closes without an answer
    };
    let text = json::try_compact(&answer)? + "\n";
    let _ = caller.answer(connection, text.as_bytes()).await;
    Ok(())
}

/// The first line of what has come, if it is whole.
fn read_line(bytes: &[u8]) -> Option<io::Result<Vec<u8>>> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "the question is too long");
    match bytes.iter().take(QUESTION_BYTES).position(|byte| *byte == b'\n') {
        Some(end) => Some(Ok(bytes[..end].to_vec())),
        None => (bytes.len() >= QUESTION_BYTES).then(|| Err(too_long())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_question_gets_its_answer_and_the_socket_is_private() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        let places = ControlPlaces::Usual(vec![folder]);
        let socket = InstanceSocket::open(&places, None).await.unwrap();
        let path = socket.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);

        let ask = async {
            let mut connection = UnixStream::connect(&path).await.unwrap();
            connection.write_all(b"{\"command\":\"stop\"}\n").await.unwrap();
            let mut text = String::new();
            connection.read_to_string(&mut text).await.unwrap();
            text
        };
        let respond = |question| async move {
            assert_eq!(question, Question::Stop);
            Some(Answer::Stopping { pid: 7, drain_seconds: 30 })
        };
        let text = tokio::select! {
            text = ask => text,
            () = socket.answer(respond) => unreachable!(),
        };
        assert_eq!(text, "{\"type\":\"stopping\",\"pid\":7,\"drain_seconds\":30}\n");
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_slow_question_does_not_hold_up_others() {
        let outer = tempfile::tempdir().unwrap();
        let places = ControlPlaces::Usual(vec![outer.path().join("highball")]);
        let socket = InstanceSocket::open(&places, None).await.unwrap();
        let path = socket.path().to_owned();
        let ask = async {
            let mut slow = UnixStream::connect(&path).await.unwrap();
            slow.write_all(b"{\"command\":\"memory\",\"gc\":true}\n").await.unwrap();
            let mut quick = UnixStream::connect(&path).await.unwrap();
            quick.write_all(b"{\"command\":\"stop\"}\n").await.unwrap();
            let mut text = String::new();
            quick.read_to_string(&mut text).await.unwrap();
            text
        };
        let respond = |question| async move {
            match question {
                Question::Memory { .. } => std::future::pending().await,
                _ => Some(Answer::Stopping { pid: 7, drain_seconds: 30 }),
            }
        };
        tokio::select! {
            text = ask => assert!(text.contains("stopping"), "{text}"),
            () = socket.answer(respond) => unreachable!(),
        }
    }

    #[tokio::test]
    async fn one_that_is_named_is_one_instances_at_a_time() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("control");
        let places = ControlPlaces::Named(path.clone());
        let first = InstanceSocket::open(&places, None).await.unwrap();
        let error = InstanceSocket::open(&places, None).await.unwrap_err();
        assert!(error.to_string().contains("another Highball that runs"), "{error}");
        // In a hot restart: what the first removes at its end is not the second's.
        let pid = getpid().as_raw_nonzero().get();
        let second = InstanceSocket::open(&places, Some(pid)).await.unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(InstanceSocket::open(&places, None).await.is_err(), "no file is replaced");
    }

    #[tokio::test]
    async fn where_the_usual_place_cannot_be_used_the_next_is() {
        let outer = tempfile::tempdir().unwrap();
        let (taken, free) = (outer.path().join("taken"), outer.path().join("free"));
        fs::write(&taken, "").unwrap();
        let socket = InstanceSocket::open(&ControlPlaces::Usual(vec![taken, free.clone()]), None).await;
        assert!(socket.unwrap().path().starts_with(&free));
    }
}
