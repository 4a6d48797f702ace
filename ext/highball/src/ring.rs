//! `Highball::Ring`: the worker's end of the ring.
//!
//! A request is known to Ruby by its *ticket*, an Integer made of the entry's position and slot. A ticket is
//! good until its answer has ended; every method refuses one that is not, so that an app which keeps a
//! stream for too long can never write into somebody else's answer.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use highball_ring::frame::{Kind, MAX_PAYLOAD};
use highball_ring::request::{Fields, Fixed, BODY_INLINE, BODY_SPOOLED, FIXED_BYTES};
use highball_ring::worker::Room;
use highball_ring::{RingError, WorkerRing};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{function, method, prelude::*, Error, RHash, RModule, RString, Ruby, Value};

use crate::answer::{self, Unusual};
use crate::env::{binary_string, EnvKeys};
use crate::nogvl;

/// Answers up to this size are put together in private memory and written in one go.
const WHOLE_ANSWER_BYTES: usize = 48 * 1024;
/// Payload of one `BODY` frame of a streamed body; smaller than a response area, so that the front can
/// begin to send the first while the second is written.
const FRAME_BYTES: usize = 16 * 1024;

/// The Ruby object.
#[magnus::wrap(class = "Highball::Ring", free_immediately)]
pub(crate) struct Ring {
    ring: WorkerRing,
    /// Never dropped: the garbage collector knows addresses in it.
    keys: ManuallyDrop<EnvKeys>,
    slots: Vec<Slot>,
    /// Scratch space for whole answers, taken out while in use.
    buffer: Cell<Vec<u8>>,
    /// Requests that threads of this worker have begun.
    serving: Cell<u32>,
    stopped: Cell<bool>,
}

#[derive(Default)]
struct Slot {
    /// The position of the open request, 0 if there is none.
    position: Cell<u64>,
    /// Bytes of its answer written so far, free-running.
    written: Cell<u32>,
    /// Whether the head of its answer, or the whole of it, was written.
    begun: Cell<bool>,
    /// Whether the connection was handed to the app without a head: the answer is ignored then.
    hijacked: Cell<bool>,
    /// The file of a spooled body that came before its request was claimed.
    spooled: RefCell<Option<(u64, OwnedFd)>>,
}

/// A ticket taken apart.
#[derive(Clone, Copy)]
struct Ticket {
    position: u64,
    slot: u16,
}

impl Ticket {
    fn pack(self) -> u64 {
        self.position << 16 | u64::from(self.slot)
    }

    fn unpack(ticket: u64) -> Self {
        Ticket { position: ticket >> 16, slot: ticket as u16 }
    }
}

/// Defines the class.
pub(crate) fn define(ruby: &Ruby, highball: RModule) -> Result<(), Error> {
    let class = highball.define_class("Ring", ruby.class_object())?;
    class.define_singleton_method("new", function!(Ring::open, 3))?;
    class.define_method("claim", method!(Ring::claim, 0))?;
    class.define_method("env", method!(Ring::env, 2))?;
    class.define_method("answer", method!(Ring::answer, 4))?;
    class.define_method("head", method!(Ring::head, 4))?;
    class.define_method("write", method!(Ring::write, 2))?;
    class.define_method("file", method!(Ring::file, 4))?;
    class.define_method("hijack", method!(Ring::hijack, 2))?;
    class.define_method("finish", method!(Ring::finish, 1))?;
    class.define_method("abort", method!(Ring::abort, 1))?;
    class.define_method("open?", method!(Ring::is_open, 1))?;
    class.define_method("begun?", method!(Ring::has_begun, 1))?;
    class.define_method("hijacked?", method!(Ring::is_hijacked, 1))?;
    class.define_method("cancelled?", method!(Ring::is_cancelled, 1))?;
    class.define_method("stop", method!(Ring::stop, 0))?;
    class.define_method("threads", method!(Ring::threads, 0))?;
    Ok(())
}

