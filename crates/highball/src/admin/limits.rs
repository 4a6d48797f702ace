//! Metrics of hard limits. Only applications with such a limit have samples.

use super::exposition::Exposition;
use highball_link::{KernelLimitsReport, CPU_MAX, MEMORY_MAX};

/// A metric: its name, type and help, and its value, if there is one.
type Row = (&'static str, &'static str, &'static str, fn(&KernelLimitsReport) -> Option<f64>);

/// The limits themselves.
const LIMITS: [Row; 2] = [
    (
        "highball_app_cpu_limit_cores",
        "gauge",
        "CPUs that the processes of the application may use at a time.",
        |limits| limits.cpu_max,
    ),
    (
        "highball_app_memory_limit_bytes",
        "gauge",
        "Memory that the processes of the application may have.",
        |limits| limits.memory_max_bytes.map(|bytes| bytes as f64),
    ),
];

/// What applications with `cpu_max` use.
const CPU: [Row; 4] = [
    (
        "highball_app_cpu_seconds_total",
        "counter",
        "CPU time that all processes of the application have used.",
        |limits| Some(limits.cpu_ms as f64 / 1000.0),
    ),
    (
        "highball_app_cpu_periods_total",
        "counter",
        "Periods of 100 ms in which processes of the application had something to compute.",
        |limits| Some(limits.periods as f64),
    ),
    (
        "highball_app_cpu_throttled_periods_total",
        "counter",
        "Periods in which the application waited because it had used up cpu_max.",
        |limits| Some(limits.throttled_periods as f64),
    ),
    (
        "highball_app_cpu_throttled_seconds_total",
        "counter",
        "Time that they had to wait, on all CPUs together.",
        |limits| Some(limits.throttled_ms as f64 / 1000.0),
    ),
];

/// What applications with `memory_max` use.
const MEMORY: [Row; 3] = [
    (
        "highball_app_memory_bytes",
        "gauge",
        "Memory of all processes of the application, with files that the kernel keeps in memory for them.",
        |limits| limits.memory_bytes.map(|bytes| bytes as f64),
    ),
    (
        "highball_app_memory_limit_hits_total",
        "counter",
        "How often the memory of the application has reached the limit, so that the kernel had to free some.",
        |limits| Some(limits.memory_max_hits as f64),
    ),
    (
        "highball_app_oom_kills_total",
        "counter",
        "Processes of the application that the kernel has killed for lack of memory.",
        |limits| Some(limits.oom_kills as f64),
    ),
];

/// Writes those of these applications.
pub(super) fn limits(text: &mut Exposition, apps: &[(&str, &KernelLimitsReport)]) {
    write(text, apps, &LIMITS, |_| true);
    let help = "1: the kernel enforces the limit; 0: processes of the application run without it.";
    let mut family = text.family("highball_app_limit_enforced", "gauge", help);
    for (app, limits) in apps {
        for limit in limits.wanted() {
            family.sample(&[("app", app), ("limit", limit)], u8::from(limits.keeps(limit)));
        }
    }
    write(text, apps, &CPU, |limits| limits.keeps(CPU_MAX));
    write(text, apps, &MEMORY, |limits| limits.keeps(MEMORY_MAX));
}

fn write(
    text: &mut Exposition,
    apps: &[(&str, &KernelLimitsReport)],
    rows: &[Row],
    has_samples: impl Fn(&KernelLimitsReport) -> bool,
) {
    for (name, kind, help, of) in rows {
        let mut family = text.family(name, kind, help);
        for (app, limits) in apps.iter().filter(|(_, limits)| has_samples(limits)) {
            of(limits).into_iter().for_each(|value| family.sample(&[("app", app)], value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::exposition::Format;

    #[test]
    fn limits_that_are_set_have_samples_and_their_use_where_they_are_kept() {
        let burning = KernelLimitsReport {
            cpu_max: Some(1.5),
            cpu_ms: 2500,
            throttled_periods: 3,
            ..KernelLimitsReport::default()
        };
        let leaking = KernelLimitsReport {
            memory_max_bytes: Some(1 << 20),
            memory_bytes: Some(4096),
            oom_kills: 2,
            ..KernelLimitsReport::default()
        };
        let not_kept = KernelLimitsReport {
            memory_max_bytes: Some(2 << 20),
            not_kept: vec![MEMORY_MAX.into()],
            ..KernelLimitsReport::default()
        };
        let mut text = Exposition::new(Format::Prometheus);
        limits(&mut text, &[("a", &burning), ("b", &leaking), ("c", &not_kept)]);
        let text = text.text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "highball_app_cpu_limit_cores{app=\"a\"} 1.5",
            "highball_app_memory_limit_bytes{app=\"b\"} 1048576",
            "highball_app_memory_limit_bytes{app=\"c\"} 2097152",
            "highball_app_limit_enforced{app=\"a\",limit=\"cpu_max\"} 1",
            "highball_app_limit_enforced{app=\"b\",limit=\"memory_max\"} 1",
            "highball_app_limit_enforced{app=\"c\",limit=\"memory_max\"} 0",
            "highball_app_cpu_seconds_total{app=\"a\"} 2.5",
            "highball_app_cpu_periods_total{app=\"a\"} 0",
            "highball_app_cpu_throttled_periods_total{app=\"a\"} 3",
            "highball_app_cpu_throttled_seconds_total{app=\"a\"} 0",
            "highball_app_memory_bytes{app=\"b\"} 4096",
            "highball_app_memory_limit_hits_total{app=\"b\"} 0",
            "highball_app_oom_kills_total{app=\"b\"} 2",
        ];
        assert_eq!(samples, expected);
    }
}
