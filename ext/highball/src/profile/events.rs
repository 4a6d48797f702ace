//! New objects, which Ruby reports by a tracepoint. In it, nothing of Ruby's may be used that allocates.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use magnus::Error;
use rb_sys::VALUE;

use super::stacks::MOST_FRAMES;
use super::{current, Session};

/// One object of this number is sampled. It is a prime: programs allocate in rounds of even numbers.
pub(super) const ONE_OF: u64 = 509;
/// Samples that wait until Ruby allows to learn the names.
const PENDING: usize = 64;

/// Ruby reports new objects until this is ended.
pub(super) struct Tracepoint(VALUE);

impl Tracepoint {
    pub(super) fn begin() -> Result<Self, Error> {
        let make = || {
            // SAFETY: with the GVL held; the function lives as long as the process, and takes no data.
            unsafe {
                let tracepoint = rb_sys::rb_tracepoint_new(
                    rb_sys::Qnil as VALUE,
                    rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ,
                    Some(object_is_made),
                    std::ptr::null_mut(),
                );
                rb_sys::rb_tracepoint_enable(tracepoint);
                tracepoint
            }
        };
        magnus::rb_sys::protect(make).map(Tracepoint)
    }

    pub(super) fn end(self) -> Result<(), Error> {
        // SAFETY: it was enabled by `begin`; the caller's stack keeps it alive.
        magnus::rb_sys::protect(|| unsafe { rb_sys::rb_tracepoint_disable(self.0) }).map(drop)
    }
}

unsafe extern "C" fn object_is_made(_: VALUE, _: *mut c_void) {
    if let Some(session) = current().filter(|session| !session.is_sampling.get()) {
        session.allocations.count(session);
    }
}

/// Allocations of sampled objects whose callers have no names yet.
pub(super) struct Allocations {
    counted: Cell<u64>,
    /// Samples for which there was no room.
    missed: Cell<u64>,
    pending: RefCell<Vec<Stack>>,
    used: Cell<usize>,
}

struct Stack {
    length: usize,
    frames: Box<[VALUE]>,
    lines: Box<[i32]>,
}

impl Allocations {
    pub(super) fn new(are_sampled: bool) -> Self {
        let stack = || Stack {
            length: 0,
            frames: vec![0; MOST_FRAMES].into_boxed_slice(),
            lines: vec![0; MOST_FRAMES].into_boxed_slice(),
        };
        let pending = (0..if are_sampled { PENDING } else { 0 }).map(|_| stack()).collect();
        Allocations {
            counted: Cell::new(0),
            missed: Cell::new(0),
            pending: RefCell::new(pending),
            used: Cell::new(0),
        }
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// An object is made.
    fn count(&self, session: &Session) {
        self.counted.set(self.counted.get() + 1);
        if self.counted.get() % ONE_OF != 0 {
            return;
        }
        let at = self.used.get();
        let mut pending = self.pending.borrow_mut();
        let Some(stack) = pending.get_mut(at) else { return self.missed.set(self.missed.get() + 1) };
        // SAFETY: both have room for as many as are asked for. It does not allocate.
        let length = unsafe {
            let (frames, lines) = (stack.frames.as_mut_ptr(), stack.lines.as_mut_ptr());
            rb_sys::rb_profile_frames(0, MOST_FRAMES as i32, frames, lines)
        };
        stack.length = usize::try_from(length).unwrap_or(0);
        self.used.set(at + 1);
        if let Some(call) = session.ticks.call {
            call.make();
        }
    }

    /// The frames that Ruby has to keep.
    pub(super) fn each_pending(&self, mut keep: impl FnMut(VALUE)) {
        let pending = self.pending.borrow();
        let used = pending.iter().take(self.used.get());
        used.flat_map(|stack| &stack.frames[..stack.length]).for_each(|frame| keep(*frame));
    }

    fn stack(&self, at: usize) -> Vec<VALUE> {
        let stack = &self.pending.borrow()[at];
        stack.frames[..stack.length].to_vec()
    }
}

impl Session {
    /// Learns the names of pending samples.
    pub(super) fn drain_allocations(&self) {
        if self.allocations.used.get() == 0 || self.is_sampling.replace(true) {
            return;
        }
        for at in 0..self.allocations.used.get() {
            let frames = self.stack_of_frames(&self.allocations.stack(at));
            let mut recording = self.recording.borrow_mut();
            let node = recording.node(&frames);
            recording.add(node, ONE_OF);
        }
        self.allocations.used.set(0);
        self.is_sampling.set(false);
    }
}
