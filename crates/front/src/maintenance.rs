//! Maintenance of an application: while a file exists, visitors get a page instead of the application.
//!
//! The application's user owns the file, so only that user and root can switch maintenance. It stays over restarts of every
//! kind. A thread looks for the file while requests come or somebody asks for the state. Meanwhile the last result counts.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use highball_config::{App, Network};
use highball_link::{MaintenanceNotice, MaintenanceReport, NOTICE_BYTES};
use highball_tenant::{Links, OpenError, TenantFolder};
use highball_users::User;
use tokio::task::spawn_local;

use crate::aside::{patiently, PoolShare};
use crate::clock::now_ms;
use crate::cookies::values_in;
use crate::developer_key::are_equal;
use crate::pending::Pending;

/// Time between two looks for the file.
const LOOK_EVERY_MS: u64 = 1000;

/// Name of the cookie by which a browser passes, and of the parameter of the link that sets it, with `=`.
const NAME: &str = "highball-maintenance=";

/// The maintenance of an application.
#[derive(Debug)]
pub(crate) struct Maintenance {
    /// Its folder, or a link to it.
    folder: PathBuf,
    file: PathBuf,
    /// User with whose rights the file is read.
    user: Option<User>,
    pool: PoolShare,
    app: String,
    seen: RefCell<Seen>,
    /// Time of the next look.
    next_ms: Cell<u64>,
}

/// Result of the last look.
#[derive(Debug, Clone)]
enum Seen {
    /// There was no look yet.
    Nothing,
    /// Visitors reach the application.
    Off,
    On(Rc<Notice>),
}

/// The state, for a request.
pub(crate) enum Now {
    Off,
    On(Rc<Notice>),
    /// The look is under way.
    Unknown(Pending),
}

/// The page that visitors get, and who passes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) shown: MaintenanceNotice,
    pub(crate) allowed: Vec<Network>,
    /// A mistake in the file.
    problem: Option<String>,
}

impl Maintenance {
    /// Returns the maintenance of an application, shared with the threads that look.
    pub(crate) fn of(app: &App, pool: &PoolShare) -> Rc<Maintenance> {
        Rc::new(Maintenance {
            folder: app.link.clone(),
            file: app.maintenance_file.clone(),
            user: app.runs_as.another().cloned(),
            pool: pool.clone(),
            app: app.name.clone(),
            seen: RefCell::new(Seen::Nothing),
            next_ms: Cell::new(0),
        })
    }

    /// Returns whether this is the file of the configuration.
    pub(crate) fn is_of(&self, app: &App) -> bool {
        (&self.folder, &self.file) == (&app.link, &app.maintenance_file)
            && self.user.as_ref() == app.runs_as.another()
    }

    /// Returns the present state.
    pub(crate) fn now(self: &Rc<Self>) -> Now {
        let now_ms = now_ms();
        let is_due = now_ms >= self.next_ms.get();
        if is_due {
            self.next_ms.set(now_ms + LOOK_EVERY_MS);
        }
        match &*self.seen.borrow() {
            Seen::Nothing => Now::Unknown(Pending::new(Rc::clone(self).look_patiently())),
            seen => {
                if is_due {
                    spawn_local(Rc::clone(self).look());
                }
                match seen {
                    Seen::On(notice) => Now::On(Rc::clone(notice)),
                    _ => Now::Off,
                }
            }
        }
    }

    /// Returns the notice to report, if maintenance is on.
    pub(crate) fn report(self: &Rc<Self>) -> Option<MaintenanceReport> {
        match self.now() {
            Now::On(notice) => Some(MaintenanceReport {
                message: notice.shown.message.clone(),
                since_ms: notice.shown.since_ms,
                retry_after_seconds: notice.shown.retry_after_seconds,
                allow: notice.shown.allow.clone(),
                problem: notice.problem.clone(),
            }),
            Now::Off => None,
            Now::Unknown(_) => {
                spawn_local(Rc::clone(self).look());
                None
            }
        }
    }

    /// Looks for the file for the first time. If that takes too long, visitors reach the application until the file is seen.
    async fn look_patiently(self: Rc<Self>) {
        patiently(Rc::clone(&self).look()).await;
        if matches!(*self.seen.borrow(), Seen::Nothing) {
            *self.seen.borrow_mut() = Seen::Off;
        }
    }

