//! The resolved settings: what every other part of Highball is given.
//!
//! Nothing here is optional unless "none" is a value: defaults, environment variables, the configuration file and the
//! command line have all been weighed by [`crate::resolve`].

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use highball_cgroups::{CpuMax, Limits as KernelLimits};
use highball_users::User;
use serde::{Deserialize, Serialize};

use crate::access_format::LogRules;
use crate::error::Fault;
use crate::network::Network;
use crate::pool::PoolRange;
use crate::threads::Threads;
use crate::traces::TraceSettings;

/// How health checks and metrics are answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AdminSettings {
    /// Where; none: nowhere.
    pub binds: Vec<Bind>,
    /// Host names beside those of this machine; `*` is every one.
    pub hosts: Vec<String>,
    /// Whether the dashboard takes orders from those who have its token.
    pub takes_orders: bool,
    /// Where the agent checks of load balancers are answered; none: nowhere.
    pub agent_binds: Vec<Bind>,
    /// Time without a free thread and without an answer after which an application counts as stuck.
    pub stuck_after: Option<Duration>,
}

impl AdminSettings {
    /// All addresses: for health checks and metrics, and for agent checks.
    pub fn all_binds(&self) -> impl Iterator<Item = &Bind> + Clone {
        self.binds.iter().chain(&self.agent_binds)
    }

    /// Whether the steps of requests are measured: metrics and agent checks report them.
    #[must_use]
    pub fn measures_requests(&self) -> bool {
        self.all_binds().next().is_some()
    }
}

/// Everything one run of `highball serve` needs to know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where to listen, in the order given; never empty.
    pub binds: Vec<Bind>,
    /// The place in a file or variable where each of them was named, in words; empty: nowhere.
    pub bind_places: Vec<String>,
    /// How proxies report the clients of HTTP connections.
    pub proxy_protocol: ProxyProtocol,
    /// How clients of HTTPS addresses are served.
    pub tls: TlsSettings,
    /// Whether HTTP connections without TLS may be of HTTP/2.
    pub http2_cleartext: bool,
    /// Proxies that are believed what they report in header fields; empty: applications get these fields from everybody.
    pub trusted_proxies: Vec<Network>,
    /// Whether each request has an id, in `X-Request-Id`.
    pub request_id: bool,
    /// Where spans of requests go, if anywhere.
    pub traces: Option<TraceSettings>,
    /// Variables about traces that are ignored, and why.
    pub trace_notes: Vec<String>,
    /// A file to write the process id to, removed at the end.
    #[serde(with = "highball_text::exact")]
    pub pidfile: Option<PathBuf>,
    /// The user that the server itself runs as where root starts it, if it is given.
    pub server_user: Option<String>,
    /// Limits for requests to all applications.
    pub limits: Limits,
    /// Where health checks and metrics are answered.
    pub admin: AdminSettings,
    /// Time after TERM for which connections are still accepted.
    pub drain_grace: Duration,
    /// Time requests in flight have to end after that; beyond it the workers are halted.
    pub drain_timeout: Duration,
    /// Time connections have to end that an application has taken over; no more than `drain_timeout`.
    pub hijacked_drain_timeout: Duration,
    /// What is logged and how.
    pub log: Log,
    /// The applications, in the order given; never empty at the start.
    pub apps: Vec<Arc<App>>,
    /// Where the applications are listed.
    pub named: Named,
    /// What was given and does not count: options of the server in the files of single applications. Where they stand.
    pub ignored: Vec<String>,
}

impl Settings {
    /// The same, as another process has read them, with numbers of this one.
    #[must_use]
    pub fn renumbered(mut self) -> Settings {
        self.apps.iter_mut().for_each(|app| Arc::make_mut(app).id = AppId::next());
        self
    }

    /// All certificates: the server's, and those of applications.
    pub fn certificates(&self) -> impl Iterator<Item = (&CertificateFiles, Option<&App>)> {
        let of_server = self.tls.certificates.iter().map(|files| (files, None));
        let of_apps =
            self.apps.iter().flat_map(|app| app.certificates.iter().map(|files| (files, Some(&**app))));
        of_server.chain(of_apps)
    }

    /// The application with this id.
    pub fn app(&self, id: AppId) -> Option<&Arc<App>> {
        self.apps.iter().find(|app| app.id == id)
    }

    /// Whether an application asks its clients for certificates.
    pub fn asks_clients(&self) -> bool {
        self.apps.iter().any(|app| app.client_certificates.are_asked_for())
    }

    /// Whether every application runs in development.
    pub fn is_development(&self) -> bool {
        self.apps.iter().all(|app| app.is_development())
    }
}

