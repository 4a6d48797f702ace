//! Whether anything in an application's folder has changed: names, sizes and times of its files, in one number.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Most files that are looked at; an application with more has changed when one of these has.
const FILES: usize = 20_000;
/// Folders that change by themselves, or are too large to be looked at.
const LEFT_OUT: [&str; 8] = [".git", ".bundle", "node_modules", "tmp", "log", "storage", "coverage", "cache"];

/// What a folder holds, as far as a change of it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderState(u64);

impl FolderState {
    /// Looks at the folder and all below it. What cannot be read counts as not there.
    pub(crate) fn of(folder: &Path) -> FolderState {
        let mut sum = 0u64;
        let mut left = FILES;
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                if left == 0 || LEFT_OUT.iter().any(|left_out| name == *left_out) {
                    continue;
                }
                left -= 1;
                let Ok(about) = entry.metadata() else { continue };
                if about.is_dir() {
                    folders.push(entry.path());
                }
                let mut hasher = DefaultHasher::new();
                let size = if about.is_dir() { 0 } else { about.size() };
                (entry.path(), about.mode(), size, about.mtime(), about.mtime_nsec()).hash(&mut hasher);
                sum = sum.wrapping_add(hasher.finish()); // in any order
            }
        }
        FolderState(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_change_shows_wherever_it_is_but_not_in_what_changes_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let state = || FolderState::of(folder.path());
        fs::create_dir_all(folder.path().join("app/models")).unwrap();
        fs::create_dir(folder.path().join("log")).unwrap();
        let before = state();
        assert_eq!(before, state());
        fs::write(folder.path().join("log/x.log"), "x").unwrap();
        assert_eq!(before, state());
        fs::write(folder.path().join("app/models/post.rb"), "x").unwrap();
        let with_file = state();
        assert_ne!(before, with_file);
        fs::write(folder.path().join("app/models/post.rb"), "longer").unwrap();
        assert_ne!(with_file, state());
    }
}
