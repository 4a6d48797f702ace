//! Names and passwords: whether a request may reach an application that is for its users alone.

use std::cell::OnceCell;
use std::ops::ControlFlow::{Break, Continue};
use std::rc::Rc;

use crate::basic_auth::{is_open, BasicAuth, Judged, Verdict};
use crate::message::refusal::Refusal;
use crate::pending::Pending;
use crate::request::transaction::Login;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Passes a request on that may reach the application.
pub(in crate::request) fn check(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    transaction.user = None;
    match routed.app.basic_auth() {
        Some(auth) => judge(&auth, transaction, routed),
        None => Continue(()),
    }
}

#[inline(never)]
fn judge(auth: &Rc<BasicAuth>, transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let Routed { arrived, app, prefix_bytes } = routed;
    let Transaction { head, waited, .. } = transaction;
    if is_open(head.with(arrived.text), prefix_bytes, &app.settings().process.probe_path) {
        return Continue(());
    }
    let checked = waited.login.as_ref().filter(|login| login.app == app.id);
    let verdict = match checked.and_then(|login| login.verdict.get()) {
        Some(verdict) => verdict.clone(),
        None => match auth.judge(head.with(arrived.text), arrived.client.origin) {
            Judged::At(verdict) => verdict,
            Judged::Later(question) => {
                let verdict = Rc::new(OnceCell::new());
                waited.login = Some(Login { app: app.id, verdict: Rc::clone(&verdict) });
                let auth = Rc::clone(auth);
                let found_out = async move {
                    let _ = verdict.set(auth.find_out(question).await); // nothing else sets it
                };
                return routed.wait(Pending::new(found_out));
            }
        },
    };
    match verdict {
        Verdict::User(name) => {
            transaction.user = Some(name);
            Continue(())
        }
        Verdict::Refused(refusal) => Break(refuse(refusal, auth, transaction)),
    }
}

/// The connection is kept where it can be: browsers ask again on it, with a password.
fn refuse(refusal: Refusal, auth: &BasicAuth, transaction: &mut Transaction) -> Decision {
    let mut fields = "cache-control: no-store\r\n".to_owned();
    if refusal == Refusal::LoginNeeded {
        fields += &format!("www-authenticate: {}\r\n", auth.challenge());
    }
    transaction.answer_refusal(refusal, &fields)
}
