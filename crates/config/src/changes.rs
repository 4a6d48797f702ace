//! What differs between the configuration that is followed and the one that was read anew.

use std::sync::Arc;

use crate::settings::{App, AppId, Named, Settings};

/// What differs. Applications are known again by their names, and keep their numbers.
#[derive(Debug)]
pub struct Changes {
    /// The settings from now on: what the server itself is told takes another process, and stays as it was.
    pub settings: Settings,
    /// Applications that were not there before.
    pub added: Vec<Arc<App>>,
    /// Applications for which something else is given.
    pub changed: Vec<Arc<App>>,
    /// Applications that are not there any more.
    pub removed: Vec<AppId>,
    /// Whether something else is given for the server itself.
    pub is_about_server: bool,
}

impl Changes {
    /// What is to change so that `new` is followed in the place of `old`.
    pub fn between(old: &Settings, new: Settings) -> Changes {
        let mut changes = Changes {
            settings: Settings { apps: Vec::new(), named: new.named.clone(), ..old.clone() },
            added: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
            is_about_server: false,
        };
        let server_only = |settings: &Settings| Settings {
            apps: Vec::new(),
            named: Named::InFile,
            ignored: Vec::new(),
            ..settings.clone()
        };
        changes.is_about_server = server_only(old) != server_only(&new);
        for app in &new.apps {
            let before = old.apps.iter().find(|before| before.name == app.name);
            let app = match before {
                None => {
                    changes.added.push(Arc::clone(app));
                    Arc::clone(app)
                }
                Some(before) => {
                    // Where a link leads to by now is for a restart to find out, and none of the configuration.
                    let is_there = (&before.link, &before.file) == (&app.link, &app.file);
                    let folder = if is_there { &before.folder } else { &app.folder };
                    let now = App { id: before.id, folder: folder.clone(), ..App::clone(app) };
                    if now == **before {
                        Arc::clone(before)
                    } else {
                        let now = Arc::new(now);
                        changes.changed.push(Arc::clone(&now));
                        now
                    }
                }
            };
            changes.settings.apps.push(app);
        }
        let is_gone = |app: &&Arc<App>| !changes.settings.apps.iter().any(|kept| kept.id == app.id);
        changes.removed = old.apps.iter().filter(is_gone).map(|app| app.id).collect();
        changes
    }
}
