//! The share of requests that this server should get, as a weight in percent of what the balancer has configured.
//!
//! ```text
//! load       = (busy threads + waiting requests) / threads
//! free share = 1 - load, at least 0.1
//! speed      = 50 ms / service time, from 0.1 to 1
//! weight     = 100 % * free share * speed / (1 + queue time / 100 ms), at least 1 %
//! ```
//!
//! All of them are smoothed. With the free share as its weight, a slower server settles at a load below 1 as long as all
//! servers together can carry the load. The speed counts while all have free threads: a balancer that looks at open requests
//! (leastconn) would otherwise keep as many threads of a slow server busy as of a fast one, and each of their requests would
//! take long. The queue time tells servers apart that are all overloaded.

use std::time::Duration;

/// The time in which a smoothed value covers 63 % of the way to a new one. With a check a second, a server at an eighth of
/// the others' speed still settles. Half of this time would make its weight swing.
const SMOOTHING_TIME: Duration = Duration::from_secs(4);
/// The mean time in the queue that halves the weight.
const HALVING_QUEUE_TIME: Duration = Duration::from_millis(100);
/// A longer time counts as this one, with which the weight is about the least: a burst that has ended is forgotten in seconds.
const MOST_QUEUE_TIME: Duration = Duration::from_secs(1);
/// The free share of a server without a free thread. The queue time takes the rest.
const LEAST_FREE_SHARE: f64 = 0.1;
/// The mean service time from which on a longer one lowers the weight, and that from which on it does not any more. Shorter ones
/// would not be worth it; longer ones would leave too few steps of a percent for the load.
const FULL_SPEED_TIME: Duration = Duration::from_millis(50);
const LEAST_SPEED: f64 = 0.1;
/// Requests per second without any time that count beside the others: what is known of a server that gets none is forgotten.
const FORGETTING_RATE: f64 = 0.25;
/// A weight that differs less from the last one, as a share of that, is not reported.
const NOTABLE_CHANGE: f64 = 0.1;

/// What was observed since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Observed {
    /// Serving threads; with none, and no requests that wait, everything is free (a static site, a sleeping application).
    pub(super) threads: f64,
    /// Threads that were busy.
    pub(super) busy: f64,
    /// Requests that wait.
    pub(super) queue: f64,
    /// Time that requests waited, summed, in seconds.
    pub(super) waited: f64,
    /// Requests that waited.
    pub(super) waits: f64,
    /// Time that threads had the requests that have ended, summed, in seconds.
    pub(super) served: f64,
    /// Requests that have ended.
    pub(super) ends: f64,
}

impl Observed {
    /// Of both together.
    pub(super) fn and(self, other: Observed) -> Observed {
        Observed {
            threads: self.threads + other.threads,
            busy: self.busy + other.busy,
            queue: self.queue + other.queue,
            waited: self.waited + other.waited,
            waits: self.waits + other.waits,
            served: self.served + other.served,
            ends: self.ends + other.ends,
        }
    }

    fn load(&self) -> f64 {
        let requests = self.busy + self.queue;
        if self.threads > 0.0 {
            requests / self.threads
        } else {
            f64::from(u8::from(requests > 0.0))
        }
    }

    /// In seconds. Where requests wait and none has begun, they wait since the last look or longer.
    fn queue_time(&self, elapsed: Duration) -> f64 {
        let time = match (self.waits > 0.0, self.queue > 0.0) {
            (true, _) => self.waited / self.waits,
            (false, true) => elapsed.as_secs_f64(),
            (false, false) => 0.0,
        };
        time.min(MOST_QUEUE_TIME.as_secs_f64())
    }
}

/// The smoothed values, and the weight that was last reported.
#[derive(Debug, Clone, Default)]
pub(super) struct Gauge {
    load: f64,
    queue_time: f64,
    /// Of the requests that have ended: seconds of service, and number, each per second.
    served: f64,
    ends: f64,
    reported: Option<f64>,
}