impl Ring {
    /// `Ring.new(memory, wake, descriptors) -> Ring`: maps the ring behind three descriptor numbers, which
    /// belong to the ring from then on.
    fn open(ruby: &Ruby, memory: RawFd, wake: RawFd, descriptors: RawFd) -> Result<Self, Error> {
        // SAFETY: Ruby hands over open descriptors that nobody else uses.
        let [memory, wake, descriptors] =
            [memory, wake, descriptors].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let ring = WorkerRing::open(memory.as_fd(), wake, descriptors).map_err(|e| broken(ruby, &e))?;
        let slots = (0..ring.geometry().slots).map(|_| Slot::default()).collect();
        Ok(Ring {
            ring,
            keys: ManuallyDrop::new(EnvKeys::new()),
            slots,
            buffer: Cell::default(),
            serving: Cell::new(0),
            stopped: Cell::new(false),
        })
    }

    /// `claim -> Integer | nil`: the next request's ticket; waits for one with the GVL released. `nil` once
    /// the ring is stopped.
    fn claim(&self) -> Result<Option<u64>, Error> {
        // Other threads of this worker are in the middle of a request: one that was waiting for the
        // GVL goes first, or it would wait for as long as there is something to claim.
        if self.serving.get() > 0 {
            nogvl::yield_gvl()?;
        }
        while !self.stopped.get() {
            if let Some((slot, position)) = self.ring.claim() {
                return Ok(self.begin(Ticket { position, slot }));
            }
            if let Some(seen) = self.ring.announce_sleep() {
                let waited = nogvl::without_gvl(&|| self.ring.sleep(seen, None::<Duration>), &|| {
                    self.ring.interrupt()
                });
                self.ring.awake();
                // This thread may be the one that was woken, and it ends: somebody else must look.
                waited.inspect_err(|_| self.ring.pass_on())?;
            }
        }
        Ok(None)
    }

    fn begin(&self, ticket: Ticket) -> Option<u64> {
        // The front names only slots of this ring.
        let slot = self.slots.get(usize::from(ticket.slot))?;
        slot.position.set(ticket.position);
        slot.written.set(0);
        slot.begun.set(false);
        slot.hijacked.set(false);
        self.serving.set(self.serving.get() + 1);
        Some(ticket.pack())
    }

    /// `env(ticket, template) -> Hash`: the Rack env of a request, made from a copy of `template`.
    fn env(ruby: &Ruby, this: &Self, ticket: u64, template: RHash) -> Result<RHash, Error> {
        let ticket = this.checked(ruby, ticket)?;
        // SAFETY: the slot is claimed and its answer not ended: `checked` has just looked, and nothing
        // below ends it.
        let area = unsafe { this.ring.request(ticket.slot) };
        let (fixed, rest) = area.split_first_chunk::<FIXED_BYTES>().expect("an area is at least a page");
        let fixed = Fixed::decode(fixed);
        let (fields, body) = rest.split_at(fixed.head_bytes as usize - FIXED_BYTES);
        // SAFETY: Ruby calls us with the GVL held, and `template` is a live Hash.
        let env = unsafe {
            let env = this.keys.build(template.as_raw(), fixed.flags, Fields::new(fields));
            RHash::from_value(Value::from_raw(env)).expect("a Hash")
        };
        if fixed.flags & BODY_INLINE != 0 {
            env.aset(ruby.str_new("rack.input"), string_input(ruby, &body[..fixed.body_bytes as usize])?)?;
        } else if fixed.flags & BODY_SPOOLED != 0 {
            env.aset(ruby.str_new("rack.input"), this.spooled_input(ruby, ticket)?)?;
        }
        Ok(env)
    }