/// Where the applications are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Named {
    /// Each in an `[[app]]` of the configuration file.
    InFile,
    /// On the command line.
    #[default]
    OnCommandLine,
    /// Nowhere: it is the current folder.
    Nowhere {
        /// The configuration file, where one was named.
        #[serde(with = "highball_text::exact")]
        file: Option<PathBuf>,
    },
}

/// An application's number. Numbers are never used twice in a process: a message about an application that was removed
/// cannot meet another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AppId(pub u32);

impl AppId {
    /// A number that no application of this process has had.
    pub(crate) fn next() -> AppId {
        static LAST: AtomicU32 = AtomicU32::new(0);
        AppId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A folder whose files an application may have sent by naming them in a header field of its response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFolder {
    /// URI prefix of `X-Accel-Redirect` that is mapped to this folder, such as `/protected`, without a slash at the end.
    pub prefix: Option<String>,
    /// The folder as it was given: absolute, or below the application's.
    pub folder: String,
}

/// Where requests are sent that are for another host or path than they should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirects {
    /// The host that visitors of all others are sent to, in small letters, without a port.
    pub canonical_host: Option<String>,
    /// Those from paths; no two are from the same.
    pub list: Vec<Redirect>,
}

impl Redirects {
    /// Whether there are any.
    pub fn are_any(&self) -> bool {
        self.canonical_host.is_some() || !self.list.is_empty()
    }

    /// The redirect for this path: the most exact match.
    pub fn of(&self, path: &[u8]) -> Option<&Redirect> {
        let fitting = self.list.iter().filter_map(|redirect| Some((redirect.from.fits(path)?, redirect)));
        fitting.max_by_key(|(length, _)| *length).map(|(_, redirect)| redirect)
    }
}

/// Where requests for some paths are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The paths, below the application's prefix.
    pub from: PathPattern,
    /// Scheme and host of another site, such as `https://docs.example.org`; `None`: they stay with this one.
    pub site: Option<String>,
    /// The path there, with or without a query. A `*` at its end stands for the same as the `*` of `from`.
    pub to: String,
    /// The status: 301, 302, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// Path and query that this path leads to, which it is about.
    pub fn target(&self, path: &[u8]) -> Vec<u8> {
        match (self.to.strip_suffix('*'), self.from.fits(path)) {
            (Some(to), Some(beginning)) => {
                [to.as_bytes(), path.get(beginning..).unwrap_or_default()].concat()
            }
            _ => self.to.clone().into_bytes(),
        }
    }

    /// Host and port of the other site.
    pub fn host(&self) -> Option<&str> {
        self.site.as_deref()?.split_once("://").map(|(_, host)| host)
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Redirect { from, site, to, status } = self;
        write!(f, "{} {}{to} {status}", from.0, site.as_deref().unwrap_or_default())
    }
}

/// How the requests of a session are known, which go to the same worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Affinity {
    /// By a cookie of the front.
    Cookie,
    /// By a header field of the application, in small letters.
    Header(String),
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Affinity::Cookie => f.write_str("cookie"),
            Affinity::Header(name) => write!(f, "header:{name}"),
        }
    }
}

