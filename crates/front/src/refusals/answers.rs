//! Every refusal as an answer.

use crate::message::answer::AnswerEvents;
use crate::message::refusal::Refusal;

/// What an answer holds.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub(crate) content_type: &'static str,
    /// Further header lines, each with its end.
    pub(crate) fields: &'a str,
    pub(crate) body: &'a [u8],
}

impl Refusal {
    /// The whole answer, in plain words. `is_head_method`: the request was HEAD, so that no body follows.
    pub fn answer(self, is_head_method: bool, events: &mut AnswerEvents) {
        self.answer_in_words(None, "", is_head_method, events);
    }

    /// The same, with the request's id, which a visitor can quote, and further header lines.
    pub(crate) fn answer_in_words(
        self,
        id: Option<&str>,
        fields: &str,
        is_head_method: bool,
        events: &mut AnswerEvents,
    ) {
        let id = id.map(|id| format!("Request id: {id}\n")).unwrap_or_default();
        let body = format!("{}\n{id}", self.in_words());
        let content = Content { content_type: "text/plain; charset=utf-8", fields, body: body.as_bytes() };
        self.answer_with(&content, is_head_method, events);
    }

    /// The whole answer with this content.
    pub(crate) fn answer_with(self, content: &Content<'_>, is_head_method: bool, events: &mut AnswerEvents) {
        events.push_whole(self.status(), is_head_method, content.body, |fields| {
            fields.add(b"content-type", content.content_type.as_bytes());
            fields.add_lines(content.fields.as_bytes());
            if let Some(seconds) = self.retry_after_seconds() {
                fields.add(b"retry-after", seconds.to_string().as_bytes());
            }
            if self == Refusal::OnlyGetAndHead {
                fields.add(b"allow", b"GET, HEAD");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::answer::AnswerEvent;

    #[test]
    fn an_answer_says_what_is_wrong() {
        let mut events = AnswerEvents::default();
        Refusal::SpaceBeforeColon.answer(false, &mut events);
        let body = "400 Bad Request: white space between a header field's name and its colon\n";
        assert_eq!(events.summary(), (400, body.len() as u64));
        assert_eq!(written(events), ("content-type: text/plain; charset=utf-8\r\n".into(), body.into()));
    }

    #[test]
    fn an_answer_to_head_has_no_body_but_its_length() {
        let mut events = AnswerEvents::default();
        Refusal::QueueFull { retry_after_seconds: 7 }.answer(true, &mut events);
        assert_eq!(events.summary(), (503, 0));
        let (fields, body) = written(events);
        assert!(fields.ends_with("\r\nretry-after: 7\r\n") && body.is_empty(), "{fields}");
    }

    /// The fields and the body. Without another length, the client gets to know the body's.
    fn written(mut events: AnswerEvents) -> (String, String) {
        let Some(AnswerEvent::Head(head)) = events.take_unless(|_| false) else { panic!("no head") };
        let fields = String::from_utf8(events.take_bytes(head.field_bytes).to_vec()).unwrap();
        let body = String::from_utf8(events.take_bytes(events.waiting_bytes()).to_vec()).unwrap();
        let length = head.content_length.unwrap();
        assert!(length == body.len() as u64 || (length > 0 && body.is_empty()));
        (fields, body)
    }
}