    /// The File of a spooled body. It was sent before its entry was placed, so it is there.
    fn spooled_input(&self, ruby: &Ruby, ticket: Ticket) -> Result<Value, Error> {
        let mine = loop {
            let kept = self.slot(ticket).spooled.take();
            if let Some((position, file)) = kept {
                if position == ticket.position {
                    break file;
                }
            }
            let (tag, file) =
                self.ring.receive_descriptor().map_err(|e| broken(ruby, &e))?.ok_or_else(|| {
                    Error::new(ruby.exception_io_error(), "the request's body file is missing")
                })?;
            if let Some(slot) = self.slots.get(usize::from(tag.slot)) {
                slot.spooled.replace(Some((tag.position, file)));
            }
        };
        let file_class: Value = ruby.class_object().const_get("File")?;
        file_class.funcall("for_fd", (mine.into_raw_fd(), "rb"))
    }

    /// `answer(ticket, status, headers, body) -> true | nil`: the whole answer at once, and its end. `nil`: the
    /// headers or the body are of an unusual shape or the body is large; nothing was written.
    fn answer(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
        body: Value,
    ) -> Result<Option<bool>, Error> {
        let ticket = this.checked(ruby, ticket)?;
        if this.slot(ticket).hijacked.get() {
            return this.end_with(ticket.pack(), Kind::End);
        }
        let status = checked_status(ruby, status)?;
        let mut buffer = this.buffer.take();
        buffer.clear();
        // SAFETY: with the GVL held; Ruby keeps both arguments alive.
        let encoded = unsafe {
            answer::head(status, false, headers.as_raw(), &mut buffer)
                .and_then(|()| answer::body(body.as_raw(), WHOLE_ANSWER_BYTES, &mut buffer))
        };
        let result = usual(ruby, encoded).and_then(|usual| {
            if !usual {
                return Ok(None);
            }
            answer::push_frame(Kind::End, b"", &mut buffer);
            this.slot(ticket).begun.set(true);
            this.write_all(ticket, &buffer)?;
            this.end(ticket);
            Ok(Some(true))
        });
        this.buffer.set(buffer);
        result
    }

    /// `head(ticket, status, headers, hijack) -> true | nil`: the head of an answer. `nil`: unusual headers;
    /// nothing was written. A status of 1xx (but not 101) is an interim answer. `hijack`: a hijack follows
    /// instead of a body.
    fn head(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        status: i64,
        headers: Value,
        hijack: bool,
    ) -> Result<Option<bool>, Error> {
        let ticket = this.checked(ruby, ticket)?;
        let status = checked_status(ruby, status)?;
        let mut buffer = Vec::new();
        // SAFETY: with the GVL held; Ruby keeps the argument alive.
        let encoded = unsafe { answer::head(status, hijack, headers.as_raw(), &mut buffer) };
        if !usual(ruby, encoded)? {
            return Ok(None);
        }
        this.slot(ticket).begun.set(status >= 200 || status == 101);
        this.write_all(ticket, &buffer)?;
        Ok(Some(true))
    }

    /// `write(ticket, string) -> true | false`: a piece of the body; waits for room with the GVL released.
    /// `false`: nobody wants the answer any more.
    fn write(ruby: &Ruby, this: &Self, ticket: u64, chunk: RString) -> Result<bool, Error> {
        let ticket = this.checked(ruby, ticket)?;
        let mut done = 0;
        loop {
            // Read anew in each turn: Ruby may have run while we waited for room.
            // SAFETY: with the GVL held; used up before Ruby runs again.
            let bytes = unsafe { answer::string_bytes(chunk.as_raw()) };
            let rest = bytes.get(done..).unwrap_or_default();
            let piece = &rest[..rest.len().min(FRAME_BYTES.min(MAX_PAYLOAD))];
            if piece.is_empty() {
                return Ok(true);
            }
            let mut frame = Vec::with_capacity(piece.len() + 4);
            answer::push_frame(Kind::Body, piece, &mut frame);
            done += piece.len();
            if !this.write_all(ticket, &frame)? {
                return Ok(false);
            }
        }
    }

