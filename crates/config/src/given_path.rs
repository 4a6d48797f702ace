//! Paths as they were given. What is real is looked up when it is needed: a link on the way, such as Capistrano's
//! `current`, may lead to another release by then.

use std::env;
use std::ffi::OsString;
use std::fs::{metadata, symlink_metadata, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Carries [`working_folder`] over to processes that are started by this one, in the same folder: `DEVICE:INODE:PATH`. `PWD`
/// would not do, as a link in it may lead elsewhere when they start.
pub const STARTED_IN: &str = "HIGHBALL_STARTED_IN";
/// The folder that this process is in, also where its path has gone: then nothing is found in it.
pub(crate) const HERE: &str = "/proc/self/cwd";

static KNOWN: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The folder that this process was started in, by the path that the user came to it by: `PWD`, as shells set it, where that
/// leads to this folder.
///
/// # Errors
/// The system does not say where this process is.
pub fn working_folder() -> io::Result<PathBuf> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*known {
        return Ok(known.clone());
    }
    // Looking at `.` would need the right to enter it.
    let here = metadata(HERE).or_else(|_| metadata("."))?;
    let given = env::var_os(STARTED_IN).and_then(|text| kept(text, &here));
    let given = given.or_else(|| env::var_os("PWD").and_then(|text| of_shell(text, &here)));
    let found = given.or_else(|| env::current_dir().ok()).unwrap_or_else(|| HERE.into());
    Ok(known.insert(found).clone())
}

/// Has the processes that this one starts in its folder know [`working_folder`]. To be called before there are threads.
pub fn keep_working_folder() {
    match kept_working_folder() {
        Some(text) => env::set_var(STARTED_IN, text),
        None => env::remove_var(STARTED_IN),
    }
}

/// The value of [`STARTED_IN`] for a process that this one starts in its folder: a successor looks where a Puma configuration
/// leads by then.
pub fn kept_working_folder() -> Option<OsString> {
    let (folder, here) = (working_folder().ok()?, metadata(HERE).ok()?);
    let mut text = OsString::from(format!("{}:{}:", here.dev(), here.ino()));
    text.push(folder);
    Some(text)
}

/// Has this process, and its successor, look for relative paths in another folder than it was started in: Puma's `directory`
/// says by which path restarts find the application.
pub(crate) fn move_working_folder(path: &Path) {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
}

/// What an older process has kept, if it was in this folder.
fn kept(text: OsString, here: &Metadata) -> Option<PathBuf> {
    let of_here = format!("{}:{}:", here.dev(), here.ino());
    let path = text.as_bytes().strip_prefix(of_here.as_bytes())?;
    Some(PathBuf::from(OsString::from_vec(path.to_vec()))).filter(|path| path.is_absolute())
}

/// What a shell has named this folder. Others may have set it, so it has to lead here.
fn of_shell(text: OsString, here: &Metadata) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    let is_plain = path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    let leads_here =
        || metadata(&path).is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
    (is_plain && leads_here()).then(|| path.components().collect())
}

/// The absolute path, where relative ones begin at `folder`, without `.` and superfluous slashes. Links stay, and so does `..`
/// behind one: it leads to the folder around the link's target.
pub fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in folder.join(path).components() {
        let is_folder =
            || symlink_metadata(&whole).is_ok_and(|about| about.is_dir()) && !whole.ends_with("..");
        if part == Component::ParentDir && is_folder() {
            whole.pop();
        } else {
            whole.push(part);
        }
    }
    whole
}

/// The folder and the Ruby file in it, where such a file was given instead of a folder.
pub(crate) fn split_file(path: PathBuf) -> (PathBuf, Option<PathBuf>) {
    let is_ruby = matches!(path.extension(), Some(end) if end == "rb" || end == "ru");
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if is_ruby && path.is_file() => (folder.to_owned(), Some(name.into())),
        _ => (path, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;

    fn here() -> Metadata {
        metadata(HERE).unwrap()
    }

    #[test]
    fn links_stay_and_what_means_nothing_goes() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        create_dir_all(top.join("releases/1/config")).unwrap();
        symlink("releases/1", top.join("current")).unwrap();
        for (given, expected) in [
            ("current", "current"),
            ("./current/.//", "current"),
            ("releases/../current", "current"),
            ("releases/1/../../current/config", "current/config"),
            ("current/config/..", "current"),
            // Behind a link it leads to `releases`.
            ("current/../1", "current/../1"),
            ("current/../../x", "current/../../x"),
            ("missing/../current", "missing/../current"),
        ] {
            assert_eq!(
                absolute(top, Path::new(given)).as_os_str(),
                top.join(expected).as_os_str(),
                "{given}"
            );
        }
        assert_eq!(absolute(top, Path::new("/etc//x/")), Path::new("/etc/x"));
        assert_eq!(absolute(top, Path::new("")), top);
        assert_eq!(absolute(Path::new("/"), Path::new("../..")), Path::new("/"));
    }

    #[test]
    fn the_shells_name_counts_where_it_leads_here() {
        let place = tempfile::tempdir().unwrap();
        let current = env::current_dir().unwrap();
        let (link, other) = (place.path().join("link"), place.path().join("other"));
        symlink(&current, &link).unwrap();
        symlink(place.path(), &other).unwrap();
        let named = |path: &Path| of_shell(path.into(), &here());
        assert_eq!(named(&link), Some(link.clone()));
        assert_eq!(named(&link.join(".")).unwrap().as_os_str(), link.as_os_str());
        assert_eq!(named(&other), None);
        assert_eq!(named(&place.path().join("missing")), None);
        assert_eq!(named(Path::new(".")), None);
        assert_eq!(named(Path::new("")), None);
        let name = current.file_name().unwrap();
        assert_eq!(named(&current.join("..").join(name)), None);
    }

    #[test]
    fn what_an_older_process_has_kept_counts_in_the_same_folder() {
        let (dev, ino) = (here().dev(), here().ino());
        let named = |text: String| kept(text.into(), &here());
        assert_eq!(named(format!("{dev}:{ino}:/srv/current")), Some("/srv/current".into()));
        assert_eq!(named(format!("{dev}:{ino}:/srv/a:b")), Some("/srv/a:b".into()));
        for text in [format!("{dev}:{}:/srv", ino + 1), format!("{dev}:{ino}:srv"), "/srv".into()] {
            assert_eq!(named(text.clone()), None, "{text}");
        }
    }
}
