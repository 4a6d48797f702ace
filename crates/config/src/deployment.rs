//! An application as another program is to start it, for `highball config` and `highball init`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::callbacks::Callbacks;
use crate::error::ConfigError;
use crate::given::Given;
use crate::ownership::owner;
use crate::resolve::gather;
use crate::settings::{App, Settings};
use crate::value;

/// The memory that a server may take.
const MEMORY: RangeInclusive<u64> = (1 << 20)..=(1 << 50);

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The name of the program to configure.
    pub program: String,
    /// The protocol by which it reaches Highball.
    pub via: Option<String>,
    /// What visitors call the site.
    pub host: Option<String>,
    /// The machines that it runs on, with commas between them.
    pub machines: Option<String>,
    /// Memory that the server takes on each, as it was measured.
    pub memory: Option<String>,
}

/// An application as another program is to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// What the user asks for.
    pub asked: Asked,
    /// What it is served with.
    pub settings: Settings,
    /// The only application of these settings.
    pub app: Arc<App>,
    /// The user that it runs as, if that is not root.
    pub user: Option<String>,
    /// The options of the command line and of the environment, as arguments for `highball serve`.
    pub arguments: Vec<String>,
}

impl Deployment {
    /// Reads all options, as for `highball serve`; but the environment is production by default.
    ///
    /// # Errors
    /// Errors of reading it; or there are several applications, which the templates do not support yet.
    pub(crate) fn resolve(
        asked: Asked,
        paths: Vec<PathBuf>,
        given: Given,
        env: &dyn Fn(&str) -> Option<String>,
        callbacks: Callbacks<'_>,
    ) -> Result<Deployment, ConfigError> {
        let mut sources = gather(paths, given, env, callbacks)?;
        sources.top.default_environment("production");
        let user = sources.take_user()?;
        let arguments = sources.as_arguments()?;
        let settings = sources.settings()?;
        let [app] = &settings.apps[..] else { return Err(ConfigError::Usage(several(&settings.apps))) };
        let app = Arc::clone(app);
        let owner = owner(&app.link, &app.folder, app.file.as_deref());
        if let (None, Some(problem)) = (&user, owner.stray_link) {
            return Err(ConfigError::App { path: app.link.clone(), problem });
        }
        let user = user.or(owner.user.map(|owner| owner.name));
        Ok(Deployment { asked, settings, app, user, arguments })
    }

    /// The memory that the server takes, in bytes, if it was measured.
    ///
    /// # Errors
    /// What was given is no size.
    pub fn memory_bytes(&self) -> Result<Option<u64>, ConfigError> {
        let read = |text: &str| {
            value::size(text, &MEMORY).map_err(|why| ConfigError::Usage(format!("--memory: {why}")))
        };
        self.asked.memory.as_deref().map(read).transpose()
    }
}

/// The error for several applications.
fn several(apps: &[Arc<App>]) -> String {
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    format!(
        "`highball config` writes for a server of one application, and there are several: {}. Name the folder of one, and \
         add the others to what is printed",
        names.join(", ")
    )
}
