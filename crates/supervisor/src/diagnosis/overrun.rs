//! What a worker does at a request that has exceeded its time limit: from what the worker says of its threads, if any Ruby
//! code of it runs, and from what the kernel says of them. A worker may say anything; it is only logged.

use highball_link::{OverrunReport, ThreadPlace};
use highball_proc::{system_call, thread_loads, ThreadLoad};
use highball_text::visible;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long the processor time of the threads is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// From this share of a processor on, a thread counts as computing, in percent. (Where others compute as well, it gets less,
/// but the kernel says that it would run.)
const COMPUTES_PERCENT: u128 = 50;
/// Limits on what is kept and logged of a backtrace.
const LINES: usize = 20;
const LINE_CHARACTERS: usize = 300;
const NAME_CHARACTERS: usize = 80;
/// Requests that are remembered for `highball status`.
const REMEMBERED: usize = 4;

/// The last requests of an application that exceeded their time limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastOverruns(Arc<Mutex<VecDeque<(Instant, OverrunReport)>>>);

impl LastOverruns {
    /// Remembers one of this moment.
    pub(crate) fn add(&self, report: OverrunReport, at: Instant) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() == REMEMBERED {
            reports.pop_front();
        }
        reports.push_back((at, report));
    }

    pub(crate) fn all(&self) -> Vec<OverrunReport> {
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let aged = |(at, report): &(Instant, OverrunReport)| OverrunReport {
            seconds_ago: at.elapsed().as_secs(),
            ..report.clone()
        };
        reports.iter().map(aged).collect()
    }
}

/// A thread of the worker as the kernel sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    load: ThreadLoad,
    /// The share of a processor that it had.
    percent: u128,
    /// The system call in which it waits, if that is known.
    call: Option<&'static str>,
}

impl Seen {
    fn computes(&self) -> bool {
        self.load.state == 'R' || self.percent >= COMPUTES_PERCENT
    }
}

/// Where the worker is with the request with this ticket. `threads`: what it answered, if it did; `seen`: its threads, as the
/// kernel sees them. `None`: the request has ended.
pub(crate) fn describe(
    ticket: u64,
    threads: Option<&[ThreadPlace]>,
    seen: &[Seen],
) -> Option<(String, Option<String>)> {
    let Some(threads) = threads else { return Some((of_silent(seen), None)) };
    let place = threads.iter().find(|place| place.ticket == ticket)?;
    let thread = seen.iter().find(|seen| place.tid == Some(seen.load.tid));
    Some((of_thread(place, thread), backtrace(place)))
}

/// Where each of these threads of a worker is: its name, what it does, and the calls that led there. `threads`: what the worker
/// answered, if it did; else all there is to say is what the kernel shows.
pub(crate) fn describe_all(
    threads: Option<&[ThreadPlace]>,
    seen: &[Seen],
) -> Vec<(Option<String>, String, Option<String>)> {
    let Some(threads) = threads else { return vec![(None, of_silent(seen), None)] };
    let described = threads.iter().map(|place| {
        let thread = seen.iter().find(|seen| place.tid == Some(seen.load.tid));
        let name: String = place.name.chars().take(NAME_CHARACTERS).collect();
        (Some(visible(&name).into_owned()), of_thread(place, thread), backtrace(place))
    });
    described.collect()
}

/// Looks at the threads of a worker for [`LOOK`]. None are found where the kernel does not show them.
pub(crate) async fn look(pid: i32) -> Vec<Seen> {
    let loads = move || thread_loads(pid).unwrap_or_default();
    let before = spawn_blocking(loads).await.unwrap_or_default();
    sleep(LOOK).await;
    let seen = move || {
        let seen = thread_loads(pid).unwrap_or_default().into_iter().map(|load| {
            let earlier = before.iter().find(|earlier| earlier.tid == load.tid);
            let worked = load.cpu.saturating_sub(earlier.map_or(load.cpu, |earlier| earlier.cpu));
            let call = if load.state == 'R' { None } else { system_call(pid, load.tid) };
            Seen { percent: worked.as_millis() * 100 / LOOK.as_millis(), load, call }
        });
        seen.collect()
    };
    spawn_blocking(seen).await.unwrap_or_default()
}

/// What a worker does that begins no requests. `answers`: its main thread does.
pub(crate) fn of_unresponsive(answers: bool, seen: &[Seen]) -> String {
    match answers {
        true => "its main thread answers, and its serving threads do not take requests: they hang, or the application has closed their descriptors".into(),
        false => of_silent(seen),
    }
}

