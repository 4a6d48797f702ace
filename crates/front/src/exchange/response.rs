//! A worker's answer on its way to the client: frames go in, events come out.

use std::convert::Infallible;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use highball_ring::frame::{HIJACK_FOLLOWS, IS_FILE, LOGGED_BY_APP, STREAMS};
use highball_ring::RingError;

use crate::aside::file_reads::{Ahead, ServedFile};
use crate::aside::PoolShare;
use crate::budget::{Account, Permit};
use crate::cache::{Fill, Replacement, Watch};
use crate::clock::Seldom;
use crate::exchange::frame_reader::{whole_body_length, Frame, FrameReader};
use crate::exchange::response_head::{self, BadHead, HeadContext, WorkerHead};
use crate::exchange::sent_file::SentFile;
use crate::exchange::spool::{SpoolError, SpoolFile};
use crate::hub::{Hub, Subscription, Unsubscribable};
use crate::message::answer::{AnswerBody, AnswerEvent, AnswerEvents, AnswerHead, FilePart};
use crate::message::conditions::Conditions;
use crate::message::refusal::Refusal;
use crate::protocol::http1::body::BodyDecoder;

/// Most `FILE` frames in one answer: each may hold a file of this process open.
const MAX_FILES: u32 = 16;

/// Bytes in memory that each answer may have, also where buffers are full: each goes on.
const FREE_BYTES: usize = 16 * 1024;

/// The longest text for the front about a WebSocket of Action Cable, in bytes: what it transmits is in there. The front reads all of it in
/// one go.
const CABLE_BYTES: usize = 1 << 20;

/// The Retry-After of a refused stream, in seconds.
pub(crate) const RETRY_STREAM_SECONDS: u32 = 5;

/// Where the rest of an answer goes while the client is too slow.
#[derive(Debug)]
enum Spool {
    /// The client is fast enough.
    Unused,
    /// To this file.
    Used(SpoolFile),
    /// It should have gone to a file. What did not get there is sent from this one's memory.
    Failed { _kept: Option<SpoolFile> },
}

/// The log says at most this often that answers cannot be spooled, in ms.
const LOG_MS: u64 = 10_000;
static LOGGED: Seldom = Seldom::new();
static UNHELD: Seldom = Seldom::new();

impl Spool {
    /// Notes that the next bytes do not go to the file.
    fn fail(&mut self, error: &SpoolError, account: &Account) {
        match error {
            SpoolError::Full => account.note_full(),
            SpoolError::System(error) if LOGGED.is_due(LOG_MS) => {
                tracing::error!(
                    name: "response_not_spooled",
                    %error, "the answer for a slow client could not be spooled, so its worker waits; choose another folder with --spool-dir, or make room in this one"
                );
            }
            SpoolError::System(_) => {}
        }
        let kept = match std::mem::replace(self, Spool::Unused) {
            Spool::Used(file) => Some(file),
            Spool::Unused | Spool::Failed { .. } => None,
        };
        *self = Spool::Failed { _kept: kept };
    }
}

/// How far the answer has come, as far as the worker is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing final has come.
    Waiting,
    /// The head has come, the end has not.
    Streaming,
    /// All of it has come.
    Ended,
    /// It cannot be completed: the client must see that it is cut off.
    Aborted,
    /// Nothing was sent, and the client is to get this instead.
    Refused(Refusal),
    /// No worker got the request, and it has to be routed again.
    GivenBack,
}

/// Descriptors that frames speak of.
pub trait Descriptors {
    /// The file that came with a `FILE` frame.
    ///
    /// # Errors
    /// A breach, or this process has no room for it.
    fn receive_file(&mut self) -> Result<OwnedFd, RingError>;

    /// Makes a socket pair for a `HIJACK` frame, sends the worker one end and returns the other.
    ///
    /// # Errors
    /// A breach, or this process has no room for it.
    fn connect(&mut self) -> Result<OwnedFd, RingError>;

    /// Whether an answer whose body streams from the beginning may go on; if not, it is not wanted from the worker either.
    fn may_stream(&mut self) -> bool;
}

