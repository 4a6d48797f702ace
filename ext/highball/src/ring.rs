//! `Highball::Ring`: the worker's end of the ring.
//!
//! A request is known to Ruby by its *ticket*, an Integer made of the entry's position and slot. A ticket is
//! good until its answer has ended; every method refuses a ticket that is not, so that an app which keeps a
//! stream for too long can never write into another's answer. In a process that the app forks no ticket is good.
#![allow(unsafe_code)]

mod this;

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use highball_ring::frame::Kind;
use highball_ring::request::{Fields, Fixed, BODY_INLINE, BODY_SPOOLED, FIXED_BYTES, HEAD_METHOD, ON_FIBER};
use highball_ring::{KeptBy, RingError, Ticket, WorkerRing};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{function, method, prelude::*, Error, Fixnum, RArray, RHash, RModule, Ruby, Value};
use rb_sys::VALUE;
use rustix::process::Pid;
use rustix::thread::gettid;
use rustix::time::ClockId;

use crate::ages::Ages;
use crate::clock::microseconds;
use crate::env::{binary_string, EnvKeys, Repeated, PATH_INFO, QUERY_STRING, REQUEST_METHOD, SCRIPT_NAME};
use crate::hijack::Hijacks;
use crate::left::{Left, LeftAnswers, Socket};
use crate::nogvl;
use crate::overlap::Overlap;
use crate::own_process::OwnProcess;
use crate::request_clock::RequestClock;
use crate::slot::{Slot, Stage};
use crate::tending::Tending;
use crate::turns::{Turns, Wait};
pub(crate) use this::This;

/// The Ruby object.
#[magnus::wrap(class = "Highball::Ring", free_immediately)]
pub(crate) struct Ring {
    pub(crate) ring: WorkerRing,
    keys: EnvKeys,
    slots: Vec<Slot>,
    /// The position of the request that was claimed last.
    newest: Cell<u64>,
    /// The serving threads, and threads whose answers have left.
    seats: Box<[Row; ROWS]>,
    /// Answers that have left.
    pub(crate) left: LeftAnswers,
    /// Scratch space for whole answers, taken out while in use.
    pub(crate) buffer: Cell<Vec<u8>>,
    /// Requests that threads of this worker have begun. Changed with the GVL held, so that it takes no atomic addition.
    serving: AtomicU32,
    overlap: Overlap,
    clock: RequestClock,
    ages: Ages,
    tending: Tending,
    /// The watch over its threads' turns, if it may have several.
    turns: RefCell<Option<Turns>>,
    stopped: Cell<bool>,
    /// Whether files that responses name are sent.
    pub(crate) sends_files: Cell<bool>,
    /// The worker. In a process that was forked from it, nothing is claimed and no ticket is good.
    worker: OwnProcess,
}

/// The time in which the front places another request, if there is one.
const NEXT_REQUEST: Duration = Duration::from_millis(1);

/// Seats that are made at a time: a worker may have many threads, and few of them need more.
const ROW: usize = 16;
/// With [`ROW`], the most threads of a worker that have claimed requests.
const ROWS: usize = 1024;

/// Some seats, once one of them is taken.
type Row = OnceCell<Box<[Seat; ROW]>>;

/// What is kept of a thread that claims requests.
#[derive(Debug, Default)]
struct Seat {
    /// What it claimed last.
    ticket: Cell<u64>,
    /// The env of that request. Only compared: it may be garbage by now.
    env: Cell<VALUE>,
    /// The kernel's number of the thread, while it serves.
    thread: Cell<Option<Pid>>,
    /// Whether the last thread ended since it had no place any more.
    is_withdrawn: Cell<bool>,
    /// What the template of its envs has.
    repeated: Repeated,
}

/// What is fixed in a request's area, its encoded fields, and what follows them: the body, if it stands there.
fn parts(area: &[u8]) -> (Fixed, &[u8], &[u8]) {
    let (fixed, rest) = area.split_first_chunk::<FIXED_BYTES>().expect("an area is at least a page");
    let fixed = Fixed::decode(fixed);
    let (fields, body) = rest.split_at(fixed.head_bytes as usize - FIXED_BYTES);
    (fixed, fields, body)
}