impl Gauge {
    /// Takes note of what was observed in the time since the last look; `None`: it is the first one.
    pub(super) fn observe(&mut self, observed: &Observed, elapsed: Option<Duration>) {
        let share =
            elapsed.map_or(1.0, |time| 1.0 - (-time.as_secs_f64() / SMOOTHING_TIME.as_secs_f64()).exp());
        self.load += share * (observed.load() - self.load);
        self.queue_time += share * (observed.queue_time(elapsed.unwrap_or_default()) - self.queue_time);
        if let Some(seconds) = elapsed.map(|time| time.as_secs_f64()).filter(|seconds| *seconds > 0.0) {
            self.served += share * (observed.served / seconds - self.served);
            self.ends += share * (observed.ends / seconds - self.ends);
        }
        let weight = self.exact_weight();
        let is_notable =
            |reported: f64| (weight - reported).abs() > reported * NOTABLE_CHANGE || weight >= 99.5;
        if self.reported.is_none_or(is_notable) {
            self.reported = Some(weight);
        }
    }

    fn exact_weight(&self) -> f64 {
        let free_share = (1.0 - self.load).clamp(LEAST_FREE_SHARE, 1.0);
        100.0 * free_share * self.speed() / (1.0 + self.queue_time / HALVING_QUEUE_TIME.as_secs_f64())
    }

    fn speed(&self) -> f64 {
        let service_time = self.served / (self.ends + FORGETTING_RATE);
        if service_time > 0.0 {
            (FULL_SPEED_TIME.as_secs_f64() / service_time).clamp(LEAST_SPEED, 1.0)
        } else {
            1.0
        }
    }

    /// In percent, from 1 to 100.
    pub(super) fn weight(&self) -> u8 {
        let percent = self.reported.unwrap_or(100.0).round().clamp(1.0, 100.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 1 to 100")]
        let percent = percent as u8;
        percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));

    fn busy(busy: f64, queue: f64) -> Observed {
        Observed { threads: 10.0, busy, queue, ..Observed::default() }
    }

    fn first(observed: &Observed) -> u8 {
        let mut gauge = Gauge::default();
        gauge.observe(observed, None);
        gauge.weight()
    }

    #[test]
    fn the_weight_is_the_free_share() {
        assert_eq!(first(&busy(0.0, 0.0)), 100);
        assert_eq!(first(&busy(4.0, 0.0)), 60);
        assert_eq!(first(&busy(10.0, 0.0)), 10);
        assert_eq!(first(&Observed::default()), 100, "a static site has no threads");
        let none = Observed { queue: 1.0, ..Observed::default() };
        assert_eq!(first(&none), 10, "requests wait and there is no worker");
    }

    #[test]
    fn queue_time_lowers_it() {
        let waited = |seconds: f64| Observed { waited: seconds * 5.0, waits: 5.0, ..busy(5.0, 0.0) };
        assert_eq!(first(&waited(0.1)), 25);
        let mut gauge = Gauge::default();
        gauge.observe(&waited(1000.0), None);
        assert_eq!(gauge.weight(), 5);
        gauge.observe(&busy(5.0, 0.0), Some(Duration::from_secs(15)));
        assert!(gauge.weight() > 30, "a burst is forgotten: {gauge:?}");
        let both = waited(0.1).and(busy(0.0, 0.0));
        assert_eq!((both.threads, both.load(), both.queue_time(Duration::ZERO)), (20.0, 0.25, 0.1));
        assert_eq!(
            busy(0.0, 3.0).queue_time(Duration::from_millis(500)),
            0.5,
            "no waiting request has begun"
        );
    }

    #[test]
    fn small_changes_are_not_reported() {
        let mut gauge = Gauge::default();
        gauge.observe(&busy(5.0, 0.0), None);
        let mut reported = Vec::new();
        for load in [5.2, 4.8, 5.3, 4.7, 5.4] {
            gauge.observe(&busy(load, 0.0), SECOND);
            reported.push(gauge.weight());
        }
        assert_eq!(reported, [50; 5]);
        (0..60).for_each(|_| gauge.observe(&busy(0.0, 0.0), SECOND));
        assert_eq!(gauge.weight(), 100, "an idle server reports all of its weight");
    }

    #[test]
    fn long_requests_lower_it() {
        let served = |ms: f64| {
            let mut gauge = Gauge::default();
            let observed = Observed { served: 20.0 * ms / 1000.0, ends: 20.0, ..busy(0.0, 0.0) };
            (0..30).for_each(|_| gauge.observe(&observed, SECOND));
            gauge
        };
        assert_eq!([1.0, 40.0].map(|ms| served(ms).weight()), [100; 2]);
        // A value within a tenth of the last is not reported.
        for (ms, weights) in [(100.0, 50..=55), (200.0, 25..=28), (5000.0, 10..=11)] {
            assert!(weights.contains(&served(ms).weight()), "{ms} ms: {:?}", served(ms));
        }
        let mut idle = served(5000.0);
        (0..60).for_each(|_| idle.observe(&busy(0.0, 0.0), SECOND));
        assert_eq!(idle.weight(), 100, "what was long ago is forgotten");
    }

