//! Whether limits could be kept, found out without changing anything.

use crate::groups::{beside_others, not_made, plan, processes_in, Plan, Problem};
use crate::limits::Limits;
use rustix::fs::{accessat, Access, AtFlags, CWD};
use std::fs;

/// What has to be written to for making cgroups: the folder itself, and these files in it.
const WRITTEN: [&str; 3] = ["", "cgroup.procs", "cgroup.subtree_control"];

/// Why a server that is started as this process was could not keep all of these limits; `None`: it could.
pub fn outlook(wanted: &[Limits]) -> Option<Problem> {
    match plan(wanted) {
        Ok(plan) => why_not(&plan).or(plan.problem),
        Err(problem) => Some(problem),
    }
}

fn why_not(plan: &Plan) -> Option<Problem> {
    let Plan { own, base, found, .. } = plan;
    if own != base {
        return None; // this process is in the cgroup of a server, which has made them
    }
    let may_write =
        |name: &&str| accessat(CWD, base.join(name), Access::WRITE_OK, AtFlags::EACCESS).map_err(Into::into);
    if let Some(error) = WRITTEN.iter().find_map(|name| may_write(name).err()) {
        return Some(not_made(base, &error));
    }
    let enabled = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    let is_enabled = found.iter().all(|controller| controller.is_in(&enabled));
    let is_root = !base.join("cgroup.type").exists(); // it alone may have both processes and controllers for others
    let own_pid = std::process::id().to_string();
    let others: Vec<String> = processes_in(base).into_iter().filter(|pid| *pid != own_pid).collect();
    (!is_root && !is_enabled && !others.is_empty()).then(|| beside_others(base, &others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Controller;
    use std::path::Path;

    fn plan_in(base: &Path) -> Plan {
        Plan { own: base.into(), base: base.into(), found: vec![Controller::Cpu], problem: None }
    }

    fn text(plan: &Plan) -> String {
        why_not(plan).map(|problem| problem.to_string()).unwrap_or_default()
    }

    #[test]
    fn other_processes_are_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let plan = plan_in(folder.path());
        assert!(text(&plan).contains("cannot make cgroups"), "nothing is there to be written to");
        write("cgroup.type", "domain\n");
        write("cgroup.subtree_control", "");
        write("cgroup.procs", &format!("{}\n", std::process::id()));
        assert_eq!(text(&plan), "");
        write("cgroup.procs", &format!("71\n{}\n72\n", std::process::id()));
        assert!(text(&plan).contains("(71, 72)"), "{}", text(&plan));
        write("cgroup.subtree_control", "cpu memory\n");
        assert_eq!(text(&plan), "", "it has them already");
        write("cgroup.subtree_control", "");
        fs::remove_file(folder.path().join("cgroup.type")).unwrap();
        assert_eq!(text(&plan), "", "the root of all");
    }

    #[test]
    fn within_a_server_all_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan { own: folder.path().join("highball.server"), ..plan_in(folder.path()) };
        assert_eq!(text(&plan), "");
    }
}
