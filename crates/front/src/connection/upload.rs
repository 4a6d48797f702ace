//! Reading a request's body, all of it, before a worker is troubled with it.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use highball_config::Limits;

use super::{ColdFuture, Connection, End};
use crate::budget::Account;
use crate::clock::{now_ms, Deadline};
use crate::exchange::sink::Sink;
use crate::exchange::spool::SpoolError;
use crate::exchange::spool_room::SpoolRoom;
use crate::exchange::Body;
use crate::message::refusal::Refusal;
use crate::message::request_head::{append_content_length, BodyFraming};
use crate::protocol::{BytesRead, Unreadable};
use crate::route::app_state::AppState;

/// How often a body is read from before others get their turn.
const PIECES: u32 = 4;

/// The Retry-After for a body that has no room, in seconds.
const RETRY_AFTER_SECONDS: u32 = 5;

/// How long a body waits for a disk.
const STORE_PATIENCE: Duration = Duration::from_secs(30);

/// A body while it comes.
struct Upload {
    sink: Sink,
    /// When it began. The time in which it waited for a disk does not count.
    begun_ms: u64,
    /// Since when it has waited for a disk, if it does.
    waiting_since_ms: Option<u64>,
}

const NO_ROOM: Refusal = Refusal::SpoolFull { retry_after_seconds: RETRY_AFTER_SECONDS };

/// The refusal for a body of this length (so far) that has no room; `None`: there is room. What never fits is too large; what
/// the disk has no room for now may fit later.
fn refusal_for_room(room: &SpoolRoom, account: &Account, length: u64) -> Option<Refusal> {
    if length > account.most() {
        room.note_refused(account, length, "it is larger than its client may ever store");
        return Some(Refusal::BodyTooLarge);
    }
    if length > account.limit() {
        room.note_refused(account, length, "the folder of spool files has no room for it");
        return Some(NO_ROOM);
    }
    if length <= account.free() {
        return None;
    }
    account.note_full();
    Some(NO_ROOM)
}

impl Upload {
    /// The client has `body_timeout` from the last byte that came, but all in all not much longer than the least rate
    /// gives it.
    fn extend(&self, deadline: &Deadline, limits: &Limits) {
        deadline.set(Some(limits.body_timeout));
        let bytes = self.sink.length().saturating_mul(1000);
        if let Some(time_ms) = bytes.checked_div(limits.body_bytes_per_second) {
            let latest_ms = self.begun_ms + limits.body_timeout.as_millis() as u64 + time_ms;
            deadline.put_back(deadline.at_ms().min(latest_ms));
        }
    }

    /// The refusal for a body that could not be stored.
    fn not_stored(&self, error: &SpoolError, room: &SpoolRoom) -> Refusal {
        let (account, length) = (self.sink.account(), self.sink.length());
        let SpoolError::System(error) = error else {
            return refusal_for_room(room, account, length).unwrap_or(NO_ROOM);
        };
        room.note_failure(account, length, error);
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => NO_ROOM,
            _ => Refusal::BodyNotStored,
        }
    }
}

impl Connection {
    /// Reads the body of the current request into its exchange. `Some`: it is refused.
    pub(super) async fn upload(&mut self, app: &AppState) -> Result<Option<Refusal>, End> {
        if self.request.head.framing == BodyFraming::None {
            self.request.exchange.borrow().request.body = Body::None;
            return Ok(None);
        }
        self.upload_body(app).await
    }

    #[inline(never)]
    fn upload_body<'a>(&'a mut self, app: &'a AppState) -> ColdFuture<'a, Result<Option<Refusal>, End>> {
        Box::pin(self.read_body(app))
    }

    async fn read_body(&mut self, app: &AppState) -> Result<Option<Refusal>, End> {
        let limits = &self.shared.settings.limits;
        let expected = match self.request.head.framing {
            BodyFraming::Length(length) => Some(length),
            BodyFraming::None | BodyFraming::Unknown => None,
        };
        let (memory_bytes, folder) = (limits.body_memory_bytes, limits.spool_dir.clone());
        let (spool, buffers) = (self.client.spool(&app.spool), self.client.buffers(&app.buffers));
        let sink = Sink::new(expected, memory_bytes, folder, spool, buffers);
        if let Some(length) = expected.filter(|length| Sink::is_for_disk(*length, memory_bytes)) {
            // Better now than when most of it has come.
            self.shared.spool_room.look().await;
            if let Some(refusal) = refusal_for_room(&self.shared.spool_room, sink.account(), length) {
                return Ok(Some(refusal));
            }
        } else if expected.is_none() {
            self.shared.spool_room.look_later();
        }
        if self.request.head.expect_continue && self.buffer.is_empty() {
            self.request.answer.push_front_head(100, false, None, |_| {});
            self.send_events().await?;
        }
        let limits = &self.shared.settings.limits;
        self.protocol.begin_body(self.request.head.framing, limits, app.settings().limits.body_bytes);
        let mut upload = Upload { sink, begun_ms: now_ms(), waiting_since_ms: None };
        upload.extend(&self.counted.deadline, limits);
        let mut refused = poll_fn(|context| self.poll_upload(context, &mut upload)).await?;
        if refused.is_none() {
            upload.sink.finish();
            refused = poll_fn(|context| self.poll_stored(context, &mut upload)).await;
        }
        if refused.is_none() {
            let mut inner = self.request.exchange.borrow();
            if self.request.head.framing == BodyFraming::Unknown {
                append_content_length(&mut inner.request.head, upload.sink.length());
            }
            inner.request.body = upload.sink.into_body();
        }
        Ok(refused)
    }

    fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
        upload: &mut Upload,
    ) -> Poll<Result<Option<Refusal>, End>> {
        if !self.buffer.is_empty() {
            let bytes = self.buffer.take();
            if let Some(done) = self.decode(&bytes, upload) {
                return Poll::Ready(done);
            }
        }
        for _ in 0..PIECES {
            // What cannot be stored for now stays with the client.
            let has_room = upload.sink.poll_room(context);
            if let Some(refusal) = ready!(self.poll_disk(context, upload, has_room)) {
                return Poll::Ready(Ok(Some(refusal)));
            }
            if self.counted.deadline.has_passed(context) {
                return Poll::Ready(Ok(Some(Refusal::BodyTimeout)));
            }
            let shared = Rc::clone(&self.shared);
            let mut scratch = shared.scratch.borrow_mut();
            let length = match ready!(self.stream.poll_read_some(context, &mut scratch)) {
                Ok(0) if !self.protocol.has_read_body() => return Poll::Ready(Err(End::Gone)),
                Err(_) => return Poll::Ready(Err(End::Gone)),
                Ok(length) => length,
            };
            let before = upload.sink.length();
            if let Some(done) = self.decode(&scratch[..length], upload) {
                return Poll::Ready(done);
            }
            if upload.sink.length() > before {
                upload.extend(&self.counted.deadline, &self.shared.settings.limits);
            }
            shared.turn.step();
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Waits until all that came is stored.
    fn poll_stored(&mut self, context: &mut Context<'_>, upload: &mut Upload) -> Poll<Option<Refusal>> {
        match upload.sink.poll_finished(context) {
            Poll::Ready(Ok(())) => {
                if upload.sink.is_on_disk() {
                    self.shared.spool_room.note_stored();
                }
                Poll::Ready(None)
            }
            Poll::Ready(Err(error)) => Poll::Ready(Some(upload.not_stored(&error, &self.shared.spool_room))),
            Poll::Pending => self.poll_disk(context, upload, Poll::Pending),
        }
    }

    /// Waits for the disk, but not for long. `Some`: it has taken too long.
    fn poll_disk(
        &mut self,
        context: &mut Context<'_>,
        upload: &mut Upload,
        done: Poll<()>,
    ) -> Poll<Option<Refusal>> {
        match (done, upload.waiting_since_ms) {
            (Poll::Ready(()), None) => return Poll::Ready(None),
            (Poll::Ready(()), Some(since_ms)) => {
                upload.waiting_since_ms = None;
                upload.begun_ms += now_ms() - since_ms;
                upload.extend(&self.counted.deadline, &self.shared.settings.limits);
                return Poll::Ready(None);
            }
            (Poll::Pending, None) => {
                upload.waiting_since_ms = Some(now_ms());
                self.counted.deadline.set(Some(STORE_PATIENCE));
            }
            (Poll::Pending, Some(_)) => {}
        }
        if self.counted.deadline.has_passed(context) {
            let why = format!("the file system has not answered within {STORE_PATIENCE:?}");
            return Poll::Ready(Some(
                upload.not_stored(&std::io::Error::other(why).into(), &self.shared.spool_room),
            ));
        }
        Poll::Pending
    }

    /// Takes in bytes of the body, and keeps those behind it. `Some`: the body is complete, or refused.
    fn decode(&mut self, bytes: &[u8], upload: &mut Upload) -> Option<Result<Option<Refusal>, End>> {
        let limits = &self.shared.settings.limits;
        let mut stored = Ok(());
        let read = self.protocol.read_body(bytes, limits, |piece| {
            if stored.is_ok() {
                stored = upload.sink.take(piece);
            }
        });
        if let Err(error) = stored {
            return Some(Ok(Some(upload.not_stored(&error, &self.shared.spool_room))));
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
