//! One thread reads what applications of other users print, another writes it to the log.
//!
//! Neither is started before there is such an application. The reader never waits for the writer: an application's lines
//! that the writer does not get rid of are dropped beyond a certain size, and counted. Each application has its turn after
//! one piece of another.

use super::budget::{Budget, Dropped};
use super::lines::Lines;
use super::OutputSink;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

/// Bytes read at a time: what a pipe holds.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that are read at once when a caller waits for what was printed so far: the largest pipe that a user can make.
const PIECES_AT_ONCE: usize = 16;
/// Bytes of one application that may wait to be written.
const QUEUE_BYTES: usize = 256 * 1024;
/// Bytes that a line takes beside its text while it waits.
const QUEUE_LINE_BYTES: usize = 64;
/// Lines of all applications that may wait: enough for more applications than flood the log at the same time.
const QUEUE_ITEMS: usize = 64 * 1024;
/// How long an application that prints too much waits after each piece: so it cannot take a processor from others.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the end of a line is waited for.
const LINE_TIME: Duration = Duration::from_secs(1);

/// What the two threads share about an application.
#[derive(Debug)]
pub(crate) struct OutputSource {
    name: Mutex<Arc<str>>,
    budget: Mutex<Budget>,
    /// Bytes that wait to be written.
    queued: AtomicUsize,
    /// A notice of what was dropped waits to be written.
    has_notice: AtomicBool,
}

impl OutputSource {
    pub(crate) fn new(name: &str, per_second: Option<u64>) -> OutputSource {
        OutputSource {
            name: Mutex::new(name.into()),
            budget: Mutex::new(Budget::new(per_second, Instant::now())),
            queued: AtomicUsize::new(0),
            has_notice: AtomicBool::new(false),
        }
    }

    pub(crate) fn change(&self, name: &str, per_second: Option<u64>) {
        *locked(&self.name) = name.into();
        *self.budget() = Budget::new(per_second, Instant::now());
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&locked(&self.name))
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        locked(&self.budget)
    }
}

/// A panic leaves the data behind these locks intact.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be written.
enum Item {
    Line(Arc<OutputSource>, String),
    Dropped(Arc<OutputSource>, Dropped),
    /// Sent to when everything before it was written.
    Mark(oneshot::Sender<()>),
}

/// Both threads, once they are needed.
#[derive(Clone)]
pub(crate) struct Relay {
    sink: OutputSink,
    threads: Arc<Mutex<Option<Threads>>>,
}

#[derive(Clone)]
struct Threads {
    reader: Handle,
    writer: mpsc::Sender<Item>,
}

impl Relay {
    pub(crate) fn new(sink: OutputSink) -> Relay {
        Relay { sink, threads: Arc::default() }
    }

    /// Reads this end of a pipe until all others are closed, or until the returned sender is dropped. A sender that is
    /// sent through it is answered when all was written that had been printed by then.
    pub(crate) fn read(
        &self,
        pipe: OwnedFd,
        source: Arc<OutputSource>,
    ) -> io::Result<mpsc::Sender<oneshot::Sender<()>>> {
        let Threads { reader, writer } = self.threads()?;
        let (ask, asked) = mpsc::channel(1);
        reader.spawn(async move {
            match Receiver::from_owned_fd(pipe) {
                Ok(pipe) => Reading { pipe, source, writer, lines: Lines::default() }.run(asked).await,
                Err(error) => {
                    error!(
                        name: "output_unreadable", application = &*source.name(), %error, "cannot read the application's output"
                    )
                }
            }
        });
        Ok(ask)
    }

    fn threads(&self) -> io::Result<Threads> {
        let mut threads = locked(&self.threads);
        if threads.is_none() {
            *threads =
                Some(Threads { reader: start_reader()?, writer: start_writer(Arc::clone(&self.sink))? });
        }
        Ok(threads.clone().expect("they were started just now"))
    }
}

fn start_reader() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("app output".into()).spawn(run)?;
    Ok(handle)
}

