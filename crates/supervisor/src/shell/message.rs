//! The messages between the supervisor and its Ruby processes, as closed types. See `PROTOCOL.md`.

use crate::process::spawn_journey::Step;
use highball_config::{LogFormat, SentFolder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The largest message, in bytes: one packet on the control socket.
pub(crate) const MESSAGE_BYTES: usize = 128 * 1024;

/// The most descriptors that travel beside one message.
pub(crate) const MESSAGE_DESCRIPTORS: usize = 4;

/// Messages from the supervisor to a mold.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToMold<'a> {
    /// Fork a worker and give it the four descriptors that come with this message.
    Fork {
        /// The worker's number.
        worker: u32,
        /// Its serving threads.
        threads: u16,
        /// How it writes events to the log.
        log_format: Form,
        /// Whether the worker reports exceptions to the front.
        development: bool,
        /// Whether the application may send early hints.
        early_hints: bool,
        /// The env key by which the application gets what is left of the time for its answer.
        timeout_header: Option<&'a str>,
        /// The folders of files that the application may name in a header field.
        sendfile: &'a [SentFolder],
        /// Whether Highball may promote the worker by itself: it then remembers what it begins with.
        may_refork: bool,
    },
    /// Report the Ruby heap, as it is: a collection would copy pages that are shared with the workers.
    Heap,
    /// Report the memory of the process.
    Memory,
}

/// The form of event lines, as the protocol names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// One readable line per event.
    Human,
    /// One JSON object per line.
    Json,
}

impl From<LogFormat> for Form {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Human => Form::Human,
            LogFormat::Json => Form::Json,
        }
    }
}

/// Messages from a mold to the supervisor.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromMold {
    /// A step of the spawn journey begins.
    Step { step: Step },
    /// What the application is, by its files, and the evidence; nothing of it is loaded yet.
    Found { app: String, because: String },
    /// Something will go wrong, or may, and the boot goes on.
    Warning { warning: String, remedy: String },
    /// The application is loaded: workers can be forked.
    Booted(Booted),
    /// It is not to load the application, but each worker is: workers can be forked.
    Bare { pid: i32 },
    /// The boot failed; the mold ends itself.
    Failed(Box<BootFailure>),
    /// A worker could not be forked.
    ForkFailed { worker: u32, message: String },
    /// The caller that acts as mold was asked to end: stop as after TERM. Repeats change nothing.
    Stop,
    /// Answers `heap`; `None` where Ruby's garbage collector does not report it.
    Heap { heap: Option<RubyHeap> },
    /// Answers `memory`; `None` where the kernel does not report it.
    Memory { memory: Option<OwnMemory> },
}

/// Messages from the supervisor to a worker.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// Finish what is claimed, run the hooks, exit 0.
    Drain,
    /// Say whether you can be forked from.
    MayPromote {
        /// Only if every check is passed, now and after the last request: Highball asks by itself.
        careful: bool,
    },
    /// Join the serving threads, and become a mold.
    Promote,
    /// Report the Ruby heap.
    Heap {
        /// Whether to run a full garbage collection first.
        gc: bool,
    },
    /// Report the memory of the process.
    Memory,
    /// Say where the threads are that are at a request.
    Threads {
        /// Also of those that are at no request.
        all: bool,
    },
    /// Interrupt the thread that is at this request.
    Interrupt {
        /// The number by which the front knows the request.
        ticket: u64,
    },
}

/// Messages from a worker to the supervisor.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromWorker {
    /// The worker exists; a pidfd of it comes with this message.
    Hello { worker: u32, pid: i32 },
    /// Its threads wait for requests.
    Ready,
    /// It has loaded the application, which the mold has not.
    Booted(Booted),
    /// It could not start serving, or become a mold; it ends itself.
    Failed {
        error: RubyError,
        /// Where it could not start serving.
        #[serde(default)]
        boot: Option<Box<BootFailure>>,
    },
    /// It can be forked from, as far as is known.
    Fit,
    /// It cannot be forked from. After an order to become a mold, it has joined its threads by now, and waits to be
    /// drained.
    Unfit { why: String },
    /// It is a mold, and sends a mold's messages from now on.
    Promoted,
    /// It was sent TERM: it asks to be retired, and keeps serving until it is.
    Leaving,
    /// Answers `heap`; `None` where Ruby's garbage collector does not report it.
    Heap { heap: Option<RubyHeap> },
    /// Answers `memory`; `None` where the kernel does not report it.
    Memory { memory: Option<OwnMemory> },
    /// Answers `threads`.
    Threads { threads: Vec<ThreadPlace> },
}

