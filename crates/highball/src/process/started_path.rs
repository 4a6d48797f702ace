//! The path that this process was started by: what stands there later may be a newer version. Where a script has run this
//! program in its place (the gem's, whose programs lie in a folder of their version), it is the script's path.

use highball_config::working_folder;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// By this variable the script names itself.
const LAUNCHER: &str = "HIGHBALL_LAUNCHER";

/// The script that has run this program in its place, if any.
pub(crate) fn launcher() -> Option<PathBuf> {
    env::var_os(LAUNCHER).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The launcher, or else the path as it was given, not resolved (a link may lead elsewhere later): the command, looked up in `PATH` if it
/// has no slash. Where that does not lead to this program, the program's own path.
pub(crate) fn started_path() -> Option<PathBuf> {
    if let Some(launcher) = launcher() {
        return Some(launcher);
    }
    let program = env::current_exe().ok()?;
    let given = env::args_os().next().unwrap_or_default();
    let search = env::var_os("PATH").unwrap_or_default();
    let current = working_folder().ok();
    let found = candidates(&given, &search, current.as_deref())
        .find(|path| path.canonicalize().is_ok_and(|path| path == program));
    Some(found.unwrap_or(program))
}

fn candidates<'a>(
    given: &'a OsStr,
    search: &'a OsStr,
    current: Option<&'a Path>,
) -> Box<dyn Iterator<Item = PathBuf> + 'a> {
    if given.as_encoded_bytes().contains(&b'/') {
        return Box::new(current.map(|folder| folder.join(given)).into_iter());
    }
    Box::new(env::split_paths(search).map(move |folder| folder.join(given)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_taken_as_it_is() {
        let paths = |given: &str| -> Vec<PathBuf> {
            let current = Some(Path::new("/srv"));
            candidates(OsStr::new(given), OsStr::new("/usr/local/bin:/usr/bin"), current).collect()
        };
        assert_eq!(paths("highball"), [Path::new("/usr/local/bin/highball"), Path::new("/usr/bin/highball")]);
        assert_eq!(paths("bin/highball"), [Path::new("/srv/bin/highball")]);
        assert_eq!(paths("/opt/highball"), [Path::new("/opt/highball")]);
    }

    #[test]
    fn the_tests_own_path_is_found() {
        let path = started_path().unwrap();
        assert_eq!(path.canonicalize().unwrap(), env::current_exe().unwrap());
    }
}