/// Defines the class.
pub(crate) fn define(ruby: &Ruby, highball: RModule) -> Result<(), Error> {
    let class = highball.define_class("Ring", ruby.class_object())?;
    class.define_singleton_method("new", function!(Ring::open, 3))?;
    This::learn(class);
    Hijacks::define(ruby, highball)?;
    class.define_method("claim", method!(Ring::claim, 3))?;
    class.define_method("idle?", method!(Ring::is_idle, 0))?;
    class.define_method("ticket", method!(Ring::ticket, 1))?;
    class.define_method("ticket_of", method!(Ring::ticket_of, 1))?;
    class.define_method("leave", method!(Ring::leave, 1))?;
    class.define_method("head_request?", method!(Ring::is_head_request, 1))?;
    class.define_method("answer", method!(Ring::answer, 4))?;
    class.define_method("reply", method!(Ring::reply, 4))?;
    class.define_method("note_logged", method!(Ring::note_logged, 1))?;
    class.define_method("head", method!(Ring::head, 4))?;
    class.define_method("head_of_stream", method!(Ring::head_of_stream, 3))?;
    class.define_method("head_of_file", method!(Ring::head_of_file, 3))?;
    class.define_method("send_files", method!(Ring::send_files, 0))?;
    class.define_method("begin", method!(Ring::begin_body, 4))?;
    class.define_method("early_hints", method!(Ring::early_hints, 2))?;
    class.define_method("write", method!(Ring::write, 2))?;
    class.define_method("file", method!(Ring::file, 4))?;
    class.define_method("hijack", method!(Ring::hijack, 1))?;
    class.define_method("finish", method!(Ring::finish, 1))?;
    class.define_method("abort", method!(Ring::abort, 1))?;
    class.define_method("fail", method!(Ring::fail, 2))?;
    class.define_method("open?", method!(Ring::is_open, 1))?;
    class.define_method("stream?", method!(Ring::is_stream, 1))?;
    class.define_method("hijacked?", method!(Ring::is_hijacked, 1))?;
    class.define_method("receive_offers", method!(Ring::receive_offers, 0))?;
    class.define_method("leave_place", method!(Ring::leave_place, 1))?;
    class.define_method("take_to_fiber", method!(Ring::take_to_fiber, 1))?;
    class.define_method("left?", method!(Ring::has_left, 1))?;
    class.define_method("unread?", method!(Ring::is_unread, 1))?;
    class.define_method("foreign?", method!(Ring::is_foreign, 0))?;
    class.define_method("stop", method!(Ring::stop, 0))?;
    class.define_method("end_turns", method!(Ring::end_turns, 0))?;
    class.define_method("least_threads", method!(Ring::least_threads, 0))?;
    class.define_method("most_threads", method!(Ring::most_threads, 0))?;
    class.define_method("places", method!(Ring::places, 0))?;
    class.define_method("all_serving?", method!(Ring::are_all_serving, 0))?;
    class.define_method("await_shortage", method!(Ring::await_shortage, 0))?;
    class.define_method("await_old", method!(Ring::await_old, 1))?;
    class.define_method("end_sampling", method!(Ring::end_sampling, 0))?;
    class.define_method("old_requests", method!(Ring::old_requests, 0))?;
    class.define_method("ended_requests", method!(Ring::ended_requests, 0))?;
    class.define_method("add_place", method!(Ring::add_place, 0))?;
    class.define_method("take_place_back", method!(Ring::take_place_back, 0))?;
    class.define_method("keep_places", method!(Ring::keep_places, 1))?;
    class.define_method("withdrawn?", method!(Ring::is_withdrawn, 1))?;
    Ok(())
}

