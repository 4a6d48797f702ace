//! What differs between the current configuration and the reloaded one.

use std::sync::Arc;

use crate::error::Fault;

use crate::settings::{App, AppId, Named, Settings, TlsSettings};

/// What differs. Applications are known again by their names, and keep their numbers.
#[derive(Debug)]
pub struct Changes {
    /// The settings from now on: options of the server itself need a new process, and stay as they were, but
    /// for certificates.
    pub settings: Settings,
    /// Applications that were not there before.
    pub added: Vec<Arc<App>>,
    /// Applications for which something else is given.
    pub changed: Vec<Arc<App>>,
    /// Applications that are not there any more.
    pub removed: Vec<AppId>,
    /// Applications that stay as they were, as their own files or folders cannot be used any more; and why.
    pub refused: Vec<(Arc<App>, Fault)>,
    /// Whether something else is given for the server itself.
    pub is_about_server: bool,
}

impl Changes {
    /// The changes from `old` to `new`.
    pub fn between(old: &Settings, new: Settings) -> Changes {
        let mut changes = Changes {
            settings: Settings {
                apps: Vec::new(),
                named: new.named.clone(),
                tls: TlsSettings { certificates: new.tls.certificates.clone(), ..old.tls.clone() },
                ..old.clone()
            },
            added: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
            refused: Vec::new(),
            is_about_server: false,
        };
        let server_only = |settings: &Settings| Settings {
            apps: Vec::new(),
            named: Named::InFile,
            ignored: Vec::new(),
            bind_places: Vec::new(),
            tls: TlsSettings { certificates: Vec::new(), ..settings.tls.clone() },
            ..settings.clone()
        };
        changes.is_about_server = server_only(old) != server_only(&new);
        for app in &new.apps {
            let is_free = |before: &&Arc<App>| !changes.settings.apps.iter().any(|app| app.id == before.id);
            let before = old.apps.iter().filter(is_free).find(|before| is_same(before, app));
            let app = match before {
                None => {
                    changes.added.push(Arc::clone(app));
                    Arc::clone(app)
                }
                Some(before) => changes.follow(before, app, &new),
            };
            changes.settings.apps.push(app);
        }
        let is_gone = |app: &&Arc<App>| !changes.settings.apps.iter().any(|kept| kept.id == app.id);
        changes.removed = old.apps.iter().filter(is_gone).map(|app| app.id).collect();
        changes
    }

    /// What an application becomes that was there before.
    fn follow(&mut self, before: &Arc<App>, app: &App, new: &Settings) -> Arc<App> {
        if let (Some(fault), None) = (&app.fault, &before.fault) {
            return self.refuse(before, app, fault, new);
        }
        if let (Some(file), None) = (before.own_configuration(), app.own_configuration()) {
            if app.fault.is_none() {
                return self.refuse(before, app, &Fault::of_gone(file), new);
            }
        }
        // Where a link leads to by now is for a restart to find out, and none of the configuration.
        let is_there = app.fault.is_none() && (&before.link, &before.file) == (&app.link, &app.file);
        let folder = if is_there && before.fault.is_none() { &before.folder } else { &app.folder };
        let now = App { id: before.id, folder: folder.clone(), ..App::clone(app) };
        // One with a fault is tried again, with the same outcome: the requests that wait for it get the error.
        if now == **before && now.fault.is_none() {
            return Arc::clone(before);
        }
        let now = Arc::new(now);
        self.changed.push(Arc::clone(&now));
        now
    }

    /// An application that has come up goes on as it was, while its own file has a mistake. Where it is reached is as the
    /// server says, where only the server may say that; and who it runs as, which takes another application.
    fn refuse(&mut self, before: &Arc<App>, app: &App, fault: &Fault, new: &Settings) -> Arc<App> {
        if before.runs_as != app.runs_as && !fault.is_silent {
            let now = Arc::new(App { fault: Some(fault.clone()), ..App::clone(app) });
            self.added.push(Arc::clone(&now));
            return now;
        }
        let mut kept = App::clone(before);
        let is_taken =
            new.apps.iter().any(|other| other.link != app.link && other.place_shared_with(before).is_some());
        if fault.server_routes || is_taken {
            (kept.hosts, kept.prefix) = (app.hosts.clone(), app.prefix.clone());
        }
        let kept = if kept == **before { Arc::clone(before) } else { Arc::new(kept) };
        if !Arc::ptr_eq(&kept, before) {
            self.changed.push(Arc::clone(&kept));
        }
        self.refused.push((Arc::clone(&kept), fault.clone()));
        kept
    }
}

/// Whether it is the same application: it is known by its name, and where that may stand in a file that cannot be used, by
/// its folder.
fn is_same(before: &App, app: &App) -> bool {
    match (&before.fault, &app.fault) {
        (None, None) => before.name == app.name,
        _ => (&before.link, &before.file) == (&app.link, &app.file),
    }
}

impl App {
    /// Whether its processes are the same as those of `other`, and what they say of its files.
    pub fn has_processes_of(&self, other: &App) -> bool {
        let differing = other.clone();
        let same = App {
            id: differing.id,
            name: differing.name,
            hosts: differing.hosts,
            limits: differing.limits,
            health_path: differing.health_path,
            request_start: differing.request_start,
            server_timing: differing.server_timing,
            prestart: differing.prestart,
            sleep_after: differing.sleep_after,
            access_log: differing.access_log,
            access_log_rules: differing.access_log_rules,
            certificates: differing.certificates,
            show_diagnosis: differing.show_diagnosis,
            basic_auth: differing.basic_auth,
            max_output_bytes: differing.max_output_bytes,
            memory: differing.memory,
            cpu_max: differing.cpu_max,
            pool: differing.pool,
            config_file: differing.config_file,
            puma_notes: differing.puma_notes,
            file_notes: differing.file_notes,
            environment_note: differing.environment_note,
            ..self.clone()
        };
        same == *other
    }
}
