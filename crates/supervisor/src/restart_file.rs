//! `tmp/restart.txt`: touching it asks for a restart. `rails restart` does that, and so do tools made for Passenger.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The file, and what was seen of it last.
#[derive(Debug)]
pub(crate) struct RestartFile {
    path: PathBuf,
    touched: Option<SystemTime>,
    /// When it is looked at next.
    pub(crate) due: Instant,
}

impl RestartFile {
    /// The file of the application in this folder. A link to the folder is followed at each look, so that a release
    /// which takes the place of another is noticed. The first look only takes note.
    pub(crate) fn of(app: &Path, now: Instant) -> RestartFile {
        let path = app.join("tmp/restart.txt");
        RestartFile { touched: touched(&path), path, due: now + LOOK_EVERY }
    }

    /// Looks, if it is time to: whether it was touched, or has appeared, since it was last looked at.
    pub(crate) fn is_touched(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + LOOK_EVERY;
        let before = std::mem::replace(&mut self.touched, touched(&self.path));
        self.touched.is_some() && self.touched != before
    }
}

/// When it was; `None` where there is no such file, or nobody may look.
fn touched(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|about| about.modified()).ok()
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
            file.is_touched(now)
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
        assert!(!RestartFile::of(app.path(), now).is_touched(now + LOOK_EVERY));
    }
}
