//! The command line, made from the table of options.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{value_parser, Arg, ArgAction, ArgMatches};
use highball_text::visible_path;

use crate::counterparts;
use crate::deployment::Asked;
use crate::error::{ConfigError, Origin};
use crate::form::{Notation, Raw};
use crate::given::Given;
use crate::given_path::{absolute, split_file, working_folder};
use crate::help;
use crate::network::networks;
use crate::options::{options, Opt, SECTIONS};
use crate::profile::{ProfileFormat, ProfileMode, ProfileOptions};
use crate::spelling::did_you_mean;
use crate::value;
use crate::{AppSelector, Display, Invocation, MaintenanceSwitch, RolloutOrder, Selector, StatusForm};

/// The programs that `highball config` writes for.
pub const PROGRAMS: [&str; 9] =
    ["nginx", "apache", "caddy", "haproxy", "lighttpd", "systemd", "kubernetes", "kamal", "nomad"];

/// The protocols by which they reach Highball.
pub const PROGRAM_PROTOCOLS: [&str; 2] = ["http", "fastcgi"];

/// What the command line asks for; for `serve`, before the environment and the file have been looked at.
pub(crate) enum Command {
    Serve {
        paths: Vec<PathBuf>,
        given: Given,
    },
    Doctor {
        json: bool,
        paths: Vec<PathBuf>,
        given: Given,
    },
    Config {
        asked: Asked,
        paths: Vec<PathBuf>,
        given: Given,
    },
    Init {
        dry_run: bool,
        path: Option<PathBuf>,
    },
    /// A command that reads none of the server's options.
    Other(Invocation),
}

/// Reads the command line. `args` begins with the program's name.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, ConfigError> {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return not_a_command(&near_suggestions(error)),
    };
    match matches.subcommand() {
        Some(("doctor", matches)) => {
            let (paths, given) = serve_args(matches);
            Ok(Command::Doctor { json: matches.get_flag("json"), paths, given })
        }
        Some(("config", matches)) => {
            let (paths, given) = serve_args(matches);
            let text = |name| matches.get_one::<String>(name).cloned();
            let program = text("PROGRAM").expect("clap requires it");
            let asked = Asked {
                program,
                via: text("via"),
                host: text("host"),
                machines: text("machines"),
                memory: text("memory"),
            };
            Ok(Command::Config { asked, paths, given })
        }
        Some(("init", matches)) => Ok(Command::Init {
            dry_run: matches.get_flag("dry-run"),
            path: matches.get_one::<PathBuf>("PATH").cloned(),
        }),
        Some(("serve", matches)) => serve(matches),
        Some((name, matches)) => Ok(Command::Other(other(name, matches))),
        None => serve(&matches),
    }
}

/// A command that reads none of the server's options.
fn other(name: &str, matches: &ArgMatches) -> Invocation {
    let selector = || selector(matches);
    match name {
        "restart" => Invocation::Restart { selector: selector() },
        "rollout" => Invocation::Rollout { order: rollout_order(matches), selector: selector() },
        "refork" => Invocation::Refork { selector: selector() },
        "upgrade" => Invocation::Upgrade { selector: selector() },
        "maintenance" => Invocation::Maintenance { switch: switch(matches), selector: selector() },
        "stop" => Invocation::Stop { selector: selector() },
        "top" => Invocation::Top { display: display(matches), selector: selector() },
        "profile" => Invocation::Profile { asked: asked_profile(matches), selector: selector() },
        "status" => Invocation::Status {
            form: match ["json", "details"].map(|name| matches.get_flag(name)) {
                [true, _] => StatusForm::Json,
                [_, true] => StatusForm::Details,
                _ => StatusForm::Table,
            },
            check: matches.get_flag("check"),
            slow: matches.get_flag("slow"),
            selector: selector(),
        },
        "memory" => Invocation::Memory {
            json: matches.get_flag("json"),
            gc: matches.get_flag("gc"),
            selector: selector(),
        },
        "bench" => {
            let rest = matches.get_many::<OsString>("ARGUMENTS").into_iter().flatten().cloned();
            Invocation::Bench { arguments: rest.collect() }
        }
        _ => unreachable!("clap knows the commands"),
    }
}