/// The memory of a process as it sees it, in KiB; see [`highball_proc::ProcessMemory`]. A process of another user cannot be
/// measured from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct OwnMemory {
    pub(crate) private_dirty_kib: u64,
    pub(crate) pss_kib: u64,
    pub(crate) rss_kib: u64,
}

/// The Ruby heap of a process, as its `GC.stat` has it. A worker's counters that only grow include those of its mold
/// before the fork.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RubyHeap {
    /// Slots that hold an object, garbage that was not collected yet included.
    pub live_slots: u64,
    /// Slots without one.
    pub free_slots: u64,
    /// Slots of the pages that hold at least one object. Ruby can only release pages that hold none.
    pub page_slots: u64,
    /// Pages of the heap, empty ones that were not released included.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Objects that were ever allocated.
    pub total_allocated_objects: u64,
    /// Objects that were ever collected.
    pub total_freed_objects: u64,
    /// Bytes allocated by malloc since the last collection.
    pub malloc_increase_bytes: u64,
    /// Collections.
    pub gc_count: u64,
    /// Those of all objects.
    pub major_gc_count: u64,
    /// Time that collections took, in ms.
    pub gc_time_ms: u64,
}

/// A way in which Highball tunes Ruby, as a mold reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// What is on: `YJIT`.
    #[serde(default)]
    pub name: Option<String>,
    /// Why it is off.
    #[serde(default)]
    pub off: Option<String>,
    /// Whether this Ruby does not have it.
    #[serde(default)]
    pub is_missing: bool,
}

impl Tuning {
    /// Of the compiler: `YJIT on`, `YJIT off: jit = off`.
    pub fn of_compiler(&self) -> String {
        let on = if self.name.is_some() { " on" } else { "" };
        self.words("YJIT off") + on
    }

    /// Of the collector: what Highball does, or `as Ruby has it: gc = off`.
    pub fn of_collector(&self) -> String {
        self.words("as Ruby has it")
    }

    /// Of the allocator: `jemalloc 5.3.1`, or `the system's: allocator = system`.
    pub fn of_allocator(&self) -> String {
        self.words("the system's")
    }

    /// Of the boot cache: `1340 of 1347 files`, or `off: boot_cache = off`.
    pub fn of_boot_cache(&self) -> String {
        self.words("off")
    }

    /// What is on, or `off` and why.
    fn words(&self, off: &str) -> String {
        match (&self.name, &self.off) {
            (Some(name), _) => name.clone(),
            (None, Some(why)) => format!("{off}: {why}"),
            (None, None) => off.into(),
        }
    }
}

/// What a mold reports about the application it has loaded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Booted {
    /// Process id of the mold.
    pub pid: i32,
    /// The Ruby version, for example `3.1.2`; `None` for a static site.
    pub ruby: Option<String>,
    /// Ruby's compiler; `None` for a static site.
    #[serde(default)]
    pub jit: Option<Box<Tuning>>,
    /// Ruby's garbage collector, as Highball has it work; `None`: as for `jit`.
    #[serde(default)]
    pub gc: Option<Box<Tuning>>,
    /// What serves its malloc; `None`: as for `jit`.
    #[serde(default)]
    pub allocator: Option<Box<Tuning>>,
    /// The cache of compiled Ruby files; `None`: as for `jit`.
    #[serde(default)]
    pub boot_cache: Option<Box<Tuning>>,
    /// The Rack release, for example `2.2.6`; `None` for a static site.
    pub rack: Option<String>,
    /// The framework and its version, for example `Rails 6.1.7` or `Rack`.
    pub framework: String,
    /// The folder of static files, if the application has one.
    #[serde(default, with = "highball_text::exact")]
    pub public: Option<PathBuf>,
    /// Response headers that the application adds to its static files.
    #[serde(default)]
    pub public_headers: BTreeMap<String, String>,
    /// Where the assets of a Rails application are.
    #[serde(default)]
    pub assets: Option<Box<Assets>>,
    /// Whether the application can be booted again: not if it was given as an object.
    pub restartable: bool,
    /// What it does that will make trouble later.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// What an application reports about its assets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Assets {
    /// The path that theirs begin with, for example `/assets`.
    pub prefix: String,
    /// What answers for source files there, in development.
    pub pipeline: Option<AssetPipeline>,
}

