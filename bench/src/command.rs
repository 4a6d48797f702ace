//! The command line of `highball bench`: which question is asked, and where the answer goes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{value_parser, Arg, ArgAction, ArgMatches};

use crate::data::{data_folder, present};
use crate::options::Options;
use crate::output::print;
use crate::results::{self, Load, Results};
use crate::run::run_plan;
use crate::scheme::Scheme;
use crate::socket::Protocol;
use crate::workload::Workload;
use crate::{app, applications, compare, fairness, idle, interrupt, pstore, report, worker_memory, Failure};

/// Runs `highball bench` with these arguments.
///
/// # Errors
/// What failed, and what to do. Whatever was started has ended by then.
pub fn run(arguments: Vec<OsString>) -> Result<(), Failure> {
    let arguments: Vec<OsString> = std::iter::once("highball bench".into()).chain(arguments).collect();
    let words: Vec<String> = arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            return Err(Failure(error.to_string().trim_start_matches("error: ").trim_end().into()))
        }
        Err(help) => {
            return print(&help.to_string());
        }
    };
    let options = Options::read(&matches, words.join(" "))?;
    interrupt::catch()?;
    if let Some(app) = matches.get_one::<PathBuf>("app") {
        return finish(&options, app::answer(&options, app)?);
    }
    if let Some(folders) = matches.get_many::<PathBuf>("compare") {
        let folders: Vec<&PathBuf> = folders.collect();
        return finish(&options, compare::answer(&options, folders[0], folders[1])?);
    }
    match matches.subcommand_name() {
        Some("schemes") => finish(&options, schemes(&options)?),
        Some("fairness") => fairness::run(&options),
        Some("idle") => idle::run(&options),
        Some("memory") => worker_memory::run(&options),
        Some("origins") => {
            let named = matches.subcommand_matches("origins").expect("it is this one");
            let load = turns(&options, &matches, named);
            applications::run(&options, applications::Load { tuned: named.get_flag("tuned"), ..load })
        }
        Some("runtime") => {
            let named = matches.subcommand_matches("runtime").expect("it is this one");
            let also: Vec<String> =
                named.get_many("also").map(|all| all.cloned().collect()).unwrap_or_default();
            let app = named.get_one::<PathBuf>("folder").map(PathBuf::as_path);
            applications::runtime::run(&options, turns(&options, &matches, named), app, &also)
        }
        Some("pstore") => pstore::run(&options),
        Some("report") => show_again(matches.subcommand_matches("report").expect("it is this one")),
        _ => list(),
    }
}

/// The size of the benchmark of 2008, as far as the command line has no other.
fn turns(options: &Options, matches: &ArgMatches, named: &ArgMatches) -> applications::Load {
    let number = |name: &str| *matches.get_one::<u32>(name).expect("it has a default");
    let is_given = |name: &str| matches.value_source(name) != Some(ValueSource::DefaultValue);
    applications::Load {
        requests: *named.get_one::<u32>("requests").expect("it has a default"),
        clients: if is_given("connections") { number("connections") } else { 100 },
        turns: if is_given("rounds") { number("rounds") } else { 10 },
        workers: options.workers,
        threads: options.threads,
        tuned: false,
    }
}

/// A global option with a text.
fn text(name: &'static str, metavar: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(metavar).help(help).global(true)
}

/// A global option without a value.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help).global(true)
}

fn folder(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_parser(value_parser!(PathBuf)).help(help)
}

/// A global option with a number.
fn size(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    text(name, "N", help).default_value(default).value_parser(value_parser!(u32).range(1..))
}

