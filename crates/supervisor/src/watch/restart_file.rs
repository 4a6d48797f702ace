//! `tmp/restart.txt`: touching it asks for a restart. `rails restart` does that, and so do tools made for Passenger.
//! While there is `tmp/always_restart.txt`, every change of the application's files asks for one.

use crate::core::restart::Asked;
use crate::watch::source_files::fingerprint;
use highball_tenant::{Links, TenantFolder};
use highball_users::User;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// No more than one part of this many of the time goes into walks through the application's files, however many there
/// are: in development people wait for it, in production nothing does.
const WALK_SHARE_IN_DEVELOPMENT: u32 = 20;
const WALK_SHARE: u32 = 100;

/// Both files, and what was seen last.
#[derive(Debug)]
pub(crate) struct RestartFiles {
    app: Arc<Watched>,
    seen: Option<Seen>,
    /// When both are looked at next; `None`: they are being looked at.
    due: Option<Instant>,
    /// When the application's files are walked through next.
    walk_due: Instant,
}

/// The application whose files they are.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Its folder, or a link to it.
    pub(crate) path: PathBuf,
    /// Whose rights files are looked up with, if not Highball's own.
    pub(crate) user: Option<User>,
    /// Whether people work on it.
    pub(crate) in_development: bool,
}

/// What a look has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// When restart.txt was touched; `None` where there is no such file, or the application's user cannot find it.
    touched: Option<(i64, i64)>,
    /// The application's files, where each change of them is to restart it.
    sources: Option<u64>,
}

/// One look, which may take a while, and its result.
#[derive(Debug)]
pub(crate) struct Look {
    app: Arc<Watched>,
    /// Whether it is time to walk through the application's files.
    walks: bool,
    /// What the look before has seen; and then, what this one has.
    seen: Option<Seen>,
    /// How long the walk took.
    walked: Option<Duration>,
}

impl RestartFiles {
    /// The files of this application. A link to its folder is followed at each look, so that a release which takes the
    /// place of another is noticed. The first look only takes note.
    pub(crate) fn of(app: Watched, now: Instant) -> RestartFiles {
        RestartFiles { app: Arc::new(app), seen: None, due: Some(now), walk_due: now }
    }

    /// When the next look is due, unless one is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The look that is due by now. Its result goes to [`RestartFiles::asks`].
    pub(crate) fn look(&mut self, now: Instant) -> Option<Look> {
        self.due.take_if(|due| now >= *due)?;
        Some(Look { app: Arc::clone(&self.app), walks: now >= self.walk_due, seen: self.seen, walked: None })
    }

    /// What was seen does not count any more: the application sleeps, and its next boot loads what there is then.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// A look has come to nothing.
    pub(crate) fn not_seen(&mut self, now: Instant) {
        self.due = Some(now + LOOK_EVERY);
    }

    /// Whether a look has seen something that asks for a restart and did not before. Of what is seen for the first time
    /// it is not known whether it was there when the application was loaded.
    pub(crate) fn asks(&mut self, look: Look, now: Instant) -> Option<Asked> {
        if !Arc::ptr_eq(&look.app, &self.app) {
            return None; // it is about an earlier configuration
        }
        self.due = Some(now + LOOK_EVERY);
        if let Some(walked) = look.walked {
            let share = if self.app.in_development { WALK_SHARE_IN_DEVELOPMENT } else { WALK_SHARE };
            self.walk_due = now + walked * share;
        }
        let seen = look.seen?;
        let before = self.seen.replace(seen)?;
        if seen.touched.is_some() && seen.touched != before.touched {
            return Some(Asked::File);
        }
        (seen.sources.is_some() && seen.sources != before.sources).then_some(Asked::Change)
    }
}

