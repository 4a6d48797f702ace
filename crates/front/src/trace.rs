//! Traces of requests: a span for each request, and within it one for each place where its time went.
//!
//! Whether a trace is sampled is decided once, when its request has been received. Nothing is kept of the others but their ids, which
//! the application and the logs get as well.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use highball_config::Sampler;
use highball_link::METHODS;
use highball_secrets::Secrets;
use highball_trace::{Attributes, Span, SpanId, SpanKind, SpanQueue, Spans, TraceId};

use crate::access_log::CLIENT_LEFT;
use crate::clock::{now_us, turn_us};
use crate::developer_key::DeveloperKey;
use crate::message::request_head::{known_key, Head, Method, Version};
use crate::message::trace_context::{traceparent, TraceParent, TRACEPARENT_BYTES};
use crate::moments::Moments;
use crate::random::RandomBytes;
use crate::transport::stream::Peer;

/// Most bytes of `tracestate` that a span has.
const STATE_BYTES: usize = 512;

/// Longest text that [`MaskedTexts`] keep, in bytes, and most texts.
const KEPT_BYTES: usize = 512;
const KEPT_TEXTS: usize = 256;

/// The first status of a server's error.
const FIRST_SERVER_ERROR: u16 = 500;

/// Begins and ends traces.
#[derive(Debug)]
pub(crate) struct Tracer {
    sampler: Sampler,
    spans: Arc<SpanQueue>,
    /// The first half of the ids of traces that begin here. The second half is random for each: half of the random bytes are enough.
    first_half: [u8; 8],
    masked: MaskedTexts,
}

/// Host names and user agents as spans have them: most requests have the same few. To look for secrets in the name of a browser
/// takes longer than all else that is done for a span.
#[derive(Debug, Default)]
struct MaskedTexts(RefCell<HashMap<Box<[u8]>, Rc<str>>>);

/// The trace of a request.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The `traceparent` that the application gets.
    traceparent: [u8; TRACEPARENT_BYTES],
    /// What its spans will say; `None`: it is not sampled, as most are not: they need no room for it.
    draft: Option<Box<Draft>>,
}

/// What is known of a request that is traced.
#[derive(Debug, Default)]
struct Draft {
    id: TraceId,
    /// The caller's span.
    parent: Option<SpanId>,
    server: SpanId,
    /// The span of the worker's time, which is the parent of the application's spans.
    worker: SpanId,
    /// The caller's `tracestate`.
    state: Box<[u8]>,
    begun_us: u64,
    /// `None`: its head could not be read.
    method: Option<Method>,
    attributes: Attributes,
    is_queued: bool,
    is_cut_off: bool,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceEnd<'a> {
    pub(crate) status: u16,
    pub(crate) moments: Moments,
    pub(crate) peer: &'a Peer,
    pub(crate) app: Option<&'a str>,
}

impl Tracer {
    pub(crate) fn new(sampler: Sampler, spans: Arc<SpanQueue>, random: &mut RandomBytes) -> Self {
        Tracer { sampler, spans, first_half: random.take(), masked: MaskedTexts::default() }
    }

    /// Begins the trace of a request; or goes on with its caller's, if its head names one.
    pub(crate) fn begin(&self, head: Option<Head<'_>>, random: &mut RandomBytes) -> Box<Trace> {
        let parent = head.and_then(TraceParent::of);
        let (id, last_span) = match parent {
            Some(parent) => (parent.trace, parent.span),
            None => self.new_id(random),
        };
        if !self.sampler.takes(&id, parent.map(|parent| parent.is_sampled)) {
            return Box::new(Trace { traceparent: traceparent(&id, &last_span, false), draft: None });
        }
        let draft = Draft {
            id,
            parent: parent.map(|parent| parent.span),
            server: random.take(),
            worker: random.take(),
            state: head.map(state).unwrap_or_default(),
            begun_us: turn_us(),
            ..Draft::default()
        };
        let traceparent = traceparent(&id, &draft.worker, true);
        Box::new(Trace { traceparent, draft: Some(Box::new(draft)) })
    }