/// The answer to one request.
#[derive(Debug)]
pub struct Response {
    reader: FrameReader,
    context: HeadContext,
    body: AnswerBody,
    /// Body bytes still to come, when its length is known.
    missing: u64,
    /// Whether the body has gone on beyond that.
    is_cut: bool,
    /// Undoes the chunks of an application that writes chunks.
    app_chunks: Option<BodyDecoder>,
    progress: Progress,
    /// The status of its head, 0 before.
    pub status: u16,
    /// Body bytes that have come.
    pub body_bytes: u64,
    /// Whether the application, as it says, writes a line about this request into the terminal itself.
    pub is_logged_by_app: bool,
    /// What the client gets, as far as its connection has not taken it.
    pub events: AnswerEvents,
    /// Where the rest goes while the client is too slow.
    spool: Spool,
    /// What waits in memory, and what the connection has taken last and is sending.
    held_bytes: Option<Permit>,
    taken_bytes: usize,
    /// The worker has to wait although its client takes something: spool files or buffers have no room.
    is_held_back: bool,
    /// What the request says about a file that is the body, if it says something.
    conditions: Option<Box<Conditions>>,
    /// What is sent of the file that is the body, if it is one.
    sent_file: Option<SentFile>,
    /// What is done with it for the cache.
    watch: Option<Watch>,
    /// `FILE` frames so far.
    files: u32,
    /// The threads that read files.
    reads: PoolShare,
    /// Whether the head announced that the application takes the connection over.
    hijack_announced: bool,
    /// Whether it has taken the connection over.
    handed_over: bool,
    /// Whether its body streams from the beginning, as the head announced.
    streams_at_once: bool,
    /// Whether the worker has freed its place, and the rest comes over a socket.
    has_left: bool,
    /// Whether it is one of a fiber, which frees its place before it begins.
    is_of_fiber: bool,
    /// What the worker says of the exception that the application has raised, if it has and says so.
    pub exception: Vec<u8>,
    /// Header field by which the application names sessions, if it does.
    session_field: Option<Rc<str>>,
    /// Value of that field in the head.
    session: Option<Box<[u8]>>,
    /// The hub of the application, and the number of its last message when the request came.
    hub: Option<(Rc<Hub>, u64)>,
    /// What it goes on with when the application's part is complete, if it is held.
    held: Option<Box<Subscription>>,
    /// The body, as far as it has come, if it is for the front: about a WebSocket of Action Cable.
    cable: Option<Vec<u8>>,
}

impl Default for Response {
    fn default() -> Self {
        Self::new()
    }
}

impl Response {
    /// An answer of nothing yet.
    pub fn new() -> Self {
        Response {
            reader: FrameReader::default(),
            context: HeadContext::default(),
            body: AnswerBody::None,
            missing: 0,
            is_cut: false,
            app_chunks: None,
            progress: Progress::Waiting,
            status: 0,
            body_bytes: 0,
            is_logged_by_app: false,
            events: AnswerEvents::default(),
            spool: Spool::Unused,
            held_bytes: None,
            taken_bytes: 0,
            is_held_back: false,
            conditions: None,
            sent_file: None,
            watch: None,
            files: 0,
            reads: PoolShare::of_reads(),
            hijack_announced: false,
            handed_over: false,
            streams_at_once: false,
            has_left: false,
            is_of_fiber: false,
            exception: Vec::new(),
            session_field: None,
            session: None,
            hub: None,
            held: None,
            cable: None,
        }
    }

    /// Files of this answer are read by the application's pool of threads, and what it has in memory is counted there.
    pub(crate) fn assign_to(&mut self, pool: &PoolShare, buffers: Account) {
        if !self.reads.is(pool) {
            self.reads = pool.clone();
        }
        self.held_bytes = Some(Permit::new(buffers));
    }

    /// If the application has it held, it goes on with messages of this hub that are published from now on.
    pub(crate) fn may_be_held_by(&mut self, hub: &Rc<Hub>) {
        match &mut self.hub {
            Some((known, after)) if Rc::ptr_eq(known, hub) => *after = hub.last(),
            other => *other = Some((Rc::clone(hub), hub.last())),
        }
    }

    /// The application names sessions by this header field.
    pub(crate) fn may_name_session(&mut self, field: Option<Rc<str>>) {
        self.session_field = field;
    }

    /// Takes the name of the session that the head has begun.
    pub(crate) fn take_session(&mut self) -> Option<Box<[u8]>> {
        self.session.take()
    }

    /// Whether the application has it held.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether its body is for the front.
    pub(crate) fn is_for_front(&self) -> bool {
        self.cable.is_some()
    }

