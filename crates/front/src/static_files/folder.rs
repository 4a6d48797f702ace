//! The public folder, opened, and the names in it.
//!
//! Most requests are for the application, not for a file. The list of names tells these without asking
//! the file system; it is looked after at most every [`FRESH_MS`] milliseconds, and read again when the
//! folder has changed. Files that appear in folders below are found at once.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use highball_tenant::{About, Entry, Links, OpenError, TenantFolder};
use highball_users::User;

use super::FRESH_MS;

/// Most names that are kept; larger folders are asked for every request.
const MOST_NAMES: usize = 4096;

/// What has changed more recently than this may change again within the same time stamp.
pub(super) const SETTLED: Duration = Duration::from_secs(2);

/// The public folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    links: Links,
    /// Whose rights files are opened with, if not Highball's own.
    pub(super) user: Option<User>,
    /// When the folder was last looked at.
    checked_ms: Option<u64>,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    folder: TenantFolder,
    /// Whether a change after the list was read must show in the folder's modification time.
    settled: bool,
    names: Names,
}

/// What is in the folder.
#[derive(Debug, Clone)]
pub(super) enum Names {
    /// Nothing: it is not there, or is not opened in time.
    None,
    /// These, and those of pages (`name.html`) without their ending.
    Known(Arc<HashSet<Box<[u8]>>>),
    /// They are unknown, or too many.
    Any,
}

impl Names {
    /// Whether a path that begins with this component could be that of a file.
    pub(super) fn may_hold(&self, first_component: &[u8]) -> bool {
        match self {
            Names::None => false,
            Names::Known(names) => names.contains(first_component),
            Names::Any => true,
        }
    }
}

impl Folder {
    pub(super) fn new(root: PathBuf, follow_symlinks: bool) -> Self {
        let links = if follow_symlinks { Links::Anywhere } else { Links::Refused };
        Folder { root, links, user: None, checked_ms: None, opened: None }
    }

    /// Whether a path that begins with this component could be that of a file.
    pub(super) fn may_hold(&mut self, first_component: &[u8], now_ms: u64) -> bool {
        self.look_again(now_ms);
        self.opened.as_ref().is_some_and(|opened| opened.names.may_hold(first_component))
    }

    /// What is in it.
    pub(super) fn names_by_now(&mut self, now_ms: u64) -> Names {
        self.look_again(now_ms);
        self.opened.as_ref().map_or(Names::None, |opened| opened.names.clone())
    }

    fn look_again(&mut self, now_ms: u64) {
        if self.checked_ms.is_none_or(|checked| now_ms >= checked + FRESH_MS) {
            self.checked_ms = Some(now_ms);
            self.opened = self.look();
        }
    }

    /// Opens the folder again (it may have been replaced), and reads its names if they may have changed.
    fn look(&mut self) -> Option<Opened> {
        let folder = TenantFolder::open(&self.root, self.user.as_ref()).ok()?;
        if let Some(known) = self.opened.take() {
            if known.settled && stamp(known.folder.about()) == stamp(folder.about()) {
                return Some(Opened { folder, ..known });
            }
        }
        let settled = folder.about().modified_at().elapsed().is_ok_and(|age| age >= SETTLED);
        let names = match folder.entries(MOST_NAMES) {
            Ok(entries) => Names::Known(Arc::new(with_pages(entries))),
            Err(OpenError::NoAnswer) => return None,
            Err(_) => Names::Any,
        };
        Some(Opened { folder, settled, names })
    }

    /// Opens a regular file below the folder; `None` if there is none that may be read.
    pub(super) fn open_file(&self, path: &[u8]) -> Option<(File, About)> {
        self.opened.as_ref()?.folder.file(path_of(path), self.links).ok()
    }

    /// The names in the folder at `path` below this one (empty for this one itself); none if it is not there. `None`:
    /// they are unknown, or too many.
    pub(super) fn names(&self, path: &[u8]) -> Option<Vec<Entry>> {
        let Some(opened) = self.opened.as_ref() else { return Some(Vec::new()) };
        let path = if path.is_empty() { b"." } else { path };
        match opened.folder.folder(path_of(path), self.links) {
            Ok(folder) => folder.entries(MOST_NAMES).ok(),
            Err(OpenError::NotFound) => Some(Vec::new()),
            Err(_) => None,
        }
    }
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// What changes when a name comes or goes.
fn stamp(folder: &About) -> ((u64, u64), (i64, i64)) {
    (folder.id, folder.modified)
}

fn with_pages(entries: Vec<Entry>) -> HashSet<Box<[u8]>> {
    let mut names = HashSet::new();
    for entry in entries {
        let name = entry.name.as_bytes();
        if let Some(page) = name.strip_suffix(b".html") {
            names.insert(page.into());
        }
        names.insert(name.into());
    }
    names
}
