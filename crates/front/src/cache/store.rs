//! The stored answers of an application: found by their keys, and forgotten in the order in which they were last used. Each
//! operation takes the same time, however many there are.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use super::answer::StoredAnswer;

/// Most answers of one URI: with other fields, or other values of the fields that `Vary` names.
const MOST_OF_URI: usize = 64;

/// Most answers of an application, whatever their size.
const MOST: usize = 1 << 16;

/// No place.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Store {
    places: Vec<Option<Node>>,
    free: Vec<u32>,
    /// By the hash of a URI: its first answer.
    first: HashMap<u64, u32>,
    hasher: RandomState,
    /// The most and the least recently used answers.
    newest: u32,
    oldest: u32,
    count: usize,
    /// How often answers were used.
    uses: u64,
}

#[derive(Debug)]
struct Node {
    answer: Rc<StoredAnswer>,
    /// Which use was its last.
    used: u64,
    hash: u64,
    /// The next one whose URI has this hash.
    next: u32,
    newer: u32,
    older: u32,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            places: Vec::new(),
            free: Vec::new(),
            first: HashMap::new(),
            hasher: RandomState::new(),
            newest: NONE,
            oldest: NONE,
            count: 0,
            uses: 0,
        }
    }
}

impl Store {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn node(&self, place: u32) -> Option<&Node> {
        self.places.get(place as usize)?.as_ref()
    }

    fn node_mut(&mut self, place: u32) -> Option<&mut Node> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// The places of the answers of a URI.
    fn places_of(&self, base: &[u8]) -> (u64, Vec<u32>) {
        let hash = self.hasher.hash_one(base);
        let mut places = Vec::new();
        let mut place = self.first.get(&hash).copied().unwrap_or(NONE);
        while let Some(node) = self.node(place) {
            if node.answer.key.base() == base {
                places.push(place);
            }
            place = node.next;
        }
        (hash, places)
    }

    fn place_of(&self, base: &[u8], is_it: impl Fn(&StoredAnswer) -> bool) -> Option<u32> {
        let mut place = self.first.get(&self.hasher.hash_one(base)).copied()?;
        loop {
            let node = self.node(place)?;
            if node.answer.key.base() == base && is_it(&node.answer) {
                return Some(place);
            }
            place = node.next;
        }
    }

    /// An answer of a URI of which this is so.
    pub(super) fn peek(
        &self,
        base: &[u8],
        is_it: impl Fn(&StoredAnswer) -> bool,
    ) -> Option<&Rc<StoredAnswer>> {
        Some(&self.node(self.place_of(base, is_it)?)?.answer)
    }

    /// The same, which counts as used.
    pub(super) fn find(
        &mut self,
        base: &[u8],
        is_it: impl Fn(&StoredAnswer) -> bool,
    ) -> Option<Rc<StoredAnswer>> {
        let place = self.place_of(base, is_it)?;
        self.unlink_age(place);
        self.link_newest(place);
        Some(Rc::clone(&self.node(place)?.answer))
    }

    /// Stores an answer in the place of all of which this is so.
    pub(super) fn put(&mut self, answer: Rc<StoredAnswer>, replaces: impl Fn(&StoredAnswer) -> bool) {
        let (hash, places) = self.places_of(answer.key.base());
        let mut others = Vec::new();
        for place in places {
            match self.node(place) {
                Some(node) if replaces(&node.answer) => self.remove(place),
                Some(node) => others.push((node.used, place)),
                None => {}
            }
        }
        if others.len() >= MOST_OF_URI {
            others.iter().min().iter().for_each(|(_, place)| self.remove(*place));
        }
        if self.count >= MOST {
            self.remove(self.oldest);
        }
        let next = self.first.get(&hash).copied().unwrap_or(NONE);
        let node = Some(Node { answer, used: 0, hash, next, newer: NONE, older: NONE });
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = node;
                place
            }
            None => {
                self.places.push(node);
                self.places.len() as u32 - 1
            }
        };
        self.first.insert(hash, place);
        self.link_newest(place);
        self.count += 1;
    }

    /// Forgets the answers of a URI.
    pub(super) fn remove_all(&mut self, base: &[u8]) {
        let (_, places) = self.places_of(base);
        places.into_iter().for_each(|place| self.remove(place));
    }

    /// Forgets the answer that was not used for longest. `false`: there is none.
    pub(super) fn remove_oldest(&mut self) -> bool {
        let is_there = self.oldest != NONE;
        self.remove(self.oldest);
        is_there
    }

    /// Drops up to this number of answers, which are not found any more. `false`: there are no more.
    pub(super) fn drop_some(&mut self, most: usize) -> bool {
        let kept = self.places.len().saturating_sub(most);
        self.places.truncate(kept);
        kept > 0
    }

    fn remove(&mut self, place: u32) {
        self.unlink_age(place);
        let Some(node) = self.places.get_mut(place as usize).and_then(Option::take) else { return };
        let first = self.first.get(&node.hash).copied().unwrap_or(NONE);
        if first == place {
            match node.next {
                NONE => drop(self.first.remove(&node.hash)),
                next => drop(self.first.insert(node.hash, next)),
            }
        } else {
            let mut before = first;
            while let Some(other) = self.node_mut(before) {
                if other.next == place {
                    other.next = node.next;
                    break;
                }
                before = other.next;
            }
        }
        self.free.push(place);
        self.count -= 1;
    }

    fn unlink_age(&mut self, place: u32) {
        let Some(&Node { newer, older, .. }) = self.node(place) else { return };
        match self.node_mut(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.node_mut(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        match self.node_mut(before) {
            Some(node) => node.newer = place,
            None => self.oldest = place,
        }
        self.uses += 1;
        let used = self.uses;
        if let Some(node) = self.node_mut(place) {
            (node.newer, node.older, node.used) = (NONE, before, used);
        }
    }
}