    /// `file(ticket, io, offset, length) -> true | false`: a part of an open file as (a piece of) the body.
    fn file(
        ruby: &Ruby,
        this: &Self,
        ticket: u64,
        fd: RawFd,
        offset: u64,
        length: u64,
    ) -> Result<bool, Error> {
        let ticket = this.checked(ruby, ticket)?;
        this.send_descriptor(ruby, ticket, fd)?;
        let mut frame = Vec::new();
        let payload = [offset.to_le_bytes(), length.to_le_bytes()].concat();
        answer::push_frame(Kind::File, &payload, &mut frame);
        this.write_all(ticket, &frame)
    }

    /// `hijack(ticket, fd) -> true | false`: from here on the client's bytes flow to and from this socket.
    fn hijack(ruby: &Ruby, this: &Self, ticket: u64, fd: RawFd) -> Result<bool, Error> {
        let ticket = this.checked(ruby, ticket)?;
        this.send_descriptor(ruby, ticket, fd)?;
        let slot = this.slot(ticket);
        slot.hijacked.set(!slot.begun.get());
        slot.begun.set(true);
        let mut frame = Vec::new();
        answer::push_frame(Kind::Hijack, b"", &mut frame);
        this.write_all(ticket, &frame)
    }

    fn send_descriptor(&self, ruby: &Ruby, ticket: Ticket, fd: RawFd) -> Result<(), Error> {
        // SAFETY: Ruby gives the number of a descriptor that it keeps open during this call.
        let descriptor = unsafe { BorrowedFd::borrow_raw(fd) };
        loop {
            let sent = self
                .ring
                .send_descriptor(ticket.slot, ticket.position, descriptor)
                .map_err(|e| broken(ruby, &e))?;
            if sent {
                return Ok(());
            }
            // The front empties the socket on its next turn.
            nogvl::without_gvl(&|| self.ring.wait_to_send_descriptor(), &|| ())?;
        }
    }

    /// `finish(ticket) -> true | nil`: the answer is complete. `nil`: it had ended before.
    fn finish(&self, ticket: u64) -> Result<Option<bool>, Error> {
        self.end_with(ticket, Kind::End)
    }

    /// `abort(ticket) -> true | nil`: the answer cannot be completed. `nil`: it had ended before.
    fn abort(&self, ticket: u64) -> Result<Option<bool>, Error> {
        self.end_with(ticket, Kind::Abort)
    }

    fn end_with(&self, ticket: u64, kind: Kind) -> Result<Option<bool>, Error> {
        let ticket = Ticket::unpack(ticket);
        if !self.is_current(ticket) {
            return Ok(None);
        }
        let mut frame = Vec::new();
        answer::push_frame(kind, b"", &mut frame);
        // The end must go out even if this thread is being killed: an interrupt only delays it.
        let mut interrupted = Ok(true);
        let mut done = 0;
        while done < frame.len() {
            done += self.write_some(ticket, &frame[done..]);
            if done < frame.len() {
                interrupted = self.wait_for_room(ticket).and(interrupted);
            }
        }
        self.end(ticket);
        interrupted.map(Some)
    }

    /// `open?(ticket) -> bool`: whether its answer has not ended.
    fn is_open(&self, ticket: u64) -> bool {
        self.is_current(Ticket::unpack(ticket))
    }

    /// `begun?(ticket) -> bool`: whether something final of its answer was written.
    fn has_begun(&self, ticket: u64) -> bool {
        let ticket = Ticket::unpack(ticket);
        self.is_current(ticket) && self.slot(ticket).begun.get()
    }

    /// `hijacked?(ticket) -> bool`: whether the app took the connection without answering.
    fn is_hijacked(&self, ticket: u64) -> bool {
        let ticket = Ticket::unpack(ticket);
        self.is_current(ticket) && self.slot(ticket).hijacked.get()
    }

    /// `cancelled?(ticket) -> bool`: whether nobody wants the answer any more.
    fn is_cancelled(&self, ticket: u64) -> bool {
        let ticket = Ticket::unpack(ticket);
        let Some(slot) = self.slots.get(usize::from(ticket.slot)) else {
            return true;
        };
        !self.is_current(ticket) || self.ring.room(ticket.slot, slot.written.get()) == Room::Cancelled
    }