    /// The body, if it is for the front, and the number of the application's last message when the request came.
    pub(crate) fn take_for_front(&mut self) -> Option<(Vec<u8>, u64)> {
        let after = self.hub.as_ref().map_or(0, |(_, after)| *after);
        self.cable.take().filter(|_| self.progress == Progress::Ended).map(|text| (text, after))
    }

    /// What it goes on with, if it is held.
    pub(crate) fn take_held(&mut self) -> Option<Box<Subscription>> {
        self.held.take()
    }

    /// Ready for the answer to a request of this context.
    pub fn reset(&mut self, context: HeadContext) {
        self.restart();
        self.context = context;
        self.conditions = None;
        self.watch = None;
        self.events.clear();
    }

    /// If the body turns out to be a file, these hold for it.
    pub(crate) fn ask(&mut self, conditions: Option<Conditions>) {
        self.conditions = conditions.map(Box::new);
    }

    /// This is done with it for the cache.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Whether clients of other requests wait for it, by the cache.
    pub(crate) fn is_awaited(&self) -> bool {
        let is_under_way = matches!(self.progress, Progress::Waiting | Progress::Streaming);
        is_under_way && self.watch.as_ref().and_then(Watch::fill).is_some_and(Fill::is_awaited)
    }

    /// Whether some of it may still be stored.
    pub(crate) fn is_recorded(&self) -> bool {
        let is_under_way = matches!(self.progress, Progress::Waiting | Progress::Streaming);
        is_under_way && self.watch.as_ref().and_then(Watch::fill).is_some_and(Fill::is_open)
    }

    /// What comes next is of a worker of this generation.
    pub(crate) fn answered_by(&mut self, generation: u32) {
        if let Some(watch) = &mut self.watch {
            watch.answered_by(generation);
        }
    }

    /// Forgets what came, so that another worker can start over. Only while nothing final has come: interim heads stay.
    pub fn restart(&mut self) {
        self.reader.reset();
        self.body = AnswerBody::None;
        self.missing = 0;
        self.is_cut = false;
        self.app_chunks = None;
        self.progress = Progress::Waiting;
        self.status = 0;
        self.body_bytes = 0;
        self.is_logged_by_app = false;
        self.spool = Spool::Unused;
        self.sent_file = None;
        self.files = 0;
        self.hijack_announced = false;
        self.handed_over = false;
        self.streams_at_once = false;
        self.has_left = false;
        self.is_of_fiber = false;
        self.exception = Vec::new();
        self.session = None;
        self.held = None;
        self.cable = None;
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether the worker has ended its answer, so that its slot is free.
    pub fn worker_is_done(&self) -> bool {
        self.reader.has_ended()
    }

    /// How many more bytes may be taken from the worker: up to `memory_bytes` wait in memory, and up to
    /// `spool_bytes` go to the spool file, if there is one, and as long as there is room in the budgets.
    pub fn room(&mut self, memory_bytes: usize, spool_bytes: usize) -> usize {
        let room = match &self.spool {
            Spool::Used(file) => {
                let free = file.account().free();
                if free == 0 {
                    file.account().note_full();
                }
                spool_bytes.saturating_sub(file.length() as usize).min(free as usize).min(file.room())
            }
            Spool::Unused | Spool::Failed { .. } => self.memory_room(memory_bytes),
        };
        self.is_held_back = room == 0;
        room
    }

    fn memory_room(&self, memory_bytes: usize) -> usize {
        let room = memory_bytes.saturating_sub(self.events.waiting_bytes());
        let Some(held) = self.held_bytes.as_ref().filter(|_| room > 0) else { return room };
        let waiting = self.events.waiting_bytes() + self.taken_bytes;
        let most = FREE_BYTES.saturating_sub(waiting).saturating_add(held.account().free() as usize);
        if most == 0 {
            held.account().note_full();
        }
        room.min(most)
    }

    /// Whether there is no memory for more of this answer.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.held_bytes.as_ref().is_some_and(|held| held.account().free() == 0)
    }

    /// Whether the worker had to wait, and can go on: the file has room, or all that came has been sent.
    pub(crate) fn may_go_on(&mut self) -> bool {
        let has_room = match &self.spool {
            Spool::Used(file) => file.room() > 0,
            Spool::Unused | Spool::Failed { .. } => self.events.waiting_bytes() + self.taken_bytes == 0,
        };
        has_room && std::mem::take(&mut self.is_held_back)
    }