/// What is measured by a command of its name, without an application.
fn subcommands() -> Vec<clap::Command> {
    let command = |name: &'static str, about: &'static str| clap::Command::new(name).about(about);
    let requests = size(
        "requests",
        "10000",
        "Requests of each server, in --rounds turns [10], after a tenth as many that are not measured",
    )
    .global(false);
    let tuned = flag("tuned", "Give the other servers YJIT and jemalloc, as people do by hand").global(false);
    let app = folder("folder", "The application [default: the examples blog and shop, and Redmine]");
    let also = text("also", "WORDS", "Measure Highball with these options and NAME=VALUE variables, too")
        .global(false)
        .allow_hyphen_values(true)
        .action(ArgAction::Append);
    let results = Arg::new("results")
        .value_name("RESULTS.JSON")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .num_args(1..)
        .help("What runs wrote: shown one after the other");
    vec![
        command("schemes", "Measure every way to deploy that is known here"),
        command("fairness", "How long do short requests wait when a few others take long?"),
        command("idle", "How much memory do 10,000 idle connections take, and who comes then?"),
        command("memory", "How much memory does one more worker of Redmine take?"),
        command(
            "origins",
            "Three real applications under four servers, in turns, as in 2008: what is missing in --output",
        )
        .args([requests.clone(), tuned]),
        command("runtime", "What does each way in which Highball has Ruby run bring for an application?")
            .args([requests, app.long("app").value_name("PATH"), also]),
        command(
            "pstore",
            "How many transactions a second do Highball's PStore and Ruby's make? (--seconds, --rounds)",
        ),
        command("list", "Name the schemes and workloads, and what is missing for them"),
        command("report", "Show kept results again, as Markdown").arg(results),
    ]
}

fn command() -> clap::Command {
    clap::Command::new("highball bench")
        .about("Measures ways to deploy a Ruby application, side by side")
        .subcommands(subcommands())
        .subcommand_required(false)
        .args_override_self(true)
        .arg(
            folder("app", "Which way of deploying is best for the application in this folder?")
                .value_name("PATH"),
        )
        .arg(
            folder("compare", "Two versions of an application: which is faster, which is smaller?")
                .value_names(["A", "B"])
                .num_args(2)
                .conflicts_with("app"),
        )
        .arg(
            text("only", "SCHEME", "These schemes alone (all without TLS)")
                .value_delimiter(',')
                .action(ArgAction::Append),
        )
        .arg(text("workload", "NAME", "These workloads [default: hello,rails-view]").value_delimiter(','))
        .arg(text("path", "PATH", "What --app and --compare ask for [default: /]").action(ArgAction::Append))
        .arg(
            text("connections", "N", "Keep-alive connections of each sample")
                .value_delimiter(',')
                .value_parser(value_parser!(u32).range(1..10_000))
                .default_value("25"),
        )
        .arg(flag("no-keep-alive", "A new connection for every request"))
        .arg(size("rounds", "3", "Turns of every scheme"))
        .arg(size("seconds", "1", "Length of a sample"))
        .arg(size("warm-up", "1", "Seconds of load before each sample, not measured"))
        .arg(size("workers", "4", "Worker processes of every scheme"))
        .arg(size("threads", "1", "Threads in each worker"))
        .arg(
            text(
                "bound",
                "MS",
                "Search the most throughput with a 99th percentile within MS [default: 2 × the best]",
            )
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("best"),
        )
        .arg(flag("no-counts", "Count neither system calls nor objects"))
        .arg(flag("install", "Install the Debian packages that are missing"))
        .arg(
            text("output", "FOLDER", "Where results.json, report.html and RESULTS.md go")
                .value_parser(value_parser!(PathBuf))
                .default_value("highball-bench"),
        )
}

impl Options {
    fn read(matches: &ArgMatches, command: String) -> Result<Options, Failure> {
        let number = |name: &str| *matches.get_one::<u32>(name).expect("it has a default");
        let texts = |name: &str| -> Vec<String> {
            matches.get_many::<String>(name).map(|all| all.cloned().collect()).unwrap_or_default()
        };
        let keep_alive = !matches.get_flag("no-keep-alive");
        let connections = matches.get_many::<u32>("connections").expect("it has a default");
        let bound = match matches.get_one::<String>("bound").map(String::as_str) {
            None => None,
            Some("best") => Some(None),
            Some(text) => match text.parse::<f64>() {
                Ok(ms) if ms > 0.0 => Some(Some(ms)),
                _ => {
                    return Err(Failure(format!(
                        "--bound={text}: milliseconds are wanted, such as --bound=50"
                    )))
                }
            },
        };
        Ok(Options {
            command,
            only: texts("only"),
            workloads: texts("workload"),
            loads: connections.map(|&connections| Load { connections, rate: None, keep_alive }).collect(),
            rounds: number("rounds"),
            time: Duration::from_secs(number("seconds").into()),
            warm_up: Duration::from_secs(number("warm-up").into()),
            workers: number("workers"),
            threads: number("threads"),
            counts: !matches.get_flag("no-counts"),
            bound,
            install: matches.get_flag("install"),
            output: matches.get_one::<PathBuf>("output").expect("it has a default").clone(),
            paths: texts("path"),
        })
    }
}

