//! The form of an access log's lines: `combined`, `json`, or a text with the names of fields in braces. The fields are a table,
//! from which the manual and the errors are made.

use serde::{Deserialize, Serialize};

/// The longest text, and the most fields in it: each line is written with all of them.
const MOST_BYTES: usize = 1024;
const MOST_FIELDS: usize = 64;

/// Parts of a million, as which a share is kept.
pub const WHOLE: u32 = 1_000_000;

/// How lines are written, and of which requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRules {
    /// Their form.
    pub format: LineFormat,
    /// The share of requests without an error that get a line, in parts of [`WHOLE`].
    pub sample: u32,
}

impl Default for LogRules {
    fn default() -> Self {
        LogRules { format: LineFormat::Combined, sample: WHOLE }
    }
}

impl LogRules {
    /// Whether lines have times that are only known if the steps of requests are measured.
    #[must_use]
    pub fn measures_requests(&self) -> bool {
        let is_measured = |part: &LinePart| matches!(part, LinePart::Field(field, _) if field.is_measured());
        match &self.format {
            LineFormat::Combined => false,
            LineFormat::Json => true,
            LineFormat::Parts(parts) => parts.iter().any(is_measured),
        }
    }
}

/// The form of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineFormat {
    /// The Combined Log Format, with the time taken at the end.
    #[default]
    Combined,
    /// An object with every field.
    Json,
    /// These, one after the other.
    Parts(Vec<LinePart>),
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinePart {
    /// The same text in each.
    Text(String),
    /// What is known of the request; where it stands.
    Field(LogField, Surroundings),
}

/// Where a field stands: what a client sends must not look like more than one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Surroundings {
    /// Between quotes.
    Quotes,
    /// Between blanks, and these characters of the text, none of which stands in a value as it is.
    Characters(String),
}

/// What a line may say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum LogField {
    Time,
    Date,
    Address,
    User,
    Method,
    Target,
    Protocol,
    Scheme,
    Host,
    Status,
    Bytes,
    Referer,
    Agent,
    Seconds,
    QueueTime,
    ServiceTime,
    ProxyTime,
    Worker,
    App,
    Cache,
    RequestId,
    TraceId,
}

impl LogField {
    /// All of them, with their names and meanings.
    pub const ALL: [(LogField, &'static str, &'static str); 22] = [
        (LogField::Time, "time", "when the line was written: `2026-11-22T08:12:48.123Z`"),
        (LogField::Date, "date", "the same as in `combined`: `22/Nov/2026:08:12:48 +0000`"),
        (LogField::Address, "address", "the client's address"),
        (LogField::User, "user", "the user's name with `basic_auth`"),
        (LogField::Method, "method", "method"),
        (LogField::Target, "target", "path and query as the client has sent them"),
        (LogField::Protocol, "protocol", "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`"),
        (LogField::Scheme, "scheme", "`https` if the client uses TLS, else `http`"),
        (LogField::Host, "host", "host, with the port if one was named"),
        (LogField::Status, "status", "status; 499: the client left before its answer was there"),
        (LogField::Bytes, "bytes", "bytes of the response's body"),
        (LogField::Referer, "referer", "`Referer`"),
        (LogField::Agent, "agent", "`User-Agent`"),
        (
            LogField::Seconds,
            "seconds",
            "from the head of the request to the last byte of the response that was sent",
        ),
        (LogField::QueueTime, "queue_time", "seconds that it waited for a worker"),
        (LogField::ServiceTime, "service_time", "seconds that a worker had it"),
        (LogField::ProxyTime, "proxy_time", "seconds that a trusted proxy reports"),
        (LogField::Worker, "worker", "number of the worker that had it"),
        (LogField::App, "app", "name of the application"),
        (LogField::Cache, "cache", "`hit` if the response cache has answered it"),
        (LogField::RequestId, "request_id", "id, with `request_id`"),
        (LogField::TraceId, "trace_id", "id of the trace, with `otlp_endpoint`"),
    ];

    fn is_measured(self) -> bool {
        matches!(self, LogField::QueueTime | LogField::ServiceTime)
    }
}

