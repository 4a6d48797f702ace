//! `Highball::Selector`: what a scheduler of fibers asks of the system: which descriptors are ready (epoll(7)), and reads and
//! writes that don't block.
//!
//! Events are the bits of `IO::READABLE`, `IO::PRIORITY` and `IO::WRITABLE`, which are epoll's.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::time::Duration;

use magnus::rb_sys::{protect, AsRawValue};
use magnus::{function, method, prelude::*, Error, RArray, RModule, Ruby, Value};
use rb_sys::{rb_io_buffer_get_bytes_for_reading, rb_io_buffer_get_bytes_for_writing, size_t, VALUE};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_getfl, OFlags};
use rustix::io::{read, write, Errno};

use crate::nogvl;

/// Events that are taken from the kernel at a time.
const EVENTS: usize = 256;
/// A write of at most this many bytes to a pipe that is writable does not block (pipe(7), `PIPE_BUF`).
const PIPE_BUF: usize = 4096;
/// What an event of the eventfd has in the place of a descriptor.
const WAKE: u64 = u64::MAX;
/// What `read` and `write` return where they would block.
const WOULD_BLOCK: isize = -(libc::EAGAIN as isize);

/// The Ruby object. Of one thread, but for `wake`.
#[magnus::wrap(class = "Highball::Selector", free_immediately)]
#[derive(Debug)]
struct Selector {
    epoll: OwnedFd,
    /// What ends a `select` from elsewhere.
    wake: OwnedFd,
}

/// Defines the class.
pub(crate) fn define(ruby: &Ruby, highball: RModule) -> Result<(), Error> {
    let class = highball.define_class("Selector", ruby.class_object())?;
    class.define_singleton_method("new", function!(Selector::open, 0))?;
    class.define_method("watch", method!(Selector::watch, 2))?;
    class.define_method("select", method!(Selector::select, 1))?;
    class.define_method("wake", method!(Selector::wake, 0))?;
    class.define_method("read", method!(Selector::read, 3))?;
    class.define_method("write", method!(Selector::write, 3))
}

impl Selector {
    fn open(ruby: &Ruby) -> Result<Self, Error> {
        let open = || {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
            Ok(Selector { epoll, wake })
        };
        open().map_err(|errno| refused(ruby, errno))
    }

    /// `watch(descriptor, events) -> bool`: the next event of these is reported once, in the place of what was watched on this
    /// descriptor before. `false`: it is always ready, as files are.
    fn watch(ruby: &Ruby, this: &Self, descriptor: RawFd, events: u32) -> Result<bool, Error> {
        let fd = borrowed(ruby, descriptor)?;
        let flags = EventFlags::from_bits_retain(events) | EventFlags::ONESHOT;
        let data = EventData::new_u64(descriptor as u64);
        // Ruby code closes descriptors without telling: whether this one is known to epoll is for epoll to say.
        let watched = match epoll::modify(&this.epoll, fd, data, flags) {
            Err(Errno::NOENT) => epoll::add(&this.epoll, fd, data, flags),
            other => other,
        };
        match watched {
            Ok(()) => Ok(true),
            Err(Errno::PERM) => Ok(false),
            Err(errno) => Err(refused(ruby, errno)),
        }
    }

    /// `select(seconds) -> Array`: descriptors and their events in turn, once there are any, `wake` was called, or the time is
    /// over (`nil`: none). Waits with the GVL released.
    fn select(ruby: &Ruby, this: &Self, seconds: Option<f64>) -> Result<RArray, Error> {
        let ready = ruby.ary_new();
        if !this.take(ruby, ready)? && seconds != Some(0.0) {
            this.wait(seconds)?;
            this.take(ruby, ready)?;
        }
        Ok(ready)
    }