impl Ring {
    /// `Ring.new(memory, wake, descriptors) -> Ring`: maps the ring behind three descriptor numbers, which
    /// belong to the ring from then on.
    fn open(ruby: &Ruby, memory: RawFd, wake: RawFd, descriptors: RawFd) -> Result<Self, Error> {
        // SAFETY: Ruby hands over open descriptors that it does not use itself.
        let [memory, wake, descriptors] =
            [memory, wake, descriptors].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let ring = WorkerRing::open(memory.as_fd(), wake, descriptors).map_err(|e| broken(ruby, &e))?;
        let slots = ring.geometry().slots;
        let (ages, slots) = (Ages::new(slots), (0..slots).map(|_| Slot::default()).collect());
        let refused = |what: &str, error: std::io::Error| {
            Error::new(ruby.exception_runtime_error(), format!("{what}: {error}"))
        };
        // In Ruby 3.3, also for the thread that samples slow requests (`Ages::wait`).
        let turns = if ring.geometry().threads > 1 || cfg!(ruby_gte_3_3) {
            Turns::begin().map_err(|e| refused("start a thread", e))?
        } else {
            None
        };
        Ok(Ring {
            ring,
            keys: EnvKeys::new(Hijacks::new(ruby)?),
            slots,
            newest: Cell::default(),
            seats: Box::new([const { OnceCell::new() }; ROWS]),
            left: LeftAnswers::default(),
            buffer: Cell::default(),
            serving: AtomicU32::new(0),
            overlap: Overlap::default(),
            clock: RequestClock::default(),
            ages,
            tending: Tending::default(),
            turns: RefCell::new(turns),
            stopped: Cell::new(false),
            sends_files: Cell::new(false),
            worker: OwnProcess::mark().map_err(|e| refused("mark this process", e))?,
        })
    }

    /// `claim(seat, template, files) -> Hash | nil`: the Rack env of the next request; waits for one with the GVL
    /// released. `nil` once the ring is stopped, and in a process that the app has forked. `seat` is the serving
    /// thread's number, from 0: an interrupt can take the request from its hands as soon as this method returns; see
    /// `leave`. The env is made from a copy of `template`, which is this thread's own, always the same, and changed by
    /// no other thread. A file that has to be closed after the request is appended to `files`.
    fn claim(
        ruby: &Ruby,
        this: This,
        seat: Value,
        template: RHash,
        files: RArray,
    ) -> Result<Option<RHash>, Error> {
        let ring = this.ring;
        let seat = ring.seat(ruby, seat)?;
        let thread = seat.thread.get().unwrap_or_else(gettid);
        seat.thread.set(Some(thread));
        let Some(ticket) = ring.claim_next(seat)? else { return Ok(None) };
        seat.ticket.set(ticket.pack());
        let now_us = microseconds(ClockId::Monotonic);
        ring.ages.begin(ticket.slot.into(), now_us, thread.as_raw_nonzero().get());
        ring.slot(ticket).timed.replace(ring.clock.begin(now_us, ring.serving_threads()));
        ring.env(ruby, ticket, now_us, seat, template, files).map(Some)
    }

    /// `ticket(seat) -> Integer`: of the request that this serving thread has claimed last. 0 is no ticket.
    fn ticket(ruby: &Ruby, this: This, seat: Value) -> Result<u64, Error> {
        Ok(this.ring.seat(ruby, seat)?.ticket.get())
    }

    /// `ticket_of(env) -> Integer`: of the request that has this env, while it is the last that its thread has claimed,
    /// or else 0.
    fn ticket_of(&self, env: Value) -> u64 {
        // The caller holds the env. Earlier envs at its address are garbage, and their requests were claimed earlier.
        let seats = self.taken_seats().filter(|seat| seat.env.get() == env.as_raw());
        seats.map(|seat| seat.ticket.get()).max().unwrap_or(0)
    }

    /// The ticket of the request that the thread on this seat has claimed. `None`: it has left its place.
    pub(crate) fn seated(&self, ruby: &Ruby, seat: Value) -> Result<Option<Ticket>, Error> {
        let ticket = self.seat(ruby, seat)?.ticket.get();
        if self.left.has(ticket) {
            return Ok(None);
        }
        self.checked(ruby, ticket).map(Some)
    }

    /// `leave(seat) -> nil`: this serving thread ends. The request that it claimed last, if it is still open, is
    /// aborted. The next thread on this seat has another template.
    fn leave(&self, seat: usize) {
        if let Some(seat) = self.taken_seat(seat) {
            seat.repeated.forget();
            seat.env.set(0);
            seat.thread.set(None);
            self.abort(seat.ticket.take());
        }
    }

    fn seat(&self, ruby: &Ruby, seat: Value) -> Result<&Seat, Error> {
        let fewer = || Error::new(ruby.exception_arg_error(), "a worker has fewer threads");
        let number = Fixnum::from_value(seat).and_then(|number| usize::try_from(number.to_i64()).ok());
        let row = number.and_then(|number| Some((self.seats.get(number / ROW)?, number % ROW)));
        let (row, at) = row.ok_or_else(fewer)?;
        Ok(&row.get_or_init(Box::default)[at])
    }

