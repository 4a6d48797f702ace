//! Rate limits (option `rate_limit`): clients that send too many requests get 429, before anything else is done for them. All
//! answers to requests that a limit covers say what is left.

use std::fmt::{self, Write};
use std::ops::ControlFlow::{Break, Continue};
use std::ops::RangeInclusive;
use std::time::Duration;

use highball_config::{Network, RateRule};
use tokio::time::sleep;

use crate::clock::turn_us;
use crate::message::refusal::Refusal;
use crate::path_pattern::plain;
use crate::pending::Pending;
use crate::random::RandomBytes;
use crate::rate_limit::Quota;
use crate::request::transaction::Rated;
use crate::request::{Arrived, Flow, Routed, Transaction};

/// How long 429 takes, so that a client that sends one request after the other gets little of the server's time. It differs from
/// request to request: otherwise many connections would have their answers, and send their next requests, all at once.
const REFUSAL_MS: RangeInclusive<u16> = 50..=150;

/// Refuses a request whose client has reached a limit. Counts others, once.
pub(in crate::request) fn limit(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    match transaction.waited.rated {
        Rated::No if !routed.app.settings().limits.rates.is_empty() => count(transaction, routed),
        Rated::No | Rated::Passed => Continue(()),
        Rated::Refused { retry_after_seconds } => refuse(transaction, retry_after_seconds),
    }
}

#[inline(never)]
fn count(transaction: &mut Transaction, routed: Routed<'_>) -> Flow {
    let Routed { arrived: Arrived { client, stream, shared, .. }, app, .. } = routed;
    let settings = app.settings();
    let limits = &settings.limits;
    if Network::any_contains(&limits.rates_exempt, client.address()) {
        return Continue(());
    }
    let counted = {
        let path = plain(routed.path(&transaction.head));
        let mut rates = shared.rates.borrow_mut();
        rates.count((app.id, client.origin), &path, &limits.rates, turn_us())
    };
    match counted {
        Ok(left) => {
            transaction.waited.rated = Rated::Passed;
            transaction.quota_fields = left.as_ref().map(fields);
            Continue(())
        }
        Err(reached) => {
            app.log_rate_limited(reached.limit, &client.peer.remote_addr);
            transaction.quota_fields = Some(fields(&reached));
            let retry_after_seconds = seconds(reached.more_in_us);
            transaction.waited.rated = Rated::Refused { retry_after_seconds };
            match client.shares_connection(stream, &shared.settings) {
                true => refuse(transaction, retry_after_seconds),
                false => routed.wait(Pending::new(sleep(refusal_time(&mut shared.random.borrow_mut())))),
            }
        }
    }
}

fn refusal_time(random: &mut RandomBytes) -> Duration {
    let span = REFUSAL_MS.end() - REFUSAL_MS.start() + 1;
    Duration::from_millis((REFUSAL_MS.start() + u16::from_le_bytes(random.take()) % span).into())
}

fn refuse(transaction: &mut Transaction, retry_after_seconds: u32) -> Flow {
    let refusal = Refusal::RateLimited { retry_after_seconds };
    Break(transaction.answer_refusal(refusal, "cache-control: no-store\r\n"))
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