/// An asset pipeline, and which files it gives out as they are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AssetPipeline {
    /// How names get their digests.
    pub scheme: DigestScheme,
    /// What goes into the digests beside the contents.
    pub version: String,
    /// Where files are looked for, in this order.
    #[serde(with = "highball_text::exact")]
    pub folders: Vec<PathBuf>,
    /// The content types that it knows, by extension (without the dot).
    pub types: BTreeMap<String, String>,
    /// Files of which extensions it gives out as they are, and on which condition.
    pub plain: BTreeMap<String, PlainAsset>,
}

/// How an asset pipeline makes digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestScheme {
    /// As Sprockets does.
    Sprockets,
    /// As Propshaft does.
    Propshaft,
}

/// When an asset pipeline gives a file out as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlainAsset {
    /// Only if it is UTF-8 without a byte order mark and without carriage returns.
    pub text: bool,
    /// Only if it contains none of these.
    pub unless: Vec<String>,
}

/// Something that did not keep the application from booting, and that will make trouble later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its short name, which never changes.
    pub cause: String,
    /// What was found.
    pub what: String,
    /// The file that it is about.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// The command that does it.
    pub command: Option<String>,
}

impl Finding {
    /// `path:line`, if it is about a place.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}

/// Why a boot failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BootFailure {
    /// The step of the spawn journey that failed.
    pub step: Step,
    /// What went wrong, and what to do.
    #[serde(flatten)]
    pub account: Account,
}

/// What went wrong, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// What went wrong.
    pub error: RubyError,
    /// The exceptions that led to it, each the cause of the one before.
    #[serde(default)]
    pub causes: Vec<RubyError>,
    /// The short name of the cause; see `lib/highball/causes.rb`.
    pub cause: String,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// The command that does it.
    pub command: Option<String>,
    /// What remedy and command quote of the application: paths and names, which may be secret. The rest is our own.
    #[serde(default)]
    pub quoted: Vec<String>,
    /// What was loaded, with versions.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The last lines that were printed while it booted.
    #[serde(default)]
    pub output: Vec<String>,
}

impl BootFailure {
    /// A failure that Ruby did not report itself.
    pub(crate) fn of_ours(step: Step, cause: &str, message: String, remedy: String) -> BootFailure {
        BootFailure { step, account: Account::of_ours(cause, message, remedy) }
    }

    /// The same with the command that fixes it.
    pub(crate) fn with_command(self, command: &str) -> BootFailure {
        BootFailure { account: self.account.with_command(command), ..self }
    }
}

impl Account {
    /// Of what Ruby did not report itself.
    pub(crate) fn of_ours(cause: &str, message: String, remedy: String) -> Account {
        Account {
            error: RubyError::of_ours(message),
            causes: Vec::new(),
            cause: cause.into(),
            remedy: Some(remedy),
            command: None,
            quoted: Vec::new(),
            versions: BTreeMap::new(),
            output: Vec::new(),
        }
    }

    /// The same with the command that fixes it.
    pub(crate) fn with_command(mut self, command: &str) -> Account {
        self.command = Some(command.into());
        self
    }
}

/// Where a thread is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// Its name: `worker 1 thread 2`.
    pub name: String,
    /// The number by which the front knows the request that it is at; 0: none.
    #[serde(default)]
    pub ticket: u64,
    /// The number of its native thread, as `gettid` returns it.
    #[serde(default)]
    pub tid: Option<i32>,
    /// `run`, `sleep` or `sleep_forever`.
    #[serde(default)]
    pub state: Option<String>,
    /// The innermost file of the application.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// The calls that led to where it is, innermost first.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

/// An exception, as Ruby reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RubyError {
    /// Its class, for example `SyntaxError`; empty where the error is not Ruby's.
    pub class: String,
    /// Its message, possibly of several lines.
    pub message: String,
    /// The file it points to.
    #[serde(default)]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The calls that led to it, innermost first; cut after some dozens.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

impl RubyError {
    /// An error that Ruby did not raise itself.
    pub(crate) fn of_ours(message: String) -> Self {
        RubyError { message, ..RubyError::default() }
    }

