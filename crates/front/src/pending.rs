//! What a request waits for before its steps go on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Ends when something was found out on another thread, or the time for that is over (the next look shows which), or after a delay.
pub(crate) struct Pending(Pin<Box<dyn Future<Output = ()>>>);

impl Pending {
    pub(crate) fn new(waited_for: impl Future<Output = ()> + 'static) -> Self {
        Pending(Box::pin(waited_for))
    }
}

impl Future for Pending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pending")
    }
}
