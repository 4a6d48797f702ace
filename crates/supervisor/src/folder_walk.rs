//! Walking through an application's folder. Links are not followed, and a walk has an end.

use highball_tenant::{About, Kind, Links, TenantFolder};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Most files and folders that a walk looks at; changes of those beyond are not noticed.
const MOST_ENTRIES: usize = 20_000;

/// What is to be done with something that a walk has found.
pub(crate) enum Found {
    /// It counts. A folder is walked through, too.
    Counts,
    /// A folder does not count itself, and is walked through.
    Way,
    /// It does not count.
    LeftOut,
}

/// The sum of a number for each file and folder that counts, in whatever order they come. What cannot be read counts as
/// not there, as does a folder with more names than are left to be looked at.
pub(crate) fn sum(
    root: &TenantFolder,
    judge: impl Fn(&OsStr, &About) -> Found,
    number: impl Fn(&Path, &About) -> u64,
) -> u64 {
    let mut sum = 0u64;
    let mut left = MOST_ENTRIES;
    let mut folders = vec![PathBuf::from(".")];
    while let Some(folder) = folders.pop() {
        let names = root.folder(&folder, Links::Refused).and_then(|folder| folder.survey(left));
        for (name, about) in names.unwrap_or_default() {
            left = left.saturating_sub(1);
            let found = judge(&name, &about);
            let path = folder.join(&name);
            if matches!(found, Found::Counts) {
                sum = sum.wrapping_add(number(&path, &about));
            }
            if about.kind == Kind::Folder && !matches!(found, Found::LeftOut) {
                folders.push(path);
            }
        }
    }
    sum
}
