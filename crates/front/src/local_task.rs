//! Tasks that stay on the front's thread.
//!
//! The front is one thread with tokio's current-thread runtime, and its tasks share state by `Rc`. tokio asks
//! for `Send` all the same; its way around, `LocalSet`, costs a system call per turn of the event loop (its wake-ups
//! go through the runtime's own waker). So the promise is made here instead, in one place.
#![allow(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};

/// A future that is only ever touched on the thread that made it.
struct Local<F> {
    future: Pin<Box<F>>,
    home: ThreadId,
}

// SAFETY: `Send` lets tokio move the future to another thread, and a current-thread runtime never does: it
// polls on the thread that is in `block_on` and drops what is left on the thread that drops the runtime. The
// front does both on its one thread (`front::run` keeps the runtime to itself). `poll` and `drop` check it.
unsafe impl<F> Send for Local<F> {}

impl<F: Future<Output = ()>> Future for Local<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(self.home == thread::current().id(), "a local task was moved to another thread");
        self.future.as_mut().poll(context)
    }
}

impl<F> Drop for Local<F> {
    fn drop(&mut self) {
        if self.home != thread::current().id() {
            // Dropping what does not belong to this thread could corrupt memory; ending cannot.
            std::process::abort();
        }
    }
}

/// Starts a task on this thread's runtime, which must be a current-thread one.
pub(crate) fn spawn<F: Future<Output = ()> + 'static>(future: F) {
    let local = Local { future: Box::pin(future), home: thread::current().id() };
    drop(tokio::spawn(local));
}
