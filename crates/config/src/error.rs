//! Errors in the configuration.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from, in the words of an error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `--threads` on the command line.
    CommandLine {
        /// The option's long name, without dashes before it.
        long: String,
    },
    /// An environment variable.
    Environment {
        /// The variable.
        variable: String,
    },
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The option's name.
        name: &'static str,
        /// Where relative paths begin.
        folder: PathBuf,
    },
    /// The table of options.
    Default {
        /// The option's name.
        name: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine { long } => write!(f, "option --{long}"),
            Origin::Environment { variable } => write!(f, "environment variable {variable}"),
            Origin::File { path, line, name, .. } => {
                write!(f, "configuration file {}, line {line}, {name}", path.display())
            }
            Origin::Default { name } => write!(f, "default of {name}"),
        }
    }
}

/// Why a command line, an environment or a configuration file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line does not parse.
    #[error("{0}")]
    Usage(String),

    /// An option has a value that it cannot have.
    #[error("{origin}: {problem}")]
    Value {
        /// Where the value was given.
        origin: Origin,
        /// What is wrong with it, and what it may be.
        problem: String,
    },

    /// The configuration file cannot be used.
    #[error("configuration file {}{}: {problem}", path.display(), line.map(|n| format!(", line {n}")).unwrap_or_default())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, where one is to blame.
        line: Option<usize>,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// The application folder cannot be used.
    #[error("application folder {}: {problem}", path.display())]
    App {
        /// The folder as it was given.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// Nothing is known of an application.
    #[error("application folder {}: the file system does not answer", path.display())]
    Silent {
        /// The folder as it was given.
        path: PathBuf,
    },

    /// The folder that Highball was started in cannot be found out.
    #[error("the current folder is gone or cannot be read ({0}); change to another one, or name the application by its full path")]
    CurrentFolder(#[source] std::io::Error),
}

impl ConfigError {
    /// The process's exit code: 2, as for every command that was called wrongly.
    pub fn exit_code(&self) -> u8 {
        2
    }
}

/// Why an application cannot be brought up as it is configured, while the others are served: its own configuration file or
/// its folder is to blame.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fault {
    /// What is wrong, and what to do.
    pub message: String,
    /// The configuration file.
    #[serde(with = "highball_text::exact")]
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// Whether the application is reached where the server says, whatever its own file says.
    pub(crate) server_routes: bool,
    /// Whether nothing is known of the application, not even whose it is.
    pub(crate) is_silent: bool,
}

impl Fault {
    /// Of a configuration file that was there before: what it narrowed would be open without it.
    pub(crate) fn of_gone(file: PathBuf) -> Fault {
        let message = format!(
            "the configuration file {} has gone; put it back, or serve without it after a hot restart (highball upgrade)",
            file.display()
        );
        Fault { message, file: Some(file), line: None, server_routes: false, is_silent: false }
    }

    pub(crate) fn of(error: &ConfigError, server_routes: bool) -> Fault {
        let (file, line) = match error {
            ConfigError::File { path, line, .. } => (Some(path), *line),
            ConfigError::Value { origin: Origin::File { path, line, .. }, .. } => (Some(path), Some(*line)),
            _ => (None, None),
        };
        let is_silent = matches!(error, ConfigError::Silent { .. });
        Fault { message: error.to_string(), file: file.cloned(), line, server_routes, is_silent }
    }
}

/// Words for the reasons an operating system gives most often, without its error numbers.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".into(),
        std::io::ErrorKind::PermissionDenied => "may not be read by this user".into(),
        _ => format!("cannot be read: {error}"),
    }
}
