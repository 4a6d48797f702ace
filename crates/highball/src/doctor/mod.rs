//! `highball doctor`: boots the application once, without serving it, and lists what was looked at.
//!
//! In reading order: this file (the list), [`check`] (one entry of it), [`configured`], [`listening`] and [`domain`] (what the application
//! and its server need), [`boot`] (whether it boots), [`running`] (the servers that serve it at the moment), [`limits`] and [`threads`]
//! (advice from these).

mod boot;
mod check;
mod configured;
mod domain;
mod limits;
mod listening;
mod running;
mod threads;

use crate::apps::source::mold_source;
use crate::output::print;
use check::{Check, CheckState};
use highball_config::{App, Settings};
use highball_link::Diagnosis;
use highball_supervisor::MoldSource;
use highball_text::{json, visible};
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// What `highball doctor --json` prints.
#[derive(Debug, Serialize)]
struct Examination {
    /// The worst of the checks.
    state: CheckState,
    checks: Vec<Check>,
    /// Why it did not boot, if it did not.
    diagnosis: Option<Diagnosis>,
}

/// Examines the applications, one after the other; fails if one of them would not be served.
pub(crate) fn doctor(settings: Settings, as_json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let settings = Arc::new(settings);
    let examined = settings.apps.iter().map(|app| Ok((app, examine(&settings, app)?)));
    let examined: Vec<(&Arc<App>, Examination)> = examined.collect::<Result<_, Box<dyn Error>>>()?;
    print(&match &examined[..] {
        [(_, one)] if as_json => json::pretty(one) + "\n",
        [(_, one)] => list(one),
        all if as_json => {
            let by_name: BTreeMap<&str, &Examination> =
                all.iter().map(|(app, examination)| (app.name.as_str(), examination)).collect();
            json::pretty(&by_name) + "\n"
        }
        all => {
            let of_app = |(app, examination): &(&Arc<App>, Examination)| {
                format!("{}:\n{}\n", visible(&app.name), list(examination))
            };
            all.iter().map(of_app).collect()
        }
    })?;
    let has_failed = examined.iter().any(|(_, examination)| examination.state == CheckState::Failed);
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn examine(settings: &Arc<Settings>, app: &Arc<App>) -> Result<Examination, Box<dyn Error>> {
    let configuration =
        || Check::ok("configuration", format!("{} for {}", app.folder.display(), app.environment));
    let mut checks: Vec<Check> = app.fault.is_none().then(configuration).into_iter().collect();
    checks.extend(configured::user(app));
    checks.extend(configured::withheld(app));
    let about = if app.puma_file.is_some() { "puma" } else { "files" };
    checks.extend(app.file_notes.iter().map(|note| Check::ok(about, note.clone())));
    checks.extend(app.puma_notes.iter().map(configured::not_carried_out));
    checks.extend(configured::environment(app));
    checks.extend(configured::unread(app));
    let selector = running::itself(app);
    let running = running::instances(&selector);
    checks.extend(settings.binds.iter().map(|bind| listening::address(bind, &running)));
    checks.extend(listening::all_certificates(settings));
    checks.extend(listening::spool_folder(settings, &running));
    checks.extend(configured::users(app));
    checks.extend(domain::check_all(settings));
    let diagnosis = match mold_source(app)? {
        MoldSource::Site if app.fault.is_none() => {
            checks.push(Check::ok("application", "a static site: its files are served without Ruby".into()));
            None
        }
        source => {
            let (booted, diagnosis) = boot::boot(settings, app, source)?;
            checks.extend(boot::journey(diagnosis.as_ref()));
            checks.extend(booted.iter().flat_map(|booted| boot::application(booted, settings, app)));
            diagnosis
        }
    };
    checks.extend(running::crashes(&selector, &running));
    checks.extend(threads::check(app, &selector, &running));
    checks.extend(limits::checks(app, &selector, &running));
    let worst = |state| checks.iter().any(|check| check.state == state);
    let state = match (worst(CheckState::Failed), worst(CheckState::Warning)) {
        (true, _) => CheckState::Failed,
        (false, true) => CheckState::Warning,
        (false, false) => CheckState::Ok,
    };
    Ok(Examination { state, checks, diagnosis })
}

/// The checks for people.
fn list(examination: &Examination) -> String {
    let mut text = String::new();
    for check in &examination.checks {
        let mark = match check.state {
            CheckState::Ok => "ok     ",
            CheckState::Warning => "warning",
            CheckState::Failed => "FAILED ",
        };
        let what = check.what.lines().next().unwrap_or_default();
        let _ = writeln!(text, "{mark}  {}: {what}", check.name);
        for (name, fact) in [("at", &check.at), ("what to do", &check.remedy), ("command", &check.command)] {
            if let (Some(fact), true) = (fact, check.state == CheckState::Warning) {
                let _ = writeln!(text, "           {name}: {fact}");
            }
        }
    }
    if let Some(diagnosis) = &examination.diagnosis {
        let _ = write!(text, "\n{diagnosis}");
    }
    text
}
