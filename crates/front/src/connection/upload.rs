//! Reading a request's body, all of it, before a worker is troubled with it.

use std::future::poll_fn;
use std::path::Path;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use super::{Connection, End};
use crate::budget::Share;
use crate::exchange::spool::{SpoolError, SpoolFile};
use crate::exchange::Body;
use crate::message::refusal::Refusal;
use crate::message::request_head::{append_content_length, BodyFraming};
use crate::protocol::{BytesRead, Unreadable};
use crate::route::app_state::AppState;

/// How often a body is read from before others get their turn.
const PIECES: u32 = 4;

/// The Retry-After for a body that has no room, in seconds.
const RETRY_AFTER_SECONDS: u32 = 5;

/// Where a body goes as it comes: memory first, then a spool file.
#[derive(Debug)]
struct Sink {
    memory: Vec<u8>,
    memory_limit: usize,
    spool: Option<SpoolFile>,
    share: Rc<Share>,
    length: u64,
}

impl Sink {
    fn take(&mut self, bytes: &[u8], folder: &Path) -> Result<(), SpoolError> {
        self.length += bytes.len() as u64;
        if let Some(spool) = &mut self.spool {
            return spool.write_all(bytes);
        }
        if self.memory.len() + bytes.len() <= self.memory_limit {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let mut spool = SpoolFile::create(folder, &self.share)?;
        spool.write_all(&self.memory)?;
        spool.write_all(bytes)?;
        self.memory = Vec::new();
        self.spool = Some(spool);
        Ok(())
    }

    fn into_body(self) -> Body {
        match self.spool {
            Some(spool) => Body::Spooled(Rc::new(spool)),
            None if self.memory.is_empty() => Body::None,
            None => Body::Memory(self.memory),
        }
    }
}

/// The refusal for a body of this length (so far) that has no room; `None`: there is room.
fn refusal_for_room(share: &Share, length: u64) -> Option<Refusal> {
    if length > share.limit() {
        return Some(Refusal::BodyTooLarge);
    }
    if length <= share.free() {
        return None;
    }
    share.note_full();
    Some(Refusal::SpoolFull { retry_after_seconds: RETRY_AFTER_SECONDS })
}

impl Connection {
    /// Reads the body of the request at hand into its exchange. `Some`: it is refused.
    pub(super) async fn upload(&mut self, app: &AppState) -> Result<Option<Refusal>, End> {
        if self.head.framing == BodyFraming::None {
            self.exchange.borrow().request.body = Body::None;
            return Ok(None);
        }
        if let BodyFraming::Length(length) = self.head.framing {
            let is_spooled = length > self.shared.settings.limits.body_memory_bytes as u64;
            // Better now than when most of it has come.
            if let Some(refusal) = refusal_for_room(&app.spool, length).filter(|_| is_spooled) {
                return Ok(Some(refusal));
            }
        }
        if self.head.expect_continue && self.buffer.is_empty() {
            self.events.push_front_head(100, false, None, |_| {});
            self.send_events().await?;
        }
        let limits = &self.shared.settings.limits;
        self.protocol.begin_body(self.head.framing, limits, app.settings().limits.body_bytes);
        let memory_limit = limits.body_memory_bytes;
        let share = Rc::clone(&app.spool);
        let mut sink = Sink { memory: Vec::new(), memory_limit, spool: None, share, length: 0 };
        self.counted.deadline.set(Some(limits.body_timeout));
        let refused = poll_fn(|context| self.poll_upload(context, &mut sink)).await?;
        if refused.is_none() {
            let mut inner = self.exchange.borrow();
            if self.head.framing == BodyFraming::Unknown {
                append_content_length(&mut inner.request.head, sink.length);
            }
            inner.request.body = sink.into_body();
        }
        Ok(refused)
    }

    fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut Sink,
    ) -> Poll<Result<Option<Refusal>, End>> {
        if !self.buffer.is_empty() {
            let bytes = self.buffer.take();
            if let Some(done) = self.decode(&bytes, sink) {
                return Poll::Ready(done);
            }
        }
        for _ in 0..PIECES {
            if self.counted.deadline.has_passed(context) {
                return Poll::Ready(Ok(Some(Refusal::BodyTimeout)));
            }
            let shared = Rc::clone(&self.shared);
            let mut scratch = shared.scratch.borrow_mut();
            let length = match ready!(self.stream.poll_read_some(context, &mut scratch)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(End::Gone)),
                Ok(length) => length,
            };
            let before = sink.length;
            if let Some(done) = self.decode(&scratch[..length], sink) {
                return Poll::Ready(done);
            }
            if sink.length > before {
                self.counted.deadline.set(Some(shared.settings.limits.body_timeout));
            }
            shared.turn.step();
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes in bytes of the body, and keeps those behind it. `Some`: the body is complete, or refused.
    fn decode(&mut self, bytes: &[u8], sink: &mut Sink) -> Option<Result<Option<Refusal>, End>> {
        let limits = &self.shared.settings.limits;
        let folder = &limits.spool_dir;
        let mut stored = Ok(());
        let read = self.protocol.read_body(bytes, limits, |piece| {
            if stored.is_ok() {
                stored = sink.take(piece, folder);
            }
        });
        if let Err(SpoolError::Full) = stored {
            sink.share.note_full();
            let is_beyond = sink.length > sink.share.limit();
            let full = Refusal::SpoolFull { retry_after_seconds: RETRY_AFTER_SECONDS };
            return Some(Ok(Some(if is_beyond { Refusal::BodyTooLarge } else { full })));
        }
        if let Err(error) = stored {
            tracing::error!(folder = %folder.display(), %error, "a request body could not be stored; choose another folder with --spool-dir, or make room in this one");
            return Some(Ok(Some(Refusal::BodyNotStored)));
        }
        match read {
            Ok(BytesRead { used, is_complete: true }) => {
                self.buffer.add(&bytes[used..]);
                Some(Ok(None))
            }
            Ok(_) => None,
            Err(Unreadable::Refused(refusal)) => Some(Ok(Some(refusal))),
            Err(Unreadable::Gone) => Some(Err(End::Gone)),
        }
    }
}
