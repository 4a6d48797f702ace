//! Rate limits (option `rate_limit`): clients that send too many requests get 429, before anything else is done for them.

use std::ops::ControlFlow::{Break, Continue};

use highball_config::{Network, RateRule};

use crate::clock::turn_us;
use crate::message::refusal::Refusal;
use crate::path_pattern::plain;
use crate::rate_limit::Reached;
use crate::request::{Decision, Flow, Routed, Transaction};

/// Refuses a request whose client has reached a limit. Counts others, once.
pub(in crate::request) fn limit(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    match routed.app.settings().limits.rates.is_empty() || transaction.waited.is_rated {
        true => Continue(()),
        false => count(transaction, routed),
    }
}

#[inline(never)]
fn count(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let (app, client) = (routed.app, routed.arrived.client);
    let settings = app.settings();
    let limits = &settings.limits;
    if Network::any_contains(&limits.rates_exempt, client.address()) {
        return Continue(());
    }
    let counted = {
        let path = plain(routed.path(&transaction.head));
        let mut rates = routed.arrived.shared.rates.borrow_mut();
        rates.count((app.id, client.origin), &path, &limits.rates, turn_us())
    };
    transaction.waited.is_rated = true;
    match counted {
        Ok(()) => Continue(()),
        Err(reached) => {
            app.count_rate_limited(reached.limit, &client.peer.remote_addr);
            Break(refuse(&reached, transaction))
        }
    }
}

/// Adds the fields of draft-ietf-httpapi-ratelimit-headers-10.
fn refuse(reached: &Reached<'_>, transaction: &mut Transaction) -> Decision {
    let Reached { limit, wait_us } = reached;
    let seconds = u32::try_from(wait_us.div_ceil(1_000_000)).unwrap_or(u32::MAX);
    let (name, quota, window) = (name(limit), limit.requests, limit.period.as_secs());
    let fields = format!(
        "ratelimit-policy: \"{name}\";q={quota};w={window}\r\nratelimit: \"{name}\";r=0;t={seconds}\r\ncache-control: no-store\r\n"
    );
    transaction.answer_refusal(Refusal::RateLimited { retry_after_seconds: seconds }, &fields)
}

/// Returns the name of a limit in these fields: a String (RFC 9651 section 3.3.3).
fn name(limit: &RateRule) -> String {
    limit.to_string().replace('\\', "\\\\").replace('"', "\\\"")
}
