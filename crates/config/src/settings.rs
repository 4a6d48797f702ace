//! The resolved settings: what every other part of Highball is given.
//!
//! Nothing here is optional unless "none" is a meaning of its own: defaults, environment variables,
//! the configuration file and the command line have all been weighed by [`crate::resolve`].

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything one run of `highball serve` needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The application folder, absolute, symbolic links resolved.
    pub app: PathBuf,
    /// The application folder as it was given, absolute, with its symbolic links: where a restart looks anew.
    pub app_link: PathBuf,
    /// The file in that folder to load the application from, where one was named: `app.rb`, `my.ru`.
    pub app_file: Option<PathBuf>,
    /// `development`, `production`, `test` or a name of the user's own.
    pub environment: String,
    /// Where to listen, in the order given; never empty.
    pub binds: Vec<Bind>,
    /// Worker processes for the application; at least 1.
    pub workers: u16,
    /// Serving threads in each worker; at least 1.
    pub threads: u16,
    /// Whether the application may send early hints (status 103).
    pub early_hints: bool,
    /// The Ruby interpreter to run the mold with; `None`: the one that is usual in the application's folder.
    pub ruby: Option<PathBuf>,
    /// A file to write the process id to, removed at the end.
    pub pidfile: Option<PathBuf>,
    /// Limits on what clients may send and how long they may take.
    pub limits: Limits,
    /// How files below the public folder are served.
    pub static_files: StaticFiles,
    /// How processes are started and stopped.
    pub process: Process,
    /// What is logged and how.
    pub log: Log,
}

impl Settings {
    /// Whether the rules for development apply: one worker, no request time limit, quick Ctrl-C.
    pub fn is_development(&self) -> bool {
        self.environment == "development"
    }
}

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket (`unix:/path`).
    Unix(PathBuf),
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Tcp(address) => address.fmt(f),
            Bind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Limits on requests, connections and buffers. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest request target; beyond it 414.
    pub target_bytes: usize,
    /// Largest request head (request line and header fields); beyond it 431.
    pub head_bytes: usize,
    /// Most header fields in a request; beyond it 431.
    pub header_fields: usize,
    /// Largest request body; beyond it 413. `None`: no limit.
    pub body_bytes: Option<u64>,
    /// How much of a request body is held in memory before it goes to a spool file.
    pub body_memory_bytes: usize,
    /// How much of a response is buffered in memory before its worker has to wait.
    pub response_buffer_bytes: usize,
    /// How much of a response goes to a spool file when a slow client would keep its worker waiting.
    pub response_spool_bytes: usize,
    /// Most open client connections; further ones wait in the backlog.
    pub connections: usize,
    /// Most requests that wait for a worker; beyond it 503 with Retry-After.
    pub queue: usize,
    /// Time for a request head to arrive whole, from its first byte; beyond it 408.
    pub head_timeout: Duration,
    /// Longest pause between two pieces of a request body; beyond it 408.
    pub body_timeout: Duration,
    /// How long an idle keep-alive connection is kept.
    pub idle_timeout: Duration,
    /// Longest pause in which a client takes nothing of its response; beyond it the connection ends.
    pub send_timeout: Duration,
    /// Time for a worker to begin its answer; beyond it 504. `None`: no limit (development).
    pub request_timeout: Option<Duration>,
    /// Folder for spool files.
    pub spool_dir: PathBuf,
}

/// Rules for static files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticFiles {
    /// Whether files of the public folder are served without asking the application.
    pub enabled: bool,
    /// Whether symbolic links are followed.
    pub follow_symlinks: bool,
}

/// Process life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Time the application has to boot; beyond it the boot has failed.
    pub boot_timeout: Duration,
    /// Time requests in flight have to end after TERM; beyond it the workers are halted.
    pub drain_timeout: Duration,
    /// Time connections have to end that the application has taken over; no more than `drain_timeout`.
    pub hijacked_drain_timeout: Duration,
    /// What a new version is asked for in a restart, before clients' requests go to it.
    pub probe_path: String,
    /// Time it has to answer.
    pub probe_timeout: Duration,
    /// Whether the mold loads the application, or each worker does.
    pub preload: bool,
    /// After how many requests a worker is promoted to mold, the first time and so on; the last number is repeated.
    /// Empty: never.
    pub refork_after: Vec<u64>,
    /// Workers that may die before they served, one after the other, until Highball gives up.
    pub max_boot_failures: u32,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line per event.
    Human,
    /// One JSON object per line.
    Json,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The form of event lines on standard error.
    pub format: LogFormat,
    /// Where the access log goes; `None`: nowhere. `-` is standard output.
    pub access: Option<PathBuf>,
}