/// The form that an option's value describes.
///
/// # Errors
/// What is wrong with it; the names that there are.
pub(crate) fn line_format(text: &str) -> Result<LineFormat, String> {
    match text {
        "combined" => return Ok(LineFormat::Combined),
        "json" => return Ok(LineFormat::Json),
        _ => {}
    }
    if text.len() > MOST_BYTES {
        return Err(format!("it is longer than {MOST_BYTES} bytes"));
    }
    if let Some(wrong) = text.chars().find(|c| c.is_control() && *c != '\t') {
        return Err(format!("it has the control character {wrong:?}"));
    }
    let pieces = pieces(text)?;
    let fields = pieces.iter().filter(|piece| matches!(piece, Piece::Name(_))).count();
    if fields == 0 {
        return Err(format!(
            "`{text}` is neither `combined` nor `json`, and names no field such as {{status}}"
        ));
    }
    if fields > MOST_FIELDS {
        return Err(format!("it has more than {MOST_FIELDS} fields"));
    }
    let is_mark = |c: &char| !c.is_ascii_alphanumeric() && !c.is_whitespace();
    let texts =
        pieces.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(text) } else { None });
    let mut marks: Vec<char> = texts.flat_map(|text| text.chars()).filter(is_mark).collect();
    marks.sort_unstable();
    marks.dedup();
    let marks: String = marks.into_iter().collect();
    let mut quotes = 0;
    let parts = pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => {
            quotes += text.matches('"').count();
            Ok(LinePart::Text(text))
        }
        Piece::Name(name) => {
            let is_quoted = quotes % 2 == 1;
            let around =
                if is_quoted { Surroundings::Quotes } else { Surroundings::Characters(marks.clone()) };
            Ok(LinePart::Field(field(&name)?, around))
        }
    });
    parts.collect::<Result<_, _>>().map(LineFormat::Parts)
}

enum Piece {
    Text(String),
    Name(String),
}

/// Text and names in braces. Two braces stand for one.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            plain.push_str(brace);
            rest = after;
            continue;
        }
        let end = after.find('}').filter(|_| brace == "{");
        let Some(end) = end else {
            return Err(format!(
                "a brace has no counterpart in `{text}`; write {{{{ or }}}} for one in the line"
            ));
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Name(after[..end].to_owned()));
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

fn field(name: &str) -> Result<LogField, String> {
    let found = LogField::ALL.iter().find(|(_, known, _)| *known == name).map(|(field, ..)| *field);
    found.ok_or_else(|| {
        let names: Vec<&str> = LogField::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("there is no field `{name}`; the fields are {}", names.join(", "))
    })
}

/// A share such as `10%`, in parts of [`WHOLE`].
///
/// # Errors
/// It is none.
pub(crate) fn share(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.strip_suffix('%').and_then(|number| number.parse().ok());
    let percent = number.filter(|percent| (0.0..=100.0).contains(percent));
    let percent =
        percent.ok_or_else(|| format!("`{text}` is not a share from 0% to 100%; write one such as 10%"))?;
    Ok((percent / 100.0 * f64::from(WHOLE)).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_fields_in_braces() {
        let LineFormat::Parts(parts) = line_format("{{{status}}} \"{target}\"|{address}").unwrap() else {
            panic!()
        };
        let around = || Surroundings::Characters("\"{|}".into());
        let text = |text: &str| LinePart::Text(text.into());
        assert_eq!(
            parts,
            [
                text("{"),
                LinePart::Field(LogField::Status, around()),
                text("} \""),
                LinePart::Field(LogField::Target, Surroundings::Quotes),
                text("\"|"),
                LinePart::Field(LogField::Address, around()),
            ]
        );
        assert_eq!(line_format("json"), Ok(LineFormat::Json));
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = line_format("{status} {stauts}").unwrap_err();
        assert!(
            unknown.contains("there is no field `stauts`") && unknown.contains("queue_time"),
            "{unknown}"
        );
        for (text, why) in [
            ("combinde", "neither"),
            ("{status", "no counterpart"),
            ("status}", "no counterpart"),
            ("{status}\n{target}", "control character"),
        ] {
            let problem = line_format(text).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        assert!(
            line_format(&"{status}".repeat(65)).is_err() && line_format(&" {status}".repeat(200)).is_err()
        );
    }

    #[test]
    fn each_field_has_a_name_of_its_own_and_only_times_are_measured() {
        for (field, name, _) in LogField::ALL {
            let format = line_format(&format!("{{{name}}}")).unwrap();
            let around = Surroundings::Characters(String::new());
            assert_eq!(format, LineFormat::Parts(vec![LinePart::Field(field, around)]));
            let rules = LogRules { format, sample: WHOLE };
            assert_eq!(rules.measures_requests(), ["queue_time", "service_time"].contains(&name), "{name}");
        }
    }

    #[test]
    fn shares_are_percentages() {
        assert_eq!(
            (share("10%"), share("0.01%"), share("100%"), share("0%")),
            (Ok(100_000), Ok(100), Ok(WHOLE), Ok(0))
        );
        for text in ["10", "%", "-1%", "101%", "NaN%", "inf%", "ten%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