/// A thread about which the worker itself reports.
fn of_thread(place: &ThreadPlace, seen: Option<&Seen>) -> String {
    let call = innermost_call(place);
    let percent = seen.map_or(0, |seen| seen.percent);
    let computes = seen.is_some_and(Seen::computes);
    let is_running = place.state.as_deref() == Some("run");
    match call {
        Some("sleep") => "it sleeps".into(),
        Some("stop") => "it has stopped itself (Thread.stop)".into(),
        Some("lock" | "synchronize" | "mon_enter" | "mon_synchronize") => "it waits for a mutex".into(),
        Some(call @ ("pop" | "shift" | "deq" | "join" | "value" | "wait")) => {
            format!("it waits for another thread or process ({call})")
        }
        _ if is_running && computes => format!("it computes ({percent}% CPU)"),
        // A thread that runs Ruby code waits in no system call, but for the GVL.
        _ if is_running && seen.is_some_and(|seen| seen.call == Some("futex")) => {
            "it waits for the GVL, while another thread runs Ruby code".into()
        }
        _ if is_running => "it runs Ruby code, or waits for its turn to".into(),
        Some(call) if computes => {
            format!("it computes in native code, without the GVL ({}, {percent}% CPU)", visible(call))
        }
        _ => match (seen.and_then(|seen| seen.call), call) {
            (Some(system_call), Some(call)) => {
                format!("it waits in the system call {system_call} ({})", visible(call))
            }
            (Some(system_call), None) => format!("it waits in the system call {system_call}"),
            (None, Some(call)) => format!("it waits ({})", visible(call)),
            (None, None) => "it waits".into(),
        },
    }
}

/// The worker's main thread does not answer: no Ruby code runs there but what the thread that has the GVL runs.
fn of_silent(seen: &[Seen]) -> String {
    let no_ruby = "no other Ruby code of the worker runs, so there is no backtrace";
    if seen.is_empty() {
        return "the worker does not answer, and the kernel does not say what it does".into();
    }
    if seen.iter().all(|seen| matches!(seen.load.state, 'T' | 't')) {
        return "the process of the worker is stopped (SIGSTOP, or a debugger)".into();
    }
    let busiest = seen.iter().filter(|seen| seen.computes()).max_by_key(|seen| seen.percent);
    if let Some(Seen { load, percent, .. }) = busiest {
        let name = visible(&load.name);
        // Native code that computes gets all of a processor that is free.
        let or = if *percent < COMPUTES_PERCENT {
            ", or the processors are too busy for an answer in time"
        } else {
            ""
        };
        return format!(
            "it holds the GVL in native code ({percent}% CPU, thread {} {name}){or}: {no_ruby}",
            load.tid
        );
    }
    // Threads that wait for the GVL wait in futex, and idle ones there or for a descriptor.
    let is_usual =
        |call: &str| matches!(call, "futex" | "ppoll" | "poll" | "epoll_wait" | "epoll_pwait" | "pselect");
    let holder = seen.iter().find_map(|seen| Some((seen, seen.call.filter(|call| !is_usual(call))?)));
    match holder {
        Some((seen, call)) => {
            let (tid, name) = (seen.load.tid, visible(&seen.load.name));
            format!("it holds the GVL in the system call {call} (thread {tid} {name}): {no_ruby}")
        }
        None => format!(
            "it holds the GVL in native code, and waits there, or its main thread hangs (in a signal handler, for example), or it \
             is frozen: {no_ruby}"
        ),
    }
}

/// `sleep` of `app.rb:3:in 'Kernel#sleep'`, and of `` app.rb:3:in `sleep' ``.
fn innermost_call(place: &ThreadPlace) -> Option<&str> {
    let (_, label) = place.backtrace.first()?.rsplit_once(":in ")?;
    let label = label.trim_matches(|c| matches!(c, '`' | '\''));
    let label = label.rsplit(['#', '.', ' ']).next().unwrap_or(label);
    (!label.is_empty() && label.len() <= 64).then_some(label)
}