/// What all commands and the server read beside their options.
const CONTROL: &str = "Environment:\n  HIGHBALL_CONTROL  Control socket of the server, or a folder of control sockets.\n                    \
                       Set it for the server and for commands. See docs/signals.md.";

/// The whole command: for parsing, its help texts, man pages and completions.
pub fn command() -> clap::Command {
    let highball = clap::Command::new("highball")
        .bin_name("highball")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Serves Ruby web applications. Point it at an application folder.")
        .args_conflicts_with_subcommands(true)
        .help_template(help::TEMPLATE)
        .after_help(help::ending())
        .override_usage("highball [OPTIONS] [PATH…]\n       highball COMMAND [OPTIONS] …")
        .subcommand(with_serve_args(
            clap::Command::new("serve")
                .alias("start")
                .about("Serve the application at PATH, or several (the same as no command)"),
        ).after_help(CONTROL))
        .subcommand(
            with_serve_args(clap::Command::new("doctor").about(
                "Boot the app once, without serving it, and report current and likely problems",
            ))
            .arg(json()),
        )
        .subcommand(config())
        .subcommand(init())
        .subcommand(status())
        .subcommand(top())
        .subcommand(profile())
        .subcommand(with_selector_args(
            clap::Command::new("restart").about("Load new code without dropping requests (rolling restart)"),
        ))
        .subcommand(rollout())
        .subcommand(with_selector_args(clap::Command::new("refork").about(
            "Fork all workers again from a warm one, so that they share more memory",
        )))
        .subcommand(with_selector_args(
            clap::Command::new("upgrade")
                .about("Start a new Highball in place of the running one, without dropping requests")
                .long_about(
                    "Start a new Highball in place of the running one, without dropping requests (hot restart). It uses the \
                     installed version of Highball, the current options, and the application's current code",
                ),
        ))
        .subcommand(maintenance())
        .subcommand(with_selector_args(
            clap::Command::new("stop").about("Let a running server finish its requests and exit"),
        ))
        .subcommand(memory())
        .subcommand(bench());
    with_serve_args(highball)
}

fn config() -> clap::Command {
    let program = Arg::new("PROGRAM")
        .required(true)
        .value_parser(PossibleValuesParser::new(PROGRAMS))
        .help("The program to configure");
    let host = Arg::new("host")
        .long("host")
        .value_name("NAME")
        .help("Host name that visitors ask for [default: the folder's name and `.localhost`]");
    let via = Arg::new("via")
        .long("via")
        .value_name("PROTOCOL")
        .value_parser(PossibleValuesParser::new(PROGRAM_PROTOCOLS))
        .help("Protocol by which the program reaches Highball [default: http, if Highball listens for it]");
    let machines = Arg::new("machines")
        .long("machines")
        .value_name("HOSTS")
        .help("Host names or IP addresses of the machines that serve it, with commas between them: for haproxy and kamal");
    let memory = Arg::new("memory").long("memory").value_name("SIZE").help(
        "Memory of the server on each machine, as `highball memory` reports it: for kubernetes, kamal and nomad \
         [default: an estimate]",
    );
    let command = clap::Command::new("config")
        .about("Print a configuration for nginx, HAProxy, systemd, Kubernetes and other programs")
        .long_about(
            "Print a configuration for another program: for a web server in front of the application at PATH, for systemd, \
             which starts it, or for a program that runs it on several machines. It takes the options of `serve`. The \
             environment defaults to production",
        );
    with_serve_args(command.arg(program)).args([via, host, machines, memory])
}

fn init() -> clap::Command {
    let dry_run = flag("dry-run", "Print what would be written, and write nothing");
    let path = Arg::new("PATH")
        .value_parser(value_parser!(PathBuf))
        .help("The application's folder [default: the current folder]");
    clap::Command::new("init")
        .about("Write a configuration file, a Procfile and a systemd unit for the app")
        .long_about(
            "Write a configuration file, a Procfile and a systemd unit for the application at PATH, unless they exist, and \
             print what to change in its Dockerfile and its deploy.yml. No file is changed or removed",
        )
        .arg(dry_run)
        .arg(path)
}

