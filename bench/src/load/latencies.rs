//! What was measured, one by one.

use crate::results::Latency;

/// Latencies in µs and how often each was measured, ascending.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Latencies(Vec<(u64, u64)>);

impl Latencies {
    /// Of (µs, count) in ascending order.
    pub(crate) fn counted(counts: impl IntoIterator<Item = (u64, u64)>) -> Latencies {
        Latencies(counts.into_iter().filter(|&(_, count)| count > 0).collect())
    }

    /// Of single measurements in µs.
    pub(crate) fn measured(mut all_us: Vec<u64>) -> Latencies {
        all_us.sort_unstable();
        let same = all_us.chunk_by(|one, next| one == next);
        Latencies(same.map(|same| (same[0], same.len() as u64)).collect())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|&(_, count)| count).sum()
    }

    /// In ms; all 0 when nothing was measured.
    pub(crate) fn summary(&self) -> Latency {
        let count = self.count() as f64;
        let Some(&(most_us, _)) = self.0.last() else { return Latency::default() };
        let mean_us = self.0.iter().map(|&(us, count)| us as f64 * count as f64).sum::<f64>() / count;
        let squares = self.0.iter().map(|&(us, count)| (us as f64 - mean_us).powi(2) * count as f64);
        Latency {
            mean: mean_us / 1e3,
            deviation: (squares.sum::<f64>() / count).sqrt() / 1e3,
            p50: self.percentile_ms(0.5),
            p90: self.percentile_ms(0.9),
            p99: self.percentile_ms(0.99),
            p999: self.percentile_ms(0.999),
            max: most_us as f64 / 1e3,
        }
    }

    /// The least latency that this share of all do not exceed (nearest rank).
    fn percentile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.count() as f64).ceil() as u64;
        let mut until_here = 0;
        let reaches = |&&(_, count): &&(u64, u64)| {
            until_here += count;
            until_here >= rank
        };
        self.0.iter().find(reaches).map_or(0.0, |&(us, _)| us as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let summary = Latencies::measured((1..=1000).rev().map(|ms| ms * 1000).collect()).summary();
        assert_eq!((summary.p50, summary.p90, summary.p99), (500.0, 900.0, 990.0));
        assert_eq!((summary.p999, summary.max, summary.mean), (999.0, 1000.0, 500.5));
        assert!((summary.deviation - 288.675).abs() < 0.001);
    }

    #[test]
    fn counts_and_single_measurements_are_the_same() {
        let single = Latencies::measured(vec![7, 5, 7, 7]);
        assert_eq!(single, Latencies::counted([(5, 1), (6, 0), (7, 3)]));
        assert_eq!(single.count(), 4);
        assert_eq!(Latencies::default().summary().max, 0.0);
    }
}
