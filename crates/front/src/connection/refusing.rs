//! Sending an error of the front's own.

use super::{ColdFuture, Connection, End};
use crate::exchange::Body;
use crate::message::refusal::Refusal;
use crate::message::request_head::Method;
use crate::message::request_id::RequestId;
use crate::request::page::page_of;
use crate::request::steps::identity;

impl Connection {
    /// Sends a refusal. `Ok`: the connection is kept, as it may be where `keep_alive` says so.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, refusal: Refusal, keep_alive: bool) -> ColdFuture<'_, Result<(), End>> {
        Box::pin(self.send_refusal(refusal, keep_alive))
    }

    async fn send_refusal(&mut self, refusal: Refusal, keep_alive: bool) -> Result<(), End> {
        identity::identify_unread(&mut self.request, &self.shared);
        self.request.note_refused(&self.shared);
        self.request.visit.iter().for_each(|app| app.count_refusal(refusal));
        if matches!(refusal, Refusal::HeadTimeout | Refusal::BodyTimeout) {
            self.shared.note_unanswered(|unanswered| unanswered.incomplete += 1);
        }
        let page = page_of(refusal, &self.request, &self.shared).await;
        self.request.exchange.borrow().request.body = Body::None;
        if !keep_alive {
            self.protocol.end_connection();
        }
        let answer = &mut self.request.answer;
        answer.clear();
        let is_head_method = self.request.head.method == Method::Head;
        match page {
            Some(page) => refusal.answer_with(&page.content(), is_head_method, answer),
            None => {
                let id = self.request.request_id.as_ref().map(RequestId::as_str);
                refusal.answer_in_words(id, "", is_head_method, answer);
            }
        }
        let (status, body_bytes) = answer.summary();
        self.send_events().await?;
        self.record(status, body_bytes);
        match keep_alive {
            true => Ok(()),
            false => Err(End::Linger),
        }
    }
}
