//! Where Highball is not the best.

use super::comparison::{Comparison, Row};
use super::figure::{Figure, COLD_START, CPU, MEMORY, P50, P99, REQUESTS};
use super::words;
use crate::results::SchemeInfo;
use crate::statistics::Spread;

/// The figures that it is judged by.
const FIGURES: [Figure; 6] = [CPU, REQUESTS, P50, P99, MEMORY, COLD_START];

/// How Highball stands against others.
#[derive(Debug)]
pub(super) struct Standing<'c, 'a> {
    /// Where it stands: `Alone`.
    pub(super) title: &'static str,
    /// Against whom: `every other scheme`.
    against: &'static str,
    /// Comparisons by one figure in which it is clearly better than all others.
    best: usize,
    /// Those in which none is clearly better, and one at least is in no clear order with it.
    unclear: usize,
    pub(super) beaten: Vec<Beaten<'c, 'a>>,
    /// Measurements of Highball that had errors: they are not compared at all.
    with_errors: Vec<(&'c Comparison<'a>, &'c Row<'a>)>,
}

/// Highball is clearly worse than these by this figure.
#[derive(Debug)]
pub(super) struct Beaten<'c, 'a> {
    pub(super) comparison: &'c Comparison<'a>,
    pub(super) figure: Figure,
    pub(super) highball: &'c SchemeInfo,
    pub(super) spread: Spread,
    /// The best first.
    pub(super) by: Vec<(&'c SchemeInfo, Spread)>,
}

impl Beaten<'_, '_> {
    /// The three best and their figures: `Iodine (9.1); Puma (10.2); Thin (11.0); and 4 more`.
    pub(super) fn by_whom(&self) -> String {
        let best = self.by.iter().take(3);
        let named: Vec<String> = best
            .map(|(scheme, its)| format!("{} ({})", scheme.title, self.figure.write(its.median)))
            .collect();
        match self.by.len() - named.len() {
            0 => named.join("; "),
            more => format!("{}; and {more} more", named.join("; ")),
        }
    }
}

/// Of Highball alone, and of Highball behind front ends; without what was not measured together with others.
pub(super) fn standings<'c, 'a>(comparisons: &'c [Comparison<'a>]) -> Vec<Standing<'c, 'a>> {
    let mut alone = Standing::new("Alone", "every other scheme");
    let mut behind = Standing::new("Behind a front end", "the others behind the same");
    for (index, comparison) in comparisons.iter().enumerate() {
        let first = !comparisons[..index].iter().any(|other| other.workload == comparison.workload);
        let figures: Vec<&Figure> = FIGURES.iter().filter(|one| counts(one, comparison, first)).collect();
        for row in comparison.rows.iter().filter(|row| is_highball(row)) {
            let standing = if row.scheme.front.is_none() { &mut alone } else { &mut behind };
            let rivals: Vec<&Row> = comparison.rows.iter().filter(|other| are_rivals(row, other)).collect();
            if row.has_errors() && !rivals.is_empty() {
                standing.with_errors.push((comparison, row));
            } else {
                standing.judge(comparison, row, &rivals, &figures);
            }
        }
    }
    [alone, behind].into_iter().filter(|one| one.comparisons() + one.with_errors.len() > 0).collect()
}

impl<'c, 'a> Standing<'c, 'a> {
    fn new(title: &'static str, against: &'static str) -> Self {
        Standing { title, against, best: 0, unclear: 0, beaten: Vec::new(), with_errors: Vec::new() }
    }

    fn comparisons(&self) -> usize {
        self.best + self.unclear + self.beaten.len()
    }

    /// In a sentence: in how many comparisons it is the best, and in how many not.
    pub(super) fn summary(&self) -> String {
        format!(
            "Against {}, by {}: of {}, Highball is clearly the best in {}, in no clear order with another in {}, and \
             clearly beaten in {}.",
            self.against,
            FIGURES.map(|figure| figure.title).join(", "),
            words::count(self.comparisons() as u64, "comparison"),
            self.best,
            self.unclear,
            self.beaten.len()
        )
    }

    /// Each measurement that had errors, in a sentence.
    pub(super) fn failures(&self) -> Vec<String> {
        let words = |(comparison, row): &(&Comparison, &Row)| {
            format!(
                "! {} had errors with {} at {} and is not compared there: {}.",
                row.scheme.title,
                comparison.workload_title,
                words::load(&comparison.load),
                words::errors(&row.errors)
            )
        };
        self.with_errors.iter().map(words).collect()
    }

    fn judge(
        &mut self,
        comparison: &'c Comparison<'a>,
        row: &'c Row<'a>,
        rivals: &[&'c Row<'a>],
        figures: &[&Figure],
    ) {
        for figure in figures.iter().copied() {
            let theirs: Vec<(&SchemeInfo, Spread)> =
                rivals.iter().filter_map(|rival| Some((&rival.scheme, rival.comparable(figure)?))).collect();
            let Some(spread) = row.comparable(figure).filter(|_| !theirs.is_empty()) else { continue };
            let mut by = theirs.clone();
            by.retain(|(_, its)| figure.is_clearly_better(*its, spread));
            by.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
            if figure.is_better(1.0, 0.0) {
                by.reverse();
            }
            if !by.is_empty() {
                self.beaten.push(Beaten { comparison, figure: *figure, highball: &row.scheme, spread, by });
            } else if theirs.iter().all(|(_, its)| figure.is_clearly_better(spread, *its)) {
                self.best += 1;
            } else {
                self.unclear += 1;
            }
        }
    }
}

/// Whether a figure is judged under this load: every scheme that keeps up reaches an offered rate, and a cold start is
/// the same for every load of a workload.
fn counts(figure: &Figure, comparison: &Comparison, first_of_workload: bool) -> bool {
    match figure.title {
        title if title == REQUESTS.title => comparison.load.rate.is_none(),
        title if title == COLD_START.title => first_of_workload,
        _ => true,
    }
}

fn is_highball(row: &Row) -> bool {
    row.scheme.server == "Highball"
}

fn are_rivals(highball: &Row, other: &Row) -> bool {
    let front = &highball.scheme.front;
    !is_highball(other) && (front.is_none() || *front == other.scheme.front)
}
