//! What a supervisor is built from.

use crate::app_output::OutputSink;
use crate::core::config::Purpose;
use crate::core::server::TURN;
use crate::core::{AppConfig, Source};
use crate::process::launcher::Launcher;
use crate::process::mold::MoldSource;
use highball_config::{App, Settings, Threads};
use highball_link::HubAddress;
use highball_ring::Geometry;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

/// Applications that boot at a time: more of them than there are processors would only take longer, and together longer
/// than each may.
pub(super) fn boots_at_a_time() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).max(2)
}

/// How long it takes at most until the last of these applications begins to boot.
pub fn time_for_turns(apps: usize) -> Duration {
    TURN * u32::try_from(apps / boots_at_a_time()).unwrap_or(u32::MAX)
}

/// What a supervisor is built from.
pub struct Blueprint {
    /// The resolved settings.
    pub settings: Arc<Settings>,
    /// The applications.
    pub apps: Vec<AppBlueprint>,
    /// What they are booted for.
    pub purpose: Purpose,
    /// Where the output of other users' processes goes.
    pub output: OutputSink,
    /// Who starts and signals processes.
    pub launcher: Launcher,
    /// Where processes of applications publish messages, if they can.
    pub hub: Option<Arc<HubAddress>>,
}

/// What the supervisor of an application is built from.
#[derive(Debug)]
pub struct AppBlueprint {
    /// The application.
    pub app: Arc<App>,
    /// Where its mold comes from.
    pub source: MoldSource,
    /// The size of each worker's ring.
    pub geometry: Geometry,
    /// Whether the server goes on although it does not boot: while it is served ([`Purpose::Serve`]), even where it is
    /// the only one; where it is to be served in the place of another process ([`Purpose::Succeed`]), only where there
    /// are others.
    pub may_fail: bool,
}

impl AppBlueprint {
    /// What the core knows of it.
    pub(super) fn config(&self, settings: &Settings) -> AppConfig {
        config(&self.app, &self.source, self.may_fail, settings)
    }
}

/// How many threads a worker counts for where the number of workers follows the load. Of the default range it is the smaller
/// number: a small database pool may keep a worker from growing, and too few workers would make requests queue.
fn counted_threads(threads: Threads) -> u16 {
    match threads.are_default {
        true => threads.least,
        false => threads.most,
    }
}

/// What the core knows of an application's configuration.
pub(super) fn config(app: &App, source: &MoldSource, may_fail: bool, settings: &Settings) -> AppConfig {
    AppConfig {
        name: app.name.clone(),
        source: match source {
            MoldSource::Folder { .. } => Source::Folder,
            MoldSource::Site => Source::Site,
            MoldSource::Caller(_) => Source::Caller,
        },
        has_fault: app.fault.is_some(),
        folder: app.folder.clone(),
        link: app.link.clone(),
        is_development: app.is_development(),
        workers: app.workers,
        pool: app.pool,
        threads: counted_threads(app.threads),
        prestart: app.prestart,
        preload: app.process.preload,
        boot_timeout: app.process.boot_timeout,
        probe_timeout: app.process.probe_timeout,
        probe_path: app.process.probe_path.clone(),
        drain_timeout: settings.drain_timeout,
        max_boot_failures: app.process.max_boot_failures,
        refork_after: app.process.refork_after.clone(),
        rest_mold_after: app.rest_mold_after(),
        may_fail,
        companions: app.companions.iter().cloned().map(Arc::new).collect(),
    }
}
