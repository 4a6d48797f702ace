//! `/events`: what the dashboard shows, once a second, as server-sent events. All streams of a page send the same bytes. What is
//! shown is looked at once for all of them, and only while there are some. A stream takes no place of a health check: their number has a
//! separate limit, beyond which an older one ends for a new one ([`Callers`]). One whose client does not read ends, too.

use super::dashboard::{self, View};
use super::Sources;
use crate::control::callers::{CallerSource, Callers};
use crate::status::overview::rates::History;
use std::collections::BTreeMap;
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

/// The last event of each page that is followed.
type Events = Arc<BTreeMap<View, String>>;

/// All streams.
#[derive(Debug)]
pub(crate) struct Streams {
    followers: Callers,
    events: watch::Sender<Events>,
    followed: Mutex<Followed>,
}

/// What is followed at the moment.
#[derive(Debug, Default)]
struct Followed {
    /// The number of streams of each page.
    pages: BTreeMap<View, usize>,
    /// Whether events are made.
    are_made: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            followers: Callers::new("dashboards", STREAMS),
            events: watch::Sender::new(Events::default()),
            followed: Mutex::default(),
        }
    }
}

/// Sends reports to this client until it leaves, does not read, has had its time, or another has its place. Its browser opens
/// another one then.
pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    source: CallerSource,
    view: View,
    sources: &Sources,
) {
    let streams = &sources.streams;
    let follower = streams.followers.add(source);
    follower.has_asked();
    let mut events = streams.events.subscribe();
    streams.begin(view, sources);
    tokio::select! {
        _ = timeout(LIFE, send(&mut stream, &mut events, view)) => {} // its time is over
        () = follower.dismissed() => {}
    }
    streams.end(view);
}

/// Ends with an error when the client has left, or does not read.
async fn send(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    events: &mut watch::Receiver<Events>,
    view: View,
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
        // None: it is of a moment before this stream began.
        if let Some(event) = event.get(&view) {
            timeout(WRITE_TIME, stream.write_all(event.as_bytes())).await??;
        }
    }
}

impl Streams {
    /// Has events of this page made until [`Streams::end`].
    fn begin(&self, view: View, sources: &Sources) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        *followed.pages.entry(view).or_default() += 1;
        if !std::mem::replace(&mut followed.are_made, true) {
            tokio::spawn(make_all(sources.clone()));
        }
    }

    fn end(&self, view: View) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.pages.entry(view).and_modify(|streams| *streams -= 1);
        followed.pages.retain(|_, streams| *streams > 0);
    }

    /// The pages that are followed. If there are none, events are not made any more.
    fn pages(&self) -> Vec<View> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.are_made = !followed.pages.is_empty();
        followed.pages.keys().copied().collect()
    }
}

async fn make_all(sources: Sources) {
    let mut history = History::default();
    loop {
        let pages = sources.streams.pages();
        if pages.is_empty() {
            break;
        }
        let now = dashboard::overview(&sources).await;
        let answered = now.map(|now| history.add(now));
        let mut events = BTreeMap::new();
        for view in pages {
            let update = dashboard::update(&sources, answered.map(|()| &history), view);
            events.insert(view, format!("data: {update}\n\n"));
            tokio::task::yield_now().await; // others on this thread do not wait for all pages
        }
        sources.streams.events.send_replace(Arc::new(events));
        sleep(EVERY).await;
    }
    sources.streams.events.send_replace(Events::default());
}
