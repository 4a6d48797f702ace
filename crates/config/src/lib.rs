//! Options: one table, from which the command line, the configuration file, the environment and the
//! manual are made, and the resolved [`Settings`] that the rest of Highball is given.
//!
//! In reading order:
//!
//! - `options`: the table, one row per option; `form`: how each kind of value is written and read; `fields`: where it is stored;
//! - `command_line`: the command line, made from the table, read into what was *given*; `help`: what `--help` prints;
//!   `counterparts`: its commands and options, and what other servers call them; `spelling`: what a misspelt word was meant to be;
//! - `given`: what was given, where, and which of it counts;
//! - `file`: the configuration file; [`puma`]: a Puma configuration, for what that does not set; `origins`: which file an option
//!   comes from; `foreign`: those of other programs, of which [`programs`] has names and pages;
//! - `restriction`: what happens where an option that narrows something cannot be kept;
//! - `environments`: environments that a Rails application does not have;
//! - `companions`: processes beside an application's workers;
//! - `value`: sizes, durations, addresses and other values as people write them; `access_format`: forms of log lines;
//!   `network`: addresses that are trusted; `pool`: a range of workers; `given_path`: paths with their links;
//! - `ownership`: the user that an application runs as;
//! - `traces`: where traces go, by an option and by OpenTelemetry's variables;
//! - `root_table`: what the process that stays root may be ordered to do;
//! - `resolve`: from what was given to [`Settings`];
//! - [`settings`]: what comes out; `changes`: what differs from what came out before, and when that takes effect;
//! - `callbacks`: what the caller does meanwhile, such as asking Ruby;
//! - `deployment`: the settings as another program is to know them, which starts Highball;
//! - `error`: errors in the configuration;
//! - `manual`: `docs/configuration.md`; `ruby_table`: names of options and commands for Ruby code.

mod access_format;
mod callbacks;
mod changes;
mod command_line;
mod companions;
mod counterparts;
mod deployment;
mod environments;
mod error;
mod fields;
mod file;
mod foreign;
mod form;
mod given;
mod given_path;
mod help;
mod manual;
mod network;
mod options;
mod origins;
mod ownership;
mod pool;
mod profile;
pub mod programs;
mod puma;
mod rate_limit;
mod redirects;
mod resolve;
mod response_headers;
mod restriction;
mod rollout;
mod root_table;
mod ruby_table;
pub mod settings;
mod spelling;
mod threads;
mod traces;
mod value;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use highball_text::visible_path;

pub use access_format::{LineFormat, LinePart, LogField, LogRules, Surroundings, WHOLE};
pub use callbacks::Callbacks;
pub use changes::Changes;
pub use command_line::{command, PROGRAMS, PROGRAM_PROTOCOLS};
pub use counterparts::COMMANDS;
pub use deployment::{Asked, Deployment};
pub use error::{ConfigError, Fault};
pub use fields::{ADMIN_PORT, AGENT_PORT};
pub use given_path::{absolute, keep_working_folder, kept_working_folder, working_folder, STARTED_IN};
pub use help::man_beginning;
pub use highball_cgroups::{CpuMax, Limits as KernelLimits};
pub use manual::manual;
pub use network::{networks, Network};
pub use ownership::no_such_user;
pub use pool::PoolRange;
pub use profile::{ProfileFormat, ProfileMode, ProfileOptions};
pub use puma::{AskRuby, PumaAnswer, PumaQuestion};
pub use restriction::{check_variables, restrictions};
pub use rollout::{RolloutOrder, VisitorShare};
pub use root_table::{asks_to_serve, root_table, RootTable, TableApp};
pub use ruby_table::ruby_table;
pub use settings::{
    AccessLog, AcmeSettings, AdminSettings, Affinity, Allocator, App, AppId, AppLimits, BasicAuth, Bind,
    BindAddress, BindProtocol, CertificateFiles, ClientAuth, ClientCertificates, Companion, CompanionCommand,
    ExternalAccount, HeaderChange, HeaderRule, HubLimits, Jit, Limits, Log, LogFormat, MemoryBound,
    MemoryLimits, Named, NamesOnDemand, Process, ProxyProtocol, PumaNote, RateRule, Redirect, Redirects,
    ReforkAfter, RestartRule, RunsAs, SentFolder, Settings, ShowDiagnosis, StaticFiles, TlsSettings,
};
pub use spelling::did_you_mean;
pub use threads::{Threads, MOST_THREADS};
pub use traces::{Sampler, TraceSettings};
pub use value::{is_maintenance_file, utf_8};

/// Whether an authority could issue a certificate for this name, in small letters.
pub fn is_domain(host: &str) -> bool {
    !host.contains('*') && value::domain(host).is_ok_and(|name| name == host)
}

/// A user of this machine.
pub use highball_users::User;

use command_line::Command;
use given::Given;

