//! The last hour of each application, for the dashboard's charts: requests, errors, times to the first byte, queue and memory.
//! The server keeps it, so that it is there when somebody opens the page.
//!
//! Every few seconds the front is asked for its counters, as for metrics. An application costs [`POINTS`] points of 24 bytes,
//! and only the first [`APPS`] that have had a request or a worker have any: all of them together take at most 2.3 MB.

use super::Sources;
use highball_config::AppId;
use highball_link::{AppProcesses, AppRequests, Times};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Time from one look to the next.
const EVERY: Duration = Duration::from_secs(5);
/// Looks of which a point is made: it is of 20 seconds.
const LOOKS: u32 = 4;
/// Points of an application: an hour.
pub(super) const POINTS: usize = 180;
/// Applications whose last hour is kept.
const APPS: usize = 500;

/// What an application did in the time of a point, or in the last seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Requests answered a second.
    pub(super) requests: f32,
    /// Those with a status from 500 on.
    pub(super) errors: f32,
    /// The times within which half and 95 % of the answers began: limits of buckets. NaN: there were none;
    /// infinite: longer than all limits.
    pub(super) p50_ms: f32,
    pub(super) p95_ms: f32,
    /// The longest queue that was seen.
    pub(super) queue: u32,
    /// Memory of its processes.
    pub(super) memory_mib: u32,
}

/// The counters of an application at a moment.
#[derive(Debug, Clone)]
struct Counters {
    at: Instant,
    answered: u64,
    errors: u64,
    times: Times,
}

#[derive(Debug)]
struct Record {
    /// Oldest first.
    points: VecDeque<Point>,
    /// At the begin of the point that is being made.
    begin: Counters,
    looks: u32,
    /// The longest queue since then.
    queue: usize,
    /// At the look before the last one, and what the application did since then.
    before: Counters,
    last: Option<Point>,
}

/// The last hour of each application.
#[derive(Debug, Default)]
pub(crate) struct LastHour(Mutex<BTreeMap<AppId, Record>>);

impl LastHour {
    /// Looks at the server, again and again.
    pub(super) async fn keep(sources: Sources) {
        loop {
            if let (Some(front), Some(supervisor)) = (sources.front().await, sources.supervisor().await) {
                sources.last_hour.add(Instant::now(), &front.apps, &supervisor.apps);
            }
            sleep(EVERY).await;
        }
    }

    fn add(&self, at: Instant, requests: &[AppRequests], processes: &[AppProcesses]) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|id, _| requests.iter().any(|app| app.app == *id));
        for app in requests {
            let processes = processes.iter().find(|processes| processes.id == app.app);
            let memory_mib = processes.map_or(0, |processes| processes.memory.bytes >> 20) as u32;
            let counters = Counters::of(at, app);
            let is_known = records.contains_key(&app.app);
            let is_used =
                counters.answered > 0 || processes.is_some_and(|processes| !processes.workers.is_empty());
            if is_known || (is_used && records.len() < APPS) {
                records
                    .entry(app.app)
                    .or_insert_with(|| Record::new(&counters))
                    .add(counters, app.queue, memory_mib);
            }
        }
    }

    /// Calls `f` with the points of an application, oldest first, the last one of the seconds since then.
    pub(super) fn with<T>(&self, app: AppId, f: impl FnOnce(&VecDeque<Point>, Option<Point>) -> T) -> T {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match records.get(&app) {
            Some(record) => f(&record.points, record.last),
            None => f(&VecDeque::new(), None),
        }
    }
}

impl Counters {
    fn of(at: Instant, app: &AppRequests) -> Counters {
        let requests = &app.figures.requests;
        let times = app.figures.first_byte_time.clone();
        Counters { at, answered: requests.all(), errors: requests.errors(), times }
    }

    /// What happened since `earlier`; `None`: no time has passed.
    fn since(&self, earlier: &Counters, queue: usize, memory_mib: u32) -> Option<Point> {
        let seconds = (self.at - earlier.at).as_secs_f32();
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f32 / seconds;
        let ms = |share| match self.times.quantile_since(&earlier.times, share) {
            None => f32::NAN,
            Some(Duration::MAX) => f32::INFINITY,
            Some(time) => time.as_secs_f32() * 1e3,
        };
        (seconds > 0.0).then(|| Point {
            requests: rate(self.answered, earlier.answered),
            errors: rate(self.errors, earlier.errors),
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            queue: queue as u32,
            memory_mib,
        })
    }
}

impl Record {
    fn new(now: &Counters) -> Record {
        let [begin, before] = [now.clone(), now.clone()];
        Record { points: VecDeque::new(), begin, looks: 0, queue: 0, before, last: None }
    }

    fn add(&mut self, now: Counters, queue: usize, memory_mib: u32) {
        self.queue = self.queue.max(queue);
        self.last = now.since(&self.before, queue, memory_mib).or(self.last);
        self.looks += 1;
        if self.looks > LOOKS {
            if let Some(point) = now.since(&self.begin, self.queue, memory_mib) {
                self.points.push_back(point);
                self.points.drain(..self.points.len().saturating_sub(POINTS));
            }
            (self.begin, self.looks, self.queue) = (now.clone(), 1, 0);
        }
        self.before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(id: u32, requests: u64, queue: usize) -> AppRequests {
        let mut app = AppRequests { app: AppId(id), queue, ..AppRequests::default() };
        for _ in 0..requests {
            app.figures.requests.add(0, 200);
            app.figures.first_byte_time.add(10_000);
        }
        app
    }

    #[test]
    fn an_hour_is_kept() {
        let (hour, begin) = (LastHour::default(), Instant::now());
        for look in 0..1000_u32 {
            let queue = if look % LOOKS == 1 { 7 } else { 0 };
            hour.add(begin + EVERY * look, &[app(1, u64::from(look) * 50, queue)], &[]);
        }
        hour.with(AppId(1), |points, last| {
            assert_eq!(points.len(), POINTS);
            let last = last.unwrap();
            assert_eq!((last.requests, last.errors, last.p95_ms), (10.0, 0.0, 10.0));
            assert!(points.iter().all(|point| point.queue == 7 && point.requests == 10.0), "{points:?}");
        });
    }

    #[test]
    fn times_may_be_longer_than_all_limits() {
        let (hour, begin) = (LastHour::default(), Instant::now());
        hour.add(begin, &[app(1, 1, 0)], &[]);
        let mut later = app(1, 2, 0);
        later.figures.first_byte_time = app(1, 1, 0).figures.first_byte_time;
        later.figures.first_byte_time.add(100_000_000);
        hour.add(begin + EVERY, &[later], &[]);
        hour.with(AppId(1), |_, last| assert_eq!(last.unwrap().p95_ms, f32::INFINITY));
    }

    #[test]
    fn only_so_many_applications_have_one() {
        let (hour, begin) = (LastHour::default(), Instant::now());
        let all: Vec<AppRequests> = (0..APPS as u32 + 10).map(|id| app(id, u64::from(id > 0), 0)).collect();
        hour.add(begin, &all, &[]);
        assert_eq!(hour.0.lock().unwrap().len(), APPS);
        assert!(!hour.0.lock().unwrap().contains_key(&AppId(0)), "it was not used");
        hour.add(begin + EVERY, &all[1..3], &[]);
        assert_eq!(hour.0.lock().unwrap().len(), 2, "the others were removed");
        hour.with(AppId(1), |_, last| assert!(last.unwrap().p50_ms.is_nan()));
    }

    #[test]
    fn points_are_small() {
        assert_eq!(size_of::<Point>() * POINTS * APPS, 2_160_000);
    }
}
