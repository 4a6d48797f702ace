//! The schemes under one workload and load.

use super::figure::{Figure, CPU, REQUESTS};
use crate::results::{Errors, Load, Results, Sample, SchemeInfo};
use crate::statistics::{Series, Spread};
use std::ops::RangeInclusive;

/// All schemes under one workload and load.
#[derive(Debug, Clone)]
pub(super) struct Comparison<'a> {
    /// The workload's name.
    pub(super) workload: &'a str,
    pub(super) workload_title: &'a str,
    pub(super) load: Load,
    /// The schemes that run Ruby, by CPU per request.
    pub(super) rows: Vec<Row<'a>>,
    /// Schemes without an application, by CPU per request.
    pub(super) floors: Vec<Row<'a>>,
}

/// One scheme in a comparison.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) scheme: SchemeInfo,
    pub(super) samples: Vec<&'a Sample>,
    /// Of all rounds together.
    pub(super) errors: Errors,
}

impl Row<'_> {
    /// The spread of a figure over the rounds; `None` where it was not measured.
    pub(super) fn spread(&self, figure: &Figure) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| figure.of(sample)))
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors.total() > 0
    }

    /// The spread of a figure that may be compared: of at least two rounds (one tells nothing about how far the
    /// next would be from it), and without errors (a failed request is cheap).
    pub(super) fn comparable(&self, figure: &Figure) -> Option<Spread> {
        let rounds = self.samples.iter().filter(|sample| figure.of(sample).is_some()).count();
        self.spread(figure).filter(|_| rounds >= 2 && !self.has_errors())
    }
}

/// A scheme's possible places, from 1: `2..=4` where its spread overlaps those of two others, so that there is no
/// clear order among them.
pub(super) type Places = RangeInclusive<usize>;

impl<'a> Comparison<'a> {
    /// All comparisons of these results: by workload, then saturation before rates, keep-alive before none, and
    /// few connections before many.
    pub(super) fn all(results: &'a Results) -> Vec<Comparison<'a>> {
        let mut found: Vec<Comparison<'a>> = Vec::new();
        for series in Series::all(results) {
            let row = Row::of(series, results);
            let place =
                found.iter().position(|one| one.workload == series.workload && one.load == series.load);
            let place = place.unwrap_or_else(|| {
                found.push(Comparison::begin(series, results));
                found.len() - 1
            });
            let comparison = &mut found[place];
            if row.scheme.floor { &mut comparison.floors } else { &mut comparison.rows }.push(row);
        }
        let turn =
            |one: &Comparison| results.workloads.iter().position(|workload| workload.name == one.workload);
        found.sort_by(|one, other| {
            let order = |load: Load| (load.rate.is_some(), !load.keep_alive, load.connections);
            turn(one)
                .cmp(&turn(other))
                .then(order(one.load).cmp(&order(other.load)))
                .then(one.load.rate.unwrap_or(0.0).total_cmp(&other.load.rate.unwrap_or(0.0)))
        });
        for comparison in &mut found {
            comparison.rows = best_first(&comparison.rows, &CPU);
            comparison.floors = best_first(&comparison.floors, &CPU);
        }
        found
    }

    fn begin(series: Series<'a>, results: &'a Results) -> Comparison<'a> {
        let workload = results.workloads.iter().find(|workload| workload.name == series.workload);
        Comparison {
            workload: series.workload,
            workload_title: workload.map_or(series.workload, |workload| &workload.title),
            load: series.load,
            rows: Vec::new(),
            floors: Vec::new(),
        }
    }

    /// Schemes and then floors.
    pub(super) fn all_rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().chain(&self.floors)
    }

    /// The places of a scheme by a figure; `None` for a floor and where it may not be compared.
    pub(super) fn places(&self, row: &Row, figure: &Figure) -> Option<Places> {
        let mine = row.comparable(figure).filter(|_| !row.scheme.floor)?;
        let all: Vec<Spread> = self.rows.iter().filter_map(|row| row.comparable(figure)).collect();
        let better = all.iter().filter(|its| figure.is_clearly_better(**its, mine)).count();
        let worse = all.iter().filter(|its| figure.is_clearly_better(mine, **its)).count();
        Some(better + 1..=all.len() - worse)
    }

    /// The candidates for the best by a figure, the best median first: one, where it is clear. None by requests/s
    /// where a rate is offered: every scheme that keeps up reaches just that.
    pub(super) fn leaders(&self, figure: &Figure) -> Vec<Row<'a>> {
        if self.load.rate.is_some() && figure.title == REQUESTS.title {
            return Vec::new();
        }
        let leads = |row: &&Row| self.places(row, figure).is_some_and(|places| *places.start() == 1);
        let leaders: Vec<Row> = self.rows.iter().filter(leads).cloned().collect();
        best_first(&leaders, figure)
    }

    /// The median and the most of a figure over all samples, such as of the stolen time.
    pub(super) fn over_all(&self, figure: &Figure) -> Option<Spread> {
        let samples = self.all_rows().flat_map(|row| &row.samples);
        Spread::of(samples.filter_map(|sample| figure.of(sample)))
    }
}

impl<'a> Row<'a> {
    fn of(series: Series<'a>, results: &'a Results) -> Row<'a> {
        let scheme = results.schemes.iter().find(|scheme| scheme.name == series.scheme);
        Row {
            scheme: scheme.cloned().unwrap_or_else(|| unknown(series.scheme)),
            samples: series.samples().collect(),
            errors: series.errors(),
        }
    }
}

/// Rows by their median of a figure; rows without it come last.
pub(super) fn best_first<'a>(rows: &[Row<'a>], figure: &Figure) -> Vec<Row<'a>> {
    let worst = if figure.is_better(1.0, 0.0) { f64::NEG_INFINITY } else { f64::INFINITY };
    let median = |row: &Row| row.spread(figure).map_or(worst, |spread| spread.median);
    let mut sorted = rows.to_vec();
    sorted.sort_by(|one, other| {
        let order = median(one).total_cmp(&median(other));
        if figure.is_better(1.0, 0.0) {
            order.reverse()
        } else {
            order
        }
    });
    sorted
}

/// A scheme that the results measured and do not describe.
fn unknown(name: &str) -> SchemeInfo {
    SchemeInfo {
        name: name.to_string(),
        title: name.to_string(),
        server: name.to_string(),
        front: None,
        stands_for: None,
        version: String::new(),
        floor: false,
        release: None,
    }
}