/// One application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// The application's number.
    pub id: AppId,
    /// What people call it; no two of a server have the same.
    pub name: String,
    /// The host names that it is reached by, in small letters, without ports; none: by every one.
    pub hosts: Vec<String>,
    /// The path that it is reached below, such as `/blog`; `` is none. It begins with a slash, and ends with none.
    pub prefix: String,
    /// Where requests for other hosts and paths are sent.
    pub redirects: Redirects,
    /// Changes to the header fields of responses, in this order.
    pub response_headers: Vec<HeaderRule>,
    /// The file that is there during maintenance: below its folder, or absolute.
    #[serde(with = "highball_text::exact")]
    pub maintenance_file: PathBuf,
    /// Its folder, absolute, symbolic links resolved.
    #[serde(with = "highball_text::exact")]
    pub folder: PathBuf,
    /// Its folder as it was given, absolute, with its symbolic links: where a restart looks again.
    #[serde(with = "highball_text::exact")]
    pub link: PathBuf,
    /// The file in that folder to load it from, where one was named: `app.rb`, `my.ru`.
    #[serde(with = "highball_text::exact")]
    pub file: Option<PathBuf>,
    /// `development`, `production`, `test` or a name of the user's own.
    pub environment: String,
    /// Worker processes; at least 1. Where their number follows the load: at the start.
    pub workers: u16,
    /// Between which numbers that is, where it follows the load.
    pub pool: Option<PoolRange>,
    /// Serving threads in each worker.
    pub threads: Threads,
    /// Whether it may send early hints (status 103).
    pub early_hints: bool,
    /// How requests are known that go to the same worker; `None`: each goes to the least busy one.
    pub affinity: Option<Affinity>,
    /// Requests that run on fibers.
    pub fibers: Vec<PathPattern>,
    /// The class whose instance schedules them, in the place of Highball's.
    pub fiber_scheduler: Option<String>,
    /// The env key by which it gets what is left of the time for the answer, such as `HTTP_X_REQUEST_TIMEOUT`.
    pub timeout_header: Option<String>,
    /// From which time on a request is slow, and keeps where its time goes; `None`: none is.
    pub slow_request: Option<Duration>,
    /// The path below its prefix at which the front says whether it should get requests.
    pub health_path: Option<String>,
    /// Whether it gets `X-Request-Start` also where no proxy has sent it.
    pub request_start: bool,
    /// Whether clients get `Server-Timing`.
    pub server_timing: bool,
    /// The Ruby interpreter to run the mold with; `None`: the usual one in its folder.
    #[serde(with = "highball_text::exact")]
    pub ruby: Option<PathBuf>,
    /// The user that its processes run as.
    pub runs_as: RunsAs,
    /// Its own variables, in the environment of its processes.
    pub env: BTreeMap<String, String>,
    /// Variables of Highball's environment that its processes get although they are another user's; `*` may stand at the
    /// end of a name.
    pub pass_variables: Vec<String>,
    /// Bytes that its processes may print in a second, where they are another user's; `None`: no limit.
    pub max_output_bytes: Option<u64>,
    /// The memory that its processes may have.
    pub memory: MemoryLimits,
    /// The CPUs that its processes may use at a time; `None`: no limit.
    pub cpu_max: Option<CpuMax>,
    /// Limits on its requests.
    pub limits: AppLimits,
    /// How files below the public folder are served.
    pub static_files: StaticFiles,
    /// Whether answers and files are compressed for clients that ask for it.
    pub compress: bool,
    /// The folders of the files that it may name in `X-Sendfile` and `X-Accel-Redirect`.
    pub sendfile: Vec<SentFolder>,
    /// Its users, if it is for them alone.
    pub basic_auth: Option<BasicAuth>,
    /// How processes are started and replaced.
    pub process: Process,
    /// The processes that run beside its workers.
    pub companions: Vec<Companion>,
    /// Whether it boots at once, or when it is asked for first.
    pub prestart: bool,
    /// Its processes end after this time without a request, until there is one; `None`: never.
    pub sleep_after: Option<Duration>,
    /// Where its lines of the access log go.
    pub access_log: AccessLog,
    /// How they are written, if that is no log of the server.
    pub access_log_rules: LogRules,
    /// Certificates for its hosts, beside those of the server.
    pub certificates: Vec<CertificateFiles>,
    /// Certificates that its clients show.
    pub client_certificates: ClientCertificates,
    /// Which clients get the details of errors in development.
    pub show_diagnosis: ShowDiagnosis,
    /// Its own configuration file, if it has one.
    #[serde(with = "highball_text::exact")]
    pub config_file: Option<PathBuf>,
    /// The Puma configuration whose hooks its processes run, below its folder or absolute.
    #[serde(with = "highball_text::exact")]
    pub puma_file: Option<PathBuf>,
    /// What is not carried out of a Puma configuration.
    pub puma_notes: Vec<PumaNote>,
    /// Which of its configuration files counts for what, where there are several, or where something goes before one: a line
    /// for each.
    pub file_notes: Vec<String>,
    /// What to warn of, if Rails has no file for the environment.
    pub environment_note: Option<String>,
    /// Why it cannot be brought up, where its own configuration file or its folder cannot be used. Everything else here is
    /// then what the server says of it.
    pub fault: Option<Fault>,
}

impl App {
    /// Whether the rules for development apply: one worker, no request time limit, quick Ctrl-C.
    pub fn is_development(&self) -> bool {
        self.environment == "development"
    }

    /// Largest number of its workers.
    pub fn most_workers(&self) -> u16 {
        self.pool.map_or(self.workers, |pool| pool.max)
    }

    /// How long a single worker has to have served before its mold ends; `None`: it stays. With a limit for each worker it does,
    /// as what the worker shares with the mold does not count towards that, and all of it would.
    pub fn rest_mold_after(&self) -> Option<Duration> {
        self.process.rest_mold_after.filter(|_| self.memory.worker == MemoryBound::None)
    }

    /// The file in its folder that configures it: one for Highball, or for Puma.
    pub(crate) fn own_configuration(&self) -> Option<PathBuf> {
        self.config_file.clone().or_else(|| Some(self.folder.join(self.puma_file.as_ref()?)))
    }

