//! Spans of requests, as OpenTelemetry describes them: the front makes them, an exporter sends them to a collector.
//!
//! In reading order: [`span`] (a span and its attributes), [`protobuf`] (how both are written), [`export_request`] (what a
//! collector gets), [`queue`] (spans between the front and the exporter).
//!
//! The messages are those of opentelemetry-proto 1. `test/e2e/traces` reads them by the official schema.

pub mod export_request;
mod protobuf;
pub mod queue;
pub mod span;

pub use export_request::export_request;
pub use queue::{Batch, SpanCounts, SpanQueue};
pub use span::{Attributes, Span, SpanId, SpanKind, Spans, TraceId};