    /// Counts what is in memory, but for what each answer may have there.
    fn count(&mut self) {
        if let Some(held) = &self.held_bytes {
            let for_front = self.cable.as_ref().map_or(0, Vec::len);
            let bytes = self.events.waiting_bytes() + self.taken_bytes + for_front;
            held.set(bytes.saturating_sub(FREE_BYTES) as u64);
        }
    }

    /// Moves what has come to `events`: all that was taken before was sent.
    pub(crate) fn take_events(&mut self, events: &mut AnswerEvents) {
        std::mem::swap(events, &mut self.events);
        self.taken_bytes = events.waiting_bytes();
        self.count();
    }

    /// What was taken is not sent, and dropped.
    pub(crate) fn forget_taken(&mut self) {
        self.taken_bytes = 0;
        self.count();
    }

    /// The request has ended: what it held is given back.
    pub(crate) fn settle(&mut self) {
        self.spool = Spool::Unused;
        self.taken_bytes = 0;
        self.held_bytes = None;
        self.held = None;
        self.cable = None;
    }

    /// From now on what the client does not take goes to a spool file in `folder`, so that the worker need not
    /// wait. If that fails it is logged, and the worker waits after all. The task is woken when the worker can go on.
    pub(crate) fn spool_in(&mut self, folder: &Path, spool: &Account, context: &Context<'_>) {
        // The writer of an answer that has left its place waits for its client: no other request waits for it.
        if !matches!(self.spool, Spool::Unused) || self.progress != Progress::Streaming || self.has_left {
            return;
        }
        let Some(held) = &self.held_bytes else { return };
        let file = match SpoolFile::create(folder, spool, held.account()) {
            Ok(_) if spool.free() == 0 => Err(SpoolError::Full),
            file => file.map_err(SpoolError::from),
        };
        match file {
            Ok(file) => {
                file.wake(context);
                self.spool = Spool::Used(file);
            }
            Err(error) => self.spool.fail(&error, spool),
        }
    }

    /// All that came has been sent. `true`: the client was too slow for a while, and there is room again.
    pub fn caught_up(&mut self) -> bool {
        !matches!(std::mem::replace(&mut self.spool, Spool::Unused), Spool::Unused)
    }

    /// Whether its body goes on, and is written by the application: no file, and no connection that is taken over. A head alone
    /// may lead to a file.
    pub(crate) fn has_body_under_way(&self) -> bool {
        let has_begun = self.body_bytes > 0 || self.streams_at_once;
        let is_written = has_begun
            && !self.hijack_announced
            && self.sent_file.is_none()
            && self.files == 0
            && !self.is_for_front();
        self.progress == Progress::Streaming && is_written
    }

