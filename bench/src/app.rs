//! `highball bench --app`: which way of deploying, with how many workers and threads, is best for this application?

use std::path::{Path, PathBuf};

use crate::data::{data_folder, present};
use crate::deployment::{readiness, Deployment};
use crate::method::{send, setting, target, Candidate};
use crate::options::Options;
use crate::results::{Load, Results};
use crate::run::run_plan;
use crate::scheme::Scheme;
use crate::statistics::{Series, Spread};
use crate::workload::{Request, Workload};
use crate::{machine, Failure};

/// Threads tried in each worker, where a scheme has threads: one, and Rails' usual number.
const THREADS: [u32; 2] = [1, 3];

/// A way whose throughput is this close to the best counts as equally good, and the smaller one is named.
const AS_GOOD: f64 = 0.95;

/// A 99th percentile beyond this many times the best one's is too high a price for throughput.
const TOO_LATE: f64 = 2.0;

/// Measures the application under every scheme without a proxy, in several sizes, and says which is best.
pub(crate) fn answer(options: &Options, app: &Path) -> Result<Results, Failure> {
    let app = folder(app)?;
    options.refuse_unwritable_output()?;
    let all = Scheme::read_all(&data_folder()?.join("schemes"))?;
    let alone = |scheme: &Scheme| {
        scheme.front.is_none()
            && scheme.floor.is_none()
            && scheme.release().is_none()
            && (options.only.is_empty() || options.only.contains(&scheme.name))
    };
    let cores = machine::describe().cores.max(1);
    let (schemes, skipped) = present(all.into_iter().filter(alone).collect());
    let candidates: Vec<Candidate> = schemes.into_iter().flat_map(|scheme| sizes(scheme, cores)).collect();
    let first = candidates
        .first()
        .ok_or_else(|| Failure::new("no scheme of that name can run here: see `highball bench list`"))?;
    let workload = workload(&app, "app", &options.paths, first)?;
    let plan = options.plan(candidates, vec![workload]);
    let title = format!("Ways to deploy {}", app.display());
    let mut results = run_plan(options, &plan, skipped, &title)?;
    results.answer = verdict(&results).filter(|_| !results.interrupted);
    Ok(results)
}

/// The folder, absolute.
pub(crate) fn folder(app: &Path) -> Result<PathBuf, Failure> {
    let folder = app
        .canonicalize()
        .map_err(|error| Failure(format!("the application folder {}: {error}", app.display())))?;
    if !folder.join("config.ru").is_file() {
        return Err(Failure(format!(
            "{} has no config.ru: name the folder of a Rack or Rails application",
            folder.display()
        )));
    }
    Ok(folder)
}

/// A scheme in the sizes that it can have on this number of cores.
fn sizes(scheme: Scheme, cores: u32) -> Vec<Candidate> {
    let workers = if scheme.takes_workers() && cores > 1 { vec![1, cores] } else { vec![1] };
    let threads = if scheme.takes_threads() { THREADS.to_vec() } else { vec![1] };
    let size = |&workers: &u32, &threads: &u32| {
        let mut scheme = scheme.clone();
        scheme.title = format!("{}, {}", scheme.title, words(workers, threads));
        Candidate { name: format!("{} {workers}×{threads}", scheme.name), scheme, workers, threads }
    };
    workers.iter().flat_map(|one| threads.iter().map(move |many| size(one, many))).collect()
}

fn words(workers: u32, threads: u32) -> String {
    let several =
        |number: u32, what: &str| if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") };
    format!("{} × {}", several(workers, "worker"), several(threads, "thread"))
}

/// The workload for an unknown application: its present answers are the expected ones.
pub(crate) fn workload(
    app: &Path,
    name: &str,
    paths: &[String],
    candidate: &Candidate,
) -> Result<Workload, Failure> {
    let paths = if paths.is_empty() { vec!["/".to_owned()] } else { paths.to_vec() };
    let request = |path: &String| Request { path: path.clone(), ..Request::default() };
    let mut workload = Workload {
        name: name.into(),
        title: format!("{} ({})", app.display(), paths.join(", ")),
        app: app.to_owned(),
        requests: paths.iter().map(request).collect(),
        ..Workload::default()
    };
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, &workload))?;
    for request in &mut workload.requests {
        request.status = readiness::status(deployment.address(), deployment.protocol(), &request.path)
            .map_err(|error| Failure(format!("GET {}: {error}", request.path)))?;
        if request.status >= 400 {
            return Err(Failure(format!(
                "GET {} answers {}: name pages that the application has with --path\n{}",
                request.path,
                request.status,
                deployment.log_tail()
            )));
        }
    }
    // A page that cannot be asked twice would spoil every sample.
    let load = Load { connections: 1, rate: None, keep_alive: true };
    send(&target(&deployment, &workload.requests), &load, std::time::Duration::from_secs(1))?;
    deployment.stop()?;
    Ok(workload)
}

/// The best way and its figures.
struct Way<'a> {
    title: &'a str,
    server: &'a str,
    requests_per_second: f64,
    p99_ms: f64,
    memory_mib: f64,
}

/// The answer in a sentence or two.
fn verdict(results: &Results) -> Option<String> {
    let mut ways: Vec<Way<'_>> =
        Series::all(results).into_iter().filter_map(|series| way(results, series)).collect();
    ways.sort_by(|a, b| b.requests_per_second.total_cmp(&a.requests_per_second));
    let soonest = ways.iter().map(|way| way.p99_ms).fold(f64::INFINITY, f64::min);
    let most = ways
        .iter()
        .filter(|way| way.p99_ms <= TOO_LATE * soonest)
        .map(|way| way.requests_per_second)
        .fold(0.0, f64::max);
    let good = ways
        .iter()
        .filter(|way| way.p99_ms <= TOO_LATE * soonest && way.requests_per_second >= AS_GOOD * most);
    let best = good.min_by(|a, b| a.memory_mib.total_cmp(&b.memory_mib))?;
    let figures = format!(
        "{:.0} requests/s with a 99th percentile of {:.0} ms, in {:.0} MiB of private memory",
        best.requests_per_second, best.p99_ms, best.memory_mib
    );
    let next = ways.iter().find(|way| way.server != best.server);
    let beside = next.map_or_else(String::new, |next| {
        format!(
            " The best that {} reaches is {:.0} requests/s, {:.0} ms and {:.0} MiB ({}).",
            next.server, next.requests_per_second, next.p99_ms, next.memory_mib, next.title
        )
    });
    Some(format!("Best for this application: {}. It answers {figures}.{beside}", best.title))
}

fn way<'a>(results: &'a Results, series: Series<'a>) -> Option<Way<'a>> {
    if series.errors().total() > 0 {
        return None;
    }
    let info = results.schemes.iter().find(|info| info.name == series.scheme)?;
    let median = |spread: Spread| spread.median;
    Some(Way {
        title: &info.title,
        server: &info.server,
        requests_per_second: median(series.spread(|sample| sample.requests_per_second)),
        p99_ms: median(series.spread(|sample| sample.latency.p99)),
        memory_mib: median(series.spread(|sample| sample.memory.own_mib())),
    })
}