    /// The host, or `every host`, at which both are reached below the same path.
    pub(crate) fn place_shared_with<'a>(&'a self, other: &App) -> Option<&'a str> {
        self.host_shared_with(other).filter(|_| self.prefix == other.prefix)
    }

    /// The host, or `every host`, at which both are reached.
    pub(crate) fn host_shared_with<'a>(&'a self, other: &App) -> Option<&'a str> {
        if self.hosts.is_empty() && other.hosts.is_empty() {
            return Some("every host");
        }
        self.hosts.iter().find(|host| other.hosts.contains(host)).map(String::as_str)
    }

    /// Its path as it was given, with its symbolic links: the folder's, or of a file in it.
    pub fn path(&self) -> PathBuf {
        self.file.as_ref().map_or_else(|| self.link.clone(), |file| self.link.join(file))
    }

    /// The hard limits of all its processes together.
    pub fn kernel_limits(&self) -> KernelLimits {
        KernelLimits { cpu: self.cpu_max, memory: self.memory.max }
    }
}

/// A process that runs beside an application's workers, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Companion {
    /// Small letters, digits, `-` and `_`.
    pub name: String,
    /// What is run.
    pub command: CompanionCommand,
    /// The number of copies; at least 1.
    pub count: u16,
    /// Whether it is a Ruby program that begins as a copy of the process that has loaded the application.
    pub fork: bool,
    /// Its own variables, beside the application's.
    pub env: BTreeMap<String, String>,
    /// Its working folder, below the application's folder or absolute; `None`: the application's folder.
    #[serde(with = "highball_text::exact")]
    pub directory: Option<PathBuf>,
    /// Whether it is started again after it has ended unasked.
    pub restart: RestartRule,
    /// Time to end after TERM; then it is killed.
    pub stop_timeout: Duration,
    /// The companions that have to run before it starts, or to have succeeded where they run once.
    pub start_after: Vec<String>,
    /// Memory of each copy, with the processes that it has started, beyond which it is ended and started again.
    pub memory_limit: MemoryBound,
}

impl Companion {
    /// What people call this copy of it: `jobs`, or `jobs.2` where there are several.
    pub fn label(&self, copy: u16) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}.{copy}", self.name),
        }
    }
}

/// What a companion runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompanionCommand {
    /// A line for `/bin/sh`.
    Shell(String),
    /// A program and its arguments; never empty.
    Program(Vec<String>),
}

impl fmt::Display for CompanionCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompanionCommand::Shell(line) => f.write_str(line),
            CompanionCommand::Program(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// Whether a companion is started again after it has ended unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartRule {
    /// However it has ended.
    Always,
    /// Unless its exit code was 0.
    OnFailure,
    /// Only with the next version of the application.
    Never,
}

/// Names and passwords for an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasicAuth {
    /// The file with users and hashes of their passwords.
    #[serde(with = "highball_text::exact")]
    pub file: PathBuf,
    /// What browsers may show beside the question: no quotes, backslashes or control characters.
    pub realm: String,
}

/// A statement of a Puma configuration that is not carried out as it says, or all of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PumaNote {
    /// The statement; empty: the whole file.
    pub statement: String,
    /// What Highball does.
    pub what: String,
    /// What to do instead.
    pub remedy: String,
    /// The file.
    #[serde(with = "highball_text::exact")]
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The option that is then wider than the file says; `None`: nothing is.
    #[serde(default)]
    pub narrows: Option<String>,
}

impl PumaNote {
    /// Where the statement stands: `config/puma.rb:12`.
    pub fn place(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}", self.file.display())
    }

    /// What is not carried out.
    pub fn text(&self) -> String {
        if self.statement.is_empty() {
            return self.what.clone();
        }
        format!("`{}`: {}", self.statement, self.what)
    }
}

/// Who an application's processes run as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunsAs {
    /// Who runs Highball.
    #[default]
    Starter,
    /// Root, as Highball does: no user is configured, and its files belong to root.
    RootUnasked,
    /// Another user.
    User(User),
}

impl RunsAs {
    /// The user, where it is another one than Highball's.
    pub fn another(&self) -> Option<&User> {
        match self {
            RunsAs::User(user) => Some(user),
            RunsAs::Starter | RunsAs::RootUnasked => None,
        }
    }
}

/// Limits on the requests of one application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppLimits {
    /// Largest request body, in bytes; beyond it 413. `None`: no limit.
    pub body_bytes: Option<u64>,
    /// Most requests that wait for a worker; beyond it 503 with Retry-After.
    pub queue: usize,
    /// Most answers of a worker that go on without a place in its pool; 0: none does.
    pub streams: u32,
    /// Most requests of a worker that run on fibers.
    pub fibers: u32,
    /// Longest pause in which nothing of such an answer comes from the application; then it is cut off. `None`: no limit.
    pub stream_idle_timeout: Option<Duration>,
    /// Time for a worker to begin its answer; beyond it 504. `None`: no limit (development).
    pub request_timeout: Option<Duration>,
    /// The same for some paths.
    pub request_timeouts: Vec<PathTimeout>,
    /// Whether a request that exceeds its time is interrupted by an exception.
    pub timeout_interrupts: bool,
    /// How often a client may ask.
    pub rates: Vec<RateRule>,
    /// Clients that may ask as often as they like.
    pub rates_exempt: Vec<Network>,
    /// How much its spool files may hold; `None`: what [`Limits::spool_bytes`] leaves to it.
    pub spool_bytes: Option<u64>,
    /// How much its stored responses may take, within [`Limits::cache_bytes`]; 0: none is stored.
    pub cache_bytes: u64,
    /// Its real-time hub.
    pub hub: HubLimits,
}

