//! What a step of a request decides.

use std::ops::ControlFlow;
use std::rc::Rc;

use super::cached_answer::CachedAnswer;
use crate::message::refusal::Refusal;
use crate::pending::Pending;
use crate::route::app_state::AppState;

/// A step passes the request on to the next one, or decides its outcome.
pub(crate) type Flow<T = ()> = ControlFlow<Decision, T>;

/// Outcome of a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It is refused; the connection ends.
    Refuse(Refusal),
    /// The front answers it, and the connection stays: with a static file, the list of applications, a developer's cookie, a
    /// health check, or a refusal with fields of the header. The answer is in the transaction.
    Answer,
    /// The cache answers it.
    Cached(CachedAnswer),
    /// Something has to be found out before it can be routed, again, by the text of its head.
    Wait { pending: Pending, text: Vec<u8> },
    /// It is for this application.
    Application(Rc<AppState>),
}
