//! Environments of Rails applications: each has a file in `config/environments`.

use highball_tenant::TenantFolder;

use crate::error::ConfigError;
use crate::options::did_you_mean;
use crate::settings::App;

/// Where the files are.
const FOLDER: &str = "config/environments";
/// What is only in applications of Rails.
const OF_RAILS: &str = "config/application.rb";
/// The most files that are looked at.
const MOST: usize = 100;

/// An environment that a Rails application has no file for.
struct Unknown {
    /// Those that it has, in order.
    known: Vec<String>,
}

/// Makes sure that the environment is not one of the application's misspelt.
///
/// # Errors
/// It is.
pub(crate) fn check(app: &App) -> Result<(), ConfigError> {
    let Some(Unknown { known }) = unknown(app) else { return Ok(()) };
    let meant = did_you_mean(&app.environment, known.iter().map(String::as_str));
    meant.map_or(Ok(()), |meant| {
        let problem = format!(
            "there is no {FOLDER}/{}.rb; did you mean {meant}? For an environment of that name, write the file",
            app.environment
        );
        Err(ConfigError::App { path: app.link.clone(), problem })
    })
}

/// What to say of an application whose environment has no file, and is not near one that has.
pub fn unknown_environment(app: &App) -> Option<String> {
    let Unknown { known } = unknown(app)?;
    Some(format!("there is no {FOLDER}/{}.rb, only {}", app.environment, known.join(", ")))
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
