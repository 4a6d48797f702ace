//! The lines of an access log, in the forms that there are. What comes from clients and applications is escaped in each, so
//! that it can neither end a line nor look like another field.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highball_config::{LineFormat, LinePart, LogField, Surroundings};
use highball_text::json;

use crate::moments::Moments;

/// What the head of a request says, for its line; the rest is known when the answer has gone.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// All texts, one after the other.
    texts: Vec<u8>,
    /// Where each of them ends; `None`: there is none.
    ends: [Option<u32>; 5],
    protocol: &'static str,
    pub(crate) begun_us: u64,
    /// Whether the response cache has answered it.
    pub(crate) is_hit: bool,
}

/// The texts of an entry: method, target, referer, agent and host.
const METHOD: usize = 0;
const TARGET: usize = 1;
const REFERER: usize = 2;
const AGENT: usize = 3;
const HOST: usize = 4;

impl Entry {
    /// Of a request with these texts: method, target, `Referer`, `User-Agent` and host.
    pub(crate) fn new(texts: [Option<&[u8]>; 5], protocol: &'static str, begun_us: u64) -> Entry {
        let mut all = Vec::with_capacity(texts.iter().flatten().map(|text| text.len()).sum());
        let ends = texts.map(|text| {
            all.extend_from_slice(text?);
            Some(all.len() as u32)
        });
        Entry { texts: all, ends, protocol, begun_us, is_hit: false }
    }

    /// For a request whose head could not be read.
    pub(crate) fn unreadable() -> Entry {
        Entry::new([None; 5], "", crate::clock::now_us())
    }

    /// Method, target, `Referer`, `User-Agent` and host.
    pub(crate) fn texts(&self) -> [Option<&[u8]>; 5] {
        std::array::from_fn(|number| self.text(number))
    }

    fn text(&self, number: usize) -> Option<&[u8]> {
        let end = self.ends[number]? as usize;
        let begin = self.ends[..number].iter().rev().flatten().next().map_or(0, |end| *end as usize);
        Some(&self.texts[begin..end])
    }
}

/// What is known of a request when its answer has gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<'a> {
    /// The client's address.
    pub(crate) address: &'a str,
    /// Its user, if it has shown a password.
    pub(crate) user: Option<&'a [u8]>,
    pub(crate) is_tls: bool,
    pub(crate) app: Option<&'a str>,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) moments: Moments,
    /// The request's id, if requests get one.
    pub(crate) id: Option<&'a str>,
    /// The id of its trace, if requests are traced.
    pub(crate) trace: Option<&'a str>,
    pub(crate) now_us: u64,
}

impl Outcome<'_> {
    pub(super) fn took_us(&self, entry: &Entry) -> u64 {
        self.now_us.saturating_sub(entry.begun_us)
    }
}

/// The line of a request, with its end.
pub(super) fn line(format: &LineFormat, entry: &Entry, outcome: &Outcome<'_>, now: SystemTime) -> String {
    let mut line = String::with_capacity(256);
    match format {
        LineFormat::Combined => combined(&mut line, entry, outcome, now),
        LineFormat::Json => json(&mut line, entry, outcome, now),
        LineFormat::Parts(parts) => {
            for part in parts {
                match part {
                    LinePart::Text(text) => line.push_str(text),
                    LinePart::Field(field, around) => {
                        plain(&mut line, &value(*field, entry, outcome, now), around)
                    }
                }
            }
        }
    }
    line.push('\n');
    line
}

fn combined(line: &mut String, entry: &Entry, outcome: &Outcome<'_>, now: SystemTime) {
    let Outcome { address, user, status, body_bytes, id, trace, .. } = outcome;
    let text = |line: &mut String, number| quote(line, entry.text(number).unwrap_or(b"-"));
    line.push_str(address);
    line.push_str(" - ");
    plain(line, &Value::Text(*user), &Surroundings::Characters(String::new()));
    let _ = write!(line, " [{}] \"", log_date(now)); // writing to a String cannot fail
    text(line, METHOD);
    if let Some(target) = entry.text(TARGET) {
        line.push(' ');
        quote(line, target);
        line.push(' ');
        line.push_str(entry.protocol);
    }
    let _ = write!(line, "\" {status} {body_bytes} \"");
    text(line, REFERER);
    line.push_str("\" \"");
    text(line, AGENT);
    let _ = write!(line, "\" {}", Seconds(outcome.took_us(entry)));
    if entry.is_hit {
        line.push_str(" cache=hit");
    }
    if let Some(trace) = trace {
        line.push_str(" trace=");
        line.push_str(trace);
    }
    if let Some(id) = id {
        line.push(' ');
        line.push_str(id);
    }
}

