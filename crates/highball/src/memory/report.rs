//! What `highball memory --json` prints. Units are in the names; MiB are KiB divided by 1024, not rounded.

use highball_link::RubyHeap;
use highball_proc::ProcessMemory;
use serde::Serialize;
use std::path::PathBuf;

/// The report as text.
pub(crate) fn json(report: &MachineReport) -> String {
    highball_text::json::pretty(report) + "\n"
}

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct MachineReport {
    /// Whether workers were asked to run a full garbage collection first.
    pub(crate) gc: bool,
    pub(crate) highball: Vec<InstanceReport>,
    pub(crate) others: Vec<OtherServerReport>,
}

/// A running Highball.
#[derive(Debug, Serialize)]
pub(crate) struct InstanceReport {
    pub(crate) pid: i32,
    pub(crate) version: String,
    pub(crate) apps: Vec<MeasuredApp>,
    pub(crate) binds: Vec<String>,
    pub(crate) processes: Vec<ProcessReport>,
    pub(crate) total: MemoryTotal,
    pub(crate) heap_total: HeapTotal,
}

/// One of its applications.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredApp {
    pub(crate) name: String,
    #[serde(with = "highball_text::shown")]
    pub(crate) app: PathBuf,
    pub(crate) environment: String,
    pub(crate) framework: Option<String>,
    pub(crate) ruby: Option<String>,
}

/// A server that is not ours (or a Highball that was not asked).
#[derive(Debug, Serialize)]
pub(crate) struct OtherServerReport {
    pub(crate) server: String,
    pub(crate) pid: i32,
    pub(crate) user: String,
    /// Command line or title of its first process.
    pub(crate) command: String,
    pub(crate) processes: Vec<ProcessReport>,
    pub(crate) total: MemoryTotal,
}

/// A process.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessReport {
    /// `highball`, `server` or `opener` (where root has started it for others), `mold`, `worker`, `process` (beside the workers), `guardian` (watches over
    /// one) or `child`; of other servers also `master`, `server` or `helper`.
    pub(crate) role: String,
    /// The name of the application, for a mold, worker or process of a Highball that has several.
    pub(crate) app: Option<String>,
    /// The number of a worker of Highball.
    pub(crate) worker: Option<u32>,
    /// The name of a process beside the workers, as in `highball status`.
    pub(crate) process: Option<String>,
    /// The state of a mold, worker or process of Highball, in the words of `highball status`.
    pub(crate) state: Option<String>,
    pub(crate) pid: Option<i32>,
    pub(crate) user: String,
    pub(crate) command: String,
    pub(crate) memory: Option<Memory>,
    /// Why `memory` is not there.
    pub(crate) memory_missing: Option<String>,
    pub(crate) heap: Option<Heap>,
    /// Why `heap` is not there, for a mold or worker of Highball.
    pub(crate) heap_missing: Option<String>,
}

/// Memory of a process, as its smaps_rollup has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Memory {
    /// Without pages of rings: with `ring_private_dirty_mib` it is what smaps_rollup says.
    pub(crate) private_dirty_mib: f64,
    pub(crate) pss_mib: f64,
    pub(crate) rss_mib: f64,
    pub(crate) swap_mib: f64,
    /// Resident pages of rings that it has mapped.
    pub(crate) ring_rss_mib: f64,
    /// Those among them that no other process has mapped.
    pub(crate) ring_private_dirty_mib: f64,
}

/// Memory of several processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct MemoryTotal {
    /// How many processes were counted, including unreadable ones.
    pub(crate) processes: usize,
    pub(crate) unreadable_processes: usize,
    pub(crate) private_dirty_mib: f64,
    /// Every page once, as far as it is shared among these processes only.
    pub(crate) pss_mib: f64,
    /// Shared pages count once for each process.
    pub(crate) rss_mib: f64,
    pub(crate) swap_mib: f64,
    /// Resident pages of rings, each counted once. They are no part of `private_dirty_mib`.
    pub(crate) ring_mib: f64,
}

/// A Ruby heap, as `GC.stat` of its process has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Heap {
    /// Slots in use; garbage that was not collected yet is among it.
    pub(crate) live_slots: u64,
    pub(crate) free_slots: u64,
    /// Slots on pages that hold at least one object.
    pub(crate) page_slots: u64,
    pub(crate) pages: u64,
    pub(crate) heap_mib: f64,
    /// Share of `page_slots` that is free, 0 to 1: Ruby can neither give these slots back to the system, as an
    /// object lies on the same page, nor need more memory before they are used up.
    pub(crate) fragmentation: f64,
    pub(crate) total_allocated_objects: u64,
    pub(crate) total_freed_objects: u64,
    /// Allocated by malloc since the last collection.
    pub(crate) malloc_increase_bytes: u64,
    pub(crate) gc_count: u64,
    pub(crate) major_gc_count: u64,
    pub(crate) gc_time_ms: u64,
}

