//! What a request says of the trace that it belongs to: `traceparent` and `tracestate` (W3C Trace Context, level 1).
//!
//! Without a collector, the front changes neither, and makes none: a parent that was made here would be a span that no tracing
//! service ever learns of, and its flags would overrule what the application decides about sampling.

use highball_trace::{SpanId, TraceId};

use super::request_head::{known_key, Head, RequestHead};
use crate::http_syntax::hexadecimal_digits;

/// Bytes of a `traceparent` of version 00: `00-TRACE-PARENT-FLAGS`.
pub(crate) const TRACEPARENT_BYTES: usize = 55;

/// The flag of a trace that is sampled.
const SAMPLED: u8 = 1;

/// The caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// The caller's span, if the request names one. Malformed ones have been dropped.
    pub(crate) fn of(head: Head<'_>) -> Option<Self> {
        let value = head.field(known_key::TRACEPARENT).filter(|value| is_valid(value))?;
        let [flags] = bytes(&value[53..55])?;
        let is_sampled = flags & SAMPLED != 0;
        Some(TraceParent { trace: bytes(&value[3..35])?, span: bytes(&value[36..52])?, is_sampled })
    }
}

/// The bytes that these hexadecimal digits stand for.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// A `traceparent` for those who are called.
pub(crate) fn traceparent(trace: &TraceId, span: &SpanId, is_sampled: bool) -> [u8; TRACEPARENT_BYTES] {
    let mut text = *b"00-................................-................-00";
    let write = |place: &mut [u8], bytes: &[u8]| {
        for (digits, byte) in place.chunks_exact_mut(2).zip(bytes) {
            digits.copy_from_slice(&hexadecimal_digits(*byte));
        }
    };
    write(&mut text[3..35], trace);
    write(&mut text[36..52], span);
    text[TRACEPARENT_BYTES - 1] += u8::from(is_sampled);
    text
}

impl RequestHead {
    /// Takes away a `traceparent` that is malformed, or there more than once, and a `tracestate` that belongs to none (sections
    /// 3.2.2 and 3.3).
    pub(crate) fn drop_invalid_trace(&mut self, buffer: &[u8]) {
        if !self.has(known_key::TRACEPARENT) && !self.has(known_key::TRACESTATE) {
            return;
        }
        let mut parents = self.with(buffer).values_of(known_key::TRACEPARENT);
        let is_valid = parents.next().is_some_and(is_valid) && parents.next().is_none();
        drop(parents);
        if !is_valid {
            self.drop_known(known_key::TRACEPARENT);
            self.drop_known(known_key::TRACESTATE);
        }
    }
}

/// Whether it is a `traceparent`. Of versions that are not known yet, what stands behind the parts of version 00 is ignored.
fn is_valid(value: &[u8]) -> bool {
    let Some((parts, rest)) = value.split_at_checked(TRACEPARENT_BYTES) else { return false };
    let [version, trace, parent, flags] = [&parts[..2], &parts[3..35], &parts[36..52], &parts[53..]];
    let is_hexadecimal = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_id = |part: &[u8]| is_hexadecimal(part) && part.iter().any(|byte| *byte != b'0');
    let is_end = rest.is_empty() || (version != b"00" && rest[0] == b'-');
    [2, 35, 52].into_iter().all(|at| parts[at] == b'-')
        && is_hexadecimal(version)
        && version != b"ff"
        && is_id(trace)
        && is_id(parent)
        && is_hexadecimal(flags)
        && is_end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::heads::head_of;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn these_are_valid() {
        for value in [
            VALID,
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-will-be",
        ] {
            assert!(is_valid(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = traceparent(&[0x4b; 16], &[0xf0; 8], true);
        assert_eq!(written.as_slice(), format!("00-{}-{}-01", "4b".repeat(16), "f0".repeat(8)).as_bytes());
        for is_sampled in [true, false] {
            let text = traceparent(&[0x4b; 16], &[0xf0; 8], is_sampled);
            let bytes = format!(
                "GET / HTTP/1.1\r\nHost: a\r\ntraceparent: {}\r\n\r\n",
                String::from_utf8_lossy(&text)
            );
            let read = TraceParent::of(head_of(&bytes).with(bytes.as_bytes()));
            assert_eq!(read, Some(TraceParent { trace: [0x4b; 16], span: [0xf0; 8], is_sampled }));
        }
    }

    #[test]
    fn these_are_not() {
        for value in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0X-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        ] {
            assert!(!is_valid(value.as_bytes()), "{value}");
        }
    }

    /// The fields of a request that are left.
    fn left(fields: &[String]) -> Vec<&'static str> {
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.join("\r\n"));
        let mut head = head_of(&bytes);
        head.drop_invalid_trace(bytes.as_bytes());
        let keys = [("parent", known_key::TRACEPARENT), ("state", known_key::TRACESTATE)];
        keys.into_iter().filter(|(_, key)| head.has(*key)).map(|(name, _)| name).collect()
    }

    #[test]
    fn what_is_invalid_is_taken_away_with_its_state() {
        let (parent, state) = (format!("traceparent: {VALID}"), "TraceState: a=1".to_owned());
        assert_eq!(left(&[parent.clone(), state.clone()]), ["parent", "state"]);
        assert_eq!(left(&[parent.clone(), state.clone(), state.clone()]), ["parent", "state"]);
        assert_eq!(left(std::slice::from_ref(&parent)), ["parent"]);
        assert!(left(std::slice::from_ref(&state)).is_empty());
        assert!(left(&[parent.clone(), parent.clone(), state.clone()]).is_empty());
        assert!(left(&["Traceparent: 00-1-2-3".into(), state]).is_empty());
        assert!(left(&["Accept: */*".into()]).is_empty());
    }
}
