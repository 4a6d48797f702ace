//! Loom runs both ends of a ring in every order that the memory model allows.
//!
//!     RUSTFLAGS="--cfg loom" cargo test -p highball-ring --release --test loom
//!
//! The code is in `front.rs` and `worker.rs`; only memory, futex and eventfd are models. A thread that is
//! never woken is a deadlock (or, where the other side looks again and again, too many steps), and an area
//! that both sides touch unordered is a race: loom reports them. Above each model stand the changes to the
//! protocol that it was seen to catch.
#![cfg(loom)]

use std::os::fd::AsFd;

use highball_ring::layout::CONTROL;
use highball_ring::worker::Room;
use highball_ring::{create, wake, FrontRing, Geometry, Ticket, WorkerRing};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// The only slot of most models.
const SLOT: u16 = 0;

/// A ring whose requests have one byte.
fn both_ends(slots: u32, response_bytes: u32) -> (FrontRing, Arc<WorkerRing>) {
    let geometry =
        Geometry { slots, request_bytes: CONTROL as u32 + 1, response_bytes, threads: 1, least_threads: 1 };
    let (front, fds) = create(geometry).unwrap();
    let worker = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
    (front, Arc::new(worker))
}

fn place(front: &mut FrontRing, request: u8) -> Ticket {
    front.place(&[request], b"", None).unwrap().expect("there is room")
}

/// The next request's byte.
fn claim(worker: &WorkerRing) -> Option<u8> {
    let Ticket { slot, .. } = worker.claim()?;
    // SAFETY: the slot is claimed and its answer not yet ended.
    #[allow(unsafe_code)]
    let request = unsafe { worker.request(slot) };
    Some(request[0])
}

/// Waits for the next request, as a worker with one thread does.
fn wait_and_claim(worker: &WorkerRing) -> u8 {
    loop {
        if let Some(request) = claim(worker) {
            return request;
        }
        if let Some(seen) = worker.announce_sleep() {
            worker.sleep(seen, None);
            worker.awake();
        }
    }
}

/// Writes an answer, waiting for room.
fn write_all(worker: &WorkerRing, bytes: &[u8]) {
    let mut written = 0;
    while written < bytes.len() {
        written += worker.write(SLOT, written as u32, &bytes[written..]);
        worker.publish(SLOT, written as u32);
        if written < bytes.len() {
            wait_for_room(worker, written as u32);
        }
    }
}

fn wait_for_room(worker: &WorkerRing, written: u32) {
    while worker.room(SLOT, written) == Room::None {
        if let Some(seen) = worker.announce_wait_for_room(SLOT, written) {
            worker.sleep_for_room(SLOT, seen);
        }
    }
}

/// A model in which threads are interrupted at most `preemptions` times: nearly all mistakes need no more than
/// two.
fn bounded(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(check);
}

/// Reads what the ready bits speak of.
fn read_ready(front: &mut FrontRing, got: &mut Vec<u8>) {
    front.take_ready(|front, slot| {
        front.read(slot, usize::MAX, got).unwrap();
    });
}

/// Caught: `place` stores relaxed; `claim` loads and swaps relaxed; `take_back` or `claim` decides by a load and a
/// store instead of a swap; the request is written after the entry.
#[test]
fn a_request_is_claimed_or_taken_back_never_both() {
    loom::model(|| {
        let (mut front, worker) = both_ends(1, 1);
        let first = place(&mut front, b'1');
        let thread = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || claim(&worker))
        };
        let taken = front.take_back(first);
        if taken {
            // The same slot, at another position.
            place(&mut front, b'2');
        }
        let mut served: Vec<u8> = thread.join().unwrap().into_iter().collect();
        served.extend(std::iter::from_fn(|| claim(&worker)));
        assert_eq!(served, if taken { [b'2'] } else { [b'1'] });
    });
}

/// The ring of entries has two here. Caught: `place` asks for one entry too few; the worker publishes its cursor
/// before it claims.
#[test]
fn an_entry_is_used_again_only_when_it_was_passed() {
    loom::model(|| {
        let (mut front, worker) = both_ends(3, 1);
        place(&mut front, b'1');
        place(&mut front, b'2');
        let thread = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || [claim(&worker), claim(&worker)])
        };
        let third = front.place(b"3", b"", None).unwrap();
        assert_eq!(thread.join().unwrap(), [Some(b'1'), Some(b'2')]);
        if third.is_none() {
            place(&mut front, b'3');
        }
        assert_eq!(claim(&worker), Some(b'3'));
    });
}

/// Caught: `written` stored or loaded relaxed; the ready bit set or taken relaxed, or set before `written` is
/// stored.
#[test]
fn an_answer_is_read_whole_by_the_bits_alone() {
    loom::model(|| {
        let (mut front, worker) = both_ends(1, 2);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        let thread = thread::spawn(move || {
            for (written, byte) in [b"a", b"b"].into_iter().enumerate() {
                assert_eq!(worker.write(SLOT, written as u32, byte), 1);
                worker.publish(SLOT, written as u32 + 1);
            }
        });
        let mut got = Vec::new();
        read_ready(&mut front, &mut got);
        read_ready(&mut front, &mut got);
        thread.join().unwrap();
        read_ready(&mut front, &mut got);
        assert_eq!(got, b"ab");
    });
}

