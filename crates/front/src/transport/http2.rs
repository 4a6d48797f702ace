//! One stream of an HTTP/2 connection, used as a socket is: the body of a request is read from it, and the answer's
//! body written to it. Heads are not among its bytes.
//!
//! Both directions are as fast as the slower side. The client may send more of a body once bytes were read, and the answer
//! goes on once the client's flow-control windows have room, and the socket has taken what all streams have written before.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::task::{ready, Context, Poll, Waker};

use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::Response;

use crate::message::answer::AnswerBody;

/// Most bytes that a stream writes at a time, so that one does not keep the others waiting.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of answers that the streams of a connection have written and its socket has not taken. Beyond it, they wait.
const UNSENT_BYTES: usize = 128 * 1024;

/// A stream.
#[derive(Debug)]
pub(crate) struct Http2Stream(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    /// By which the client knows it.
    id: u32,
    body: RecvStream,
    /// What has come of the body and was not read.
    rest: Bytes,
    body_end: BodyEnd,
    answer: Answer,
    /// Bytes of the answer's body that are missing, where its length is known.
    missing: Option<u64>,
    /// Nothing follows the bytes that are written next.
    is_last: bool,
    unsent: Rc<Unsent>,
}

/// Where the body of a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEnd {
    /// Further on. Reading goes on without notice then: there may be a reset.
    Ahead,
    /// Further on, which the reader has to learn.
    Awaited,
    /// Here.
    Reached,
}

/// How far the answer has come.
#[derive(Debug)]
enum Answer {
    Awaited(SendResponse<Piece>),
    Begun(SendStream<Piece>),
    Ended,
}

/// Bytes on their way to the socket.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    written: usize,
    unsent: Rc<Unsent>,
}

/// What all streams of a connection have written and its socket has not taken.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    bytes: Cell<usize>,
    /// Streams that have something to write and wait for their turn.
    waiting: RefCell<VecDeque<(u32, Waker)>>,
}

impl Unsent {
    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Waits for this stream's turn to write.
    fn poll_turn(&self, stream: u32, context: &Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting.borrow_mut();
        let is_next = waiting.front().is_none_or(|(next, _)| *next == stream);
        if is_next && self.bytes.get() < UNSENT_BYTES {
            return Poll::Ready(());
        }
        match waiting.iter_mut().find(|(other, _)| *other == stream) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => waiting.push_back((stream, context.waker().clone())),
        }
        Poll::Pending
    }

    /// The stream has had its turn, or has ended.
    fn end_turn(&self, stream: u32) {
        self.waiting.borrow_mut().retain(|(other, _)| *other != stream);
        self.wake_next();
    }

    fn take_off(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() - bytes);
        self.wake_next();
    }

    fn wake_next(&self) {
        if self.bytes.get() < UNSENT_BYTES {
            self.waiting.borrow().front().into_iter().for_each(|(_, waker)| waker.wake_by_ref());
        }
    }
}

