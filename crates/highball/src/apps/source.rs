//! Where applications come from: their folders, or the process that has loaded one and started this one.

use highball_config::{App, Settings};
use highball_front as front;
use highball_supervisor::{AppBlueprint, MoldSource, Predecessor, Site};
use std::error::Error;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

/// What the applications are brought up from.
pub(crate) fn blueprints(
    settings: &Settings,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<AppBlueprint>, Box<dyn Error>> {
    let blueprint = |app: &Arc<App>| {
        Ok(AppBlueprint {
            source: mold_source(app)?,
            geometry: front::geometry(&settings.limits, app),
            may_fail: predecessor.is_some_and(|predecessor| predecessor.is_without(&app.name)),
            app: Arc::clone(app),
        })
    };
    settings.apps.iter().map(blueprint).collect()
}

/// Whether the application was given as an object, to a process that started us and put the control socket onto our
/// standard input.
pub(crate) fn is_given_as_object() -> bool {
    std::env::var_os("HIGHBALL_MOLD").is_some_and(|value| value == "stdin")
}

/// The error for several applications where there can only be one.
pub(crate) fn one_too_many(settings: &Settings) -> Option<&'static str> {
    (is_given_as_object() && settings.apps.len() > 1).then_some(
        "the application was given as an object (by rackup or rails server), and the configuration file has several: \
         start `highball` itself, or name another file in HIGHBALL_CONFIG",
    )
}

/// Where the application comes from: its folder, where there may be nothing to load but files to serve; or the process
/// that started us.
pub(crate) fn mold_source(app: &App) -> Result<MoldSource, Box<dyn Error>> {
    if is_given_as_object() {
        return Ok(MoldSource::Caller(io::stdin().as_fd().try_clone_to_owned()?));
    }
    if app.file.is_none() && Site::in_folder(&app.folder, app.runs_as.another()).is_some() {
        return Ok(MoldSource::Site);
    }
    let gem_lib = gem_lib().ok_or(
        "cannot find Highball's Ruby code (lib/highball) near this binary: reinstall Highball, or name the \
         folder in HIGHBALL_LIB",
    )?;
    Ok(MoldSource::Folder { gem_lib })
}

/// The gem's folder `lib`: named, or somewhere above the binary (target/release of a source tree, or the gem).
pub(crate) fn gem_lib() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HIGHBALL_LIB") {
        return Some(named.into());
    }
    let binary = std::env::current_exe().ok()?;
    let mut libs = binary.ancestors().skip(1).take(4).map(|folder| folder.join("lib"));
    libs.find(|lib| lib.join("highball/boot.rb").is_file())
}
