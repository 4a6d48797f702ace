//! Exports spans to a collector that speaks OTLP over HTTP, in Protocol Buffers.
//!
//! In reading order: [`exporter`] (the thread that does it, and what it does while the collector takes nothing), `collector` (one
//! request), `partial_success` (spans that a collector has refused although it says yes).
//!
//! The front knows nothing of it. It adds spans to a [`SpanQueue`](highball_trace::SpanQueue), which drops what has no room.

mod collector;
pub mod exporter;
mod partial_success;

pub use exporter::{export, Exporting};
