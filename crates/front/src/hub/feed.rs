//! What a WebSocket of Action Cable gets: the messages of streams that its channels start and stop, each as a text frame that
//! names the channel. Like a subscriber, it has a position in each stream and no buffer.

use std::borrow::Cow;
use std::rc::Rc;
use std::task::Waker;

use super::message::{is_stream_name, EventId};
use super::streams::{Seat, Stream};
use super::{Hub, Unsubscribable};
use crate::message::web_socket_frames::Header;
use crate::succession::message::{AnyBytes, PassedLine};

/// The streams of a WebSocket.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(super) hub: Rc<Hub>,
    key: u64,
    seat: Rc<Seat>,
    pub(super) lines: Vec<FeedLine>,
    /// The message that was begun.
    begun: Option<Begun>,
    /// Whether each message says where it is in its stream.
    shows_positions: bool,
    /// Frames that follow once all lines that have gone back are where they were.
    pub(super) behind_replay: Vec<u8>,
}

/// A stream, for a channel.
#[derive(Debug)]
pub(super) struct FeedLine {
    pub(super) stream: Rc<Stream>,
    /// What stands before the data of each message. Empty: a worker is asked what to do with it.
    pub(super) wrap: Rc<str>,
    /// Number of the first message that the client gets, or has got.
    pub(super) first: u64,
    /// Number of the next message.
    pub(super) next: u64,
    /// The last message that the stream had lost when the channel came.
    lost: u64,
    /// Set while it sends what came before `first`.
    pub(super) replay: Option<Replay>,
}

/// A line goes back to messages before its first one. From the number `until` on, the client has got everything before `then`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replay {
    pub(super) until: u64,
    pub(super) then: u64,
}

/// A message of which a part was taken. It is sent to its end also if its channel has stopped the stream.
#[derive(Debug)]
struct Begun {
    stream: Rc<Stream>,
    number: u64,
    /// Bytes of its data that were taken, and that were not.
    taken: usize,
    rest: usize,
    /// What stands behind the data.
    end: Cow<'static, [u8]>,
}

/// What was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// This number of bytes; there may be more.
    Bytes(usize),
    /// A message for a worker.
    ForWorker(Vec<u8>),
    /// Nothing: it has everything.
    Nothing,
    /// The next message is not kept any more.
    Behind,
}

/// What stands behind the data of a message that does not say where it is.
const END: &[u8] = b"}";

impl Hub {
    /// The streams of a new WebSocket: none yet.
    pub(crate) fn feed(self: &Rc<Self>) -> Feed {
        self.cable_begins();
        self.last_key.set(self.last_key.get() + 1);
        Feed {
            hub: Rc::clone(self),
            key: self.last_key.get(),
            seat: Rc::default(),
            lines: Vec::new(),
            begun: None,
            shows_positions: false,
            behind_replay: Vec::new(),
        }
    }
}

impl FeedLine {
    fn is(&self, name: &[u8], wrap: &Rc<str>) -> bool {
        Rc::ptr_eq(&self.wrap, wrap) && self.stream.name() == name
    }

    fn is_behind(&self) -> bool {
        self.stream.lost() > self.lost && self.stream.lost() >= self.next
    }

    /// Goes on with this message. What was sent before is passed over.
    pub(super) fn go_to(&mut self, next: u64) {
        self.next = next;
        if let Some(Replay { until, then }) = self.replay {
            if self.stream.first_from(next).is_none_or(|number| number >= until) {
                self.next = then;
                self.replay = None;
            }
        }
    }
}

impl Feed {
    pub(crate) fn hub(&self) -> &Rc<Hub> {
        &self.hub
    }

    /// From now on, each message says where it is in its stream.
    pub(crate) fn show_positions(&mut self) {
        self.shows_positions = true;
    }

    pub(crate) fn shows_positions(&self) -> bool {
        self.shows_positions
    }

    /// The task that is woken for messages from now on.
    pub(crate) fn wake(&self, waker: &Waker) {
        self.seat.set(waker);
    }

