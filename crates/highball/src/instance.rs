//! What a running Highball tells about itself, and where: a Unix socket `PID.sock` in a folder that only its
//! user may enter. One line of JSON asks, one line of JSON answers.

use highball_supervisor::{Diagnosis, RubyHeap};
use rustix::process::{geteuid, getpid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::warn;

/// The longest question, in bytes.
const QUESTION_BYTES: u64 = 1024;
/// Questions that are answered at the same time; others wait their turn.
const EXCHANGES: usize = 8;
/// Time for reading a question, for finding its answer where that asks no Ruby process, and for writing it.
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
    /// Put a new version in the place of the one that is served.
    Restart {
        /// The number of the application.
        app: u32,
    },
    /// Fork the workers anew, from one that is warm.
    Refork {
        /// The number of the application.
        app: u32,
    },
    /// Put a new process in the place of this one.
    Upgrade,
    /// Drain and stop.
    Stop,
    /// Which processes are there, and how are their Ruby heaps?
    Memory {
        /// Whether workers run a full garbage collection first.
        gc: bool,
    },
}

impl Question {
    /// Time for finding the answer.
    pub(crate) fn time_limit(self) -> Duration {
        match self {
            Question::Memory { gc } => EXCHANGE_TIME + heap_time(gc),
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
    /// It restarts, or will when it is done with the restart before; `Status` tells what becomes of it.
    Restarting {
        /// Its process id.
        pid: i32,
        /// The generation that the restart brings.
        generation: u32,
    },
    /// It reforks; `Status` tells what becomes of it.
    Reforking {
        /// Its process id.
        pid: i32,
        /// The how-manieth refork it is.
        number: u32,
    },
    /// It starts a new process in its place; `Status` tells what becomes of it.
    Upgrading {
        /// Its process id.
        pid: i32,
        /// The number of the hot restart.
        number: u32,
    },
    /// It will not do that.
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
}

/// A mold or worker and its Ruby heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RubyProcess {
    /// The number of the application.
    pub(crate) app: u32,
    /// Its number; `None` is the mold.
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
    /// Open client connections, hijacked ones included.
    pub(crate) connections: usize,
    /// Connections that an application has taken over (WebSockets and the like).
    pub(crate) hijacked: usize,
    /// The last hot restart, or the one under way.
    pub(crate) upgrade: Option<UpgradeStatus>,
    /// The process that this one has succeeded by a hot restart.
    pub(crate) predecessor: Option<i32>,
    /// The process that has succeeded this one, which only finishes what it has.
    pub(crate) successor: Option<i32>,
    /// The applications, in the order in which they were configured.
    pub(crate) apps: Vec<AppStatus>,
}

/// How an application is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AppStatus {
    /// Its number, which no other application of this process has had.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// `booting`, `failed` (until it is mended), `serving`, `asleep`, `draining` or `ending`.
    pub(crate) phase: String,
    /// The host names that it is reached by; none: every one.
    pub(crate) hosts: Vec<String>,
    /// The path that it is reached below; `` is none.
    pub(crate) prefix: String,
    /// Where to look at it.
    pub(crate) url: String,
    /// The folder of the version that is served.
    pub(crate) app: PathBuf,
    /// The folder as it was given, with its symbolic links.
    pub(crate) link: PathBuf,
    pub(crate) environment: String,
    /// Who it runs as; empty from versions that do not say it.
    #[serde(default)]
    pub(crate) user: String,
    /// `Rails 6.1.7`, once the application was booted.
    pub(crate) framework: Option<String>,
    pub(crate) ruby: Option<String>,
    /// The version of the application that is served: 1 from the start, larger after each restart.
    pub(crate) generation: u32,
    /// False where the application was given as an object; unknown before the first boot.
    pub(crate) restartable: Option<bool>,
    pub(crate) mold: Option<MoldStatus>,
    /// How many workers there should be.
    pub(crate) workers_wanted: u16,
    pub(crate) workers: Vec<WorkerStatus>,
    /// Requests that wait for a worker.
    pub(crate) queue: usize,
    /// The last restarts, the one under way, and the one that waits for it, in this order.
    pub(crate) restarts: Vec<RestartStatus>,
    /// The refork that is under way, or the last one.
    pub(crate) refork: Option<ReforkStatus>,
    /// Why the schedule of reforks is not followed, for as long as this version is served.
    pub(crate) no_refork: Option<String>,
    /// What failed last, if anything did.
    pub(crate) last_failure: Option<String>,
    /// The last boot that failed, if one did since the start.
    pub(crate) diagnosis: Option<Diagnosis>,
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
    /// The how-manieth it is, from 1.
    pub(crate) number: u32,
    /// `highball refork`, `URG`, or so many requests.
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
    /// The how-manieth of this process.
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
}

