//! `highball bench runtime`: what each way in which Highball has Ruby run brings for an application.

use std::path::Path;

use super::report::{heading, in_words, over_turns, ratios};
use super::trial::{self, LoadTurn, Trial};
use super::Load;
use crate::data::data_folder;
use crate::method::Candidate;
use crate::options::Options;
use crate::report::{count, number};
use crate::scheme::Scheme;
use crate::workload::Workload;
use crate::{app, interrupt, Failure};

/// What can be off, and the option that turns it off: each alone, and all of them.
const SETTINGS: [(&str, [&str; 2]); 3] =
    [("jit", ["--jit", "off"]), ("gc", ["--gc", "off"]), ("jemalloc", ["--allocator", "system"])];

/// Measures Highball with its defaults, without each setting, without all of them, and as `also` has it.
///
/// # Errors
/// A server does not start, or does not answer.
pub(crate) fn run(options: &Options, load: Load, app: Option<&Path>, also: &[String]) -> Result<(), Failure> {
    let scheme = Scheme::read(&data_folder()?.join("schemes/highball.toml"))?;
    let variants = variants(&scheme, also);
    let candidates: Vec<Candidate> = variants
        .into_iter()
        .map(|scheme| Candidate { name: scheme.title.clone(), ..options.candidate(scheme) })
        .collect();
    options.refuse_unwritable_output()?;
    let workloads = workloads(options, app, &candidates[0])?;
    options.install_missing(std::slice::from_ref(&scheme), &workloads)?;
    let mut trials = Vec::new();
    for workload in &workloads {
        eprintln!("{}:", workload.name);
        workload.prepare(&interrupt::came)?;
        trials.push(trial::measure(&candidates, workload, &load)?);
    }
    let tables: Vec<String> = trials.iter().map(|trials| table(trials)).collect();
    let page = format!("# What Highball does for Ruby\n\n{}\n{}", tables.join("\n"), method(load));
    options.report("runtime", &trials, &tables.join("\n"), page)
}

/// The first is that with the defaults.
fn variants(scheme: &Scheme, also: &[String]) -> Vec<Scheme> {
    let off = |settings: &[(&str, [&str; 2])]| {
        settings.iter().flat_map(|(_, option)| *option).map(str::to_owned).collect::<Vec<String>>()
    };
    let with = |arguments: &[String], env: &[(&str, &str)], title: &str| {
        scheme.clone().with(arguments, env, title.to_owned())
    };
    let mut all = vec![with(&[], &[], "by default")];
    all.extend(SETTINGS.map(|setting| with(&off(&[setting]), &[], &format!("{} off", setting.0))));
    all.push(with(&off(&SETTINGS), &[], "all off"));
    all.extend(also.iter().map(|words| {
        let (env, arguments): (Vec<&str>, Vec<&str>) =
            words.split_whitespace().partition(|word| !word.starts_with('-') && word.contains('='));
        let env: Vec<(&str, &str)> = env.iter().filter_map(|word| word.split_once('=')).collect();
        with(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>(), &env, words)
    }));
    all
}

fn workloads(options: &Options, app: Option<&Path>, candidate: &Candidate) -> Result<Vec<Workload>, Failure> {
    let folder = data_folder()?;
    let Some(app) = app else {
        return super::workloads(&folder, options);
    };
    let mut workload = app::workload(&app::folder(app)?, "app", &options.paths, candidate)?;
    workload.bench = folder;
    Ok(vec![workload])
}

/// A line for each variant, compared with the first.
fn table(trials: &[Trial]) -> String {
    let names = [
        trials[0].workload.as_str(),
        "CPU per request, µs",
        "× default",
        "requests/s",
        "p50, ms",
        "p99, ms",
        "× default",
        "memory, MiB",
        "first answer, ms",
        "failed",
    ];
    let mut text = heading(1, &names);
    for trial in trials {
        let compared = |figure: fn(&LoadTurn) -> f64| in_words(ratios(trial, &trials[0], figure), 2);
        let cells = [
            over_turns(trial, 0, |turn| turn.cpu_us),
            compared(|turn| turn.cpu_us),
            over_turns(trial, 1, |turn| turn.requests_per_second),
            over_turns(trial, 0, |turn| turn.p50),
            over_turns(trial, 0, |turn| turn.p99),
            compared(|turn| turn.p99),
            number(trial.memory.own_mib(), 1),
            number(trial.cold_start_ms, 0),
            trial.errors.total().to_string(),
        ];
        text += &format!("| {} | {} |\n", trial.title, cells.join(" | "));
    }
    text
}

fn method(load: Load) -> String {
    format!(
        "{} requests of {} clients at a time, each with a new connection, to {} workers × {}. All variants run at the same time and \
         get their load in {} turns; `× default` is the median of the ratios of turns of the same round. Memory is the private memory of \
         all processes.\n",
        number(load.requests.into(), 0),
        load.clients,
        load.workers,
        count(load.threads.into(), "thread"),
        load.turns
    )
}
