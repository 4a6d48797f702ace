//! The link that shows that a browser is a developer's, and where its key must not be seen.

use std::ops::ControlFlow::{Break, Continue};

use super::audience;
use crate::developer_key::{Followed, LINK_KEY_BYTES};
use crate::message::answer::AnswerEvents;
use crate::message::request_head::known_key;
use crate::request::{Arrived, Decision, Flow, Routed, Transaction};

/// Answers a browser that follows the link: it gets its cookie, and is sent to the same address without what only the link
/// has. No application and no log sees that; neither where the link proves nothing.
pub(in crate::request) fn follow(transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    let (head, text) = (&transaction.head, arrived.text);
    if head.target(text).len() < LINK_KEY_BYTES {
        return Continue(()); // most are shorter
    }
    match arrived.shared.key.followed(head.path(text), head.query(text)) {
        Some(followed) => Break(welcome(&followed, transaction, arrived)),
        None => Continue(()),
    }
}

#[cold]
fn welcome(followed: &Followed, transaction: &mut Transaction, arrived: Arrived<'_>) -> Decision {
    transaction.note(&followed.target, arrived.text, arrived.shared);
    let key = &arrived.shared.key;
    let evidence = audience::evidence(&transaction.head, arrived);
    let is_ours =
        followed.is_link && evidence.may_be_developer() && arrived.stream.is_of_trusted_user(key.user());
    let cookie = is_ours.then(|| key.set_cookie(evidence.host()));
    redirect(&followed.target, cookie, &mut transaction.answer);
    Decision::Answer
}

/// Sends the client to another address.
fn redirect(target: &[u8], cookie: Option<String>, answer: &mut AnswerEvents) {
    answer.push_whole(303, false, b"", |fields| {
        fields.add(b"location", target);
        if let Some(cookie) = cookie {
            fields.add(b"set-cookie", cookie.as_bytes());
        }
        fields.add(b"cache-control", b"no-store");
        fields.add(b"referrer-policy", b"no-referrer");
    });
}

/// Drops the fields that have the key of the link, so that no application gets them: the page that was opened by that may be
/// the referer, and programs in between may repeat a target.
pub(in crate::request) fn hide(transaction: &mut Transaction, routed: Routed<'_>) {
    let (head, text) = (&mut transaction.head, routed.text());
    let is_in = |value: &[u8]| routed.arrived.shared.key.is_in(value);
    let is_development = routed.app.settings().is_development();
    let is_referer = || head.has(known_key::REFERER) && head.values_of(known_key::REFERER, text).any(is_in);
    if is_development || is_referer() {
        head.drop_values(text, is_in);
    }
}