    /// Appends what has happened. Whether anything has.
    fn take(&self, ruby: &Ruby, ready: RArray) -> Result<bool, Error> {
        let mut space = [const { MaybeUninit::uninit() }; EVENTS];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut space, Some(&now)) else { return Ok(false) }; // a signal
        for event in &*events {
            match event.data.u64() {
                WAKE => drop(read(&self.wake, &mut [0; 8])), // it was not empty
                descriptor => ready.cat(&[
                    ruby.integer_from_u64(descriptor).as_value(),
                    ruby.integer_from_u64(u64::from(ready_bits(event.flags))).as_value(),
                ])?,
            }
        }
        Ok(!events.is_empty())
    }

    /// Waits on epoll's own descriptor: epoll_wait(2) counts milliseconds, ppoll(2) nanoseconds.
    fn wait(&self, seconds: Option<f64>) -> Result<(), Error> {
        let timeout = seconds.map(|seconds| {
            let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            let whole = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
            Timespec { tv_sec: whole, tv_nsec: i64::from(time.subsec_nanos()) }
        });
        let wait = || {
            let mut epoll = [PollFd::new(&self.epoll, PollFlags::IN)];
            let _ = poll(&mut epoll, timeout.as_ref()); // a signal is for Ruby to look at
        };
        nogvl::without_gvl(&wait, &|| self.wake())
    }

    /// `wake -> nil`: ends the `select` that another thread is in, or else the next one.
    fn wake(&self) {
        let _ = write(&self.wake, &1_u64.to_ne_bytes()); // full: it is awake
    }

    /// `read(descriptor, buffer, offset) -> Integer`: bytes read into an `IO::Buffer`, or a negative errno. Never blocks.
    fn read(ruby: &Ruby, _: &Self, descriptor: RawFd, buffer: Value, offset: usize) -> Result<isize, Error> {
        let fd = borrowed(ruby, descriptor)?;
        let (base, size) = memory(buffer, |buffer, base, size| {
            // SAFETY: as in `memory`.
            unsafe { rb_io_buffer_get_bytes_for_writing(buffer, base, size) }
        })?;
        if !is_nonblocking(fd) && !is_ready(fd, PollFlags::IN) {
            return Ok(WOULD_BLOCK);
        }
        // SAFETY: the buffer has `size` bytes, and Ruby holds it locked, or its caller holds it, until we return.
        let bytes = unsafe { std::slice::from_raw_parts_mut(base.cast::<u8>(), size) };
        Ok(outcome(read(fd, bytes.get_mut(offset..).unwrap_or_default())))
    }

    /// `write(descriptor, buffer, offset) -> Integer`: bytes of an `IO::Buffer` that were written, or a negative errno. Never
    /// blocks.
    fn write(ruby: &Ruby, _: &Self, descriptor: RawFd, buffer: Value, offset: usize) -> Result<isize, Error> {
        let fd = borrowed(ruby, descriptor)?;
        let (base, size) = memory(buffer, |buffer, base, size| {
            // SAFETY: as in `memory`.
            unsafe { rb_io_buffer_get_bytes_for_reading(buffer, base.cast(), size) }
        })?;
        let is_nonblocking = is_nonblocking(fd);
        if !is_nonblocking && !is_ready(fd, PollFlags::OUT) {
            return Ok(WOULD_BLOCK);
        }
        // SAFETY: as in `read`.
        let bytes = unsafe { std::slice::from_raw_parts(base.cast::<u8>(), size) };
        let bytes = bytes.get(offset..).unwrap_or_default();
        let most = if is_nonblocking { bytes.len() } else { bytes.len().min(PIPE_BUF) };
        Ok(outcome(write(fd, &bytes[..most])))
    }
}

/// The memory of an `IO::Buffer`, or what Ruby raises if it is none, or locked, or not to be written.
fn memory(
    buffer: Value,
    ask: fn(VALUE, *mut *mut c_void, *mut size_t),
) -> Result<(*mut c_void, usize), Error> {
    let (mut base, mut size) = (null_mut(), 0 as size_t);
    // The functions of `ask` get a live object, and places of this frame to write to; `protect` catches what they raise.
    protect(|| {
        ask(buffer.as_raw(), &raw mut base, &raw mut size);
        rb_sys::Qnil.into()
    })?;
    // A slice of no bytes must not begin at 0.
    Ok(if size == 0 { (std::ptr::dangling_mut::<u8>().cast(), 0) } else { (base, size as usize) })
}

fn borrowed(ruby: &Ruby, descriptor: RawFd) -> Result<BorrowedFd<'static>, Error> {
    if descriptor < 0 {
        return Err(refused(ruby, Errno::BADF));
    }
    // SAFETY: the caller holds the IO that this is the descriptor of, and nothing here keeps it.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// An error or a hang-up is for the next read or write to tell, whichever comes.
fn ready_bits(flags: EventFlags) -> u32 {
    let is_over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
    let bits = if is_over { flags | EventFlags::IN | EventFlags::OUT } else { flags };
    (bits & (EventFlags::IN | EventFlags::PRI | EventFlags::OUT)).bits()
}

/// A descriptor that others may share is left as it is: it blocks or does not for all of them.
fn is_nonblocking(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

fn is_ready(fd: BorrowedFd<'_>, events: PollFlags) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, events)], Some(&now)).is_ok_and(|ready| ready > 0)
}

fn outcome(result: rustix::io::Result<usize>) -> isize {
    match result {
        Ok(bytes) => bytes as isize,
        Err(errno) => -(errno.raw_os_error() as isize),
    }
}

/// The `SystemCallError` of Ruby.
fn refused(ruby: &Ruby, errno: Errno) -> Error {
    let made = ruby
        .class_object()
        .const_get::<_, magnus::RClass>("SystemCallError")
        .and_then(|class| class.funcall::<_, _, magnus::Exception>("new", ("fibers", errno.raw_os_error())));
    made.map_or_else(|error| error, Error::from)
}
