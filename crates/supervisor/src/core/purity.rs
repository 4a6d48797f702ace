//! The core decides and does nothing: its sources name no clock, no file, no process, no randomness.

use std::fs;
use std::path::{Path, PathBuf};

/// What nothing in the core may name.
const FORBIDDEN: [&str; 12] = [
    "Instant::now",
    "SystemTime",
    ".elapsed()",
    "std::fs",
    "std::io",
    "std::env",
    "std::thread",
    "std::process",
    "rustix::",
    "tokio::",
    "tracing::",
    "fastrand::",
];

#[test]
fn the_core_names_no_clock_and_no_deed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    let mut found = Vec::new();
    for file in sources(&folder) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (line, name) in lines.flat_map(|line| FORBIDDEN.map(|name| (line, name))) {
            if line.contains(name) {
                found.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Every source of the core but those that exist in tests only.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_tests = ["sim", "purity.rs", "table.rs", "mutation.rs", "tests.rs"];
    let entries = entries.filter(|path| !of_tests.iter().any(|name| path.ends_with(name)));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
