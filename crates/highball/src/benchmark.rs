//! `highball bench`: hands over to the program `highball-bench`, which measures. It is a program apart, so that servers do
//! not carry it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::started_path;
use rustix::fs::{access, Access};
use thiserror::Error;

const PROGRAM: &str = "highball-bench";
/// Names for it the Highball to measure.
const MEASURED: &str = "HIGHBALL_BIN";

/// Why there is no benchmark.
#[derive(Debug, Error)]
pub(crate) enum BenchError {
    #[error(
        "`highball bench` runs the program {PROGRAM}, which is not installed: it is neither beside {} nor in PATH.\n\
         Install it with `gem install {PROGRAM}`, or build it with `bin/setup --bench` in a clone of Highball.",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("cannot run {}: {error}", .program.display())]
    NotRun { program: PathBuf, error: std::io::Error },
}

/// Replaces this process with the benchmark; returns only if that fails.
///
/// # Errors
/// There is no such program, or it cannot be run.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<(), BenchError> {
    let own = env::current_exe().unwrap_or_else(|_| "highball".into());
    let search = env::var_os("PATH").unwrap_or_default();
    let launcher = started_path::launcher();
    let program =
        find([Some(&own), launcher.as_ref()], &search).ok_or_else(|| BenchError::Missing(own.clone()))?;
    let measured = env::var_os(MEASURED).unwrap_or_else(|| own.into());
    let error = Command::new(&program).args(arguments).env(MEASURED, measured).exec();
    Err(BenchError::NotRun { program, error })
}

/// The benchmark beside one of these programs, or else the first in the search path.
fn find(programs: [Option<&PathBuf>; 2], search: &OsStr) -> Option<PathBuf> {
    let beside = programs.into_iter().flatten().filter_map(|program| program.parent().map(Path::to_owned));
    let mut places = beside.chain(env::split_paths(search)).map(|folder| folder.join(PROGRAM));
    places.find(|place| place.is_file() && access(place, Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program_in(folder: &Path, mode: u32) -> PathBuf {
        let program = folder.join(PROGRAM);
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        program
    }

    #[test]
    fn the_one_beside_this_program_comes_before_those_in_the_search_path() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let highball = own.path().join("highball");
        assert_eq!(find([Some(&highball), None], other.path().as_os_str()), None);
        let in_path = program_in(other.path(), 0o755);
        assert_eq!(find([Some(&highball), None], other.path().as_os_str()), Some(in_path));
        let beside = program_in(own.path(), 0o755);
        assert_eq!(find([Some(&highball), None], other.path().as_os_str()), Some(beside));
    }

    #[test]
    fn what_cannot_be_run_is_no_benchmark() {
        let folder = tempfile::tempdir().unwrap();
        program_in(folder.path(), 0o644);
        assert_eq!(find([Some(&folder.path().join("highball")), None], OsStr::new("")), None);
    }
}
