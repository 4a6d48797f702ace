//! Medians and spreads.

use crate::results::{Errors, Load, Results, Sample};

/// The median of some figures, and the smallest and the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// In the middle, or the mean of the two there.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// `None` without figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Spread { median, least, most })
    }

    /// Whether both have figures in common.
    pub fn overlaps(&self, other: &Spread) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

/// All rounds of one scheme under one load.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// The scheme's name.
    pub scheme: &'a str,
    /// The workload's name.
    pub workload: &'a str,
    /// The load.
    pub load: Load,
    results: &'a Results,
}

impl<'a> Series<'a> {
    /// The series of these results, in the order in which they were begun.
    pub fn all(results: &'a Results) -> Vec<Series<'a>> {
        let mut found: Vec<Series<'a>> = Vec::new();
        for sample in &results.samples {
            if !found.iter().any(|series| series.holds(sample)) {
                let (scheme, workload) = (&sample.scheme, &sample.workload);
                found.push(Series { scheme, workload, load: sample.load, results });
            }
        }
        found
    }

    fn holds(&self, sample: &Sample) -> bool {
        sample.scheme == self.scheme && sample.workload == self.workload && sample.load == self.load
    }

    /// Its samples, one per round.
    pub fn samples(self) -> impl Iterator<Item = &'a Sample> {
        self.results.samples.iter().filter(move |sample| self.holds(sample))
    }

    /// The spread of a figure over the rounds.
    pub fn spread(self, figure: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples().map(figure)).expect("a series has a sample")
    }

    /// The errors of all rounds together.
    pub fn errors(self) -> Errors {
        self.samples().fold(Errors::default(), |sum, sample| sum.plus(&sample.errors))
    }
}