fn status() -> clap::Command {
    let check = flag("check", "Exit with 1 unless all applications serve: for health checks");
    with_selector_args(
        clap::Command::new("status").about("Show the state of running servers and their applications"),
    )
    .arg(flag("details", "Also show backtraces, earlier failures, and how Ruby is tuned"))
    .arg(flag("slow", "Show the last slow requests, and where their time went (option `slow_request`)"))
    .arg(json())
    .arg(check)
}

fn top() -> clap::Command {
    let command = clap::Command::new("top")
        .about("Watch a running server: its workers and their requests")
        .long_about(
            "Watch a running server: its applications, their workers, and every running request, with its age and what its \
             thread is doing. Keys: up and down choose a request, Enter shows its backtrace, r restarts the \
             application, + and - change the number of workers, k replaces the worker of the request, q quits. If \
             standard output is not a terminal, it prints one snapshot",
        );
    with_selector_args(command).args([
        flag("once", "Print one snapshot, for scripts and logs"),
        flag("backtraces", "Print one snapshot, with the backtraces of all requests"),
        flag("json", "Print one snapshot as JSON, for programs"),
        flag("token", "Print the token for actions in the dashboard (option `admin_actions`)"),
    ])
}

fn profile() -> clap::Command {
    let seconds = Arg::new("seconds")
        .long("seconds")
        .value_name("N")
        .value_parser(value_parser!(u64).range(1..=300))
        .help(format!("For how long, at most 300 [default: {}]", ProfileOptions::TIME.as_secs()));
    let worker = Arg::new("worker")
        .long("worker")
        .value_name("N")
        .value_parser(value_parser!(u32))
        .help("Only the worker with this number, as `highball status` shows it [default: all workers]");
    let mode = Arg::new("mode")
        .long("mode")
        .value_name("MODE")
        .value_parser(PossibleValuesParser::new(ProfileMode::NAMES))
        .help("What to sample: threads that compute (cpu), all busy threads (wall), threads that wait for the GVL (gvl; Ruby 3.2 or later), or new objects (allocations) [default: cpu]");
    let group = Arg::new("group")
        .long("group")
        .value_name("BY")
        .value_parser(PossibleValuesParser::new(["path"]))
        .help("Group the samples by the method and path of their requests");
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .value_hint(clap::ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help(
            "New file to write, or - for standard output [default: profile-APP.html in the current folder]",
        );
    let format = Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(ProfileFormat::NAMES))
        .help("A page with a flame graph (html), a line for each stack (folded), or a file for pprof or speedscope [default: by the file's name, else html]");
    let command = clap::Command::new("profile")
        .about("Show where the time of a running application goes, as a flame graph")
        .long_about(
            "Show where the time of a running application goes: sample its workers for some seconds while they serve, and write a \
             page with a flame graph. The page needs no other file and no network. Only the server's user and root can do \
             this. A profile contains names of methods and paths of files, but no arguments",
        );
    with_selector_args(command).args([seconds, worker, mode, group, output, format])
}

fn asked_profile(matches: &ArgMatches) -> ProfileOptions {
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    ProfileOptions {
        mode: ProfileMode::named(text("mode").unwrap_or_default()),
        time: matches.get_one::<u64>("seconds").copied().map_or(ProfileOptions::TIME, Duration::from_secs),
        worker: matches.get_one::<u32>("worker").copied(),
        by_path: text("group").is_some(),
        output: matches.get_one::<PathBuf>("output").cloned(),
        format: text("format").map(ProfileFormat::named),
    }
}

fn rollout() -> clap::Command {
    let order = Arg::new("SHARE")
        .required(true)
        .value_parser(|text: &str| text.parse::<RolloutOrder>())
        .help("Share of the visitors, such as 5% or 0.5%; 100% for all; `undo` to go back");
    let command = clap::Command::new("rollout")
        .about("Give a share of the visitors the new code, then more of them, or go back")
        .long_about(
            "Give a share of the visitors the new code, beside the old version. A larger share adds visitors, 100% finishes the \
             restart, and `undo` gives all of them the old version again. A cookie keeps visitors with their version",
        )
        .arg(order);
    with_selector_args(command)
}

fn rollout_order(matches: &ArgMatches) -> RolloutOrder {
    *matches.get_one::<RolloutOrder>("SHARE").expect("clap requires it")
}

