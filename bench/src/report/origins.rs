//! The eleven ways to deploy of 2006, by today's equivalents.

use super::comparison::{Comparison, Row};

/// What was measured in 2006 with `ab -c 100`: the load to which ours has to come near.
const CONNECTIONS: u32 = 100;

/// The schemes that stand for one of 2006, and Highball alone and behind each front end.
pub(super) fn rows<'a>(comparison: &Comparison<'a>) -> Vec<Row<'a>> {
    let belongs = |row: &&Row| row.scheme.stands_for.is_some() || row.scheme.server == "Highball";
    comparison.rows.iter().filter(belongs).cloned().collect()
}

/// Of each workload with counterparts, the comparison that is most like that of 2006, in the order of the workloads.
pub(super) fn closest<'c, 'a>(all: &'c [Comparison<'a>]) -> Vec<&'c Comparison<'a>> {
    let mut closest: Vec<&Comparison> = Vec::new();
    for one in all.iter().filter(|one| counterparts(one) > 0 && one.load.rate.is_none()) {
        match closest.iter_mut().find(|other| other.workload == one.workload) {
            Some(other) if distance(one) < distance(other) => *other = one,
            Some(_) => (),
            None => closest.push(one),
        }
    }
    closest
}

/// Most counterparts first, then what comes near to the number of connections.
fn distance(comparison: &Comparison) -> (usize, u32, bool) {
    let missing = usize::MAX - counterparts(comparison);
    (missing, comparison.load.connections.abs_diff(CONNECTIONS), !comparison.load.keep_alive)
}

fn counterparts(comparison: &Comparison) -> usize {
    comparison.rows.iter().filter(|row| row.scheme.stands_for.is_some()).count()
}
