//! `highball status`.

use crate::commands::CommandError;
use crate::control::finding::{running, Instance};
use crate::control::places::ControlPlaces;
use crate::control::selection::{is_selected, of_user, selected, the_only};
use crate::output::print;
use crate::status::page::View;
use crate::status::table::table;
use highball_config::{Selector, StatusForm};
use highball_link::AppReport;
use highball_text::json;

/// Prints how the selected instance is doing. Without a selector, people are shown every
/// instance; root those of all users. With `check`, it fails unless the selected applications serve.
pub(crate) fn status(form: StatusForm, check: bool, selector: &Selector) -> Result<(), CommandError> {
    let mut found = selected(selector)?;
    let is_meant = |app: &AppReport| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let checked = if check { all_serve(&found, is_meant) } else { Ok(()) };
    if form == StatusForm::Json {
        let one = the_only(&found)?;
        print(&(json::pretty(&one.status) + "\n"))?;
    } else {
        if *selector == Selector::default() && found.iter().all(|instance| instance.other_user.is_none()) {
            found.extend(running(&ControlPlaces::of_others(), |_| false));
        }
        let view = View { columns: columns(), has_details: form == StatusForm::Details };
        let of = |instance: &Instance| table(&instance.status, &of_user(instance), view, is_meant);
        let tables: Vec<String> = found.iter().map(of).collect();
        print(&tables.join("\n"))?;
    }
    checked
}

/// The width of the terminal, if a person reads this at one.
fn columns() -> Option<usize> {
    #[allow(clippy::disallowed_methods)] // nothing is written to it here
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col).max(40))
}

/// Fails unless these applications answer requests: they serve, or are asleep and their next request boots them.
fn all_serve(found: &[Instance], is_meant: impl Fn(&AppReport) -> bool) -> Result<(), CommandError> {
    // A process that has a successor only finishes what it has.
    let current =
        found.iter().map(|instance| &instance.status).filter(|status| status.processes.successor.is_none());
    let meant = current.flat_map(|status| &status.apps).filter(|app| is_meant(app));
    let others = meant.filter(|app| !matches!(&app.processes.phase[..], "serving" | "asleep"));
    let names: Vec<String> = others.map(|app| format!("{} is {}", app.name, app.processes.phase)).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(CommandError::NotServing(names.join(", ")))
    }
}
