//! Sending an answer from the application's response cache.

use std::future::poll_fn;
use std::task::{ready, Poll};

use super::answer::Answered;
use super::{ColdFuture, Connection, End};
use crate::request::cached_answer::CachedAnswer;

impl Connection {
    /// Sends a stored answer.
    #[inline(never)]
    pub(super) fn send_cached(&mut self, cached: CachedAnswer) -> ColdFuture<'_, Result<(), End>> {
        Box::pin(self.send_pieces(cached))
    }

    async fn send_pieces(&mut self, mut cached: CachedAnswer) -> Result<(), End> {
        self.shared.turn.step();
        cached.push_next(&mut self.request.answer);
        let mut is_all = cached.is_at_end();
        if let Some(stage) = &mut self.request.compression {
            stage.take_in(&mut self.request.answer);
        }
        let answered = poll_fn(|context| loop {
            if let Some(answered) = ready!(self.poll_events(context))? {
                return Poll::Ready(Ok(answered));
            }
            if let Some(stage) = &mut self.request.compression {
                if ready!(stage.poll_next(context, &mut self.request.answer)) {
                    continue;
                }
            }
            if is_all {
                return Poll::Ready(Ok(Answered::CutOff)); // the end was sent before
            }
            cached.push_next(&mut self.request.answer);
            is_all = cached.is_at_end();
            if let Some(stage) = &mut self.request.compression {
                stage.take_in(&mut self.request.answer);
            }
        })
        .await?;
        let whole = (cached.status, cached.body_bytes());
        let compressed = self.request.compression.take().and_then(|stage| stage.sent());
        let (status, body_bytes) = compressed.unwrap_or(whole);
        self.record(status, body_bytes);
        match answered {
            Answered::Whole => self.end_answer(),
            _ => Err(End::CutOff),
        }
    }
}
