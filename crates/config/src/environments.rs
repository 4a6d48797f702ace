//! Environments of Rails applications: each has a file in `config/environments`.

use highball_tenant::TenantFolder;

use crate::error::ConfigError;
use crate::settings::App;
use crate::spelling::did_you_mean;

/// Where the files are.
const FOLDER: &str = "config/environments";
/// What is only in applications of Rails.
const OF_RAILS: &str = "config/application.rb";
/// The most files that are looked at.
const MOST: usize = 100;

/// An environment that a Rails application has no file for.
struct Unknown {
    /// The environments that have a file, in order.
    known: Vec<String>,
}

/// What to warn of: the environment has no file, and its name resembles none that has one.
///
/// # Errors
/// It is one of the application's environments, misspelt.
pub(crate) fn check(app: &App) -> Result<Option<String>, ConfigError> {
    let Some(Unknown { known }) = unknown(app) else { return Ok(None) };
    let missing = format!("there is no {FOLDER}/{}.rb", app.environment);
    match did_you_mean(&app.environment, known.iter().map(String::as_str)) {
        None => Ok(Some(format!("{missing}, only {}", known.join(", ")))),
        Some(meant) => {
            let problem = format!("{missing}; did you mean {meant}? To use this name, create the file");
            Err(ConfigError::App { path: app.link.clone(), problem })
        }
    }
}

fn unknown(app: &App) -> Option<Unknown> {
    // Other names lead to no file there.
    if app.environment.contains('/') {
        return None;
    }
    let folder = TenantFolder::open(&app.folder, app.runs_as.another()).ok()?;
    if !folder.has_file(OF_RAILS) || folder.has_file(format!("{FOLDER}/{}.rb", app.environment)) {
        return None;
    }
    let files = folder.folder(FOLDER, highball_tenant::Links::Anywhere).ok()?.entries(MOST).ok()?;
    let names = files.iter().filter_map(|entry| entry.name.to_str()?.strip_suffix(".rb"));
    let mut known: Vec<String> = names.map(str::to_owned).collect();
    known.sort();
    (!known.is_empty()).then_some(Unknown { known })
}