    /// A channel, which is known by what stands before its messages, has these streams from now on. New ones begin behind the message
    /// with the number `after`.
    ///
    /// # Errors
    /// There are too many, or a name is none. The streams before are there.
    pub(crate) fn set(&mut self, wrap: &Rc<str>, names: &[String], after: u64) -> Result<(), Unsubscribable> {
        self.stop_if(|line| {
            Rc::ptr_eq(&line.wrap, wrap) && !names.iter().any(|name| line.stream.name() == name.as_bytes())
        });
        names.iter().try_for_each(|name| self.start(name.as_bytes(), wrap, after))
    }

    fn start(&mut self, name: &[u8], wrap: &Rc<str>, after: u64) -> Result<(), Unsubscribable> {
        if self.lines.iter().any(|line| line.is(name, wrap)) {
            return Ok(());
        }
        if !is_stream_name(name) {
            return Err(Unsubscribable::Field("names a stream that is none"));
        }
        let hub = &self.hub;
        let of_kind = self.lines.iter().filter(|line| line.wrap.is_empty() == wrap.is_empty());
        if of_kind.count() >= hub.limits().cable_streams as usize {
            return Err(Unsubscribable::Full);
        }
        let cost = hub.streams.borrow().cost_of_new(name);
        hub.make_room(cost).map_err(|_| Unsubscribable::Full)?;
        let stream = hub.streams.borrow_mut().open(name);
        stream.seat(self.key, &self.seat);
        hub.count_bytes();
        let lost = stream.lost();
        let first = after + 1;
        self.lines.push(FeedLine { stream, wrap: Rc::clone(wrap), first, next: first, lost, replay: None });
        Ok(())
    }

    /// Returns the positions in the streams of a channel.
    pub(crate) fn positions(&self, wrap: &Rc<str>) -> Vec<PassedLine> {
        let of_channel = self.lines.iter().filter(|line| Rc::ptr_eq(&line.wrap, wrap));
        let position = |line: &FeedLine| PassedLine {
            stream: line.stream.name().into(),
            first: Some(line.first),
            next: line.next.max(line.lost + 1),
            lost: line.stream.lost(),
        };
        of_channel.map(position).collect()
    }

    /// A channel goes on at this position, which another process had.
    ///
    /// # Errors
    /// There is no room for the stream, or its name is none.
    pub(crate) fn go_on_at(&mut self, wrap: &Rc<str>, position: &PassedLine) -> Result<(), Unsubscribable> {
        let PassedLine { stream: AnyBytes(name), first, next, lost } = position;
        if !is_stream_name(name) {
            return Err(Unsubscribable::Field("names a stream that is none"));
        }
        let cost = self.hub.streams.borrow().cost_of_new(name);
        self.hub.make_room(cost).map_err(|_| Unsubscribable::Full)?;
        let stream = self.hub.streams.borrow_mut().open_inherited(name, *lost);
        stream.seat(self.key, &self.seat);
        self.hub.count_bytes();
        let lost = stream.lost().min(next.saturating_sub(1));
        let (wrap, first) = (Rc::clone(wrap), first.unwrap_or(*next).min(*next));
        self.lines.push(FeedLine { stream, wrap, first, next: *next, lost, replay: None });
        Ok(())
    }

    /// A channel has gone.
    pub(crate) fn stop(&mut self, wrap: &Rc<str>) {
        self.stop_if(|line| Rc::ptr_eq(&line.wrap, wrap));
    }

    fn stop_if(&mut self, ends: impl Fn(&FeedLine) -> bool) {
        let (gone, kept): (Vec<FeedLine>, Vec<FeedLine>) =
            std::mem::take(&mut self.lines).into_iter().partition(ends);
        self.lines = kept;
        let is_needed = |stream: &Rc<Stream>| self.lines.iter().any(|line| Rc::ptr_eq(&line.stream, stream));
        let mut streams = self.hub.streams.borrow_mut();
        let left = gone.iter().filter(|line| !is_needed(&line.stream));
        left.for_each(|line| streams.leave(&line.stream, self.key));
        drop(streams);
        if !gone.is_empty() {
            self.lines.shrink_to_fit();
            self.hub.count_bytes();
        }
    }

    /// Whether a message is not kept any more that it should get.
    pub(crate) fn is_behind(&self) -> bool {
        self.lines.iter().any(FeedLine::is_behind)
    }

