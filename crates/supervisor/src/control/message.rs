//! The messages between the supervisor and its Ruby processes, as closed types. See `PROTOCOL.md`.

use crate::facts::boot_failure::BootFailure;
use highball_config::{LogFormat, ProfileMode, SentFolder};
use highball_link::{Booted, RubyError, RubyHeap, SlowKind, Step, ThreadPlace};
use serde::{Deserialize, Serialize};

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
        /// How it writes events to the log.
        log_format: Form,
        /// Whether the worker reports exceptions to the front.
        development: bool,
        /// Whether the application may send early hints.
        early_hints: bool,
        /// The env key by which the application gets what is left of the time for its answer.
        timeout_header: Option<&'a str>,
        /// Whether requests may come with the certificate of a client.
        client_certificates: bool,
        /// From which time on a request is slow, and reported with where its time goes; `None`: none is.
        slow_request_ms: Option<u64>,
        /// The folders of files that the application may name in a header field.
        sendfile: &'a [SentFolder],
        /// Whether some requests run on fibers.
        fibers: bool,
        /// The class that schedules them, in the place of Highball's.
        fiber_scheduler: Option<&'a str>,
        /// Where the worker publishes messages.
        hub: Option<&'a str>,
        /// Whether the worker writes that into a file: other processes of its user cannot ask a server of another user.
        hub_file: bool,
        /// Whether Highball may refork automatically: the worker then remembers what it begins with.
        may_refork: bool,
    },
    /// Fork a companion. Four descriptors come with this message: a file with the [`ForkedCompanion`], the control socket and the
    /// output of the process that is to watch over it, and the program that this is to run.
    ///
    /// [`ForkedCompanion`]: crate::process::companion_process::ForkedCompanion
    ForkCompanion {
        /// The companion's number.
        companion: u32,
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
    /// The heap is laid out, after the fork of this worker, the first.
    LaidOut { worker: u32 },
    /// A companion could not be forked.
    CompanionNotForked { companion: u32, message: String },
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
    /// Say whether you can be forked from. `careful`: only if every check is passed, now and after the last request.
    MayPromote { careful: bool },
    /// Join the serving threads, and become a mold.
    Promote,
    /// Report the Ruby heap, with `gc` after a full garbage collection.
    Heap { gc: bool },
    /// Report the memory of the process.
    Memory,
    /// Say where the threads are that are at a request, those at the requests with these tickets `first`; or where `all` are.
    Threads { all: bool, first: Vec<u64> },
    /// Sample what your threads do, and write the result into the file that comes with this message.
    Profile {
        /// What is sampled.
        mode: ProfileMode,
        /// For how long.
        milliseconds: u64,
        /// Whether samples are grouped by the paths of requests.
        by_path: bool,
    },
    /// End the profile now.
    EndProfile,
    /// Free the place of the request that the front knows by this number: its answer goes on.
    LeavePlace { ticket: u64 },
    /// Interrupt the thread that is at the request that the front knows by this number.
    Interrupt { ticket: u64 },
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
    /// Answers `profile`: the file has the result, or this is why not.
    Profile { problem: Option<String> },
    /// Where the time of a slow request goes.
    Slow(SlowRequest),
}

/// A slow request, as its worker reports it: anything can stand in it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct SlowRequest {
    /// The number by which the front knows the request.
    pub(crate) ticket: u64,
    /// Method and path.
    pub(crate) request: String,
    /// How long it has taken.
    pub(crate) ms: u64,
    /// Whether it has ended.
    pub(crate) ended: bool,
    /// How often its thread was looked at.
    pub(crate) samples: u64,
    /// Where most of the time went.
    pub(crate) parts: Vec<SlowPart>,
    /// The time of all others.
    pub(crate) other_ms: u64,
}

/// A part of the time of a slow request.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct SlowPart {
    pub(crate) ms: u64,
    /// What its thread did.
    pub(crate) what: SlowKind,
    /// Where: in the application, if any of its code was called.
    pub(crate) file: String,
    pub(crate) line: u32,
    /// The method.
    pub(crate) label: String,
    /// What that called.
    pub(crate) below: Option<String>,
}

/// The memory of a process as it sees it, in KiB; see [`highball_proc::ProcessMemory`]. A process of another user cannot be
/// measured from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct OwnMemory {
    pub(crate) private_dirty_kib: u64,
    pub(crate) pss_kib: u64,
    pub(crate) rss_kib: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_the_form_of_the_protocol() {
        let fork = ToMold::Fork {
            worker: 3,
            log_format: Form::Json,
            development: false,
            early_hints: true,
            timeout_header: None,
            client_certificates: false,
            slow_request_ms: Some(2000),
            sendfile: &[SentFolder { prefix: None, folder: "storage".into() }],
            fibers: true,
            fiber_scheduler: None,
            hub: Some("name/1/key"),
            hub_file: false,
            may_refork: true,
        };
        assert_eq!(
            serde_json::to_string(&fork).unwrap(),
            r#"{"type":"fork","worker":3,"log_format":"json","development":false,"early_hints":true,"timeout_header":null,"client_certificates":false,"slow_request_ms":2000,"sendfile":[{"prefix":null,"folder":"storage"}],"fibers":true,"fiber_scheduler":null,"hub":"name/1/key","hub_file":false,"may_refork":true}"#
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
