//! The instance that a command means.

use crate::control::elsewhere;
use crate::control::finding::{look_for, ours_else_others, Instance};
use crate::output::complain;
use crate::process::owner::user_name;
use highball_config::{did_you_mean, AppSelector, Selector};
use highball_link::{AppReport, ServerReport};
use std::os::unix::fs::MetadataExt;
use thiserror::Error;

/// Why a command has no instance to ask.
#[derive(Debug, Error)]
pub(crate) enum SelectionError {
    #[error("no Highball is running for this user{0}{1}")]
    NoneRuns(String, String),
    #[error(
        "there is a server{0}, but it gave no answer that can be used:\n    {1}\nIts log says more. It still obeys \
         signals: kill -USR1 PID restarts its applications, kill -TERM PID stops it"
    )]
    NoneAnswers(String, String),
    #[error(
        "several Highball servers are running; choose one with --port N or the application's folder:\n{0}"
    )]
    SeveralRun(String),
    #[error(
        "{0} is one of {1} applications of the server with pid {2}, and this command acts on the \
             whole server: choose it with --port N. (To remove \
             one application, take it out of the configuration, and send HUP.)"
    )]
    OneOfMany(String, usize, i32),
}

/// Matching instances, at least one. Root's own come first, those of other users only if there is none.
pub(crate) fn selected(selector: &Selector) -> Result<Vec<Instance>, SelectionError> {
    let is_certain = selector.port.is_some() || selector.app.is_some();
    let (mut seen, mut names, mut unanswered) = (Vec::new(), Vec::new(), Vec::new());
    let found = ours_else_others(|places| {
        let looked = look_for(places, |status| is_certain && matches(selector, status));
        let mut found = looked.found;
        unanswered.extend(looked.unanswered);
        seen.extend(found.iter().map(|instance| instance.status.pid));
        names.extend(found.iter().flat_map(|instance| &instance.status.apps).map(|app| app.name.clone()));
        found.retain(|instance| matches(selector, &instance.status) && may_claim(instance, selector));
        (!found.is_empty()).then_some(found)
    });
    if let Some(found) = found {
        unanswered.into_iter().for_each(complain);
        return Ok(found);
    }
    let port = selector.port.map(|port| format!(" on port {port}"));
    let app = selector.app.as_ref();
    let app = app.map(|app| format!(" with the application {}{}", app.text, meant(app, &names)));
    let wanted = port.or(app).unwrap_or_default();
    Err(match &unanswered[..] {
        [] => SelectionError::NoneRuns(wanted, elsewhere::hints(&seen)),
        all => SelectionError::NoneAnswers(wanted, all.join("\n    ")),
    })
}

/// A question whether one of the applications that run was meant, where its name is nearly the same.
fn meant(selector: &AppSelector, names: &[String]) -> String {
    let name = did_you_mean(&selector.text, names.iter().map(String::as_str));
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Whether to believe that this is the server of a folder. Where root asks, another user may run a server only to report the
/// folder of somebody else.
fn may_claim(instance: &Instance, selector: &Selector) -> bool {
    let (Some(uid), Some(app)) = (instance.other_user, &selector.app) else { return true };
    let is_named = instance.status.apps.iter().any(|one| one.name == app.text);
    let owner = app.folder.metadata().map_or(uid, |folder| folder.uid());
    let believed = is_named || [0, uid].contains(&owner);
    if !believed {
        complain(format_args!(
            "the server of {} (pid {}) reports the application {}, which belongs to {}: name the server by --port N if you mean it",
            user_name(uid),
            instance.status.pid,
            app.text,
            user_name(owner)
        ));
    }
    believed
}

fn matches(selector: &Selector, status: &ServerReport) -> bool {
    selector.port.is_none_or(|port| status.ports.contains(&port))
        && selector.app.as_ref().is_none_or(|app| status.apps.iter().any(|one| is_selected(app, one)))
}

pub(crate) fn is_selected(selector: &AppSelector, app: &AppReport) -> bool {
    selector.is(&app.name, &app.processes.folder, &app.link)
}

/// The selected instance, for a command that acts on all of its applications.
pub(crate) fn the_whole<'a>(
    found: &'a [Instance],
    selector: &Selector,
) -> Result<&'a Instance, SelectionError> {
    let instance = the_only(found)?;
    let (apps, pid) = (instance.status.apps.len(), instance.status.pid);
    match &selector.app {
        Some(app) if apps > 1 => Err(SelectionError::OneOfMany(app.text.clone(), apps, pid)),
        _ => Ok(instance),
    }
}

/// The only server that serves. A succeeded server only finishes its requests, and takes no commands.
pub(crate) fn the_only(found: &[Instance]) -> Result<&Instance, SelectionError> {
    let mut serving = found.iter().filter(|instance| instance.status.processes.successor.is_none());
    if let (Some(one), None) = (serving.next(), serving.next()) {
        return Ok(one);
    }
    if let [one] = found {
        return Ok(one);
    }
    let lines = found.iter().map(|instance| {
        let status = &instance.status;
        let apps: Vec<String> =
            status.apps.iter().map(|app| app.processes.folder.display().to_string()).collect();
        let user = of_user(instance);
        format!("    {}  {}  (pid {}{user})", apps.join(" "), status.binds.join(" "), status.pid)
    });
    Err(SelectionError::SeveralRun(lines.collect::<Vec<_>>().join("\n")))
}

/// The user of an instance, where it is another one than who asks.
pub(crate) fn of_user(instance: &Instance) -> String {
    instance.other_user.map(|uid| format!(", user {}", user_name(uid))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status::a_status;

    #[test]
    fn instances_are_distinguished_by_port_and_app() {
        let app = |text: &str| AppSelector { text: text.into(), folder: text.into(), links: vec![] };
        let by = |port, text: Option<&str>| Selector { port, app: text.map(app) };
        assert!(matches(&by(None, None), &a_status()));
        assert!(matches(&by(Some(3000), Some("/srv/blog")), &a_status()));
        assert!(matches(&by(None, Some("/srv/blog/current")), &a_status()));
        assert!(matches(&by(None, Some("blog")), &a_status()));
        assert!(!matches(&by(Some(3001), None), &a_status()));
        assert!(!matches(&by(None, Some("/srv/shop")), &a_status()));
    }
}
