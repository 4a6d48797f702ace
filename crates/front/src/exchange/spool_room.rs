//! What room there is for spool files: in their folder, as it is now.
//!
//! Other programs fill the disk, and people make room again. So the limit is measured again while files are needed, at most
//! once a second, on a thread of the pool. Where the folder cannot be used at all (read only, removed, no inodes left), spool
//! files are in memory until it can. What is wrong is in the log, in `highball status` and in `highball doctor`, with the
//! option's name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use highball_text::mib;
use rustix::fs::{statfs, statvfs};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::budget::{Account, Budget, Kind};
use crate::clock::{now_ms, Seldom};
use crate::exchange::spool::SpoolFile;

/// Most bytes of spool files that are in memory as there is no folder for them: the server may have little of it.
const MEMORY_BYTES: u64 = 64 << 20;

/// With less room than this, there is a warning: uploads of a usual size may be refused.
const SMALL_BYTES: u64 = 64 << 20;

/// A file system in memory (statfs(2)).
const TMPFS: u64 = 0x0102_1994;

/// How old a measurement may be, in ms.
const FRESH_MS: u64 = 1000;

/// How long an upload waits for a measurement.
const PATIENCE: Duration = Duration::from_millis(250);

/// The log says at most this often that a body was refused, in ms.
const LOG_MS: u64 = 10_000;

/// How long `highball status` shows that a body could not be stored, in ms, unless another one could be.
const SHOWN_MS: u64 = 600_000;

/// What to do about it.
pub const SPOOL_REMEDY: &str = "make room in it, or name another folder with --spool-dir (option spool_dir)";

/// The folder of spool files, and what may be stored there.
#[derive(Debug)]
pub struct SpoolRoom {
    folder: PathBuf,
    /// The option `max_spool`.
    configured: Option<u64>,
    budget: Arc<Budget>,
    /// What is wrong with the folder, as measured last.
    problem: Mutex<Option<String>>,
    /// Why a body could not be stored, and when that was, if none was stored since.
    failure: Mutex<Option<(u64, String)>>,
    has_failed: AtomicBool,
    free_bytes: AtomicU64,
    refused: AtomicU64,
    measured: Seldom,
    is_measuring: AtomicBool,
    measuring_since_ms: AtomicU64,
    done: Notify,
    logged: Seldom,
}

/// What a look at the folder has shown.
struct Space {
    free_bytes: u64,
    /// The part of it that spool files may take, as a divisor.
    part: u64,
}

impl SpoolRoom {
    /// The room of this folder, with the configured limit, if any. Measures, and says in the log what is wrong.
    pub fn new(folder: &Path, configured: Option<u64>) -> Arc<SpoolRoom> {
        let room = SpoolRoom {
            folder: folder.to_owned(),
            configured,
            budget: Budget::new(configured.unwrap_or(u64::MAX), Kind::SpoolFiles),
            problem: Mutex::default(),
            failure: Mutex::default(),
            has_failed: false.into(),
            free_bytes: 0.into(),
            refused: 0.into(),
            measured: Seldom::default(),
            is_measuring: false.into(),
            measuring_since_ms: 0.into(),
            done: Notify::new(),
            logged: Seldom::default(),
        };
        room.measure();
        Arc::new(room)
    }

    /// What all spool files may hold.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What is wrong, for people; `None`: nothing is known to be.
    pub fn problem(&self) -> Option<String> {
        let failure = lock(&self.failure).clone();
        let failure = failure.filter(|(at_ms, _)| now_ms() < at_ms + SHOWN_MS).map(|(_, why)| why);
        let problem = lock(&self.problem).clone().or(failure)?;
        Some(match self.refused.load(Relaxed) {
            0 => problem,
            refused => format!("{problem}. Request bodies refused since the start: {refused}"),
        })
    }

    /// Measures on a thread of the pool, unless that was done a moment ago.
    pub(crate) fn look_later(self: &Arc<Self>) {
        if self.measured.is_due(FRESH_MS) && !self.is_measuring.swap(true, Relaxed) {
            self.measuring_since_ms.store(now_ms(), Relaxed);
            let room = Arc::clone(self);
            spawn_blocking(move || {
                room.measure();
                room.is_measuring.store(false, Relaxed);
                room.done.notify_waiters();
            });
        }
    }

