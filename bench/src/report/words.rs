//! Numbers, loads, errors and the method in words.

use std::ops::RangeInclusive;

use crate::results::{Errors, Load, Results, Skipped};

/// With commas between thousands; `–` where it is no number.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut text = if value < 0.0 { String::from("-") } else { String::new() };
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// A count and what is counted: `1 round`, `5 rounds`.
pub(crate) fn count(number_of: u64, what: &str) -> String {
    let plural = if number_of == 1 { "" } else { "s" };
    format!("{} {what}{plural}", number(number_of as f64, 0))
}

/// `25 connections`, `2,000 requests/s over 25 connections`.
pub(super) fn load(load: &Load) -> String {
    let connections = count(load.connections.into(), "connection");
    let text = match load.rate {
        Some(rate) => format!("{} requests/s over {connections}", number(rate, 0)),
        None => connections,
    };
    if load.keep_alive {
        text
    } else {
        text + ", no keep-alive"
    }
}

/// `3`, or `2–4` where there is no clear order.
pub(super) fn places(places: &RangeInclusive<usize>) -> String {
    let (first, last) = (places.start(), places.end());
    if first == last {
        first.to_string()
    } else {
        format!("{first}–{last}")
    }
}

/// `120 errors: 3 no connection, 117 reset`.
pub(crate) fn errors(errors: &Errors) -> String {
    let kinds = [
        (errors.connect, "no connection"),
        (errors.reset, "reset"),
        (errors.time_out, "no answer in time"),
        (errors.status, "wrong status"),
        (errors.length, "wrong length"),
        (errors.content, "wrong content"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(number_of, _)| *number_of > 0)
        .map(|(number_of, kind)| format!("{} {kind}", number(*number_of as f64, 0)))
        .collect();
    format!("{}: {}", count(errors.total(), "error"), kinds.join(", "))
}

/// Seconds since 1970 as `2026-11-21 14:05 UTC`.
pub(crate) fn time(unix_seconds: u64) -> String {
    let (mut days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let leap = |year: u64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut year = 1970;
    // No clock is set to a later year than this; a broken one must not keep us counting.
    while days >= 365 + u64::from(leap(year)) && year < 9999 {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while month < 11 && days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (day, month) = (days + 1, month + 1);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

/// `38 min`, `45 s`.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{} s", number(seconds, 0))
    } else {
        format!("{} min", number(seconds / 60.0, 0))
    }
}

/// What was not measured, why, and what would bring it; the same reason of several workloads comes once.
pub(super) fn skipped(results: &Results) -> Vec<SkippedWords> {
    let mut found: Vec<(&Skipped, Vec<String>)> = Vec::new();
    for one in &results.skipped {
        let title = |name: &String| {
            let workload = results.workloads.iter().find(|workload| workload.name == *name);
            workload.map_or(name.clone(), |workload| workload.title.clone())
        };
        let same = |(other, _): &&mut (&Skipped, Vec<String>)| {
            (&other.scheme, &other.why, &other.packages) == (&one.scheme, &one.why, &one.packages)
                && other.workload.is_some() == one.workload.is_some()
        };
        match found.iter_mut().find(same) {
            Some((_, workloads)) => workloads.extend(one.workload.as_ref().map(title)),
            None => found.push((one, one.workload.as_ref().map(title).into_iter().collect())),
        }
    }
    let words = |(one, workloads): (&Skipped, Vec<String>)| SkippedWords {
        scheme: results
            .schemes
            .iter()
            .find(|scheme| scheme.name == one.scheme)
            .map_or(one.scheme.clone(), |scheme| scheme.title.clone()),
        workloads: if workloads.is_empty() { "all".into() } else { workloads.join(", ") },
        why: one.why.clone(),
        remedy: if one.packages.is_empty() {
            String::new()
        } else {
            format!("apt-get install {}", one.packages.join(" "))
        },
    };
    found.into_iter().map(words).collect()
}

/// A scheme that was not measured.
pub(super) struct SkippedWords {
    pub(super) scheme: String,
    pub(super) workloads: String,
    pub(super) why: String,
    /// The command that brings what is missing; empty where none would.
    pub(super) remedy: String,
}

/// How it was measured, in a paragraph.
pub(super) fn method(results: &Results) -> String {
    let method = &results.method;
    let tuned = results.schemes.iter().any(|scheme| scheme.server == "Puma" && scheme.front.is_some());
    format!(
        "Every scheme was given {} (processes) of {} each. The schemes are measured in turn (A B C, A B C, …), so \
         that a slow minute of the machine affects all of them: {}, each of {} s of warm-up, which is discarded, and {} s of \
         load. A figure is the median of the rounds, with the smallest and the largest.{}",
        count(method.workers.into(), "worker"),
        count(method.threads.into(), "thread"),
        count(method.rounds.into(), "round"),
        method.warm_up_seconds,
        method.seconds,
        if tuned { TUNED_PUMA } else { "" },
    )
}

/// The one setting that is neither a default nor the number of workers or threads.
const TUNED_PUMA: &str = " Puma behind a front end is tuned (max_fast_inline 1): by default its thread waits on a \
    connection that the front end keeps, while requests on others wait, which with few threads leaves some hundred \
    requests per second.";

/// What the figures mean: a term, and its explanation.
pub(super) const FIGURES: [(&str, &str); 9] = [
    (
        "Place",
        "Two schemes are in clear order if their ranges do not overlap. A place such as 2–4 means that the range \
         overlaps others: these places have no clear order. Floors, schemes with errors \
         and single rounds have no place.",
    ),
    (
        "CPU per request",
        "User and system time of all processes of the scheme, its front end's too, divided by the requests that were \
         answered.",
    ),
    (
        "Latency",
        "At saturation, a connection sends its next request when it has the answer to the last. At a given rate, \
         requests are sent on time whatever comes back, and a latency counts from the time at which its request \
         was due.",
    ),
    (
        "Memory",
        "Private dirty pages of all processes right after the load, and the rings: pages that Highball's processes \
         share, counted once. PSS contains them.",
    ),
    ("Context switches, system calls, objects, GC", "Per request; – if they could not be counted."),
    ("Cold start", "From the start of the first process to the first answer."),
    (
        "Errors",
        "Failed connections, resets, time-outs, and answers of another status, length or content than expected, of \
         all rounds together. They are marked with ! and never averaged away.",
    ),
    (
        "Stolen, others",
        "The share of the machine's CPU time that its hypervisor kept, and that other processes than the scheme and \
         the load generator used. If either is more than a few percent, measure again.",
    ),
    (
        "Floor",
        "A server that runs no Ruby: the most that this machine and the load generator can do. It has no place.",
    ),
];
