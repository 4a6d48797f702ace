//! What is counted and measured of requests, for metrics. The front's event loop adds to plain numbers, which takes some
//! nanoseconds a request; a report has a copy of them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The methods that requests are counted by.
pub const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "other"];

/// Classes of statuses as labels. `left`: the client left before its answer was there.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "left"];

/// The status by which the access log says that the client left.
const CLIENT_LEFT: u16 = 499;

/// The limit of the first bucket. Each octave above it ends at twice the limit of the one before, up to 65.5 s.
const FIRST_BUCKET_US: u64 = 250;
const OCTAVES: usize = 18;
/// Buckets of an octave, all of the same width: a time is known to a quarter of its value.
const PARTS: usize = 4;
/// Buckets with a limit.
const BUCKETS: usize = 1 + OCTAVES * PARTS;

/// Requests by method and class of status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestCounts([[u64; CLASSES.len()]; METHODS.len()]);

impl RequestCounts {
    /// Counts a request with this status. `method`: the index in [`METHODS`].
    pub fn add(&mut self, method: usize, status: u16) {
        let class = match status {
            CLIENT_LEFT => 5,
            100..=599 => usize::from(status / 100) - 1,
            _ => 4, // an application may answer with 600 and more, which clients treat as 5xx (RFC 9110 section 15)
        };
        self.0[method][class] += 1;
    }

    /// Method, class and number of requests, where there were some.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let rows = METHODS.iter().zip(&self.0);
        let all = rows
            .flat_map(|(method, row)| CLASSES.iter().zip(row).map(move |(class, n)| (*method, *class, *n)));
        all.filter(|(_, _, count)| *count > 0)
    }

    /// Number of all requests.
    pub fn all(&self) -> u64 {
        self.iter().map(|(_, _, count)| count).sum()
    }

    /// Number of requests that were answered with a status of 500 or more.
    pub fn errors(&self) -> u64 {
        self.iter().filter(|(_, class, _)| *class == "5xx").map(|(_, _, count)| count).sum()
    }
}

/// A request whose trace is exported, and one of its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// The id of its trace.
    pub trace_id: Box<str>,
    /// How long that took.
    pub time: Duration,
    /// When that was known.
    pub at: SystemTime,
}

/// How long something took: a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The last one has no limit.
    buckets: [u64; BUCKETS + 1],
    sum_us: u64,
    /// The last traced request of each octave that has one, by the octave's place among [`Times::buckets`].
    exemplars: BTreeMap<usize, Exemplar>,
}

impl Default for Times {
    fn default() -> Times {
        Times { buckets: [0; BUCKETS + 1], sum_us: 0, exemplars: BTreeMap::new() }
    }
}

impl Times {
    /// Adds a time, in microseconds.
    pub fn add(&mut self, us: u64) {
        self.buckets[bucket(us)] += 1;
        self.sum_us += us;
    }

    /// Adds the time of a request whose trace is exported, if it has an id here.
    pub fn add_traced(&mut self, us: u64, trace_id: Option<&str>) {
        self.add(us);
        if let Some(trace_id) = trace_id {
            let time = Duration::from_micros(us);
            let exemplar = Exemplar { trace_id: trace_id.into(), time, at: SystemTime::now() };
            self.exemplars.insert(bucket(us).div_ceil(PARTS), exemplar);
        }
    }

    /// The last traced request in this one of [`Times::buckets`], or beyond all of them.
    pub fn exemplar(&self, octave: usize) -> Option<&Exemplar> {
        self.exemplars.get(&octave)
    }

    /// The limit of each bucket but for the last, and the number up to it.
    pub fn fine_buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut sum = 0;
        self.buckets[..BUCKETS].iter().enumerate().map(move |(index, count)| {
            sum += count;
            (limit(index), sum)
        })
    }

    /// The limit of each octave, and the number up to it.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.fine_buckets().step_by(PARTS)
    }

    /// The limit of the bucket in which this share of the times since `earlier` ends: the time itself is at most a fifth
    /// shorter. `None`: there were none; [`Duration::MAX`]: it is longer than all limits.
    pub fn quantile_since(&self, earlier: &Times, share: f64) -> Option<Duration> {
        let all = self.count().saturating_sub(earlier.count());
        let wanted = (all as f64 * share).ceil() as u64;
        let up_to = self.fine_buckets().zip(earlier.fine_buckets());
        let mut up_to = up_to.map(|((limit, now), (_, before))| (limit, now.saturating_sub(before)));
        (all > 0).then(|| up_to.find(|(_, count)| *count >= wanted).map_or(Duration::MAX, |(limit, _)| limit))
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long they took together.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }
}

/// The bucket of a time, in microseconds.
fn bucket(us: u64) -> usize {
    let parts = us.saturating_sub(1).saturating_mul(PARTS as u64) / FIRST_BUCKET_US;
    let bucket = match (u64::BITS - parts.leading_zeros()) as usize {
        0..=2 => 0,
        // Below its highest bit, two bits of the number are the part of the octave.
        bits => 1 + (bits - 3) * PARTS + (parts >> (bits - 3)) as usize % PARTS,
    };
    bucket.min(BUCKETS)
}

