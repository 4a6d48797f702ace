//! How an answer gets into the ring: the methods of [`Ring`] that write frames.
//!
//! A frame is written whole, with the GVL held throughout: threads that share a ticket cannot mix their frames,
//! and an interrupt finds none half written. A thread without room for a frame waits *before* it, with the GVL
//! released, and checks again afterwards whether the answer is still open. The last bytes of room are kept for the
//! frame that ends the answer: ending never waits.
#![allow(unsafe_code)]

use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use std::sync::atomic::Ordering::Relaxed;

use highball_ring::frame::{
    Header, Kind, FILE_PAYLOAD, HEADER_BYTES, HIJACK_FOLLOWS, IS_FILE, LOGGED_BY_APP, MAX_FAILURE,
    PACKET_BYTES, STREAMS,
};
use highball_ring::worker::Room;
use highball_ring::Ticket;
use magnus::rb_sys::AsRawValue;
use magnus::{prelude::*, Error, Fixnum, RString, Ruby, Value};

use crate::answer::{self, Form, Unusual};
use crate::left::Socket;
use crate::nogvl;
use crate::ring::{broken, Ring, This};
use crate::slot::Stage;

/// Answers whose body is larger are streamed.
const WHOLE_BODY_BYTES: usize = 48 * 1024;
/// Payload of one `BODY` frame of a streamed body; smaller than a response area, so that the front can
/// begin to send the first while the second is written.
const FRAME_BYTES: usize = 16 * 1024;
/// Room that only the end of an answer may take.
const END_BYTES: usize = HEADER_BYTES;

impl Ring {
    /// `answer(ticket, status, headers, body) -> true | nil`: the whole answer at once, and its end. `nil`: one of the
    /// three is of an unusual shape, or they are large; nothing was written. A body that has to be closed is such.
    pub(crate) fn answer(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: Value,
        headers: Value,
        body: Value,
    ) -> Result<Option<bool>, Error> {
        if let Some(socket) = this.left.socket(ticket).filter(|_| !this.is_foreign()) {
            return this.answer_left(ruby, ticket, &socket, status, headers, body);
        }
        let ticket = this.checked(ruby, ticket)?;
        this.answer_whole(ruby, ticket, status, headers, body)
    }

    /// `reply(seat, status, headers, body) -> true | nil`: the same for the request that this serving thread has
    /// claimed, unless its status is one of a failure. `nil`: see `answer`.
    pub(crate) fn reply(
        ruby: &Ruby,
        this: This,
        seat: Value,
        status: Value,
        headers: Value,
        body: Value,
    ) -> Result<Option<bool>, Error> {
        let Some(ticket) = this.ring.seated(ruby, seat)? else { return Ok(None) };
        if Fixnum::from_value(status).is_none_or(|status| status.to_i64() >= 500) {
            return Ok(None);
        }
        this.ring.answer_whole(ruby, ticket, status, headers, body)
    }

