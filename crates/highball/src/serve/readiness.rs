//! Reports that a server serves, to the log and to systemd.

use super::banner::{terminal, Banner};
use crate::admin::Leaver;
use crate::configuration::Configuration;
use crate::output::on_this_machine;
use crate::root::at_root;
use crate::status::reports;
use highball_config::{App, AppId, ShowDiagnosis};
use highball_front::developer_key::DeveloperKey;
use highball_link::{AppCommand, DETAIL};
use highball_spawner::ServiceState;
use highball_supervisor::{Launcher, Order};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::info;

/// Time for the supervisor to report what the banner shows.
const REPORT_TIME: Duration = Duration::from_secs(1);

/// What has to be there before the report.
#[derive(Debug)]
pub(crate) struct Readiness {
    configuration: Configuration,
    binds: Vec<String>,
    key: Arc<DeveloperKey>,
    /// The applications that boot at the start, and have neither come up nor failed, nor been removed.
    coming: BTreeSet<AppId>,
    reported: bool,
    /// Whether the log has shown what to do about an application that did not boot.
    has_shown_failure: bool,
    launcher: Launcher,
    admin: Leaver,
    supervisor: mpsc::WeakSender<Order>,
}

impl Readiness {
    /// `reported`: another part reports it.
    pub(crate) fn new(
        configuration: Configuration,
        binds: Vec<String>,
        key: Arc<DeveloperKey>,
        reported: bool,
        launcher: Launcher,
        admin: Leaver,
        supervisor: mpsc::WeakSender<Order>,
    ) -> Readiness {
        let coming = configuration.now().apps.iter().filter(|app| app.prestart).map(|app| app.id).collect();
        let has_shown_failure = false;
        Readiness {
            configuration,
            binds,
            key,
            coming,
            reported,
            has_shown_failure,
            launcher,
            admin,
            supervisor,
        }
    }

    /// Another process serves from here on, and has kept these addresses.
    pub(crate) fn handed_over(&self, pid: i32, kept: &[String]) {
        let left = self.binds.iter().filter(|address| !kept.contains(address));
        left.for_each(|address| at_root::leave(address, &self.launcher));
        self.admin.leave(kept);
        if let Some(pid) = Pid::from_raw(pid) {
            at_root::tell(ServiceState::HandedOver(pid), &self.launcher);
        }
    }

    /// The server stops, or will soon.
    pub(crate) fn stopping(&self) {
        at_root::tell(ServiceState::Stopping, &self.launcher);
    }

    /// Reports at once where all applications boot at their first requests.
    pub(crate) fn begin(&mut self) {
        if self.coming.is_empty() {
            self.report();
        }
    }

    /// Takes note of a command about an application.
    pub(crate) fn note(&mut self, app: AppId, command: &AppCommand) {
        let is_up = matches!(command, AppCommand::AddWorker(_) | AppCommand::OpenSite { .. });
        let has_failed = matches!(command, AppCommand::Failed(_));
        if has_failed && self.configuration.now().apps.len() > 1 {
            self.show_failed_app(app);
        }
        if self.reported || !(is_up || has_failed) {
            return;
        }
        // The report waits until a single application that has failed is fixed.
        if has_failed && self.configuration.now().apps.len() == 1 {
            if !std::mem::replace(&mut self.has_shown_failure, true) {
                let apps = &self.configuration.now().apps;
                let link = apps.first().and_then(|app| browser_link(app, &self.binds, &self.key));
                let place = link.unwrap_or_else(|| self.binds.join(" "));
                info!(name: "waiting_for_fix", link = place, "fix it, then reload the page");
            }
            return;
        }
        self.has_come(app);
    }

    /// The application has come up or failed, or was removed.
    pub(crate) fn has_come(&mut self, app: AppId) {
        self.coming.remove(&app);
        if self.coming.is_empty() {
            self.report();
        }
    }

    fn report(&mut self) {
        if std::mem::replace(&mut self.reported, true) {
            return;
        }
        info!(
            name: "serving",
            target: DETAIL, pid = self.launcher.pid().as_raw_pid(), addresses = self.binds.join(" "), "serving"
        );
        self.admin.report();
        let apps = &self.configuration.now().apps;
        if apps.len() > 1 {
            for app in apps {
                info!(
                    name: "reachable",
                    target: DETAIL, application = app.name, url = self.link_or_url(app), "reachable"
                );
            }
            if let Some(url) = self.url_of_list(apps) {
                info!(
                    name: "applications_listed", target: DETAIL, link = self.key.link(&url), "list of the applications"
                );
            }
        } else if let Some(link) = apps.first().and_then(|app| browser_link(app, &self.binds, &self.key)) {
            info!(name: "browser_link", target: DETAIL, link, "in your browser");
        }
        self.show_banner();
        at_root::tell(ServiceState::Ready, &self.launcher);
    }

