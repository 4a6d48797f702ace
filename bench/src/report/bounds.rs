//! The most requests per second within a latency.

use crate::results::{Bound, Results};

/// The bounds of a workload (by its name), the highest rate first.
pub(super) fn best_first<'a>(results: &'a Results, workload: &str) -> Vec<&'a Bound> {
    let mut bounds: Vec<&Bound> = results.bounds.iter().filter(|bound| bound.workload == workload).collect();
    let most = |bound: &Bound| bound.requests_per_second.unwrap_or(0.0);
    bounds.sort_by(|one, other| most(other).total_cmp(&most(one)));
    bounds
}

/// What the scheme of a bound is called.
pub(super) fn title<'a>(results: &'a Results, bound: &'a Bound) -> &'a str {
    let scheme = results.schemes.iter().find(|scheme| scheme.name == bound.scheme);
    scheme.map_or(&bound.scheme, |scheme| &scheme.title)
}