/// What the user asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// Serve applications.
    Serve(Box<Settings>),
    /// Boot an application once, without serving it, and report its problems.
    Doctor {
        /// As JSON for programs, instead of a list for people.
        json: bool,
        /// What it would be served with.
        settings: Box<Settings>,
    },
    /// Print the configuration of another program for an application.
    Config(Box<Deployment>),
    /// Write what an application is deployed with.
    Init {
        /// Only say what would be written.
        dry_run: bool,
        /// The application's folder, as it was given.
        folder: PathBuf,
        /// The application as systemd is to know it.
        unit: Box<Deployment>,
    },
    /// Say how a running instance is doing.
    Status {
        /// What is printed.
        form: StatusForm,
        /// Whether an application that does not serve is an error.
        check: bool,
        /// Whether the last slow requests are printed in the place of the state.
        slow: bool,
        /// Which instance.
        selector: Selector,
    },
    /// Replace the processes of a running instance's application, one after the other.
    Restart {
        /// Which instance.
        selector: Selector,
    },
    /// Give a share of the visitors a new version of a running instance's application.
    Rollout {
        /// Which share.
        order: RolloutOrder,
        /// Which instance.
        selector: Selector,
    },
    /// Re-fork the workers of a running instance from a warm one.
    Refork {
        /// Which instance.
        selector: Selector,
    },
    /// Replace a running instance by a new process: the program that is installed now, with its options.
    Upgrade {
        /// Which instance.
        selector: Selector,
    },
    /// Switch maintenance of a running instance's applications.
    Maintenance {
        /// To what.
        switch: MaintenanceSwitch,
        /// Which instance.
        selector: Selector,
    },
    /// Drain and stop a running instance.
    Stop {
        /// Which instance.
        selector: Selector,
    },
    /// Measure ways to deploy an application.
    Bench {
        /// What comes after `bench`.
        arguments: Vec<OsString>,
    },
    /// Say what memory running instances, and other Ruby servers on this machine, take.
    Memory {
        /// As JSON for programs, instead of tables for people.
        json: bool,
        /// Whether workers run a full garbage collection first.
        gc: bool,
        /// Which instance.
        selector: Selector,
    },
    /// Show what a running instance does.
    Top {
        /// In which form.
        display: Display,
        /// Which instance.
        selector: Selector,
    },
    /// Sample what the workers of a running instance's application do.
    Profile {
        /// What, and where it goes.
        asked: ProfileOptions,
        /// Which instance.
        selector: Selector,
    },
    /// Print this help text on standard output.
    Help(String),
    /// Print this version line on standard output.
    Version(String),
}

/// What `highball maintenance` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceSwitch {
    /// Visitors get a page.
    On {
        /// Message on the page.
        message: Option<String>,
        /// When they are asked to come back.
        retry_after: Option<Duration>,
        /// Clients that reach the application: addresses and networks.
        allow: Vec<String>,
    },
    /// Visitors get the application.
    Off,
}

/// What `highball status` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusForm {
    /// A table for people.
    Table,
    /// The same with backtraces and earlier failures.
    Details,
    /// JSON for programs.
    Json,
}

/// What `highball top` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// A picture that follows what happens, with keys. One picture where standard output is no terminal.
    Live,
    /// One picture, as text.
    Once {
        /// With the backtraces of the requests.
        backtraces: bool,
    },
    /// One picture, as JSON.
    Json,
    /// The token for the dashboard.
    Token,
}

/// Selects one of the running instances; with neither, the only one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// The server that listens on this TCP port.
    pub port: Option<u16>,
    /// The server that serves this application.
    pub app: Option<AppSelector>,
}

/// Selects an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppSelector {
    /// What was written: it may be the name.
    pub text: String,
    /// The folder that this would be: absolute, symbolic links resolved where the folder still exists.
    pub folder: PathBuf,
    /// Absolute paths of the folder that keep its own symbolic link, such as Capistrano's `current`: it may lead to another
    /// release than the served one.
    pub links: Vec<PathBuf>,
}

impl AppSelector {
    /// Whether this application is meant: it has this name, is served from this folder, or was started by the path `link`, which
    /// may lead to this folder by now.
    pub fn is(&self, name: &str, folder: &Path, link: &Path) -> bool {
        // A server reports them as people see them.
        let [folder_text, link_text] = [folder, link].map(visible_path);
        let own = visible_path(&self.folder);
        let is_folder = own == folder_text || own == link_text;
        let is_link = || self.links.iter().any(|one| visible_path(one) == link_text);
        // A new release is known before a restart has brought it up. (Links are looked at near the folder alone.)
        let is_next = || {
            let is_near = link.parent().is_some_and(|around| self.folder.starts_with(around));
            is_near && link.canonicalize().is_ok_and(|next| next == self.folder)
        };
        self.text == name || is_folder || is_link() || is_next()
    }
}

/// Reads a command line (`args`, beginning with the program's own name) and, for `serve`, the environment
/// and the configuration file.
///
/// # Errors
///
/// When something was given that cannot be understood, or the application folder cannot be read. The
/// error's text says what failed and what to do, and needs only `highball: ` before it.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Invocation, ConfigError> {
    parse_with(args, env, Callbacks::default())
}

/// The same, where Puma configurations can be evaluated, or file systems may not answer.
///
/// # Errors
/// As [`parse`]; and a Puma configuration raises an exception.
pub fn parse_with(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    callbacks: Callbacks<'_>,
) -> Result<Invocation, ConfigError> {
    Ok(match command_line::read(args)? {
        Command::Serve { paths, given } => {
            Invocation::Serve(Box::new(resolve::resolve(paths, given, env, callbacks)?))
        }
        Command::Doctor { json, paths, given } => {
            Invocation::Doctor { json, settings: Box::new(resolve::resolve(paths, given, env, callbacks)?) }
        }
        Command::Config { asked, paths, given } => {
            Invocation::Config(Box::new(Deployment::resolve(asked, paths, given, env, callbacks)?))
        }
        Command::Init { dry_run, path } => {
            let folder = path.unwrap_or_else(|| ".".into());
            let paths = vec![folder.clone()];
            let asked =
                Asked { program: "systemd".into(), via: None, host: None, machines: None, memory: None };
            let unit = Deployment::resolve(asked, paths, Given::default(), env, callbacks)?;
            Invocation::Init { dry_run, folder, unit: Box::new(unit) }
        }
        Command::Other(invocation) => invocation,
    })
}
