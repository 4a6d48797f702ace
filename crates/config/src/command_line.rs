//! The command line, made from the table of options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ErrorKind};
use clap::{value_parser, Arg, ArgAction, ArgMatches};

use crate::counterparts;
use crate::deployment;
use crate::error::ConfigError;
use crate::given::{Given, Origin, Raw};
use crate::options::{did_you_mean, Opt, Section, OPTIONS};
use crate::resolve::split_file;
use crate::{AppSelector, Selector};

/// What the command line asks for; for `serve`, before the environment and the file have been looked at.
pub(crate) enum Command {
    Serve { paths: Vec<PathBuf>, given: Given },
    Doctor { json: bool, paths: Vec<PathBuf>, given: Given },
    Config { program: String, host: Option<String>, paths: Vec<PathBuf>, given: Given },
    Status { json: bool, selector: Selector },
    Restart { selector: Selector },
    Refork { selector: Selector },
    Upgrade { selector: Selector },
    Stop { selector: Selector },
    Bench { arguments: Vec<OsString> },
    Memory { json: bool, gc: bool, selector: Selector },
    Help(String),
    Version(String),
}

/// Reads the command line. `args` begins with the program's name.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, ConfigError> {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return not_a_command(&error),
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
            Ok(Command::Config { program, host: text("host"), paths, given })
        }
        Some(("status", matches)) => {
            Ok(Command::Status { json: matches.get_flag("json"), selector: selector(matches) })
        }
        Some(("restart", matches)) => Ok(Command::Restart { selector: selector(matches) }),
        Some(("refork", matches)) => Ok(Command::Refork { selector: selector(matches) }),
        Some(("upgrade", matches)) => Ok(Command::Upgrade { selector: selector(matches) }),
        Some(("stop", matches)) => Ok(Command::Stop { selector: selector(matches) }),
        Some(("bench", matches)) => {
            let rest = matches.get_many::<OsString>("ARGUMENTS").into_iter().flatten().cloned();
            Ok(Command::Bench { arguments: rest.collect() })
        }
        Some(("memory", matches)) => Ok(Command::Memory {
            json: matches.get_flag("json"),
            gc: matches.get_flag("gc"),
            selector: selector(matches),
        }),
        Some((_, matches)) => serve(matches),
        None => serve(&matches),
    }
}

/// What all commands and the server read beside their options.
const CONTROL: &str = "HIGHBALL_CONTROL names the socket by which commands find the server, or a folder of such sockets; set it \
                       for both. See docs/signals.md.";

/// The whole command, for parsing and for its help texts.
pub(crate) fn command() -> clap::Command {
    let highball = clap::Command::new("highball")
        .bin_name("highball")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Serves Ruby web applications: point it at an application folder and it is deployed.")
        .args_conflicts_with_subcommands(true)
        .after_help(CONTROL)
        .override_usage(
            "highball [serve] [OPTIONS] [PATH…]\n       highball doctor [OPTIONS] [PATH…]\n       highball config PROGRAM [OPTIONS] [PATH]\n       highball status|restart|refork|upgrade|stop|memory [OPTIONS] [APP]\n       highball bench [OPTIONS]",
        )
        .subcommand(with_serve_args(
            clap::Command::new("serve")
                .alias("start")
                .about("Serve the application at PATH, or several (the default command)"),
        ))
        .subcommand(
            with_serve_args(clap::Command::new("doctor").about(
                "Boot the application at PATH once, without serving it, and report current and likely problems",
            ))
            .arg(json()),
        )
        .subcommand(config())
        .subcommand(
            with_selector_args(clap::Command::new("status").about("Show the state of a running server"))
                .arg(json()),
        )
        .subcommand(with_selector_args(clap::Command::new("restart").about(
            "Load new code without dropping requests (rolling restart)",
        )))
        .subcommand(with_selector_args(clap::Command::new("refork").about(
            "Re-fork a running server's workers from a warm one, so that they share more memory",
        )))
        .subcommand(with_selector_args(clap::Command::new("upgrade").about(
            "Replace a running server by a new process without dropping requests (hot restart): the Highball that is installed \
             now, its options, and new code",
        )))
        .subcommand(with_selector_args(
            clap::Command::new("stop").about("Let a running server finish its requests, then stop it"),
        ))
        .subcommand(memory())
        .subcommand(bench());
    with_serve_args(highball)
}