fn maintenance() -> clap::Command {
    let switch = Arg::new("SWITCH")
        .required(true)
        .value_parser(PossibleValuesParser::new(["on", "off"]))
        .help("Whether visitors get the page");
    let message = Arg::new("message").long("message").value_name("TEXT").help("Message on the page");
    let time =
        |text: &str| value::duration(text, &(Duration::from_secs(1)..=Duration::from_secs(30 * 86_400)));
    let retry_after = Arg::new("retry-after")
        .long("retry-after")
        .value_name("TIME")
        .value_parser(time)
        .help("Time after which visitors and search engines come back [default: 10m]");
    let allow = Arg::new("allow")
        .long("allow")
        .value_name("ADDR")
        .action(ArgAction::Append)
        .value_parser(|text: &str| networks(text).map(|_| text.to_owned()))
        .help("Address or network whose clients reach the application; you can repeat it");
    let command = clap::Command::new("maintenance")
        .about("Show visitors a maintenance page, or the application again")
        .long_about(
            "Show visitors a maintenance page with status 503 instead of the application, or the application again. The change \
             takes effect within a second, and restarts keep it. Health checks, running requests and open WebSockets go on. \
             The command prints a link that lets your browser reach the application",
        )
        .arg(switch);
    with_selector_args(command).args([message, retry_after, allow])
}

fn switch(matches: &ArgMatches) -> MaintenanceSwitch {
    match matches.get_one::<String>("SWITCH").map(String::as_str) {
        Some("on") => MaintenanceSwitch::On {
            message: matches.get_one::<String>("message").cloned(),
            retry_after: matches.get_one::<Duration>("retry-after").copied(),
            allow: matches.get_many::<String>("allow").into_iter().flatten().cloned().collect(),
        },
        _ => MaintenanceSwitch::Off,
    }
}

fn display(matches: &ArgMatches) -> Display {
    match ["token", "json", "backtraces", "once"].map(|name| matches.get_flag(name)) {
        [true, ..] => Display::Token,
        [_, true, ..] => Display::Json,
        [_, _, true, _] => Display::Once { backtraces: true },
        [_, _, _, true] => Display::Once { backtraces: false },
        _ => Display::Live,
    }
}

/// Its options are the benchmark's own business.
fn bench() -> clap::Command {
    let arguments = Arg::new("ARGUMENTS")
        .value_parser(value_parser!(OsString))
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .help("See `highball bench --help`");
    clap::Command::new("bench")
        .about("Measure an application, or compare ways to deploy it")
        .disable_help_flag(true)
        .arg(arguments)
}

fn with_serve_args(command: clap::Command) -> clap::Command {
    let path = Arg::new("PATH")
        .value_parser(value_parser!(PathBuf))
        .num_args(0..)
        .help("Application folders, or their files (.rb or .ru) [default: the current folder]");
    let of_section =
        |(title, options): &'static (&str, &[Opt])| options.iter().map(|option| argument(option, title));
    command.arg(path).args(SECTIONS.iter().flat_map(of_section))
}

fn argument(option: &'static Opt, section: &'static str) -> Arg {
    let default = option.default_text();
    let other_variables =
        option.variables().skip(1).map(|name| format!(" [env: {name}]")).collect::<String>();
    let variables = option.variables().collect::<Vec<_>>().join(", ");
    let arg = Arg::new(option.name)
        .long(option.long())
        .value_name(option.value.form().metavar())
        .help_heading(section)
        .action(if option.repeats() { ArgAction::Append } else { ArgAction::Set })
        .help(format!("{} [default: {default}]{other_variables}", help::first_sentence(option)))
        .long_help(format!("{}\n[default: {default}]\n[env: {variables}]", help::plain_doc(option)));
    let arg = if option.value.form().is_path("/") { arg.value_hint(clap::ValueHint::AnyPath) } else { arg };
    let arg = match option.value.form().notation() {
        // What follows without `=` is an application.
        Notation::Flag => arg.num_args(0..=1).require_equals(true).default_missing_value("on"),
        _ => arg,
    };
    let suggestions = option.value.form().suggestions();
    let arg = match suggestions.is_empty() {
        true => arg,
        false => arg.value_parser(Suggests(suggestions)).hide_possible_values(true),
    };
    // Puma's letter.
    let arg = if option.name == "config" { arg.short_alias('C') } else { arg };
    match option.letter() {
        Some(letter) => arg.short(letter),
        None => arg,
    }
}

