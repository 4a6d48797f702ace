//! What leaves Highball as JSON never fails because of a path: std writes only paths of UTF-8, and fails for others.

use std::fs;
use std::path::{Path, PathBuf};

/// All sources in Rust below this folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Fields of this text that hold paths, are written by serde, and not by one of our adaptors.
fn forgotten(text: &str) -> Vec<String> {
    let (mut found, mut is_written, mut before) = (Vec::new(), false, "");
    for line in text.lines() {
        if line.starts_with("#[derive(") {
            is_written = line.contains("Serialize") || line.contains("Deserialize");
        } else if line.starts_with('}') {
            is_written = false;
        }
        let is_adapted =
            |line: &str| line.contains("highball_text::exact") || line.contains("highball_text::shown");
        let is_comment = line.trim_start().starts_with("//");
        if is_written && !is_comment && line.contains("PathBuf") && !is_adapted(line) && !is_adapted(before) {
            found.push(line.trim().to_owned());
        }
        before = line;
    }
    found
}

#[test]
fn every_path_that_serde_writes_has_an_adaptor() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(crates, &mut files);
    assert!(files.len() > 200, "{crates:?}");
    let ours = files.iter().filter(|file| file.iter().any(|part| part == "src"));
    let found: Vec<String> = ours
        .flat_map(|file| {
            let forgotten = forgotten(&fs::read_to_string(file).unwrap());
            forgotten.into_iter().map(|field| format!("{}: {field}", file.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        found.is_empty(),
        "#[serde(with = \"highball_text::exact\")] (between processes of Highball) or \"highball_text::shown\" (for people and \
         programs) is missing before:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_forgotten_one_is_found() {
    let text = "#[derive(Debug, Serialize)]\nstruct A {\n    #[serde(with = \"highball_text::shown\")]\n    a: PathBuf,\n    b: Vec<PathBuf>,\n}\n\
                struct B {\n    c: PathBuf,\n}\n";
    assert_eq!(forgotten(text), ["b: Vec<PathBuf>,"]);
}
