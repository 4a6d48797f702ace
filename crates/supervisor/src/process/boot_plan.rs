//! Where and how an application is booted, and where its companions run: what its path leads to by now, and which Ruby is for it, or that it is a static
//! site. All of that is in files that are the application's.

use crate::process::child;
use crate::process::interpreter::Interpreter;
use crate::process::site::Site;
use highball_config::App;
use highball_tenant::{OpenError, TenantFolder};
use highball_users::OutOfReach;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a boot is planned from.
#[derive(Debug)]
pub(crate) struct BootPlan {
    pub(crate) app: Arc<App>,
    /// The folder of the version that is served, unless what the application's path leads to by now is to be booted. Where it
    /// has been removed, such as an old release, that is booted as well.
    pub(crate) served: Option<PathBuf>,
    /// Highball's own Ruby code; none for a static site.
    pub(crate) boot_file: Option<PathBuf>,
}

/// What is started.
#[derive(Debug)]
pub(crate) enum Start {
    /// This Ruby, in this folder, which was opened with the rights of the application's user: whatever is at its path when
    /// the process begins.
    Ruby(Interpreter, Box<TenantFolder>),
    /// Nothing: the front serves the files of a static site.
    Site(Site),
}

/// Why there is nothing to start, or why it was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// The user that it is to run as may not read what it needs.
    #[error(transparent)]
    OutOfReach(#[from] OutOfReach),
    /// The folder cannot be opened.
    #[error("{0}")]
    NoFolder(io::Error),
    /// There is no static site any more.
    #[error("there is no static site any more")]
    NoSite,
    /// The system refused it.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

/// Opens the folder of a version, in which one of its companions is to run, with the rights of its user.
pub(crate) fn opened_folder(app: &App, folder: &Path) -> Result<Box<TenantFolder>, NotStarted> {
    let user = app.runs_as.another();
    if let Some(user) = user {
        highball_tenant::reaches(user, folder)?;
    }
    let opened = TenantFolder::open(folder, user);
    opened.map(Box::new).map_err(|error| NotStarted::NoFolder(error.into()))
}

impl BootPlan {
    /// The folder, without links, and what is started in it.
    pub(crate) fn made(self) -> (PathBuf, Result<Start, NotStarted>) {
        let open = |path: &Path| TenantFolder::open(path, self.app.runs_as.another());
        let served = self.served.as_deref().map(|served| (served, open(served)));
        let served = served
            .filter(|(_, opened)| !opened.as_ref().is_err_and(|error| matches!(error, OpenError::NotFound)));
        let (path, opened) = served.unwrap_or_else(|| (&self.app.link, open(&self.app.link)));
        let real_path = opened.as_ref().ok().and_then(|folder| folder.real_path().ok());
        let folder = real_path.unwrap_or_else(|| path.to_owned());
        let start = match &self.boot_file {
            Some(boot_file) => self.ruby(&folder, boot_file, opened.map_err(io::Error::from)),
            None => self.site(&folder),
        };
        (folder, start)
    }

    fn site(&self, folder: &Path) -> Result<Start, NotStarted> {
        Site::in_folder(folder, self.app.runs_as.another()).map(Start::Site).ok_or(NotStarted::NoSite)
    }

    /// The Ruby for the user that the application runs as, who has to reach its folder and Highball's own code.
    fn ruby(
        &self,
        folder: &Path,
        boot_file: &Path,
        opened: io::Result<TenantFolder>,
    ) -> Result<Start, NotStarted> {
        let user = self.app.runs_as.another();
        if let Some(user) = user {
            highball_tenant::reaches(user, boot_file)?;
            highball_tenant::reaches(user, folder)?;
        }
        let opened = opened.map_err(NotStarted::NoFolder)?;
        let environment = child::inherited(&self.app, folder);
        let env = |name: &str| environment.get(OsStr::new(name)).cloned();
        let chosen = Interpreter::choose(self.app.ruby.as_deref(), folder, user, &env);
        let chosen = chosen.map_err(|why| io::Error::new(io::ErrorKind::NotFound, why))?;
        Ok(Start::Ruby(chosen, Box::new(opened)))
    }
}