/// A text, of which shells complete some.
#[derive(Clone)]
struct Suggests(Vec<&'static str>);

impl TypedValueParser for Suggests {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

fn memory() -> clap::Command {
    let gc = flag("gc", "First run a full garbage collection in every worker; requests wait for it");
    let command = clap::Command::new("memory")
        .about("Show the memory of running servers and their Ruby heaps")
        .long_about(
            "Show the memory of running servers: Highball's processes and their Ruby heaps, and those of other Ruby servers \
             on this machine",
        );
    with_selector_args(command).arg(gc).arg(json())
}

fn json() -> Arg {
    flag("json", "Print JSON, for programs")
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn with_selector_args(command: clap::Command) -> clap::Command {
    command
        .after_help(CONTROL)
        .arg(
            Arg::new("port")
                .short('p')
                .long("port")
                .value_name("N")
                .value_parser(value_parser!(u16))
                .help("The server that listens on this port"),
        )
        .arg(
            Arg::new("APP").value_parser(value_parser!(PathBuf)).help(
                "The application with this name or in this folder, or its server [default: the only one]",
            ),
        )
}

fn selector(matches: &ArgMatches) -> Selector {
    Selector {
        port: matches.get_one::<u16>("port").copied(),
        app: matches.get_one::<PathBuf>("APP").map(|path| app_selector(path)),
    }
}

fn app_selector(path: &Path) -> AppSelector {
    let current = working_folder().unwrap_or_default();
    let (given, _) = split_file(absolute(&current, path));
    let by_resolved_parent = given
        .parent()
        .zip(given.file_name())
        .and_then(|(parent, name)| Some(parent.canonicalize().ok()?.join(name)));
    AppSelector {
        text: visible_path(path),
        folder: given.canonicalize().unwrap_or_else(|_| given.clone()),
        links: std::iter::once(given).chain(by_resolved_parent).collect(),
    }
}

fn serve(matches: &ArgMatches) -> Result<Command, ConfigError> {
    let (paths, given) = serve_args(matches);
    Ok(Command::Serve { paths, given })
}

fn serve_args(matches: &ArgMatches) -> (Vec<PathBuf>, Given) {
    let mut given = Given::default();
    for option in options() {
        let Some(texts) = matches.get_many::<String>(option.name) else { continue };
        let raw =
            |text: &String| Raw { text: text.clone(), origin: Origin::CommandLine { long: option.long() } };
        given.add(option, texts.map(raw).collect());
    }
    (matches.get_many::<PathBuf>("PATH").into_iter().flatten().cloned().collect(), given)
}

/// Without a suggestion, and a usage of it, that is another word: to clap it is enough that options begin in the same way.
fn near_suggestions(mut error: clap::Error) -> clap::Error {
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => {
            let name = text.trim_start_matches('-').split(['=', ' ']).next().unwrap_or_default();
            Some(name.replace('-', "_"))
        }
        _ => None,
    };
    let names = name(ContextKind::InvalidArg).zip(name(ContextKind::SuggestedArg));
    if names.is_some_and(|(written, known)| did_you_mean(&written, [known.as_str()].into_iter()).is_none()) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
    error
}

/// Help and version are errors to clap, and answers to the user.
fn not_a_command(error: &clap::Error) -> Result<Command, ConfigError> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => Ok(Command::Other(Invocation::Help(text))),
        ErrorKind::DisplayVersion => Ok(Command::Other(Invocation::Version(text))),
        _ => {
            let written = error.get(ContextKind::InvalidArg).map(ToString::to_string);
            let instead = written.as_deref().and_then(counterparts::option);
            let instead = instead.map(|instead| format!("\n\nInstead: {instead}.")).unwrap_or_default();
            Err(ConfigError::Usage(format!("{}{instead}", text.trim_start_matches("error: ").trim_end())))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_commands_are_listed() {
        let command = super::command();
        assert!(command.get_subcommands().map(clap::Command::get_name).eq(crate::counterparts::COMMANDS));
    }

    #[test]
    fn the_command_is_sound() {
        super::command().debug_assert();
    }
}
