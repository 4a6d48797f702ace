//! The results of workers become one profile. They are data of applications: nothing in them is believed, and all has limits.

use crate::status::profile_report::{ProfileReport, ProfiledName, OTHER};
use highball_config::ProfileMode;
use highball_supervisor::PROFILE_BYTES;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str::Lines;

/// What a profile has at most, so that it is an answer of a control socket.
const MOST_NAMES: usize = 20_000;
const NAMES_BYTES: usize = 3 << 20;
const MOST_NODES: usize = 150_000;
/// Bytes of a name or path: more than workers send.
const TEXT_BYTES: usize = 1000;

/// A profile that grows.
#[derive(Debug)]
pub(crate) struct Merger {
    report: ProfileReport,
    names: HashMap<ProfiledName, u32>,
    names_bytes: usize,
    children: HashMap<(u32, u32), u32>,
}

/// The text that a worker has written into its file.
pub(crate) fn read_result(file: &File) -> Result<String, String> {
    let mut bytes = vec![0; PROFILE_BYTES as usize];
    let read = file.read_at(&mut bytes, 0).map_err(|error| format!("its result cannot be read: {error}"))?;
    bytes.truncate(bytes[..read].iter().position(|byte| *byte == 0).unwrap_or(read));
    String::from_utf8(bytes).map_err(|_| malformed())
}

fn malformed() -> String {
    "its result is malformed".into()
}

impl Merger {
    pub(crate) fn new(mode: ProfileMode) -> Merger {
        let other = ProfiledName { label: OTHER.into(), file: String::new(), line: 0 };
        Merger {
            report: ProfileReport {
                mode,
                workers: Vec::new(),
                problems: Vec::new(),
                names: vec![other.clone()],
                nodes: Vec::new(),
                samples: 0,
                idle_ns: 0,
                left_out: 0,
            },
            names: HashMap::from([(other, 0)]),
            names_bytes: 0,
            children: HashMap::new(),
        }
    }

    /// Adds the result of a worker, or notes why there is none.
    pub(crate) fn add(&mut self, worker: u32, result: Result<String, String>) {
        let added = result.and_then(|text| self.add_text(&text).ok_or_else(malformed));
        match added {
            Ok(()) => self.report.workers.push(worker),
            Err(why) => self.report.problems.push(format!("worker {worker}: {why}")),
        }
    }

    /// The profile; or why there is none, if no worker has one.
    pub(crate) fn finish(self) -> Result<ProfileReport, String> {
        match self.report.workers.is_empty() {
            true => Err(self.report.problems.first().cloned().unwrap_or_else(malformed)),
            false => Ok(self.report),
        }
    }

    /// `None`: it is malformed. What came before that stays.
    fn add_text(&mut self, text: &str) -> Option<()> {
        let mut lines = text.lines();
        let counts: Vec<u64> = numbers(lines.next()?.strip_prefix("highball-profile 1 ")?)?;
        let [samples, idle, left_out] = counts[..] else { return None };
        self.add_tree(&mut lines)?;
        let report = &mut self.report;
        report.samples = report.samples.saturating_add(samples);
        report.idle_ns = report.idle_ns.saturating_add(idle);
        report.left_out = report.left_out.saturating_add(left_out);
        Some(())
    }

    fn add_tree(&mut self, lines: &mut Lines<'_>) -> Option<()> {
        // By the worker's numbers; its root is ours.
        let (mut names, mut nodes) = (Vec::new(), vec![0]);
        for line in lines {
            if let Some(name) = line.strip_prefix("f ") {
                let [line, label, file] = name.split('\t').collect::<Vec<_>>()[..] else { return None };
                names.push(self.name(label, file, line.parse().ok()?)?);
            } else if let Some(node) = line.strip_prefix("n ") {
                let [parent, name, weight] = numbers(node)?[..] else { return None };
                let parent = *nodes.get(usize::try_from(parent).ok()?)?;
                let name = *names.get(usize::try_from(name).ok()?)?;
                nodes.push(self.node(parent, name, weight));
            } else {
                return (line == "end").then_some(());
            }
        }
        None
    }