    /// Whether all that was begun was taken.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.begun.is_none()
    }

    /// Whether something of a replay is to be taken.
    pub(crate) fn is_replaying(&self) -> bool {
        !self.behind_replay.is_empty()
    }

    /// Returns what follows behind a replay, at the end of that.
    fn take_behind_replay(&mut self) -> Option<Vec<u8>> {
        let is_at_end = self.is_replaying() && self.lines.iter().all(|line| line.replay.is_none());
        is_at_end.then(|| std::mem::take(&mut self.behind_replay))
    }

    /// Calls `write` with the next pieces of frames, up to about `most` bytes.
    pub(crate) fn take(&mut self, most: usize, mut write: impl FnMut(&[u8])) -> Fed {
        if self.is_behind() {
            return Fed::Behind;
        }
        let mut bytes = 0;
        while bytes < most {
            if self.begun.is_none() {
                if let Some(frames) = self.take_behind_replay() {
                    write(&frames);
                    bytes += frames.len();
                    continue;
                }
                match self.begin(bytes == 0, &mut write) {
                    Beginning::Of(header_bytes) => bytes += header_bytes,
                    Beginning::ForWorker(data) => return Fed::ForWorker(data),
                    Beginning::Nothing => break,
                }
            }
            let Some(piece) = self.go_on(most.saturating_sub(bytes), &mut write) else {
                return Fed::Behind;
            };
            bytes += piece;
        }
        match bytes {
            0 => Fed::Nothing,
            bytes => Fed::Bytes(bytes),
        }
    }

    /// Begins the next message.
    fn begin(&mut self, may_ask: bool, write: &mut impl FnMut(&[u8])) -> Beginning {
        let coming =
            self.lines.iter_mut().filter_map(|line| Some((line.stream.first_from(line.next)?, line)));
        let Some((number, line)) = coming.min_by_key(|(number, _)| *number) else {
            return Beginning::Nothing;
        };
        if line.wrap.is_empty() {
            if !may_ask {
                return Beginning::Nothing;
            }
            line.go_to(number + 1);
            let data = line.stream.with(number, |message| message.data().collect::<Vec<_>>().concat());
            return data.map_or(Beginning::Nothing, Beginning::ForWorker);
        }
        line.go_to(number + 1);
        let length = line.stream.with(number, |message| message.data().map(<[u8]>::len).sum());
        let Some(length) = length else { return Beginning::Nothing };
        let end = match self.shows_positions {
            true => Cow::Owned(position_text(line.stream.name(), self.hub.id(number))),
            false => Cow::Borrowed(END),
        };
        let header = Header::of_text(line.wrap.len() + length + end.len());
        write(&header);
        write(line.wrap.as_bytes());
        let header_bytes = header.len() + line.wrap.len();
        self.begun = Some(Begun { stream: Rc::clone(&line.stream), number, taken: 0, rest: length, end });
        Beginning::Of(header_bytes)
    }

    /// Takes the next part of the message that was begun, of about `most` bytes. `None`: it is not kept any more.
    fn go_on(&mut self, most: usize, write: &mut impl FnMut(&[u8])) -> Option<usize> {
        let Some(begun) = &mut self.begun else { return Some(0) };
        let (mut skipped, mut bytes) = (begun.taken, 0);
        begun.stream.with(begun.number, |message| {
            for piece in message.data() {
                let known = skipped.min(piece.len());
                skipped -= known;
                let piece = &piece[known..];
                let piece = &piece[..piece.len().min(most - bytes)];
                write(piece);
                bytes += piece.len();
                if bytes == most {
                    break;
                }
            }
        })?;
        begun.taken += bytes;
        begun.rest -= bytes;
        if begun.rest == 0 {
            write(&begun.end);
            bytes += begun.end.len();
            self.begun = None;
        }
        Some(bytes)
    }
}

/// The end of a message that says where it is, as AnyCable's clients read it.
fn position_text(stream: &[u8], id: EventId) -> Vec<u8> {
    let stream = serde_json::Value::from(String::from_utf8_lossy(stream));
    let (epoch, number) = (id.epoch_text(), id.number);
    format!(r#","stream_id":{stream},"epoch":"{epoch}","offset":{number}}}"#).into_bytes()
}

/// How a message begins.
enum Beginning {
    /// With this number of bytes.
    Of(usize),
    /// It is for a worker.
    ForWorker(Vec<u8>),
    /// None begins now.
    Nothing,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop_if(|_| true);
        self.hub.cable_ends();
    }
}
