//! The bytes with which a client shows that it speaks HTTP/2 without having asked (RFC 9113 section 3.4): where the
//! configuration allows that, they are looked for before anything else is read.

use std::future::poll_fn;
use std::task::{Context, Poll};

use crate::shared::{Counted, Leaving, Shared};
use crate::transport::stream::Stream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How a connection begins.
#[derive(Debug)]
pub(super) enum Beginning {
    /// With these bytes, which belong to HTTP/1.
    Http1(Vec<u8>),
    /// With these bytes, which belong to HTTP/2.
    Http2(Vec<u8>),
}

/// Reads, behind `read`, until it is clear how the connection begins. `None`: it has ended before.
pub(super) async fn read(
    stream: &mut Stream,
    read: Vec<u8>,
    shared: &Shared,
    counted: &Counted,
) -> Option<Beginning> {
    let mut bytes = read;
    counted.rest(shared.settings.limits.idle_timeout);
    let is_http2 = poll_fn(|context| poll_preface(context, stream, &mut bytes, shared, counted)).await?;
    counted.work();
    Some(if is_http2 { Beginning::Http2(bytes) } else { Beginning::Http1(bytes) })
}

/// Whether it is the preface; `None`: the connection is to be closed.
fn poll_preface(
    context: &mut Context<'_>,
    stream: &mut Stream,
    bytes: &mut Vec<u8>,
    shared: &Shared,
    counted: &Counted,
) -> Poll<Option<bool>> {
    loop {
        let known = bytes.len().min(PREFACE.len());
        if bytes[..known] != PREFACE[..known] || known == PREFACE.len() {
            return Poll::Ready(Some(known == PREFACE.len() && bytes.starts_with(PREFACE)));
        }
        if shared.leaving() != Leaving::No {
            counted.deadline.at_most(shared.time_for_last_request());
        }
        if counted.deadline.has_passed(context) {
            return Poll::Ready(None);
        }
        let mut scratch = shared.scratch.borrow_mut();
        let Poll::Ready(read) = stream.poll_read_some(context, &mut scratch) else {
            return if counted.is_dismissed() { Poll::Ready(None) } else { Poll::Pending };
        };
        let Some(length) = read.ok().filter(|length| *length > 0) else { return Poll::Ready(None) };
        if bytes.is_empty() {
            counted.work();
            counted.deadline.set(Some(shared.settings.limits.head_timeout));
        }
        bytes.extend_from_slice(&scratch[..length]);
    }
}
