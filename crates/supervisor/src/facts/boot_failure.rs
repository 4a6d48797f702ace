//! Why a boot failed, as Ruby or the supervisor reports it: with its secrets.

use highball_link::{RubyError, Step};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Why a boot failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BootFailure {
    /// The step of the spawn journey that failed.
    pub(crate) step: Step,
    /// What went wrong, and what to do.
    #[serde(flatten)]
    pub(crate) account: Account,
}

/// What went wrong, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Account {
    /// What went wrong.
    pub(crate) error: RubyError,
    /// The exceptions that led to it, each the cause of the one before.
    #[serde(default)]
    pub(crate) causes: Vec<RubyError>,
    /// The short name of the cause; see `lib/highball/causes.rb`.
    pub(crate) cause: String,
    /// What to do, in a sentence.
    pub(crate) remedy: Option<String>,
    /// The command that does it.
    pub(crate) command: Option<String>,
    /// What remedy and command quote of the application: paths and names, which may be secret. The rest is our own.
    #[serde(default)]
    pub(crate) quoted: Vec<String>,
    /// What was loaded, with versions.
    #[serde(default)]
    pub(crate) versions: BTreeMap<String, String>,
    /// The last lines that were printed while it booted.
    #[serde(default)]
    pub(crate) output: Vec<String>,
}

impl BootFailure {
    /// A failure that Ruby did not report itself.
    pub(crate) fn of_ours(step: Step, cause: &str, message: String, remedy: String) -> BootFailure {
        BootFailure { step, account: Account::of_ours(cause, message, remedy) }
    }

    /// The same with the command that fixes it.
    pub(crate) fn with_command(self, command: &str) -> BootFailure {
        BootFailure { account: self.account.with_command(command), ..self }
    }
}

impl Account {
    /// Of what Ruby did not report itself.
    pub(crate) fn of_ours(cause: &str, message: String, remedy: String) -> Account {
        Account {
            error: RubyError::of_ours(message),
            causes: Vec::new(),
            cause: cause.into(),
            remedy: Some(remedy),
            command: None,
            quoted: Vec::new(),
            versions: BTreeMap::new(),
            output: Vec::new(),
        }
    }

    /// The same with the command that fixes it.
    pub(crate) fn with_command(mut self, command: &str) -> Account {
        self.command = Some(command.into());
        self
    }
}
