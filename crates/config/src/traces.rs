//! Where traces go, and which: the option `otlp_endpoint`, and the variables that OpenTelemetry defines for all programs
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>). They may be meant for applications
//! alone, so a variable that cannot be followed is no error: it is ignored with a note.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The path below an endpoint for all signals.
const TRACES_PATH: &str = "/v1/traces";
/// The name of the service, unless a variable has another.
const SERVICE: &str = "highball";
/// The time for an answer of the collector, and its limits.
const TIMEOUT_MS: u64 = 10_000;
const LEAST_TIMEOUT_MS: u64 = 100;
const MOST_TIMEOUT_MS: u64 = 60_000;
/// Most headers for the collector, and most attributes of the resource, that variables may give.
const MOST_PAIRS: usize = 64;

/// Where traces go, and which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSettings {
    /// The collector's URL for traces.
    pub endpoint: String,
    /// Whether variables alone have asked for traces.
    pub is_by_variable: bool,
    /// Header fields that the collector gets. They may be secret.
    pub headers: Vec<(String, String)>,
    /// Certificates that vouch for the collector.
    #[serde(with = "highball_text::exact")]
    pub authorities: Option<PathBuf>,
    /// Whether requests to the collector are compressed.
    pub gzip: bool,
    /// Time for the collector's answer.
    pub timeout: Duration,
    /// What describes this server: attributes of OpenTelemetry's resource.
    pub resource: Vec<(String, String)>,
    /// Which requests are traced.
    pub sampler: Sampler,
}

/// Which requests are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampler {
    /// Whether the caller's decision counts, if there is one.
    pub follows_parent: bool,
    /// Otherwise: traces whose ids end with a number of 63 bits below this.
    pub below: u64,
}

impl Sampler {
    const ALL: u64 = 1 << 63;

    /// Whether to trace a request of the trace with this id; `parent` is the caller's decision.
    #[must_use]
    pub fn takes(self, trace: &[u8; 16], parent: Option<bool>) -> bool {
        let of_id = || {
            let [.., a, b, c, d, e, f, g, h] = *trace;
            u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < self.below
        };
        parent.filter(|_| self.follows_parent).unwrap_or_else(of_id)
    }

    /// The sampler of these variables.
    ///
    /// # Errors
    /// What is ignored; every trace is taken then that the caller does not decide about.
    fn of(name: Option<&str>, argument: Option<&str>) -> Result<Sampler, String> {
        let name = name.unwrap_or("parentbased_always_on");
        let (follows_parent, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name),
        };
        let below = match root {
            "always_on" => Sampler::ALL,
            "always_off" => 0,
            "traceidratio" => return Ok(Sampler { follows_parent, below: ratio(argument)? }),
            _ => return Err(format!("OTEL_TRACES_SAMPLER is `{name}`, which Highball does not have")),
        };
        Ok(Sampler { follows_parent, below })
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler { follows_parent: true, below: Sampler::ALL }
    }
}

fn ratio(argument: Option<&str>) -> Result<u64, String> {
    let Some(text) = argument else { return Ok(Sampler::ALL) };
    let ratio: Option<f64> = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    let ratio =
        ratio.ok_or_else(|| format!("OTEL_TRACES_SAMPLER_ARG is `{text}`, not a number from 0 to 1"))?;
    Ok((ratio * Sampler::ALL as f64) as u64)
}