    /// Whether its client is the slow one: what that has not taken is in a spool file, or fills the memory and is about to be.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.is_held_back || matches!(self.spool, Spool::Used(_))
    }

    /// Whether its head has announced that the body streams.
    pub(crate) fn streams_at_once(&self) -> bool {
        self.streams_at_once
    }

    /// Whether the worker has freed its place, and the rest comes over a socket.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether its worker is to free its place before the answer begins.
    pub(crate) fn runs_on_fiber(&mut self, does: bool) {
        self.is_of_fiber = does;
    }

    /// Whether it has left its place, and is wanted.
    pub(crate) fn goes_on_elsewhere(&self) -> bool {
        let is_wanted = match self.progress {
            Progress::Streaming => true,
            Progress::Waiting => self.is_of_fiber,
            _ => false,
        };
        self.has_left && is_wanted
    }

    /// What follows is the rest of the answer, which has left its place.
    pub(crate) fn go_on(&mut self) {
        self.reader.reset();
    }

    /// There is no room for one more that streams.
    pub(crate) fn cut_surplus(&mut self) {
        if self.progress == Progress::Streaming {
            self.cut_off();
        }
    }

    /// The answer is not wanted any more: the rest of it is dropped.
    pub fn discard(&mut self) {
        self.progress = Progress::Aborted;
        self.watch = None;
        self.events.clear();
        self.settle();
    }

    /// Whether the application has taken the connection over.
    pub fn is_taken_over(&self) -> bool {
        self.handed_over && matches!(self.progress, Progress::Streaming | Progress::Ended)
    }

    /// Whether the answer is not wanted any more.
    pub fn is_discarded(&self) -> bool {
        self.progress == Progress::Aborted
    }

    /// The worker will not go on. Before the answer has begun the client gets `refusal`; after it the
    /// connection is cut.
    pub fn fail(&mut self, refusal: Refusal) {
        if self.progress == Progress::Waiting && self.replace(refusal) {
            return;
        }
        match self.progress {
            Progress::Waiting => {
                self.watch = None;
                self.progress = Progress::Refused(refusal);
                self.events.push(AnswerEvent::Refused(refusal));
            }
            Progress::Streaming => self.cut_off(),
            _ => {}
        }
    }

    /// Has a stored answer be sent in the place of an error, if the application has allowed that.
    fn replace(&mut self, refusal: Refusal) -> bool {
        let asked = self.conditions.as_deref();
        let found = self.watch.as_ref().and_then(|watch| watch.in_place_of_error(refusal.status(), asked));
        let Some(replacement) = found else { return false };
        self.watch = None;
        let Ok(head) = self.events.push_head::<Infallible>(|lines| Ok(replacement.write_head(lines)));
        self.status = head.status;
        self.push_replacement(&replacement);
        self.progress = Progress::Ended;
        self.events.push(AnswerEvent::End);
        true
    }

    /// The body of what is sent in the place of the application's answer: that is read, and dropped.
    fn push_replacement(&mut self, replacement: &Replacement) {
        self.events.push_bytes(replacement.body());
        self.body_bytes = replacement.body().len() as u64;
        (self.body, self.missing, self.app_chunks) = (AnswerBody::None, 0, None);
    }

    #[cold]
    fn cut_short(&mut self) {
        tracing::error!(
            name: "response_too_short",
            missing = self.missing,
            "the application's answer is cut off: its body is shorter than its Content-Length or chunks announced"
        );
        self.cut_off();
    }

    fn cut_off(&mut self) {
        self.watch = None;
        if self.handed_over {
            self.events.clear(); // the socket goes to no client
        }
        self.progress = Progress::Aborted;
        self.events.push(AnswerEvent::CutOff);
    }

    /// No worker has been asked: the request must be routed again.
    pub fn give_back(&mut self) {
        if self.progress == Progress::Waiting {
            self.watch = None;
            self.progress = Progress::GivenBack;
            self.events.push(AnswerEvent::GivenBack);
        }
    }

    /// Takes in bytes that the worker wrote.
    ///
    /// # Errors
    /// A breach of the ring protocol: the worker must be given up.
    pub fn feed(&mut self, mut input: &[u8], descriptors: &mut dyn Descriptors) -> Result<(), RingError> {
        let mut reader = std::mem::take(&mut self.reader);
        let mut result = Ok(Some(()));
        while let Ok(Some(())) = result {
            result = reader.next(&mut input, |frame, behind| self.frame(frame, behind, descriptors));
        }
        self.reader = reader;
        self.count();
        result.map(drop)
    }

    fn frame(
        &mut self,
        frame: Frame<'_>,
        behind: &[u8],
        descriptors: &mut dyn Descriptors,
    ) -> Result<(), RingError> {
        match frame {
            Frame::Head(payload) => {
                if has_flag(payload, STREAMS)
                    && self.progress == Progress::Waiting
                    && !descriptors.may_stream()
                {
                    self.fail(Refusal::TooManyStreams { retry_after_seconds: RETRY_STREAM_SECONDS });
                }
                self.head(payload, behind)?;
                if has_flag(payload, STREAMS) && self.progress == Progress::Streaming {
                    self.streams_at_once = true;
                }
                Ok(())
            }
            Frame::Body(bytes) => self.body(bytes),
            Frame::File { offset, length } => match self.received(descriptors.receive_file())? {
                Some(file) => self.file(file, offset, length),
                None => Ok(()),
            },
            Frame::Hijack => self.take_over(descriptors),
            Frame::End => self.end(),
            Frame::Stream => self.leave(),
            Frame::Abort => {
                self.fail(Refusal::BadResponse { why: "was given up before it had begun" });
                Ok(())
            }
            Frame::Failure(words) => self.app_raised(words),
        }
    }

    /// The descriptor, if it is not this process that had no room for it.
    fn received(&mut self, descriptor: Result<OwnedFd, RingError>) -> Result<Option<OwnedFd>, RingError> {
        match descriptor {
            Err(error @ RingError::System { .. }) => {
                tracing::error!(
                    name: "response_file_not_passed",
                    %error, "an answer is cut off: its file or socket could not be passed on. If files have run out, raise the limit (ulimit -n)"
                );
                self.fail(Refusal::BadResponse { why: "has a file or socket that could not be passed on" });
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn head(&mut self, payload: &[u8], behind: &[u8]) -> Result<(), RingError> {
        match self.progress {
            Progress::Waiting => {}
            Progress::Streaming | Progress::Ended => {
                return Err(RingError::Breach("a second head in one answer"))
            }
            Progress::Aborted | Progress::Refused(_) | Progress::GivenBack => return Ok(()),
        }
        let has_flag = |flag: u8| has_flag(payload, flag);
        let context = HeadContext {
            complete_body_length: whole_body_length(behind),
            hijack: has_flag(HIJACK_FOLLOWS),
            sent_file: has_flag(IS_FILE)
                .then(|| response_head::sent_file(payload, self.conditions.as_deref()))
                .flatten(),
            ..self.context
        };
        let (mut is_chunked, mut is_for_front, mut replacement) = (false, false, None);
        let (hub, held) = (self.hub.as_ref(), &mut self.held);
        let pushed = self.events.push_head(|lines| {
            let mut read = response_head::read(payload, &context, lines)?;
            if read.names_streams && read.head.body != AnswerBody::None && !context.hijack {
                *held = hub.map(|(hub, after)| hold(payload, hub, *after, &mut read)).transpose()?.flatten();
            }
            is_chunked = read.body_is_chunked;
            is_for_front = read.is_for_front;
            let mut watch = self.watch.as_mut().filter(|_| !read.head.is_interim());
            if read.names_file || read.names_streams || read.is_for_front {
                watch.iter_mut().for_each(|watch| watch.give_up());
            }
            let asked = self.conditions.as_deref();
            replacement = watch.and_then(|watch| watch.take_head(&read.head, asked, lines));
            let Some(replacement) = &replacement else { return Ok(read.head) };
            lines.clear();
            Ok(replacement.write_head(lines))
        });
        match pushed {
            Ok(head) if head.is_interim() => Ok(()),
            Ok(AnswerHead { status, body, .. }) => {
                self.progress = Progress::Streaming;
                self.status = status;
                self.is_logged_by_app = has_flag(LOGGED_BY_APP);
                self.body = body;
                self.sent_file = context.sent_file;
                self.hijack_announced = context.hijack;
                self.cable = is_for_front.then(Vec::new);
                let field = self.session_field.as_deref();
                self.session = field.and_then(|name| response_head::value_of(payload, name));
                self.missing = if let AnswerBody::Length(length) = body { length } else { 0 };
                self.app_chunks = is_chunked.then(BodyDecoder::of_chunked_response);
                replacement.iter().for_each(|replacement| self.push_replacement(replacement));
                Ok(())
            }
            Err(BadHead::Breach(why)) => Err(RingError::Breach(why)),
            Err(BadHead::Unsendable(why)) => {
                self.refuse_head(why);
                Ok(())
            }
            Err(BadHead::NoRoom) => {
                self.fail(Refusal::TooManyStreams { retry_after_seconds: RETRY_STREAM_SECONDS });
                Ok(())
            }
        }
    }

    /// The head cannot be sent. The rest of the frames is read and dropped.
    #[cold]
    fn refuse_head(&mut self, why: &'static str) {
        tracing::error!(
            name: "response_malformed",
            error = %format_args!("its head {why}"), "the application's answer cannot be sent"
        );
        self.fail(Refusal::BadResponse { why });
    }

    #[cold]
    fn app_raised(&mut self, words: &[u8]) -> Result<(), RingError> {
        if matches!(self.progress, Progress::Streaming | Progress::Ended) {
            return Err(RingError::Breach("an exception after an answer has begun"));
        }
        self.exception = words.to_vec();
        self.fail(Refusal::AppRaised);
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), RingError> {
        match self.progress {
            Progress::Streaming if self.hijack_announced || self.handed_over => {
                return Err(RingError::Breach("a body beside a hijack"))
            }
            Progress::Streaming if self.sent_file.is_some() => {
                return Err(RingError::Breach("a body where a file was announced"))
            }
            Progress::Streaming => {}
            Progress::Waiting => return Err(RingError::Breach("a body without a head")),
            Progress::Ended | Progress::Aborted | Progress::Refused(_) | Progress::GivenBack => return Ok(()),
        }
        match self.app_chunks.take() {
            None => self.push_body(bytes),
            Some(decoder) => self.push_chunks(decoder, bytes),
        }
        Ok(())
    }

    #[inline(never)]
    fn push_chunks(&mut self, mut decoder: BodyDecoder, bytes: &[u8]) {
        match decoder.decode(bytes, |piece| self.push_body(piece)) {
            Ok(decoded) if decoded.consumed < bytes.len() => self.note_cut(),
            Ok(_) => {}
            Err(_) => {
                tracing::error!(
                    name: "response_chunks_malformed",
                    "the application's answer is cut off: its chunks are malformed (Transfer-Encoding: chunked)"
                );
                self.cut_off();
            }
        }
        self.app_chunks = Some(decoder);
    }

    fn push_body(&mut self, mut bytes: &[u8]) {
        match self.body {
            AnswerBody::None => return,
            AnswerBody::Length(_) => {
                let length = self.within_length(bytes.len() as u64);
                bytes = &bytes[..length as usize];
                self.missing -= length;
            }
            AnswerBody::Unknown | AnswerBody::Connection => {}
        }
        self.body_bytes = self.body_bytes.saturating_add(bytes.len() as u64);
        if self.is_for_front() {
            return self.push_to_front(bytes);
        }
        if let Some(watch) = &mut self.watch {
            watch.take_body(bytes);
        }
        if matches!(self.spool, Spool::Used(_)) && self.push_to_spool(bytes) {
            return;
        }
        self.events.push_bytes(bytes);
    }

    #[cold]
    fn push_to_front(&mut self, bytes: &[u8]) {
        let Some(text) = &mut self.cable else { return };
        let has_room = self.held_bytes.as_ref().is_none_or(|held| held.account().free() > 0);
        if has_room && text.len() + bytes.len() <= CABLE_BYTES {
            text.extend_from_slice(bytes);
        } else {
            self.cut_off();
        }
    }

    /// How many of these bytes belong to the body, by its Content-Length.
    fn within_length(&mut self, length: u64) -> u64 {
        if length > self.missing {
            self.note_cut();
        }
        length.min(self.missing)
    }

    /// The client gets what was announced. That is not what the application has meant, so others do not get it.
    #[cold]
    fn note_cut(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.give_up();
        }
        if !std::mem::replace(&mut self.is_cut, true) {
            tracing::error!(
                name: "response_too_long",
                "the application's answer is cut where its Content-Length or its chunks end: its body is longer"
            );
        }
    }

    /// Appends to the spool file, if there is one, and to the part that sends what is new in it.
    #[inline(never)]
    fn push_to_spool(&mut self, bytes: &[u8]) -> bool {
        let Spool::Used(spool) = &mut self.spool else {
            return false;
        };
        let offset = spool.length();
        if let Err(error) = spool.append(bytes) {
            let account = spool.account().clone();
            self.spool.fail(&error, &account);
            return false;
        }
        let (file, length) = (spool.file(), bytes.len() as u64);
        if length > 0 {
            self.events.push_file(FilePart { file, offset, length, ahead: Ahead::default() });
        }
        true
    }

    #[inline(never)]
    fn file(&mut self, file: OwnedFd, offset: u64, length: u64) -> Result<(), RingError> {
        if let Some(watch) = &mut self.watch {
            watch.give_up();
        }
        self.files += 1;
        if self.files > if self.sent_file.is_some() { 1 } else { MAX_FILES } {
            return Err(RingError::Breach("more files in one answer than are allowed"));
        }
        // Only a regular file ends. A file that the kernel makes up is found out when it is read.
        let Ok(backing) = highball_tenant::handed_over(&file) else {
            return Err(RingError::Breach("a file that is not a regular file"));
        };
        // From here on, closing it is no work for the event loop.
        let file = Arc::new(ServedFile::handed_over(File::from(file), backing, &self.reads));
        match self.progress {
            Progress::Streaming if self.hijack_announced || self.handed_over => {
                return Err(RingError::Breach("a file beside a hijack"))
            }
            Progress::Streaming => {}
            Progress::Waiting => return Err(RingError::Breach("a file without a head")),
            Progress::Ended | Progress::Aborted | Progress::Refused(_) | Progress::GivenBack => return Ok(()),
        }
        let (offset, length) = part_of_frame(self.sent_file, offset, length)?;
        let length = match self.body {
            AnswerBody::None => return Ok(()),
            AnswerBody::Length(_) => self.within_length(length),
            AnswerBody::Unknown | AnswerBody::Connection => length,
        };
        if length == 0 {
            return Ok(());
        }
        self.missing = self.missing.saturating_sub(length);
        self.body_bytes = self.body_bytes.saturating_add(length);
        self.events.push_file(FilePart { file, offset, length, ahead: Ahead::default() });
        Ok(())
    }

    /// The worker waits for its socket, whatever has become of the answer: if the answer is not wanted any more, it
    /// finds the other end closed.
    #[cold]
    fn take_over(&mut self, descriptors: &mut dyn Descriptors) -> Result<(), RingError> {
        if self.handed_over {
            return Err(RingError::Breach("a second hijack in one answer"));
        }
        self.handed_over = true;
        self.watch = None;
        let Some(socket) = self.received(descriptors.connect())? else { return Ok(()) };
        if matches!(self.progress, Progress::Waiting | Progress::Streaming) {
            self.progress = Progress::Streaming;
            self.events.push(AnswerEvent::TakenOver(socket));
        }
        Ok(())
    }

    /// The worker has freed the place of an answer that goes on.
    #[cold]
    fn leave(&mut self) -> Result<(), RingError> {
        if (self.progress == Progress::Waiting && !self.is_of_fiber)
            || self.handed_over
            || std::mem::replace(&mut self.has_left, true)
        {
            return Err(RingError::Breach("a place freed by what is no body under way"));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RingError> {
        match self.progress {
            Progress::Waiting => return Err(RingError::Breach("an end without a head")),
            Progress::Streaming => {}
            Progress::Ended | Progress::Aborted | Progress::Refused(_) | Progress::GivenBack => return Ok(()),
        }
        let chunks_cut = self.app_chunks.as_ref().is_some_and(|chunks| !chunks.is_done());
        if !self.handed_over && (self.missing > 0 || chunks_cut) {
            self.cut_short();
            return Ok(());
        }
        self.progress = Progress::Ended;
        let is_kept = self.is_held() || self.is_for_front();
        self.events.push(if is_kept { AnswerEvent::Held } else { AnswerEvent::End });
        if let Some(mut watch) = self.watch.take() {
            watch.complete();
        }
        Ok(())
    }
}

/// The subscription of a response that is to be held; its body has no end then. `None`: it names streams, but is no event stream.
#[cold]
fn hold(
    payload: &[u8],
    hub: &Rc<Hub>,
    after: u64,
    read: &mut WorkerHead,
) -> Result<Option<Box<Subscription>>, BadHead> {
    let Some(names) = response_head::held_streams(payload) else {
        if UNHELD.is_due(LOG_MS) {
            tracing::warn!(
                name: "response_not_held",
                "a response names streams (Highball-Stream), but is not held: that takes status 200 and the type text/event-stream"
            );
        }
        return Ok(None);
    };
    let subscription = hub.subscribe(&names, after).map_err(|why| match why {
        Unsubscribable::Field(why) => BadHead::Unsendable(why),
        Unsubscribable::Full => BadHead::NoRoom,
    })?;
    (read.head.body, read.head.content_length) = (AnswerBody::Unknown, None);
    Ok(Some(Box::new(subscription)))
}

/// Whether the payload of a `HEAD` frame has this flag.
fn has_flag(payload: &[u8], flag: u8) -> bool {
    payload.get(2).is_some_and(|flags| flags & flag != 0)
}

/// What is sent of the part of a file that a frame names.
fn part_of_frame(sent: Option<SentFile>, offset: u64, length: u64) -> Result<(u64, u64), RingError> {
    let Some((begin, most)) = sent.map(SentFile::part) else { return Ok((offset, length)) };
    let offset = offset.checked_add(begin).ok_or(RingError::Breach("a file beyond the end of all files"))?;
    Ok((offset, length.saturating_sub(begin).min(most)))
}
