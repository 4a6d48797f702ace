//! When the wait of a request for a worker began, and how long it and the answer took: for the application, the client and
//! metrics.

use highball_config::App;

use super::routed::Arrived;
use super::transaction::Transaction;
use crate::clock::turn_us;
use crate::exchange::response_head::Recipient;
use crate::message::request_head::{append_field, known_key, patch_wait, BodyFraming};
use crate::message::request_start;
use crate::moments::Moments;
use crate::route::app_state::AppState;

/// The first moments of a request for this application: it was received now, and a trusted proxy may have had it before.
pub(super) fn first_moments(
    recipient: Recipient,
    received_us: u64,
    transaction: &Transaction,
    settings: &App,
    arrived: Arrived<'_>,
) -> Moments {
    // Reports of others have been dropped, unless no proxies are known: then they are the application's to judge.
    let is_believed = recipient == Recipient::Proxy;
    let proxies_us =
        if is_believed { request_start::waited_us(transaction.head.with(arrived.text)) } else { 0 };
    let is_logged = transaction.access_log(arrived.shared).is_some_and(|log| log.measures_requests());
    let is_traced = transaction.trace.as_ref().is_some_and(|trace| trace.is_sampled());
    Moments {
        are_measured: arrived.shared.measures
            || settings.server_timing
            || is_logged
            || is_traced
            || transaction.visitor.is_some(),
        received_us,
        proxies_us,
        queued_us: received_us,
        ..Moments::default()
    }
}

/// The body of a request is there: it waits for a worker from now on. What a client takes to send it is no wait for a
/// worker.
pub(super) fn begin_wait(transaction: &mut Transaction, app: &AppState) {
    let mut inner = transaction.exchange.borrow();
    if transaction.head.framing != BodyFraming::None {
        inner.moments.queued_us = turn_us();
    }
    let Moments { received_us, proxies_us, queued_us, .. } = inner.moments;
    if queued_us != received_us || proxies_us > 0 {
        patch_wait(&mut inner.request.head, queued_us.saturating_sub(proxies_us));
    }
    if app.settings().request_start && !request_start::is_reported(&transaction.head) {
        let now = request_start::now();
        append_field(&mut inner.request.head, known_key::X_REQUEST_START, now.as_bytes());
    }
}

/// The field line by which a client gets to know where the time went (W3C Server Timing), in milliseconds: with proxies, in
/// the queue, and in the application until its answer began.
#[inline(never)]
pub(crate) fn server_timing(moments: Moments) -> Vec<u8> {
    let Moments { proxies_us, queued_us, placed_us, first_us, .. } = moments;
    let spans = [
        ("proxy", Some(proxies_us).filter(|us| *us > 0)),
        ("queue", (placed_us > 0).then(|| placed_us.saturating_sub(queued_us))),
        ("app", (first_us > 0).then(|| first_us.saturating_sub(placed_us))),
    ];
    let metrics = spans.iter().filter_map(|(name, us)| {
        let us = (*us)?;
        Some(format!("{name};dur={}.{:03}", us / 1000, us % 1000))
    });
    let metrics: Vec<String> = metrics.collect();
    if metrics.is_empty() {
        return Vec::new();
    }
    format!("server-timing: {}\r\n", metrics.join(", ")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_is_known() {
        let moments = Moments { queued_us: 1000, placed_us: 1234, first_us: 13_579, ..Moments::default() };
        assert_eq!(server_timing(moments), b"server-timing: queue;dur=0.234, app;dur=12.345\r\n");
        let from_proxy = Moments { proxies_us: 2_000_000, first_us: 0, ..moments };
        assert_eq!(server_timing(from_proxy), b"server-timing: proxy;dur=2000.000, queue;dur=0.234\r\n");
        assert_eq!(server_timing(Moments::default()), b"");
    }
}
