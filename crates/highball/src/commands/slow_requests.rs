//! `highball status --slow`: the last slow requests of applications, and where their time went.

use super::{ask, unexpected, CommandError};
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::{is_selected, selected, the_only};
use crate::output::print;
use crate::status::overview::words::duration;
use highball_config::{Selector, StatusForm};
use highball_link::{AppReport, SlowRequestReport};
use highball_text::json;
use serde::Serialize;
use std::fmt::Write as _;

/// The slow requests of an application, oldest first.
#[derive(Debug, Serialize)]
struct AppSlowRequests {
    name: String,
    slow_requests: Vec<SlowRequestReport>,
}

/// Prints them, for each selected application.
pub(crate) fn slow_requests(form: StatusForm, selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    if form == StatusForm::Json {
        let apps = of_instance(the_only(&found)?, selector)?;
        return Ok(print(&(json::pretty(&apps) + "\n"))?);
    }
    let mut text = String::new();
    for instance in &found {
        for app in of_instance(instance, selector)? {
            write_app(&mut text, &app);
        }
    }
    Ok(print(&text)?)
}

fn of_instance(instance: &Instance, selector: &Selector) -> Result<Vec<AppSlowRequests>, CommandError> {
    let is_meant = |app: &&AppReport| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    let ask_app = |app: &AppReport| match ask(instance, Question::SlowRequests { app: app.processes.id.0 })? {
        Answer::SlowRequests { requests } => {
            Ok(AppSlowRequests { name: app.name.clone(), slow_requests: requests })
        }
        _ => Err(unexpected(instance)),
    };
    instance.status.apps.iter().filter(is_meant).map(ask_app).collect()
}

/// For people: the newest first.
fn write_app(text: &mut String, app: &AppSlowRequests) {
    if app.slow_requests.is_empty() {
        let _ = writeln!(text, "{}: no slow requests", app.name);
    }
    for request in app.slow_requests.iter().rev() {
        let SlowRequestReport { worker, request: of, seconds, seconds_ago, .. } = request;
        let (ending, ago) = (request.ending(), duration(*seconds_ago));
        let _ = writeln!(text, "{of}  {seconds:.1} s{ending} ({}, worker {worker}, {ago} ago)", app.name);
        for line in request.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
}
