//! Why an application could not be started, and what to do about it.

use crate::facts::boot_failure::BootFailure;
use crate::process::boot_plan::NotStarted;
use highball_config::{App, Fault};
use highball_link::Step;
use highball_users::OutOfReach;
use std::io;
use std::path::Path;

pub(crate) fn not_started(app: &App, folder: &Path, why: &NotStarted) -> BootFailure {
    match why {
        NotStarted::OutOfReach(out) => out_of_reach(out),
        NotStarted::NoFolder(error) => no_ruby(app, folder, error, false),
        NotStarted::Refused(error) => no_ruby(app, folder, error, true),
        NotStarted::NoSite => no_site(folder),
    }
}

/// The user of the application may not enter its folder, or may not read Highball's own code.
fn out_of_reach(out: &OutOfReach) -> BootFailure {
    let OutOfReach { user, path, barrier, .. } = out;
    let elsewhere = if path.ends_with("highball/boot.rb") {
        ". Install Highball where every user can read it, for example below /opt"
    } else {
        ""
    };
    let barrier = barrier.display();
    let remedy =
        format!("Let {user} into {barrier}, or choose another `user` for the application{elsewhere}.");
    BootFailure::of_ours(Step::StartRuby, "permission_denied", out.to_string(), remedy)
        .with_command(&format!("namei -l {}", path.display()))
}

fn no_ruby(app: &App, folder: &Path, error: &io::Error, has_folder: bool) -> BootFailure {
    let ruby = app.ruby.as_ref().map_or_else(|| "ruby".into(), |ruby| ruby.display().to_string());
    let place = folder.display();
    let user = app.runs_as.another();
    let who = user.map_or_else(|| "this user".into(), |user| format!("the user {user}"));
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !has_folder => format!("{place} is not a folder any more."),
        io::ErrorKind::NotFound => {
            format!("Install Ruby (Debian: apt-get install ruby) for {who}, or name one with --ruby.")
        }
        io::ErrorKind::PermissionDenied => format!("Check that {who} may enter {place} and run {ruby}."),
        _ => "The system refused it; see the message.".to_string(),
    };
    let whose = user.map_or_else(String::new, |user| format!(" as {user}"));
    let message = format!("cannot run {ruby} in {place}{whose}: {error}");
    BootFailure::of_ours(Step::StartRuby, "no_ruby", message, remedy)
}

/// Its own configuration file, or its folder, cannot be used.
pub(super) fn not_configured(fault: &Fault) -> BootFailure {
    let remedy = "Correct that, and have the server read its configuration again: kill -HUP PID, as `highball status` \
                  names it; in development, reload the page.";
    let mut failure = BootFailure::of_ours(
        Step::ReadConfiguration,
        "invalid_configuration",
        fault.message.clone(),
        remedy.into(),
    );
    let error = &mut failure.account.error;
    error.file = fault.file.as_ref().map(|file| file.display().to_string());
    error.line = fault.line.and_then(|line| u32::try_from(line).ok());
    failure
}

/// There is no site where one was.
pub(super) fn no_site(folder: &Path) -> BootFailure {
    let message = format!("there is no static site in {} any more", folder.display());
    let remedy =
        "Build the site, so that its folder holds an index.html. If it has become an application, stop \
                  Highball and start it again.";
    BootFailure::of_ours(Step::FindApp, "no_site", message, remedy.into())
}