    /// The same, and waits for it, but not for long: the file system may not answer.
    pub(crate) async fn look(self: &Arc<Self>) {
        let done = self.done.notified();
        self.look_later();
        let waited_ms = now_ms().saturating_sub(self.measuring_since_ms.load(Relaxed));
        if self.is_measuring.load(Relaxed) && waited_ms <= PATIENCE.as_millis() as u64 {
            let _ = timeout(PATIENCE, done).await; // the last measurement counts, then
        }
    }

    /// A body of this length (so far) was refused for this reason, as there is no room for it.
    pub(crate) fn note_refused(&self, account: &Account, length: u64, why: &str) {
        let refused = self.refused.fetch_add(1, Relaxed) + 1;
        if !self.logged.is_due(LOG_MS) {
            return;
        }
        tracing::warn!(
            name: "request_body_refused",
            folder = %self.folder.display(),
            body_bytes = length,
            free_bytes = self.free_bytes.load(Relaxed),
            limit = account.limit(),
            used_by_all = self.budget.used(),
            limit_for_all = self.budget.limit(),
            refused,
            remedy = SPOOL_REMEDY,
            "a request body was refused: {why} (options spool_dir, max_spool, app_max_spool)"
        );
    }

    /// A body could not be written there: this is to be seen in `highball status`, and the room is measured before the next.
    pub(crate) fn note_failure(&self, account: &Account, length: u64, error: &io::Error) {
        let why = format!("a file in the folder {} could not be written: {error}", self.folder.display());
        self.note_refused(account, length, &why);
        *lock(&self.failure) = Some((now_ms(), format!("spool_dir: {why}; {SPOOL_REMEDY}")));
        self.has_failed.store(true, Relaxed);
        self.measured.forget();
    }

    /// A body was stored: the problem is gone.
    pub(crate) fn note_stored(&self) {
        if self.has_failed.load(Relaxed) {
            self.has_failed.store(false, Relaxed);
            *lock(&self.failure) = None;
        }
    }

    /// Looks at the folder and sets the limit. May wait for the file system.
    fn measure(&self) {
        let now_wrong = match space(&self.folder) {
            Ok(space) => {
                let all = space.free_bytes.saturating_add(self.budget.used());
                let usual = all / space.part;
                self.free_bytes.store(space.free_bytes, Relaxed);
                let most = self.configured.unwrap_or(u64::MAX);
                self.budget.set_limit(self.configured.unwrap_or(usual), most, false);
                small(&self.folder, &space, self.configured, self.budget.used())
            }
            // That says nothing about the folder.
            Err(error) if is_out_of_files(&error) => return,
            Err(error) => {
                let limit = self.configured.unwrap_or(MEMORY_BYTES).min(MEMORY_BYTES);
                self.budget.set_limit(limit, limit, true);
                Some(unusable(&self.folder, &error, limit))
            }
        };
        let was_wrong = std::mem::replace(&mut *lock(&self.problem), now_wrong.clone());
        match (was_wrong, now_wrong) {
            (None, Some(problem)) => tracing::warn!(
                name: "spool_unusable", remedy = SPOOL_REMEDY, "{problem}"
            ),
            (Some(_), None) => tracing::info!(
                name: "spool_usable",
                folder = %self.folder.display(),
                limit = self.budget.limit(),
                "there is room for spool files again"
            ),
            _ => {}
        }
    }
}

/// What is wrong with this folder for spool files, with the limit that is configured, if any; `None`: nothing. May wait for the
/// file system.
pub fn spool_problem(folder: &Path, configured: Option<u64>) -> Option<String> {
    match space(folder) {
        Ok(space) => small(folder, &space, configured, 0),
        Err(error) => Some(unusable(folder, &error, configured.unwrap_or(MEMORY_BYTES).min(MEMORY_BYTES))),
    }
}

