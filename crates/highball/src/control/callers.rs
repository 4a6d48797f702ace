//! The connections at a listener that is not the clients': health checks, agent checks, dashboards, commands.
//!
//! All of these have one rule. A connection is accepted at once, whatever others do. Their number has a limit. Beyond it
//! one makes room: a connection that has sent nothing, else a part of a question, else one whose client does not read the
//! answer. Among equals the source with the most connections loses its oldest. Each step has a time limit. So neither idle
//! connections nor slow senders and readers keep a health check or a command out.

mod source;

use highball_front::Seldom;
use rustix::io::Errno;
pub(crate) use source::{CallerSource, Listens};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// Time for the first byte of a question.
const FIRST_BYTE_TIME: Duration = Duration::from_secs(1);
/// Time for a whole question.
const QUESTION_TIME: Duration = Duration::from_secs(2);
/// Time for the client to take the answer.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Time for it to close the connection then, and what it may send until it does.
const LINGER_TIME: Duration = Duration::from_millis(300);
const UNREAD_BYTES: u64 = 64 * 1024;
/// Room for a question, at first.
const FIRST_BYTES: usize = 1024;
/// A connection that has sent nothing for this time is as good as idle: a client that asks at once has been heard by then.
const FRESH_TIME: Duration = Duration::from_millis(100);
/// How long accepting pauses when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The log says at most this often that no connection could be accepted.
const LOG_MS: u64 = 60_000;

/// How far a connection has come. The first in this list make room first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallerStage {
    /// It has sent nothing for a while.
    Silent,
    /// It has sent a part of a question.
    Asking,
    /// It is sent its answer.
    Answered,
    /// It has only just come.
    Fresh,
    /// Its answer is being found.
    Asked,
}

/// The connections at a listener. A clone is the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Callers(Arc<All>);

#[derive(Debug)]
struct All {
    /// What connects here, for the log.
    what: &'static str,
    most: usize,
    known: Mutex<Known>,
    /// One has ended.
    ended: Notify,
    logged: Seldom,
}

#[derive(Debug, Default)]
struct Known {
    /// The number of the next one.
    next: u64,
    /// By number: the oldest first.
    callers: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    source: CallerSource,
    stage: CallerStage,
    since: Instant,
    dismissal: Arc<Notify>,
}

/// A connection, as long as this lives.
#[derive(Debug)]
pub(crate) struct Caller {
    all: Arc<All>,
    number: u64,
    source: CallerSource,
    dismissal: Arc<Notify>,
}

impl Callers {
    /// None yet; at most this number at a time.
    pub(crate) fn new(what: &'static str, most: usize) -> Callers {
        Callers(Arc::new(All {
            what,
            most,
            known: Mutex::default(),
            ended: Notify::new(),
            logged: Seldom::new(),
        }))
    }

