//! Everything that asks the file system for an application's files. That may take long, and is not for the event loop.

use std::path::PathBuf;

use highball_link::Assets;
use highball_users::User;

use super::encode_extra_fields;
use super::fingerprint;
use super::folder::{Folder, Names};
use super::found_file::FoundFile;
use super::pipeline::Pipeline;
use super::safe_path::SafePath;
use crate::aside::PoolShare;

/// Finds the files of one application.
#[derive(Debug)]
pub(crate) struct Finder {
    folder: Folder,
    /// Header fields for every file, encoded.
    extra_fields: Vec<u8>,
    /// Header fields for files that will never change, encoded.
    fields_of_immutable: Vec<u8>,
    /// Where the asset pipeline puts what it has built: a folder below the public one, with its slash.
    assets: Option<Vec<u8>>,
    /// What the asset pipeline answers with before anything is built.
    pipeline: Option<Pipeline>,
    /// The threads that read clients' files.
    reads: PoolShare,
}

impl Finder {
    /// Finds the files in the folder `root`, which need not exist (yet), to be sent with these header fields added.
    pub(crate) fn new(root: PathBuf, headers: &[(String, String)], follow_symlinks: bool) -> Self {
        let extra_fields = encode_extra_fields(headers);
        let is_set = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        let immutable = if is_set { b"" } else { fingerprint::IMMUTABLE };
        Finder {
            folder: Folder::new(root, follow_symlinks),
            fields_of_immutable: [&extra_fields, immutable].concat(),
            extra_fields,
            assets: None,
            pipeline: None,
            reads: PoolShare::of_reads(),
        }
    }

    /// The same with the assets of a Rails application.
    #[must_use]
    pub(crate) fn with_assets(mut self, assets: &Assets, follow_symlinks: bool) -> Self {
        let prefix = assets.prefix.trim_matches('/');
        if !prefix.is_empty() {
            let prefix = [prefix.as_bytes(), b"/"].concat();
            self.pipeline = assets
                .pipeline
                .as_ref()
                .map(|rules| Pipeline::new(prefix.clone(), rules.clone(), follow_symlinks));
            self.assets = Some(prefix);
        }
        self
    }

    /// The same, but with files opened by the rights of this user: an application has a say in which they are, by links
    /// and by what it says of itself, and is to give out none that it could not read.
    #[must_use]
    pub(crate) fn opened_as(mut self, user: Option<&User>) -> Self {
        if let Some(user) = user {
            self.folder.user = Some(user.clone());
            if let Some(pipeline) = &mut self.pipeline {
                pipeline.open_as(user);
            }
        }
        self
    }

    /// Below which paths files are found that are not in the folder.
    pub(super) fn pipeline_prefix(&self) -> Option<&[u8]> {
        self.pipeline.as_ref().map(Pipeline::prefix)
    }

    /// Whose rights files are opened with, if not Highball's own.
    pub(super) fn user(&self) -> Option<&User> {
        self.folder.user.as_ref()
    }

    /// What is in the folder.
    pub(super) fn names_by_now(&self, now_ms: u64) -> Names {
        self.folder.names_by_now(now_ms)
    }

    /// The file at this path; `None`: there is none.
    pub(super) fn find(&self, path: &SafePath<'_>, now_ms: u64) -> Option<FoundFile> {
        self.find_in_public(path, now_ms).or_else(|| self.find_in_pipeline(path, now_ms))
    }

    fn find_in_public(&self, path: &SafePath<'_>, now_ms: u64) -> Option<FoundFile> {
        let folder = self.folder.if_it_may_hold(path.first_component(), now_ms)?;
        path.candidates().find_map(|candidate| {
            let never_changes = fingerprint::is_in(&candidate, self.assets.as_deref());
            let fields = if never_changes { &self.fields_of_immutable } else { &self.extra_fields };
            let mut found = FoundFile::open(&folder, &candidate, fields, &self.reads)?;
            found.is_page_of_folder = candidate[path.name().len()..] == *b"/index.html";
            Some(found)
        })
    }

    fn find_in_pipeline(&self, path: &SafePath<'_>, now_ms: u64) -> Option<FoundFile> {
        self.pipeline.as_ref().filter(|_| !path.is_of_folder())?.find(path.name(), now_ms, &self.reads)
    }
}
