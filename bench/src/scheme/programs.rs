//! Where programs and gems are found.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names a folder with gems that were built by hand: such as `GEM_HOME`, or a gem unpacked, or folders of gems.
const GEMS: &str = "HIGHBALL_BENCH_GEMS";
/// Where Debian has servers, which is not in every user's search path.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The program's file, if it can be run.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    search_path(&[]).into_iter().map(|folder| folder.join(program)).find(runs)
}

/// The Highball that is measured: what `HIGHBALL_BIN` names (`highball bench` names itself), else the one beside
/// this program, else the one in the search path.
pub(crate) fn highball() -> PathBuf {
    let named = env::var_os("HIGHBALL_BIN").map(PathBuf::from);
    named.or_else(|| beside("highball")).unwrap_or_else(|| PathBuf::from("highball"))
}

/// The floor, which is built with this program, or with Highball.
pub(crate) fn floor() -> PathBuf {
    beside("highball-floor").unwrap_or_else(|| highball().with_file_name("highball-floor"))
}

/// The file with this name in this program's folder, if there is one.
fn beside(name: &str) -> Option<PathBuf> {
    let file = env::current_exe().ok()?.with_file_name(name);
    file.is_file().then_some(file)
}

/// The variables by which the processes of a scheme find programs, and gems if it `needs_gem`: others must not meet
/// them by chance.
pub(crate) fn environment(needs_gem: bool) -> BTreeMap<String, String> {
    let gems = if needs_gem { gem_folders() } else { Vec::new() };
    let of_each =
        |name: &str| gems.iter().map(|gem| gem.join(name)).filter(|folder| folder.is_dir()).collect();
    let libraries: Vec<PathBuf> = of_each("lib");
    let mut found = BTreeMap::from([("PATH".into(), joined(search_path(&gems)))]);
    if !libraries.is_empty() {
        found.insert("RUBYLIB".into(), joined(libraries.into_iter().chain(paths_of("RUBYLIB"))));
    }
    if let Some(folder) = env::var_os(GEMS).filter(|_| needs_gem) {
        // The empty path at the end stands for Ruby's default folders.
        let path = [PathBuf::from(folder)].into_iter().chain(paths_of("GEM_PATH")).chain([PathBuf::new()]);
        found.insert("GEM_PATH".into(), joined(path));
    }
    found
}

/// The folder of gems itself, and those in it.
fn gem_folders() -> Vec<PathBuf> {
    let Some(folder) = env::var_os(GEMS).map(PathBuf::from) else {
        return Vec::new();
    };
    let inside = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default()
    };
    let unpacked = inside(&folder);
    [folder].into_iter().chain(unpacked).collect()
}

fn search_path(gems: &[PathBuf]) -> Vec<PathBuf> {
    let of_gems = gems.iter().flat_map(|gem| [gem.join("bin"), gem.join("exe")]);
    of_gems.chain(paths_of("PATH")).chain(SYSTEM_FOLDERS.map(PathBuf::from)).collect()
}

fn paths_of(variable: &str) -> Vec<PathBuf> {
    env::var_os(variable).map(|value| env::split_paths(&value).collect()).unwrap_or_default()
}

/// Paths with colons between them.
fn joined(paths: impl IntoIterator<Item = PathBuf>) -> String {
    let words: Vec<OsString> = paths.into_iter().map(PathBuf::into_os_string).collect();
    words.join(":".as_ref()).to_string_lossy().into_owned()
}
