//! Highball alone against every other server alone, and against the floors. Servers of other releases of Debian have
//! another Ruby: they are not compared with it.

use super::comparison::{Comparison, Row};
use super::figure::{Figure, CPU, P99, REQUESTS};
use super::words;
use crate::statistics::Spread;

/// What is divided.
pub(super) const FIGURES: [Figure; 3] = [CPU, REQUESTS, P99];

/// Highball's figures divided by another's.
pub(super) struct Ratios {
    /// `Highball / Puma`, marked with `!` where one of them had errors.
    pub(super) title: String,
    /// By [`FIGURES`].
    spreads: [Option<Spread>; 3],
}

/// The ratios of a comparison, in its order; none where Highball alone was not measured.
pub(super) fn of(comparison: &Comparison) -> Vec<Ratios> {
    let Some(highball) = comparison.rows.iter().find(|row| row.scheme.name == "highball") else {
        return Vec::new();
    };
    let is_alike = |row: &&Row| row.scheme.front.is_none() && row.scheme.release.is_none();
    let others = comparison.all_rows().filter(|row| is_alike(row) && row.scheme.name != "highball");
    others.map(|other| Ratios::of(highball, other)).collect()
}

impl Ratios {
    fn of(highball: &Row, other: &Row) -> Ratios {
        let failed = if highball.has_errors() || other.has_errors() { " !" } else { "" };
        let title = format!("{} / {}{failed}", highball.scheme.title, other.scheme.title);
        Ratios { title, spreads: FIGURES.map(|figure| of_rounds(highball, other, &figure)) }
    }

    /// `0.146 (0.134–0.168)`; `–` where there is nothing to divide.
    pub(super) fn with_spreads(&self) -> [String; 3] {
        self.spreads.map(|spread| {
            let Some(spread) = spread else { return "–".into() };
            let [median, least, most] =
                [spread.median, spread.least, spread.most].map(|ratio| words::number(ratio, 3));
            if least == most {
                median
            } else {
                format!("{median} ({least}–{most})")
            }
        })
    }

    /// `0.146`.
    pub(super) fn medians(&self) -> [String; 3] {
        self.spreads.map(|spread| spread.map_or("–".into(), |spread| words::number(spread.median, 3)))
    }
}

/// Divided round by round: what slowed the machine in one slowed both.
fn of_rounds(highball: &Row, other: &Row, figure: &Figure) -> Option<Spread> {
    Spread::of(highball.samples.iter().filter_map(|mine| {
        let its = other.samples.iter().find(|sample| sample.round == mine.round)?;
        Some(figure.of(mine)? / figure.of(its)?).filter(|ratio| ratio.is_finite())
    }))
}
