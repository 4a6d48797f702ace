//! The garbage collectors of the workers, as they report them themselves. A worker that computes or is stuck does not answer in
//! time: what it reported last counts, and nothing waits for it.

use super::REPORT_TIME;
use highball_config::AppId;
use highball_link::RubyHeap;
use highball_supervisor::{AskedHeap, Order};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, Mutex};
use tokio::time::timeout;

/// How long what was asked counts.
const FRESH: Duration = Duration::from_secs(5);
/// Time for all workers together. They are asked at once.
const ANSWER_TIME: Duration = Duration::from_millis(250);

/// What is known of an application's workers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct AppHeaps {
    /// Of the workers that there are.
    pub(super) live_slots: u64,
    pub(super) free_slots: u64,
    pub(super) page_bytes: u64,
    /// Of all that there were, from when each was asked first.
    pub(super) minor_collections: u64,
    pub(super) major_collections: u64,
    pub(super) collecting_ms: u64,
    pub(super) allocated_objects: u64,
}

/// What was reported last, and sums of what workers have done that are gone.
#[derive(Debug, Default)]
pub(crate) struct Heaps(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    at: Option<Instant>,
    last: BTreeMap<(AppId, u32), RubyHeap>,
    apps: BTreeMap<AppId, AppHeaps>,
}

impl Heaps {
    /// What is known of each application's workers. They are asked at most every few seconds.
    pub(super) async fn of(&self, supervisor: Option<mpsc::Sender<Order>>) -> BTreeMap<AppId, AppHeaps> {
        let mut known = self.0.lock().await;
        if known.at.is_some_and(|at| at.elapsed() < FRESH) {
            return known.apps.clone();
        }
        if let Some(asked) = ask(supervisor).await {
            let mut heaps = BTreeMap::new();
            let began = Instant::now();
            for asked in asked {
                if let Some(worker) = asked.worker {
                    heaps.insert((asked.app, worker), asked.heap(began, ANSWER_TIME).await.ok());
                }
            }
            known.take(heaps);
            known.at = Some(Instant::now());
        }
        known.apps.clone()
    }
}

async fn ask(supervisor: Option<mpsc::Sender<Order>>) -> Option<Vec<AskedHeap>> {
    let (to, asked) = oneshot::channel();
    let asking = async {
        supervisor?.send(Order::AskHeaps { gc: false, to }).await.ok()?;
        asked.await.ok()
    };
    timeout(REPORT_TIME, asking).await.ok()?
}

impl Known {
    /// Takes in the reports of the workers that have answered, and forgets workers that have ended. A worker says what it likes:
    /// sums only grow.
    fn take(&mut self, heaps: BTreeMap<(AppId, u32), Option<RubyHeap>>) {
        self.last.retain(|worker, _| heaps.contains_key(worker));
        for (worker, heap) in heaps {
            let Some(heap) = heap else { continue };
            // What its mold had done before it was forked is in its first report.
            let before = self.last.insert(worker, heap).unwrap_or(heap);
            let app = self.apps.entry(worker.0).or_default();
            let grown = |of: fn(&RubyHeap) -> u64| of(&heap).saturating_sub(of(&before));
            let majors = grown(|heap| heap.major_gc_count);
            let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
            add(&mut app.major_collections, majors);
            add(&mut app.minor_collections, grown(|heap| heap.gc_count).saturating_sub(majors));
            add(&mut app.collecting_ms, grown(|heap| heap.gc_time_ms));
            add(&mut app.allocated_objects, grown(|heap| heap.total_allocated_objects));
        }
        for (id, app) in &mut self.apps {
            let of_app = || self.last.iter().filter(|((app, _), _)| app == id).map(|(_, heap)| heap);
            let sum = |of: fn(&RubyHeap) -> u64| of_app().map(of).fold(0, u64::saturating_add);
            app.live_slots = sum(|heap| heap.live_slots);
            app.free_slots = sum(|heap| heap.free_slots);
            app.page_bytes = sum(|heap| heap.pages.saturating_mul(heap.page_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(collections: u64, live_slots: u64) -> Option<RubyHeap> {
        Some(RubyHeap {
            gc_count: collections,
            major_gc_count: collections / 10,
            live_slots,
            pages: 2,
            page_bytes: 1000,
            ..RubyHeap::default()
        })
    }

    #[test]
    fn sums_outlive_workers_and_begin_with_the_first_report() {
        let (app, mut known) = (AppId(1), Known::default());
        let mut take = |heaps: &[(u32, Option<RubyHeap>)]| {
            known.take(heaps.iter().map(|(worker, heap)| ((app, *worker), *heap)).collect());
            let AppHeaps { minor_collections, major_collections, live_slots, page_bytes, .. } =
                known.apps[&app];
            (minor_collections, major_collections, live_slots, page_bytes)
        };
        assert_eq!(take(&[(1, heap(100, 5)), (2, heap(100, 7))]), (0, 0, 12, 4000));
        assert_eq!(take(&[(1, heap(120, 6)), (2, None)]), (18, 2, 13, 4000), "2 is silent");
        assert_eq!(take(&[(2, heap(110, 7)), (3, heap(100, 1))]), (27, 3, 8, 4000), "1 is gone");
        assert_eq!(take(&[(2, heap(3, 7))]), (27, 3, 7, 2000), "no sum gets smaller");
    }
}
