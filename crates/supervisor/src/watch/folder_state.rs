//! Looks whether anything in an application's folder has changed: names, sizes and times of its files.

use crate::facts::folder_state::FolderState;
use crate::watch::folder_walk::{sum, Judgement};
use highball_tenant::{About, Kind, TenantFolder};
use highball_users::User;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// Folders that change without a developer, or are too large to be looked at.
const LEFT_OUT: [&str; 8] = [".git", ".bundle", "node_modules", "tmp", "log", "storage", "coverage", "cache"];

impl FolderState {
    /// Looks at the folder and all below it with the rights of this user. What cannot be read counts as not there.
    pub(crate) fn of(folder: &Path, user: Option<&User>) -> FolderState {
        let Ok(folder) = TenantFolder::open(folder, user) else { return FolderState(0) };
        let release = folder.real_path().ok(); // another one is another state
        FolderState(sum(&folder, judge, |path, about| {
            let mut hasher = DefaultHasher::new();
            let bytes = if about.kind == Kind::Folder { 0 } else { about.bytes };
            (&release, path, about.kind, about.mode, bytes, about.modified).hash(&mut hasher);
            hasher.finish()
        }))
    }
}

fn judge(name: &OsStr, _about: &About) -> Judgement {
    if LEFT_OUT.iter().any(|left_out| name == *left_out) {
        Judgement::LeftOut
    } else {
        Judgement::Counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_change_shows_wherever_it_is_but_not_in_what_changes_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let state = || FolderState::of(folder.path(), None);
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
