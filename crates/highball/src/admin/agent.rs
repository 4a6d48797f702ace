//! The agent check of HAProxy: a load balancer connects, and gets one line that says how it should treat this server
//! (HAProxy's manual, `agent-check`). The balancer may send the name of an application before that (`agent-send`).
//!
//! | line | when |
//! | --- | --- |
//! | `up ready 75%` | it serves; the weight comes from [`super::weight`] |
//! | `down #reason` | it boots for the first time, or no application can answer |
//! | `drain` | it will stop soon, and serves as before (`drain_grace`) |
//! | `maint` | it has stopped accepting, and finishes its requests |
//!
//! A balancer keeps `drain` and `maint` until it reads `ready`, so each line of a server that serves has that word. `maint`
//! rather than `down`: a balancer may close the connections to a server that is down, and these still get their answers.

use super::health::{self, AppHealth};
use super::weight::{Gauge, Observed};
use super::Sources;
use crate::control::callers::Caller;
use highball_config::AppId;
use highball_link::{AppRequests, FrontReport, Times};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a balancer has for the name of an application. It does not announce that it sends one.
const NAME_TIME: Duration = Duration::from_millis(300);
/// The longest name that is read.
const NAME_BYTES: usize = 256;
/// How long a report of the front counts: those who ask more often, or are many, cost its event loop nothing.
const FRESH: Duration = Duration::from_millis(100);
/// The time for the answer of a connection that has to make room.
const PRESSED_TIME: Duration = Duration::from_millis(100);
/// What a request that took longer counts as.
const LONGEST: Duration = Duration::from_secs(1);
/// The most letters of a reason.
const REASON_LETTERS: usize = 200;

/// What is known of the applications, for all balancers that ask.
#[derive(Debug, Default)]
pub(crate) struct Agent(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// When the front was asked last, and what it reported; `None`: it did not answer.
    last: Option<(Instant, Option<FrontReport>)>,
    /// By application; `None`: all of them together.
    gauges: BTreeMap<Option<AppId>, Gauge>,
}

/// Answers a balancer. A balancer that names no application sends nothing at all: where its connection has to make room, it gets
/// its answer at once, if the front reports at once. Such a connection is not counted any more, so it ends soon in any case.
pub(super) async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    caller: &Caller,
    sources: &Sources,
) -> io::Result<()> {
    let asked = async {
        let name = read_name(stream, caller).await;
        caller.has_asked();
        line(sources, &name).await
    };
    let asked = tokio::select! {
        line = asked => Some(line),
        () = caller.dismissed() => None,
    };
    match asked {
        Some(line) => tokio::select! {
            answered = caller.answer(stream, line.as_bytes()) => answered,
            () = caller.dismissed() => Ok(()),
        },
        None => {
            let answer = async {
                let line = line(sources, "").await;
                caller.answer(stream, line.as_bytes()).await
            };
            timeout(PRESSED_TIME, answer).await.unwrap_or(Ok(()))
        }
    }
}

async fn line(sources: &Sources, name: &str) -> String {
    let mut known = sources.agent.0.lock().await;
    known.refresh(sources).await;
    known.line(sources, name)
}

/// The first line without its blanks; empty if none comes in time.
async fn read_name(stream: &mut (impl AsyncRead + Unpin), caller: &Caller) -> String {
    let mut bytes = Vec::with_capacity(NAME_BYTES);
    let is_whole = |bytes: &[u8]| (bytes.contains(&b'\n') || bytes.len() >= NAME_BYTES).then_some(());
    let _ = timeout(NAME_TIME, caller.hear(stream, &mut bytes, is_whole)).await; // what has come is the name
    bytes.truncate(NAME_BYTES);
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).trim().to_owned()
}

impl Known {
    /// Asks the front, if that is some time ago.
    async fn refresh(&mut self, sources: &Sources) {
        if self.last.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH) {
            return;
        }
        let report = sources.front().await;
        let now = Instant::now();
        if let Some(report) = &report {
            self.observe(report, now);
        }
        self.last = Some((now, report));
    }

    fn observe(&mut self, report: &FrontReport, now: Instant) {
        let before = self.last.as_ref().and_then(|(at, report)| Some((now - *at, report.as_ref()?)));
        let of_app = |load: &AppRequests| {
            let same = |(elapsed, report): (Duration, &'_ FrontReport)| {
                let earlier = report.apps.iter().find(|earlier| earlier.app == load.app)?;
                Some(observed(load, Some((elapsed, earlier))))
            };
            (Some(load.app), before.and_then(same).unwrap_or_else(|| observed(load, None)))
        };
        let mut all: Vec<(Option<AppId>, Observed)> = report.apps.iter().map(of_app).collect();
        let together = all.iter().fold(Observed::default(), |sum, (_, observed)| sum.and(*observed));
        all.push((None, together));
        self.gauges.retain(|app, _| all.iter().any(|(known, _)| known == app));
        for (app, observed) in all {
            // An application that came later is seen for the first time.
            let elapsed = before.map(|(elapsed, _)| elapsed).filter(|_| self.gauges.contains_key(&app));
            self.gauges.entry(app).or_default().observe(&observed, elapsed);
        }
    }

    /// The answer for this application, or without a name for all of them.
    fn line(&self, sources: &Sources, name: &str) -> String {
        let Some((_, Some(report))) = &self.last else {
            return down("the event loop of the server does not answer");
        };
        match (report.server.accepts, report.server.is_stopping) {
            (false, _) => return "maint\n".into(),
            (true, true) => return "drain\n".into(),
            (true, false) => {}
        }
        let mut apps = health::apps(sources, report);
        let mut app = None;
        if !name.is_empty() {
            let settings = sources.configuration.now();
            app = settings.apps.iter().find(|app| app.name == name).map(|app| app.id);
            apps.retain(|health: &AppHealth| health.name == name);
            if apps.is_empty() {
                return down("there is no application with this name");
            }
        }
        if let Some(why) = health::why_not(false, &apps) {
            return down(&why);
        }
        let weight = self.gauges.get(&app).map_or(100, Gauge::weight);
        format!("up ready {weight}%\n")
    }
}