/// Caught: the fence of `Bell::announce` or of `Bell::should_ring` weakened or left out; no second look in
/// `announce_sleep`; the word left unchanged by `should_ring`; the word read after the second look.
#[test]
fn a_worker_does_not_sleep_through_a_request() {
    loom::model(|| {
        let (mut front, worker) = both_ends(1, 1);
        let thread = thread::spawn(move || wait_and_claim(&worker));
        place(&mut front, b'1');
        front.ring(1);
        assert_eq!(thread.join().unwrap(), b'1');
    });
}

/// One thread of a worker, which serves one request and ends. The GVL is held except while it sleeps.
fn serve_one(worker: &WorkerRing, gvl: &Mutex<bool>) -> Option<u8> {
    let mut stopped = gvl.lock().unwrap();
    while !*stopped {
        if let Some(request) = claim(worker) {
            return Some(request);
        }
        if let Some(seen) = worker.announce_sleep() {
            drop(stopped);
            worker.sleep(seen, None);
            stopped = gvl.lock().unwrap();
            worker.awake();
        }
    }
    None
}

/// Caught: the second ring left out, also because the first has just woken a thread.
#[test]
fn of_two_threads_each_is_woken_for_a_request() {
    bounded(3, || {
        let (mut front, worker) = both_ends(2, 1);
        let gvl = Arc::new(Mutex::new(false));
        let threads = [(); 2].map(|()| {
            let (worker, gvl) = (Arc::clone(&worker), Arc::clone(&gvl));
            thread::spawn(move || serve_one(&worker, &gvl))
        });
        place(&mut front, b'1');
        front.ring(1);
        place(&mut front, b'2');
        front.ring(1);
        let mut served = threads.map(|thread| thread.join().unwrap());
        served.sort_unstable();
        assert_eq!(served, [Some(b'1'), Some(b'2')]);
    });
}

/// Caught: `interrupt` that wakes without changing the word.
#[test]
fn a_stop_ends_the_sleep() {
    loom::model(|| {
        let (_front, worker) = both_ends(1, 1);
        let gvl = Arc::new(Mutex::new(false));
        let thread = {
            let (worker, gvl) = (Arc::clone(&worker), Arc::clone(&gvl));
            thread::spawn(move || serve_one(&worker, &gvl))
        };
        *gvl.lock().unwrap() = true;
        worker.interrupt();
        assert_eq!(thread.join().unwrap(), None);
    });
}

/// Caught: the thread that ends does not hand its wake-up on.
#[test]
fn a_wake_up_that_met_a_thread_about_to_end_is_handed_on() {
    bounded(3, || {
        let (mut front, worker) = both_ends(2, 1);
        let gvl = Arc::new(Mutex::new(false));
        let ending = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || {
                if let Some(seen) = worker.announce_sleep() {
                    worker.sleep(seen, None);
                    worker.awake();
                }
                worker.pass_on();
            })
        };
        let serving = thread::spawn(move || serve_one(&worker, &gvl));
        place(&mut front, b'1');
        front.ring(1);
        assert_eq!(serving.join().unwrap(), Some(b'1'));
        // The other thread may have been woken; this wakes the ending one.
        place(&mut front, b'2');
        front.ring(1);
        ending.join().unwrap();
    });
}

