//! `highball bench --compare A B`: two versions of an application, or of a framework. Which is faster, which is smaller?

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::data::data_folder;
use crate::deployment::Deployment;
use crate::method::{send, setting, target, Candidate};
use crate::options::Options;
use crate::process_tree::ProcessTree;
use crate::results::{Load, Results};
use crate::run::run_plan;
use crate::scheme::{programs, Scheme};
use crate::statistics::Series;
use crate::workload::Workload;
use crate::{app, Failure};

/// Requests before memory is read, as in the classic account.
const REQUESTS: u64 = 3000;
/// The longest that they may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures both under Highball.
pub(crate) fn answer(options: &Options, a: &Path, b: &Path) -> Result<Results, Failure> {
    let (a, b) = (app::folder(a)?, app::folder(b)?);
    options.refuse_unwritable_output()?;
    let scheme = Scheme::read(&data_folder()?.join("schemes/highball.toml"))?;
    let candidate = Candidate { name: scheme.name.clone(), scheme, workers: 1, threads: options.threads };
    let workloads = vec![
        app::workload(&a, "A", &options.paths, &candidate)?,
        app::workload(&b, "B", &options.paths, &candidate)?,
    ];
    let sizes = workloads.iter().map(|one| size(&candidate, one)).collect::<Result<Vec<Size>, _>>()?;
    let plan = options.plan(vec![candidate], workloads);
    let title = format!("{} (A) and {} (B)", a.display(), b.display());
    let mut results = run_plan(options, &plan, Vec::new(), &title)?;
    results.answer = verdict(&results, &sizes).filter(|_| !results.interrupted);
    Ok(results)
}

/// What an application holds after [`REQUESTS`] and a garbage collection.
struct Size {
    private_dirty_mib: f64,
    used_slots: u64,
    free_slots: u64,
}

/// Of the report of `highball memory --json`, what is compared.
#[derive(Deserialize)]
struct MemoryReport {
    highball: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    role: String,
    heap: Option<Heap>,
}

#[derive(Deserialize)]
struct Heap {
    live_slots: u64,
    free_slots: u64,
}

fn size(candidate: &Candidate, workload: &Workload) -> Result<Size, Failure> {
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, workload))?;
    let load = Load { connections: 1, rate: None, keep_alive: true };
    let target = target(&deployment, &workload.requests);
    let mut sent = 0;
    let until = std::time::Instant::now() + PATIENCE;
    while sent < REQUESTS && std::time::Instant::now() < until {
        sent += send(&target, &load, Duration::from_secs(1))?.requests;
    }
    let heap = heap(deployment.address().port())?;
    let memory = ProcessTree::new(&deployment.roots()).memory();
    deployment.stop()?;
    Ok(Size {
        private_dirty_mib: memory.private_dirty_mib,
        used_slots: heap.live_slots,
        free_slots: heap.free_slots,
    })
}

/// The worker's Ruby heap after a garbage collection.
fn heap(port: u16) -> Result<Heap, Failure> {
    let problem = |why: String| Failure(format!("ask `highball memory` for the Ruby heap: {why}"));
    let output = Command::new(programs::highball())
        .args(["memory", "--json", "--gc", "--port", &port.to_string()])
        .output()
        .map_err(|error| problem(error.to_string()))?;
    if !output.status.success() {
        return Err(problem(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let report: MemoryReport =
        serde_json::from_slice(&output.stdout).map_err(|error| problem(error.to_string()))?;
    let processes = report.highball.into_iter().flat_map(|instance| instance.processes);
    let heap = processes.filter(|process| process.role == "worker").find_map(|worker| worker.heap);
    heap.ok_or_else(|| problem("no worker answered".into()))
}

fn verdict(results: &Results, sizes: &[Size]) -> Option<String> {
    let series = Series::all(results);
    let speed = |name: &str| {
        let one = series.iter().find(|one| one.workload == name)?;
        Some((one.spread(|sample| sample.requests_per_second), one.errors().total()))
    };
    let ((a, a_errors), (b, b_errors)) = (speed("A")?, speed("B")?);
    if a_errors + b_errors > 0 {
        return Some(format!("No answer about speed: A had {a_errors} errors and B {b_errors}."));
    }
    let faster = if a.overlaps(&b) {
        format!("A and B are equally fast, as far as {} rounds tell", results.method.rounds)
    } else {
        let (name, ratio) =
            if a.median > b.median { ("A", a.median / b.median) } else { ("B", b.median / a.median) };
        format!("{name} is {ratio:.2} times as fast")
    };
    let [one, other] = sizes else { return Some(faster + ".") };
    let slots = |size: &Size| format!("{} used and {} free heap slots", size.used_slots, size.free_slots);
    Some(format!(
        "{faster} ({:.0} against {:.0} requests/s). After {REQUESTS} requests and a garbage collection A holds {:.1} MiB of \
         private dirty memory with {}, B {:.1} MiB with {}.",
        a.median,
        b.median,
        one.private_dirty_mib,
        slots(one),
        other.private_dirty_mib,
        slots(other)
    ))
}