    /// How a balancer that sends a request to the server with the fewest open ones for its weight shares out requests, each of
    /// which takes `service_ms`: the means in balance, in open requests. There are threads enough.
    fn open_requests(service_ms: &[f64], per_second: f64) -> Vec<f64> {
        let mut gauges = vec![Gauge::default(); service_ms.len()];
        let mut open = vec![0.0; service_ms.len()];
        for _ in 0..120 {
            let weights: Vec<f64> = gauges.iter().map(|gauge| f64::from(gauge.weight())).collect();
            let rates: f64 = weights.iter().zip(service_ms).map(|(weight, ms)| weight * 1000.0 / ms).sum();
            for (server, ms) in service_ms.iter().enumerate() {
                open[server] = weights[server] * per_second / rates;
                let ends = open[server] * 1000.0 / ms;
                let observed = Observed { served: open[server], ends, ..busy(open[server], 0.0) };
                gauges[server].observe(&observed, SECOND);
            }
        }
        open
    }

    #[test]
    fn a_slow_server_gets_few_requests_while_others_are_free() {
        let few = open_requests(&[40.0, 40.0, 40.0, 160.0], 180.0);
        assert!(few[3] < few[0] * 0.5, "a quarter of the speed: {few:?}");
        let many = open_requests(&[40.0, 40.0, 40.0, 160.0], 700.0);
        assert!(many[3] > many[0] * 0.5, "the others are busy: {many:?}");
        assert!(many.iter().all(|open| *open < 10.0), "one has too many: {many:?}");
        let equal = open_requests(&[160.0; 4], 100.0);
        assert!(equal.iter().all(|open| (*open - 4.0).abs() < 0.1), "equal ones have as many: {equal:?}");
    }

    /// Servers that get requests by their weights: `speeds` and `demand` in threads' worth of work.
    fn settle(speeds: &[f64], demand: f64, seconds: usize) -> Vec<Vec<f64>> {
        const REQUEST_SECONDS: f64 = 0.03; // on a server of speed 1
        let mut gauges = vec![Gauge::default(); speeds.len()];
        let mut queues = vec![0.0_f64; speeds.len()];
        let mut history = Vec::new();
        for _ in 0..seconds {
            let weights: Vec<f64> = gauges.iter().map(|gauge| f64::from(gauge.weight())).collect();
            let sum: f64 = weights.iter().sum();
            let loads = (0..speeds.len()).map(|server| {
                let arriving = demand * weights[server] / sum / speeds[server];
                let work = queues[server] + arriving;
                queues[server] = (work - 10.0).max(0.0);
                let mean_wait = queues[server] / 10.0;
                let observed = Observed {
                    waited: mean_wait * 10.0,
                    waits: 10.0,
                    served: work.min(10.0),
                    ends: work.min(10.0) * speeds[server] / REQUEST_SECONDS,
                    ..busy(work.min(10.0), queues[server])
                };
                gauges[server].observe(&observed, SECOND);
                arriving / 10.0
            });
            history.push(loads.collect());
        }
        history
    }

    #[test]
    fn a_slow_server_settles_below_its_capacity() {
        // One at a quarter, and one at an eighth of the speed of the others.
        for (speeds, demand) in [([1.0, 1.0, 1.0, 0.25], 20.0), ([1.0, 1.0, 1.0, 0.125], 18.0)] {
            let history = settle(&speeds, demand, 120);
            for loads in &history[60..] {
                assert!(loads[3] < 1.0, "the slow one is overloaded: {loads:?}");
                assert!(loads.iter().all(|load| *load > 0.2), "one gets almost nothing: {loads:?}");
            }
            let last: Vec<f64> = history[90..].iter().map(|loads| loads[3]).collect();
            let swing = last.iter().fold(0.0_f64, |most, load| most.max((load - last[0]).abs()));
            assert!(swing < 0.2, "its load swings by {swing}: {last:?}");
        }
    }
}