    fn taken_seat(&self, number: usize) -> Option<&Seat> {
        self.seats.get(number / ROW).and_then(OnceCell::get).map(|row| &row[number % ROW])
    }

    fn taken_seats(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter().map_while(OnceCell::get).flat_map(|row| row.iter())
    }

    fn claim_next(&self, seat: &Seat) -> Result<Option<Ticket>, Error> {
        // Other threads of this worker are in the middle of a request: one waiting for the
        // GVL goes first, or it would wait for as long as there is something to claim.
        if self.is_serving() {
            let _wait = (self.has_turns() && self.ring.has_placed()).then(Wait::begin);
            nogvl::yield_gvl()?;
        }
        while !self.stopped.get() && self.worker.is_here() {
            if self.tending.ends_thread() {
                seat.is_withdrawn.set(true);
                self.ring.pass_on();
                break;
            }
            if let Some(ticket) = self.ring.claim() {
                return Ok(self.begin(ticket));
            }
            if let Some(seen) = self.ring.announce_sleep() {
                // This thread may have been woken, and it ends: another thread must look.
                self.sleep(seen).inspect_err(|_| self.ring.pass_on())?;
            }
        }
        Ok(None)
    }

    /// Sleeps, as was announced, with the GVL released.
    fn sleep(&self, seen: u32) -> Result<(), Error> {
        let (has_turns, wait, beside_others) = (self.has_turns(), Cell::new(None), Cell::new(None));
        let sleep = || {
            self.ring.sleep(seen, None);
            wait.set(has_turns.then(Wait::begin));
            beside_others.set((has_turns && self.is_serving()).then(Instant::now));
        };
        let waited = nogvl::without_gvl(&sleep, &|| self.ring.interrupt());
        drop(wait);
        self.ring.awake();
        let change = beside_others.get().and_then(|woken| self.overlap.note(woken, self.is_serving()));
        if let Some(computes) = change {
            self.ring.set_computes(computes);
        }
        waited
    }

    /// `idle? -> bool`: whether this worker has nothing to do, now and in a millisecond. (Under full load the front places the
    /// next request as soon as an answer is there.)
    fn is_idle(&self) -> bool {
        let is_idle = || !self.is_serving() && !self.ring.has_placed();
        if !self.worker.is_here() || !is_idle() {
            return false;
        }
        if let Some(seen) = self.ring.announce_sleep() {
            nogvl::step_aside(&|| self.ring.sleep(seen, Some(NEXT_REQUEST)));
            self.ring.awake();
        }
        is_idle()
    }

    /// Whether threads of this worker are at a request.
    fn is_serving(&self) -> bool {
        self.serving.load(Relaxed) > 0
    }

    /// Whether the turns of this worker's threads are watched: not in processes that it forks.
    fn has_turns(&self) -> bool {
        self.turns.borrow().is_some() && self.worker.is_here()
    }

