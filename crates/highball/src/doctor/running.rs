//! The servers that serve the application at the moment, and what goes wrong there.

use super::check::{Check, CheckState};
use crate::control::finding::Instance;
use crate::control::selection::{is_selected, selected};
use highball_config::{App, AppSelector, Selector};
use highball_link::AppReport;
use highball_text::visible_path;

/// The servers that serve this application at the moment.
pub(super) fn instances(selector: &AppSelector) -> Vec<Instance> {
    selected(&Selector { port: None, app: Some(selector.clone()) }).unwrap_or_default()
}

/// What goes wrong in the servers that serve this application.
pub(super) fn crashes(selector: &AppSelector, running: &[Instance]) -> Vec<Check> {
    let apps = running.iter().flat_map(|instance| &instance.status.apps);
    let of_app = |app: &AppReport| {
        let ok = |what| Check { state: CheckState::Warning, ..Check::ok(&app.processes.phase, what) };
        match (&app.processes.crash_loop, app.processes.phase.as_str()) {
            (Some(crashes), _) => {
                let what = format!("in the running server, {}", crashes.what);
                Some(Check {
                    name: "crash_loop".into(),
                    remedy: Some(crashes.remedy.clone()),
                    command: Some("highball restart".into()),
                    ..ok(what)
                })
            }
            (None, "stuck") => {
                let remedy = "See what its threads do: highball top.".into();
                let what = "the workers of the running server take no requests".into();
                Some(Check { remedy: Some(remedy), command: Some("highball top".into()), ..ok(what) })
            }
            (None, _) => None,
        }
    };
    apps.filter(|app| is_selected(selector, app)).filter_map(of_app).collect()
}

/// Selects this application among the served ones.
pub(super) fn itself(app: &App) -> AppSelector {
    let (folder, links) = (app.folder.clone(), vec![app.link.clone()]);
    AppSelector { text: visible_path(&folder), folder, links }
}
