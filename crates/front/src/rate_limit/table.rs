//! Moments of clients by key, in bounded memory.
//!
//! Each entry has 16 bytes. The table consists of parts that grow and shrink one by one, so that none of this takes the event
//! loop for long. Once a part has its largest size, a new entry replaces the nearby entry whose moment comes first: the
//! client closest to having no limit. So a full table forgets clients, and refuses no more than it would otherwise.

/// Number of parts; the first byte of a key chooses one.
const PARTS: usize = 256;

/// Largest number of places in a part: two million in all, and 32 MiB.
const MOST_PLACES: usize = 1 << 13;

/// Number of places in a row that an entry may have.
const WINDOW: usize = 16;

/// The moments.
#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Part]>,
    /// Next part in which to look for moments that have passed.
    next: usize,
}

/// Places; their number is a power of two, or 0.
#[derive(Debug, Default, Clone)]
struct Part(Box<[Place]>);

/// A place; its key is 0 if it was never used.
#[derive(Debug, Default, Clone, Copy)]
struct Place {
    key: u64,
    moment_us: u64,
}

impl Default for Table {
    fn default() -> Table {
        Table { parts: vec![Part::default(); PARTS].into(), next: 0 }
    }
}

impl Table {
    /// Returns the moment of this key; 0 if there is none.
    pub(super) fn get(&self, key: u64) -> u64 {
        let (part, key) = split(key);
        self.parts[part].get(key)
    }

    /// Sets the moment of this key.
    pub(super) fn set(&mut self, key: u64, moment_us: u64, now_us: u64) {
        let (part, key) = split(key);
        self.parts[part].set(Place { key, moment_us }, now_us);
    }

    /// Frees the memory of passed moments, in one part.
    pub(super) fn tick(&mut self, now_us: u64) {
        self.parts[self.next].shrink(now_us);
        self.next = (self.next + 1) % PARTS;
    }

    /// Returns the memory of the entries.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| size_of_val(&*part.0)).sum()
    }
}

/// Returns the part of a key, and the key within it, which is never 0.
fn split(key: u64) -> (usize, u64) {
    ((key >> 56) as usize, key | 1)
}

impl Part {
    /// Returns the places that an entry may have.
    fn window(&self, key: u64) -> impl Iterator<Item = usize> {
        let places = self.0.len();
        (0..WINDOW.min(places)).map(move |step| ((key >> 1) as usize + step) & (places - 1))
    }

    fn get(&self, key: u64) -> u64 {
        for at in self.window(key) {
            match self.0[at] {
                place if place.key == key => return place.moment_us,
                Place { key: 0, .. } => return 0,
                _ => {}
            }
        }
        0
    }

    fn set(&mut self, entry: Place, now_us: u64) {
        while !self.put(entry, now_us) && self.0.len() < MOST_PLACES {
            self.resize((self.0.len() * 2).max(WINDOW), now_us);
        }
    }

    /// Stores an entry in its own place or in a free one. Returns false if there is none; then, if the part cannot grow, the
    /// entry replaces another.
    fn put(&mut self, entry: Place, now_us: u64) -> bool {
        let (mut free, mut first) = (None, None::<usize>);
        for at in self.window(entry.key) {
            let place = self.0[at];
            if place.key == entry.key {
                self.0[at] = entry;
                return true;
            }
            if place.moment_us <= now_us {
                free = free.or(Some(at));
            }
            if place.key == 0 {
                break;
            }
            if first.is_none_or(|first| place.moment_us < self.0[first].moment_us) {
                first = Some(at);
            }
        }
        let can_grow = self.0.len() < MOST_PLACES;
        let at = free.or(first.filter(|_| !can_grow));
        at.into_iter().for_each(|at| self.0[at] = entry);
        at.is_some()
    }

    fn resize(&mut self, places: usize, now_us: u64) {
        let before = std::mem::replace(&mut self.0, vec![Place::default(); places].into());
        for entry in before.iter().filter(|place| place.moment_us > now_us) {
            self.put(*entry, now_us);
        }
    }

    fn shrink(&mut self, now_us: u64) {
        let live = self.0.iter().filter(|place| place.moment_us > now_us).count();
        if live == 0 {
            self.0 = Box::default();
        } else if live * 8 <= self.0.len() && self.0.len() > WINDOW {
            self.resize((live * 4).next_power_of_two().max(WINDOW), now_us);
        }
    }
}
