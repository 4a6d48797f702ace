//! Files that another process opens, which may take as long as its user likes: they are looked for on another thread, and
//! answered from memory.
//!
//! Requests for what is known are answered from that; where it is not new any more, it is found out again meanwhile. Others
//! wait, but not for long. Where no answer comes in time there is no file, and the application is asked.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::spawn_local;

use super::finder::Finder;
use super::folder::Names;
use super::found_file::FoundFile;
use super::safe_path::SafePath;
use super::Pending;
use crate::aside::{patiently, Memory, Recalled, Turn};
use crate::clock::now_ms;

/// Most files that are kept (large ones open, and each with up to two compressed siblings), and paths that mean none.
pub(super) const KEPT_FILES: usize = 256;

/// The files of one application.
#[derive(Debug)]
pub(super) struct ByOpener {
    /// Held by the one thread whose turn it is.
    finder: Arc<Mutex<Finder>>,
    turn: Turn,
    /// What is in the public folder.
    names: Memory<(), Names>,
    /// What a path means that could be that of a file.
    pub(super) files: Memory<Box<[u8]>, Option<Rc<FoundFile>>>,
    /// Paths that begin so may be those of files whatever is in the folder.
    pipeline_prefix: Option<Box<[u8]>>,
}

/// What a thread has found out.
struct Found {
    names: Names,
    file: Option<FoundFile>,
}

impl ByOpener {
    pub(super) fn new(finder: Finder, turn: Turn) -> Rc<Self> {
        Rc::new(ByOpener {
            pipeline_prefix: finder.pipeline_prefix().map(Into::into),
            finder: Arc::new(Mutex::new(finder)),
            turn,
            names: Memory::of(1),
            files: Memory::of(KEPT_FILES),
        })
    }

    pub(super) fn find(
        self: &Rc<Self>,
        path: &SafePath<'_>,
        now_ms: u64,
    ) -> Result<Option<Rc<FoundFile>>, Pending> {
        let look = |path| Rc::clone(self).look(path);
        match self.files.recall(path.as_bytes(), now_ms) {
            Recalled::Fresh(file) => return Ok(file),
            Recalled::Aging(file) => {
                spawn_local(look(Some(path.detached())));
                return Ok(file);
            }
            Recalled::Nothing => {}
        }
        let names = match self.names.recall(&(), now_ms) {
            Recalled::Fresh(names) => Some(names),
            Recalled::Aging(names) => {
                spawn_local(look(None));
                Some(names)
            }
            Recalled::Nothing => None,
        };
        if names.is_some_and(|names| !self.may_mean_file(path, &names)) {
            return Ok(None);
        }
        Err(Pending::new(patiently(look(Some(path.detached())))))
    }

    pub(super) fn forget_old(&self, now_ms: u64) {
        self.files.forget_old(now_ms);
    }

    fn may_mean_file(&self, path: &SafePath<'_>, names: &Names) -> bool {
        let is_in_pipeline = |prefix: &[u8]| path.as_bytes().starts_with(prefix);
        names.may_hold(path.first_component()) || self.pipeline_prefix.as_deref().is_some_and(is_in_pipeline)
    }

    /// Has what is in the folder, and what this path means, found out in its turn.
    async fn look(self: Rc<Self>, path: Option<SafePath<'static>>) {
        let Some(held) = self.turn.come_soon().await else { return self.give_up(path) };
        if self.knows(path.as_ref()) {
            return; // it was found out for another request
        }
        let (finder, wanted) = (Arc::clone(&self.finder), path.clone());
        let found = held.spend(move || {
            let mut finder = finder.lock().unwrap_or_else(PoisonError::into_inner);
            let names = finder.folder.names_by_now(now_ms());
            let file = wanted.and_then(|path| finder.find_by_reading(&path, now_ms()));
            Found { names, file }
        });
        match found.await {
            Some((found, _held)) => self.learn(path, found),
            None => self.give_up(path),
        }
    }

    fn knows(&self, path: Option<&SafePath<'_>>) -> bool {
        let now_ms = now_ms();
        let names_are_fresh = self.names.is_fresh(&(), now_ms) == Some(true);
        let Some(path) = path else { return names_are_fresh };
        let is_no_file = || match self.names.recall(&(), now_ms) {
            Recalled::Fresh(names) => !self.may_mean_file(path, &names),
            _ => false,
        };
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

    /// No answer has come in time: for a while, there is no file.
    fn give_up(&self, path: Option<SafePath<'_>>) {
        let now_ms = now_ms();
        if let Some(path) = path {
            self.files.learn(path.as_bytes().into(), None, now_ms);
        }
        if self.names.is_fresh(&(), now_ms) != Some(true) {
            self.names.learn((), Names::None, now_ms);
        }
    }
}