/// Several Ruby heaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct HeapTotal {
    /// The number of processes that reported their heap.
    pub(crate) heaps: usize,
    pub(crate) live_slots: u64,
    pub(crate) free_slots: u64,
    pub(crate) page_slots: u64,
    pub(crate) pages: u64,
    pub(crate) heap_mib: f64,
    pub(crate) fragmentation: f64,
    pub(crate) malloc_increase_bytes: u64,
}

impl From<ProcessMemory> for Memory {
    fn from(memory: ProcessMemory) -> Memory {
        let rings = memory.rings;
        Memory {
            // Both were read one after the other: a page may have come in between.
            private_dirty_mib: mib(memory.private_dirty_kib.saturating_sub(rings.private_dirty_kib)),
            pss_mib: mib(memory.pss_kib),
            rss_mib: mib(memory.rss_kib),
            swap_mib: mib(memory.swap_kib),
            ring_rss_mib: mib(rings.rss_kib),
            ring_private_dirty_mib: mib(rings.private_dirty_kib),
        }
    }
}

impl MemoryTotal {
    /// Adds a process.
    pub(crate) fn add(&mut self, memory: Option<ProcessMemory>) {
        self.processes += 1;
        let Some(kib) = memory else {
            self.unreadable_processes += 1;
            return;
        };
        let memory = Memory::from(kib);
        self.private_dirty_mib += memory.private_dirty_mib;
        self.pss_mib += memory.pss_mib;
        self.rss_mib += memory.rss_mib;
        self.swap_mib += memory.swap_mib;
        self.ring_mib += mib(kib.rings.pss_kib);
    }
}

impl From<RubyHeap> for Heap {
    fn from(heap: RubyHeap) -> Heap {
        Heap {
            live_slots: heap.live_slots,
            free_slots: heap.free_slots,
            page_slots: heap.page_slots,
            pages: heap.pages,
            heap_mib: heap_mib(heap),
            fragmentation: fragmentation(heap.live_slots, heap.page_slots),
            total_allocated_objects: heap.total_allocated_objects,
            total_freed_objects: heap.total_freed_objects,
            malloc_increase_bytes: heap.malloc_increase_bytes,
            gc_count: heap.gc_count,
            major_gc_count: heap.major_gc_count,
            gc_time_ms: heap.gc_time_ms,
        }
    }
}

impl HeapTotal {
    /// The sum of these heaps.
    pub(crate) fn of<'a>(heaps: impl Iterator<Item = &'a Heap>) -> HeapTotal {
        let mut total = HeapTotal::default();
        for heap in heaps {
            total.heaps += 1;
            total.live_slots += heap.live_slots;
            total.free_slots += heap.free_slots;
            total.page_slots += heap.page_slots;
            total.pages += heap.pages;
            total.heap_mib += heap.heap_mib;
            total.malloc_increase_bytes += heap.malloc_increase_bytes;
        }
        total.fragmentation = fragmentation(total.live_slots, total.page_slots);
        total
    }
}

fn fragmentation(live_slots: u64, page_slots: u64) -> f64 {
    if page_slots == 0 {
        return 0.0;
    }
    page_slots.saturating_sub(live_slots) as f64 / page_slots as f64
}

fn heap_mib(heap: RubyHeap) -> f64 {
    heap.pages as f64 * heap.page_bytes as f64 / (1024.0 * 1024.0)
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_proc::RingMemory;

    fn process(private_dirty_kib: u64, ring_pss_kib: u64, ring_private_dirty_kib: u64) -> ProcessMemory {
        let rings =
            RingMemory { rss_kib: 1024, pss_kib: ring_pss_kib, private_dirty_kib: ring_private_dirty_kib };
        ProcessMemory { private_dirty_kib, pss_kib: 4096, rss_kib: 8192, swap_kib: 0, rings }
    }

    #[test]
    fn ring_pages_are_counted_once_and_are_not_private() {
        let mut total = MemoryTotal::default();
        // One page of the ring is the second process's alone; 1020 KiB are mapped by both.
        total.add(Some(process(2048, 510, 0)));
        total.add(Some(process(1028, 514, 4)));
        total.add(None);
        assert_eq!((total.processes, total.unreadable_processes), (3, 1));
        assert_eq!(total.private_dirty_mib, 3.0);
        assert_eq!(total.ring_mib, 1.0);
        assert_eq!(total.rss_mib, 16.0);
    }

    #[test]
    fn fragmentation_is_the_free_share_of_pages_in_use() {
        let heap = |live_slots, page_slots| {
            Heap::from(RubyHeap {
                live_slots,
                page_slots,
                pages: 16,
                page_bytes: 65536,
                ..RubyHeap::default()
            })
        };
        assert_eq!(heap(750, 1000).fragmentation, 0.25);
        assert_eq!(heap(0, 0).fragmentation, 0.0);
        assert_eq!(heap(750, 1000).heap_mib, 1.0);
        let total = HeapTotal::of([heap(750, 1000), heap(0, 500)].iter());
        assert_eq!((total.heaps, total.fragmentation), (2, 0.5));
    }
}
