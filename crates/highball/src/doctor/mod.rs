//! `highball doctor`: boots the application once, without serving it, and lists what was looked at. In reading order: this file, [`domain`] (whether a
//! certificate could be obtained), [`limits`] and [`threads`] (advice, where a server of the application runs).

mod domain;
mod limits;
mod threads;

use crate::certificates::local_authority;
use crate::certificates::{self, CheckedCertificates};
use crate::control::finding::Instance;
use crate::control::selection::{is_selected, selected};
use crate::deploy::other_servers::{self, UnreadFile};
use crate::output::print;
use crate::status::report::AppStatus;
use highball_config::{App, AppSelector, LogFormat, PumaNote, Selector, Settings};
use highball_front as front;
use highball_link::{Booted, Diagnosis, Finding, Step, Tuning};
use highball_supervisor::{
    withheld_variables, AppBlueprint, AppNotice, Blueprint, Launcher, MoldSource, Notice, Order, Outcome,
    Purpose, Supervisor,
};
use highball_tenant::TenantFolder;
use highball_text::{json, visible, visible_path};
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Notices that may wait: more than a boot brings.
const NOTICES: usize = 64;

/// What the application cannot know that is examined: a single worker never meets it,
const OF_SEVERAL_WORKERS: &str = "cable_adapter";

/// and this is no problem where Highball sends such files, or a proxy may.
const SENDFILE_HEADER: &str = "sendfile_header";

/// And this where a load balancer distributes requests by agent checks: nothing else tells one machine from several.
const LOCAL_SESSIONS: &str = "local_sessions";

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

/// What `highball doctor --json` prints.
#[derive(Debug, Serialize)]
struct Examination {
    /// The worst of the checks.
    state: CheckState,
    checks: Vec<Check>,
    /// Why it did not boot, if it did not.
    diagnosis: Option<Diagnosis>,
}

impl Check {
    pub(crate) fn ok(name: &str, what: String) -> Check {
        Check { name: name.into(), state: CheckState::Ok, what, at: None, remedy: None, command: None }
    }