    /// Shows a developer at a terminal what serves.
    fn show_banner(&self) {
        let settings = self.configuration.now();
        let Some(terminal) = terminal(&settings) else { return };
        let urls: Vec<String> = settings.apps.iter().map(|app| self.link_or_url(app)).collect();
        let list = || self.url_of_list(&settings.apps).map(|url| self.key.link(&url));
        let link = if settings.apps.len() > 1 { list() } else { None };
        let link = link.or_else(|| urls.first().cloned()).unwrap_or_default();
        let supervisor = self.supervisor.clone();
        tokio::spawn(async move {
            let report = async { reports::of_supervisor(supervisor.upgrade()?).await };
            let report = timeout(REPORT_TIME, report).await.ok().flatten();
            Banner { settings: &settings, link, urls }.show(terminal, report.as_ref());
        });
    }

    fn link_or_url(&self, app: &App) -> String {
        browser_link(app, &self.binds, &self.key).unwrap_or_else(|| on_this_machine(&url(app, &self.binds)))
    }

    fn show_failed_app(&self, app: AppId) {
        let link = |app: Arc<App>| Some((app.name.clone(), browser_link(&app, &self.binds, &self.key)?));
        if let Some((application, link)) = self.configuration.app(app).and_then(link) {
            info!(name: "browser_link", application, link, "in your browser");
        }
    }

    /// Where a developer at this machine is shown the list of the applications, if none has that place.
    fn url_of_list(&self, apps: &[Arc<App>]) -> Option<String> {
        let is_at_localhost = |app: &App| {
            let mut hosts = app.hosts.iter();
            app.prefix.is_empty()
                && (app.hosts.is_empty() || hosts.any(|host| host == "*" || host == "localhost"))
        };
        let is_listed = apps.iter().any(|app| app.is_development());
        let of_browsers = |scheme: &str| self.binds.iter().find(|bind| bind.starts_with(scheme));
        let bind = of_browsers("http://").or_else(|| of_browsers("https://"))?;
        let (scheme, port) = (bind.split_once("://")?.0, bind.rsplit_once(':')?.1);
        let is_free = !apps.iter().any(|app| is_at_localhost(app));
        (is_listed && is_free).then(|| format!("{scheme}://localhost{}/", behind_colon(scheme, port)))
    }
}

/// Where people find the application: at its host for this machine, if it has one, else at its first.
pub(crate) fn url(app: &App, binds: &[String]) -> String {
    let of_browsers = |scheme: &str| binds.iter().find(|bind| bind.starts_with(scheme));
    let bind = of_browsers("http://").or_else(|| of_browsers("https://")).or_else(|| binds.first());
    let bind = bind.map(String::as_str).unwrap_or_default();
    let local = app.hosts.iter().find(|host| host.ends_with(".localhost"));
    let (Some(host), Some((_, port))) = (local.or_else(|| app.hosts.first()), bind.rsplit_once(':')) else {
        return format!("{bind}{}/", app.prefix);
    };
    match bind.split_once("://") {
        Some((scheme @ ("http" | "https"), _)) => {
            format!("{scheme}://{host}{}{}/", behind_colon(scheme, port), app.prefix)
        }
        _ => format!("{bind}, host {host}{}/", app.prefix),
    }
}

/// The link that lets a developer's browser see what goes wrong with an application: in development, where it is reached
/// by a name of this machine, and a link is asked for.
pub(crate) fn browser_link(app: &App, binds: &[String], key: &DeveloperKey) -> Option<String> {
    if !app.is_development() || app.show_diagnosis != ShowDiagnosis::Link {
        return None;
    }
    let url = on_this_machine(&url(app, binds));
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let host = rest.split([':', '/']).next().unwrap_or_default();
    let is_local = app.hosts.is_empty() || host == "localhost" || host.ends_with(".localhost");
    is_local.then(|| key.link(&url))
}

/// The port as it stands in a URL: not at all, if it is the usual one.
fn behind_colon(scheme: &str, port: &str) -> String {
    if [("http", "80"), ("https", "443")].contains(&(scheme, port)) {
        return String::new();
    }
    format!(":{port}")
}
