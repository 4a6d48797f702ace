//! Rate limits (option `rate_limit`): clients that send too many requests get 429, before anything else is done for them. All
//! answers to requests that a limit covers say what is left.

use std::fmt::{self, Write};
use std::ops::ControlFlow::{Break, Continue};

use highball_config::{Network, RateRule};

use crate::clock::turn_us;
use crate::message::refusal::Refusal;
use crate::path_pattern::plain;
use crate::rate_limit::Quota;
use crate::request::{Flow, Routed, Transaction};

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
        Ok(left) => {
            transaction.quota_fields = left.as_ref().map(fields);
            Continue(())
        }
        Err(reached) => {
            app.count_rate_limited(reached.limit, &client.peer.remote_addr);
            transaction.quota_fields = Some(fields(&reached));
            let refusal = Refusal::RateLimited { retry_after_seconds: seconds(reached.more_in_us) };
            Break(transaction.answer_refusal(refusal, "cache-control: no-store\r\n"))
        }
    }
}

/// Returns the field lines of draft-ietf-httpapi-ratelimit-headers-10: what the limit is, and what it leaves to the client.
fn fields(quota: &Quota<'_>) -> Box<str> {
    let Quota { limit, remaining, more_in_us } = quota;
    let (name, requests, window) = (Name(limit), limit.requests, limit.period.as_secs());
    let seconds = seconds(*more_in_us);
    let lines = format!(
        "ratelimit-policy: \"{name}\";q={requests};w={window}\r\nratelimit: \"{name}\";r={remaining};t={seconds}\r\n"
    );
    lines.into_boxed_str()
}

/// Returns whole seconds, not fewer than the time takes.
fn seconds(time_us: u64) -> u32 {
    u32::try_from(time_us.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// The name of a limit in these fields: what stands between the quotes of a String (RFC 9651 section 3.3.3).
struct Name<'a>(&'a RateRule);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(formatter), "{}", self.0)
    }
}

/// Writes text as a String has it, which may have printable ASCII alone.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|letter| match letter {
            '"' | '\\' => write!(self.0, "\\{letter}"),
            ' '..='~' => self.0.write_char(letter),
            _ => self.0.write_char('?'),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::settings::PathPattern;
    use std::time::Duration;

    #[test]
    fn a_name_is_a_string_of_structured_fields() {
        let pattern = Some(PathPattern("/a\"b\\c/\u{e9}".into()));
        let limit = RateRule { pattern, requests: 5, period: Duration::from_secs(60), burst: 9 };
        let quota = Quota { limit: &limit, remaining: 3, more_in_us: 1_000_001 };
        let name = r#""/a\"b\\c/? 5/min burst 9""#;
        assert_eq!(
            fields(&quota),
            format!("ratelimit-policy: {name};q=5;w=60\r\nratelimit: {name};r=3;t=2\r\n").into()
        );
    }
}
