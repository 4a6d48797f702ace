//! One request to the collector: with a limit of time, and a limit of bytes for its answer.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::write::GzEncoder;
use flate2::Compression;
use highball_config::TraceSettings;
use highball_outbound::{client_config, Authorities};
use http::header::{HeaderName, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use crate::partial_success::refused_spans;

/// The largest answer that is read, and its largest head.
const ANSWER_BYTES: usize = 64 << 10;
/// How long the rest of an answer may take whose status is known.
const REST_TIME: Duration = Duration::from_secs(1);
/// The longest that a collector may ask us to wait.
const MOST_WAIT: Duration = Duration::from_secs(300);

/// Where spans go.
#[derive(Debug)]
pub(crate) struct Collector {
    connections: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    is_gzip: bool,
    patience: Duration,
}

/// Why the collector has not taken spans.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It may take them later; after this time, if it has named one.
    ForNow(String, Option<Duration>),
    /// It never will.
    ForGood(String),
}

impl Collector {
    /// # Errors
    /// What is wrong with these settings.
    pub(crate) fn new(settings: &TraceSettings) -> Result<Self, String> {
        let uri: Uri =
            settings.endpoint.parse().map_err(|error| format!("{}: {error}", settings.endpoint))?;
        let is_https = uri.scheme_str() == Some("https");
        let authorities = match &settings.authorities {
            _ if !is_https => Authorities::None,
            Some(file) => Authorities::File(file),
            None => Authorities::OfMachine,
        };
        let config = client_config(authorities).map_err(|why| match &settings.authorities {
            Some(file) => format!("{}: {why}", file.display()),
            None => format!("this machine's certificate authorities: {why}"),
        })?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(config);
        let connector = connector.https_or_http().enable_http1().build();
        let connections =
            Client::builder(TokioExecutor::new()).http1_max_buf_size(ANSWER_BYTES).build(connector);
        let (is_gzip, patience) = (settings.gzip, settings.timeout);
        Ok(Collector { connections, uri, headers: headers(settings)?, is_gzip, patience })
    }

    /// What is sent of this message.
    pub(crate) fn body(&self, message: Vec<u8>) -> Bytes {
        if !self.is_gzip {
            return message.into();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        match encoder.write_all(&message).and_then(|()| encoder.finish()) {
            Ok(compressed) => compressed.into(),
            Err(error) => unreachable!("a Vec takes everything: {error}"),
        }
    }

    /// Sends spans. Returns how many of them the collector has refused.
    ///
    /// # Errors
    /// It takes none of them.
    pub(crate) async fn send(&self, body: Bytes) -> Result<u64, Refused> {
        let mut request = Request::post(self.uri.clone());
        request.headers_mut().into_iter().for_each(|headers| headers.clone_from(&self.headers));
        let request = request.body(Full::new(body)).map_err(|error| Refused::ForGood(error.to_string()))?;
        let answer = match timeout(self.patience, self.connections.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Refused::ForNow(reasons(&error), None)),
            Err(_) => {
                let why = format!("no answer within {} s", self.patience.as_secs_f32());
                return Err(Refused::ForNow(why, None));
            }
        };
        let status = answer.status();
        if !status.is_success() {
            return Err(Refused::of(status, &answer));
        }
        // The answer is read so that its connection can be used again. Its status counts, whatever follows.
        let rest = timeout(REST_TIME, Limited::new(answer.into_body(), ANSWER_BYTES).collect()).await;
        Ok(rest.map_or(0, |rest| rest.map_or(0, |rest| refused_spans(&rest.to_bytes()))))
    }
}

impl Refused {
    /// By the statuses that the specification of OTLP lists: redirects are none of them, as credentials would go elsewhere.
    fn of<B>(status: StatusCode, answer: &Response<B>) -> Self {
        let why = format!("it answers {status}");
        match status.as_u16() {
            429 | 502 | 503 | 504 => {
                let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                Refused::ForNow(why, after.and_then(|text| wait(text.trim(), SystemTime::now())))
            }
            _ => Refused::ForGood(why),
        }
    }
}

/// A wait in seconds, or until a date.
fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    let wait = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(MOST_WAIT))
}

fn headers(settings: &TraceSettings) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("highball/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in &settings.headers {
        let wrong = |what: &str| format!("the header {name} for the collector: its {what} is malformed");
        let key: HeaderName = name.parse().map_err(|_| wrong("name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    if settings.gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(headers)
}

/// An error, with the errors behind it.
fn reasons(error: &dyn Error) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_names_a_wait_in_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_790);
        assert_eq!(wait("7", now), Some(Duration::from_secs(7)));
        assert_eq!(wait("Fri, 31 Dec 1999 23:59:59 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(wait("4000000000", now), Some(MOST_WAIT));
        assert_eq!(wait("Thu, 31 Dec 2099 23:59:59 GMT", now), Some(MOST_WAIT));
        for text in ["", "-1", "soon", "99999999999999999999"] {
            assert_eq!(wait(text, now), None, "{text}");
        }
    }

    #[test]
    fn statuses_say_whether_to_try_again() {
        let refused = |status: u16| {
            let answer = Response::builder().status(status).header("retry-after", "3").body(());
            let answer = answer.expect("an answer");
            Refused::of(answer.status(), &answer)
        };
        for status in [429, 502, 503, 504] {
            let seconds = Duration::from_secs(3);
            assert!(matches!(refused(status), Refused::ForNow(_, Some(wait)) if wait == seconds), "{status}");
        }
        for status in [301, 307, 400, 401, 404, 413, 500] {
            assert!(matches!(refused(status), Refused::ForGood(_)), "{status}");
        }
    }
}