fn json(line: &mut String, entry: &Entry, outcome: &Outcome<'_>, now: SystemTime) {
    for (index, (field, name, _)) in LogField::ALL.iter().enumerate() {
        let _ = write!(line, "{}\"{name}\":", if index == 0 { '{' } else { ',' });
        match value(*field, entry, outcome, now) {
            Value::Text(Some(text)) => json_text(line, text),
            Value::Known(text) => json_text(line, text.as_bytes()),
            Value::Number(number) => {
                let _ = write!(line, "{number}");
            }
            Value::Us(us) => {
                let _ = write!(line, "{}", Seconds(us));
            }
            Value::Text(None) | Value::None => line.push_str("null"),
        }
    }
    line.push('}');
}

/// What a field says.
enum Value<'a> {
    None,
    /// What a client or an application has chosen.
    Text(Option<&'a [u8]>),
    /// What cannot look like anything else.
    Known(String),
    Number(u64),
    Us(u64),
}

fn value<'a>(field: LogField, entry: &'a Entry, outcome: &Outcome<'a>, now: SystemTime) -> Value<'a> {
    let Outcome { moments, .. } = outcome;
    let known = |text: &str| Value::Known(text.to_owned());
    let span = |from_us: u64, to_us: u64| match to_us {
        0 => Value::None,
        _ => Value::Us(to_us.saturating_sub(from_us)),
    };
    match field {
        LogField::Time => Value::Known(iso_date(now)),
        LogField::Date => Value::Known(log_date(now)),
        LogField::Address => known(outcome.address),
        LogField::User => Value::Text(outcome.user),
        LogField::Method => Value::Text(entry.text(METHOD)),
        LogField::Target => Value::Text(entry.text(TARGET)),
        LogField::Protocol if entry.protocol.is_empty() => Value::None,
        LogField::Protocol => known(entry.protocol),
        LogField::Scheme => known(if outcome.is_tls { "https" } else { "http" }),
        LogField::Host => Value::Text(entry.text(HOST)),
        LogField::Status => Value::Number(u64::from(outcome.status)),
        LogField::Bytes => Value::Number(outcome.body_bytes),
        LogField::Referer => Value::Text(entry.text(REFERER)),
        LogField::Agent => Value::Text(entry.text(AGENT)),
        LogField::Seconds => Value::Us(outcome.took_us(entry)),
        LogField::QueueTime => span(moments.queued_us, moments.placed_us),
        LogField::ServiceTime => span(moments.placed_us, moments.ended_us),
        LogField::ProxyTime if moments.proxies_us == 0 => Value::None,
        LogField::ProxyTime => Value::Us(moments.proxies_us),
        LogField::Worker if moments.worker == 0 => Value::None,
        LogField::Worker => Value::Number(u64::from(moments.worker)),
        LogField::App => Value::Text(outcome.app.map(str::as_bytes)),
        LogField::Cache if entry.is_hit => known("hit"),
        LogField::Cache => Value::None,
        LogField::RequestId => outcome.id.map_or(Value::None, known),
        LogField::TraceId => outcome.trace.map_or(Value::None, known),
    }
}

/// In a line of text: `-` is for what is unknown.
fn plain(line: &mut String, value: &Value<'_>, around: &Surroundings) {
    match (value, around) {
        (Value::None | Value::Text(None | Some(b"")), _) => line.push('-'),
        (Value::Text(Some(text)), Surroundings::Quotes) => quote(line, text),
        (Value::Text(Some(text)), Surroundings::Characters(marks)) => {
            for &byte in *text {
                if byte.is_ascii_graphic() && !b"\"\\".contains(&byte) && !marks.as_bytes().contains(&byte) {
                    line.push(byte as char);
                } else {
                    let _ = write!(line, "\\x{byte:02x}");
                }
            }
        }
        (Value::Known(text), _) => line.push_str(text),
        (Value::Number(number), _) => {
            let _ = write!(line, "{number}");
        }
        (Value::Us(us), _) => {
            let _ = write!(line, "{}", Seconds(*us));
        }
    }
}

