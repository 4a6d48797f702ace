//! Reloading the configuration after HUP.

use super::{Common, CHANNEL_CAPACITY};
use crate::apps::cgroups;
use crate::apps::source::{mold_source, one_too_many};
use crate::certificates;
use crate::root::{at_root, policy, reading};
use highball_config::{App, Changes, Invocation, Limits, Named, Settings};
use highball_front::geometry;
use highball_link::FrontCommand;
use highball_spawner::ServiceState;
use highball_supervisor::{AppBlueprint, AppOrder, Launcher, MoldSource, Order};
use rustix::process::geteuid;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{spawn_blocking, JoinHandle};
use tokio::time::timeout;
use tracing::{error, info, warn};

/// How long reading the configuration, or looking what is in an application's folder, may take.
const READING_TIME: Duration = Duration::from_secs(10);
const NOT_READ: &str =
    "the configuration stays as it was, as it could not be read in time: the file system of an \
                        application's configuration file does not answer, or its config/puma.rb takes too long";

/// A reload, of which systemd knows until this is dropped.
struct Reloading<'a>(&'a Launcher);

impl<'a> Reloading<'a> {
    fn begin(launcher: &'a Launcher) -> Option<Reloading<'a>> {
        at_root::is_ready().then(|| {
            at_root::tell(ServiceState::Reloading, launcher);
            Reloading(launcher)
        })
    }
}

impl Drop for Reloading<'_> {
    fn drop(&mut self) {
        at_root::tell(ServiceState::Ready, self.0);
    }
}

/// Reloads the configuration at each HUP, and has front and supervisor apply it. Never returns. A thread reads it, not the event
/// loop: some of it lies in folders of applications, whose file systems may not answer.
pub(super) async fn reload_on_hangup(server: &Common) {
    let Common { configuration, tls, launcher, .. } = server;
    let mut unfinished: Option<JoinHandle<_>> = None;
    loop {
        configuration.hangup.notified().await;
        let _reloading = Reloading::begin(launcher);
        if let Some(before) = &mut unfinished {
            if timeout(READING_TIME, before).await.is_err() {
                error!(name: "configuration_not_read", "{NOT_READ}");
                continue;
            }
        }
        let (launcher, tls) = (launcher.clone(), tls.clone());
        let mut reading = spawn_blocking(move || {
            let read = reading::read_configuration(&launcher);
            if let (Some(tls), Ok(Invocation::Serve(new))) = (tls, &read) {
                certificates::replace(&tls, at_root::read_certificates(new, &launcher));
            }
            read
        });
        unfinished = None;
        match timeout(READING_TIME, &mut reading).await {
            Ok(Ok(Ok(Invocation::Serve(new)))) => {
                configuration.reloaded.notify_one();
                change(server, *new).await;
            }
            Ok(Ok(Ok(_))) => {} // an application that was given as an object has none to read
            Ok(Ok(Err(error))) => {
                error!(
                    name: "configuration_not_reloaded", %error, "cannot reload the configuration: keeping the old one"
                );
            }
            Ok(Err(error)) => error!(name: "configuration_not_read", %error, "cannot read the configuration"),
            Err(_) => {
                error!(name: "configuration_not_read", "{NOT_READ}");
                unfinished = Some(reading);
            }
        }
    }
}

