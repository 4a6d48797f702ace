//! `highball maintenance`: writes the file that switches an application's maintenance on, or removes it.
//!
//! The file belongs to the application's user, who may switch only this application. Root writes it with that user's rights,
//! so nothing in the application's folder leads root elsewhere.

use crate::commands::{announce, ask, unexpected, CommandError, LOOK_EVERY};
use crate::control::finding::Instance;
use crate::control::messages::{Answer, Question};
use crate::control::selection::{is_selected, selected, the_only};
use crate::output::{on_this_machine, progress};
use crate::random::random_digits;
use highball_config::{is_maintenance_file, MaintenanceSwitch, Selector};
use highball_link::{AppReport, MaintenanceNotice, NOTICE_BYTES};
use highball_tenant::{Links, TenantFolder};
use highball_text::json;
use highball_users::{with_rights_of, Place, User};
use rustix::fs::{mkdir, unlink, Mode};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Time for a server to see the file.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(5);

/// Switches the selected application, or all applications of the selected server.
pub(crate) fn maintenance(switch: &MaintenanceSwitch, selector: &Selector) -> Result<(), CommandError> {
    let found = selected(selector)?;
    let instance = the_only(&found)?;
    announce(instance);
    let is_meant = |app: &&AppReport| selector.app.as_ref().is_none_or(|selector| is_selected(selector, app));
    instance.status.apps.iter().filter(is_meant).try_for_each(|app| switch_app(switch, app, instance))
}

fn switch_app(switch: &MaintenanceSwitch, app: &AppReport, instance: &Instance) -> Result<(), CommandError> {
    let path = &app.maintenance_file;
    let name = &app.name;
    match switch {
        MaintenanceSwitch::Off => {
            as_user_of(app, || remove(path))
                .map_err(|error| CommandError::Maintenance("remove", path.clone(), error))?;
            wait(None, app, instance)?;
            progress(format_args!("{name}: visitors reach the application again"));
        }
        MaintenanceSwitch::On { message, retry_after, allow } => {
            let failed = |error| CommandError::Maintenance("write", path.clone(), error);
            let key = random_digits().map_err(failed)?;
            let usual = MaintenanceNotice::default();
            let since_ms = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64;
            let notice = MaintenanceNotice {
                since_ms,
                message: message.clone(),
                retry_after_seconds: retry_after
                    .map_or(usual.retry_after_seconds, |time| time.as_secs() as u32),
                allow: allow.clone(),
                key: Some(key.clone()),
            };
            as_user_of(app, || write(path, &notice)).map_err(failed)?;
            wait(Some(since_ms), app, instance)?;
            progress(format_args!("{name}: visitors get 503 from now on"));
            let url = on_this_machine(&app.url);
            progress(format_args!("To pass, open {url}?highball-maintenance={key}"));
        }
    }
    Ok(())
}

/// Switches it with the rights of the application's user.
fn as_user_of(app: &AppReport, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let changes = geteuid().is_root() && !app.user.is_empty() && app.user != "root";
    let user = changes.then(|| User::of(&app.user).ok_or(io::ErrorKind::NotFound)).transpose()?;
    with_rights_of(user.as_ref(), act)?
}

/// Returns whether the file exists. Root does not trust the path that the server names: it replaces and removes no other
/// file.
fn is_there(path: &Path) -> io::Result<bool> {
    let wrong = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    let Some(folder) = path.parent().filter(|_| is_maintenance_file(path)) else {
        return Err(wrong("its name does not begin with maintenance and end with .json".into()));
    };
    let folder = match TenantFolder::open(folder, None) {
        Err(error) if error.is_not_found() => return Ok(false),
        folder => folder.map_err(io::Error::other)?,
    };
    match folder.read(path.file_name().unwrap_or_default(), Links::Refused, NOTICE_BYTES) {
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(io::Error::other(error)),
        Ok(text) => match MaintenanceNotice::read(&text) {
            Ok(_) => Ok(true),
            Err(problem) => {
                Err(wrong(format!("it is another file, or malformed; remove it yourself ({problem})")))
            }
        },
    }
}

/// Writes the file, whole or not at all, and readable only for its user, because it has the key.
fn write(path: &Path, notice: &MaintenanceNotice) -> io::Result<()> {
    is_there(path)?;
    if let Some(folder) = path.parent().filter(|folder| folder.ends_with("tmp")) {
        match mkdir(folder, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let place = Place::open(path).map_err(io::Error::other)?;
    let temporary = place.temporary()?;
    let text = json::pretty(notice) + "\n";
    File::from(temporary.create(0o600)?).write_all(text.as_bytes())?;
    temporary.publish()?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if !is_there(path)? {
        return Ok(());
    }
    match unlink(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the server has seen the change.
fn wait(since_ms: Option<u64>, app: &AppReport, instance: &Instance) -> Result<(), CommandError> {
    let deadline = Instant::now() + FOLLOWS_WITHIN;
    loop {
        let Answer::Status(status) = ask(instance, Question::Status)? else {
            return Err(unexpected(instance));
        };
        let now = status.apps.iter().find(|one| one.processes.id == app.processes.id);
        if now.is_none_or(|now| now.requests.maintenance.as_ref().map(|it| it.since_ms) == since_ms) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(CommandError::NotFollowed(app.name.clone()));
        }
        rustix::event::poll(&mut [], Some(&LOOK_EVERY.try_into().unwrap_or_default()))
            .map_err(io::Error::from)?;
    }
}