impl Look {
    /// Looks at the files, which may block.
    pub(crate) fn done(mut self) -> Look {
        let seen = |touched, sources| Some(Seen { touched, sources });
        let Ok(folder) = TenantFolder::open(&self.app.path, self.app.user.as_ref()) else {
            self.seen = seen(None, None);
            return self;
        };
        let about = |name| folder.look(name, Links::Anywhere).ok();
        let touched = about("tmp/restart.txt").map(|about| about.modified);
        let is_watched = about("tmp/always_restart.txt").is_some();
        let sources = match (is_watched, self.walks) {
            (false, _) => None,
            (true, false) => self.seen.and_then(|before| before.sources),
            (true, true) => {
                let began = Instant::now();
                let sources = fingerprint(&folder);
                self.walked = Some(began.elapsed());
                Some(sources)
            }
        };
        self.seen = seen(touched, sources);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::SystemTime;

    /// A watch that looks whenever it is asked, and has looked once.
    struct Watch {
        files: RestartFiles,
        now: Instant,
    }

    impl Watch {
        fn of(app: &Path) -> Watch {
            let now = Instant::now();
            let app = Watched { path: app.into(), user: None, in_development: true };
            let mut watch = Watch { files: RestartFiles::of(app, now), now };
            assert_eq!(watch.asks(), None);
            watch
        }

        fn asks(&mut self) -> Option<Asked> {
            self.now += LOOK_EVERY;
            let look = self.files.look(self.now).expect("a look is due");
            assert!(self.files.look(self.now).is_none() && self.files.due().is_none(), "one at a time");
            self.files.asks(look.done(), self.now)
        }
    }

    #[test]
    fn it_counts_when_it_appears_and_when_it_is_touched_and_only_once() {
        let app = tempfile::tempdir().unwrap();
        let mut watch = Watch::of(app.path());
        let mut look = || watch.asks() == Some(Asked::File);
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
        assert_eq!(Watch::of(app.path()).asks(), None);
    }

    #[test]
    fn one_that_was_touched_while_the_application_slept_does_not_count() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        let path = app.path().join("tmp/restart.txt");
        let mut watch = Watch::of(app.path());
        watch.files.forget();
        let touched = File::create(&path).unwrap();
        assert_eq!(watch.asks(), None);
        touched.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(watch.asks(), Some(Asked::File));
    }

    #[test]
    fn changes_count_while_there_is_always_restart() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        let source = app.path().join("config.ru");
        fs::write(&source, "run App").unwrap();
        let mut watch = Watch::of(app.path());
        let mut look = || watch.asks() == Some(Asked::Change);
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

    #[test]
    fn walks_take_no_more_than_their_share_however_large_the_folder_is() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        File::create(app.path().join("tmp/always_restart.txt")).unwrap();
        for (in_development, share) in [(true, WALK_SHARE_IN_DEVELOPMENT), (false, WALK_SHARE)] {
            let now = Instant::now();
            let watched = Watched { path: app.path().into(), user: None, in_development };
            let mut files = RestartFiles::of(watched, now);
            let look = files.look(now).unwrap().done();
            let walked = Duration::from_secs(2);
            files.asks(Look { walked: Some(walked), ..look }, now);
            let later = now + walked * share;
            let early = files.look(later - Duration::from_millis(1)).unwrap();
            assert!(!early.walks);
            assert_eq!(files.asks(early.done(), now), None, "what was not looked at has not changed");
            assert!(files.look(later).unwrap().walks);
        }
    }

    #[test]
    fn a_look_for_what_was_configured_before_does_not_count() {
        let app = tempfile::tempdir().unwrap();
        fs::create_dir(app.path().join("tmp")).unwrap();
        let mut before = Watch::of(app.path());
        let old = before.files.look(before.now + LOOK_EVERY).unwrap();
        let mut now = Watch::of(app.path());
        File::create(app.path().join("tmp/restart.txt")).unwrap();
        assert_eq!(now.files.asks(old.done(), now.now), None);
        assert_eq!(now.asks(), Some(Asked::File));
    }
}