/// Microseconds as seconds: `0.012345`.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Text of a client's, for a quoted field: nothing that could end the field or the line.
fn quote(line: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend(['\\', byte as char]),
            0x20..=0x7e => line.push(byte as char),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

/// A string of JSON.
fn json_text(line: &mut String, bytes: &[u8]) {
    line.push('"');
    String::from_utf8_lossy(bytes).chars().for_each(|character| json::push_escaped(line, character));
    line.push('"');
}

/// A date in the form of the Common Log Format: `06/Nov/1994:08:49:37 +0000`.
fn log_date(time: SystemTime) -> String {
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    let date = httpdate::fmt_http_date(time);
    let (day, month, year, clock) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
    format!("{day}/{month}/{year}:{clock} +0000")
}

/// A date in the form of ISO 8601: `1994-11-06T08:49:37.123Z`.
fn iso_date(time: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let date = httpdate::fmt_http_date(time);
    let (day, month, year, clock) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
    let month = MONTHS.find(month).unwrap_or_default() / 3 + 1;
    let ms = time.duration_since(UNIX_EPOCH).as_ref().map_or(0, Duration::subsec_millis);
    format!("{year}-{month:02}-{day}T{clock}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORGERY: &[u8] = b"/a b\"c\\d\ne|f\xff\xe2\x80\xa8";

    fn time() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(784_111_777_123)
    }

    fn written(format: &LineFormat, target: &[u8]) -> String {
        let mut entry = Entry::new(
            [Some(b"GET"), Some(target), None, Some(target), Some(b"a.example:80")],
            "HTTP/1.1",
            1_000_000,
        );
        entry.is_hit = true;
        let moments = Moments {
            queued_us: 1_000_000,
            placed_us: 1_000_100,
            ended_us: 3_000_100,
            worker: 7,
            ..Moments::default()
        };
        let outcome = Outcome {
            address: "192.0.2.7",
            user: Some(target),
            is_tls: true,
            app: Some("blog"),
            status: 200,
            body_bytes: 5,
            moments,
            id: Some("an-id"),
            trace: Some("4bf92f3577b34da6a3ce929d0e0e4736"),
            now_us: 3_500_000,
        };
        line(format, &entry, &outcome, time())
    }

    fn field(field: LogField, around: Surroundings) -> LinePart {
        LinePart::Field(field, around)
    }

    #[test]
    fn combined_is_what_tools_read() {
        let expected = "192.0.2.7 - /a [06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"/a\" 2.500000 cache=hit \
                        trace=4bf92f3577b34da6a3ce929d0e0e4736 an-id\n";
        assert_eq!(written(&LineFormat::Combined, b"/a"), expected);
        let unread = Outcome {
            address: "192.0.2.7",
            user: None,
            is_tls: false,
            app: None,
            status: 400,
            body_bytes: 0,
            moments: Moments::default(),
            id: None,
            trace: None,
            now_us: 0,
        };
        let text = line(&LineFormat::Combined, &Entry::unreadable(), &unread, time());
        let expected = "192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"-\" 400 0 \"-\" \"-\" 0.000000\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_has_every_field_once() {
        let text = written(&LineFormat::Json, FORGERY);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.contains(r#""target":"/a b\"c\\d\u000ae|f"#) && text.contains(r#"\u2028""#), "{text}");
        assert!(text.contains(r#""time":"1994-11-06T08:49:37.123Z","#), "{text}");
        assert!(text.contains(
            r#""seconds":2.500000,"queue_time":0.000100,"service_time":2.000000,"proxy_time":null"#
        ));
        assert!(text.contains(r#""worker":7,"app":"blog","cache":"hit","request_id":"an-id","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}"#), "{text}");
    }

    #[test]
    fn no_text_of_a_client_looks_like_two_fields() {
        let bare = LineFormat::Parts(vec![
            field(LogField::Status, Surroundings::Characters("|".into())),
            LinePart::Text("|".into()),
            field(LogField::Target, Surroundings::Characters("|".into())),
        ]);
        let expected = "200|/a\\x20b\\x22c\\x5cd\\x0ae\\x7cf\\xff\\xe2\\x80\\xa8\n";
        assert_eq!(written(&bare, FORGERY), expected);
        let quoted = LineFormat::Parts(vec![field(LogField::Agent, Surroundings::Quotes)]);
        assert_eq!(written(&quoted, FORGERY), "/a b\\\"c\\\\d\\x0ae|f\\xff\\xe2\\x80\\xa8\n");
        assert_eq!(written(&bare, b""), "200|-\n");
        let combined = written(&LineFormat::Combined, FORGERY);
        assert!(combined.contains(" - /a\\x20b\\x22c") && combined.matches('\n').count() == 1, "{combined}");
    }
}
