//! Whether an application's files are as they were: what `tmp/always_restart.txt` asks for. It is for development,
//! where there are few files, and looking at all of them once a second is simpler than notifications of changes.

use crate::watch::folder_walk::{sum, Judgement};
use highball_tenant::{About, Kind, TenantFolder};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// Folders that hold what the application writes, or what others wrote.
const NOT_SOURCES: &[&str] = &["tmp", "log", "public", "storage", "node_modules", "vendor", "coverage"];
/// Files that the application is loaded from; others, such as its database, change without being a reason.
const SOURCES: &[&str] = &[
    "rb", "ru", "rake", "erb", "haml", "slim", "builder", "jbuilder", "yml", "yaml", "json", "toml", "lock",
];
const SOURCE_NAMES: &[&str] = &["Gemfile", ".env"];

/// A number that is another when a source file below this folder has come, gone, or was written to. Links below it are
/// not followed.
pub(crate) fn fingerprint(app: &TenantFolder) -> u64 {
    let release = app.real_path().ok(); // another one has other sources
    sum(app, judge, |path, about| {
        let mut hasher = DefaultHasher::new();
        (&release, path, about.id.1, about.bytes, about.modified).hash(&mut hasher);
        hasher.finish()
    })
}

fn judge(name: &OsStr, about: &About) -> Judgement {
    match about.kind {
        Kind::Folder if is_source_folder(name) => Judgement::Way,
        Kind::File if is_source(Path::new(name)) => Judgement::Counts,
        _ => Judgement::LeftOut,
    }
}

fn is_source_folder(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| !name.starts_with('.') && !NOT_SOURCES.contains(&name))
}

fn is_source(path: &Path) -> bool {
    let among = |names: &[&str], name: Option<&OsStr>| {
        name.and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name))
    };
    among(SOURCES, path.extension()) || among(SOURCE_NAMES, path.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fingerprint(app: &Path) -> u64 {
        super::fingerprint(&TenantFolder::open(app, None).unwrap())
    }

    #[test]
    fn sources_that_come_change_and_go_make_a_difference_and_nothing_else_does() {
        let app = tempfile::tempdir().unwrap();
        let mut before = fingerprint(app.path());
        let mut changed = || {
            let now = fingerprint(app.path());
            std::mem::replace(&mut before, now) != now
        };
        let write = |name: &str, text: &str| {
            let path = app.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("app/models/train.rb", "class Train; end");
        assert!(changed() && !changed());
        write("app/models/train.rb", "class Train; def go = 1; end");
        assert!(changed() && !changed());
        fs::rename(app.path().join("app/models"), app.path().join("app/others")).unwrap();
        assert!(changed() && !changed());
        fs::remove_dir_all(app.path().join("app/others")).unwrap();
        assert!(changed() && !changed());
        for name in ["tmp/cache.rb", "log/a.rb", ".git/x.rb", "db/development.sqlite3", "public/a.json"] {
            write(name, "");
            assert!(!changed(), "{name}");
        }
    }

    #[test]
    fn a_release_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("current");
        for release in ["1", "2"] {
            let path = folder.path().join(release);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("config.ru"), "run App").unwrap();
        }
        std::os::unix::fs::symlink("1", &link).unwrap();
        let before = fingerprint(&link);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("2", &link).unwrap();
        assert_ne!(fingerprint(&link), before);
    }
}