    fn serving_threads(&self) -> impl Iterator<Item = Pid> + '_ {
        self.taken_seats().filter_map(|seat| seat.thread.get())
    }

    fn begin(&self, ticket: Ticket) -> Option<Ticket> {
        // The front names only slots of this ring.
        let slot = self.slots.get(usize::from(ticket.slot))?;
        slot.begin(ticket.position);
        self.newest.set(ticket.position);
        let serving = self.serving.load(Relaxed) + 1;
        self.serving.store(serving, Relaxed);
        self.tending.note_serving(serving);
        Some(ticket)
    }

    /// The Rack env of a request that was claimed just now.
    fn env(
        &self,
        ruby: &Ruby,
        ticket: Ticket,
        now_us: u64,
        seat: &Seat,
        template: RHash,
        files: RArray,
    ) -> Result<RHash, Error> {
        // SAFETY: the slot is claimed and its answer not ended: no Ruby code has run since.
        let (fixed, fields, body) = parts(unsafe { self.ring.request(ticket.slot) });
        // SAFETY: Ruby calls us with the GVL held, and `template` is a live Hash. The env is on this stack, where the
        // collector finds it.
        let env = unsafe {
            let fields = Fields::new(fields);
            let env = self.keys.build(template.as_raw(), &seat.repeated, now_us, fixed, fields);
            seat.env.set(env);
            RHash::from_value(Value::from_raw(env)).expect("a Hash")
        };
        if fixed.flags & BODY_INLINE != 0 {
            env.aset(ruby.str_new("rack.input"), string_input(ruby, &body[..fixed.body_bytes as usize])?)?;
        } else if fixed.flags & BODY_SPOOLED != 0 {
            let file = self.spooled_input(ruby, ticket)?;
            files.push(file)?;
            env.aset(ruby.str_new("rack.input"), file)?;
        }
        Ok(env)
    }

    /// `head_request?(ticket) -> bool`: whether the client's method is HEAD, whatever the app has made of its env.
    fn is_head_request(ruby: &Ruby, this: &Self, ticket: u64) -> Result<bool, Error> {
        if let Some(socket) = this.left.socket(ticket) {
            return Ok(socket.is_for_head);
        }
        let ticket = this.checked(ruby, ticket)?;
        // SAFETY: as in `env`.
        let (_, fields, _) = parts(unsafe { this.ring.request(ticket.slot) });
        let method = Fields::new(fields).find(|field| field.key == REQUEST_METHOD);
        Ok(method.is_some_and(|field| field.value == b"HEAD"))
    }

    /// Method and path of the request that the thread with this number of the kernel is at, without what differs from one
    /// such request to the next: numbers and tokens.
    pub(crate) fn route_of(&self, thread: i32) -> Option<String> {
        let is_its = |seat: &&Seat| seat.thread.get().is_some_and(|one| one.as_raw_nonzero().get() == thread);
        let ticket = Ticket::unpack(self.taken_seats().find(is_its)?.ticket.get());
        if !self.is_current(ticket) {
            return None;
        }
        // SAFETY: the slot is claimed and its answer not ended.
        let (_, fields, _) = parts(unsafe { self.ring.request(ticket.slot) });
        let value = |key| Fields::new(fields).find(|field| field.key == key).map(|field| field.value);
        Some(route(value(REQUEST_METHOD)?, value(PATH_INFO)?))
    }

    /// The File of a spooled body. It was sent before its entry was placed, so it is there.
    fn spooled_input(&self, ruby: &Ruby, ticket: Ticket) -> Result<Value, Error> {
        let missing = || Error::new(ruby.exception_io_error(), "the request's body file is missing");
        let mine = self.received_descriptor(ruby, ticket)?.ok_or_else(missing)?;
        let file_class: Value = ruby.class_object().const_get("File")?;
        file_class.funcall("for_fd", (mine.into_raw_fd(), "rb"))
    }

    /// The descriptor that the front has sent for this request, if it has come.
    pub(crate) fn received_descriptor(&self, ruby: &Ruby, ticket: Ticket) -> Result<Option<OwnedFd>, Error> {
        loop {
            let kept = self.slot(ticket).take_kept(ticket.position);
            if kept.is_some() || !self.keep_descriptor().map_err(|e| broken(ruby, &e))? {
                return Ok(kept);
            }
        }
    }

    /// Receives a descriptor, and keeps it for its request, which may not have been claimed yet. `false`: there is none now.
    fn keep_descriptor(&self) -> Result<bool, RingError> {
        let Some((ticket, descriptor)) = self.ring.receive_descriptor()? else { return Ok(false) };
        self.slots.iter().for_each(|slot| slot.sweep(self.newest.get()));
        if let Some(slot) = self.slots.get(usize::from(ticket.slot)) {
            slot.keep(ticket.position, self.newest.get(), descriptor);
        }
        Ok(true)
    }

    /// `receive_offers -> nil | String`: receives the sockets that the front has sent: those for answers that have ended
    /// meanwhile would take the room of others. A String says why one was lost.
    fn receive_offers(ruby: &Ruby, this: &Self) -> Result<Option<String>, Error> {
        let mut why = None;
        loop {
            match this.keep_descriptor() {
                Ok(true) => {}
                Ok(false) => return Ok(why),
                Err(error @ RingError::System { .. }) if why.is_none() => why = Some(error.to_string()),
                Err(RingError::System { .. }) => return Ok(why),
                Err(breach) => return Err(broken(ruby, &breach)),
            }
        }
    }

    /// `leave_place(ticket) -> true | nil`: the answer goes on, and its slot is free: its body goes over the socket that the
    /// front has offered, or the application has the connection. Its thread serves no longer. `nil`: it has ended, or cannot
    /// leave now.
    fn leave_place(ruby: &Ruby, this: &Self, ticket: u64) -> Result<Option<bool>, Error> {
        let number = ticket;
        let ticket = Ticket::unpack(ticket);
        if !this.is_current(ticket) {
            return Ok(None);
        }
        let socket = this.received_descriptor(ruby, ticket)?;
        let (left, kind) = match (this.slot(ticket).stage.get(), socket) {
            (Stage::Body, Some(socket)) => (Left::Stream(Arc::new(Socket::for_rest(socket))), Kind::Stream),
            (Stage::Upgraded | Stage::Hijacked, socket) => (Left::Connection(socket), Kind::End),
            _ => return Ok(None),
        };
        this.left.add(number, left);
        this.tell_left();
        if let Some(seat) = this.taken_seats().find(|seat| seat.ticket.get() == number) {
            seat.thread.set(None);
        }
        this.append_end(ticket, kind);
        Ok(Some(true))
    }

    /// `take_to_fiber(ticket) -> true | nil`: the request runs on a fiber: its answer leaves before it begins, over the socket
    /// that came with it, and its slot is free. `nil`: it is one for this thread.
    fn take_to_fiber(ruby: &Ruby, this: &Self, ticket: u64) -> Result<Option<bool>, Error> {
        let number = ticket;
        let ticket = this.checked(ruby, ticket)?;
        // SAFETY: the slot is claimed and its answer not ended.
        let (fixed, _, _) = parts(unsafe { this.ring.request(ticket.slot) });
        if fixed.flags & ON_FIBER == 0 {
            return Ok(None);
        }
        let is_for_head = fixed.flags & HEAD_METHOD != 0;
        let missing =
            || Error::new(ruby.exception_io_error(), "the socket for the request's answer is missing");
        let socket = this.received_descriptor(ruby, ticket)?.ok_or_else(missing)?;
        this.left.add(number, Left::Stream(Arc::new(Socket::for_whole(socket, is_for_head))));
        if let Some(seat) = this.taken_seats().find(|seat| seat.ticket.get() == number) {
            seat.ticket.set(0); // its thread has done with it
            seat.env.set(0);
        }
        this.tell_left();
        this.append_end(ticket, Kind::Stream);
        Ok(Some(true))
    }

    /// Lets the front know how many answers have left.
    pub(crate) fn tell_left(&self) {
        let (answers, on_fibers) = self.left.counts();
        self.ages.set_on_fibers(on_fibers);
        self.ring.set_left(answers, on_fibers);
    }

    /// `left?(ticket) -> bool`: whether its answer goes on without its place.
    fn has_left(&self, ticket: u64) -> bool {
        self.left.has(ticket)
    }

    /// `unread?(ticket) -> bool`: whether the client has gone, as far as is known.
    fn is_unread(&self, ticket: u64) -> bool {
        let (number, ticket) = (ticket, Ticket::unpack(ticket));
        match self.is_current(ticket) {
            true => self.ring.is_cancelled(ticket.slot),
            false => !self.left.has(number) || self.left.is_unread(number),
        }
    }

    /// `open?(ticket) -> bool`: whether its answer has not ended.
    fn is_open(&self, ticket: u64) -> bool {
        self.is_current(Ticket::unpack(ticket)) || (self.left.has(ticket) && self.worker.is_here())
    }

    /// `hijacked?(ticket) -> bool`: whether the app took the connection without answering.
    fn is_hijacked(&self, ticket: u64) -> bool {
        let (number, ticket) = (ticket, Ticket::unpack(ticket));
        match self.is_current(ticket) {
            true => self.slot(ticket).stage.get() == Stage::Hijacked,
            false => self.left.is_connection(number),
        }
    }

    /// `stream?(ticket) -> bool`: whether its answer goes on without its place, with its head sent, or the app has the
    /// connection.
    fn is_stream(&self, ticket: u64) -> bool {
        let (number, ticket) = (ticket, Ticket::unpack(ticket));
        match self.is_current(ticket) {
            true => matches!(self.slot(ticket).stage.get(), Stage::Upgraded | Stage::Hijacked),
            false => {
                self.left.is_connection(number)
                    || self.left.socket(number).is_some_and(|socket| socket.has_head())
            }
        }
    }

    /// `foreign? -> bool`: whether this process is not the worker, but a fork that the app has made of it.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.worker.is_here()
    }

    /// `stop -> nil`: ends every `claim`, waiting ones included.
    fn stop(&self) {
        self.stopped.set(true);
        self.ring.interrupt();
        self.ring.interrupt_tending();
        self.ages.stop_waiting();
    }

    /// `end_turns -> nil`: no thread serves any more, and none waits for a turn. The process has one native thread
    /// less.
    fn end_turns(&self) {
        self.turns.take();
    }

    /// `least_threads -> Integer`: serving threads that the worker begins with.
    fn least_threads(&self) -> u32 {
        self.ring.geometry().least_threads
    }

    /// `most_threads -> Integer`: the most serving threads this ring was made for.
    fn most_threads(&self) -> u32 {
        self.ring.geometry().threads
    }

    /// `places -> Integer`: serving threads that the front counts on.
    fn places(&self) -> u32 {
        self.ring.places()
    }

    /// `all_serving? -> bool`: whether each place has a request.
    fn are_all_serving(&self) -> bool {
        self.serving.load(Relaxed) >= self.ring.places()
    }

    /// `await_shortage -> bool`: waits until requests queue while all threads wait for something else than the GVL, and
    /// meanwhile has idle threads beyond the least number end. `false` once the ring is stopped, and in a process that the
    /// app has forked. One thread at a time calls this.
    fn await_shortage(_ruby: &Ruby, this: This) -> Result<bool, Error> {
        let ring = this.ring;
        while !ring.stopped.get() && ring.worker.is_here() {
            ring.tending.look(&ring.ring, ring.serving.load(Relaxed));
            if ring.tending.wait(&ring.ring)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `await_old(pause) -> bool`: waits until a request is old that `old_requests` has not returned yet, until one of those
    /// has ended, or for `pause` microseconds, unless it is nil. `false` as for `await_shortage`. One thread at a time calls this.
    fn await_old(_ruby: &Ruby, this: This, pause_us: Option<u64>) -> Result<bool, Error> {
        let ring = this.ring;
        let goes_on = || !ring.stopped.get() && ring.worker.is_here();
        ring.ages.rest();
        if goes_on() {
            ring.ages.wait(pause_us.map(Duration::from_micros), ring.has_turns())?;
        }
        Ok(goes_on())
    }

    /// `end_sampling -> nil`: the thread that calls `await_old` ends.
    fn end_sampling(&self) {
        self.ages.rest();
    }

    /// `old_requests -> [[ticket, line, began, [asked, cpu, process_cpu, delayed]]]`: requests that have become old, each
    /// once: method and path without tokens and query, when it began, when this thread has asked for the GVL, and then the CPU time of its thread (0: not known) and of the
    /// process, and how long its thread had waited for a CPU. Times are microseconds of CLOCK_MONOTONIC, CPU times nanoseconds.
    fn old_requests(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let requests = ruby.ary_new();
        for old in this.ages.take_old() {
            let Some(slot) = this.slots.get(old.slot) else { continue };
            let ticket = Ticket { position: slot.position.get(), slot: old.slot as u16 };
            let Some(line) = this.request_line(ticket) else { continue };
            let clocks = (old.asked_us, old.cpu_ns, old.process_cpu_ns, old.delayed_us);
            requests.push((ticket.pack(), line, old.began_us, clocks))?;
        }
        Ok(requests)
    }

    /// `ended_requests -> [[ticket, ended]]`: those of them that have ended since this was called last, and when.
    fn ended_requests(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let requests = ruby.ary_new();
        this.ages.take_ended().into_iter().try_for_each(|ended| requests.push(ended))?;
        Ok(requests)
    }

    fn request_line(&self, ticket: Ticket) -> Option<String> {
        if !self.is_current(ticket) {
            return None;
        }
        // SAFETY: the slot is claimed and its answer not ended.
        let (_, fields, _) = parts(unsafe { self.ring.request(ticket.slot) });
        let value = |key| Fields::new(fields).find(|field| field.key == key).map(|field| field.value);
        let path = [SCRIPT_NAME, PATH_INFO].into_iter().filter_map(value).collect::<Vec<_>>().concat();
        let path = highball_secrets::path_without_tokens(&String::from_utf8_lossy(&path));
        let query = if value(QUERY_STRING).is_some() { "?…" } else { "" };
        Some(format!("{} {path}{query}", String::from_utf8_lossy(value(REQUEST_METHOD)?)))
    }

    /// `add_place -> nil`: there is a thread for one more place.
    fn add_place(&self) {
        self.ring.set_places((self.ring.places() + 1).min(self.most_threads()));
    }

    /// `take_place_back -> bool`: has a thread stay that was to end, if there is one.
    fn take_place_back(&self) -> bool {
        self.tending.take_back()
    }

    /// `keep_places(why) -> nil`: what has kept the worker from having one more (PROTOCOL.md of the ring, Places).
    fn keep_places(&self, why: u32) {
        self.tending.keep(&self.ring, KeptBy::of(why));
    }

    /// `withdrawn?(seat) -> bool`: whether the thread on this seat ended since it had no place any more. Asked once.
    fn is_withdrawn(&self, seat: usize) -> bool {
        self.taken_seat(seat).is_some_and(|seat| seat.is_withdrawn.take())
    }

    /// The slot of a ticket that was checked.
    pub(crate) fn slot(&self, ticket: Ticket) -> &Slot {
        &self.slots[usize::from(ticket.slot)]
    }

    pub(crate) fn is_current(&self, ticket: Ticket) -> bool {
        let slot = self.slots.get(usize::from(ticket.slot));
        ticket.position != 0
            && slot.is_some_and(|slot| slot.position.get() == ticket.position)
            && self.worker.is_here()
    }

    pub(crate) fn checked(&self, ruby: &Ruby, ticket: u64) -> Result<Ticket, Error> {
        let ticket = Ticket::unpack(ticket);
        if self.is_current(ticket) {
            return Ok(ticket);
        }
        let why = if self.worker.is_here() {
            "the answer to this request has ended already"
        } else {
            "a process that was forked in the middle of a request cannot answer it"
        };
        Err(Error::new(ruby.exception_io_error(), why))
    }

    /// The answer has ended: the slot is the front's again, and the ticket is not valid any more.
    pub(crate) fn close(&self, ticket: Ticket) {
        let slot = self.slot(ticket);
        slot.end();
        self.ages.end(ticket.slot.into(), ticket.pack());
        // A connection that the application has taken over may go on without a serving thread.
        let is_own = !matches!(slot.stage.get(), Stage::Upgraded | Stage::Hijacked);
        let time = slot.timed.take().filter(|_| is_own);
        if let Some(time) = time.and_then(|begun| begun.end(self.serving_threads())) {
            self.ring.add_request_time(&time);
            Turns::note(time.computed_us);
        }
        self.serving.store(self.serving.load(Relaxed).saturating_sub(1), Relaxed);
    }
}

fn route(method: &[u8], path: &[u8]) -> String {
    let path = highball_secrets::path_without_tokens(&String::from_utf8_lossy(path));
    let segment = |segment: &str| {
        let digits = segment.bytes().filter(u8::is_ascii_digit).count();
        let is_hexadecimal = segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let varies = digits == segment.len() || (digits > 0 && segment.len() >= 8 && is_hexadecimal);
        if varies && !segment.is_empty() {
            ":id".to_owned()
        } else {
            segment.to_owned()
        }
    };
    let segments: Vec<String> = path.split('/').map(segment).collect();
    format!("{} {}", String::from_utf8_lossy(method), segments.join("/"))
}

/// A StringIO over a copy of the bytes.
fn string_input(ruby: &Ruby, bytes: &[u8]) -> Result<Value, Error> {
    let class: Value = ruby.class_object().const_get("StringIO")?;
    // SAFETY: with the GVL held.
    let string = unsafe { Value::from_raw(binary_string(bytes)) };
    class.funcall("new", (string,))
}

pub(crate) fn broken(ruby: &Ruby, error: &RingError) -> Error {
    Error::new(ruby.exception_runtime_error(), error.to_string())
}
