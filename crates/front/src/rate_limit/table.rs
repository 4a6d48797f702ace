//! Moments by key, in bounded memory.
//!
//! Each entry has 16 bytes. The table is cut into parts that grow and shrink one by one, so that none of it takes the event loop
//! for long. Once a part has its largest size, a new entry takes the place of the one near it whose moment comes first: of the
//! client that owes the least. So a full table forgets, and refuses nothing that it would not refuse otherwise.

/// Parts; the first byte of a key chooses one.
const PARTS: usize = 256;

/// Most places of a part: two million in all, and 32 MiB.
const MOST_PLACES: usize = 1 << 13;

/// Places that an entry may have, one after the other.
const WINDOW: usize = 16;

/// The moments.
#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Part]>,
    /// The part that is looked at next, for moments that have passed.
    next: usize,
}

/// A power of two of places, or none.
#[derive(Debug, Default, Clone)]
struct Part(Box<[Place]>);

/// A place; its key is 0 if nothing was ever there.
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
    /// The moment of this key; 0: there is none.
    pub(super) fn get(&self, key: u64) -> u64 {
        let (part, key) = split(key);
        self.parts[part].get(key)
    }

    /// Its moment is this one from now on.
    pub(super) fn set(&mut self, key: u64, moment_us: u64, now_us: u64) {
        let (part, key) = split(key);
        self.parts[part].set(Place { key, moment_us }, now_us);
    }

    /// Frees memory that moments took which have passed, in one part.
    pub(super) fn tick(&mut self, now_us: u64) {
        self.parts[self.next].shrink(now_us);
        self.next = (self.next + 1) % PARTS;
    }

    /// The memory that the entries take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| size_of_val(&*part.0)).sum()
    }
}

/// The part of a key; and the key within it, which is never 0.
fn split(key: u64) -> (usize, u64) {
    ((key >> 56) as usize, key | 1)
}

impl Part {
    /// The places that an entry may have.
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

    /// Puts an entry where it was, or where none is needed any more. `false`: there is no such place. If the part cannot grow,
    /// the entry has another's.
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
