//! What differs between the current configuration and the reloaded one.

use std::sync::Arc;

use crate::error::Fault;
use crate::fields::Fields;
use crate::options::{options, Applies};
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
    /// Whether its processes are the same as those of `other`: no option differs that they depend on, and they run the same files
    /// as the same user.
    pub fn has_processes_of(&self, other: &App) -> bool {
        let [mut one, mut two] = [self, other].map(Fields::of_app);
        let mut options = options().filter(|option| option.scope.applies() == Applies::WithNewProcesses);
        options.all(|option| option.value.is_same(&mut one, &mut two))
            && (&self.folder, &self.link, &self.file) == (&other.folder, &other.link, &other.file)
            && self.puma_file == other.puma_file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callbacks::Callbacks;
    use crate::manual::toml_value;
    use crate::options::{Opt, Scope};
    use crate::puma::{PumaAnswer, PumaQuestion};
    use crate::{parse_with, Invocation};
    use highball_users::may_change_users;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    const PRODUCTION: &str = "environment = 'production'";
    const WITH_DOMAIN: &str = "domain = ['blog.example.com']";
    const WITH_CLIENTS: &str =
        "bind = ['tls://127.0.0.1:443']\ntls_certificate = ['a.pem']\ntls_client_ca = 'clients.pem'";
    const WITH_TLS: &str = "bind = ['tls://127.0.0.1:443']\ntls_certificate = ['a.pem']";

    /// Two files that differ in this option alone, and in what it cannot do without.
    fn files(option: &Opt) -> [String; 2] {
        let value = match option.name {
            "bind" => "['127.0.0.1:4000']".into(),
            "https" => "true".into(),
            "ruby" => "'/bin/sh'".into(),
            "user" => "'daemon'".into(),
            "max_workers" => "511".into(),
            "preload" | "gc" => "false".into(),
            "acme_eab_kid" => "'kid'\nacme_eab_key_file = 'key'".into(),
            "acme_eab_key_file" => "'key'\nacme_eab_kid = 'kid'".into(),
            _ => toml_value(option),
        };
        let other = match option.name {
            "https" => "",
            // Whose defaults depend on it.
            "environment" => "bind = ['127.0.0.1']\naccess_log = 'none'",
            "tls_key" | "hsts" | "tls_client_ca" => WITH_TLS,
            "tls_client_auth" => WITH_CLIENTS,
            "proxy_protocol_from" => "proxy_protocol = 'v2'",
            "basic_auth_realm" => "basic_auth = 'users'",
            "state_dir" => WITH_DOMAIN,
            name if name.starts_with("acme_") => WITH_DOMAIN,
            _ => PRODUCTION,
        };
        [format!("{other}\n"), format!("{other}\n{} = {value}\n", option.name)]
    }

    fn read(folder: &Path, text: &str) -> Settings {
        fs::write(folder.join("config/highball.toml"), text).unwrap();
        let env = |name: &str| (name == "HOME").then(|| "/root".to_owned());
        let ask = |_: &PumaQuestion<'_>| Ok(PumaAnswer::default());
        let callbacks = Callbacks { ask_ruby: Some(&ask), ..Callbacks::default() };
        match parse_with(["highball".into(), folder.into()], &env, callbacks) {
            Ok(Invocation::Serve(settings)) => *settings,
            other => panic!("{text}\n{other:?}"),
        }
    }

    /// When the difference takes effect.
    fn takes_effect(old: &Settings, new: Settings) -> Option<Applies> {
        let Changes { settings, added, changed, is_about_server, .. } = Changes::between(old, new);
        let needs_processes = |app: &Arc<App>| !app.has_processes_of(&old.apps[0]);
        if is_about_server {
            Some(Applies::WithNewServer)
        } else if !added.is_empty() || changed.iter().any(needs_processes) {
            Some(Applies::WithNewProcesses)
        } else {
            (settings != *old).then_some(Applies::AtOnce)
        }
    }

    #[test]
    fn each_option_takes_effect_when_its_row_says() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("blog-of-test");
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(folder.join("config")).unwrap();
        fs::write(folder.join("config/puma.rb"), "").unwrap();
        fs::write(folder.join("Procfile"), "worker: bin/jobs\n").unwrap();
        let is_possible = |option: &&Opt| option.in_file() && (!option.is_user() || may_change_users());
        for option in options().filter(is_possible) {
            let [old, new] = files(option).map(|text| read(&folder, &text));
            let expected = match option.scope.applies() {
                // HUP leaves the processes: the rest is decided elsewhere.
                Applies::AtOnceAfterFirst => Applies::AtOnce,
                Applies::WithNewServer if matches!(option.scope, Scope::App(_)) => Applies::AtOnce,
                applies => applies,
            };
            assert_eq!(takes_effect(&old, new), Some(expected), "{}", option.name);
        }
    }

    #[test]
    fn limits_that_decide_the_number_of_workers_leave_those_that_there_are() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("config")).unwrap();
        let few = read(place.path(), "environment = 'production'\ncpu_max = 1\n");
        let many = read(place.path(), "environment = 'production'\nmin_workers = 9\n");
        assert_eq!((few.apps[0].workers, many.apps[0].workers), (1, 9));
        assert!(many.apps[0].has_processes_of(&few.apps[0]));
    }
}
