//! A request that got an error instead of an answer, and what the front knows of it: for those who explain it to
//! developers, and for the log.

use std::sync::Arc;
use std::time::Duration;

use highball_link::{Diagnosis, FailureCause, QueueLoad, RawRequest, RequestFailure};
use highball_ring::env_keys::{KEYS, OTHER};
use highball_ring::request::{Fields, Fixed, FIXED_BYTES};
use highball_secrets::path_without_tokens;

use crate::clock::Tally;
use crate::developer_key::DeveloperKey;
use crate::exchange::{Body, Inner};
use crate::message::refusal::Refusal;

/// The shortest time between two log lines about a full queue, in ms.
const SHED_LOG_MS: u64 = 1000;

/// A request that got an error, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Why, and what the client gets.
    pub(crate) refusal: Refusal,
    /// What the worker says of the exception, in JSON (`PROTOCOL.md` of `highball-ring`, Failures). It is not believed.
    pub(crate) exception: Vec<u8>,
    /// Whether a second worker had been asked.
    pub(crate) repeated: bool,
    /// The id of the request, if requests get one.
    pub(crate) request_id: Option<String>,
    /// The id of its trace, if requests are traced.
    pub(crate) trace_id: Option<String>,
    /// What keeps requests waiting.
    pub(crate) load: QueueLoad,
    /// What was asked for, with all its secrets.
    pub(crate) request: RawRequest,
}

/// The whole diagnosis.
#[derive(Debug, Default)]
pub struct DevelopmentPages {
    /// For browsers.
    pub html: Vec<u8>,
    /// For programs that ask for JSON.
    pub json: Vec<u8>,
    /// For other programs.
    pub text: Vec<u8>,
    /// The Content-Security-Policy of the former.
    pub policy: String,
    /// Differs from diagnosis to diagnosis.
    pub id: String,
}

/// How developers are known, and what they get.
#[derive(Debug, Clone)]
pub struct Developers {
    /// Proves that a browser is a developer's.
    pub key: Arc<DeveloperKey>,
    /// Makes the pages about a failure.
    pub pages: fn(&Diagnosis) -> DevelopmentPages,
}

impl Failure {
    /// Describes the failure of the current request and answer.
    pub(crate) fn of(refusal: Refusal, inner: &mut Inner, load: QueueLoad) -> Failure {
        let body = match std::mem::take(&mut inner.request.body) {
            Body::Memory(buffered) => buffered.into_bytes(),
            Body::None | Body::Spooled(_) => Vec::new(),
        };
        Failure {
            refusal,
            exception: std::mem::take(&mut inner.response.exception),
            repeated: inner.request.repeated,
            request_id: None,
            trace_id: None,
            load,
            request: received_request(&inner.request.head, body),
        }
    }

    /// The same, for the supervisor to explain.
    pub(crate) fn for_supervisor(self) -> RequestFailure {
        let Failure { refusal, exception, repeated, load, request, request_id: _, trace_id: _ } = self; // the ids are among the fields
        let cause = match refusal {
            Refusal::AppRaised => FailureCause::Raised(exception),
            Refusal::WorkerDied { worker } => FailureCause::WorkerDied { worker },
            Refusal::BadResponse { why } => FailureCause::BadAnswer { why },
            Refusal::QueueFull { .. } => FailureCause::QueueFull(load),
            Refusal::WorkerTimeout { worker } => FailureCause::TimedOut { worker },
            other => FailureCause::Other(other.why()),
        };
        RequestFailure { status: refusal.status(), cause, repeated, request }
    }

    /// Logs what the client gets, and why. (The worker has logged an exception already.)
    pub(crate) fn log(&self, request_timeout: Option<Duration>, shed_log: &ShedLog) {
        let refusal = self.refusal;
        match refusal {
            Refusal::AppRaised => return,
            Refusal::QueueFull { .. } => return shed_log.note(&self.load),
            _ => {}
        }
        let limit = request_timeout.filter(|_| matches!(refusal, Refusal::WorkerTimeout { .. }));
        // The query may hold secrets, and so may the path.
        let path = path_without_tokens(self.request.target.split('?').next().unwrap_or_default());
        tracing::error!(
            name: "request_failed",
            request = format!("{} {path}", self.request.method),
            id = self.request_id,
            trace = self.trace_id,
            worker = refusal.worker(),
            repeated = self.repeated.then_some(true),
            why = refusal.details(),
            after = limit.map(|limit| format!("{limit:?}")),
            "{}; the client gets {}",
            refusal.why(),
            refusal.status()
        );
    }
}

