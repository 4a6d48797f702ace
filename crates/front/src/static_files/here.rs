//! Files that this process opens itself, during the lookup.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::finder::Finder;
use super::found_file::FoundFile;
use super::reading::Unread;
use super::safe_path::SafePath;
use super::{Pending, FRESH_MS, KEPT_FILES};
use crate::aside::Turn;
use crate::clock::now_ms;

/// The files of one application.
#[derive(Debug)]
pub(super) struct Here {
    finder: Rc<RefCell<Finder>>,
    pub(super) kept: RefCell<HashMap<Box<[u8]>, Kept>>,
    turn: Turn,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct Kept {
    found: Rc<FoundFile>,
    /// Until when the file system need not be asked again, in milliseconds.
    until_ms: u64,
}

impl Here {
    pub(super) fn new(finder: Finder, turn: Turn) -> Self {
        Here { finder: Rc::new(RefCell::new(finder)), kept: RefCell::default(), turn }
    }

    pub(super) fn find(&self, path: &SafePath<'_>, now_ms: u64) -> Result<Option<Rc<FoundFile>>, Pending> {
        if let Some(kept) = self.kept.borrow().get(path.as_bytes()) {
            if now_ms < kept.until_ms {
                return Ok(Some(Rc::clone(&kept.found)));
            }
        }
        let found = self.finder.borrow_mut().find(path, now_ms);
        let found = found.map_err(|unread| read(unread, Rc::clone(&self.finder), self.turn.clone()))?;
        let Some(found) = found.map(Rc::new) else {
            self.kept.borrow_mut().remove(path.as_bytes());
            return Ok(None);
        };
        if self.kept.borrow().len() >= KEPT_FILES {
            self.close_idle(now_ms);
        }
        let mut kept = self.kept.borrow_mut();
        if kept.len() < KEPT_FILES {
            let found = Rc::clone(&found);
            kept.insert(path.as_bytes().into(), Kept { found, until_ms: now_ms + FRESH_MS });
        }
        Ok(Some(found))
    }

    pub(super) fn close_idle(&self, now_ms: u64) {
        self.kept.borrow_mut().retain(|_, kept| now_ms < kept.until_ms);
    }
}

/// Reads a large file on another thread. If that does not lead anywhere, because the file is being written for example, it is
/// still unread when it is looked up again.
fn read(unread: Unread, finder: Rc<RefCell<Finder>>, turn: Turn) -> Pending {
    Pending::new(async move {
        let held = turn.come().await;
        if finder.borrow().knows(&unread, now_ms()) {
            return; // it has been read for another request
        }
        if let Some((read, _held)) = held.spend(move || unread.read()).await {
            finder.borrow_mut().learn(read, now_ms());
        }
    })
}