/// The limit of a bucket.
fn limit(bucket: usize) -> Duration {
    let Some(above) = bucket.checked_sub(1) else { return Duration::from_micros(FIRST_BUCKET_US) };
    let parts = (PARTS + above % PARTS + 1) as u64;
    Duration::from_micros(((FIRST_BUCKET_US * parts) << (above / PARTS)).div_ceil(PARTS as u64))
}

/// What is counted of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests that were answered.
    pub requests: RequestCounts,
    /// Time in the queue.
    pub queue_time: Times,
    /// Time from the end of that to the end of the answer.
    pub service_time: Times,
    /// Time from the request's head to the first byte of the answer.
    pub first_byte_time: Times,
    /// Requests that were shed: refused, as the queue was full.
    pub shed: u64,
    /// Requests that were refused, as their clients had asked too often.
    pub rate_limited: u64,
    /// Workers that were ready to serve.
    pub workers_started: u64,
    /// Workers that ended after they retired.
    pub workers_retired: u64,
    /// Workers that Highball killed.
    pub workers_killed: u64,
    /// Workers that ended in any other way.
    pub workers_crashed: u64,
}

/// What is counted of one version's requests during a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionFigures {
    /// Requests for its workers.
    pub requests: u64,
    /// Requests that were answered with a status of 500 or more.
    pub errors: u64,
    /// Time from the request's head to the first byte of the answer.
    pub first_byte_time: Times,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_bucket_of_the_next_limit() {
        let mut times = Times::default();
        for us in [0, 250, 251, 500, 501, 65_536_000, 65_536_001, u64::from(u32::MAX)] {
            times.add(us);
        }
        let buckets: Vec<(Duration, u64)> = times.buckets().collect();
        assert_eq!(buckets[0], (Duration::from_micros(250), 2));
        assert_eq!(buckets[1], (Duration::from_micros(500), 4));
        assert_eq!(buckets[2], (Duration::from_millis(1), 5));
        assert_eq!(buckets[18], (Duration::from_micros(65_536_000), 6));
        assert_eq!(times.count(), 8);
        assert_eq!(
            times.sum(),
            Duration::from_micros(250 + 251 + 500 + 501 + 131_072_001 + u64::from(u32::MAX))
        );
    }

    #[test]
    fn each_time_is_in_the_finest_bucket_that_has_room_for_it() {
        let limits: Vec<Duration> = Times::default().fine_buckets().map(|(limit, _)| limit).collect();
        assert!(limits.is_sorted() && limits.len() == BUCKETS);
        assert_eq!(limits[1..6], [313, 375, 438, 500, 625].map(Duration::from_micros));
        assert_eq!(limits.last(), Some(&Duration::from_micros(65_536_000)));
        for us in limits.iter().flat_map(|limit| [limit.as_micros() as u64, limit.as_micros() as u64 + 1]) {
            let mut times = Times::default();
            times.add(us);
            let wanted = limits.iter().find(|limit| limit.as_micros() as u64 >= us).copied();
            let found = times.quantile_since(&Times::default(), 0.5);
            assert_eq!(found, Some(wanted.unwrap_or(Duration::MAX)), "{us}");
        }
    }

    #[test]
    fn the_last_traced_request_of_each_octave_is_known() {
        let mut times = Times::default();
        times.add(300);
        let limits: Vec<u64> = times.buckets().map(|(limit, _)| limit.as_micros() as u64).collect();
        assert!((0..=limits.len()).all(|octave| times.exemplar(octave).is_none()));
        for (octave, limit) in limits.iter().enumerate() {
            times.add_traced(*limit, Some("first"));
            times.add_traced(*limit, Some("last"));
            times.add_traced(*limit, None);
            let exemplar = times.exemplar(octave).unwrap();
            assert_eq!((&*exemplar.trace_id, exemplar.time.as_micros() as u64), ("last", *limit));
            assert!(times.exemplar(octave + 1).is_none());
        }
        times.add_traced(u64::from(u32::MAX), Some("long"));
        assert_eq!(&*times.exemplar(limits.len()).unwrap().trace_id, "long");
        assert_eq!(times.count(), 1 + 3 * limits.len() as u64 + 1);
    }

    #[test]
    fn quantiles_are_of_what_came_since() {
        let mut earlier = Times::default();
        (0..100).for_each(|_| earlier.add(1));
        let mut now = earlier.clone();
        assert_eq!(now.quantile_since(&earlier, 0.5), None);
        (1..=100).for_each(|ms| now.add(ms * 1000));
        let quantiles =
            [0.5, 0.95, 1.0].map(|share| now.quantile_since(&earlier, share).unwrap().as_millis());
        assert_eq!(quantiles, [56, 96, 112]);
    }

    #[test]
    fn labels_are_few_whatever_clients_send() {
        let mut counts = RequestCounts::default();
        for (method, status) in [(0, 200), (8, 204), (8, 999), (0, 499)] {
            counts.add(method, status);
        }
        let found: Vec<_> = counts.iter().collect();
        let expected = [("GET", "2xx", 1), ("GET", "left", 1), ("other", "2xx", 1), ("other", "5xx", 1)];
        assert_eq!((found.as_slice(), counts.all(), counts.errors()), (&expected[..], 4, 1));
    }
}
