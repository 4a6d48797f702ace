//! What is configured for the application: its user, environment, and files.

use super::check::{Check, CheckState};
use crate::deploy::other_servers::{self, UnreadFile};
use crate::root::by_chance::{is_root_by_chance, remedy_for_root, ROOT_BY_CHANCE};
use highball_config::{App, PumaNote};
use highball_front as front;
use highball_supervisor::withheld_variables;
use highball_tenant::TenantFolder;

/// A statement of a Puma configuration.
pub(super) fn not_carried_out(note: &PumaNote) -> Check {
    Check {
        name: "puma_statement".into(),
        state: CheckState::Warning,
        what: note.text(),
        at: Some(note.place()),
        remedy: Some(note.remedy.clone()),
        command: None,
    }
}

/// An environment that Rails has no file for.
pub(super) fn environment(app: &App) -> Option<Check> {
    let note = app.environment_note.clone()?;
    let remedy = "Name one of these with -e or RAILS_ENV, or create the file.";
    Some(Check { state: CheckState::Warning, remedy: Some(remedy.into()), ..Check::ok("environment", note) })
}

/// Files of other servers, which do not count.
pub(super) fn unread(app: &App) -> Vec<Check> {
    // A folder that cannot be opened is what other checks are about.
    let Ok(folder) = TenantFolder::open(&app.folder, app.runs_as.another()) else { return Vec::new() };
    let check = |unread: UnreadFile| {
        let UnreadFile { file, what, remedy, matters } = unread;
        if !matters {
            return Check::ok("other_server", format!("{file} {what}. {remedy}"));
        }
        let check = Check::ok("other_server", format!("{file} {what}"));
        Check { state: CheckState::Warning, remedy: Some(remedy.into()), ..check }
    };
    other_servers::in_folder(&folder).into_iter().map(check).collect()
}

/// The user that it runs as, where there is a choice.
pub(super) fn user(app: &App) -> Option<Check> {
    if is_root_by_chance(app) {
        let what = format!("the application {}", ROOT_BY_CHANCE);
        let remedy = Some(remedy_for_root(app));
        return Some(Check { state: CheckState::Warning, remedy, ..Check::ok("runs_as_root", what) });
    }
    app.runs_as.another().map(|user| Check::ok("user", format!("it runs as {user}")))
}

/// The variables that the user who started this may expect in the application, and that it does not get.
pub(super) fn withheld(app: &App) -> Option<Check> {
    let names = withheld_variables(app);
    let what = format!(
        "as it is another user's, it does not get these variables (pass_variables, variables): {}",
        names.join(", ")
    );
    (!names.is_empty()).then(|| Check::ok("environment", what))
}

/// Whether the users of the application could log in.
pub(super) fn users(app: &App) -> Option<Check> {
    let file = app.basic_auth.as_ref()?.file.display();
    let (state, what, remedy) = match front::count_users(app)? {
        Ok((users, 0)) => return Some(Check::ok("users", format!("{file} has {users}"))),
        Ok((_, weak)) => (
            CheckState::Warning,
            format!("{file} has passwords that are easy to find out from their hashes ({{SHA}}): {weak}"),
            "Set them again with `htpasswd -B`.",
        ),
        Err(error) => (
            CheckState::Failed,
            format!("{file} cannot be used, so all requests would be refused: {error}"),
            "Write it with `htpasswd -B`, readable for the user of the application.",
        ),
    };
    Some(Check { state, remedy: Some(remedy.into()), ..Check::ok("users", what) })
}