impl Piece {
    fn new(bytes: Vec<u8>, unsent: &Rc<Unsent>) -> Piece {
        unsent.bytes.set(unsent.bytes.get() + bytes.len());
        Piece { bytes, written: 0, unsent: Rc::clone(unsent) }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.written
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn advance(&mut self, count: usize) {
        self.written += count;
        self.unsent.take_off(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.has_remaining() {
            self.unsent.take_off(self.remaining());
        }
    }
}

impl Http2Stream {
    /// A stream of a request, and of the answer to it.
    pub(crate) fn new(body: RecvStream, respond: SendResponse<Piece>, unsent: Rc<Unsent>) -> Self {
        let body_end = if body.is_end_stream() { BodyEnd::Reached } else { BodyEnd::Ahead };
        let (id, rest, answer) = (respond.stream_id().as_u32(), Bytes::new(), Answer::Awaited(respond));
        let inner = Inner { id, body, rest, body_end, answer, missing: None, is_last: false, unsent };
        Http2Stream(RefCell::new(inner))
    }

    // --- Reading -------------------------------------------------------------------------------------

    /// From here on, the reader learns where the body ends: it reads nothing then, once.
    pub(crate) fn await_end_of_body(&self) {
        let mut inner = self.0.borrow_mut();
        if inner.body_end == BodyEnd::Ahead {
            inner.body_end = BodyEnd::Awaited;
        }
    }

    /// Whether all of the body was read.
    pub(crate) fn has_read_body(&self) -> bool {
        self.0.borrow().body_end == BodyEnd::Reached
    }

    /// Reads some of the body; the client may send as much again. Behind the body, an error is all that may come: the client
    /// has reset the stream.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        while inner.body_end != BodyEnd::Reached {
            if inner.rest.is_empty() {
                match ready!(inner.body.poll_data(context)) {
                    Some(data) => inner.rest = data.map_err(broken)?,
                    None if inner.ends_body_unnoticed() => {}
                    None => return Poll::Ready(Ok(0)),
                }
                continue;
            }
            let length = inner.rest.len().min(buffer.len());
            inner.rest.copy_to_slice(&mut buffer[..length]);
            inner.body.flow_control().release_capacity(length).map_err(broken)?;
            return Poll::Ready(Ok(length));
        }
        inner.poll_reset(context).map(Err)
    }

    // --- Writing -------------------------------------------------------------------------------------

    /// Sends a head that another one follows.
    ///
    /// # Errors
    /// The client has reset the stream.
    pub(crate) fn send_interim(&self, head: Response<()>) -> Result<(), h2::Error> {
        match &mut self.0.borrow_mut().answer {
            Answer::Awaited(respond) => respond.send_informational(head),
            Answer::Begun(_) | Answer::Ended => Ok(()),
        }
    }

    /// Sends the head of the answer.
    ///
    /// # Errors
    /// The client has reset the stream.
    pub(crate) fn send_head(&self, head: Response<()>, body: AnswerBody) -> Result<(), h2::Error> {
        let mut inner = self.0.borrow_mut();
        let has_body = !matches!(body, AnswerBody::None | AnswerBody::Length(0));
        if let AnswerBody::Length(length) = body {
            inner.missing = Some(length);
        }
        if let Answer::Awaited(respond) = &mut inner.answer {
            let stream = respond.send_response(head, !has_body)?;
            inner.answer = if has_body { Answer::Begun(stream) } else { Answer::Ended };
        }
        Ok(())
    }

    /// The answer ends, behind bytes that are still to be written if there are any.
    pub(crate) fn end(&self, has_bytes: bool) {
        let mut inner = self.0.borrow_mut();
        if has_bytes {
            inner.is_last = true;
        } else if inner.send(Vec::new(), true).is_err() {
            inner.answer = Answer::Ended; // the client has left
        }
    }

    /// The answer cannot be completed: the client must notice.
    pub(crate) fn reset(&self) {
        self.reset_for(Reason::INTERNAL_ERROR);
    }

    /// Nothing was done for the request: the client may repeat it.
    pub(crate) fn refuse(&self) {
        self.reset_for(Reason::REFUSED_STREAM);
    }

    fn reset_for(&self, reason: Reason) {
        match &mut self.0.borrow_mut().answer {
            Answer::Awaited(respond) => respond.send_reset(reason),
            Answer::Begun(stream) => stream.send_reset(reason),
            Answer::Ended => {}
        }
    }

    /// Waits until the client takes something.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_window(context, PIECE_BYTES).map_ok(drop)
    }

    /// Writes some of `bytes`. Returns their number.
    pub(crate) fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        let length = ready!(inner.poll_room(context, bytes.len()))?;
        let is_last = inner.is_last && length == bytes.len();
        Poll::Ready(inner.send(bytes[..length].to_vec(), is_last))
    }

    /// Writes some of the `most` bytes of a file from `offset` on, which are in memory. Returns their number.
    pub(crate) fn poll_write_file(
        &self,
        context: &mut Context<'_>,
        file: &File,
        offset: u64,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        let mut bytes = vec![0; ready!(inner.poll_room(context, most))?];
        let length = file.read_at(&mut bytes, offset)?;
        bytes.truncate(length);
        Poll::Ready(if length == 0 { Ok(0) } else { inner.send(bytes, false) })
    }
}