    async fn look(self: Rc<Self>) {
        let is_first = matches!(*self.seen.borrow(), Seen::Nothing);
        let Some(held) = self.pool.take_soon().await else { return };
        if is_first && !matches!(*self.seen.borrow(), Seen::Nothing) {
            return; // it was found out for another request
        }
        let (folder, file, user) = (self.folder.clone(), self.file.clone(), self.user.clone());
        let (seen, _held) = held.spend(move || read(&folder, &file, user.as_ref())).await.unzip();
        match seen.flatten() {
            Some(notice) => self.learn(notice),
            None if matches!(*self.seen.borrow(), Seen::Nothing) => self.learn(None),
            None => {} // it cannot be seen at the moment
        }
    }

    fn learn(&self, notice: Option<Notice>) {
        let before = match &*self.seen.borrow() {
            Seen::On(before) => Some(Rc::clone(before)),
            Seen::Nothing | Seen::Off => None,
        };
        if before.as_deref() == notice.as_ref() && !matches!(*self.seen.borrow(), Seen::Nothing) {
            return;
        }
        let app = &self.app;
        match (&before, &notice) {
            (_, Some(Notice { problem: Some(problem), .. })) => {
                let file = self.folder.join(&self.file);
                tracing::error!(
                    name: "maintenance_file_malformed",
                    app, file = %file.display(), problem, "maintenance is on, and its file is malformed"
                );
            }
            (None, Some(_)) => tracing::warn!(
                name: "maintenance_on", app, "maintenance is on: visitors get 503"
            ),
            (Some(_), None) => {
                tracing::warn!(
                    name: "maintenance_off", app, "maintenance is off: visitors reach the application again"
                )
            }
            _ => {}
        }
        *self.seen.borrow_mut() = notice.map_or(Seen::Off, |notice| Seen::On(Rc::new(notice)));
    }
}

/// Reads the file, if there is one. Returns `None` if the folder cannot be read.
fn read(folder: &std::path::Path, file: &std::path::Path, user: Option<&User>) -> Option<Option<Notice>> {
    if file.as_os_str().is_empty() {
        return Some(None); // of an application that was given as an object
    }
    let folder = TenantFolder::open(folder, user).ok()?;
    match folder.look(file, Links::Anywhere) {
        Err(error) if error.is_not_found() => return Some(None),
        seen => seen.ok()?, // what leads there may be somewhere else by now
    };
    let read = folder.read(file, Links::Anywhere, NOTICE_BYTES);
    let read = match read {
        Err(error) if error.is_not_found() => return Some(None),
        read => read.map_err(|error: OpenError| error.to_string()),
    };
    Some(Some(match read.and_then(|text| MaintenanceNotice::read(&text)) {
        Ok((shown, allowed)) => Notice { shown, allowed, problem: None },
        Err(problem) => {
            Notice { shown: MaintenanceNotice::default(), allowed: Vec::new(), problem: Some(problem) }
        }
    }))
}

impl Notice {
    /// Returns whether the value of a `Cookie` field has the key.
    pub(crate) fn is_in_cookies(&self, cookies: &[u8]) -> bool {
        values_in(cookies, NAME.as_bytes()).any(|value| self.is_key(value))
    }

    /// Returns the query without the key, if it has the key.
    pub(crate) fn without_key(&self, query: &[u8]) -> Option<Vec<u8>> {
        let is_ours =
            |part: &&[u8]| part.strip_prefix(NAME.as_bytes()).is_some_and(|value| self.is_key(value));
        let parts = || query.split(|byte| *byte == b'&');
        parts().find(is_ours)?;
        let rest: Vec<&[u8]> = parts().filter(|part| !is_ours(part)).collect();
        Some(rest.join(&b'&'))
    }

    /// Returns the value of the `Set-Cookie` field. The browser keeps the cookie until it is closed.
    pub(crate) fn set_cookie(&self, is_tls: bool) -> Option<String> {
        let secure = if is_tls { "; Secure" } else { "" };
        let key = self.shown.key.as_ref()?;
        Some(format!("{NAME}{key}; Path=/; HttpOnly; SameSite=Lax{secure}"))
    }

    fn is_key(&self, value: &[u8]) -> bool {
        self.shown.key.as_ref().is_some_and(|key| are_equal(value, key.as_bytes()))
    }
}