    /// `stop -> nil`: ends every `claim`, those that wait included.
    fn stop(&self) {
        self.stopped.set(true);
        self.ring.interrupt();
    }

    /// `threads -> Integer`: serving threads this ring was made for.
    fn threads(&self) -> u32 {
        self.ring.geometry().threads
    }

    /// The slot of a ticket that was checked.
    fn slot(&self, ticket: Ticket) -> &Slot {
        &self.slots[usize::from(ticket.slot)]
    }

    fn is_current(&self, ticket: Ticket) -> bool {
        let slot = self.slots.get(usize::from(ticket.slot));
        ticket.position != 0 && slot.is_some_and(|slot| slot.position.get() == ticket.position)
    }

    fn checked(&self, ruby: &Ruby, ticket: u64) -> Result<Ticket, Error> {
        let ticket = Ticket::unpack(ticket);
        if self.is_current(ticket) {
            return Ok(ticket);
        }
        Err(Error::new(ruby.exception_io_error(), "the answer to this request has ended already"))
    }

    fn end(&self, ticket: Ticket) {
        self.slot(ticket).position.set(0);
        self.serving.set(self.serving.get().saturating_sub(1));
    }

    /// Writes and publishes as much as there is room for.
    fn write_some(&self, ticket: Ticket, bytes: &[u8]) -> usize {
        let slot = &self.slot(ticket);
        let more = self.ring.write(ticket.slot, slot.written.get(), bytes);
        if more > 0 {
            slot.written.set(slot.written.get().wrapping_add(more as u32));
            self.ring.publish(ticket.slot, slot.written.get());
        }
        more
    }

    /// Writes all of `bytes`, waiting for room. `false`: the answer was cancelled. A cancelled answer is
    /// still written to its frame's end, which the front reads and drops: frames stay whole.
    fn write_all(&self, ticket: Ticket, bytes: &[u8]) -> Result<bool, Error> {
        let mut done = self.write_some(ticket, bytes);
        let mut interrupted = Ok(());
        while done < bytes.len() {
            // Not cut short inside a frame: the front could not make sense of what follows.
            interrupted = self.wait_for_room(ticket).and(interrupted);
            done += self.write_some(ticket, &bytes[done..]);
        }
        interrupted?;
        let written = self.slot(ticket).written.get();
        Ok(self.ring.room(ticket.slot, written) != Room::Cancelled)
    }

    fn wait_for_room(&self, ticket: Ticket) -> Result<(), Error> {
        let written = self.slot(ticket).written.get();
        let Some(seen) = self.ring.announce_wait_for_room(ticket.slot, written) else {
            return Ok(());
        };
        nogvl::without_gvl(&|| self.ring.sleep_for_room(ticket.slot, seen), &|| {
            self.ring.interrupt_room(ticket.slot)
        })
    }
}

/// A StringIO over a copy of the bytes.
fn string_input(ruby: &Ruby, bytes: &[u8]) -> Result<Value, Error> {
    let class: Value = ruby.class_object().const_get("StringIO")?;
    // SAFETY: with the GVL held.
    let string = unsafe { Value::from_raw(binary_string(bytes)) };
    class.funcall("new", (string,))
}

fn checked_status(ruby: &Ruby, status: i64) -> Result<u16, Error> {
    let known = u16::try_from(status).ok().filter(|status| (100..=999).contains(status));
    known.ok_or_else(|| {
        Error::new(
            ruby.exception_arg_error(),
            format!("the status of a response must be 100 to 999, not {status}"),
        )
    })
}

fn usual(ruby: &Ruby, encoded: Result<(), Unusual>) -> Result<bool, Error> {
    match encoded {
        Ok(()) => Ok(true),
        Err(Unusual::Shape) => Ok(false),
        Err(Unusual::Illegal(why)) => Err(Error::new(ruby.exception_arg_error(), why)),
    }
}

fn broken(ruby: &Ruby, error: &RingError) -> Error {
    Error::new(ruby.exception_runtime_error(), error.to_string())
}
