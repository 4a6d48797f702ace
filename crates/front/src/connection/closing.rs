//! Ending a connection so that the client gets everything that was sent.

use std::future::poll_fn;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use tokio::task::yield_now;

use super::{Connection, End};
use crate::clock::{now_ms, Deadline};
use crate::shared::{Counted, Shared};
use crate::transport::stream::Stream;

/// How long a client may send nothing more before the connection is closed. As it may still read its last answer then, it
/// has the same time to close its side.
const PAUSE: Duration = Duration::from_secs(2);

/// How long it may go on sending: a client in the middle of an upload reads no answer before it has noticed one.
const LINGER: Duration = Duration::from_secs(30);

/// How much of a body is read that nothing needs, in bytes.
const MOST_DISCARDED: usize = 1 << 20;

impl Connection {
    /// Ends the connection.
    pub(super) async fn close(&mut self, end: End) {
        match end {
            End::Gone | End::TakenOver(_) | End::Held(_) | End::Cable(_) | End::Passed => {}
            End::Done | End::Linger if matches!(self.stream, Stream::Http2(..)) => self.discard_body().await,
            End::Done => self.stream.end(),
            End::Linger => self.linger().await,
            End::CutOff if self.send_abort().await => self.linger().await,
            End::CutOff => {
                if matches!(self.stream, Stream::Http2(..)) {
                    // What was written before is discarded, unless the connection that all streams share has sent it.
                    yield_now().await;
                }
                self.stream.reset_at_close();
            }
        }
    }

    /// Reads what a client of HTTP/2 is still sending of a body that nothing needs. It should take a stream that is closed behind
    /// a complete answer for an answer (RFC 9113 section 8.1), but curl takes it for a failure. A large body is stopped so.
    async fn discard_body(&mut self) {
        let Connection { stream, counted, protocol, shared, .. } = self;
        if let Stream::Http2(stream, _) = stream {
            stream.await_end_of_body();
        }
        counted.deadline.set(Some(PAUSE));
        let mut left = MOST_DISCARDED;
        let discarded = poll_fn(|context| {
            let mut scratch = shared.scratch.borrow_mut();
            while left > 0 && !protocol.has_read_body() && !counted.deadline.has_passed(context) {
                match ready!(stream.poll_read_some(context, &mut scratch)) {
                    Ok(length) if length > 0 => left = left.saturating_sub(length),
                    _ => break,
                }
            }
            Poll::Ready(())
        });
        discarded.await;
    }

    /// Sends what shows the client that its answer is cut off, where the protocol has such a thing. `false`: the
    /// connection has to show it.
    async fn send_abort(&mut self) -> bool {
        if !self.output.is_between_parts() {
            return false;
        }
        let mut bytes = Vec::new();
        self.protocol.abort(&mut bytes);
        if bytes.is_empty() {
            return false;
        }
        self.counted.deadline.set(Some(PAUSE));
        let mut written = 0;
        let sent = poll_fn(|context| {
            while written < bytes.len() {
                if self.counted.deadline.has_passed(context) {
                    return Poll::Ready(false);
                }
                match ready!(self.stream.poll_write_some(context, &bytes[written..])) {
                    Ok(length) => written += length,
                    Err(_) => return Poll::Ready(false),
                }
            }
            Poll::Ready(true)
        });
        sent.await
    }

    async fn linger(&mut self) {
        linger(&mut self.stream, &self.shared, &self.counted).await;
    }
}

/// Ends our side, and waits for the client to end its own.
pub(super) async fn linger(stream: &mut Stream, shared: &Shared, counted: &Counted) {
    let until_ms = begin_linger(stream, shared, &counted.deadline);
    poll_fn(|context| poll_linger(context, stream, shared, &counted.deadline, until_ms)).await;
}

/// Closing with unread bytes would make the kernel send a reset, which can overtake the answer (RFC 9112 section 9.6): the
/// client is read until then, in milliseconds.
pub(super) fn begin_linger(stream: &mut Stream, shared: &Shared, deadline: &Deadline) -> u64 {
    stream.shut_down_write();
    deadline.set(Some(PAUSE));
    let linger = if shared.is_draining() { PAUSE } else { LINGER };
    now_ms() + linger.as_millis() as u64
}

/// Reads until the client has ended its side, or its time has passed.
pub(super) fn poll_linger(
    context: &mut Context<'_>,
    stream: &mut Stream,
    shared: &Shared,
    deadline: &Deadline,
    until_ms: u64,
) -> Poll<()> {
    let mut scratch = shared.scratch.borrow_mut();
    while !deadline.has_passed(context) {
        match ready!(stream.poll_read_some(context, &mut scratch)) {
            Ok(length) if length > 0 => {
                let left = Duration::from_millis(until_ms.saturating_sub(now_ms()));
                deadline.set(Some(PAUSE.min(left)));
            }
            _ => break,
        }
    }
    Poll::Ready(())
}