    /// The id of a trace that begins here, and that of a span which is not there, for a trace that is not sampled.
    fn new_id(&self, random: &mut RandomBytes) -> (TraceId, SpanId) {
        let second_half = random.take();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.first_half);
        id[8..].copy_from_slice(&second_half);
        (id, second_half)
    }

    /// Notes what the head says; that it is for this target, if the sent one is not to be known. Secrets and the developer's key are
    /// masked as on pages of errors: others than the application's owner read a collector's spans.
    pub(crate) fn describe(
        &self,
        trace: &mut Trace,
        head: Head<'_>,
        target: Option<&[u8]>,
        key: &DeveloperKey,
    ) {
        let Some(draft) = &mut trace.draft else { return };
        draft.method = Some(head.method);
        let secrets = Secrets::default();
        let text = |bytes: &[u8]| {
            let mut text = String::from_utf8_lossy(bytes).into_owned();
            key.mask(&mut text);
            text
        };
        let masked = |bytes: &[u8]| self.masked.get(bytes, |bytes| secrets.masked(&text(bytes)));
        let mut attributes = Attributes::default();
        let mut add = |name: &str, text: &str| attributes.text(name, text.as_bytes());
        add("http.request.method", method_label(head.method).unwrap_or("_OTHER"));
        if head.method == Method::Other {
            add("http.request.method_original", &secrets.name(&text(head.method_name())));
        }
        let own = || [head.path(), b"?", head.query()].concat();
        let target = secrets.target(&text(&target.map_or_else(own, <[u8]>::to_vec)));
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        add("url.path", path);
        if !query.is_empty() {
            add("url.query", query);
        }
        if let Some(agent) = head.field(known_key::USER_AGENT) {
            add("user_agent.original", &masked(agent));
        }
        if let Some(name) = head.host_name() {
            add("server.address", &masked(name));
        }
        let version = match head.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        };
        add("network.protocol.version", version);
        if let Some(port) = head.host().and_then(|host| host.port) {
            attributes.number("server.port", port.into());
        }
        draft.attributes = attributes;
    }

    /// Ends the trace of a request whose response has gone.
    pub(crate) fn end(&self, trace: &mut Trace, end: TraceEnd<'_>, random: &mut RandomBytes) {
        let Some(draft) = trace.draft.take() else { return };
        self.spans.add(&draft.spans(end, &Times::now(), || random.take()));
    }
}

impl MaskedTexts {
    fn get(&self, text: &[u8], mask: impl FnOnce(&[u8]) -> String) -> Rc<str> {
        if let Some(masked) = self.0.borrow().get(text) {
            return Rc::clone(masked);
        }
        let masked: Rc<str> = mask(text).into();
        if text.len() <= KEPT_BYTES {
            let mut texts = self.0.borrow_mut();
            if texts.len() >= KEPT_TEXTS {
                texts.clear();
            }
            texts.insert(text.into(), Rc::clone(&masked));
        }
        masked
    }
}

impl Trace {
    /// The id, as logs have it.
    pub(crate) fn id(&self) -> &str {
        std::str::from_utf8(&self.traceparent[3..35]).unwrap_or_default()
    }

    /// What the application gets as `traceparent`.
    pub(crate) fn traceparent(&self) -> &[u8] {
        &self.traceparent
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.draft.is_some()
    }

    /// The response cache answers the request.
    pub(crate) fn note_hit(&mut self) {
        if let Some(draft) = &mut self.draft {
            draft.attributes.text("highball.cache", b"hit");
        }
    }

    /// The request waits for a worker.
    pub(crate) fn note_queued(&mut self) {
        if let Some(draft) = &mut self.draft {
            draft.is_queued = true;
        }
    }

    /// Its response is cut off.
    pub(crate) fn note_cut_off(&mut self) {
        if let Some(draft) = &mut self.draft {
            draft.is_cut_off = true;
        }
    }
}

impl Draft {
    /// The request's span, and one for each part of it.
    fn spans(mut self, end: TraceEnd<'_>, times: &Times, mut new_id: impl FnMut() -> SpanId) -> Spans {
        let TraceEnd { moments, .. } = end;
        let end_us = times.now_us;
        let server = self.attributes_at_end(end);
        let whole = Span {
            trace: self.id,
            id: self.server,
            parent: self.parent,
            is_parent_remote: self.parent.is_some(),
            state: &self.state,
            name: self.method.and_then(method_label).unwrap_or("HTTP"),
            kind: SpanKind::Server,
            begin_ns: times.ns(self.begun_us),
            end_ns: times.ns(end_us),
            attributes: &server,
            is_error: self.is_error(end.status),
        };
        let mut spans = Spans::default();
        spans.add(&whole);
        let mut of_worker = Attributes::default();
        of_worker.number("highball.worker", moments.worker.into());
        let none = Attributes::default();
        let mut part = |id: SpanId, name, from_us: u64, to_us: u64, attributes: &Attributes| {
            let from_us = from_us.clamp(self.begun_us.min(end_us), end_us);
            let to_us = if to_us == 0 { end_us } else { to_us.clamp(from_us, end_us) };
            spans.add(&Span {
                id,
                parent: Some(self.server),
                is_parent_remote: false,
                name,
                kind: SpanKind::Internal,
                begin_ns: times.ns(from_us),
                end_ns: times.ns(to_us),
                attributes,
                is_error: false,
                ..whole
            });
        };
        if self.is_queued {
            part(new_id(), "queue", moments.queued_us, moments.placed_us, &none);
        }
        if moments.placed_us > 0 {
            part(self.worker, "worker", moments.placed_us, moments.ended_us, &of_worker);
        }
        if moments.first_us > 0 {
            part(new_id(), "response body", moments.first_us, 0, &none);
        }
        spans
    }

    fn is_error(&self, status: u16) -> bool {
        status >= FIRST_SERVER_ERROR || self.is_cut_off
    }