fn list() -> Result<(), Failure> {
    let folder = data_folder()?;
    let mut text = String::from("Schemes:\n");
    for scheme in Scheme::read_all(&folder.join("schemes"))? {
        let missing = scheme.missing().map(|missing| format!(" — missing: {}", missing.why));
        text += &format!("  {:28} {}{}\n", scheme.name, scheme.title, missing.unwrap_or_default());
    }
    text += "\nWorkloads:\n";
    for workload in Workload::read_all(&folder.join("workloads"))? {
        text += &format!("  {:28} {}\n", workload.name, workload.title);
    }
    text += "\nMeasure them: highball bench schemes [--only NAME,…] [--workload NAME,…] [--install]\n";
    print(&text)
}

/// `highball bench report`.
fn show_again(matches: &ArgMatches) -> Result<(), Failure> {
    let read = |path: &PathBuf| {
        let problem = |error: &dyn std::fmt::Display| Failure(format!("results {}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
        let read: Results = serde_json::from_str(&text).map_err(|error| problem(&error))?;
        if read.format == results::FORMAT {
            return Ok(read);
        }
        Err(problem(&format!("they have format {}, and this is for format {}", read.format, results::FORMAT)))
    };
    let files = matches.get_many::<PathBuf>("results").expect("it is required");
    let all = files.map(read).collect::<Result<Vec<Results>, Failure>>()?;
    print(&report::markdown_of_all(&all))
}

/// `highball bench schemes`.
fn schemes(options: &Options) -> Result<Results, Failure> {
    let folder = data_folder()?;
    let all = Scheme::read_all(&folder.join("schemes"))?;
    let mut chosen = chosen(all, &options.only, |scheme| &scheme.name, "scheme")?;
    // Schemes with TLS are compared with each other, by name: the others would beat them.
    chosen.retain(|scheme| !options.only.is_empty() || scheme.protocol == Protocol::Http);
    let names = if options.workloads.is_empty() {
        vec!["hello".into(), "rails-view".into()]
    } else {
        options.workloads.clone()
    };
    let workloads = chosen_workloads(&folder, &names)?;
    options.refuse_unwritable_output()?;
    options.install_missing(&chosen, &workloads)?;
    let (present, skipped) = present(chosen);
    let candidates = present.into_iter().map(|scheme| options.candidate(scheme)).collect();
    let plan = options.plan(candidates, workloads);
    run_plan(options, &plan, skipped, "Ways to deploy a Ruby application")
}

fn chosen_workloads(folder: &Path, names: &[String]) -> Result<Vec<Workload>, Failure> {
    let all = Workload::read_all(&folder.join("workloads"))?;
    chosen(all, names, |workload| &workload.name, "workload")
}

/// Those with these names, in the order of `all`; all of them, if there are no names.
fn chosen<T>(
    all: Vec<T>,
    names: &[String],
    name: impl Fn(&T) -> &str,
    what: &str,
) -> Result<Vec<T>, Failure> {
    if let Some(unknown) = names.iter().find(|wanted| !all.iter().any(|one| name(one) == wanted.as_str())) {
        let known: Vec<&str> = all.iter().map(&name).collect();
        return Err(Failure(format!("there is no {what} {unknown}; there are: {}", known.join(", "))));
    }
    Ok(all
        .into_iter()
        .filter(|one| names.is_empty() || names.iter().any(|wanted| wanted == name(one)))
        .collect())
}

/// Prints the table and writes the files.
fn finish(options: &Options, results: Results) -> Result<(), Failure> {
    print(&report::table(&results))?;
    options.write(&[
        ("report.html", report::html(&results)),
        ("results.json", report::json(&results)),
        ("RESULTS.md", report::markdown(&results)),
    ])?;
    if results.interrupted {
        return Err(Failure::new("ended by a signal; what was measured until then is in the report"));
    }
    Ok(())
}
