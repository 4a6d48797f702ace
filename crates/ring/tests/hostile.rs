//! A misbehaving worker writes anything, anywhere, at any time. The front must not panic, hang, or trust it: what it
//! gets is a breach or bytes, its own books stay right, and other rings are not touched.
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use highball_ring::layout::{
    CONTROL, CURSOR, ENTRIES, ENTRIES_AT, LEFT, PLACES, READY, READY_WORDS, TENDING_ASLEEP, WANTED,
};
use highball_ring::{create, FrontRing, Geometry, RingError, Ticket, WorkerFds, WorkerRing};
use proptest::prelude::*;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

const GEOMETRY: Geometry =
    Geometry { slots: 6, request_bytes: 4096, response_bytes: 4096, threads: 3, least_threads: 1 };
/// What the front does in one run.
const STEPS: usize = 40_000;
/// Far more than a run takes: beyond it the front hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Random numbers that a seed repeats (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 32) as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The whole ring as words, mapped a second time.
struct Words<'a>(&'a [AtomicU64]);

impl Words<'_> {
    fn map(memory: &OwnedFd) -> Self {
        let bytes = GEOMETRY.total_bytes();
        let access = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a fresh mapping of a sealed file of this size, never unmapped.
        #[allow(unsafe_code)]
        let words = unsafe {
            let base = rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                rustix::mm::MapFlags::SHARED,
                memory,
                0,
            );
            std::slice::from_raw_parts(base.unwrap().cast::<AtomicU64>(), bytes / 8)
        };
        Words(words)
    }

    fn read(&self, offset: usize) -> u64 {
        self.0[offset / 8].load(Ordering::Relaxed)
    }

    fn write(&self, offset: usize, value: u64) {
        self.0[offset / 8].store(value, Ordering::Relaxed);
    }
}

/// The misbehaving worker.
struct HostileWorker<'a> {
    words: Words<'a>,
    fds: WorkerFds,
    /// Things to send that the front must not take, and two that it may.
    treasures: Vec<OwnedFd>,
    /// Whether it ever signals the eventfd: if not, a front that blocks in reading it does so for ever.
    signals: bool,
    /// The entry that was placed last, a while ago.
    last_entry: usize,
    random: Random,
}