    /// Accepts for ever, and has each connection served.
    pub(crate) async fn accept_all<L: Listens>(&self, listener: &L, serve: impl Fn(L::Stream, Caller)) {
        loop {
            match poll_fn(|context| listener.poll_accept(context)).await {
                Ok((stream, source)) => serve(stream, self.add(source)),
                Err(error) if is_about_one_client(&error) => {}
                Err(error) => {
                    // Out of descriptors, most likely: one of these is free soon.
                    self.0.dismiss_beyond(0, None);
                    if self.is_to_be_logged() {
                        warn!(
                            name: "caller_not_accepted",
                            %error, "no {} can be accepted; trying again every {ACCEPT_PAUSE:?}", self.0.what
                        );
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
            yield_now().await; // what this one has sent already is read before others come
        }
    }

    /// Another one has come.
    pub(crate) fn add(&self, source: CallerSource) -> Caller {
        let all = Arc::clone(&self.0);
        let dismissal = Arc::new(Notify::new());
        let number = {
            let mut known = all.known();
            let number = known.next;
            known.next += 1;
            let entry = Entry {
                source,
                stage: CallerStage::Fresh,
                since: Instant::now(),
                dismissal: Arc::clone(&dismissal),
            };
            known.callers.insert(number, entry);
            number
        };
        all.dismiss_beyond(all.most, Some(number));
        Caller { all, number, source, dismissal }
    }

    /// Returns when there are none any more.
    pub(crate) async fn finish(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.known().callers.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Whether the log gets a line about them now; if so, none for a while.
    pub(crate) fn is_to_be_logged(&self) -> bool {
        self.0.logged.is_due(LOG_MS)
    }
}

impl All {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one make room if there are more than `most`, but not the one with the number `new`.
    fn dismiss_beyond(&self, most: usize, new: Option<u64>) {
        let mut known = self.known();
        if known.callers.len() <= most {
            return;
        }
        if let Some(entry) = known.first_to_go(new).and_then(|number| known.callers.remove(&number)) {
            entry.dismissal.notify_one();
        }
    }
}

impl Known {
    fn first_to_go(&self, new: Option<u64>) -> Option<u64> {
        let mut counts: BTreeMap<CallerSource, usize> = BTreeMap::new();
        self.callers.values().for_each(|entry| *counts.entry(entry.source).or_default() += 1);
        let others = self.callers.iter().filter(|(number, _)| Some(**number) != new);
        let rank = |number: u64, entry: &Entry| {
            (entry.stage_now(), std::cmp::Reverse(counts.get(&entry.source).copied()), number)
        };
        others.min_by_key(|(number, entry)| rank(**number, entry)).map(|(number, _)| *number)
    }
}

impl Entry {
    fn stage_now(&self) -> CallerStage {
        match self.stage {
            CallerStage::Fresh if self.since.elapsed() >= FRESH_TIME => CallerStage::Silent,
            stage => stage,
        }
    }
}

impl Caller {
    pub(crate) fn source(&self) -> CallerSource {
        self.source
    }

    fn is_at(&self, stage: CallerStage) {
        if let Some(entry) = self.all.known().callers.get_mut(&self.number) {
            entry.stage = stage;
        }
    }

    /// Returns when the connection has to make room.
    pub(crate) async fn dismissed(&self) {
        self.dismissal.notified().await;
    }

    /// It has asked: its answer is being found.
    pub(crate) fn has_asked(&self) {
        self.is_at(CallerStage::Asked);
    }

    /// Reads into `bytes` until `read` finds a question there. `None`: the client has left, or is silent or slow.
    pub(crate) async fn hear<T>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        bytes: &mut Vec<u8>,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<T> {
        bytes.reserve(FIRST_BYTES);
        let reading = async {
            let first = timeout(FIRST_BYTE_TIME, stream.read_buf(bytes)).await;
            let mut length = first.ok()?.ok()?;
            while length > 0 {
                self.is_at(CallerStage::Asking);
                if let Some(question) = read(bytes) {
                    self.has_asked();
                    return Some(question);
                }
                length = stream.read_buf(bytes).await.ok()?;
            }
            None
        };
        timeout(QUESTION_TIME, reading).await.ok()?
    }

    /// Sends the answer, which is the end of the connection.
    ///
    /// # Errors
    /// The client has left, or does not read.
    pub(crate) async fn answer(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> io::Result<()> {
        self.is_at(CallerStage::Answered);
        let sent = async {
            stream.write_all(bytes).await?;
            stream.shutdown().await
        };
        timeout(ANSWER_TIME, sent).await??;
        // What was not read would make the kernel reset the connection, and the client lose the answer.
        let rest = async { tokio::io::copy(&mut stream.take(UNREAD_BYTES), &mut tokio::io::sink()).await };
        let _ = timeout(LINGER_TIME, rest).await; // the answer is sent, whatever comes
        Ok(())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.all.known().callers.remove(&self.number);
        self.all.ended.notify_waiters();
    }
}

/// accept(2) also reports errors of the connection that it would have returned.
fn is_about_one_client(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::TIMEDOUT
                | Errno::PROTO
                | Errno::PERM
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;
    use tokio::net::{TcpListener, TcpStream};

    const HERE: CallerSource = CallerSource::User(1);
    const THERE: CallerSource = CallerSource::User(2);

    fn numbers(callers: &Callers) -> Vec<u64> {
        callers.0.known().callers.keys().copied().collect()
    }

    fn at(callers: &Callers, stages: &[(CallerSource, CallerStage)]) -> Vec<Caller> {
        let add = |(source, stage): &(CallerSource, CallerStage)| {
            let caller = callers.add(*source);
            caller.is_at(*stage);
            caller
        };
        stages.iter().map(add).collect()
    }

    #[test]
    fn those_that_have_sent_nothing_make_room_first_and_the_newest_never() {
        use CallerStage::{Answered, Asked, Asking, Fresh, Silent};
        let callers = Callers::new("callers", 5);
        let stages = [Asked, Fresh, Answered, Asking, Silent].map(|stage| (HERE, stage));
        let mut all = at(&callers, &stages);
        for left in [&[0, 1, 2, 3, 5][..], &[0, 1, 2, 5, 6], &[0, 1, 5, 6, 7], &[0, 5, 6, 7, 8]] {
            all.extend(at(&callers, &[(HERE, Asked)]));
            assert_eq!(numbers(&callers), left);
        }
        all.extend(at(&callers, &[(HERE, Fresh)]));
        assert_eq!(numbers(&callers), [5, 6, 7, 8, 9], "the oldest whose answers are being found");
    }

    #[test]
    fn the_source_that_has_the_most_makes_room() {
        let callers = Callers::new("callers", 4);
        let one = (HERE, CallerStage::Silent);
        let mut all = at(
            &callers,
            &[one, (THERE, CallerStage::Silent), (THERE, CallerStage::Silent), (THERE, CallerStage::Silent)],
        );
        all.extend(at(&callers, &[(THERE, CallerStage::Silent), (THERE, CallerStage::Silent)]));
        assert_eq!(numbers(&callers), [0, 3, 4, 5]);
    }

    #[test]
    fn one_that_has_ended_makes_room() {
        let callers = Callers::new("callers", 2);
        let mut all = at(&callers, &[(HERE, CallerStage::Silent); 2]);
        all.remove(0);
        all.extend(at(&callers, &[(HERE, CallerStage::Silent)]));
        assert_eq!(numbers(&callers), [1, 2]);
    }

    #[tokio::test]
    async fn one_that_makes_room_learns_it_even_before_it_looks() {
        let callers = Callers::new("callers", 1);
        let first = callers.add(HERE);
        let _second = callers.add(HERE);
        first.dismissed().await;
    }

    #[tokio::test]
    async fn a_client_has_little_time_to_ask() {
        let callers = Callers::new("callers", 4);
        let caller = callers.add(HERE);
        let whole = |bytes: &[u8]| bytes.ends_with(b"\n").then_some(());
        let (mut ours, mut theirs) = duplex(64);
        assert_eq!(caller.hear(&mut ours, &mut Vec::new(), whole).await, None, "it says nothing");
        let drip = async {
            loop {
                theirs.write_all(b"x").await.unwrap();
                sleep(FIRST_BYTE_TIME / 4).await;
            }
        };
        let mut bytes = Vec::new();
        tokio::select! {
            heard = caller.hear(&mut ours, &mut bytes, whole) => assert_eq!(heard, None, "it says little at a time"),
            () = drip => unreachable!(),
        }
        assert!(bytes.len() > 1);
    }

    #[tokio::test]
    async fn an_answer_arrives_whatever_else_was_sent() {
        let callers = Callers::new("callers", 4);
        let caller = callers.add(HERE);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&[b'x'; 30_000]).await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            answer
        };
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let heard = caller.hear(&mut stream, &mut Vec::new(), |_| Some(())).await;
            assert_eq!(heard, Some(()));
            caller.answer(&mut stream, b"answer").await.unwrap();
        };
        assert_eq!(tokio::join!(client, server).0, b"answer");
    }

    #[test]
    fn a_site_is_one_source() {
        let source = |text: &str| CallerSource::of_address(text.parse().unwrap());
        assert_eq!(source("[2001:db8::1]:1"), source("[2001:db8::2]:2"));
        assert_ne!(source("[2001:db8::1]:1"), source("[2001:db8:0:1::1]:1"));
        assert_eq!(source("[::ffff:192.0.2.1]:1"), source("192.0.2.1:2"));
        assert_ne!(source("192.0.2.1:1"), source("192.0.2.2:1"));
    }
}