/// The folder where instances of this user have their sockets.
pub(crate) fn folder() -> PathBuf {
    let uid = geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if uid.is_root() => "/run/highball".into(),
        Some(dir) if !dir.is_empty() => Path::new(&dir).join("highball"),
        _ => format!("/tmp/highball-{}", uid.as_raw()).into(),
    }
}

/// Makes sure that the folder exists, is ours, and lets nobody else in.
fn claim_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?; // a link would be somebody else's trick
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is not a folder that belongs to this user alone (mode 0700)", folder.display()),
    ))
}

/// The listening socket of this instance; its file goes when this is dropped.
#[derive(Debug)]
pub(crate) struct InstanceSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl InstanceSocket {
    /// Opens the socket of this process below `folder`.
    pub(crate) fn open(folder: &Path) -> io::Result<InstanceSocket> {
        claim_folder(folder)?;
        let pid = getpid().as_raw_nonzero();
        // Whoever finds a socket that nobody listens at removes it: it gets its name when somebody does.
        let nameless = folder.join(format!("new-{pid}.sock"));
        match fs::remove_file(&nameless) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {} // a process with our id may have been killed before
        }
        let listener = UnixListener::bind(&nameless)?;
        fs::set_permissions(&nameless, fs::Permissions::from_mode(0o600))?;
        let path = folder.join(format!("{pid}.sock"));
        fs::rename(nameless, &path)?;
        Ok(InstanceSocket { listener, path })
    }

    /// Answers questions for ever, several at a time: one may wait for a worker that is busy.
    pub(crate) async fn answer<R>(&self, respond: impl Fn(Question) -> R + Clone + Send + 'static)
    where
        R: Future<Output = Option<Answer>> + Send,
    {
        let mut exchanges = JoinSet::new();
        loop {
            while exchanges.try_join_next().is_some() {} // forget those that are done
            if exchanges.len() >= EXCHANGES {
                exchanges.join_next().await;
            }
            match self.listener.accept().await {
                Ok((connection, _)) => {
                    let respond = respond.clone();
                    exchanges.spawn(async move {
                        if let Err(error) = exchange(connection, respond).await {
                            warn!(%error, "a question on the control socket failed");
                        }
                    });
                }
                Err(error) => {
                    warn!(%error, "the control socket cannot accept");
                    tokio::time::sleep(EXCHANGE_TIME).await; // out of descriptors, most likely
                }
            }
        }
    }
}

impl Drop for InstanceSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // the next `highball status` removes what is left behind
    }
}

async fn exchange<R>(connection: UnixStream, respond: impl Fn(Question) -> R) -> io::Result<()>
where
    R: Future<Output = Option<Answer>>,
{
    let mut connection = BufReader::new(connection);
    let mut line = String::new();
    timeout(EXCHANGE_TIME, (&mut connection).take(QUESTION_BYTES).read_line(&mut line)).await??;
    let question: Question = serde_json::from_str(&line)?;
    let Some(answer) = timeout(question.time_limit(), respond(question)).await? else {
        return Ok(()); // ending already: the connection closes without an answer
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    timeout(EXCHANGE_TIME, connection.get_mut().write_all(&text)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        claim_folder(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = claim_folder(&folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_link_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert!(claim_folder(&folder).is_err());
    }

    #[tokio::test]
    async fn a_question_gets_its_answer_and_the_socket_is_private() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("highball");
        let socket = InstanceSocket::open(&folder).unwrap();
        let path = socket.path.clone();
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
    async fn a_question_that_takes_long_holds_nobody_else_up() {
        let outer = tempfile::tempdir().unwrap();
        let socket = InstanceSocket::open(&outer.path().join("highball")).unwrap();
        let path = socket.path.clone();
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
}
