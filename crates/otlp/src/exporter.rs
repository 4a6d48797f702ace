//! The thread that exports spans. No request waits for it: while the collector is away, slow or refusing, spans wait in a queue
//! that drops what has no room.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highball_config::TraceSettings;
use highball_trace::{export_request, Batch, SpanQueue};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::collector::{Collector, Refused};

const NAME: &str = "traces";
/// How long spans wait for others that are exported with them.
const COLLECT_TIME: Duration = Duration::from_secs(1);
/// The wait after a first failure, and the longest one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Time after which a batch is dropped that the collector does not take.
const BATCH_TIME: Duration = Duration::from_secs(60);
/// Time for the last spans at the end of the server.
const LAST_TIME: Duration = Duration::from_secs(2);
/// Time for the end of the thread, beside that.
const END_TIME: Duration = Duration::from_secs(1);

/// Spans are exported until this is dropped.
#[derive(Debug)]
pub struct Exporting {
    /// Dropping it ends the thread.
    end: Option<oneshot::Sender<()>>,
    /// Its other end is dropped when the thread has ended.
    ended: Receiver<()>,
}

impl Drop for Exporting {
    /// Waits for the last spans, but not for long.
    fn drop(&mut self) {
        self.end = None;
        let _ = self.ended.recv_timeout(LAST_TIME + END_TIME);
    }
}

/// Begins to export what is added to the queue. `version` is this program's.
///
/// # Errors
/// What is wrong with the settings, or why there is no thread.
pub fn export(
    settings: &TraceSettings,
    spans: Arc<SpanQueue>,
    version: &'static str,
) -> Result<Exporting, String> {
    let collector = Collector::new(settings)?;
    let (endpoint, resource) = (settings.endpoint.clone(), settings.resource.clone());
    let mut exporter = Exporter { collector, endpoint, resource, version, spans, unsent: None, outage: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (end, end_asked) = oneshot::channel();
    let (has_ended, ended) = sync_channel(0);
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = end_asked => {}
                () = exporter.run() => {}
            }
            exporter.finish().await;
        });
        runtime.shutdown_background(); // a name that is being looked up is not waited for
        drop::<SyncSender<()>>(has_ended);
    };
    thread::Builder::new().name(NAME.into()).spawn(run).map_err(|error| error.to_string())?;
    Ok(Exporting { end: Some(end), ended })
}

struct Exporter {
    collector: Collector,
    endpoint: String,
    resource: Vec<(String, String)>,
    version: &'static str,
    spans: Arc<SpanQueue>,
    /// What is being sent: spans that were written for the collector, and their number.
    unsent: Option<(Bytes, u64)>,
    /// The collector takes nothing: the number of spans that had been dropped before.
    outage: Option<u64>,
}

impl Exporter {
    async fn run(&mut self) {
        loop {
            self.spans.begun.notified().await;
            tokio::select! {
                () = sleep(COLLECT_TIME) => {}
                () = self.spans.full.notified() => {}
            }
            // What comes meanwhile waits for others again.
            for _ in 0..self.spans.batches() {
                self.take();
                self.deliver().await;
            }
            if self.spans.batches() > 0 {
                self.spans.begun.notify_one();
            }
        }
    }

    /// Takes a batch, unless one is unsent.
    fn take(&mut self) {
        if self.unsent.is_some() {
            return;
        }
        if let Some(Batch { bytes, spans }) = self.spans.take() {
            let message = export_request(&self.resource, self.version, &bytes);
            self.unsent = Some((self.collector.body(message), spans));
        }
    }

    /// Sends what is unsent, and tries again while the collector may take it later.
    async fn deliver(&mut self) {
        let began = Instant::now();
        let mut wait = FIRST_WAIT;
        while let Some(after) = self.send().await {
            if began.elapsed() + after.unwrap_or(wait) > BATCH_TIME {
                return self.give_up();
            }
            // Up to a quarter more, so that not all servers come back at once.
            sleep(after.unwrap_or(wait).mul_f64(1.0 + fastrand::f64() / 4.0)).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Sends what is unsent once. `Some`: it stays unsent, and may be sent again, after this time if one is named.
    async fn send(&mut self) -> Option<Option<Duration>> {
        let (body, spans) = self.unsent.clone()?;
        match self.collector.send(body).await {
            Ok(refused) => {
                let refused = refused.min(spans);
                self.unsent = None;
                self.spans.note_dropped(refused);
                self.spans.note_exported(spans - refused);
                self.note_recovery();
                None
            }
            Err(Refused::ForNow(why, after)) => {
                self.note_outage(why);
                Some(after)
            }
            Err(Refused::ForGood(why)) => {
                self.note_outage(why);
                self.give_up();
                None
            }
        }
    }

    fn give_up(&mut self) {
        if let Some((_, spans)) = self.unsent.take() {
            self.spans.note_dropped(spans);
        }
    }

    /// One line for each outage, however long it is.
    fn note_outage(&mut self, why: String) {
        if self.outage.is_none() {
            self.outage = Some(self.spans.counts().dropped);
            warn!(
                name: "traces_not_taken",
                why,
                endpoint = self.endpoint,
                "the collector does not take traces; requests are not affected"
            );
        }
        self.spans.note_problem(why);
    }

    fn note_recovery(&mut self) {
        if let Some(before) = self.outage.take() {
            let dropped = self.spans.counts().dropped - before;
            info!(name: "traces_taken", dropped, "the collector takes traces again");
        }
    }

    /// Sends the last spans, as far as there is time.
    async fn finish(&mut self) {
        let rest = async {
            loop {
                self.take();
                if self.unsent.is_none() || self.send().await.is_some() {
                    break;
                }
            }
        };
        let _ = timeout(LAST_TIME, rest).await; // what is lost is logged below
        let lost = self.spans.counts().waiting + self.unsent.take().map_or(0, |(_, spans)| spans);
        if lost > 0 {
            warn!(name: "traces_lost", spans = lost, "the last traces were not exported: the collector has not taken them");
        }
    }
}
