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
use std::time::Duration;

use highball_tenant::{About, Entry, Links, OpenError, TenantFolder};
use highball_users::User;

use super::{FRESH_BY_OPENER_MS, FRESH_MS};

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
    /// The names, and those of pages (`name.html`) without their ending. `None`: too many.
    names: Option<HashSet<Box<[u8]>>>,
}

impl Folder {
    pub(super) fn new(root: PathBuf, follow_symlinks: bool) -> Self {
        let links = if follow_symlinks { Links::Anywhere } else { Links::Refused };
        Folder { root, links, user: None, checked_ms: None, opened: None }
    }

    /// How long what was found is believed, in milliseconds.
    pub(super) fn fresh_ms(&self) -> u64 {
        if highball_tenant::is_by_opener(self.user.as_ref()) {
            FRESH_BY_OPENER_MS
        } else {
            FRESH_MS
        }
    }

    /// Whether a path that begins with this component could be that of a file.
    pub(super) fn may_hold(&mut self, first_component: &[u8], now_ms: u64) -> bool {
        if self.checked_ms.is_none_or(|checked| now_ms >= checked + self.fresh_ms()) {
            self.checked_ms = Some(now_ms);
            self.opened = self.look();
        }
        let Some(opened) = &self.opened else { return false };
        opened.names.as_ref().is_none_or(|names| names.contains(first_component))
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
        let names = folder.entries(MOST_NAMES).ok().map(with_pages);
        Some(Opened { folder, settled, names })
    }

    /// Opens a regular file below the folder; `None` if there is none that may be read.
    pub(super) fn open_file(&self, path: &[u8]) -> Option<(File, About)> {
        self.opened.as_ref()?.folder.file(path_of(path), self.links).ok()
    }

    /// The names in the folder at `path` below this one (empty for this one itself); none if it is not there. `None`:
    /// they cannot be told, or are too many.
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
