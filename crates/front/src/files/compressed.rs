//! Files that have no compressed sibling: each is compressed once, and kept while it is requested and does not change.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

use highball_tenant::About;

use super::folder::SETTLED;
use super::found_file::{Content, Representation};
use super::FRESH_MS;
use crate::aside::file_reads::ServedFile;
use crate::aside::{patiently, PoolShare};
use crate::budget::{Holder, Permit};
use crate::clock::now_ms;
use crate::compression::accept_encoding::Coding;
use crate::compression::encoder::{Encoder, Shape, Then};
use crate::compression::room::AppRoom;
use crate::pending::Pending;

/// Most files that are remembered; beyond that, the file is forgotten that was not requested for longest.
const MOST_FILES: usize = 512;

/// What was not requested for this time is forgotten, in milliseconds.
const KEPT_MS: u64 = 10 * 60 * 1000;

/// The compressed files of one application.
#[derive(Debug)]
pub(super) struct CompressedFiles {
    room: AppRoom,
    /// The threads that read files: a file system that does not answer takes no thread that compresses.
    reads: PoolShare,
    known: RefCell<HashMap<Key, Entry>>,
}

/// A file, for as long as it does not change, in a coding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    file: About,
    coding: Coding,
}

#[derive(Debug)]
struct Entry {
    state: State,
    used_ms: u64,
    /// Until when this is believed.
    until_ms: u64,
}

#[derive(Debug)]
enum State {
    /// A thread is at it.
    Working,
    Kept {
        bytes: Rc<[u8]>,
        _permit: Permit,
    },
    /// It becomes no shorter, or cannot be read.
    Useless,
}

/// What is known of a file in a coding.
pub(super) enum Compressed {
    /// This is it.
    Kept(Rc<[u8]>),
    /// It is sent as it is, at the moment or for good.
    Not,
    /// It is worth to wait for it.
    Pending(Pending),
}

/// The content of a file, for another thread.
enum Source {
    Bytes(Box<[u8]>),
    File(Arc<ServedFile>, u64),
}

impl CompressedFiles {
    pub(super) fn new(room: AppRoom) -> Rc<Self> {
        Rc::new(CompressedFiles { room, reads: PoolShare::of_reads(), known: RefCell::default() })
    }

    /// Whether it is known that this file is sent as it is.
    pub(super) fn is_useless(&self, file: &Representation, coding: Coding) -> bool {
        let key = Key { file: file.about, coding };
        matches!(self.known.borrow().get(&key), Some(Entry { state: State::Useless, .. }))
    }

    /// The file in this coding.
    pub(super) fn find(
        self: &Rc<Self>,
        file: &Representation,
        coding: Coding,
        now_ms: u64,
        may_wait: bool,
    ) -> Compressed {
        let key = Key { file: file.about, coding };
        if let Some(entry) = self.known.borrow_mut().get_mut(&key).filter(|entry| now_ms < entry.until_ms) {
            entry.used_ms = now_ms;
            return match &entry.state {
                State::Kept { bytes, .. } => Compressed::Kept(Rc::clone(bytes)),
                State::Working | State::Useless => Compressed::Not,
            };
        }
        let Some(permit) = self.memory(coding, file.length) else { return Compressed::Not };
        self.put(key.clone(), State::Working, now_ms);
        let source = match &file.content {
            Content::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Content::File(served) => Source::File(Arc::clone(served), file.length),
        };
        let work = Rc::clone(self).compress(key, source, permit);
        if may_wait {
            let wait = async {
                patiently(work).await;
            };
            return Compressed::Pending(Pending::new(wait));
        }
        drop(tokio::task::spawn_local(work));
        Compressed::Not
    }

    /// Memory for compressing a file of this length, if need be taken from others.
    fn memory(&self, coding: Coding, length: u64) -> Option<Permit> {
        let bytes = Encoder::most_bytes(coding, Shape::Kept) + 2 * length;
        loop {
            if self.room.has(bytes) {
                return self.room.permit(bytes, Holder::default());
            }
            let mut known = self.known.borrow_mut();
            let kept = known.iter().filter(|(_, entry)| matches!(entry.state, State::Kept { .. }));
            let oldest = kept.min_by_key(|(_, entry)| entry.used_ms).map(|(key, _)| key.clone())?;
            known.remove(&oldest);
        }
    }

    async fn compress(self: Rc<Self>, key: Key, source: Source, permit: Permit) {
        let state = match self.made(&key, source).await {
            Some(bytes) => {
                permit.set(bytes.len() as u64);
                State::Kept { bytes: bytes.into(), _permit: permit }
            }
            None => State::Useless,
        };
        self.put(key, state, now_ms());
    }

    /// The content in this coding; `None`: it becomes no shorter, or the file has changed.
    async fn made(&self, key: &Key, source: Source) -> Option<Vec<u8>> {
        let (coding, about) = (key.coding, key.file);
        let (plain, held) = self.reads.take().await.spend(move || source.read(&about)).await?;
        drop(held);
        let plain = plain?;
        let made = self.room.clone().work(move || {
            let mut made = Vec::new();
            Encoder::new(coding, Shape::Kept).write(&plain, Then::End, &mut made).ok()?;
            made.shrink_to_fit();
            Some(made).filter(|made| made.len() < plain.len())
        });
        made.await.flatten()
    }

    fn put(&self, key: Key, state: State, now_ms: u64) {
        let is_settled = key.file.changed_at().elapsed().is_ok_and(|age| age >= SETTLED);
        let is_sure = is_settled || matches!(state, State::Working);
        let until_ms = if is_sure { u64::MAX } else { now_ms + FRESH_MS };
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_FILES && !known.contains_key(&key) {
            let oldest = known.iter().min_by_key(|(_, entry)| entry.used_ms).map(|(key, _)| key.clone());
            oldest.inspect(|oldest| drop(known.remove(oldest)));
        }
        known.insert(key, Entry { state, used_ms: now_ms, until_ms });
    }

    /// Forgets what is not requested any more.
    pub(super) fn forget_old(&self, now_ms: u64) {
        let is_used = |entry: &Entry| now_ms.min(entry.until_ms).saturating_sub(entry.used_ms) < KEPT_MS;
        self.known.borrow_mut().retain(|_, entry| is_used(entry) && now_ms < entry.until_ms);
    }
}

impl Source {
    /// The content, if the file has not changed.
    fn read(self, about: &About) -> Option<Box<[u8]>> {
        let (file, length) = match self {
            Source::Bytes(bytes) => return Some(bytes),
            Source::File(file, length) => (file, length),
        };
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let is_same = highball_tenant::about(&**file).is_ok_and(|now| now == *about);
        is_same.then(|| bytes.into())
    }
}