/// Limits on the real-time hub of one application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubLimits {
    /// Most held responses; beyond it 503 with Retry-After.
    pub held: u32,
    /// Most streams of one of them; beyond it 502.
    pub held_streams: u32,
    /// Largest message, in bytes; a larger one is not published.
    pub message_bytes: u64,
    /// Most messages that each stream keeps.
    pub history: u32,
    /// How long it keeps them.
    pub history_time: Duration,
    /// How often a held response gets a comment that keeps proxies from closing it.
    pub heartbeat: Duration,
    /// Whether the front holds the WebSockets of Action Cable.
    pub hold_cable: bool,
    /// Most of them; beyond it 503 with Retry-After.
    pub cable_clients: u32,
    /// Largest message of one of their clients, in bytes; a larger one ends the WebSocket.
    pub cable_message_bytes: u64,
    /// Most subscriptions, and most streams, of one of them; further subscriptions are rejected.
    pub cable_streams: u32,
}

/// A limit on the requests of each client, for an application, or for some of its paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RateRule {
    /// The paths, below the application's prefix; `None`: all.
    pub pattern: Option<PathPattern>,
    /// Requests that a client may send in each period, at least 1.
    pub requests: u32,
    /// The period.
    pub period: Duration,
    /// Requests that it may send at once, at least 1.
    pub burst: u32,
}

impl fmt::Display for RateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateRule { pattern, requests, period, burst } = self;
        let unit = match period.as_secs() {
            86_400 => "d",
            3600 => "h",
            60 => "min",
            _ => "s",
        };
        pattern.iter().try_for_each(|pattern| write!(f, "{} ", pattern.0))?;
        write!(f, "{requests}/{unit}")?;
        if burst != requests {
            write!(f, " burst {burst}")?;
        }
        Ok(())
    }
}

/// A change to the header fields of responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderRule {
    /// Paths of the requests, below the application's prefix; `None`: all.
    pub pattern: Option<PathPattern>,
    /// Name of the field, in lower case.
    pub name: String,
    /// The change.
    pub change: HeaderChange,
}

/// What happens to a header field of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeaderChange {
    /// The response has it once, with this value.
    Set(String),
    /// The response has one more, with this value.
    Add(String),
    /// The response has none.
    Remove,
}

/// The time for answers to requests for some paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTimeout {
    /// The paths.
    pub pattern: PathPattern,
    /// `None`: no limit.
    pub limit: Option<Duration>,
}

/// A path, or the beginning of paths with `*` after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathPattern(pub String);

impl PathPattern {
    /// How exactly it is about this path; `None`: it is about others. A whole path is more exact than any beginning.
    pub fn fits(&self, path: &[u8]) -> Option<usize> {
        match self.0.strip_suffix('*') {
            Some(beginning) => path.starts_with(beginning.as_bytes()).then_some(beginning.len()),
            None => (path == self.0.as_bytes()).then_some(usize::MAX),
        }
    }
}

impl AppLimits {
    /// The time for the answer to a request; its path is only asked for if it matters.
    pub fn time_for(&self, path: impl FnOnce() -> Vec<u8>) -> Option<Duration> {
        if self.request_timeouts.is_empty() {
            return self.request_timeout;
        }
        self.time_for_path(&path())
    }

    #[inline(never)]
    fn time_for_path(&self, path: &[u8]) -> Option<Duration> {
        let fitting =
            self.request_timeouts.iter().filter_map(|entry| Some((entry.pattern.fits(path)?, entry.limit)));
        fitting.max_by_key(|(length, _)| *length).map_or(self.request_timeout, |(_, limit)| limit)
    }
}

/// Where an application's lines of the access log go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessLog {
    /// Where those of the server go ([`Log::access`]).
    #[default]
    OfServer,
    /// To its own file; `-` is standard output.
    Own(#[serde(with = "highball_text::exact")] PathBuf),
    /// Nowhere.
    Off,
}

/// Which clients get the details of errors in development; stricter from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum ShowDiagnosis {
    /// Every client on this machine that names no proxy.
    Local,
    /// A browser on this machine that has opened the link which the terminal shows.
    #[default]
    Link,
    /// No client.
    Off,
}

