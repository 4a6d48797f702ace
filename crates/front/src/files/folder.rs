//! The public folder, opened, and the names in it.
//!
//! Most requests are for the application, not for a file. The list of names tells these without asking
//! the file system; it is looked after at most every [`LOOK_MS`] milliseconds, and read again when the
//! folder has changed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use highball_tenant::{About, Entry, Links, OpenError, TenantFolder};
use highball_users::User;

use super::FRESH_MS;

/// How often it is looked at, at most, however many files are looked for.
pub(super) const LOOK_MS: u64 = FRESH_MS / 4;

/// Most names that are kept; larger folders are asked for every request.
const MOST_NAMES: usize = 4096;

/// What has changed more recently than this may change again within the same time stamp.
pub(super) const SETTLED: Duration = Duration::from_secs(2);

/// The public folder, for several threads.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    links: Links,
    /// Whose rights files are opened with, if not Highball's own.
    pub(super) user: Option<User>,
    seen: Mutex<Seen>,
}

/// The folder at the last look.
#[derive(Debug, Clone, Default)]
struct Seen {
    at_ms: Option<u64>,
    opened: Option<Arc<OpenFolder>>,
}

/// The folder, opened.
#[derive(Debug)]
pub(super) struct OpenFolder {
    folder: TenantFolder,
    links: Links,
    /// Whether a change after the list was read must show in the folder's modification time.
    settled: bool,
    names: Names,
}

/// What is in the folder.
#[derive(Debug, Clone)]
pub(super) enum Names {
    /// Nothing: it is not there, or is not opened in time.
    None,
    /// These, and the names of pages (`name.html`) without their ending.
    Known(Arc<NameSet>),
    /// They are unknown, or too many.
    Any,
}

/// A set of names.
#[derive(Debug, Default)]
pub(super) struct NameSet {
    names: HashSet<Box<[u8]>>,
    /// The lengths of those names, a bit for each: most names that are looked for have another, and need not be hashed.
    lengths: u64,
}

impl NameSet {
    fn insert(&mut self, name: &[u8]) {
        self.lengths |= Self::bit_of_length(name);
        self.names.insert(name.into());
    }

    fn contains(&self, name: &[u8]) -> bool {
        self.lengths & Self::bit_of_length(name) != 0 && self.names.contains(name)
    }

    /// The last bit stands for all names that are longer.
    fn bit_of_length(name: &[u8]) -> u64 {
        1 << name.len().min(63)
    }
}

impl Names {
    /// Whether a path that begins with this component could lead to a file.
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
        Folder { root, links, user: None, seen: Mutex::default() }
    }

    /// The folder, if a path that begins with this component could lead to a file.
    pub(super) fn if_it_may_hold(&self, first_component: &[u8], now_ms: u64) -> Option<Arc<OpenFolder>> {
        self.by_now(now_ms).filter(|opened| opened.may_hold(first_component))
    }

    /// What is in it.
    pub(super) fn names_by_now(&self, now_ms: u64) -> Names {
        self.by_now(now_ms).map_or(Names::None, |opened| opened.names.clone())
    }

    /// The folder; `None`: it is not there.
    pub(super) fn by_now(&self, now_ms: u64) -> Option<Arc<OpenFolder>> {
        // Not held during the look, which may take long: another thread may look, too.
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if seen.at_ms.is_some_and(|at_ms| now_ms < at_ms + LOOK_MS) {
            return seen.opened;
        }
        let opened = self.look(seen.opened);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Seen { at_ms: Some(now_ms), opened: opened.clone() };
        opened
    }

    /// Opens the folder again (it may have been replaced), and reads its names if they may have changed.
    fn look(&self, known: Option<Arc<OpenFolder>>) -> Option<Arc<OpenFolder>> {
        let folder = TenantFolder::open(&self.root, self.user.as_ref()).ok()?;
        let unchanged =
            |known: &Arc<OpenFolder>| known.settled && stamp(known.folder.about()) == stamp(folder.about());
        if let Some(known) = known.filter(unchanged) {
            return Some(known);
        }
        let settled = folder.about().modified_at().elapsed().is_ok_and(|age| age >= SETTLED);
        let names = match folder.entries(MOST_NAMES) {
            Ok(entries) => Names::Known(Arc::new(with_pages(entries))),
            Err(OpenError::NoAnswer) => return None,
            Err(_) => Names::Any,
        };
        Some(Arc::new(OpenFolder { folder, links: self.links, settled, names }))
    }
}

impl OpenFolder {
    /// Whether a path that begins with this component could lead to a file.
    pub(super) fn may_hold(&self, first_component: &[u8]) -> bool {
        self.names.may_hold(first_component)
    }

    /// Opens a regular file below the folder; `None` if there is none that may be read.
    pub(super) fn open_file(&self, path: &[u8]) -> Option<(File, About)> {
        self.folder.file(path_of(path), self.links).ok()
    }

    /// The names in the folder at `path` below this one (empty for this one itself); none if it is not there. `None`:
    /// they are unknown, or too many.
    pub(super) fn names(&self, path: &[u8]) -> Option<Vec<Entry>> {
        let path = if path.is_empty() { b"." } else { path };
        match self.folder.folder(path_of(path), self.links) {
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

fn with_pages(entries: Vec<Entry>) -> NameSet {
    let mut names = NameSet::default();
    for entry in entries {
        let name = entry.name.as_bytes();
        if let Some(page) = name.strip_suffix(b".html") {
            names.insert(page);
        }
        names.insert(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_whatever_its_length() {
        let names: Vec<Vec<u8>> = (0..80).map(|length| vec![b'x'; length]).collect();
        let mut set = NameSet::default();
        names.iter().step_by(2).for_each(|name| set.insert(name));
        for (number, name) in names.iter().enumerate() {
            assert_eq!(set.contains(name), number % 2 == 0, "{number}");
            assert!(!set.contains(&[&name[..], b"/"].concat()));
        }
    }
}