    /// The attributes of the request's span, with what is known at its end.
    fn attributes_at_end(&mut self, end: TraceEnd<'_>) -> Attributes {
        let TraceEnd { status, peer, app, .. } = end;
        let error = match status {
            CLIENT_LEFT => Some("client_left".to_owned()),
            _ if self.is_cut_off => Some("cut_off".to_owned()),
            FIRST_SERVER_ERROR.. => Some(status.to_string()),
            _ => None,
        };
        let mut attributes = std::mem::take(&mut self.attributes);
        if self.method.is_none() {
            attributes.text("http.request.method", b"_OTHER");
        }
        let scheme = if peer.is_tls { "https" } else { "http" };
        attributes.text("url.scheme", scheme.as_bytes());
        if !peer.remote_addr.is_empty() {
            attributes.text("client.address", peer.remote_addr.as_bytes());
        }
        if status > 0 && status != CLIENT_LEFT {
            attributes.number("http.response.status_code", status.into());
        }
        if let Some(error) = error {
            attributes.text("error.type", error.as_bytes());
        }
        if let Some(app) = app {
            attributes.text("highball.app", app.as_bytes());
        }
        attributes
    }
}

/// A moment by both clocks: the front's, and the time of day, which traces of all machines share.
struct Times {
    now_us: u64,
    now_ns: u64,
}

impl Times {
    fn now() -> Times {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Times { now_us: now_us(), now_ns: since_1970.as_nanos() as u64 }
    }

    /// Nanoseconds since 1970 of a moment in the past.
    fn ns(&self, us: u64) -> u64 {
        self.now_ns.saturating_sub(self.now_us.saturating_sub(us) * 1000)
    }
}

/// The method, if it is one of HTTP's.
fn method_label(method: Method) -> Option<&'static str> {
    Some(METHODS[method as usize]).filter(|_| method != Method::Other)
}

/// The `tracestate` of a request, where it is not too long.
fn state(head: Head<'_>) -> Box<[u8]> {
    let all: Vec<&[u8]> = head.values_of(known_key::TRACESTATE).collect();
    let all = all.join(&b","[..]);
    if all.len() > STATE_BYTES {
        Box::default()
    } else {
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::heads::head_of;

    fn tracer(follows_parent: bool, below: u64) -> Tracer {
        Tracer::new(Sampler { follows_parent, below }, Arc::default(), &mut RandomBytes::default())
    }

    fn begun(tracer: &Tracer, parent: Option<&str>) -> Box<Trace> {
        let field = parent.map(|parent| format!("traceparent: {parent}\r\n")).unwrap_or_default();
        let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n");
        let head = head_of(&bytes);
        tracer.begin(Some(head.with(bytes.as_bytes())), &mut RandomBytes::default())
    }

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    #[test]
    fn the_application_goes_on_below_the_worker() {
        let trace = begun(&tracer(true, 0), Some(SAMPLED));
        let text = String::from_utf8_lossy(trace.traceparent()).into_owned();
        assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(text.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && text.ends_with("-01"), "{text}");
        assert!(!text.contains("00f067aa0ba902b7"), "another parent: {text}");
        assert!(trace.is_sampled());
    }

    #[test]
    fn what_is_not_sampled_is_handed_on_as_such() {
        for (tracer, parent) in [
            (tracer(true, 1 << 63), Some(UNSAMPLED)),
            (tracer(true, 0), None),
            (tracer(false, 0), Some(SAMPLED)),
        ] {
            let trace = begun(&tracer, parent);
            assert!(trace.traceparent().ends_with(b"-00") && !trace.is_sampled(), "{parent:?}");
            if let Some(parent) = parent {
                let text = String::from_utf8_lossy(trace.traceparent()).into_owned();
                assert_eq!(text[..53], parent[..53], "the parent is the last span that there is");
            }
        }
    }

    #[test]
    fn few_short_texts_are_kept() {
        let texts = MaskedTexts::default();
        let mask = |text: &[u8]| String::from_utf8_lossy(text).replace("secret", "…");
        assert_eq!(&*texts.get(b"a secret", mask), "a …");
        assert_eq!(&*texts.get(b"a secret", |_| unreachable!("it is known")), "a …");
        texts.get(&[b'x'; KEPT_BYTES + 1], mask);
        assert_eq!(texts.0.borrow().len(), 1);
        (0..3 * KEPT_TEXTS).for_each(|number| drop(texts.get(number.to_string().as_bytes(), mask)));
        assert!((1..=KEPT_TEXTS).contains(&texts.0.borrow().len()));
    }

    #[test]
    fn ids_differ() {
        let tracer = tracer(true, 1 << 63);
        let mut random = RandomBytes::default();
        let (one, two) = (tracer.begin(None, &mut random), tracer.begin(None, &mut random));
        assert_ne!(one.id(), two.id());
        let draft = one.draft.unwrap();
        assert_ne!(draft.server, draft.worker);
        let elsewhere = Tracer::new(tracer.sampler, Arc::default(), &mut random).begin(None, &mut random);
        assert_ne!(elsewhere.id()[..16], two.id()[..16], "another server");
    }
}