impl HostileWorker<'_> {
    fn new(fds: WorkerFds, seed: u64) -> Self {
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (stream, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let treasures = vec![pipe, tcp.into(), stream.into(), file, fds.memory.try_clone().unwrap()];
        HostileWorker {
            words: Words::map(&fds.memory),
            fds,
            treasures,
            signals: seed % 2 == 0,
            last_entry: 0,
            random: Random::new(seed),
        }
    }

    fn rage(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match self.random.below(100) {
                0..40 => self.scribble(),
                40..60 => self.forge_an_entry(),
                60..80 => self.forge_a_counter(),
                80..90 => self.forge_the_rest(),
                90..97 => self.send_something(),
                _ => self.touch_the_eventfd(),
            }
        }
    }

    /// Anything anywhere.
    fn scribble(&mut self) {
        let at = self.random.below(GEOMETRY.total_bytes());
        self.words.write(at, self.random.next());
    }

    /// Where an entry is that was placed lately.
    fn recent_entry(&mut self) -> usize {
        if self.random.below(100) == 0 {
            let position_of =
                |n: &usize| Some(self.words.read(ENTRIES_AT + n * 8) >> 24).filter(|p| *p <= STEPS as u64);
            self.last_entry = (0..ENTRIES).max_by_key(position_of).expect("there are entries");
        }
        ENTRIES_AT + (self.last_entry + ENTRIES + 4 - self.random.below(12)) % ENTRIES * 8
    }

    /// Another state for it.
    fn forge_an_entry(&mut self) {
        let at = self.recent_entry();
        let state = self.random.pick(&[0, 1, 2, 2, 2, 3, 4]);
        self.words.write(at, (self.words.read(at) & !0xff) | state);
    }

    /// `written` and `consumed` of a slot, in or out of range.
    fn forge_a_counter(&mut self) {
        let slot = self.random.below(GEOMETRY.slots as usize) as u16;
        let at = GEOMETRY.response_at(slot) - GEOMETRY.request_bytes as usize;
        assert_eq!(at + CONTROL, GEOMETRY.request_at(slot));
        let written = self.random.pick(&[0, 1, 100, 4096, 4097, u64::from(u32::MAX)]);
        self.words.write(at + 8 * self.random.below(2), written | (self.random.next() << 32));
    }

    fn forge_the_rest(&mut self) {
        let anything = self.random.next();
        let (at, value) = match self.random.below(7) {
            0 => (CURSOR, self.random.pick(&[0, 1, u64::MAX, 1 << 39])),
            1 => (READY + 8 * self.random.below(READY_WORDS), u64::MAX),
            // The number of places, and what keeps it.
            2 => (PLACES, self.random.pick(&[0, 1, u64::MAX, anything])),
            // Whether the front wants a place, and the tending thread's bell.
            3 => (WANTED, self.random.pick(&[0, u64::MAX, anything])),
            4 => (TENDING_ASLEEP, self.random.pick(&[0, 1, u64::MAX])),
            // Answers that have left their places, and those on fibers.
            5 => (LEFT, self.random.pick(&[0, u64::MAX, anything])),
            // `bell` and `sleepers`.
            _ => (CURSOR - 8, u64::MAX),
        };
        self.words.write(at, value);
    }

    /// A message of any length with any number of descriptors, sometimes well-formed.
    fn send_something(&mut self) {
        let at = self.recent_entry();
        let entry = self.words.read(at);
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&(entry >> 24).to_le_bytes());
        bytes[8..10].copy_from_slice(&((entry >> 8) as u16).to_le_bytes());
        let length = self.random.pick(&[10, 10, 10, 0, 5, 20]);
        let count = self.random.pick(&[1, 1, 1, 0, 3]);
        let descriptors: Vec<BorrowedFd<'_>> =
            (0..count).map(|_| self.treasures[self.random.below(self.treasures.len())].as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if count > 0 {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::sendmsg(
            &self.fds.descriptors,
            &[IoSlice::new(&bytes[..length])],
            &mut control,
            flags,
        );
    }

    /// Makes it blocking, steals what is in it, signals for nothing.
    fn touch_the_eventfd(&mut self) {
        let eventfd = &self.fds.wake_front;
        match self.random.below(3) {
            0 => rustix::io::ioctl_fionbio(eventfd, self.random.below(2) == 0).unwrap(),
            1 => {
                let mut count = [0; 8];
                let mut count = [std::io::IoSliceMut::new(&mut count)];
                let now = rustix::io::ReadWriteFlags::NOWAIT;
                let _ = rustix::io::preadv2(eventfd, &mut count, u64::MAX, now);
            }
            _ if self.signals => drop(rustix::io::write(eventfd, &1u64.to_ne_bytes())),
            _ => {}
        }
    }
}

/// A front that does anything it may do with a ring, and keeps its own books.
struct Front {
    ring: FrontRing,
    held: BTreeMap<u16, Ticket>,
    last_position: u64,
    random: Random,
    spool: OwnedFd,
    bytes: Vec<u8>,
}