/// Has the server follow these settings, as far as it can.
async fn change(server: &Common, new: Settings) {
    let Common { configuration, launcher, front, supervisor, .. } = server;
    let old = configuration.now();
    if let Some(why) = cannot_follow(&new, &old, launcher) {
        return error!(
            name: "configuration_not_applied", why, "cannot apply the configuration: keeping the old one"
        );
    }
    let Changes { settings, added, changed, removed, refused, is_about_server } = Changes::between(&old, new);
    for (app, fault) in refused {
        let error = fault.message;
        error!(
            name: "configuration_of_application_not_reloaded",
            error, app = app.name, "cannot reload the application's configuration: keeping the old one"
        );
        tell(supervisor, Order::ToApp(app.id, AppOrder::ConfigurationRefused(error))).await;
    }
    if is_about_server {
        warn!(
            name: "configuration_needs_hot_restart",
            "options of the server have changed; they take effect with a hot restart: highball upgrade"
        );
    }
    if added.is_empty() && changed.is_empty() && removed.is_empty() {
        return configuration.follow(settings);
    }
    info!(
        name: "configuration_reloaded",
        added = added.len(),
        changed = changed.len(),
        removed = removed.len(),
        "the configuration has changed"
    );
    let gone: Vec<_> = old.apps.iter().filter(|app| removed.contains(&app.id)).map(Arc::clone).collect();
    let (limits, all, launcher) = (settings.limits.clone(), settings.clone(), launcher.clone());
    // The kernel may free memory meanwhile, so a thread waits for it.
    spawn_blocking(move || cgroups::change(&all, &gone, &launcher));
    // First of all, so that every part that gets an application's number finds it.
    configuration.follow(settings);
    for app in removed {
        // The supervisor first: it is to expect that the front has nothing left to do for the application.
        tell(supervisor, Order::RemoveApp(app)).await;
        tell(front, FrontCommand::RemoveApp(app)).await;
    }
    for app in added {
        if let Some(blueprint) = blueprint(&limits, &app).await {
            tell(front, FrontCommand::AddApp(app)).await;
            tell(supervisor, Order::AddApp(blueprint)).await;
        }
    }
    for app in changed {
        if let Some(blueprint) = blueprint(&limits, &app).await {
            tell(front, FrontCommand::ChangeApp(app)).await;
            tell(supervisor, Order::ChangeApp(blueprint)).await;
        }
    }
}

/// What the application is brought up from in a server that serves already. `None`: that failed, and was logged.
async fn blueprint(limits: &Limits, app: &Arc<App>) -> Option<Box<AppBlueprint>> {
    let geometry = geometry(limits, app);
    let of_app = Arc::clone(app);
    let look = spawn_blocking(move || mold_source(&of_app).map_err(|error| error.to_string()));
    let source = match timeout(READING_TIME, look).await {
        Ok(Ok(source)) => source,
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("its folder cannot be looked at in time: the file system does not answer".into()),
    };
    let source =
        source.map_err(|error| error!(
            name: "application_not_changed", error, app = app.name, "the application cannot be added or changed"
        ));
    Some(Box::new(AppBlueprint { app: Arc::clone(app), source: source.ok()?, geometry, may_fail: true }))
}

/// If the receiver is gone, the run is ending.
async fn tell<T>(to: &mpsc::Sender<T>, what: T) {
    let _ = to.send(what).await;
}

/// An application for which root would have started this server otherwise.
fn needs_spawner<'a>(new: &'a Settings, launcher: &Launcher) -> Option<&'a App> {
    let has_none = matches!(launcher, Launcher::Direct) && new.server_user.is_none();
    new.apps.iter().map(|app| &**app).find(|app| has_none && app.runs_as.another().is_some())
}

fn runs_as_server(app: &App) -> bool {
    policy::is_user(&app.runs_as, geteuid().as_raw())
}

/// Why this configuration cannot replace the current one.
fn cannot_follow(new: &Settings, old: &Settings, launcher: &Launcher) -> Option<String> {
    if new.apps.len() > CHANNEL_CAPACITY {
        return Some(format!("it has {} applications; {CHANNEL_CAPACITY} is the most", new.apps.len()));
    }
    if old.named == Named::InFile && new.named != Named::InFile {
        let why =
            "no [[app]] is left in the configuration file; to end the last application, stop the server";
        return Some(why.into());
    }
    if let Some(why) = one_too_many(new) {
        return Some(why.into());
    }
    if let Some(app) = needs_spawner(new, launcher) {
        return Some(format!(
            "{} runs as another user, and this server has stayed root, as all its applications were root's: put a new server in \
             its place, which does not (highball upgrade)",
            app.name
        ));
    }
    if let (Launcher::Spawner(_), Some(app)) = (launcher, new.apps.iter().find(|app| runs_as_server(app))) {
        let user = app.runs_as.another().map_or_else(String::new, ToString::to_string);
        return Some(policy::shares_user(&user, &app.name));
    }
    let is_site = |app: &App| matches!(mold_source(app), Ok(MoldSource::Site));
    let turned = new.apps.iter().find(|app| {
        old.apps.iter().any(|before| {
            before.name == app.name
                && before.link != app.link
                && before.fault.is_none()
                && app.fault.is_none()
                && is_site(before) != is_site(app)
        })
    })?;
    Some(format!(
        "{} is a static site in one place and an application in the other: give it another name",
        turned.name
    ))
}
