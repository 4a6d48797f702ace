//! `/events`: the dashboard's report once a second, as server-sent events. All streams send the same bytes, and the report is
//! made once for all of them, and only while there are some. A stream takes no place of a health check: their number has a
//! separate limit, beyond which an older one ends for a new one ([`Callers`]). One whose client does not read ends, too.

use super::{dashboard, Sources};
use crate::control::callers::{CallerSource, Callers};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Streams at a time.
const STREAMS: usize = 16;
/// Time from one report to the next.
const EVERY: Duration = Duration::from_secs(1);
/// Time for a client to take a report.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// How long a stream lasts. A browser that still shows the page opens another one.
const LIFE: Duration = Duration::from_secs(600);
/// What a client may send on a stream: it has nothing to say.
const UNWANTED_BYTES: usize = 1024;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\
x-content-type-options: nosniff\r\nx-accel-buffering: no\r\nconnection: close\r\n\r\nretry: 2000\n\n";

/// A report, as it is sent; `None`: there is none yet.
type Event = Option<Arc<str>>;

/// All streams.
#[derive(Debug)]
pub(crate) struct Streams {
    followers: Callers,
    events: watch::Sender<Event>,
    /// Whether reports are made at the moment.
    are_made: Mutex<bool>,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            followers: Callers::new("dashboards", STREAMS),
            events: watch::Sender::new(None),
            are_made: Mutex::default(),
        }
    }
}

/// Sends reports to this client until it leaves, does not read, has had its time, or another has its place. Its browser opens
/// another one then.
pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    source: CallerSource,
    sources: &Sources,
) {
    let streams = &sources.streams;
    let follower = streams.followers.add(source);
    follower.has_asked();
    let mut events = streams.events.subscribe();
    streams.make(sources);
    tokio::select! {
        _ = timeout(LIFE, send(&mut stream, &mut events)) => {} // its time is over
        () = follower.dismissed() => {}
    }
}

/// Ends with an error when the client has left, or does not read.
async fn send(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    events: &mut watch::Receiver<Event>,
) -> std::io::Result<()> {
    timeout(WRITE_TIME, stream.write_all(HEAD)).await??;
    let mut unwanted = 0;
    loop {
        let mut bytes = [0; 64];
        let event = tokio::select! {
            changed = events.changed() => {
                changed.map_err(std::io::Error::other)?;
                events.borrow_and_update().clone()
            }
            read = stream.read(&mut bytes) => {
                unwanted += read?;
                match unwanted {
                    1..UNWANTED_BYTES => continue,
                    _ => return Ok(()), // it has left, or is no browser
                }
            }
        };
        if let Some(event) = event {
            timeout(WRITE_TIME, stream.write_all(event.as_bytes())).await??;
        }
    }
}

impl Streams {
    /// Has reports made, for as long as there are streams.
    fn make(&self, sources: &Sources) {
        let mut are_made = self.are_made.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *are_made, true) {
            tokio::spawn(make_all(sources.clone()));
        }
    }

    /// Whether there are no more streams. Then reports are not made any more.
    fn are_over(&self) -> bool {
        let mut are_made = self.are_made.lock().unwrap_or_else(PoisonError::into_inner);
        *are_made = self.events.receiver_count() > 0;
        !*are_made
    }
}

async fn make_all(sources: Sources) {
    while !sources.streams.are_over() {
        let report = dashboard::report(&sources).await;
        sources.streams.events.send_replace(Some(format!("data: {report}\n\n").into()));
        sleep(EVERY).await;
    }
    sources.streams.events.send_replace(None);
}
