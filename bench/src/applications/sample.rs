//! Results for tests of the page and its picture.

use super::heaps::Heap;
use super::trial::{LoadTurn, Trial};
use super::{Load, Results};
use crate::results::{Errors, Latency, Machine, Memory};

/// The blog under Puma, of which requests failed, and under Highball.
pub(super) fn results() -> Results {
    let highball = trial("highball", "Highball", 1000.0, 100.0);
    let puma = Trial {
        errors: Errors { time_out: 2, status: 1, ..Errors::default() },
        memory: Memory { private_dirty_mib: 90.0, ring_mib: 0.0, ..highball.memory },
        ..trial("puma-cluster", "Puma", 900.0, 110.0)
    };
    Results { machine: Machine::default(), trials: vec![puma, highball] }
}

fn trial(scheme: &str, title: &str, requests_per_second: f64, p50: f64) -> Trial {
    Trial {
        workload: "blog".into(),
        application: "Blog".into(),
        scheme: scheme.into(),
        title: title.into(),
        version: title.into(),
        load: Load { requests: 10_000, clients: 100, workers: 4, threads: 1, turns: 2, tuned: false },
        began: 0,
        cold_start_ms: 500.0,
        page_bytes: vec![1000, 2000],
        warm_up: 1000,
        requests_before_memory: 3000,
        memory: Memory { private_dirty_mib: 119.0, pss_mib: 150.0, ring_mib: 1.0, processes: 6 },
        memory_of_workers: Memory { private_dirty_mib: 100.0, pss_mib: 120.0, ring_mib: 0.0, processes: 4 },
        heaps: vec![Heap { used: 262_144, free: 131_072 }; 4],
        answered: 9997,
        requests_per_second,
        cpu_user_us: 2.0 * p50,
        cpu_system_us: 10.0,
        clients_us: 20.0,
        latency: Latency { p50, p99: 2.0 * p50, max: 3.0 * p50, ..Latency::default() },
        errors: Errors::default(),
        stolen: 0.0,
        others: 0.01,
        turns: [1.0, 1.1]
            .map(|factor| LoadTurn {
                requests_per_second: requests_per_second * factor,
                cpu_us: 2.0 * p50 + 10.0,
                p50,
                p99: 2.0 * p50,
            })
            .to_vec(),
    }
}
