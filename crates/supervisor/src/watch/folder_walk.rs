//! Walking through an application's folder. Links are not followed, and a walk has an end.

use highball_tenant::{About, Kind, Links, OpenError, TenantFolder};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Most files and folders that a walk looks at; changes of those beyond are not noticed.
const MOST_ENTRIES: usize = 20_000;

/// What is to be done with something that a walk has found.
pub(crate) enum Judgement {
    /// It counts. A folder is walked through, too.
    Counts,
    /// A folder does not count itself, and is walked through.
    Way,
    /// It does not count.
    LeftOut,
}

/// The sum of a number for each file and folder that counts, in whatever order they come. What cannot be read counts as
/// not there. The walk ends at a folder with more names than are left to be looked at.
pub(crate) fn sum(
    root: &TenantFolder,
    judge: impl Fn(&OsStr, &About) -> Judgement,
    number: impl Fn(&Path, &About) -> u64,
) -> u64 {
    let mut sum = 0u64;
    let mut left = MOST_ENTRIES;
    let mut folders = vec![PathBuf::from(".")];
    while let Some(folder) = folders.pop() {
        let names = match root.folder(&folder, Links::Refused).and_then(|folder| folder.survey(left)) {
            Ok(names) => names,
            Err(OpenError::TooManyNames { .. }) => break, // reading this many was the rest of the walk
            Err(_) => continue,
        };
        for (name, about) in names {
            left = left.saturating_sub(1);
            let found = judge(&name, &about);
            let path = folder.join(&name);
            if matches!(found, Judgement::Counts) {
                sum = sum.wrapping_add(number(&path, &about));
            }
            if about.kind == Kind::Folder && !matches!(found, Judgement::LeftOut) {
                folders.push(path);
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_walk_has_an_end_and_does_not_follow_links() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("app/one/two")).unwrap();
        fs::create_dir(path("outside")).unwrap();
        for name in ["app/a", "app/one/b", "app/one/two/c", "outside/d", "outside/e"] {
            fs::write(path(name), "").unwrap();
        }
        for (target, name) in
            [("../outside", "app/out"), ("..", "app/one/up"), ("/proc/self/root", "app/root")]
        {
            std::os::unix::fs::symlink(target, path(name)).unwrap();
        }
        let app = TenantFolder::open(&path("app"), None).unwrap();
        let files = |app: &TenantFolder| {
            sum(app, |_, _| Judgement::Counts, |_, about| (about.kind == Kind::File).into())
        };
        assert_eq!(files(&app), 3);
        assert_eq!(sum(&app, |_, _| Judgement::LeftOut, |_, _| 1), 0);
        assert_eq!(sum(&app, |_, _| Judgement::Way, |_, _| 1), 0);
        let many = path("app/one/many");
        fs::create_dir(&many).unwrap();
        for number in 0..=MOST_ENTRIES {
            fs::write(many.join(number.to_string()), "").unwrap();
        }
        assert!(files(&app) <= 3, "the rest of the walk is not made");
    }
}