impl Front {
    fn new(ring: FrontRing, seed: u64) -> Self {
        let spool = rustix::fs::memfd_create("spool", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        Front {
            ring,
            held: BTreeMap::new(),
            last_position: 0,
            random: Random::new(seed),
            spool,
            bytes: Vec::new(),
        }
    }

    fn step(&mut self) {
        match self.random.below(50) {
            0..5 => self.place(),
            5 => self.take_back(),
            6 => self.turn_to_places(),
            7..10 => self.read_ready(),
            10..15 => self.sleep(),
            _ => self.turn_to_one(),
        }
        assert!(self.ring.sleepers() <= GEOMETRY.threads);
        assert!((GEOMETRY.least_threads..=GEOMETRY.threads).contains(&self.ring.places()));
    }

    fn place(&mut self) {
        let spooled = (self.random.below(4) == 0).then(|| self.spool.as_fd());
        let length = self.random.below(GEOMETRY.request_capacity());
        let Some(placed) = allowed(self.ring.place(&vec![7; length], b"", spooled)).flatten() else {
            return;
        };
        assert!(u32::from(placed.slot) < GEOMETRY.slots);
        assert!(placed.position > self.last_position, "positions only grow");
        self.last_position = placed.position;
        assert!(self.held.insert(placed.slot, placed).is_none(), "a slot in use was given away");
    }

    fn take_back(&mut self) {
        let Some(placed) = self.any_held() else { return };
        if self.ring.take_back(placed) {
            self.held.remove(&placed.slot);
            assert!(!self.ring.take_back(placed), "only once, whatever the entry says");
        }
    }

    fn read_ready(&mut self) {
        let mut ready = Vec::new();
        self.ring.take_ready(|_, slot| ready.push(slot));
        for slot in ready {
            assert!(self.held.contains_key(&slot), "news of a slot that is not in use");
            self.read(slot);
        }
    }

    /// As the front goes to sleep and wakes up, but for the sleep.
    fn sleep(&mut self) {
        self.ring.announce_sleep(1);
        let _ = self.ring.any_ready();
        self.ring.retract_sleep();
        self.ring.clear_wake();
    }

    /// What it does with all of the worker's places.
    fn turn_to_places(&mut self) {
        match self.random.below(4) {
            0 => self.ring.want_place(true),
            1 => self.ring.want_place(false),
            2 => drop((
                self.ring.places_kept_by(),
                self.ring.computes(),
                self.ring.left(),
                self.ring.on_fibers(),
            )),
            _ => self.ring.ring(1),
        }
    }

    fn turn_to_one(&mut self) {
        let Some(placed) = self.any_held() else { return };
        match self.random.below(30) {
            0 => drop(self.ring.is_claimed(placed)),
            1 => self.ring.cancel(placed.slot),
            2..6 => drop(allowed(self.ring.receive_descriptor(placed.slot))),
            6 => drop(self.ring.connect(placed.slot)), // the socket may be full
            7 => {
                self.ring.release(placed.slot);
                self.ring.release(placed.slot);
                self.held.remove(&placed.slot);
                assert!(!self.ring.take_back(placed));
            }
            _ => self.read(placed.slot),
        }
    }

    fn read(&mut self, slot: u16) {
        self.bytes.clear();
        let most = self.random.pick(&[0, 1, 1000, usize::MAX]);
        let read = allowed(self.ring.read(slot, most, &mut self.bytes)).unwrap_or(0);
        assert!(read == self.bytes.len() && read <= most.min(4096));
    }

    fn any_held(&mut self) -> Option<Ticket> {
        let index = self.random.below(self.held.len().max(1));
        self.held.values().nth(index).copied()
    }
}

/// What was asked for; `None` for a breach, the only error a worker may cause.
fn allowed<T>(result: Result<T, RingError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(RingError::Breach(_)) => None,
        Err(error) => panic!("neither an answer nor a breach: {error}"),
    }
}

/// A worker in its right mind, that answers each request with its own bytes; ends at an empty one.
fn echo(worker: &WorkerRing) {
    loop {
        let Some(Ticket { slot, .. }) = worker.claim() else {
            if let Some(seen) = worker.announce_sleep() {
                worker.sleep(seen, None);
                worker.awake();
            }
            continue;
        };
        // SAFETY: the slot is claimed and its answer not yet ended.
        #[allow(unsafe_code)]
        let request = unsafe { worker.request(slot) }[..8].to_vec();
        assert_eq!(worker.write(slot, 0, &request), 8);
        worker.publish(slot, 8);
        if request == [0; 8] {
            return;
        }
    }
}

fn exchange(ring: &mut FrontRing, request: [u8; 8]) {
    let placed = ring.place(&request, b"", None).unwrap().unwrap();
    ring.ring(1);
    let mut got = Vec::new();
    while got.len() < 8 {
        ring.announce_sleep(1);
        if !ring.any_ready() {
            poll(&mut [PollFd::from_borrowed_fd(ring.wake_fd(), PollFlags::IN)], None).unwrap();
        }
        ring.retract_sleep();
        ring.clear_wake();
        ring.take_ready(|ring, slot| {
            assert_eq!(slot, placed.slot);
            ring.read(slot, usize::MAX, &mut got).unwrap();
        });
    }
    assert_eq!(got, request);
    ring.release(placed.slot);
}

/// One front with two rings: the worker has one, a worker in its right mind the other.
fn serve_both(mad_ring: FrontRing, seed: u64) {
    let (mut sane_ring, fds) = create(GEOMETRY).unwrap();
    let worker = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&worker));
        let mut front = Front::new(mad_ring, seed);
        for step in 0..STEPS {
            front.step();
            if step % 500 == 0 {
                exchange(&mut sane_ring, (step as u64 + 1).to_le_bytes());
            }
        }
        exchange(&mut sane_ring, [0; 8]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn the_front_does_not_break_with_a_worker_that_overwrites_every_byte_it_can_map(seed in any::<u64>()) {
        let (ring, fds) = create(GEOMETRY).unwrap();
        let stop = AtomicBool::new(false);
        let (done, served) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| HostileWorker::new(fds, seed).rage(&stop));
            // Not scoped: if it hangs, the test must fail all the same.
            std::thread::spawn(move || {
                serve_both(ring, !seed);
                done.send(()).unwrap();
            });
            let result = served.recv_timeout(PATIENCE);
            stop.store(true, Ordering::Relaxed);
            result.expect("the front panicked or hangs");
        });
    }
}
