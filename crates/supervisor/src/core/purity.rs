//! The core decides and does nothing: what it imports is pure, and it names no clock.

use std::fs;
use std::path::{Path, PathBuf};

/// All that the core may name from elsewhere, and what lies in it.
const PURE: [&str; 12] = [
    "crate::core",
    "crate::facts",
    "crate::probe",
    "highball_config",
    "highball_link",
    "std::collections",
    "std::fmt",
    "std::mem",
    "std::path",
    "std::sync::Arc",
    "std::time::Duration",
    "std::time::Instant",
];
/// What comes with these, and is not pure.
const FORBIDDEN: [&str; 6] =
    ["Instant::now", ".elapsed()", ".exists()", ".is_dir()", ".canonicalize(", ".metadata("];
const PRIMITIVES: [&str; 9] = ["bool", "char", "f64", "i32", "str", "u16", "u32", "u64", "usize"];

#[test]
fn the_core_imports_what_is_pure_and_names_no_clock() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    let sources = sources(&folder);
    assert!(sources.len() > 30, "{sources:?}");
    let mut found = Vec::new();
    for file in &sources {
        let module = file.strip_prefix(&folder).unwrap().with_extension("");
        let depth = module.iter().filter(|name| *name != "mod").count();
        let code = code_of(file);
        let named = FORBIDDEN.iter().filter(|name| code.contains(*name)).map(|name| (*name).to_owned());
        let named = impure_paths(&code, depth).into_iter().chain(named);
        found.extend(named.map(|what| format!("{}: {what}", file.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_is_not_pure_is_found() {
    let above = "super::".repeat(3) + "elsewhere";
    let code = format!(
        "use std::{{fmt, fs::File}};\nuse crate::{{\n    core::event::Event,\n    elsewhere::*,\n}};\nmod part;\nuse {above};\n\
         fn f() -> fmt::Result {{ tokio::spawn(u16::from(part::X)); std::env::args() }}\n"
    );
    let impure = ["std::fs::File", "crate::elsewhere::*", &above, "tokio::spawn", "std::env::args"];
    assert_eq!(impure_paths(&code, 2), impure);
}

/// All sources of the core, without those for tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_tests = ["sim", "purity.rs", "samples.rs", "table.rs", "tests.rs"];
    let entries = entries.filter(|path| !of_tests.iter().any(|name| path.ends_with(name)));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// What a file has without its tests, comments, attributes and texts.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines: Vec<&str> = lines.filter(|line| !line.trim_start().starts_with("#[")).collect();
    lines.join("\n").split('"').step_by(2).collect()
}

/// The paths that a file, which lies this deep in the core, may not name: in imports, or where they are used.
fn impure_paths(code: &str, depth: usize) -> Vec<String> {
    let (mut imports, mut modules, mut rest) = (Vec::new(), Vec::new(), String::new());
    for item in code.split_inclusive(';') {
        let item = item.trim_start();
        let words = item.trim_start_matches("pub(crate) ").trim_end_matches(';');
        match words.split_once(' ') {
            Some(("use", import)) => {
                imports.extend(expanded(&import.split_whitespace().collect::<String>()));
            }
            Some(("mod", module)) => modules.push(module.to_owned()),
            _ => rest.push_str(item),
        }
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let named = rest.split(|letter| !is_part(letter)).map(|path| path.trim_end_matches("::"));
    let named = named.filter(|path| path.contains("::"));
    let named = named.filter(|path| path.starts_with(|letter: char| letter.is_ascii_lowercase()));
    let is_known = |root: &str| {
        let imported = imports.iter().any(|import| import.rsplit("::").next() == Some(root));
        imported || PRIMITIVES.contains(&root) || modules.iter().any(|module| module == root)
    };
    let named = named.filter(|path| !path.split("::").next().is_some_and(is_known)).map(String::from);
    imports.iter().cloned().chain(named).filter(|path| !is_pure(path, depth, &modules)).collect()
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expanded(import: &str) -> Vec<String> {
    let Some((prefix, group)) = import.split_once('{') else { return vec![import.into()] };
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in group.strip_suffix('}').unwrap_or(group).chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(letter),
        }
    }
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.flat_map(|part| expanded(part)).map(|part| format!("{prefix}{part}")).collect()
}

/// Whether a file that lies this deep in the core, and has these modules, may name this.
fn is_pure(path: &str, depth: usize, modules: &[String]) -> bool {
    let is_within = |pure: &&str| path == *pure || path.starts_with(&format!("{pure}::"));
    let root = path.split("::").next().unwrap_or_default();
    let is_within_core = path.split("::").take_while(|part| *part == "super").count() <= depth;
    (root == "super" && is_within_core)
        || PURE.iter().any(is_within)
        || modules.iter().any(|module| module == root)
}
