//! How a rate limit is written: `10/s`, `/login 5/min`, `/api/* 100/min burst 20`.

use std::time::Duration;

use crate::settings::RateRule;
use crate::value;

/// Largest number of rate limits of an application: a request can count towards all of them.
pub(crate) const MOST: usize = 16;

/// Units, each with its seconds.
const UNITS: [(&str, u64); 5] = [("s", 1), ("min", 60), ("m", 60), ("h", 3600), ("d", 86_400)];

/// Largest number of requests, in the shortest time and at once.
const MOST_REQUESTS: u32 = 1_000_000;

/// A limit for all paths, or for some.
pub(crate) fn rate_limit(text: &str) -> Result<RateRule, String> {
    let wrong = || {
        format!("`{text}` is not a rate limit; write [PATH] NUMBER/UNIT [burst NUMBER], such as /login 5/min, with s, min, h or d")
    };
    let (pattern, limit) = value::after_paths(text)?;
    let words: Vec<&str> = limit.split_ascii_whitespace().collect();
    let (rate, burst) = match words[..] {
        [rate] => (rate, None),
        [rate, "burst", burst] => (rate, Some(value::count(burst, &(1..=MOST_REQUESTS))?)),
        _ => return Err(wrong()),
    };
    let (requests, unit) = rate.split_once('/').ok_or_else(wrong)?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let requests =
        value::count(requests, &(1..=MOST_REQUESTS)).map_err(|problem| format!("`{text}`: {problem}"))?;
    let burst = burst.unwrap_or(requests);
    Ok(RateRule { pattern, requests, period: Duration::from_secs(*seconds), burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limits_are_read() {
        for (text, pattern, requests, seconds, burst) in [
            ("10/s", None, 10, 1, 10),
            ("/login 5/min", Some("/login"), 5, 60, 5),
            ("/api/* 100/m  burst 20", Some("/api/*"), 100, 60, 20),
            ("1000/h", None, 1000, 3600, 1000),
            ("1/d burst 3", None, 1, 86_400, 3),
        ] {
            let read = rate_limit(text).unwrap();
            let path = read.pattern.as_ref().map(|pattern| &*pattern.0);
            assert_eq!(
                (path, read.requests, read.period.as_secs(), read.burst),
                (pattern, requests, seconds, burst)
            );
            assert_eq!(rate_limit(&read.to_string()), Ok(read), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_limit_is_refused() {
        for text in [
            "",
            "10",
            "10/",
            "0/s",
            "-1/s",
            "1.5/s",
            "10/sec",
            "10r/s",
            "10/s burst",
            "10/s burst 0",
            "burst 3",
            "login 5/min",
            "/login",
            "/login* 5/min x",
            "10/s 5/min",
            "1000001/s",
            "10 /s",
        ] {
            assert!(rate_limit(text).is_err(), "{text}");
        }
    }
}