    fn name(&mut self, label: &str, file: &str, line: u32) -> Option<u32> {
        if label.len().max(file.len()) > TEXT_BYTES {
            return None;
        }
        let name = ProfiledName { label: label.into(), file: file.into(), line };
        if let Some(known) = self.names.get(&name) {
            return Some(*known);
        }
        self.names_bytes += label.len() + file.len();
        if self.report.names.len() >= MOST_NAMES || self.names_bytes > NAMES_BYTES {
            self.report.left_out += 1;
            return Some(0);
        }
        let number = self.report.names.len() as u32;
        self.report.names.push(name.clone());
        self.names.insert(name, number);
        Some(number)
    }

    /// The node for a call. If there is no room for another one, it is its caller.
    fn node(&mut self, parent: u32, name: u32, weight: u64) -> u32 {
        let report = &mut self.report;
        let node = match self.children.get(&(parent, name)) {
            Some(known) => *known,
            None if report.nodes.len() >= MOST_NODES => {
                report.left_out += 1;
                parent
            }
            None => {
                report.nodes.push((parent, name, 0));
                let node = report.nodes.len() as u32;
                self.children.insert((parent, name), node);
                node
            }
        };
        if let Some((.., sum)) = (node as usize).checked_sub(1).and_then(|at| report.nodes.get_mut(at)) {
            *sum = sum.saturating_add(weight);
        }
        node
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split(' ').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = "highball-profile 1 3 7 0\nf 0\ta\t\nf 4\tB#c\t/b.rb\nn 0 0 5\nn 1 1 20\nend\n";

    fn merged(results: &[&str]) -> Result<ProfileReport, String> {
        let mut merger = Merger::new(ProfileMode::Cpu);
        for (worker, result) in results.iter().enumerate() {
            merger.add(worker as u32 + 1, Ok((*result).to_owned()));
        }
        merger.finish()
    }

    #[test]
    fn the_same_calls_of_two_workers_are_one() {
        let other = "highball-profile 1 1 1 2\nf 4\tB#c\t/b.rb\nf 0\ta\t\nn 0 1 1\nn 1 0 1\nn 0 0 9\nend\n";
        let report = merged(&[RESULT, other]).unwrap();
        assert_eq!(report.workers, [1, 2]);
        assert_eq!((report.samples, report.idle_ns, report.left_out), (4, 8, 2));
        assert_eq!(report.nodes, [(0, 1, 6), (1, 2, 21), (0, 2, 9)]);
        assert_eq!(report.names[2].to_string(), "B#c  /b.rb:4");
    }

    #[test]
    fn a_malformed_result_is_a_problem_of_its_worker() {
        let invalid = [
            "",
            "highball-profile 2 3 7 0\nend\n",
            "highball-profile 1 3 7\nend\n",
            "highball-profile 1 3 7 0\nn 0 0 5\nend\n", // no such name
            "highball-profile 1 3 7 0\nf 0\ta\t\nn 1 0 5\nend\n", // its own parent
            "highball-profile 1 3 7 0\nf 0\ta\t\nn 0 0 -5\nend\n",
            "highball-profile 1 3 7 0\nf 0\ta\nend\n",
            "highball-profile 1 3 7 0\nf 0\ta\t\n", // cut off
        ];
        for text in invalid {
            assert_eq!(merged(&[text]), Err("worker 1: its result is malformed".into()), "{text}");
        }
        let report = merged(&["", RESULT]).unwrap();
        assert_eq!((report.workers, report.problems.len()), (vec![2], 1));
    }

    #[test]
    fn weights_and_trees_have_limits() {
        let mut text = "highball-profile 1 1 0 0\nf 0\ta\t\n".to_owned();
        text += &format!("n 0 0 {max}\nn 0 0 {max}\n", max = u64::MAX);
        for parent in 2..=MOST_NODES + 1 {
            text += &format!("n {parent} 0 1\n");
        }
        let report = merged(&[&(text + "end\n")]).unwrap();
        assert_eq!(report.nodes.len(), MOST_NODES);
        assert!(report.left_out > 0);
        assert_eq!(report.nodes[0].2, u64::MAX);
    }
}
