//! What front, supervisor and binary tell each other, declared once. Front and supervisor do not know each other: the binary
//! passes commands and events on.
//!
//! In reading order:
//!
//! - [`FrontCommand`], [`AppCommand`]: commands for the front (`to_front`);
//! - [`FrontEvent`], [`FrontAppEvent`]: events from the front (`to_supervisor`); [`RequestFailure`]: a request that the front asks
//!   a diagnosis for;
//! - [`ServerReport`], [`AppReport`], [`WorkerReport`]: how a server is doing (`report`), with [`Figures`] for metrics and
//!   [`KernelLimitsReport`]; [`RunningRequests`]: its requests at this moment; [`SlowRequestReport`]: where the time of slow ones went;
//! - [`HubAddress`]: where an application's processes publish messages; [`HubSequence`]: how these are numbered;
//! - [`Booted`]: what an application reports when it has booted; [`Step`]: the steps until then;
//! - [`MaintenanceNotice`]: what visitors get in place of an application, and who passes;
//! - [`RubyHeap`], [`RubyError`], [`Call`], [`ThreadPlace`]: what a Ruby process reports about itself;
//! - [`Diagnosis`]: why a boot or a request failed, and what to do about it.

/// The target of log events that a terminal leaves out, because the banner or a later event says the same.
pub const DETAIL: &str = "detail";

mod boot;
mod diagnosis;
mod figures;
mod hub_address;
mod kernel_limits;
mod maintenance;
mod report;
mod request_failure;
mod ruby;
mod running;
mod slow_request;
mod step;
mod table;
mod to_front;
mod to_supervisor;

pub use boot::{AssetDigest, AssetPipeline, Assets, Booted, Finding, PlainAsset, RubyRuntime, Tuning};
pub use diagnosis::{Diagnosis, Excerpt, FailedRequest};
pub use figures::{Exemplar, Figures, RequestCounts, Times, VersionFigures, METHODS};
pub use hub_address::{HubAddress, HubSequence, HUB_SECRET_BYTES};
pub use kernel_limits::{KernelLimitsReport, CPU_MAX, MEMORY_MAX};
pub use maintenance::{MaintenanceNotice, NOTICE_BYTES};
pub use report::{
    AppProcesses, AppReport, AppRequests, Availability, CacheReport, CertificateReport, CompanionProcess,
    CrashLoopReport, DomainReport, FrontReport, HubReport, MachineMemory, MaintenanceReport, MemoryReport,
    MoldReport, OverrunReport, ReforkReport, RequestTimesReport, RestartCount, RestartReport, RolloutReport,
    ServerProcesses, ServerReport, ServerRequests, SessionsReport, SizingReport, SupervisorReport, TlsReport,
    TracesReport, UpgradeReport, VersionReport, WorkerProcess, WorkerReport, WorkerRequests,
};
pub use request_failure::{FailureCause, QueueLoad, RawRequest, RequestFailure};
pub use ruby::{Call, RubyError, RubyHeap, ThreadPlace};
pub use running::{RequestStage, RunningRequest, RunningRequests};
pub use slow_request::{SlowKind, SlowPartReport, SlowRequestReport};
pub use step::Step;
pub use table::{Column, Fact};
pub use to_front::{AppCommand, FrontCommand, NewWorker, Rollout};
pub use to_supervisor::{FrontAppEvent, FrontEvent, Overrun, ReportedLoad, LONGEST_SLOW_START};
