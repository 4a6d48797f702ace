//! What a reader has to know before the figures.

use super::comparison::Comparison;
use super::figure::{OTHERS, STOLEN};
use super::words::count;
use crate::results::Results;

/// Above this share of stolen or others' CPU time (in percent), the report warns that figures may be off.
const NOTEWORTHY_PERCENT: f64 = 5.0;

/// `stolen 0.1% (at most 0.4%), others 0.0% (at most 0.8%)`; empty without samples.
pub(super) fn disturbance(comparison: &Comparison) -> String {
    let parts: Vec<String> = [STOLEN, OTHERS]
        .iter()
        .filter_map(|figure| {
            let share = comparison.over_all(figure)?;
            let [median, most] = [share.median, share.most].map(|value| figure.write(value));
            Some(format!("{} {median}% (at most {most}%)", figure.title))
        })
        .collect();
    parts.join(", ")
}

/// What a reader has to know before any figure.
pub(super) fn warnings(results: &Results, comparisons: &[Comparison]) -> Vec<String> {
    let mut warnings = Vec::new();
    if results.interrupted {
        warnings.push(
            "Interrupted: this run was ended early; what follows is what was measured until then.".into(),
        );
    }
    if results.samples.is_empty() {
        warnings.push("Nothing was measured.".into());
    }
    let rounds =
        |comparison: &Comparison| comparison.all_rows().map(|row| row.samples.len()).max().unwrap_or(0);
    if comparisons.iter().any(|comparison| rounds(comparison) == 1) {
        warnings.push(
            "Where only one round was measured there is no spread, and so no place: another run may order them \
             differently."
                .into(),
        );
    }
    for (figure, who) in [(STOLEN, "the hypervisor kept"), (OTHERS, "other processes used")] {
        let shares: Vec<f64> =
            comparisons.iter().filter_map(|one| Some(one.over_all(&figure)?.median)).collect();
        let most = shares.into_iter().fold(0.0, f64::max);
        if most > NOTEWORTHY_PERCENT {
            warnings.push(format!(
                "The machine was not ours alone: {who} up to {}% of its CPU time (median under one load). Compare \
                 schemes with each other rather than with other machines, and measure again when it is quiet.",
                figure.write(most)
            ));
        }
    }
    let failed = comparisons.iter().flat_map(Comparison::all_rows).filter(|row| row.has_errors()).count();
    if failed > 0 {
        warnings.push(format!(
            "{} had errors and {} marked with !: a failed request can be cheap, so these figures do not compare.",
            count(failed as u64, "measurement"),
            if failed == 1 { "is" } else { "are" }
        ));
    }
    warnings
}
