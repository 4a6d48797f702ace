//! Who gets the page about a failure.

use highball_config::ShowDiagnosis;

use crate::message::request_head::RequestHead;
use crate::refusals::failure_pages::{Audience, Evidence};
use crate::request::{Arrived, Routed, Transaction};

/// Learns who gets the page, if the application fails.
pub(in crate::request) fn learn(transaction: &mut Transaction, routed: Routed<'_>) {
    let (is_development, rule) = {
        let settings = routed.app.settings();
        (settings.is_development(), settings.show_diagnosis)
    };
    transaction.audience =
        if is_development { of(rule, &transaction.head, routed.arrived) } else { Audience::Public };
}

/// The audience by this rule.
pub(super) fn of(rule: ShowDiagnosis, head: &RequestHead, arrived: Arrived<'_>) -> Audience {
    evidence(head, arrived).audience(rule, || arrived.stream.is_of_trusted_user(arrived.shared.key.user()))
}

/// What a developer is known by.
pub(super) fn evidence<'a>(head: &'a RequestHead, arrived: Arrived<'a>) -> Evidence<'a> {
    let Arrived { shared, client, text, .. } = arrived;
    let (remote_addr, is_tls) = (client.peer.direct_addr(), client.peer.is_tls);
    Evidence { head, bytes: text, remote_addr, is_tls, binds: &shared.settings.binds, key: &shared.key }
}