/// One address to listen on, and the protocol that its clients speak. As text, it is what the option `bind` reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The address.
    pub address: BindAddress,
    /// The protocol.
    pub protocol: BindProtocol,
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(#[serde(with = "highball_text::exact")] PathBuf),
}

/// What clients of an address speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindProtocol {
    /// HTTP/1.
    Http,
    /// The same within TLS.
    Https,
    /// FastCGI, as web servers speak it.
    FastCgi,
    /// LSAPI, as LiteSpeed's web servers speak it.
    Lsapi,
}

impl BindProtocol {
    /// All of them.
    pub(crate) const ALL: [BindProtocol; 4] =
        [BindProtocol::Http, BindProtocol::Https, BindProtocol::FastCgi, BindProtocol::Lsapi];

    /// The scheme in addresses: `fastcgi`.
    pub fn scheme(self) -> &'static str {
        match self {
            BindProtocol::Http => "http",
            BindProtocol::Https => "tls",
            BindProtocol::FastCgi => "fastcgi",
            BindProtocol::Lsapi => "lsapi",
        }
    }

    /// The name for people: `FastCGI`.
    pub fn name(self) -> &'static str {
        match self {
            BindProtocol::Http => "HTTP",
            BindProtocol::Https => "HTTPS",
            BindProtocol::FastCgi => "FastCGI",
            BindProtocol::Lsapi => "LSAPI",
        }
    }
}

impl Bind {
    /// HTTP at a TCP address.
    pub fn tcp(address: SocketAddr) -> Bind {
        Bind { address: BindAddress::Tcp(address), protocol: BindProtocol::Http }
    }

    /// HTTP at a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Bind {
        Bind { address: BindAddress::Unix(path.into()), protocol: BindProtocol::Http }
    }

    /// The TCP address, unless it is a Unix socket.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self.address {
            BindAddress::Tcp(address) => Some(address),
            BindAddress::Unix(_) => None,
        }
    }

    /// The path of the Unix socket, if it is one.
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.address {
            BindAddress::Tcp(_) => None,
            BindAddress::Unix(path) => Some(path),
        }
    }

    /// The address for people and in the log: as text, and as a URL where a browser reaches it.
    pub fn url(&self) -> String {
        match (&self.address, self.protocol) {
            (BindAddress::Tcp(address), BindProtocol::Http) => format!("http://{address}"),
            (BindAddress::Tcp(address), BindProtocol::Https) => format!("https://{address}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.protocol.scheme();
        match (&self.address, self.protocol) {
            (BindAddress::Tcp(address), BindProtocol::Http) => address.fmt(f),
            (BindAddress::Unix(path), BindProtocol::Http) => write!(f, "unix:{}", path.display()),
            (BindAddress::Tcp(address), _) => write!(f, "{scheme}://{address}"),
            (BindAddress::Unix(path), _) => write!(f, "{scheme}+unix:{}", path.display()),
        }
    }
}

/// How clients of HTTPS addresses are served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSettings {
    /// Whether a local authority issues certificates for names of this machine, and there are no others.
    pub is_local: bool,
    /// Certificates, and the keys that belong to them. The first is for clients that name no host, or a host that is in none.
    pub certificates: Vec<CertificateFiles>,
    /// Time for a handshake.
    pub handshake_timeout: Duration,
    /// Most handshakes that are computed or wait for that at a time; clients beyond it are turned away.
    pub max_handshakes: usize,
    /// Whether clients of HTTP addresses are sent to those for HTTPS.
    pub redirect: bool,
    /// For how long browsers are to use HTTPS alone (HSTS); `None`: that is left to the application.
    pub hsts: Option<Duration>,
    /// Names whose certificates are obtained from an authority; `None`: none are, and no authority is asked.
    pub acme: Option<AcmeSettings>,
}

/// Certificates that the clients of an application show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificates {
    /// The file of the authorities that have issued them; `None`: clients are asked for none.
    #[serde(with = "highball_text::exact")]
    pub authorities: Option<PathBuf>,
    /// Which clients reach the application.
    pub auth: ClientAuth,
}

/// Which clients reach an application that knows authorities of theirs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAuth {
    /// Clients with a certificate.
    #[default]
    Required,
    /// Clients without one, too.
    Optional,
    /// All: none is asked.
    Off,
}

impl ClientCertificates {
    /// Whether clients are asked for certificates.
    pub fn are_asked_for(&self) -> bool {
        self.authorities.is_some() && self.auth != ClientAuth::Off
    }

    /// Whether clients without one are turned away.
    pub fn are_required(&self) -> bool {
        self.authorities.is_some() && self.auth == ClientAuth::Required
    }
}

