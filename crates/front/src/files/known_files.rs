//! Files that were looked for on other threads, and are answered from memory.
//!
//! Requests for what is known are answered from that; shortly before it is too old, it is found out again meanwhile, so
//! that a file that is requested all the time never waits. Others wait, but not for long. Where no answer comes in time
//! there is no file, and the application is asked.

use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_local;

use super::finder::Finder;
use super::folder::{Names, LOOK_MS};
use super::found_file::FoundFile;
use super::safe_path::SafePath;
use super::FRESH_MS;
use crate::aside::{patiently, Ages, Memory, PoolShare, Recalled};
use crate::clock::now_ms;
use crate::pending::Pending;

/// Most files that are kept (large ones open, and each with up to three compressed siblings), and paths that mean none.
pub(super) const KEPT_FILES: usize = 128;

/// Files that this process opens: a question costs little, and a developer who has changed a file looks at it at once.
const SHORT: Ages = Ages { fresh_ms: FRESH_MS / 2, usable_ms: FRESH_MS - LOOK_MS };

/// The files of one application.
#[derive(Debug)]
pub(super) struct KnownFiles {
    finder: Arc<Finder>,
    pool: PoolShare,
    /// What is in the public folder.
    names: Memory<(), Names>,
    /// What a path means that could lead to a file.
    pub(super) files: Memory<Box<[u8]>, Option<Rc<FoundFile>>>,
    /// Paths that begin so may lead to files, whatever is in the folder.
    pipeline_prefix: Option<Box<[u8]>>,
}

/// What a thread has found out.
struct Found {
    names: Names,
    file: Option<FoundFile>,
}

impl KnownFiles {
    pub(super) fn new(finder: Finder, pool: PoolShare) -> Rc<Self> {
        let ages = if highball_tenant::is_by_opener(finder.user()) { Ages::LONG } else { SHORT };
        Rc::new(KnownFiles {
            pipeline_prefix: finder.pipeline_prefix().map(Into::into),
            finder: Arc::new(finder),
            pool,
            names: Memory::of(1, ages),
            files: Memory::of(KEPT_FILES, ages),
        })
    }

    pub(super) fn find(
        self: &Rc<Self>,
        path: &SafePath<'_>,
        now_ms: u64,
    ) -> Result<Option<Rc<FoundFile>>, Pending> {
        let look = |path| drop(spawn_local(Rc::clone(self).look(path)));
        let (names, names_age) = match self.names.recall(&(), now_ms) {
            Recalled::Fresh(names) => (Some(names), false),
            Recalled::Aging(names) => (Some(names), true),
            Recalled::Nothing => (None, false),
        };
        let is_no_file = names.is_some_and(|names| !self.may_mean_file(path, &names));
        let file =
            if is_no_file { Recalled::Fresh(None) } else { self.files.recall(path.as_bytes(), now_ms) };
        match file {
            Recalled::Fresh(file) => {
                if names_age {
                    look(None);
                }
                Ok(file)
            }
            Recalled::Aging(file) => {
                look(Some(path.detached()));
                Ok(file)
            }
            Recalled::Nothing => Err(Pending::new(Rc::clone(self).wait_for(path.detached()))),
        }
    }

    /// What is known of it, however old that is.
    pub(super) fn latest(&self, path: &SafePath<'_>) -> Option<Rc<FoundFile>> {
        self.files.latest(path.as_bytes()).flatten()
    }

    pub(super) fn forget_old(&self, now_ms: u64) {
        self.files.forget_old(now_ms);
    }

    fn may_mean_file(&self, path: &SafePath<'_>, names: &Names) -> bool {
        let is_in_pipeline = |prefix: &[u8]| path.as_bytes().starts_with(prefix);
        names.may_hold(path.first_component()) || self.pipeline_prefix.as_deref().is_some_and(is_in_pipeline)
    }

    /// Returns when it is known what this path means; or after a while. Then it counts as no file, and no further request
    /// waits, until the thread that is at it comes back.
    async fn wait_for(self: Rc<Self>, path: SafePath<'static>) {
        if !patiently(Rc::clone(&self).look(Some(path.clone()))).await {
            let now_ms = now_ms();
            self.files.put_off_until_learned(path.as_bytes().into(), None, now_ms);
            self.names.put_off_until_learned((), Names::None, now_ms);
        }
    }

    /// Has what is in the folder, and what this path means, found out on one of its threads.
    async fn look(self: Rc<Self>, path: Option<SafePath<'static>>) {
        let Some(held) = self.pool.take_soon().await else { return self.put_off(path) };
        if self.knows(path.as_ref()) {
            return; // it was found out for another request
        }
        let (finder, wanted) = (Arc::clone(&self.finder), path.clone());
        let found = held.spend(move || {
            let names = finder.names_by_now(now_ms());
            let file = wanted.and_then(|path| finder.find(&path, now_ms()));
            Found { names, file }
        });
        match found.await {
            Some((found, _held)) => self.learn(path, found),
            None => self.put_off(path),
        }
    }

    fn knows(&self, path: Option<&SafePath<'_>>) -> bool {
        let now_ms = now_ms();
        let names_are_fresh = self.names.is_fresh(&(), now_ms) == Some(true);
        let Some(path) = path else { return names_are_fresh };
        let is_no_file = || self.names.latest(&()).is_some_and(|names| !self.may_mean_file(path, &names));
        let of_path = self.files.is_fresh(path.as_bytes(), now_ms);
        of_path.unwrap_or_else(|| names_are_fresh && is_no_file())
    }

    fn learn(&self, path: Option<SafePath<'_>>, found: Found) {
        let now_ms = now_ms();
        if let Some(path) = path {
            if self.may_mean_file(&path, &found.names) {
                self.files.learn(path.as_bytes().into(), found.file.map(Rc::new), now_ms);
            } else {
                self.files.forget(path.as_bytes());
            }
        }
        self.names.learn((), found.names, now_ms);
    }

    /// No answer has come in time: for a while, what is known counts; where nothing is, there is no file.
    fn put_off(&self, path: Option<SafePath<'_>>) {
        let now_ms = now_ms();
        if let Some(path) = path {
            self.files.put_off(path.as_bytes().into(), None, now_ms);
        }
        self.names.put_off((), Names::None, now_ms);
    }
}