/// A collector's URL.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn collector(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` is not the URL of a collector; write one such as http://localhost:4318");
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).ok_or_else(wrong)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}?#@".contains(c);
    if !text.chars().all(is_plain) || path.contains(['[', ']']) {
        return Err(wrong());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = !host.is_empty() && (host.starts_with('[') || !host.contains(':'));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_host && is_port {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

/// The settings, if traces are asked for: by the option (`Some(None)`: not at all), or else by variables. What is ignored is
/// added to `notes`.
pub(crate) fn traces(
    given: Option<Option<String>>,
    env: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Option<TraceSettings> {
    let env = Variables { env };
    if env.get("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return None;
    }
    let is_by_variable = given.is_none();
    let endpoint = match given {
        Some(given) => below(&given?),
        None => env.endpoint(notes)?,
    };
    let (name, argument) = (env.get("OTEL_TRACES_SAMPLER"), env.get("OTEL_TRACES_SAMPLER_ARG"));
    let sampler = Sampler::of(name.as_deref(), argument.as_deref()).unwrap_or_else(|note| {
        notes.push(note);
        Sampler::default()
    });
    let timeout_ms = env.of_exporter("TIMEOUT").and_then(|text| text.parse::<u64>().ok());
    Some(TraceSettings {
        endpoint,
        is_by_variable,
        headers: env
            .of_exporter("HEADERS")
            .map(|text| pairs(&text, "OTEL_EXPORTER_OTLP_HEADERS", notes))
            .unwrap_or_default(),
        authorities: env.of_exporter("CERTIFICATE").map(PathBuf::from),
        gzip: env.of_exporter("COMPRESSION").is_some_and(|text| text == "gzip"),
        timeout: Duration::from_millis(
            timeout_ms.unwrap_or(TIMEOUT_MS).clamp(LEAST_TIMEOUT_MS, MOST_TIMEOUT_MS),
        ),
        resource: env.resource(notes),
        sampler,
    })
}

fn below(endpoint: &str) -> String {
    format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/'))
}

/// Variables, of which an empty one counts as not set.
struct Variables<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A variable about all exporters, or the one about traces.
    fn of_exporter(&self, name: &str) -> Option<String> {
        let of_traces = self.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        of_traces.or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// The endpoint that variables ask for.
    fn endpoint(&self, notes: &mut Vec<String>) -> Option<String> {
        let of_traces = self.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let (name, text) = match &of_traces {
            Some(text) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text.clone()),
            None => ("OTEL_EXPORTER_OTLP_ENDPOINT", self.get("OTEL_EXPORTER_OTLP_ENDPOINT")?),
        };
        if let Some(exporters) = self.get("OTEL_TRACES_EXPORTER") {
            if !exporters.split(',').any(|one| one.trim() == "otlp") {
                return None;
            }
        }
        if let Some(protocol) = self.of_exporter("PROTOCOL").filter(|text| text != "http/protobuf") {
            notes.push(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and Highball sends http/protobuf: there are no traces of it; name a \
                 collector for it with `otlp_endpoint`"
            ));
            return None;
        }
        match collector(&text) {
            Ok(_) if of_traces.is_some() => Some(text),
            Ok(_) => Some(below(&text)),
            Err(problem) => {
                notes.push(format!("{name}: {problem}"));
                None
            }
        }
    }

    fn resource(&self, notes: &mut Vec<String>) -> Vec<(String, String)> {
        let text = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut attributes = pairs(&text, "OTEL_RESOURCE_ATTRIBUTES", notes);
        let listed = attributes.iter().position(|(key, _)| key == "service.name");
        let listed = listed.map(|at| attributes.remove(at).1);
        let service = self.get("OTEL_SERVICE_NAME").or(listed).unwrap_or_else(|| SERVICE.into());
        attributes.insert(0, ("service.name".into(), service));
        attributes
    }
}

/// Pairs such as `key1=value1,key2=value2`, whose values are percent-encoded (W3C Baggage).
fn pairs(text: &str, name: &str, notes: &mut Vec<String>) -> Vec<(String, String)> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let is_value = |value: &str| !value.chars().any(char::is_control);
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in parts {
        let pair = part.split_once('=').and_then(|(key, value)| Some((key.trim(), decoded(value.trim())?)));
        match pair {
            Some((key, value)) if is_key(key) && is_value(&value) && pairs.len() < MOST_PAIRS => {
                pairs.push((key.to_owned(), value));
            }
            // It may be a secret, so it is not repeated.
            _ => notes.push(format!(
                "{name}: one part is ignored; parts are `name=value`, with commas between them"
            )),
        }
    }
    pairs
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: Option<Option<&str>>, variables: &[(&str, &str)]) -> (Option<TraceSettings>, Vec<String>) {
        let env = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut notes = Vec::new();
        let traces = traces(given.map(|given| given.map(str::to_owned)), &env, &mut notes);
        (traces, notes)
    }

    fn endpoint(given: Option<Option<&str>>, variables: &[(&str, &str)]) -> Option<String> {
        read(given, variables).0.map(|traces| traces.endpoint)
    }

    const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
    const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://b/x");

    #[test]
    fn without_option_and_variables_there_are_none() {
        assert_eq!(
            read(None, &[("OTEL_SERVICE_NAME", "a"), ("OTEL_TRACES_SAMPLER", "always_on")]),
            (None, vec![])
        );
        assert_eq!(endpoint(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
    }

    #[test]
    fn the_option_counts_before_the_variables() {
        assert_eq!(endpoint(None, &[ALL]).as_deref(), Some("http://a:4318/v1/traces"));
        assert_eq!(endpoint(None, &[ALL, TRACES]).as_deref(), Some("https://b/x"));
        assert_eq!(endpoint(Some(Some("http://c")), &[ALL, TRACES]).as_deref(), Some("http://c/v1/traces"));
        assert_eq!(endpoint(Some(None), &[ALL, TRACES]), None);
    }

    #[test]
    fn variables_turn_traces_off() {
        for off in [
            ("OTEL_SDK_DISABLED", "TRUE"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ] {
            assert_eq!(endpoint(None, &[ALL, off]), None, "{off:?}");
        }
        assert_eq!(endpoint(Some(Some("http://c")), &[("OTEL_SDK_DISABLED", "true")]), None);
        assert!(endpoint(None, &[ALL, ("OTEL_TRACES_EXPORTER", "console,otlp")]).is_some());
        assert_eq!(read(None, &[ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).1.len(), 1, "a note");
    }

    #[test]
    fn urls_of_collectors() {
        for text in
            ["http://127.0.0.1:4318", "https://api.example.com/otlp", "http://[::1]:4318/", "http://[::1]"]
        {
            assert_eq!(collector(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "127.0.0.1:4318",
            "grpc://a",
            "http://",
            "http:///x",
            "http://:1",
            "http://a:0",
            "http://a:99999",
            "http://u:p@a/",
            "http://a b",
            "http://a/?x",
            "http://a\r\nx",
            "http://a#b",
            "http://1:2:3",
            "http://é",
            "http://a/[",
        ] {
            assert!(collector(text).is_err(), "{text}");
        }
        assert_eq!(
            read(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")]).1.len(),
            1,
            "a note, and no error"
        );
    }

    #[test]
    fn headers_and_attributes_are_percent_decoded() {
        let (traces, notes) = read(
            None,
            &[
                ALL,
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x = y"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=staging"),
            ],
        );
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let traces = traces.expect("traces");
        assert_eq!((traces.headers, notes), (vec![pair("api-key", "a b="), pair("x", "y")], vec![]));
        assert_eq!(
            traces.resource,
            [pair("service.name", "shop"), pair("deployment.environment.name", "staging")]
        );
        let named = read(
            None,
            &[ALL, ("OTEL_SERVICE_NAME", "blog"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop")],
        );
        assert_eq!(named.0.expect("traces").resource, [pair("service.name", "blog")]);
    }

    #[test]
    fn malformed_parts_are_ignored_and_not_repeated() {
        for text in ["secret", "=secret", "a=%0d%0asecret: 1", "a=%zz", "a=%", "a b=c"] {
            let (traces, notes) = read(None, &[ALL, ("OTEL_EXPORTER_OTLP_HEADERS", text)]);
            assert_eq!(traces.expect("traces").headers, [], "{text}");
            assert!(notes.len() == 1 && !notes[0].contains("secret"), "{notes:?}");
        }
    }

    #[test]
    fn samplers_take_what_they_say() {
        let sampler = |name, argument| Sampler::of(Some(name), argument).expect("a sampler");
        let (low, high) = ([0; 16], [0xff; 16]);
        let taken = |sampler: Sampler, parent| [sampler.takes(&low, parent), sampler.takes(&high, parent)];
        assert_eq!(taken(sampler("always_on", None), Some(false)), [true, true]);
        assert_eq!(taken(sampler("always_off", None), Some(true)), [false, false]);
        assert_eq!(taken(sampler("traceidratio", Some("0.5")), Some(false)), [true, false]);
        assert_eq!(taken(sampler("traceidratio", Some("1")), None), [true, true]);
        assert_eq!(taken(sampler("traceidratio", Some("0")), None), [false, false]);
        assert_eq!(taken(sampler("traceidratio", None), None), [true, true]);
        for name in ["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"] {
            assert_eq!(taken(sampler(name, Some("0.5")), Some(true)), [true, true], "{name}");
            assert_eq!(taken(sampler(name, Some("0.5")), Some(false)), [false, false], "{name}");
        }
        assert_eq!(taken(sampler("parentbased_traceidratio", Some("0.5")), None), [true, false]);
        assert_eq!(taken(Sampler::default(), None), [true, true]);
    }

    #[test]
    fn an_unknown_sampler_is_noted_and_the_default_counts() {
        for (name, argument) in [("jaeger_remote", ""), ("traceidratio", "2"), ("traceidratio", "half")] {
            let (traces, notes) =
                read(None, &[ALL, ("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)]);
            assert_eq!((traces.expect("traces").sampler, notes.len()), (Sampler::default(), 1), "{name}");
        }
    }
}
