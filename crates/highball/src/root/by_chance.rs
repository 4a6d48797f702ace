//! Applications that run as root although no user is configured.

use highball_config::{App, RunsAs, Settings};
use rustix::process::geteuid;
use tracing::warn;

use crate::apps::source::is_given_as_object;

/// Warns of applications that run as root by accident.
pub(crate) fn warn_of_root(settings: &Settings) {
    if is_given_as_object() && geteuid().is_root() && !settings.is_development() {
        warn!(
            name: "application_runs_as_root",
            "the application runs as root, because root loaded it: start it as its own user"
        );
    }
    for app in settings.apps.iter().filter(|app| is_root_by_chance(app)) {
        warn!(
            name: "application_runs_as_root", application = app.name, remedy = remedy_for_root(app), "{ROOT_BY_CHANCE}"
        );
    }
}

/// The words for an application that runs as root although no user is configured.
pub(crate) const ROOT_BY_CHANCE: &str = "runs as root, because its files belong to root";

pub(crate) fn is_root_by_chance(app: &App) -> bool {
    app.runs_as == RunsAs::RootUnasked && app.fault.is_none() && !app.is_development()
}

pub(crate) fn remedy_for_root(app: &App) -> String {
    let (name, folder) = (&app.name, app.link.display());
    format!(
        "Give it its own user (adduser --system --group {name}; chown -R {name}: {folder}), or name one with `user`. To run \
         it as root, set user = \"root\"."
    )
}
