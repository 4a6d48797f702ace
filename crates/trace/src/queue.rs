//! Spans between the front, which must never wait, and the exporter, which may be slow. What has no room is dropped and counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::span::Spans;

/// Most bytes that wait, and that an exporter sends at a time.
const WAITING_BYTES: usize = 4 << 20;
const BATCH_BYTES: usize = 256 << 10;

/// Spans that are exported together.
#[derive(Debug, Default)]
pub struct Batch {
    /// Encoded spans.
    pub bytes: Vec<u8>,
    /// Their number.
    pub spans: u64,
}

/// What has become of spans since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// A collector has them.
    pub exported: u64,
    /// They were dropped: no collector took them in time.
    pub dropped: u64,
    /// They wait for the exporter.
    pub waiting: u64,
    /// Why the collector did not take the last ones, if it did not.
    pub problem: Option<String>,
}

/// Spans that wait for the exporter.
#[derive(Debug, Default)]
pub struct SpanQueue {
    state: Mutex<State>,
    /// The first span waits.
    pub begun: Notify,
    /// A batch is full.
    pub full: Notify,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    bytes: usize,
    counts: SpanCounts,
}

impl SpanQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds spans, or drops them if there is no room. The lock is never held for longer than copying them takes.
    pub fn add(&self, spans: &Spans) {
        let (bytes, count) = (spans.encoded.as_slice(), spans.count as u64);
        let mut state = self.state();
        if state.bytes + bytes.len() > WAITING_BYTES {
            state.counts.dropped += count;
            return;
        }
        let is_first = state.batches.is_empty();
        if state.batches.back().is_none_or(|last| last.bytes.len() + bytes.len() > BATCH_BYTES) {
            state.batches.push_back(Batch::default());
        }
        let is_full = state.batches.len() > 1;
        state.bytes += bytes.len();
        state.counts.waiting += count;
        if let Some(last) = state.batches.back_mut() {
            last.bytes.extend_from_slice(bytes);
            last.spans += count;
        }
        drop(state);
        if is_first {
            self.begun.notify_one();
        }
        if is_full {
            self.full.notify_one();
        }
    }

    /// Takes the batch that has waited longest.
    pub fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        let batch = state.batches.pop_front()?;
        state.bytes -= batch.bytes.len();
        state.counts.waiting -= batch.spans;
        Some(batch)
    }

    /// Number of batches that wait.
    pub fn batches(&self) -> usize {
        self.state().batches.len()
    }

    /// A collector has these.
    pub fn note_exported(&self, spans: u64) {
        let counts = &mut self.state().counts;
        counts.exported += spans;
        counts.problem = None;
    }

    /// These are lost.
    pub fn note_dropped(&self, spans: u64) {
        self.state().counts.dropped += spans;
    }

    /// The collector takes none at the moment.
    pub fn note_problem(&self, problem: String) {
        self.state().counts.problem = Some(problem);
    }

    /// What has become of all.
    pub fn counts(&self) -> SpanCounts {
        self.state().counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Attributes, Span, SpanKind};

    fn spans(count: usize, text: &[u8]) -> Spans {
        let mut spans = Spans::default();
        let mut attributes = Attributes::default();
        attributes.text("text", text);
        for _ in 0..count {
            spans.add(&Span {
                trace: [1; 16],
                id: [2; 8],
                parent: None,
                is_parent_remote: false,
                state: b"",
                name: "GET",
                kind: SpanKind::Server,
                begin_ns: 1,
                end_ns: 2,
                attributes: &attributes,
                is_error: false,
            });
        }
        spans
    }

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let queue = SpanQueue::default();
        let added = spans(4, &[b'a'; 1000]);
        for _ in 0..2000 {
            queue.add(&added);
        }
        let SpanCounts { waiting, dropped, .. } = queue.counts();
        assert_eq!(waiting + dropped, 8000);
        assert!(dropped > 3000, "{dropped}");
        let mut taken = 0;
        while let Some(batch) = queue.take() {
            assert!(batch.bytes.len() <= BATCH_BYTES);
            taken += batch.spans;
        }
        assert_eq!(taken, waiting);
        assert_eq!(queue.counts().waiting, 0);
        queue.add(&added);
        assert_eq!(queue.counts().waiting, 4, "there is room again");
    }
}