/// Half of what is free in this folder may be used, so that others find room there too; a quarter where it lies in memory,
/// which everything else needs as well.
fn space(folder: &Path) -> io::Result<Space> {
    SpoolFile::try_folder(folder)?;
    let space = statvfs(folder)?;
    let is_in_memory = statfs(folder).is_ok_and(|about| about.f_type as u64 == TMPFS);
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    Ok(Space { free_bytes, part: if is_in_memory { 4 } else { 2 } })
}

fn small(folder: &Path, space: &Space, configured: Option<u64>, used: u64) -> Option<String> {
    let all = space.free_bytes.saturating_add(used);
    let limit = configured.unwrap_or(all / space.part).min(all);
    let wanted = configured.unwrap_or(SMALL_BYTES).min(SMALL_BYTES);
    (limit < wanted).then(|| {
        format!(
            "spool_dir: {} has room for {} of request bodies and responses for slow clients ({} are free): larger request bodies \
             are refused",
            folder.display(),
            mib(limit),
            mib(space.free_bytes)
        )
    })
}

fn unusable(folder: &Path, error: &io::Error, limit: u64) -> String {
    format!(
        "spool_dir: no files can be created in the spool folder {} ({error}): large request bodies are kept in memory, at most {} \
         in all",
        folder.display(),
        mib(limit)
    )
}

fn is_out_of_files(error: &io::Error) -> bool {
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner) // it is whole at every moment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Holder, Share};

    fn account(room: &SpoolRoom) -> Account {
        Account::new(&Share::new(room.budget(), "app", None), Holder::default())
    }

    #[test]
    fn the_usual_limit_leaves_room_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let room = SpoolRoom::new(folder.path(), None);
        let limit = room.budget().limit();
        assert!(limit > 0 && limit <= space(folder.path()).unwrap().free_bytes);
        assert_eq!(account(&room).most(), u64::MAX, "there may be more room later");
        let configured = SpoolRoom::new(folder.path(), Some(20));
        assert_eq!((configured.budget().limit(), account(&configured).most()), (20, 20));
        assert_eq!(configured.problem(), None, "as it was asked for");
    }

    #[test]
    fn a_folder_that_comes_and_goes_is_used_while_it_is_there() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("spool");
        let room = SpoolRoom::new(&folder, None);
        assert_eq!((room.budget().limit(), account(&room).kind()), (64 << 20, Kind::SpoolFilesInMemory));
        assert!(room.problem().unwrap().starts_with("spool_dir: no files can be created in"));
        std::fs::create_dir(&folder).unwrap();
        room.measure();
        assert_eq!((room.problem(), account(&room).kind()), (None, Kind::SpoolFiles));
        std::fs::remove_dir(&folder).unwrap();
        room.measure();
        assert_eq!(account(&room).kind(), Kind::SpoolFilesInMemory);
        let large = SpoolRoom::new(&folder, Some(u64::MAX));
        assert_eq!(large.budget().limit(), 64 << 20, "memory is not what the limit was meant for");
    }

    #[test]
    fn little_room_is_a_problem_unless_no_more_is_wanted() {
        let space = |free_bytes| Space { free_bytes, part: 4 };
        let problem = |free, configured, used| small(Path::new("/x"), &space(free), configured, used);
        assert!(problem(8 << 20, None, 0).unwrap().contains("/x has room for 2.0 MiB"));
        assert_eq!(problem(256 << 20, None, 0), None);
        assert_eq!(problem(156 << 20, None, 100 << 20), None, "what is stored had room, too");
        assert_eq!(problem(8 << 20, Some(8 << 20), 0), None);
        assert!(problem(7 << 20, Some(8 << 20), 0).unwrap().contains("room for 7.0 MiB"));
    }

    #[test]
    fn a_failure_is_shown_until_a_body_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let room = SpoolRoom::new(folder.path(), Some(20));
        room.note_failure(&account(&room), 5, &io::Error::other("no quota"));
        let problem = room.problem().unwrap();
        assert!(problem.contains("no quota") && problem.contains("refused since the start: 1"), "{problem}");
        room.note_stored();
        assert_eq!(room.problem(), None);
    }
}