/// How certificates are obtained (ACME, RFC 8555).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcmeSettings {
    /// The names, each of which gets a certificate.
    pub domains: Vec<String>,
    /// Others get one when the first client asks for it.
    pub on_demand: NamesOnDemand,
    /// The authority: the URL of its directory.
    pub directory: String,
    /// E-mail addresses for the authority.
    pub contacts: Vec<String>,
    /// A file with the certificate that vouches for the authority's own server; `None`: this machine knows it.
    #[serde(with = "highball_text::exact")]
    pub authorities: Option<PathBuf>,
    /// The account that the authority knows already, which the one here is bound to.
    pub external_account: Option<ExternalAccount>,
    /// The program that makes entries in the DNS, by which the authority sees that a name is ours; `None`: it looks at the server.
    #[serde(with = "highball_text::exact")]
    pub dns_hook: Option<PathBuf>,
    /// The folder for accounts, certificates and keys.
    #[serde(with = "highball_text::exact")]
    pub state_dir: PathBuf,
    /// Whether there is an address for HTTP, where the authority can look whether a name is ours. It looks at that for HTTPS else.
    pub has_http: bool,
}

/// Names whose certificates are obtained when a client asks for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesOnDemand {
    /// These, in small letters. `*.example.org` matches one extra label.
    pub listed: Vec<String>,
    /// Path, and maybe query, that asks the application whether to issue a certificate for another name.
    pub ask: Option<String>,
}

impl NamesOnDemand {
    /// Whether there may be such names.
    pub fn are_possible(&self) -> bool {
        !self.listed.is_empty() || self.ask.is_some()
    }

    /// Whether this name, in small letters, is one without asking the application.
    pub fn lists(&self, host: &str) -> bool {
        let above = host.split_once('.').map(|(_, above)| above);
        let stands_for =
            |listed: &String| listed == host || (above.is_some() && listed.strip_prefix("*.") == above);
        self.listed.iter().any(stands_for)
    }
}

/// An account that was made with an authority before (external account binding, RFC 8555 section 7.3.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalAccount {
    /// What the authority calls it (`kid`).
    pub id: String,
    /// The file with its HMAC key, in Base64.
    #[serde(with = "highball_text::exact")]
    pub key_file: PathBuf,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateFiles {
    /// The certificate, followed by the chain to its authority.
    #[serde(with = "highball_text::exact")]
    pub certificate: PathBuf,
    /// Its key; the same file may have both.
    #[serde(with = "highball_text::exact")]
    pub key: PathBuf,
}

/// How proxies report the clients of HTTP connections: in a header of the PROXY protocol at the beginning of each connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyProtocol {
    /// Whether the text form is read.
    pub v1: bool,
    /// Whether the binary form is read.
    pub v2: bool,
    /// The proxies, besides all clients of a Unix socket.
    pub from: Vec<Network>,
}

impl ProxyProtocol {
    /// Whether each connection has to begin with a header.
    pub fn is_on(&self) -> bool {
        self.v1 || self.v2
    }
}

/// Limits on requests, connections and buffers, for all applications. Sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest request target; beyond it 414.
    pub target_bytes: usize,
    /// Largest request head (request line and header fields); beyond it 431.
    pub head_bytes: usize,
    /// Most header fields in a request; beyond it 431.
    pub header_fields: usize,
    /// How much of a request body is held in memory before it goes to a spool file.
    pub body_memory_bytes: usize,
    /// How much of a response is buffered in memory before its worker has to wait.
    pub response_buffer_bytes: usize,
    /// How much of a response goes to a spool file when a slow client would keep its worker waiting.
    pub response_spool_bytes: usize,
    /// Most open client connections; further ones wait in the backlog.
    pub connections: usize,
    /// Most requests at a time on an HTTP/2 connection.
    pub http2_streams: u32,
    /// How much all buffers together may hold.
    pub buffer_bytes: u64,
    /// How much all stored responses together may take.
    pub cache_bytes: u64,
    /// How much the messages of all hubs together may take.
    pub hub_bytes: u64,
    /// Time for a request head to arrive whole, from its first byte; beyond it 408.
    pub head_timeout: Duration,
    /// Longest pause between two pieces of a request body; beyond it 408.
    pub body_timeout: Duration,
    /// The bytes of a request body that have to come in a second, beyond the time of such a pause; 0: any number.
    pub body_bytes_per_second: u64,
    /// How long an idle keep-alive connection is kept.
    pub idle_timeout: Duration,
    /// Longest pause in which a client takes nothing of its response; beyond it the connection ends.
    pub send_timeout: Duration,
    /// Folder for spool files.
    #[serde(with = "highball_text::exact")]
    pub spool_dir: PathBuf,
    /// How much all spool files together may hold; `None`: a part of what is free in their folder.
    pub spool_bytes: Option<u64>,
}