    /// The innermost calls, at most `lines`, one a line; `None` if there are none.
    pub(crate) fn calls(&self, lines: usize) -> Option<String> {
        let first = &self.backtrace[..self.backtrace.len().min(lines)];
        (!first.is_empty()).then(|| first.join("\n"))
    }

    /// `path:line`, if the error points to a place.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        })
    }
}

impl fmt::Display for RubyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.class.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.class, self.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_the_form_of_the_protocol() {
        let fork = ToMold::Fork {
            worker: 3,
            threads: 5,
            log_format: Form::Json,
            development: false,
            early_hints: true,
            timeout_header: None,
            sendfile: &[SentFolder { prefix: None, folder: "storage".into() }],
            may_refork: true,
        };
        assert_eq!(
            serde_json::to_string(&fork).unwrap(),
            r#"{"type":"fork","worker":3,"threads":5,"log_format":"json","development":false,"early_hints":true,"timeout_header":null,"sendfile":[{"prefix":null,"folder":"storage"}],"may_refork":true}"#
        );
        let drain = serde_json::to_string(&ToWorker::Drain).unwrap();
        assert_eq!(drain, r#"{"type":"drain"}"#);
        let promote = [ToWorker::MayPromote { careful: true }, ToWorker::Promote];
        let promote = serde_json::to_string(&promote).unwrap();
        assert_eq!(promote, r#"[{"type":"may_promote","careful":true},{"type":"promote"}]"#);
        let question = r#"{"type":"heap","gc":true}"#;
        assert_eq!(serde_json::to_string(&ToWorker::Heap { gc: true }).unwrap(), question);
        assert_eq!(serde_json::to_string(&ToMold::Heap).unwrap(), r#"{"type":"heap"}"#);
    }

    #[test]
    fn memory_is_asked_for_and_reported() {
        assert_eq!(serde_json::to_string(&ToMold::Memory).unwrap(), r#"{"type":"memory"}"#);
        assert_eq!(serde_json::to_string(&ToWorker::Memory).unwrap(), r#"{"type":"memory"}"#);
        let text = r#"{"type":"memory","memory":{"private_dirty_kib":1,"pss_kib":2,"rss_kib":3}}"#;
        let memory = Some(OwnMemory { private_dirty_kib: 1, pss_kib: 2, rss_kib: 3 });
        assert_eq!(serde_json::from_str::<FromWorker>(text).unwrap(), FromWorker::Memory { memory });
        let silent = r#"{"type":"memory","memory":null}"#;
        assert_eq!(serde_json::from_str::<FromMold>(silent).unwrap(), FromMold::Memory { memory: None });
    }

    #[test]
    fn a_heap_is_reported_whole_or_not_at_all() {
        let silent = serde_json::from_str::<FromWorker>(r#"{"type":"heap","heap":null}"#).unwrap();
        assert_eq!(silent, FromWorker::Heap { heap: None });
        let heap = RubyHeap { live_slots: 7, gc_time_ms: 3, ..RubyHeap::default() };
        let text = format!(r#"{{"type":"heap","heap":{}}}"#, serde_json::to_string(&heap).unwrap());
        assert_eq!(serde_json::from_str::<FromMold>(&text).unwrap(), FromMold::Heap { heap: Some(heap) });
        for invalid in
            [text.replace("live_slots", "lively"), text.replace(":7", ":-7"), text.replace(":7", ":0.7")]
        {
            assert!(serde_json::from_str::<FromWorker>(&invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn a_failed_boot_is_understood() {
        let text = r#"{"type":"failed","step":"load_app","remedy":null,"cause":"missing_constant","command":null,
            "error":{"class":"NameError","message":"no","file":"a.rb","line":3,"backtrace":["a.rb:3"]}}"#;
        let FromMold::Failed(failure) = serde_json::from_str(text).unwrap() else {
            panic!("not a failure");
        };
        assert_eq!(failure.step, Step::LoadApp);
        assert_eq!(failure.account.error.place().as_deref(), Some("a.rb:3"));
        assert_eq!(failure.account.error.to_string(), "NameError: no");
    }

    #[test]
    fn unknown_types_are_refused() {
        assert!(serde_json::from_str::<FromMold>(r#"{"type":"dance"}"#).is_err());
        assert!(serde_json::from_str::<FromWorker>(r#"{"type":"step","step":"load_app"}"#).is_err());
    }
}
