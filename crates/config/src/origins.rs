//! Which file an option comes from, where several speak: for the log and `highball doctor`.

use std::path::{Path, PathBuf};

use crate::error::Origin;
use crate::given::Given;
use crate::options::options;

/// An option that a file gives, and that something else goes before.
#[derive(Debug, Clone)]
pub(crate) struct Outweighed {
    pub(crate) name: &'static str,
    /// Where that was given.
    pub(crate) by: Origin,
}

/// What the options of an application come from.
pub(crate) struct Origins<'a> {
    /// The application's folder: paths in it are named without it.
    pub(crate) folder: &'a Path,
    /// All that counts.
    pub(crate) all: &'a Given,
    /// What the `highball.toml` says; and where that is, if there is one.
    pub(crate) own: &'a Given,
    pub(crate) file: Option<&'a Path>,
}

impl Origins<'_> {
    /// A line about the `highball.toml`: needed where another file counts as well, or where something goes before it.
    pub(crate) fn of_own_file(&self, has_others: bool) -> Option<String> {
        let file = self.file?;
        let outweighed: Vec<Outweighed> = options()
            .filter(|option| self.own.origin(option.name).is_some_and(|origin| is_of(origin, file)))
            .filter_map(|option| Some((option.name, self.all.origin(option.name)?)))
            .filter(|(_, by)| !is_of(by, file))
            .map(|(name, by)| Outweighed { name, by: by.clone() })
            .collect();
        if !has_others && outweighed.is_empty() {
            return None;
        }
        Some(format!("{} {}", self.short(file), self.sets(|path| path == file, &outweighed)))
    }

    /// A line about the Puma configuration that was read.
    pub(crate) fn of_puma(&self, puma: &Path, outweighed: &[Outweighed]) -> String {
        let why = match self.file {
            Some(file) => format!("for what {} does not set", self.short(file)),
            None => "as there is no highball.toml".into(),
        };
        // It may load others: every other file is one of these.
        let sets = self.sets(|path| self.file != Some(path), outweighed);
        format!("{} is read, {why}; it {sets}", self.short(puma))
    }

    fn sets(&self, is_meant: impl Fn(&Path) -> bool, outweighed: &[Outweighed]) -> String {
        let is_from_there =
            |name: &str| matches!(self.all.origin(name), Some(Origin::File { path, .. }) if is_meant(path));
        let names: Vec<&str> =
            options().map(|option| option.name).filter(|name| is_from_there(name)).collect();
        let names = if names.is_empty() { "no options".into() } else { names.join(", ") };
        let outweighed = outweighed.iter().map(|one| format!("{} by {}", one.name, self.place(&one.by)));
        let outweighed: Vec<String> = outweighed.collect();
        match &outweighed[..] {
            [] => format!("sets {names}"),
            outweighed => format!("sets {names}; outweighed: {}", outweighed.join(", ")),
        }
    }

    /// Where this option was given, in few words.
    pub(crate) fn place_of(&self, name: &str) -> String {
        self.all.origin(name).map_or_else(String::new, |origin| self.place(origin))
    }

    /// The same of something else.
    fn place(&self, origin: &Origin) -> String {
        match origin {
            Origin::CommandLine { long } => format!("--{long}"),
            Origin::Environment { variable } => variable.clone(),
            Origin::File { path, .. } => self.short(path),
            Origin::Default { name } => format!("the default of {name}"),
        }
    }

    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.folder)
            .map_or_else(|_| PathBuf::from(path), PathBuf::from)
            .display()
            .to_string()
    }
}

fn is_of(origin: &Origin, file: &Path) -> bool {
    matches!(origin, Origin::File { path, .. } if path == file)
}