/// Rules for static files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticFiles {
    /// Whether files of the public folder are served without asking the application.
    pub enabled: bool,
    /// Whether symbolic links are followed.
    pub follow_symlinks: bool,
}

/// The part of the memory of a machine, container or cgroup that applications may have, in percent. The rest is for the kernel, for
/// other programs, and for what is allocated before it is noticed.
pub const USABLE_PERCENT: u64 = 85;

/// How much memory something may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryBound {
    /// No limit.
    #[default]
    None,
    /// What the memory of the machine or container has room for.
    Auto,
    /// Bytes.
    Bytes(u64),
    /// A share of the memory of the machine or container, in percent.
    Share(u8),
}

impl MemoryBound {
    /// In bytes, on a machine or in a container with this memory; `None`: it has no such limit.
    pub fn bytes(self, available: u64) -> Option<u64> {
        match self {
            MemoryBound::None | MemoryBound::Auto => None,
            MemoryBound::Bytes(bytes) => Some(bytes),
            MemoryBound::Share(percent) => Some(available / 100 * u64::from(percent)),
        }
    }
}

/// The memory that processes of an application may have. It is counted from outside, and changes nothing in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimits {
    /// Each worker.
    pub worker: MemoryBound,
    /// All of them together, with the mold.
    pub app: MemoryBound,
    /// The same, beyond which the kernel kills one of them, in bytes; `None`: no limit.
    pub max: Option<u64>,
}

impl MemoryLimits {
    /// Where workers are replaced before the kernel kills one: a part of `max`, as memory is noticed after it was taken, and the
    /// kernel counts more.
    pub fn below_max(self) -> Option<u64> {
        self.max.map(|bytes| bytes / 100 * USABLE_PERCENT)
    }

    /// What all processes of the application may have together, on a machine or in a container with this memory; `None`: only
    /// the limit that all applications share.
    pub fn budget(self, available: u64) -> Option<u64> {
        self.app.bytes(available).into_iter().chain(self.below_max()).min()
    }
}

/// Process life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Time the application has to boot; beyond it the boot has failed.
    pub boot_timeout: Duration,
    /// What a new version is asked for in a restart, before clients' requests go to it.
    pub probe_path: String,
    /// Time it has to answer.
    pub probe_timeout: Duration,
    /// What each worker of a new version is asked for after that.
    pub warm_up: Vec<String>,
    /// Whether the mold loads the application, or each worker does.
    pub preload: bool,
    /// Whether the application's processes can get no more rights than their user's, by setuid programs for example.
    pub no_new_privs: bool,
    /// Whether Ruby compiles what runs often.
    pub jit: Jit,
    /// What serves the application's malloc.
    pub allocator: Allocator,
    /// Whether Highball gives Ruby's garbage collector room, and has it collect between requests.
    pub gc: bool,
    /// Whether compiled Ruby files are kept for the next boot.
    pub boot_cache: bool,
    /// Whether Highball's adapter takes the place of one of Action Cable that reaches the clients of one worker alone, if there can be
    /// several.
    pub shares_cable: bool,
    /// When a worker is promoted to mold.
    pub refork_after: ReforkAfter,
    /// How long a single worker has to have served before its mold ends; `None`: it stays.
    pub rest_mold_after: Option<Duration>,
    /// Workers that may die before they served, one after the other, until Highball gives up.
    pub max_boot_failures: u32,
}

impl Process {
    /// Whether a worker may become the mold without being asked.
    pub fn may_refork_by_itself(&self) -> bool {
        self.preload && self.refork_after == ReforkAfter::Auto
    }
}

/// Whether Ruby's just-in-time compiler is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Jit {
    /// It is off.
    Off,
    /// It is on in production where Ruby has one, and there is room for the code.
    #[default]
    Auto,
    /// It is on where Ruby has one.
    On,
}

/// What serves the malloc of an application's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allocator {
    /// jemalloc in production, unless the environment has chosen another.
    #[default]
    Auto,
    /// jemalloc.
    Jemalloc,
    /// The system's: glibc's, unless the environment has chosen another.
    System,
}

/// When a warm worker becomes the mold from which all workers are forked again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReforkAfter {
    /// Never automatically.
    #[default]
    Never,
    /// When the supervisor expects that it saves memory.
    Auto,
    /// After these numbers of requests, the first time and so on; the last one is repeated. There is at least one.
    Requests(Vec<u64>),
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// Logging.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The form of event lines on standard error.
    pub format: LogFormat,
    /// Where the access log goes, but for applications that have their own; `None`: nowhere. `-` is standard output.
    #[serde(with = "highball_text::exact")]
    pub access: Option<PathBuf>,
    /// How its lines are written.
    pub access_rules: LogRules,
}