/// The request of a head block that was written for a worker, with all its secrets.
fn received_request(block: &[u8], body: Vec<u8>) -> RawRequest {
    let mut request = RawRequest { body, ..RawRequest::default() };
    for (name, value) in fields(block) {
        let value = String::from_utf8_lossy(value).into_owned();
        match name {
            "REQUEST_METHOD" => request.method = value,
            "REQUEST_URI" => request.target = value,
            _ => request.fields.extend(field_name(name).map(|name| (name, value))),
        }
    }
    request
}

/// `HTTP_ACCEPT_LANGUAGE` as it stands in requests; `None` for what is not from the header.
fn field_name(key: &str) -> Option<String> {
    let name = match key {
        "CONTENT_TYPE" | "CONTENT_LENGTH" => key,
        _ => key.strip_prefix("HTTP_")?,
    };
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
    });
    Some(words.collect::<Vec<String>>().join("-"))
}

/// The path of a request, as the client has sent it.
pub(crate) fn path(block: &[u8]) -> Vec<u8> {
    let of = |name: &str| fields(block).find(|(key, _)| *key == name).map(|(_, value)| value);
    [of("SCRIPT_NAME"), of("PATH_INFO")].into_iter().flatten().flatten().copied().collect()
}

/// Env key and value of each field in a head block.
pub(crate) fn fields(block: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    Fields::new(block.get(FIXED_BYTES..).unwrap_or_default()).map(|field| {
        let name = match field.key {
            OTHER => std::str::from_utf8(field.name).unwrap_or_default(),
            key => KEYS.get(usize::from(key)).copied().unwrap_or_default(),
        };
        (name, field.value)
    })
}

/// `GET /path`, from a head block, without what may be secret: the query, and tokens in the path.
pub(crate) fn method_and_path(block: &[u8]) -> String {
    let mut words = ["", "", ""].map(String::from);
    for (name, value) in fields(block) {
        let place = match name {
            "REQUEST_METHOD" => 0,
            "SCRIPT_NAME" => 1,
            "PATH_INFO" => 2,
            _ => continue,
        };
        words[place] = String::from_utf8_lossy(value).into_owned();
    }
    let [method, prefix, path] = words;
    format!("{method} {}", path_without_tokens(&format!("{prefix}{path}")))
}

/// When the request of a head block was received: CLOCK_MONOTONIC, in µs.
pub(crate) fn received_us(block: &[u8]) -> u64 {
    block.first_chunk::<FIXED_BYTES>().map_or(0, |fixed| Fixed::decode(fixed).received_us)
}

/// What the log says of a queue that is full: one line for many requests, as there are most when there is least time.
#[derive(Debug, Default)]
pub(crate) struct ShedLog(Tally);

impl ShedLog {
    /// One more was refused.
    pub(crate) fn note(&self, load: &QueueLoad) {
        let Some(refused) = self.0.note(SHED_LOG_MS) else { return };
        tracing::error!(
            name: "queue_full",
            refused,
            waiting = load.waiting,
            oldest_ms = load.oldest.as_millis() as u64,
            workers = load.workers.len(),
            "the request queue is full; clients get 503. More workers or threads (--workers, --threads) shorten it, \
             --max-queue lets more wait"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::request_head::RingContext;
    use crate::tests::heads::{head_of, CONTEXT};

    fn block(text: &str) -> Vec<u8> {
        let head = head_of(text);
        let context = RingContext { script_name: "/shop", prefix_bytes: 5, received_us: 7, ..CONTEXT };
        let mut block = Vec::new();
        head.encode_for_ring(text.as_bytes(), &context, &mut block);
        block
    }

    #[test]
    fn a_request_is_shown_as_it_was_sent() {
        let block = block(
            "POST /shop/a?b=c HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\nContent-Length: 2\r\n\r\n",
        );
        let request = received_request(&block, b"hi".to_vec());
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/shop/a?b=c"));
        for (name, value) in [("Host", "localhost"), ("X-Api-Key", "k"), ("Content-Length", "2")] {
            assert!(request.fields.contains(&(name.into(), value.into())), "{:?}", request.fields);
        }
        assert!(request.fields.iter().all(|(name, _)| !name.contains("Remote")));
        assert_eq!(method_and_path(&block), "POST /shop/a");
        let secret = self::block("GET /shop/reset/x7GkZqpLmN2vRs9tBa HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(method_and_path(&secret), "GET /shop/reset/[masked]");
        assert_eq!(received_us(&block), 7);
    }

    #[test]
    fn what_is_no_block_says_nothing() {
        assert_eq!(method_and_path(b"short"), " ");
        assert_eq!(received_us(b""), 0);
    }
}
