//! Traces: spans of the front's requests go to a collector, where one is named.

use std::error::Error;
use std::sync::Arc;

use highball_config::Settings;
use highball_link::TracesReport;
use highball_otlp::{export, Exporting};
use highball_supervisor::Launcher;
use highball_trace::{SpanCounts, SpanQueue};
use tracing::warn;

/// Why a server with a spawner exports nothing.
const CONFINED: &str = "traces are not possible where root starts Highball for applications of other users, whose server may open no \
                        connections: start Highball as the user of the application, or have the applications report their traces";

/// The exporter, and the spans that wait for it.
pub(super) struct Traces {
    pub(super) spans: Option<Arc<SpanQueue>>,
    /// Ends with the server, after the front.
    exporting: Option<Exporting>,
}

impl Traces {
    /// Begins to export, where a collector is named and this process may connect to it.
    ///
    /// # Errors
    /// What is wrong with it, or with what should vouch for it, if the option names it. Variables may be meant for applications alone.
    pub(super) fn begin(settings: &Settings, launcher: &Launcher) -> Result<Traces, Box<dyn Error>> {
        let none = Traces { spans: None, exporting: None };
        let Some(traces) = &settings.traces else { return Ok(none) };
        let spans = Arc::<SpanQueue>::default();
        let exporting = match launcher {
            Launcher::Spawner(_) => Err(CONFINED.to_owned()),
            Launcher::Direct => export(traces, Arc::clone(&spans), env!("CARGO_PKG_VERSION")),
        };
        match exporting {
            Ok(exporting) => Ok(Traces { spans: Some(spans), exporting: Some(exporting) }),
            Err(why) if traces.is_by_variable => {
                warn!(name: "traces_off", why, "there are no traces");
                Ok(none)
            }
            Err(why) => Err(format!("`otlp_endpoint`: {why}").into()),
        }
    }

    /// Exports the last spans.
    pub(super) fn end(self) {
        drop(self.exporting);
    }
}

/// What has become of the spans.
pub(super) fn report(spans: &SpanQueue) -> TracesReport {
    let SpanCounts { exported, dropped, waiting, problem } = spans.counts();
    TracesReport { exported, dropped, waiting, problem }
}