impl Inner {
    /// The body has ended. Whether its reader goes on.
    fn ends_body_unnoticed(&mut self) -> bool {
        std::mem::replace(&mut self.body_end, BodyEnd::Reached) != BodyEnd::Awaited
    }

    fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let reset = match &mut self.answer {
            Answer::Awaited(respond) => ready!(respond.poll_reset(context)),
            Answer::Begun(stream) => ready!(stream.poll_reset(context)),
            Answer::Ended => return Poll::Pending,
        };
        Poll::Ready(reset.map_or_else(broken, |reason| broken(reason.into())))
    }

    /// Waits until something can be written. Returns how much, at most this.
    fn poll_room(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        let room = ready!(self.poll_window(context, most))?;
        self.unsent.poll_turn(self.id, context).map(|()| Ok(room))
    }

    /// Waits until the client's windows have room. Returns how much, at most this.
    fn poll_window(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        let Answer::Begun(stream) = &mut self.answer else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let most = most.min(PIECE_BYTES);
        stream.reserve_capacity(most);
        while stream.capacity() == 0 {
            match ready!(stream.poll_capacity(context)) {
                Some(capacity) => drop(capacity.map_err(broken)?),
                None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }
        Poll::Ready(Ok(stream.capacity().min(most)))
    }

    /// Sends bytes for which there is room, and whether they are the last. Returns their number.
    fn send(&mut self, bytes: Vec<u8>, is_last: bool) -> io::Result<usize> {
        let Answer::Begun(stream) = &mut self.answer else { return Ok(bytes.len()) };
        let length = bytes.len();
        self.missing = self.missing.map(|missing| missing.saturating_sub(length as u64));
        let ends = is_last || self.missing == Some(0);
        stream.send_data(Piece::new(bytes, &self.unsent), ends).map_err(broken)?;
        self.unsent.end_turn(self.id);
        if ends {
            self.answer = Answer::Ended;
        }
        Ok(length)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.unsent.end_turn(self.id);
    }
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_write(unsent: &Unsent, stream: u32) -> bool {
        unsent.poll_turn(stream, &Context::from_waker(Waker::noop())).is_ready()
    }

    /// Writes as much as one stream may.
    fn write(unsent: &Rc<Unsent>, stream: u32) -> Piece {
        let piece = Piece::new(vec![0; UNSENT_BYTES], unsent);
        unsent.end_turn(stream);
        piece
    }

    #[test]
    fn streams_write_in_turns() {
        let unsent = Rc::default();
        assert!(may_write(&unsent, 1));
        let mut piece = write(&unsent, 1);
        let turns = [1, 3, 5].map(|stream| may_write(&unsent, stream));
        assert_eq!(turns, [false; 3], "the socket takes nothing");
        for next in [1, 3, 5, 1, 3] {
            piece.advance(UNSENT_BYTES);
            let others = [1, 3, 5].into_iter().filter(|other| *other != next);
            assert!(!others.into_iter().any(|other| may_write(&unsent, other)), "it is {next}'s turn");
            assert!(may_write(&unsent, next));
            piece = write(&unsent, next);
            assert!(!may_write(&unsent, next));
        }
    }

    #[test]
    fn a_stream_that_ends_gives_its_turn_to_the_next() {
        let unsent = Rc::default();
        let piece = write(&unsent, 1);
        assert!(!may_write(&unsent, 3) && !may_write(&unsent, 5));
        drop(piece);
        assert_eq!((unsent.bytes(), may_write(&unsent, 5)), (0, false));
        unsent.end_turn(3);
        assert!(may_write(&unsent, 5));
    }
}