    fn answer_whole(
        &self,
        ruby: &Ruby,
        ticket: Ticket,
        status: Value,
        headers: Value,
        body: Value,
    ) -> Result<Option<bool>, Error> {
        // SAFETY: with the GVL held; Ruby keeps the arguments alive.
        let is_plain_array = unsafe { answer::is_plain_array(body.as_raw()) };
        let Some(status) = Fixnum::from_value(status).filter(|_| is_plain_array) else { return Ok(None) };
        if self.slot(ticket).stage.get() == Stage::Hijacked {
            return Ok(self.end_with(ticket, Kind::End));
        }
        self.at_stage(ruby, ticket, Stage::Waiting)?;
        let status = final_status(ruby, status.to_i64())?;
        let mut buffer = self.buffer.take();
        buffer.clear();
        let form = self.form(ticket, 0);
        let result = match encode_whole(ruby, status, form, headers, body, WHOLE_BODY_BYTES, &mut buffer) {
            Ok(true) if buffer.len() <= self.most_bytes() => {
                self.send_whole(ruby, ticket, &mut buffer).map(Some)
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        self.buffer.set(buffer);
        result
    }

    /// The same for an answer that has left before it began, in one packet. `None`: as for `answer`.
    fn answer_left(
        &self,
        ruby: &Ruby,
        ticket: u64,
        socket: &Socket,
        status: Value,
        headers: Value,
        body: Value,
    ) -> Result<Option<bool>, Error> {
        // SAFETY: with the GVL held; Ruby keeps the arguments alive.
        let is_plain_array = unsafe { answer::is_plain_array(body.as_raw()) };
        let Some(status) = Fixnum::from_value(status).filter(|_| is_plain_array) else { return Ok(None) };
        let status = final_status(ruby, status.to_i64())?;
        let mut packet = Vec::new();
        let form = self.form_left(socket, 0);
        let is_usual = encode_whole(ruby, status, form, headers, body, FRAME_BYTES, &mut packet)?;
        if !is_usual || packet.len() + END_BYTES > PACKET_BYTES {
            return Ok(None);
        }
        if !socket.takes_head() {
            return Err(Error::new(ruby.exception_io_error(), "the answer has begun already"));
        }
        packet.extend_from_slice(&Header { kind: Kind::End, length: 0 }.encode());
        socket.send_packet(ruby, &packet, true)?; // if the front has closed it, the client has gone
        self.end_left(ticket);
        Ok(Some(true))
    }

    fn form_left(&self, socket: &Socket, flags: u8) -> Form {
        let logged = if socket.is_logged.load(Relaxed) { LOGGED_BY_APP } else { 0 };
        Form { flags: flags | logged, most: PACKET_BYTES, sends_files: self.sends_files.get() }
    }

    /// `frames`: all but the end.
    fn send_whole(&self, ruby: &Ruby, ticket: Ticket, frames: &mut Vec<u8>) -> Result<bool, Error> {
        // There is room: only early hints can have been written before.
        if !self.wait_for_room(ruby, ticket, frames.len())? {
            self.end_with(ticket, Kind::End);
            return Ok(true);
        }
        self.at_stage(ruby, ticket, Stage::Waiting)?;
        frames.extend_from_slice(&Header { kind: Kind::End, length: 0 }.encode());
        self.append(ticket, frames);
        self.end(ticket);
        Ok(true)
    }

    /// `note_logged(ticket) -> nil`: the application writes a line about this request into the terminal itself. To be
    /// called before the head of the answer is sent.
    pub(crate) fn note_logged(ruby: &Ruby, this: &Self, ticket: u64) -> Result<(), Error> {
        if let Some(socket) = this.left.socket(ticket) {
            socket.is_logged.store(true, Relaxed);
            return Ok(());
        }
        let ticket = this.checked(ruby, ticket)?;
        this.slot(ticket).is_logged.set(true);
        Ok(())
    }

    /// The form of the head of an answer, with these flags.
    fn form(&self, ticket: Ticket, flags: u8) -> Form {
        let logged = if self.slot(ticket).is_logged.get() { LOGGED_BY_APP } else { 0 };
        Form { flags: flags | logged, most: self.most_bytes(), sends_files: self.sends_files.get() }
    }

    /// `send_files -> nil`: from now on a response that names a file in `X-Sendfile` or `X-Accel-Redirect` is unusual.
    pub(crate) fn send_files(&self) {
        self.sends_files.set(true);
    }

    /// `head(ticket, status, headers, hijack) -> true | false`: the head of an answer. `hijack`: a hijack follows
    /// instead of a body. `false`: the answer was cancelled.
    pub(crate) fn head(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
        hijack: bool,
    ) -> Result<bool, Error> {
        let flags = if hijack { HIJACK_FOLLOWS } else { 0 };
        this.send_head(ruby, ticket, final_status(ruby, status)?, headers, flags)
    }

    /// `head_of_stream(ticket, status, headers) -> true | false`: the head of an answer whose body leaves its place at once.
    pub(crate) fn head_of_stream(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
    ) -> Result<bool, Error> {
        let flags = if this.left.has(ticket) { 0 } else { STREAMS };
        this.send_head(ruby, ticket, final_status(ruby, status)?, headers, flags)
    }

    /// `head_of_file(ticket, status, headers) -> true | false`: the head of an answer whose body is one whole file, of
    /// which the client gets what it asks for. Its Content-Length is the file's, which `file` sends next.
    pub(crate) fn head_of_file(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
    ) -> Result<bool, Error> {
        this.send_head(ruby, ticket, final_status(ruby, status)?, headers, IS_FILE)
    }

    /// `begin(ticket, status, headers, string) -> true | false`: the head, and with it the first piece of the body.
    pub(crate) fn begin_body(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
        chunk: Value,
    ) -> Result<bool, Error> {
        let chunk = string(ruby, chunk)?;
        if this.left.has(ticket) {
            let wanted = this.send_head(ruby, ticket, final_status(ruby, status)?, headers, 0)?;
            return Ok(wanted && this.send_left(ruby, ticket, chunk, 0)?);
        }
        let ticket = this.checked(ruby, ticket)?;
        let wanted = this.append_head(ruby, ticket, final_status(ruby, status)?, headers, 0)?;
        if chunk.is_empty() {
            this.publish(ticket); // there is no piece to do it
        }
        Ok(wanted && this.send_body(ruby, ticket, chunk)?)
    }

    /// `early_hints(ticket, headers) -> true | false`: an interim answer (103). `false`: it is too late for one.
    pub(crate) fn early_hints(ruby: &Ruby, this: &Self, ticket: u64, headers: Value) -> Result<bool, Error> {
        if this.left.socket(ticket).is_some_and(|socket| socket.has_head()) {
            return Ok(false);
        }
        if !this.left.has(ticket) && this.slot(this.checked(ruby, ticket)?).stage.get() != Stage::Waiting {
            return Ok(false);
        }
        this.send_head(ruby, ticket, 103, headers, 0)
    }

    /// Sends the head of an answer, wherever that goes. `false`: it is not wanted.
    fn send_head(
        &self,
        ruby: &Ruby,
        ticket: u64,
        status: u16,
        headers: Value,
        flags: u8,
    ) -> Result<bool, Error> {
        if let Some(socket) = self.left.socket(ticket).filter(|_| !self.is_foreign()) {
            return self.send_head_left(ruby, &socket, status, headers, flags);
        }
        let ticket = self.checked(ruby, ticket)?;
        let wanted = self.append_head(ruby, ticket, status, headers, flags)?;
        self.publish(ticket);
        Ok(wanted)
    }

    fn send_head_left(
        &self,
        ruby: &Ruby,
        socket: &Socket,
        status: u16,
        headers: Value,
        flags: u8,
    ) -> Result<bool, Error> {
        if flags & (HIJACK_FOLLOWS | IS_FILE) != 0 {
            let why = "a connection that is taken over, or a file that is handed over, needs a thread: this request runs on a fiber";
            return Err(Error::new(ruby.exception_io_error(), why));
        }
        let mut frame = Vec::new();
        // SAFETY: with the GVL held; Ruby keeps the argument alive.
        unsafe { answer::head(status, self.form_left(socket, flags), headers.as_raw(), &mut frame) }
            .map_err(|unusual| Error::new(ruby.exception_arg_error(), unusual.to_string()))?;
        let is_final = status >= 200 || status == 101;
        if is_final && !socket.takes_head() {
            return Err(Error::new(ruby.exception_io_error(), "the answer has begun already"));
        }
        socket.send_packet(ruby, &frame, false)
    }

    fn append_head(
        &self,
        ruby: &Ruby,
        ticket: Ticket,
        status: u16,
        headers: Value,
        flags: u8,
    ) -> Result<bool, Error> {
        self.at_stage(ruby, ticket, Stage::Waiting)?;
        let mut frame = Vec::new();
        let form = self.form(ticket, flags);
        // SAFETY: with the GVL held; Ruby keeps the argument alive.
        unsafe { answer::head(status, form, headers.as_raw(), &mut frame) }
            .map_err(|unusual| Error::new(ruby.exception_arg_error(), unusual.to_string()))?;
        if !self.wait_for_room(ruby, ticket, frame.len())? {
            return Ok(false);
        }
        self.at_stage(ruby, ticket, Stage::Waiting)?;
        self.append(ticket, &frame);
        if status >= 200 || status == 101 {
            self.slot(ticket).stage.set(if flags & HIJACK_FOLLOWS != 0 {
                Stage::Promised
            } else {
                Stage::Body
            });
        }
        Ok(true)
    }

    /// `write(ticket, string) -> true | false`: a piece of the body; waits for room with the GVL released. `false`: the
    /// answer was cancelled.
    pub(crate) fn write(ruby: &Ruby, this: &Self, ticket: u64, chunk: Value) -> Result<bool, Error> {
        let chunk = string(ruby, chunk)?;
        if this.left.has(ticket) {
            return this.send_left(ruby, ticket, chunk, 0);
        }
        let ticket = this.checked(ruby, ticket)?;
        this.send_body(ruby, ticket, chunk)
    }

    /// The rest of a piece of the body, after its first `done` bytes, of an answer that has left.
    fn send_left(&self, ruby: &Ruby, ticket: u64, chunk: RString, mut done: usize) -> Result<bool, Error> {
        let Some(socket) = self.left.socket(ticket).filter(|_| !self.is_foreign()) else {
            return Err(Error::new(ruby.exception_io_error(), "this answer is not written here"));
        };
        loop {
            // SAFETY: with the GVL held, and copied before Ruby runs again.
            let bytes = unsafe { answer::string_bytes(chunk.as_raw()) }.get(done..).unwrap_or_default();
            let piece = &bytes[..bytes.len().min(FRAME_BYTES)];
            if piece.is_empty() {
                return Ok(true);
            }
            done += piece.len();
            if !socket.send(ruby, Kind::Body, piece)? {
                return Ok(false);
            }
        }
    }

    fn send_body(&self, ruby: &Ruby, ticket: Ticket, chunk: RString) -> Result<bool, Error> {
        let most = FRAME_BYTES.min(self.most_bytes() - HEADER_BYTES);
        let mut done = 0;
        loop {
            // SAFETY: with the GVL held; only the length is used.
            let rest = unsafe { answer::string_bytes(chunk.as_raw()) }.len().saturating_sub(done);
            let length = rest.min(most);
            let has_room = self.wait_for_room(ruby, ticket, HEADER_BYTES + length)?;
            if self.left.has(ticket.pack()) {
                return self.send_left(ruby, ticket.pack(), chunk, done);
            }
            if !has_room {
                return Ok(false);
            }
            self.at_stage(ruby, ticket, Stage::Body)?;
            // Read again: Ruby may have run while we waited, and the String may be another now. SAFETY: with the GVL
            // held; used up before Ruby runs again.
            let bytes = unsafe { answer::string_bytes(chunk.as_raw()) }.get(done..).unwrap_or_default();
            let piece = &bytes[..bytes.len().min(length)];
            if piece.is_empty() {
                return Ok(true);
            }
            self.append(ticket, &Header { kind: Kind::Body, length: piece.len() }.encode());
            self.append(ticket, piece);
            self.publish(ticket);
            done += piece.len();
        }
    }

    /// `file(ticket, fd, offset, length) -> true | false`: a part of an open file as (a piece of) the body.
    pub(crate) fn file(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        fd: RawFd,
        offset: u64,
        length: u64,
    ) -> Result<bool, Error> {
        let ticket = this.checked(ruby, ticket)?;
        this.at_stage(ruby, ticket, Stage::Body)?;
        this.send_descriptor(ruby, ticket, fd)?;
        if !this.wait_for_room(ruby, ticket, HEADER_BYTES + FILE_PAYLOAD)? {
            return Ok(false);
        }
        this.at_stage(ruby, ticket, Stage::Body)?;
        this.append(ticket, &Header { kind: Kind::File, length: FILE_PAYLOAD }.encode());
        this.append(ticket, &[offset.to_le_bytes(), length.to_le_bytes()].concat());
        this.publish(ticket);
        Ok(true)
    }

    /// `hijack(ticket) -> Integer | nil`: the descriptor of a socket that the client's bytes flow to and from; it
    /// belongs to the caller. Waits for it with the GVL released. `nil`: the answer was cancelled.
    pub(crate) fn hijack(ruby: &Ruby, this: &Self, ticket: u64) -> Result<Option<RawFd>, Error> {
        let ticket = this.checked(ruby, ticket)?;
        let stage = this.slot(ticket).stage.get();
        let handed_over = match stage {
            Stage::Waiting => Stage::Hijacked,
            Stage::Promised => Stage::Upgraded,
            Stage::Body | Stage::Upgraded | Stage::Hijacked => {
                let why = "the connection cannot be hijacked any more: the answer has begun";
                return Err(Error::new(ruby.exception_io_error(), why));
            }
        };
        let wanted = this.wait_for_room(ruby, ticket, HEADER_BYTES)?;
        this.at_stage(ruby, ticket, stage)?;
        this.slot(ticket).stage.set(handed_over);
        if !wanted {
            return Ok(None);
        }
        this.append(ticket, &Header { kind: Kind::Hijack, length: 0 }.encode());
        this.publish(ticket);
        let socket = this.wait_for_descriptor(ruby, ticket)?;
        Ok(socket.map(IntoRawFd::into_raw_fd))
    }

    /// Waits for the descriptor that the front sends for this request. `None`: the answer was cancelled.
    fn wait_for_descriptor(&self, ruby: &Ruby, ticket: Ticket) -> Result<Option<OwnedFd>, Error> {
        loop {
            let seen = self.ring.announce_wait_for_descriptor(ticket.slot);
            if let Some(found) = self.received_descriptor(ruby, ticket)? {
                return Ok(Some(found));
            }
            if self.ring.is_cancelled(ticket.slot) {
                return Ok(None);
            }
            self.slot(ticket).waited.set(true);
            nogvl::without_gvl(&|| self.ring.sleep_for_room(ticket.slot, seen), &|| {
                self.ring.interrupt_room(ticket.slot)
            })?;
            if let Some(found) = self.left.take_connection(ticket.pack()) {
                return Ok(Some(found));
            }
            self.checked(ruby, ticket.pack())?;
        }
    }

    fn send_descriptor(&self, ruby: &Ruby, ticket: Ticket, fd: RawFd) -> Result<(), Error> {
        loop {
            // SAFETY: Ruby gives the number of a descriptor that the caller's IO keeps open during this call.
            let descriptor = unsafe { BorrowedFd::borrow_raw(fd) };
            let sent = self.ring.send_descriptor(ticket.slot, ticket.position, descriptor);
            if sent.map_err(|e| broken(ruby, &e))? {
                return Ok(());
            }
            // The front empties the socket on its next turn.
            nogvl::without_gvl(&|| self.ring.wait_to_send_descriptor(), &|| ())?;
            self.checked(ruby, ticket.pack())?;
        }
    }

    /// `finish(ticket) -> true | nil`: the answer is complete. `nil`: it had ended before. If it has left its place, waits for room with
    /// the GVL released.
    pub(crate) fn finish(ruby: &Ruby, this: &Self, ticket: u64) -> Result<Option<bool>, Error> {
        if this.left.has(ticket) && !this.is_foreign() {
            if let Some(socket) = this.left.socket(ticket) {
                // Without a head, it is not complete.
                let kind = if socket.has_head() { Kind::End } else { Kind::Abort };
                socket.send(ruby, kind, b"")?; // if the front has closed it, nothing is missing
            }
            return Ok(this.end_left(ticket));
        }
        Ok(this.end_with(Ticket::unpack(ticket), Kind::End))
    }

    /// `abort(ticket) -> true | nil`: the answer cannot be completed. `nil`: it had ended before.
    pub(crate) fn abort(&self, ticket: u64) -> Option<bool> {
        self.end_left(ticket).or_else(|| self.end_with(Ticket::unpack(ticket), Kind::Abort))
    }

    /// An answer that has left goes on no longer: without its last frame, it is cut off. `None`: it has not left.
    fn end_left(&self, ticket: u64) -> Option<bool> {
        let ended = !self.is_foreign() && self.left.end(ticket);
        ended.then(|| self.tell_left())?;
        Some(true)
    }

    /// `fail(ticket, string) -> true | nil`: there is no answer, because the application has raised an exception; the
    /// string says which, or is empty. `nil`: the answer has begun or ended, or was cancelled.
    pub(crate) fn fail(ruby: &Ruby, this: &Self, ticket: u64, words: RString) -> Result<Option<bool>, Error> {
        if let Some(socket) = this.left.socket(ticket).filter(|_| !this.is_foreign()) {
            return this.fail_left(ruby, ticket, &socket, words);
        }
        let ticket = Ticket::unpack(ticket);
        let is_open = || this.is_current(ticket) && this.slot(ticket).stage.get() == Stage::Waiting;
        // SAFETY: with the GVL held; only the length is used.
        let length = unsafe { answer::string_bytes(words.as_raw()) }.len();
        if !is_open() || length > MAX_FAILURE.min(this.most_bytes() - HEADER_BYTES) {
            return Ok(None);
        }
        if !this.wait_for_room(ruby, ticket, HEADER_BYTES + length)? || !is_open() {
            return Ok(None);
        }
        // SAFETY: as above; used up before Ruby runs again. (No other thread has the String.)
        let bytes = unsafe { answer::string_bytes(words.as_raw()) };
        this.append(ticket, &Header { kind: Kind::Failure, length: bytes.len() }.encode());
        this.append(ticket, bytes);
        Ok(this.end(ticket))
    }

    fn fail_left(
        &self,
        ruby: &Ruby,
        ticket: u64,
        socket: &Socket,
        words: RString,
    ) -> Result<Option<bool>, Error> {
        if !socket.takes_head() {
            return Ok(None);
        }
        // SAFETY: with the GVL held, and copied before Ruby runs again.
        let bytes = unsafe { answer::string_bytes(words.as_raw()) };
        let words = if bytes.len() <= PACKET_BYTES - HEADER_BYTES { bytes } else { b"" };
        socket.send(ruby, Kind::Failure, words)?;
        Ok(self.end_left(ticket))
    }

    /// Ends the answer. Never waits, raises or lets Ruby run: a thread that is being killed gets this done too.
    fn end_with(&self, ticket: Ticket, kind: Kind) -> Option<bool> {
        if !self.is_current(ticket) {
            return None;
        }
        let kind = match self.slot(ticket).stage.get() {
            // Without a head, or without the hijack that the head promised, it is not complete.
            Stage::Waiting | Stage::Promised => Kind::Abort,
            Stage::Body => kind,
            // Even if the request fails, the connection is the app's.
            Stage::Upgraded | Stage::Hijacked => Kind::End,
        };
        self.append_end(ticket, kind)
    }

    /// Writes the last frame in its slot.
    pub(crate) fn append_end(&self, ticket: Ticket, kind: Kind) -> Option<bool> {
        self.append(ticket, &Header { kind, length: 0 }.encode());
        self.end(ticket)
    }

    /// Its last frame is written.
    fn end(&self, ticket: Ticket) -> Option<bool> {
        if self.slot(ticket).waited.get() {
            self.ring.interrupt_room(ticket.slot); // another thread may write to this answer: it must learn
        }
        self.ring.publish_end(ticket.slot, self.slot(ticket).written.get());
        self.close(ticket);
        Some(true)
    }

    /// The most that can be written at a time, so that there is room for it and for the end.
    fn most_bytes(&self) -> usize {
        self.ring.geometry().response_bytes as usize - END_BYTES
    }

    /// Waits until `bytes` can be written. `false`: the answer was cancelled, or has left.
    ///
    /// # Errors
    /// What an interrupt raised, or `IOError`: another thread has ended the answer meanwhile.
    fn wait_for_room(&self, ruby: &Ruby, ticket: Ticket, bytes: usize) -> Result<bool, Error> {
        let slot = self.slot(ticket);
        loop {
            // The ring looks whether there is room beyond a count: here, beyond the last byte needed but one.
            let beyond = slot.written.get().wrapping_add((bytes + END_BYTES - 1) as u32);
            match self.ring.room(ticket.slot, beyond) {
                Room::Some => return Ok(true),
                Room::Cancelled => return Ok(false),
                Room::None => {}
            }
            if let Some(seen) = self.ring.announce_wait_for_room(ticket.slot, beyond) {
                slot.waited.set(true);
                self.publish(ticket); // what the front does not see it cannot make room of
                nogvl::without_gvl(&|| self.ring.sleep_for_room(ticket.slot, seen), &|| {
                    self.ring.interrupt_room(ticket.slot)
                })?;
                if self.left.has(ticket.pack()) {
                    return Ok(false);
                }
                self.checked(ruby, ticket.pack())?;
            }
        }
    }

    /// Appends bytes for which there is room; they become visible with [`Ring::publish`].
    fn append(&self, ticket: Ticket, bytes: &[u8]) {
        let slot = self.slot(ticket);
        let written = self.ring.write(ticket.slot, slot.written.get(), bytes);
        debug_assert_eq!(written, bytes.len());
        slot.written.set(slot.written.get().wrapping_add(written as u32));
    }

    fn publish(&self, ticket: Ticket) {
        self.ring.publish(ticket.slot, self.slot(ticket).written.get());
    }

    fn at_stage(&self, ruby: &Ruby, ticket: Ticket, stage: Stage) -> Result<(), Error> {
        let why = match (self.slot(ticket).stage.get(), stage) {
            (now, wanted) if now == wanted => return Ok(()),
            (Stage::Upgraded | Stage::Hijacked, _) => "the application has taken the connection over",
            (Stage::Waiting, _) => "the head of the answer comes first",
            _ => "the answer has begun already",
        };
        Err(Error::new(ruby.exception_io_error(), why))
    }
}

/// Appends the frames of a whole answer but for its end. `body` is an Array. `false`: one of the two is of an unusual shape, or
/// the body has more than `most` bytes.
fn encode_whole(
    ruby: &Ruby,
    status: u16,
    form: Form,
    headers: Value,
    body: Value,
    most: usize,
    frames: &mut Vec<u8>,
) -> Result<bool, Error> {
    // SAFETY: with the GVL held; Ruby keeps the arguments of its call alive.
    let encoded = unsafe {
        answer::head(status, form, headers.as_raw(), frames)
            .and_then(|()| answer::body(body.as_raw(), most, frames))
    };
    match encoded {
        Ok(()) => Ok(true),
        Err(Unusual::Shape) => Ok(false),
        Err(Unusual::Illegal(why)) => Err(Error::new(ruby.exception_arg_error(), why)),
    }
}

/// The status of an answer, not an interim one: the front would wait for another head after it.
fn final_status(ruby: &Ruby, status: i64) -> Result<u16, Error> {
    let known = u16::try_from(status).ok().filter(|status| matches!(status, 101 | 200..=999));
    known.ok_or_else(|| {
        let why = format!("the status of a response must be 101 or 200 to 999, not {status}");
        Error::new(ruby.exception_arg_error(), why)
    })
}

fn string(ruby: &Ruby, chunk: Value) -> Result<RString, Error> {
    RString::from_value(chunk).ok_or_else(|| {
        // SAFETY: only the name is taken from it, at once.
        let class = unsafe { chunk.classname() }.into_owned();
        let why = format!("the body of a response must consist of Strings; there was a {class}");
        Error::new(ruby.exception_type_error(), why)
    })
}