fn start_writer(sink: OutputSink) -> io::Result<mpsc::Sender<Item>> {
    let (writer, mut items) = mpsc::channel(QUEUE_ITEMS);
    let write = move || {
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Line(source, line) => {
                    sink(&source.name(), &line);
                    source.queued.fetch_sub(queue_cost(&line), Ordering::Relaxed);
                }
                Item::Dropped(source, Dropped { lines, bytes }) => {
                    warn!(
                        name: "output_lines_dropped",
                        application = &*source.name(),
                        lines,
                        bytes,
                        remedy = "Let it print less, or raise max_output.",
                        "the application prints too much: Highball dropped lines"
                    );
                    source.has_notice.store(false, Ordering::Relaxed);
                }
                Item::Mark(to) => drop(to.send(())), // the receiver may have stopped waiting
            }
        }
    };
    thread::Builder::new().name("app log".into()).spawn(write)?;
    Ok(writer)
}

/// An application's pipe, while it is read.
struct Reading {
    pipe: Receiver,
    source: Arc<OutputSource>,
    writer: mpsc::Sender<Item>,
    lines: Lines,
}

impl Reading {
    async fn run(mut self, mut asked: mpsc::Receiver<oneshot::Sender<()>>) {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let waits = self.lines.has_partial() || self.source.budget().owes_notice();
            let go_on = tokio::select! {
                ready = self.pipe.readable() => ready.is_ok() && self.read(&mut piece).await,
                asked = asked.recv() => {
                    self.catch_up(&mut piece);
                    if let Some(to) = asked {
                        self.put(Item::Mark(to));
                        true
                    } else {
                        false // the application was removed
                    }
                }
                () = tokio::time::sleep(LINE_TIME), if waits => {
                    self.end_line();
                    true
                }
            };
            if !go_on {
                return self.end_line();
            }
        }
    }

    /// `false`: all other ends are closed.
    async fn read(&mut self, piece: &mut [u8]) -> bool {
        match self.pipe.try_read(piece) {
            Ok(0) => false,
            Ok(count) => {
                if self.add(&piece[..count]) {
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(PAUSE).await;
                }
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Takes what there is by now.
    fn catch_up(&mut self, piece: &mut [u8]) {
        for _ in 0..PIECES_AT_ONCE {
            // Not `try_read`: the event loop may not have heard of it yet.
            match rustix::io::read(&self.pipe, &mut *piece) {
                Ok(count) if count > 0 => drop(self.add(&piece[..count])),
                _ => break,
            }
        }
        self.end_line();
    }

    /// `false`: some of it was dropped or cut off.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let now = Instant::now();
        let Reading { source, writer, lines, .. } = self;
        let mut budget = source.budget();
        let mut taken = true;
        let left_out = lines.add(bytes, |line| taken &= log_line(source, writer, &mut budget, line, now));
        drop(budget);
        self.give_notice(now);
        taken && left_out == 0
    }

    /// The end of the current line does not come.
    fn end_line(&mut self) {
        let now = Instant::now();
        if let Some(line) = self.lines.rest() {
            log_line(&self.source, &self.writer, &mut self.source.budget(), line, now);
        }
        self.give_notice(now);
    }

    fn give_notice(&self, now: Instant) {
        if self.source.has_notice.load(Ordering::Relaxed) {
            return; // there is one, and it is not written yet
        }
        if let Some(dropped) = self.source.budget().notice(now) {
            self.source.has_notice.store(true, Ordering::Relaxed);
            self.put(Item::Dropped(Arc::clone(&self.source), dropped));
        }
    }

    fn put(&self, item: Item) {
        // Without room the mark is dropped, and its receiver notices that.
        if let Err(mpsc::error::TrySendError::Full(Item::Dropped(source, _))) = self.writer.try_send(item) {
            source.has_notice.store(false, Ordering::Relaxed); // the next one will find room
        }
    }
}

/// `false`: it was dropped.
fn log_line(
    source: &Arc<OutputSource>,
    writer: &mpsc::Sender<Item>,
    budget: &mut Budget,
    line: String,
    now: Instant,
) -> bool {
    if !budget.takes(line.len(), now) {
        return false;
    }
    let (bytes, cost) = (line.len(), queue_cost(&line));
    let has_room = source.queued.load(Ordering::Relaxed) + cost <= QUEUE_BYTES;
    if has_room {
        source.queued.fetch_add(cost, Ordering::Relaxed);
        if writer.try_send(Item::Line(Arc::clone(source), line)).is_ok() {
            return true;
        }
        source.queued.fetch_sub(cost, Ordering::Relaxed);
    }
    budget.drop_line(bytes);
    false
}

fn queue_cost(line: &str) -> usize {
    line.len() + QUEUE_LINE_BYTES
}
