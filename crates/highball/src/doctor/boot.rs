//! Booting the application: each step that was reached, and what the booted application is.

use super::check::{Check, CheckState};
use crate::process::event_loop::event_loop;
use highball_config::{App, LogFormat, Settings};
use highball_front as front;
use highball_link::{AppCommand, Booted, Diagnosis, Finding, FrontCommand, FrontEvent, Step, Tuning};
use highball_supervisor::{
    AppBlueprint, Blueprint, Launcher, MoldSource, Notice, Order, Outcome, Purpose, Supervisor,
};
use std::error::Error;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Notices that may wait: more than a boot brings.
const NOTICES: usize = 64;

/// A finding that does not concern a single worker.
const OF_SEVERAL_WORKERS: &str = "cable_adapter";

/// A finding that is no problem if Highball sends such files, or a proxy may.
const SENDFILE_HEADER: &str = "sendfile_header";

/// A finding that only concerns applications behind agent checks: nothing else tells one machine from several.
const LOCAL_SESSIONS: &str = "local_sessions";

/// Boots the application, and ends it again as soon as a worker is ready.
pub(super) fn boot(
    settings: &Arc<Settings>,
    app: &App,
    source: MoldSource,
) -> Result<(Option<Booted>, Option<Diagnosis>), Box<dyn Error>> {
    let (notify, mut notices) = mpsc::channel(NOTICES);
    let (order, orders) = mpsc::channel(NOTICES);
    let mut examined = App { workers: 1, ..App::clone(app) };
    examined.process.shares_cable &= app.most_workers() > 1;
    let app = Arc::new(examined);
    let geometry = front::geometry(&settings.limits, &app);
    let apps = vec![AppBlueprint { app, source, geometry, may_fail: false }];
    let output = crate::log::app_output(LogFormat::Human);
    let blueprint = Blueprint {
        settings: Arc::clone(settings),
        apps,
        purpose: Purpose::Examine,
        output,
        launcher: Launcher::Direct,
        hub: None,
    };
    let supervisor = Supervisor::new(blueprint, notify);
    let mut booted = None;
    let runtime = event_loop()?;
    let outcome = runtime.block_on(async {
        let listen = async {
            while let Some(notice) = notices.recv().await {
                let next = match notice {
                    Notice::ToFront(FrontCommand::ToApp(_, AppCommand::Booted(app))) => {
                        booted = Some(Arc::unwrap_or_clone(app));
                        continue;
                    }
                    Notice::ToFront(FrontCommand::ToApp(_, AppCommand::AddWorker(_))) => Order::Stop,
                    Notice::ToFront(FrontCommand::Drain) => Order::FromFront(FrontEvent::Drained),
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
pub(super) fn journey(diagnosis: Option<&Diagnosis>) -> Vec<Check> {
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

/// What was booted, and what will make trouble later.
pub(super) fn application(booted: &Booted, settings: &Settings, app: &App) -> Vec<Check> {
    let gems = [("Rack", &booted.rack), ("Ruby", &booted.runtime.ruby)];
    let gems = gems.iter().filter_map(|(name, version)| Some(format!(", {name} {}", version.as_ref()?)));
    let what = booted.framework.clone() + &gems.collect::<String>();
    let is_met = |finding: &&Finding| match finding.cause.as_str() {
        OF_SEVERAL_WORKERS => app.most_workers() > 1,
        LOCAL_SESSIONS => !settings.admin.agent_binds.is_empty(),
        SENDFILE_HEADER => app.sendfile.is_empty() && settings.trusted_proxies.is_empty(),
        _ => true,
    };
    let findings = booted.findings.iter().filter(is_met).map(Check::warning);
    let compiler = booted.runtime.jit.as_deref().filter(|_| !app.is_development()).map(compiler);
    let collector = booted.runtime.gc.as_ref().filter(|_| !app.is_development());
    let collector = collector.map(|gc| Check::ok("gc", gc.of_collector()));
    let allocator = booted.runtime.allocator.as_ref().filter(|_| !app.is_development());
    let allocator = allocator.map(|allocator| Check::ok("allocator", allocator.of_allocator()));
    let cache = booted.runtime.boot_cache.as_ref().filter(|_| !app.is_development());
    let cache = cache.map(|cache| Check::ok("boot_cache", cache.of_boot_cache()));
    let tuned = compiler.into_iter().chain(collector).chain(allocator).chain(cache);
    let offers = booted.offers.iter().filter(|_| app.companions.is_empty());
    let offers = offers.map(|offer| Check::of(offer, CheckState::Ok));
    std::iter::once(Check::ok("application", what)).chain(tuned).chain(findings).chain(offers).collect()
}

/// Ruby's compiler. It is no fault if it is off.
fn compiler(jit: &Tuning) -> Check {
    let remedy = "Most applications need a fifth less CPU time with it. This Ruby was built without it, as Debian's Ruby 3.3 is: \
                  install a Ruby with it (rbenv and ruby-build, with rustc installed; or the container image ruby).";
    let remedy = Some(remedy).filter(|_| jit.is_missing);
    Check { remedy: remedy.map(String::from), ..Check::ok("jit", jit.of_compiler()) }
}