/// Caught: the fence of `FrontSleep::announce` or of `FrontSleep::must_wake` weakened or left out; no second
/// look before the front sleeps; the ready bit set after `must_wake`.
#[test]
fn the_front_does_not_sleep_through_an_answer() {
    bounded(3, || {
        let (mut front, worker) = both_ends(1, 2);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        let thread = thread::spawn(move || {
            for (written, byte) in [b"a", b"b"].into_iter().enumerate() {
                assert_eq!(worker.write(SLOT, written as u32, byte), 1);
                worker.publish(SLOT, written as u32 + 1);
            }
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            front.announce_sleep(1);
            if !front.any_ready() {
                wake::poll();
            }
            front.retract_sleep();
            front.clear_wake();
            read_ready(&mut front, &mut got);
        }
        assert_eq!(got, b"ab");
        thread.join().unwrap();
    });
}

/// Two answers end, and the front is to be woken for the second, or for three, which never come. Caught: the fence of
/// `FrontSleep::must_wake_for_end` left out; no look at the word where nothing is left to claim.
#[test]
fn a_patient_front_sleeps_through_no_last_answer() {
    for answers in [2, 3] {
        bounded(3, move || {
            let (mut front, worker) = both_ends(2, 1);
            let placed = [b'1', b'2'].map(|request| place(&mut front, request));
            let thread = thread::spawn(move || {
                while let Some(Ticket { slot, .. }) = worker.claim() {
                    assert_eq!(worker.write(slot, 0, b"a"), 1);
                    worker.publish_end(slot, 1);
                }
            });
            let mut got = Vec::new();
            while got.len() < placed.len() {
                front.announce_sleep(answers);
                if !front.any_ready() {
                    wake::poll();
                }
                front.retract_sleep();
                front.clear_wake();
                read_ready(&mut front, &mut got);
            }
            thread.join().unwrap();
        });
    }
}

/// The area has one byte here. Caught: the fence of `want_space` or of `consume` weakened or left out;
/// `consumed` stored or loaded relaxed; no second look in `announce_wait_for_room`; `space_wanted` cleared after
/// `space_bell` is rung.
#[test]
fn a_writer_does_not_wait_for_room_that_is_there() {
    bounded(3, || {
        let (mut front, worker) = both_ends(1, 1);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        let thread = thread::spawn(move || write_all(&worker, b"abc"));
        let mut got = Vec::new();
        while got.len() < 3 {
            if front.read(SLOT, usize::MAX, &mut got).unwrap() == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(got, b"abc");
        thread.join().unwrap();
    });
}

/// The area has four bytes here, and the writer needs all of them behind the first. Caught: `read` that publishes only what is
/// beyond half of the area, or nothing where there is nothing to read.
#[test]
fn a_writer_that_needs_the_whole_area_gets_it() {
    bounded(3, || {
        let (mut front, worker) = both_ends(1, 4);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        let thread = thread::spawn(move || {
            assert_eq!(worker.write(SLOT, 0, b"a"), 1);
            worker.publish(SLOT, 1);
            while worker.room(SLOT, 1 + 3) == Room::None {
                if let Some(seen) = worker.announce_wait_for_room(SLOT, 1 + 3) {
                    worker.publish(SLOT, 1);
                    worker.sleep_for_room(SLOT, seen);
                }
            }
            assert_eq!(worker.write(SLOT, 1, b"bcde"), 4);
            worker.publish(SLOT, 5);
        });
        let mut got = Vec::new();
        while got.len() < 5 {
            read_ready(&mut front, &mut got);
            thread::yield_now();
        }
        assert_eq!(got, b"abcde");
        thread.join().unwrap();
    });
}

/// Caught: `cancel` that does not change `space_bell`, or changes it before `cancelled` is set.
#[test]
fn a_cancel_ends_the_wait_for_room() {
    loom::model(|| {
        let (mut front, worker) = both_ends(1, 1);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        assert_eq!(worker.write(SLOT, 0, b"a"), 1);
        worker.publish(SLOT, 1);
        let thread = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || wait_for_room(&worker, 1))
        };
        front.cancel(SLOT);
        thread.join().unwrap();
        assert_eq!(worker.room(SLOT, 1), Room::Cancelled);
    });
}

/// The front reads the end of an answer before its bit, and uses the slot again while the worker is still about
/// to set it. Caught: a slot whose counters are reset after its entry is placed, or not at all.
#[test]
fn a_slot_used_again_knows_nothing_of_the_answer_before() {
    bounded(3, || {
        let (mut front, worker) = both_ends(1, 2);
        place(&mut front, b'1');
        claim(&worker).unwrap();
        let thread = thread::spawn(move || {
            write_all(&worker, b"a");
            assert_eq!(wait_and_claim(&worker), b'2');
            write_all(&worker, b"bc");
        });
        let mut first = Vec::new();
        while front.read(SLOT, usize::MAX, &mut first).unwrap() == 0 {
            thread::yield_now();
        }
        assert_eq!(first, b"a");
        front.release(SLOT);
        place(&mut front, b'2');
        front.ring(1);
        let mut second = Vec::new();
        while second.len() < 2 {
            thread::yield_now();
            read_ready(&mut front, &mut second);
        }
        assert_eq!(second, b"bc");
        thread.join().unwrap();
    });
}

/// Caught: `want` or `announce` without its fence; the sleeping thread is announced after the second look.
#[test]
fn a_wanted_place_wakes_the_tending_thread() {
    loom::model(|| {
        let (front, worker) = both_ends(1, 1);
        let thread = {
            let worker = Arc::clone(&worker);
            thread::spawn(move || {
                while !worker.is_place_wanted() {
                    if let Some(seen) = worker.announce_tending_sleep() {
                        worker.sleep_tending(seen, None);
                        worker.awake_tending();
                    }
                }
            })
        };
        front.want_place(true);
        thread.join().unwrap();
    });
}

/// The front sees the place, or is woken for it. Caught: `set_places` wakes nobody; the number is stored after that.
#[test]
fn a_place_that_is_added_wakes_the_front() {
    loom::model(|| {
        let geometry = Geometry {
            slots: 2,
            request_bytes: CONTROL as u32 + 1,
            response_bytes: 1,
            threads: 2,
            least_threads: 1,
        };
        let (front, fds) = create(geometry).unwrap();
        let worker = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
        let thread = thread::spawn(move || {
            worker.set_places(2);
            worker
        });
        while front.places() < 2 {
            front.announce_sleep(1);
            if front.places() < 2 {
                wake::poll();
                front.clear_wake();
            }
            front.retract_sleep();
        }
        drop(thread.join().unwrap());
    });
}