/// The reason has letters of ASCII alone: it ends the line, and balancers log it.
fn down(why: &str) -> String {
    let plain = |letter: char| if letter == ' ' || letter.is_ascii_graphic() { letter } else { '?' };
    format!("down #{}\n", why.chars().take(REASON_LETTERS).map(plain).collect::<String>())
}

/// What was observed of an application since an earlier report.
fn observed(load: &AppRequests, earlier: Option<(Duration, &AppRequests)>) -> Observed {
    let serving = || load.workers.iter().filter(|worker| worker.serves);
    let threads: usize = serving().map(|worker| worker.threads).sum();
    let now: usize = serving().map(|worker| worker.in_flight + worker.placed).sum();
    let mut observed = Observed {
        threads: threads as f64,
        busy: now as f64,
        queue: load.queue as f64,
        ..Observed::default()
    };
    if let Some((elapsed, earlier)) = earlier {
        let (new, old) = (&load.figures, &earlier.figures);
        let served = new.service_time.sum().saturating_sub(old.service_time.sum()).as_secs_f64();
        // Requests that have ended count with their mean, longer ones while they last.
        let mean = served / elapsed.as_secs_f64().max(FRESH.as_secs_f64());
        observed.busy = observed.busy.max(mean.min(observed.threads));
        observed.waited = new.queue_time.sum().saturating_sub(old.queue_time.sum()).as_secs_f64();
        observed.waits = new.queue_time.count().saturating_sub(old.queue_time.count()) as f64;
        (observed.served, observed.ends) = time_and_number(&new.service_time, &old.service_time);
    }
    observed
}

/// How long requests took that have ended since an earlier report, in seconds, and how many there were. None counts as longer
/// than a second, by its bucket: a stream of minutes says nothing about the speed of others.
fn time_and_number(new: &Times, old: &Times) -> (f64, f64) {
    let (mut time, mut number) = (0.0, 0.0);
    for ((limit, all), (_, earlier)) in new.buckets().zip(old.buckets()) {
        let up_to = all.saturating_sub(earlier) as f64;
        // The middle of the bucket: each begins at half of its limit.
        time += (up_to - number) * (0.75 * limit.as_secs_f64()).min(LONGEST.as_secs_f64());
        number = up_to;
    }
    let longer = new.count().saturating_sub(old.count()) as f64 - number;
    (time + longer * LONGEST.as_secs_f64(), number + longer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::callers::{CallerSource, Callers};
    use highball_link::{ServerRequests, WorkerRequests};

    fn load(app: u32, in_flight: usize, queue: usize) -> AppRequests {
        let worker = WorkerRequests { threads: 4, serves: true, in_flight, ..WorkerRequests::default() };
        AppRequests { app: AppId(app), workers: vec![worker], queue, ..AppRequests::default() }
    }

    fn report(apps: Vec<AppRequests>) -> FrontReport {
        let server = ServerRequests { accepts: true, ..ServerRequests::default() };
        FrontReport { server, apps }
    }

    #[test]
    fn each_application_has_its_weight_and_all_together_have_one() {
        let mut known = Known::default();
        known.observe(&report(vec![load(1, 2, 0), load(2, 0, 0)]), Instant::now());
        let weight = |known: &Known, app: Option<u32>| known.gauges[&app.map(AppId)].weight();
        assert_eq!([Some(1), Some(2), None].map(|app| weight(&known, app)), [50, 100, 75]);
        known.observe(&report(vec![load(2, 0, 0)]), Instant::now());
        assert_eq!(known.gauges.len(), 2, "what was removed is forgotten");
    }

    #[test]
    fn short_requests_count_with_their_mean() {
        let second = Duration::from_secs(1);
        let (earlier, now) = (load(1, 0, 0), load(1, 1, 3));
        let seen = observed(&now, Some((second, &earlier)));
        assert_eq!((seen.threads, seen.busy, seen.queue), (4.0, 1.0, 3.0));
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(down("failed: caf\u{e9}\nup"), "down #failed: caf??up\n");
        assert_eq!(down(&"x".repeat(1000)).len(), "down #\n".len() + REASON_LETTERS);
    }

    #[tokio::test]
    async fn a_name_is_a_line_or_all_that_comes_in_time() {
        let caller = Callers::new("balancers", 1).add(CallerSource::Unknown);
        for (bytes, name) in
            [(&b"blog\nmore"[..], "blog"), (b" blog \r\n", "blog"), (b"blog", "blog"), (b"", "")]
        {
            assert_eq!(read_name(&mut &bytes[..], &caller).await, name);
        }
        let long = vec![b'x'; 1000];
        assert_eq!(read_name(&mut &long[..], &caller).await.len(), NAME_BYTES);
        let (mut ours, _theirs) = tokio::io::duplex(1);
        assert_eq!(read_name(&mut ours, &caller).await, "", "nothing comes, and the connection stays open");
    }
}
