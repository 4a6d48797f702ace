//! One check, and how it came out.

use highball_link::Finding;
use serde::Serialize;

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckState {
    /// It is as it should be.
    Ok,
    /// It works, and will make trouble later.
    Warning,
    /// It does not work.
    Failed,
}

/// One check.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    /// A short name that never changes.
    pub(crate) name: String,
    pub(crate) state: CheckState,
    /// What was found.
    pub(crate) what: String,
    /// Where, as `path:line`.
    pub(crate) at: Option<String>,
    pub(crate) remedy: Option<String>,
    pub(crate) command: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &str, what: String) -> Check {
        Check { name: name.into(), state: CheckState::Ok, what, at: None, remedy: None, command: None }
    }

    pub(crate) fn warning(finding: &Finding) -> Check {
        Check::of(finding, CheckState::Warning)
    }

    pub(crate) fn of(finding: &Finding, state: CheckState) -> Check {
        Check {
            name: finding.cause.clone(),
            state,
            what: finding.what.clone(),
            at: finding.place(),
            remedy: finding.remedy.clone(),
            command: finding.command.clone(),
        }
    }
}