    fn warning(finding: &Finding) -> Check {
        Check {
            name: finding.cause.clone(),
            state: CheckState::Warning,
            what: finding.what.clone(),
            at: finding.place(),
            remedy: finding.remedy.clone(),
            command: finding.command.clone(),
        }
    }
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
    let configured =
        || Check::ok("configuration", format!("{} for {}", app.folder.display(), app.environment));
    let mut checks: Vec<Check> = app.fault.is_none().then(configured).into_iter().collect();
    checks.extend(user(app));
    checks.extend(withheld(app));
    let about = if app.puma_file.is_some() { "puma" } else { "files" };
    checks.extend(app.file_notes.iter().map(|note| Check::ok(about, note.clone())));
    checks.extend(app.puma_notes.iter().map(not_carried_out));
    checks.extend(environment(app));
    checks.extend(unread(app));
    let selector = itself(app);
    let running = running(&selector);
    checks.extend(settings.binds.iter().map(|bind| address(bind, &running)));
    checks.extend(all_certificates(settings));
    checks.extend(spool_folder(settings, &running));
    checks.extend(users(app));
    checks.extend(domain::check_all(settings));
    let diagnosis = match crate::apps::source::mold_source(app)? {
        MoldSource::Site if app.fault.is_none() => {
            checks.push(Check::ok("application", "a static site: its files are served without Ruby".into()));
            None
        }
        source => {
            let (booted, diagnosis) = boot(settings, app, source)?;
            checks.extend(journey(diagnosis.as_ref()));
            checks.extend(booted.iter().flat_map(|booted| application(booted, settings, app)));
            diagnosis
        }
    };
    checks.extend(crashes(&selector, &running));
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

/// What was booted, and what will make trouble later.
fn application(booted: &Booted, settings: &Settings, app: &App) -> Vec<Check> {
    let gems = [("Rack", &booted.rack), ("Ruby", &booted.ruby)];
    let gems = gems.iter().filter_map(|(name, version)| Some(format!(", {name} {}", version.as_ref()?)));
    let what = booted.framework.clone() + &gems.collect::<String>();
    let is_met = |finding: &&Finding| match finding.cause.as_str() {
        OF_SEVERAL_WORKERS => app.pool.map_or(app.workers, |pool| pool.max) > 1,
        LOCAL_SESSIONS => !settings.admin.agent_binds.is_empty(),
        SENDFILE_HEADER => app.sendfile.is_empty() && settings.trusted_proxies.is_empty(),
        _ => true,
    };
    let findings = booted.findings.iter().filter(is_met).map(Check::warning);
    let compiler = booted.jit.as_deref().filter(|_| !app.is_development()).map(compiler);
    let collector = booted.gc.as_ref().filter(|_| !app.is_development());
    let collector = collector.map(|gc| Check::ok("gc", gc.of_collector()));
    let allocator = booted.allocator.as_ref().filter(|_| !app.is_development());
    let allocator = allocator.map(|allocator| Check::ok("allocator", allocator.of_allocator()));
    let cache = booted.boot_cache.as_ref().filter(|_| !app.is_development());
    let cache = cache.map(|cache| Check::ok("boot_cache", cache.of_boot_cache()));
    let tuned = compiler.into_iter().chain(collector).chain(allocator).chain(cache);
    std::iter::once(Check::ok("application", what)).chain(tuned).chain(findings).collect()
}

/// Ruby's compiler. One that is off is no fault.
fn compiler(jit: &Tuning) -> Check {
    let remedy = "Most applications need a fifth less CPU time with it. This Ruby was built without it, as Debian's Ruby 3.3 is: \
                  install one that has it (rbenv and ruby-build, with rustc installed; or the container image ruby).";
    let remedy = Some(remedy).filter(|_| jit.is_missing);
    Check { remedy: remedy.map(String::from), ..Check::ok("jit", jit.of_compiler()) }
}

/// A statement of a Puma configuration.
fn not_carried_out(note: &PumaNote) -> Check {
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
fn environment(app: &App) -> Option<Check> {
    let note = app.environment_note.clone()?;
    let remedy = "Name one of these with -e or RAILS_ENV, or create the file.";
    Some(Check { state: CheckState::Warning, remedy: Some(remedy.into()), ..Check::ok("environment", note) })
}

/// Files of other servers, which do not count.
fn unread(app: &App) -> Vec<Check> {
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
fn user(app: &App) -> Option<Check> {
    if crate::root::by_chance::is_root_by_chance(app) {
        let what = format!("the application {}", crate::root::by_chance::ROOT_BY_CHANCE);
        let remedy = Some(crate::root::by_chance::remedy_for_root(app));
        return Some(Check { state: CheckState::Warning, remedy, ..Check::ok("runs_as_root", what) });
    }
    app.runs_as.another().map(|user| Check::ok("user", format!("it runs as {user}")))
}

/// The variables that the user who started this may expect in the application, and that it does not get.
fn withheld(app: &App) -> Option<Check> {
    let names = withheld_variables(app);
    let what = format!(
        "as it is another user's, it does not get these variables (pass_variables, variables): {}",
        names.join(", ")
    );
    (!names.is_empty()).then(|| Check::ok("environment", what))
}

/// The servers that serve this application at the moment.
fn running(selector: &AppSelector) -> Vec<Instance> {
    selected(&Selector { port: None, app: Some(selector.clone()) }).unwrap_or_default()
}

/// What goes wrong in the servers that serve this application.
fn crashes(selector: &AppSelector, running: &[Instance]) -> Vec<Check> {
    let apps = running.iter().flat_map(|instance| &instance.status.apps);
    let of_app = |app: &AppStatus| {
        let ok = |what| Check { state: CheckState::Warning, ..Check::ok(&app.phase, what) };
        match (&app.crash_loop, app.phase.as_str()) {
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

/// Selects this application among those that are served.
fn itself(app: &App) -> AppSelector {
    let (folder, links) = (app.folder.clone(), vec![app.link.clone()]);
    AppSelector { text: visible_path(&folder), folder, links }
}

/// Whether it could be listened on.
fn address(bind: &highball_config::Bind, running: &[Instance]) -> Check {
    let is_bound = |instance: &Instance| instance.status.binds.contains(&bind.url());
    match front::bind(bind) {
        Ok(listener) => Check::ok("address", format!("{} is free", listener.address())),
        Err(front::BindError::InUse { address }) if running.iter().any(is_bound) => {
            Check::ok("address", format!("{address} is in use by Highball, for this application"))
        }
        Err(error) => Check {
            name: error.cause().into(),
            state: CheckState::Failed,
            what: error.to_string(),
            at: None,
            remedy: Some(
                "Stop the program that uses it, or choose another address with --port or --bind.".into(),
            ),
            command: Some("ss -ltnp".into()),
        },
    }
}

/// Whether there is room for large request bodies: as the running server has it, or as it looks now.
fn spool_folder(settings: &Settings, running: &[Instance]) -> Option<Check> {
    let limits = &settings.limits;
    let of_running = running.iter().find_map(|instance| instance.status.spool_problem.clone());
    let what = of_running.or_else(|| front::spool_problem(&limits.spool_dir, limits.spool_bytes))?;
    let remedy = format!("To have room for uploads, {}.", front::SPOOL_REMEDY);
    Some(Check { state: CheckState::Warning, remedy: Some(remedy), ..Check::ok("small_spool", what) })
}

/// Whether the users of the application could log in.
fn users(app: &App) -> Option<Check> {
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

/// Whether clients with TLS could be served.
fn all_certificates(settings: &Settings) -> Vec<Check> {
    if !certificates::are_needed(settings) {
        return Vec::new();
    }
    let failed = |error: String| {
        vec![Check { state: CheckState::Failed, ..Check::ok("certificate", error.to_string()) }]
    };
    if settings.tls.is_local {
        return match local_authority::find() {
            Ok(Some(file)) => {
                let what = format!("{} issues those for localhost; clients have to trust it", file.display());
                vec![Check::ok("certificate", what)]
            }
            Ok(None) => {
                vec![Check::ok("certificate", "the first start makes an authority for localhost".into())]
            }
            Err(error) => failed(error.to_string()),
        };
    }
    match certificates::read(settings, &|_| true)
        .map_err(|error| error.to_string())
        .and_then(certificates::check)
    {
        Ok(CheckedCertificates::Files(certificates, problems)) => {
            let problems = problems.into_values().flat_map(failed);
            certificates.iter().flat_map(certificate).chain(problems).collect()
        }
        Ok(CheckedCertificates::Local(..)) => Vec::new(),
        Err(error) => failed(error),
    }
}

fn certificate(certificate: &front::Certificate) -> Vec<Check> {
    let file = certificate.file().display();
    if certificate.flaws().is_empty() {
        let what = format!("{file} is for {}", certificate.hosts().join(" "));
        return vec![Check::ok("certificate", what)];
    }
    let flaw = |flaw: &front::Flaw| {
        let is_refused = matches!(flaw, front::Flaw::Expired(_) | front::Flaw::NotYet(_));
        let state = if is_refused { CheckState::Failed } else { CheckState::Warning };
        Check { state, ..Check::ok("certificate", format!("{file}: {flaw}")) }
    };
    certificate.flaws().iter().map(flaw).collect()
}

/// Boots the application, and ends it again as soon as a worker is ready.
fn boot(
    settings: &Arc<Settings>,
    app: &App,
    source: MoldSource,
) -> Result<(Option<Booted>, Option<Diagnosis>), Box<dyn Error>> {
    let (notify, mut notices) = mpsc::channel(NOTICES);
    let (order, orders) = mpsc::channel(NOTICES);
    let app = Arc::new(App { workers: 1, ..App::clone(app) });
    let geometry = front::geometry(&settings.limits, app.threads);
    let apps = vec![AppBlueprint { app, source, geometry, may_fail: false }];
    let output = crate::log::app_output(LogFormat::Human);
    let blueprint = Blueprint {
        settings: Arc::clone(settings),
        apps,
        purpose: Purpose::Examine,
        output,
        launcher: Launcher::Direct,
    };
    let supervisor = Supervisor::new(blueprint, notify);
    let mut booted = None;
    let runtime = crate::process::event_loop::event_loop()?;
    let outcome = runtime.block_on(async {
        let listen = async {
            while let Some(notice) = notices.recv().await {
                let next = match notice {
                    Notice::OfApp(_, AppNotice::AppBooted(app)) => {
                        booted = Some(app);
                        continue;
                    }
                    Notice::OfApp(_, AppNotice::WorkerReady(_)) => Order::Stop,
                    Notice::Drain => Order::FrontDrained,
                    _ => continue,
                };
                let _ = order.send(next).await; // it has ended, and so will this
            }
        };
        tokio::join!(supervisor.run(orders), listen).0
    });
    runtime.shutdown_background(); // a look at files that does not come to an end is not waited for
    let outcome = outcome?;
    match outcome {
        Outcome::BootFailed(diagnosis) => Ok((None, Some(*diagnosis))),
        Outcome::BootLoop(why) => Err(why.into()),
        _ => Ok((booted, None)),
    }
}

/// A check for each step of the spawn journey that was reached.
fn journey(diagnosis: Option<&Diagnosis>) -> Vec<Check> {
    let last = diagnosis.and_then(|diagnosis| diagnosis.step).unwrap_or(Step::StartWorker);
    let steps = last.journey().filter(|(_, state)| *state != "left");
    steps
        .map(|(step, _)| match diagnosis {
            Some(diagnosis) if step == last => Check {
                name: diagnosis.cause.clone(),
                state: CheckState::Failed,
                what: diagnosis.summary(),
                at: diagnosis.error.place(),
                remedy: diagnosis.remedy.clone(),
                command: diagnosis.command.clone(),
            },
            _ => Check::ok("boot", step.to_string()),
        })
        .collect()
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
