//! Developers: the link that shows that a browser is one's, where its key must not be seen, and what they get that others do
//! not.

use std::ops::ControlFlow::{Break, Continue};

use highball_config::ShowDiagnosis;

use crate::developer_key::{Followed, LINK_KEY_BYTES};
use crate::message::request_head::{known_key, RequestHead};
use crate::refusals::failure_pages::{Audience, Evidence};
use crate::request::{Arrived, Decision, Flow, Routed, Transaction};

/// Answers a browser that follows the link: it gets its cookie, and is sent to the same address without what only the link
/// has. No application and no log sees that; neither where the link proves nothing.
pub(in crate::request) fn follow(transaction: &mut Transaction, arrived: Arrived<'_>) -> Flow {
    let head = transaction.head.with(arrived.text);
    if head.target().len() < LINK_KEY_BYTES {
        return Continue(()); // most are shorter
    }
    match arrived.shared.key.followed(head.path(), head.query()) {
        Some(followed) => Break(welcome(&followed, transaction, arrived)),
        None => Continue(()),
    }
}

#[cold]
fn welcome(followed: &Followed, transaction: &mut Transaction, arrived: Arrived<'_>) -> Decision {
    transaction.note(Some(&followed.target), arrived.text, arrived.shared);
    let key = &arrived.shared.key;
    let evidence = evidence(&transaction.head, arrived);
    let is_ours =
        followed.is_link && evidence.may_be_developer() && arrived.stream.is_of_trusted_user(key.user());
    let cookie = is_ours.then(|| key.set_cookie(evidence.host()));
    transaction.answer_link(&followed.target, cookie.as_deref())
}

/// Learns who gets the page if the application fails, and hides the key of the link from the application.
pub(in crate::request) fn know(transaction: &mut Transaction, routed: Routed<'_>) {
    let (is_development, rule) = {
        let settings = routed.app.settings();
        (settings.is_development(), settings.show_diagnosis)
    };
    hide_key(&mut transaction.head, is_development, routed.arrived);
    transaction.audience =
        if is_development { audience(rule, &transaction.head, routed.arrived) } else { Audience::Public };
}

/// Drops the fields that have the key: the page that was opened by that may be the referer, and programs in between may repeat
/// a target.
fn hide_key(head: &mut RequestHead, is_development: bool, arrived: Arrived<'_>) {
    let text = arrived.text;
    let is_in = |value: &[u8]| arrived.shared.key.is_in(value);
    let is_referer =
        || head.has(known_key::REFERER) && head.with(text).values_of(known_key::REFERER).any(is_in);
    if is_development || is_referer() {
        head.drop_values(text, is_in);
    }
}

/// The audience by this rule.
pub(super) fn audience(rule: ShowDiagnosis, head: &RequestHead, arrived: Arrived<'_>) -> Audience {
    let is_of_trusted_user = || arrived.stream.is_of_trusted_user(arrived.shared.key.user());
    evidence(head, arrived).audience(rule, is_of_trusted_user)
}

/// What a developer is known by.
fn evidence<'a>(head: &'a RequestHead, arrived: Arrived<'a>) -> Evidence<'a> {
    let Arrived { shared, client, text, .. } = arrived;
    let (remote_addr, is_tls) = (client.peer.direct_addr(), client.peer.is_tls);
    Evidence { head: head.with(text), remote_addr, is_tls, binds: &shared.settings.binds, key: &shared.key }
}
