//! One version of the application: what was in its folder when its mold booted. A mold that has to be booted again boots
//! from the same folder, and is the same generation.

use highball_link::Booted;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Version {
    /// The generation: from 1; later ones have larger numbers.
    number: u32,
    /// Workers of one mold, or of a mold booted in its place, are of one line. A refork begins a new line of the same
    /// generation.
    line: u32,
    /// Symbolic links resolved, so that a release stays what it is.
    folder: PathBuf,
    /// The folder is to be found where the application's path leads at the next boot.
    follows_link: bool,
    /// What it reported once it was booted.
    app: Option<Arc<Booted>>,
}

impl Version {
    /// A version that is to boot; `folder`: until it is known where its mold has started.
    pub(crate) fn new(number: u32, line: u32, folder: PathBuf) -> Version {
        Version { number, line, folder, follows_link: false, app: None }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it reported of the application, if it has booted.
    pub(crate) fn app(&self) -> Option<&Arc<Booted>> {
        self.app.as_ref()
    }

    pub(crate) fn has_booted(&self) -> bool {
        self.app.is_some()
    }

    /// Where its next mold boots; `None`: where the application's path leads then.
    pub(crate) fn boots_in(&self) -> Option<PathBuf> {
        (!self.follows_link).then(|| self.folder.clone())
    }

    /// Its next boot is in the folder to which the application's path leads then.
    pub(crate) fn follow_link(&mut self) {
        self.follows_link = true;
    }

    /// The boot that is under way, or has failed, is in this folder.
    pub(crate) fn found_in(&mut self, folder: PathBuf) {
        self.folder = folder;
        self.follows_link = false;
    }

    pub(crate) fn booted(&mut self, app: Arc<Booted>) {
        self.app = Some(app);
    }

    /// It is not there any more.
    pub(crate) fn gone(&mut self) {
        self.app = None;
    }

    /// What is forked from now on is of this line.
    pub(crate) fn begin_line(&mut self, line: u32) {
        self.line = line;
    }
}
