//! The front on its thread.

use highball_link::{FrontCommand, FrontEvent};
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;

use highball_config::Settings;
use highball_front as front;
use highball_front::{Developers, Opening};
use highball_trace::SpanQueue;
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::EXIT_TIMEOUT;

/// The front on its thread.
pub(super) struct FrontThread {
    thread: std::thread::JoinHandle<()>,
    ended: std::sync::mpsc::Receiver<front::Unanswered>,
}

pub(super) fn start_front(
    settings: Arc<Settings>,
    developers: Developers,
    tls: Option<Arc<front::Tls>>,
    entrances: front::Entrances,
    opening: Opening,
    channels: (mpsc::Receiver<FrontCommand>, mpsc::UnboundedSender<FrontEvent>),
    spans: Option<Arc<SpanQueue>>,
) -> io::Result<FrontThread> {
    let (end, ended) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let unanswered = front::run(settings, developers, tls, entrances, opening, channels, spans);
        let unanswered = unanswered.unwrap_or_else(|error| {
            error!(name: "front_failed", %error, "cannot start the front's event loop");
            front::Unanswered::default()
        });
        let _ = end.send(unanswered); // the receiver is gone when the run has ended first
    };
    let thread = std::thread::Builder::new().name("front".into()).spawn(run)?;
    Ok(FrontThread { thread, ended })
}

impl FrontThread {
    /// Has the front end, and waits for that; but not for ever.
    pub(super) fn end(self, commands: &mpsc::Sender<FrontCommand>) -> front::Unanswered {
        // (Commands that were asked at the end have senders, too.) An error: it has ended, or hangs.
        let _ = commands.try_send(FrontCommand::End);
        let ended = self.ended.recv_timeout(EXIT_TIMEOUT);
        if let Err(RecvTimeoutError::Timeout) = ended {
            warn!(name: "front_too_slow", "the front did not end in time");
        } else if self.thread.join().is_err() {
            error!(name: "front_panicked", "the front has panicked");
        }
        ended.unwrap_or_default()
    }
}
