//! `tmp/restart.txt`: touching it asks for a restart. `rails restart` does that, and so do tools made for Passenger.
//! While there is `tmp/always_restart.txt`, every change of the application's files asks for one.

use crate::restart::Asked;
use crate::source_files::fingerprint;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Both files, and what was seen last.
#[derive(Debug)]
pub(crate) struct RestartFile {
    app: PathBuf,
    touched: Option<SystemTime>,
    /// The application's files, where each change of them is to restart it.
    sources: Option<u64>,
    /// When all of them are looked at next.
    pub(crate) due: Instant,
}

impl RestartFile {
    /// The files of the application in this folder. A link to the folder is followed at each look, so that a release
    /// which takes the place of another is noticed. The first look only takes note.
    pub(crate) fn of(app: &Path, now: Instant) -> RestartFile {
        RestartFile {
            touched: touched(app),
            sources: watched_sources(app),
            app: app.into(),
            due: now + LOOK_EVERY,
        }
    }

    /// Looks, if it is time to: whether something asks for a restart that did not when it was last looked at. Of what is
    /// seen here for the first time nobody knows whether it was there when the application was loaded.
    pub(crate) fn asks(&mut self, now: Instant) -> Option<Asked> {
        if now < self.due {
            return None;
        }
        self.due = now + LOOK_EVERY;
        let (touched, sources) = (touched(&self.app), watched_sources(&self.app));
        let touched_before = std::mem::replace(&mut self.touched, touched);
        let sources_before = std::mem::replace(&mut self.sources, sources);
        if touched.is_some() && touched != touched_before {
            return Some(Asked::File);
        }
        (sources.is_some() && sources != sources_before).then_some(Asked::Change)
    }
}

/// When restart.txt was; `None` where there is no such file, or nobody may look.
fn touched(app: &Path) -> Option<SystemTime> {
    app.join("tmp/restart.txt").metadata().and_then(|about| about.modified()).ok()
}

/// What the application's files are like; `None` where there is no always_restart.txt.
fn watched_sources(app: &Path) -> Option<u64> {
    app.join("tmp/always_restart.txt").exists().then(|| fingerprint(app))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn it_counts_when_it_appears_and_when_it_is_touched_and_only_once() {
        let app = tempfile::tempdir().unwrap();
        let mut now = Instant::now();
        let mut file = RestartFile::of(app.path(), now);
        let mut look = || {
            now += LOOK_EVERY;
            file.asks(now) == Some(Asked::File)
        };
        assert!(!look());
        fs::create_dir(app.path().join("tmp")).unwrap();
        let path = app.path().join("tmp/restart.txt");
        let touched = File::create(&path).unwrap();
        assert!(look() && !look());
        // Also to an earlier time: clocks are set, and folders are copied.
        touched.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        assert!(look() && !look());
        fs::remove_file(&path).unwrap();
        assert!(!look());
        File::create(&path).unwrap();
        assert!(look());
    }

    #[test]
    fn one_that_was_there_before_does_not_count() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        File::create(app.path().join("tmp/restart.txt")).unwrap();
        let now = Instant::now();
        assert_eq!(RestartFile::of(app.path(), now).asks(now + LOOK_EVERY), None);
    }

    #[test]
    fn changes_count_while_there_is_always_restart() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        let source = app.path().join("config.ru");
        fs::write(&source, "run App").unwrap();
        let mut now = Instant::now();
        let mut file = RestartFile::of(app.path(), now);
        let mut look = || {
            now += LOOK_EVERY;
            file.asks(now) == Some(Asked::Change)
        };
        fs::write(&source, "run Other").unwrap();
        assert!(!look());
        // When it appears, something may have changed since the application was loaded.
        let always = app.path().join("tmp/always_restart.txt");
        File::create(&always).unwrap();
        assert!(look() && !look());
        fs::write(&source, "run Another").unwrap();
        assert!(look() && !look());
        fs::remove_file(&always).unwrap();
        fs::write(&source, "run Last").unwrap();
        assert!(!look());
    }
}