fn backtrace(place: &ThreadPlace) -> Option<String> {
    let lines = place.backtrace.iter().take(LINES).map(|line| {
        let line: String = line.chars().take(LINE_CHARACTERS).collect();
        visible(&line).into_owned()
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: &str, state: &str) -> ThreadPlace {
        ThreadPlace {
            backtrace: vec![line.into()],
            state: Some(state.into()),
            ticket: 7,
            ..ThreadPlace::default()
        }
    }

    fn seen(percent: u128, state: char, call: Option<&'static str>) -> Seen {
        let load = ThreadLoad { tid: 12, name: "worker 1 thread".into(), state, cpu: Duration::ZERO };
        Seen { load, percent, call }
    }

    #[test]
    fn the_innermost_call_is_read_as_each_ruby_writes_it() {
        let of = |line: &str| innermost_call(&place(line, "sleep")).map(String::from);
        assert_eq!(of("app.rb:3:in `sleep'").as_deref(), Some("sleep"));
        assert_eq!(of("app.rb:3:in 'Kernel#sleep'").as_deref(), Some("sleep"));
        assert_eq!(of("app.rb:3:in 'Integer.sqrt'").as_deref(), Some("sqrt"));
        assert_eq!(of("app.rb:3:in `block in call'").as_deref(), Some("call"));
        assert_eq!(of("nonsense"), None);
        assert_eq!(of(&format!("a:1:in `{}'", "x".repeat(65))), None);
    }

    #[test]
    fn ways_of_being_stuck_are_told_apart() {
        let of = |line: &str, state: &str, seen: Option<&Seen>| of_thread(&place(line, state), seen);
        assert_eq!(of("a:1:in `sleep'", "sleep", None), "it sleeps");
        assert_eq!(of("a:1:in `stop'", "sleep_forever", None), "it has stopped itself (Thread.stop)");
        assert_eq!(of("a:1:in `synchronize'", "sleep_forever", None), "it waits for a mutex");
        assert_eq!(of("a:1:in `loop'", "run", Some(&seen(98, 'R', None))), "it computes (98% CPU)");
        let waits = of("a:1:in `loop'", "run", Some(&seen(20, 'S', Some("futex"))));
        assert_eq!(waits, "it waits for the GVL, while another thread runs Ruby code");
        assert!(of("a:1:in `loop'", "run", None).starts_with("it runs Ruby code, or waits"));
        let native = of("a:1:in `call'", "sleep", Some(&seen(98, 'R', None)));
        assert_eq!(native, "it computes in native code, without the GVL (call, 98% CPU)");
        let waits = of("a:1:in `wait_readable'", "sleep", Some(&seen(0, 'S', Some("ppoll"))));
        assert_eq!(waits, "it waits in the system call ppoll (wait_readable)");
    }

    #[test]
    fn a_worker_in_which_no_ruby_code_runs_is_seen_from_outside() {
        let waits = seen(0, 'S', Some("futex"));
        let computing = of_silent(&[waits.clone(), seen(99, 'R', None)]);
        assert!(computing.starts_with("it holds the GVL in native code (99% CPU"), "{computing}");
        assert!(!computing.contains("too busy"), "{computing}");
        let starved = of_silent(&[waits.clone(), seen(16, 'R', None)]);
        assert!(starved.contains("or the processors are too busy for an answer in time"), "{starved}");
        let calling = of_silent(&[waits.clone(), seen(0, 'S', Some("clock_nanosleep"))]);
        assert!(calling.starts_with("it holds the GVL in the system call clock_nanosleep"), "{calling}");
        assert!(of_silent(&[waits]).starts_with("it holds the GVL in native code, and waits there"));
        assert!(of_silent(&[seen(0, 'T', None)]).contains("stopped"));
        assert!(of_silent(&[]).contains("does not say"));
    }

    #[test]
    fn what_a_worker_says_is_cut_and_escaped() {
        let line = format!("\x1b[2J{}", "x".repeat(10_000));
        let hostile = ThreadPlace { backtrace: vec![line; 1000], ticket: 7, ..ThreadPlace::default() };
        let (doing, backtrace) = describe(7, Some(&[hostile]), &[]).unwrap();
        let backtrace = backtrace.unwrap();
        assert!(backtrace.len() < 8000, "{}", backtrace.len());
        assert!(!backtrace.contains('\x1b') && !doing.contains('\x1b'));
        assert!(describe(8, Some(&[]), &[]).is_none(), "the request has ended");
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let last = LastOverruns::default();
        for worker in 0..100 {
            let (request, doing) = ("GET /".into(), "it sleeps".into());
            let report = OverrunReport { worker, request, doing, backtrace: None, seconds_ago: 0 };
            last.add(report, Instant::now());
        }
        assert_eq!(last.all().iter().map(|report| report.worker).collect::<Vec<_>>(), [96, 97, 98, 99]);
    }
}