fn config() -> clap::Command {
    let program = Arg::new("PROGRAM")
        .required(true)
        .value_parser(PossibleValuesParser::new(deployment::programs()))
        .help("The program to configure");
    let host = Arg::new("host")
        .long("host")
        .value_name("NAME")
        .help("Host name of the site [default: the folder's name and `.localhost`]");
    let command = clap::Command::new("config").about(
        "Print a configuration for another program: a web server in front of the application at PATH, or systemd, which \
         starts it. Takes the options of `serve`; the default environment is production",
    );
    with_serve_args(command.arg(program)).arg(host)
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
    let options = Section::ALL
        .into_iter()
        .flat_map(|section| OPTIONS.iter().filter(move |option| option.section == section));
    command.arg(path).args(options.map(argument))
}

fn argument(option: &'static Opt) -> Arg {
    let first_sentence =
        option.doc.split_inclusive(". ").next().unwrap_or(option.doc).trim_end_matches(['.', ' ']);
    let variables = option.env.iter().map(|name| format!(" [env: {name}]")).collect::<String>();
    let arg = Arg::new(option.name)
        .long(option.long())
        .value_name(option.form.metavar())
        .help_heading(option.section.title())
        .action(if option.form.repeats() { ArgAction::Append } else { ArgAction::Set })
        .help(format!("{first_sentence} [default: {}]{}", option.default_text(), variables));
    let arg = if option.form.is_path() { arg.value_hint(clap::ValueHint::AnyPath) } else { arg };
    // Puma's letter.
    let arg = if option.name == "config" { arg.short_alias('C') } else { arg };
    match option.short {
        Some(short) => arg.short(short),
        None => arg,
    }
}

fn memory() -> clap::Command {
    let gc = Arg::new("gc")
        .long("gc")
        .action(ArgAction::SetTrue)
        .help("Run a full garbage collection in every worker first; its requests wait for it");
    with_selector_args(clap::Command::new("memory").about(
        "Show the memory of running servers: Highball's processes and their Ruby heaps, and those of other Ruby servers on \
         this machine",
    ))
    .arg(gc)
    .arg(json())
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON, for programs")
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
    let folder = match split_file(Some(path.to_owned())) {
        (Some(folder), Some(_)) => folder,
        (None, Some(_)) => PathBuf::from("."),
        (_, None) => path.to_owned(),
    };
    let absolute = folder.canonicalize().or_else(|_| std::path::absolute(&folder));
    AppSelector { text: path.display().to_string(), folder: absolute.unwrap_or(folder) }
}

fn serve(matches: &ArgMatches) -> Result<Command, ConfigError> {
    let (paths, given) = serve_args(matches);
    Ok(Command::Serve { paths, given })
}

fn serve_args(matches: &ArgMatches) -> (Vec<PathBuf>, Given) {
    let mut given = Given::default();
    for option in OPTIONS {
        let Some(texts) = matches.get_many::<String>(option.name) else { continue };
        let raw =
            |text: &String| Raw { text: text.clone(), origin: Origin::CommandLine { long: option.long() } };
        given.add(option, texts.map(raw).collect());
    }
    (matches.get_many::<PathBuf>("PATH").into_iter().flatten().cloned().collect(), given)
}

/// The command that a path which is not there may have been meant to be.
pub(crate) fn misspelt_command(path: &Path) -> Option<&'static str> {
    let commands = [
        "serve", "doctor", "config", "status", "restart", "refork", "upgrade", "stop", "memory", "bench",
        "help",
    ];
    let word = path.to_str()?;
    counterparts::command(word).or_else(|| did_you_mean(word, commands.into_iter()))
}

/// Help and version are errors to clap, and answers to the user.
fn not_a_command(error: &clap::Error) -> Result<Command, ConfigError> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => Ok(Command::Help(text)),
        ErrorKind::DisplayVersion => Ok(Command::Version(text)),
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
    fn the_command_is_sound() {
        super::command().debug_assert();
    }
}
