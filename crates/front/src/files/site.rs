//! Files without an application behind them: a path without a file gets the site's 404 page, and a folder's path ends
//! in a slash, so that its page's relative links lead where its author meant.

use super::{push_answer, Part, SafePath, StaticAnswer, StaticFiles, StaticRequest};
use crate::location;
use crate::message::answer::AnswerEvents;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, Method};

/// Where generators put the page for what is not there.
const NOT_FOUND_PAGE: &[u8] = b"/404.html";

impl StaticFiles {
    /// The same, where no application is asked for what is not there.
    #[must_use]
    pub(crate) fn of_site(self) -> Self {
        StaticFiles { of_site: true, ..self }
    }

    /// Answers what [`StaticFiles::lookup`] did not, if there is no application to do it.
    ///
    /// # Errors
    /// The request has to be refused, and its body, if it has one, was not read.
    pub(crate) fn not_found(
        &self,
        request: &StaticRequest<'_>,
        events: &mut AnswerEvents,
    ) -> Option<Result<StaticAnswer, Refusal>> {
        if !self.of_site {
            return None;
        }
        let head = request.head;
        Some(match head.method {
            Method::Get | Method::Head if head.framing == BodyFraming::None => {
                Ok(self.not_found_page(request, events))
            }
            Method::Get | Method::Head => Err(Refusal::NotFound),
            _ => Err(Refusal::OnlyGetAndHead),
        })
    }

    fn not_found_page(&self, request: &StaticRequest<'_>, events: &mut AnswerEvents) -> StaticAnswer {
        let page = match SafePath::of_target(NOT_FOUND_PAGE).map(|path| self.find(&path, request)) {
            Some(Err(pending)) => return StaticAnswer::Pending(pending),
            Some(Ok(page)) => page,
            None => None,
        };
        if let Some(page) = page {
            let representation = page.choose(&request.accepted_encodings());
            let part = Part { status: 404, offset: 0, length: representation.length, varies: false };
            return push_answer(representation, part, request, events);
        }
        Refusal::NotFound.answer(request.head.method == Method::Head, events);
        StaticAnswer::Given
    }
}

/// Sends the client to the same path with a slash at its end.
pub(super) fn add_slash(request: &StaticRequest<'_>, events: &mut AnswerEvents) -> StaticAnswer {
    let (path, query) = (request.head.path(), request.head.query());
    let location = location::of_same_origin(&[path, b"/"].concat(), query);
    events.push_whole(301, false, b"", |fields| fields.add(b"location", &location));
    StaticAnswer::Given
}
