//! Ending a connection so that the client gets everything that was sent.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use super::{Connection, End};

/// How long a client may go on sending after its last answer.
const LINGER: Duration = Duration::from_secs(2);

/// How much it may send.
const LINGER_BYTES: usize = 256 * 1024;

impl Connection {
    /// Ends the connection.
    pub(super) async fn close(mut self, end: End) {
        match end {
            End::Done | End::Gone => {}
            End::CutOff => self.stream.reset_at_close(),
            End::Linger => {
                // Closing with unread bytes would make the kernel send a reset, which can overtake the answer
                // (RFC 9112 section 9.6).
                self.stream.shut_down_write();
                self.counted.deadline.set(Some(LINGER));
                let mut rest = LINGER_BYTES;
                poll_fn(|context| self.poll_linger(context, &mut rest)).await;
            }
        }
    }

    fn poll_linger(&mut self, context: &mut Context<'_>, rest: &mut usize) -> Poll<()> {
        let shared = Rc::clone(&self.shared);
        while !self.counted.deadline.has_passed(context) {
            let mut scratch = shared.scratch.borrow_mut();
            match ready!(self.stream.poll_read_some(context, &mut scratch)) {
                Ok(length) if length > 0 && length <= *rest => *rest -= length,
                _ => break,
            }
        }
        Poll::Ready(())
    }
}
