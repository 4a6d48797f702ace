//! When a proxy got a request, as it reports it in `X-Request-Start` or `X-Queue-Start`: the time since 1970, in seconds,
//! milliseconds, microseconds or nanoseconds, with `t=` before it or without. Which unit it is shows from its size.

use super::request_head::{known_key, Head, RequestHead};
use crate::clock::since_1970;

/// A wait that is longer than this is none: another clock is wrong, or the field is about something else.
const LONGEST_US: u64 = 3600 * 1_000_000;

/// The units, as microseconds, by the first size that is too large for them: times of 1973 to 5138.
const UNITS: [(f64, f64); 4] = [(1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (f64::INFINITY, 1e-3)];
const FIRST_SECONDS: f64 = 1e8;

/// Whether the request has such a field.
pub(crate) fn is_reported(head: &RequestHead) -> bool {
    head.has(known_key::X_REQUEST_START) || head.has(known_key::X_QUEUE_START)
}

/// How long ago, in microseconds, the first proxy got the request, that reports it. A time in the future is now: no two
/// machines have quite the same time.
pub(crate) fn waited_us(head: Head<'_>) -> u64 {
    match is_reported(&head) {
        true => longest_wait_us(head),
        false => 0,
    }
}

#[inline(never)]
fn longest_wait_us(head: Head<'_>) -> u64 {
    let now_us = since_1970().as_micros() as f64;
    let fields = [known_key::X_REQUEST_START, known_key::X_QUEUE_START];
    let values = fields.into_iter().flat_map(|key| head.values_of(key));
    let times = values.flat_map(|value| value.split(|byte| *byte == b',')).filter_map(reported_us);
    let waits = times.map(|at| (now_us - at).max(0.0) as u64).filter(|wait| *wait <= LONGEST_US);
    waits.max().unwrap_or_default()
}

/// The time of now, as the application gets it in `X-Request-Start` where no proxy has reported one: milliseconds, as
/// Heroku's router has them, which every tool for that field understands.
pub(crate) fn now() -> String {
    since_1970().as_millis().to_string()
}

/// A reported time in microseconds since 1970.
fn reported_us(value: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    let number = text.strip_prefix("t=").unwrap_or(text);
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = number.parse().ok().filter(|number| *number >= FIRST_SECONDS)?;
    let (_, unit_us) = UNITS.iter().find(|(limit, _)| number < *limit)?;
    Some(number * unit_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::heads::head_of;

    #[test]
    fn each_unit_is_known_by_its_size() {
        for text in
            ["t=1764028800.123", "1764028800.123", "1764028800123", "t=1764028800123", "t=1764028800123000"]
        {
            let us = reported_us(text.as_bytes()).unwrap();
            assert!((us - 1_764_028_800_123_000.0).abs() < 1.0, "{text}: {us}");
        }
        let us = reported_us(b" t=1764028800123000999 ").unwrap();
        assert!((us - 1_764_028_800_123_000.0).abs() < 2.0, "{us}");
    }

    #[test]
    fn nonsense_is_no_time() {
        for text in [
            "",
            "t=",
            "now",
            "-1764028800",
            "1e15",
            "inf",
            "NaN",
            "t=t=1764028800",
            "12",
            "1.2.3",
            "17640 28800",
        ] {
            assert_eq!(reported_us(text.as_bytes()), None, "{text}");
        }
    }

    fn waited(fields: &str) -> u64 {
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = head_of(&bytes);
        waited_us(head.with(bytes.as_bytes()))
    }

    #[test]
    fn the_earliest_plausible_time_counts() {
        let ago = |ms: u128| since_1970().as_millis() - ms;
        let within = |fields: &str, expected_ms: u64| {
            let us = waited(fields);
            assert!((expected_ms * 1000..expected_ms * 1000 + 5_000_000).contains(&us), "{fields:?}: {us}");
        };
        within(&format!("X-Request-Start: t={}\r\nX-Queue-Start: {}\r\n", ago(10_000), ago(60_000)), 60_000);
        within(&format!("X-Request-Start: {}, {}\r\n", ago(60_000), ago(10_000)), 60_000);
        within(&format!("X-Request-Start: {}\r\nX-Request-Start: 5\r\n", ago(10_000)), 10_000);
        assert_eq!(waited(&format!("X-Request-Start: {}\r\n", ago(4_000_000_000))), 0, "too long ago");
        assert_eq!(
            waited(&format!("X-Request-Start: {}\r\n", since_1970().as_millis() + 60_000)),
            0,
            "to come"
        );
        assert_eq!(waited("X-Request-Start: soon\r\n"), 0);
        assert_eq!(waited(""), 0);
    }

    #[test]
    fn what_we_write_we_read() {
        assert!(reported_us(now().as_bytes()).is_some());
    }
}
