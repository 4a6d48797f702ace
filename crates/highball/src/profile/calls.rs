//! A profile as stacks and as methods, for the forms of its file.

use crate::status::profile_report::{ProfileReport, ProfiledName};
use highball_config::ProfileMode;
use std::collections::BTreeMap;

/// A view of a report: it is checked, and its weights are in the unit that is written.
pub(crate) struct Calls<'a> {
    pub(crate) names: &'a [ProfiledName],
    /// The stacks that have a weight, each of numbers of names, outermost first.
    pub(crate) stacks: Vec<(Vec<u32>, u64)>,
    /// The sum of all weights.
    pub(crate) total: u64,
    pub(crate) unit: Unit,
}

/// What a weight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Objects,
}

impl<'a> Calls<'a> {
    /// Nodes that a report cannot have are left out.
    pub(crate) fn of(report: &'a ProfileReport) -> Calls<'a> {
        let (unit, divisor) = match report.mode {
            ProfileMode::Allocations => (Unit::Objects, 1),
            _ => (Unit::Microseconds, 1000),
        };
        let mut stacks = Vec::new();
        for (at, (.., weight)) in report.nodes.iter().enumerate() {
            let stack = stack_of(report, at);
            if weight / divisor > 0 && !stack.is_empty() {
                stacks.push((stack, weight / divisor));
            }
        }
        let total = stacks.iter().fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
        Calls { names: &report.names, stacks, total, unit }
    }

    pub(crate) fn name(&self, number: u32) -> &'a ProfiledName {
        &self.names[number as usize]
    }

    /// Methods and the weights of stacks that end in them, the heaviest first.
    pub(crate) fn by_own_weight(&self) -> Vec<(&'a ProfiledName, u64)> {
        let mut weights: BTreeMap<u32, u64> = BTreeMap::new();
        for (stack, weight) in &self.stacks {
            let innermost = stack.last().copied().unwrap_or_default();
            let sum = weights.entry(innermost).or_default();
            *sum = sum.saturating_add(*weight);
        }
        let mut weights: Vec<_> =
            weights.into_iter().map(|(number, weight)| (self.name(number), weight)).collect();
        weights.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        weights
    }
}

/// The names from the root to this node.
fn stack_of(report: &ProfileReport, at: usize) -> Vec<u32> {
    let (mut stack, mut next) = (Vec::new(), at + 1);
    while next > 0 {
        let Some((parent, name, _)) = report.nodes.get(next - 1) else { return Vec::new() };
        // A parent comes before its children: this ends.
        if *parent as usize >= next || *name as usize >= report.names.len() {
            return Vec::new();
        }
        stack.push(*name);
        next = *parent as usize;
    }
    stack.reverse();
    stack
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn a_report() -> ProfileReport {
        let name =
            |label: &str, file: &str, line| ProfiledName { label: label.into(), file: file.into(), line };
        ProfileReport {
            mode: ProfileMode::Cpu,
            workers: vec![1],
            problems: vec![],
            names: vec![name("(other methods)", "", 0), name("A;b", "/a.rb", 3), name("Kernel#sleep", "", 0)],
            nodes: vec![(0, 1, 2_000), (1, 2, 8_000), (1, 1, 999)],
            samples: 2,
            idle_ns: 0,
            left_out: 0,
        }
    }

    #[test]
    fn stacks_begin_with_the_outermost_call() {
        let report = a_report();
        let calls = Calls::of(&report);
        assert_eq!(calls.stacks, [(vec![1], 2), (vec![1, 2], 8)]);
        assert_eq!(calls.total, 10);
        let first = calls.by_own_weight()[0];
        assert_eq!((&first.0.label[..], first.1), ("Kernel#sleep", 8));
    }

    #[test]
    fn a_tree_that_is_none_has_no_stacks() {
        let report = ProfileReport { nodes: vec![(1, 1, 5_000), (7, 1, 5_000), (0, 9, 5_000)], ..a_report() };
        assert_eq!(Calls::of(&report).stacks, []);
    }
}
