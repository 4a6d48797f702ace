//! Names and passwords: whether a request may reach an application that is for its users alone.

use std::cell::OnceCell;
use std::rc::Rc;

use highball_config::AppId;

use super::routed::Routed;
use super::{Connection, Step};
use crate::basic_auth::{is_open, BasicAuth, Judged, Verdict};
use crate::files::Pending;
use crate::message::refusal::Refusal;
use crate::message::request_head::{BodyFraming, Method};
use crate::refusals::answers::Content;

/// A password that is being checked.
#[derive(Debug)]
pub(super) struct Login {
    /// The application that it is for.
    app: AppId,
    verdict: Rc<OnceCell<Verdict>>,
}

impl Login {
    /// Whether nothing is known yet.
    pub(super) fn is_open(&self) -> bool {
        self.verdict.get().is_none()
    }
}

impl Connection {
    /// The next step of a request that may not reach the application, or not yet.
    pub(super) fn log_in(&mut self, routed: Routed<'_>) -> Option<Step> {
        self.request.user = None;
        let auth = routed.app.basic_auth()?;
        self.judge_login(routed, &auth)
    }

    #[inline(never)]
    fn judge_login(&mut self, routed: Routed<'_>, auth: &Rc<BasicAuth>) -> Option<Step> {
        let Routed { app, prefix_bytes, bytes } = routed;
        if is_open(&self.request.head, bytes, prefix_bytes, &app.settings().process.probe_path) {
            return None;
        }
        let checked = self.request.login.as_ref().filter(|login| login.app == app.id);
        let verdict = match checked.and_then(|login| login.verdict.get()) {
            Some(verdict) => verdict.clone(),
            None => match auth.judge(&self.request.head, bytes, self.belongs.origin) {
                Judged::At(verdict) => verdict,
                Judged::Later(question) => {
                    let verdict = Rc::new(OnceCell::new());
                    self.request.login = Some(Login { app: app.id, verdict: Rc::clone(&verdict) });
                    let auth = Rc::clone(auth);
                    let found_out = async move {
                        let _ = verdict.set(auth.find_out(question).await); // nothing else sets it
                    };
                    return Some(Step::Wait(Pending::new(found_out)));
                }
            },
        };
        match verdict {
            Verdict::User(name) => {
                self.request.user = Some(name);
                None
            }
            Verdict::Refused(refusal) => Some(self.refuse_login(refusal, auth)),
        }
    }

    /// The connection is kept where it can be: browsers ask again on it, with a password.
    fn refuse_login(&mut self, refusal: Refusal, auth: &BasicAuth) -> Step {
        if self.request.head.framing != BodyFraming::None {
            self.protocol.end_connection(); // the body would stand before the next request
        }
        let mut fields = "cache-control: no-store\r\n".to_owned();
        if refusal == Refusal::LoginNeeded {
            fields += &format!("www-authenticate: {}\r\n", auth.challenge());
        }
        let body = refusal.in_words() + "\n";
        let content =
            Content { content_type: "text/plain; charset=utf-8", fields: &fields, body: body.as_bytes() };
        refusal.answer_with(&content, self.request.head.method == Method::Head, &mut self.output.events);
        Step::Answer
    }
}
