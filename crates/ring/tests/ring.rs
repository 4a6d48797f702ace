//! Both ends of a ring in one process.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use highball_ring::entry::{MAX_POSITION, REPLACE_FROM};
use highball_ring::worker::Room;
use highball_ring::{create, create_from, FrontRing, Geometry, RingError, Ticket, WorkerRing};
use proptest::prelude::*;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

fn both_ends(slots: u32) -> (FrontRing, WorkerRing) {
    let geometry =
        Geometry { slots, request_bytes: 4096, response_bytes: 4096, threads: 1, least_threads: 1 };
    let (front, fds) = create(geometry).unwrap();
    let worker = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
    (front, worker)
}

fn answer(worker: &WorkerRing, slot: u16, bytes: &[u8]) {
    assert_eq!(worker.write(slot, 0, bytes), bytes.len());
    worker.publish(slot, bytes.len() as u32);
}

fn read_all(front: &mut FrontRing) -> Vec<(u16, Vec<u8>)> {
    let mut answers = Vec::new();
    front.take_ready(|front, slot| {
        let mut bytes = Vec::new();
        front.read(slot, usize::MAX, &mut bytes).unwrap();
        answers.push((slot, bytes));
    });
    answers
}

#[test]
fn a_request_goes_there_and_its_answer_comes_back() {
    let (mut front, worker) = both_ends(4);
    let placed = front.place(b"head", b"body", None).unwrap().unwrap();
    assert!(!front.is_claimed(placed));
    let Ticket { slot, position } = worker.claim().unwrap();
    assert_eq!((slot, position), (placed.slot, placed.position));
    assert!(front.is_claimed(placed));
    assert!(!front.take_back(placed), "a claimed request cannot be taken back");
    // SAFETY: the slot is claimed and its answer not yet ended.
    #[allow(unsafe_code)]
    let request = unsafe { worker.request(slot) };
    assert_eq!(&request[..8], b"headbody");
    answer(&worker, slot, b"answer");
    assert_eq!(read_all(&mut front), [(slot, b"answer".to_vec())]);
    front.release(slot);
    assert!(worker.claim().is_none());
}

#[test]
fn a_ring_says_that_it_ends_long_before_it_does_and_never_places_beyond_its_end() {
    let geometry =
        Geometry { slots: 4, request_bytes: 4096, response_bytes: 4096, threads: 1, least_threads: 1 };
    for (first, before_end) in [(REPLACE_FROM - 1, false), (MAX_POSITION - 3, true)] {
        let (mut front, fds) = create_from(geometry, first).unwrap();
        let worker = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
        assert_eq!(front.ends_soon(), before_end);
        for position in first..first + 3 {
            let placed = front.place(b"head", b"", None).unwrap().unwrap();
            assert_eq!(placed.position, position);
            assert_eq!(worker.claim(), Some(placed));
            answer(&worker, placed.slot, b"answer");
            assert_eq!(read_all(&mut front), [(placed.slot, b"answer".to_vec())]);
            front.release(placed.slot);
        }
        assert!(front.ends_soon());
        assert_eq!(front.has_room(), !before_end);
        assert_eq!(front.place(b"head", b"", None).unwrap().is_some(), !before_end);
    }
}

#[test]
fn what_is_taken_back_is_never_claimed() {
    let (mut front, worker) = both_ends(4);
    let first = front.place(b"1", b"", None).unwrap().unwrap();
    let second = front.place(b"2", b"", None).unwrap().unwrap();
    assert!(front.take_back(first));
    assert_eq!(worker.claim(), Some(second));
    assert_eq!(worker.claim(), None);
}

#[test]
fn a_full_ring_says_so_and_a_cursor_left_behind_bounds_what_is_placed() {
    let (mut front, worker) = both_ends(2);
    let one = front.place(b"1", b"", None).unwrap().unwrap();
    front.place(b"2", b"", None).unwrap().unwrap();
    assert!(front.place(b"3", b"", None).unwrap().is_none());
    assert!(front.take_back(one));
    // Placed and taken back over and over, while the worker looks at nothing.
    let mut count = 0;
    while let Some(placed) = front.place(b"x", b"", None).unwrap() {
        assert!(front.take_back(placed));
        count += 1;
    }
    assert_eq!(count, 510);
    assert!(worker.claim().is_some(), "the second request is still there");
    assert!(worker.claim().is_none());
    assert!(front.has_room());
}

#[test]
fn an_answer_larger_than_the_area_streams_through_it() {
    let (mut front, worker) = both_ends(1);
    let total = 1_000_003;
    front.place(b"x", b"", None).unwrap().unwrap();
    let writer = std::thread::spawn(move || {
        let Ticket { slot, .. } = worker.claim().unwrap();
        let bytes: Vec<u8> = (0..total).map(|n| (n % 251) as u8).collect();
        let mut written = 0u32;
        while (written as usize) < bytes.len() {
            let more = worker.write(slot, written, &bytes[written as usize..]);
            written += more as u32;
            worker.publish(slot, written);
            if worker.room(slot, written) == Room::None {
                if let Some(seen) = worker.announce_wait_for_room(slot, written) {
                    worker.sleep_for_room(slot, seen);
                }
            }
        }
    });
    let mut got = Vec::new();
    while got.len() < total {
        front.announce_sleep(1);
        if !front.any_ready() {
            let wake = PollFd::from_borrowed_fd(front.wake_fd(), PollFlags::IN);
            poll(&mut [wake], None).unwrap();
        }
        front.retract_sleep();
        front.clear_wake();
        front.take_ready(|front, slot| {
            front.read(slot, usize::MAX, &mut got).unwrap();
        });
    }
    writer.join().unwrap();
    assert!(got.iter().enumerate().all(|(n, byte)| *byte == (n % 251) as u8));
}

/// The front publishes only a part of what it has read, as long as no thread waits for room.
#[test]
fn a_worker_that_needs_nearly_the_whole_area_gets_it() {
    let (mut front, worker) = both_ends(1);
    front.place(b"x", b"", None).unwrap().unwrap();
    let Ticket { slot, .. } = worker.claim().unwrap();
    answer(&worker, slot, &[7; 1000]);
    assert_eq!(read_all(&mut front), [(slot, vec![7; 1000])]);
    let last_byte = 1000 + 4095;
    let seen = worker.announce_wait_for_room(slot, last_byte).expect("it does not know of the room");
    worker.publish(slot, 1000);
    assert_eq!(read_all(&mut front), [(slot, vec![])]);
    assert_eq!(worker.room(slot, last_byte), Room::Some);
    worker.sleep_for_room(slot, seen); // it is woken
}

#[test]
fn a_cancelled_answer_ends_the_wait_for_room() {
    let (mut front, worker) = both_ends(1);
    let placed = front.place(b"x", b"", None).unwrap().unwrap();
    let Ticket { slot, .. } = worker.claim().unwrap();
    let written = worker.write(slot, 0, &[7; 5000]) as u32;
    assert_eq!(written, 4096);
    worker.publish(slot, written);
    let waiter = std::thread::spawn(move || {
        while worker.room(slot, written) == Room::None {
            if let Some(seen) = worker.announce_wait_for_room(slot, written) {
                worker.sleep_for_room(slot, seen);
            }
        }
        worker.room(slot, written)
    });
    front.cancel(placed.slot);
    assert_eq!(waiter.join().unwrap(), Room::Cancelled);
}

#[test]
fn a_sleeping_worker_is_woken() {
    let (mut front, worker) = both_ends(4);
    let sleeper = std::thread::spawn(move || loop {
        if let Some(Ticket { slot, .. }) = worker.claim() {
            return slot;
        }
        if let Some(seen) = worker.announce_sleep() {
            worker.sleep(seen, Some(Duration::from_secs(20)));
            worker.awake();
        }
    });
    while front.sleepers() == 0 {
        std::thread::yield_now();
    }
    let placed = front.place(b"x", b"", None).unwrap().unwrap();
    front.ring(1);
    assert_eq!(sleeper.join().unwrap(), placed.slot);
}

#[test]
fn descriptors_find_their_requests() {
    let (mut front, worker) = both_ends(4);
    let mut file = tempfile();
    file.write_all(b"spooled").unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let placed = front.place(b"x", b"", Some(file.as_fd())).unwrap().unwrap();
    worker.claim().unwrap();
    let (ticket, received) = worker.receive_descriptor().unwrap().unwrap();
    assert_eq!(ticket, Ticket { position: placed.position, slot: placed.slot });
    let mut text = String::new();
    std::fs::File::from(received).read_to_string(&mut text).unwrap();
    assert_eq!(text, "spooled");

    let other = front.place(b"y", b"", None).unwrap().unwrap();
    worker.claim().unwrap();
    for placed in [other, placed, Ticket { slot: 3, position: 999 }] {
        assert!(worker.send_descriptor(placed.slot, placed.position, file.as_fd()).unwrap());
    }
    assert!(front.receive_descriptor(placed.slot).is_ok());
    assert!(front.receive_descriptor(other.slot).is_ok());
    assert!(front.receive_descriptor(other.slot).is_err(), "there was only one");
}

#[test]
fn descriptors_of_cancelled_answers_do_not_fill_the_socket() {
    let (mut front, worker) = both_ends(2);
    let file = tempfile();
    for _ in 0..1000 {
        let placed = front.place(b"x", b"", None).unwrap().unwrap();
        let Ticket { slot, position } = worker.claim().unwrap();
        // Sent, and its frame is not: the answer was cancelled in between.
        assert!(worker.send_descriptor(slot, position, file.as_fd()).unwrap());
        front.cancel(placed.slot);
        front.release(placed.slot);
    }
    let placed = front.place(b"x", b"", None).unwrap().unwrap();
    let Ticket { slot, position } = worker.claim().unwrap();
    assert!(worker.send_descriptor(slot, position, file.as_fd()).unwrap());
    assert!(front.receive_descriptor(placed.slot).is_ok());
}

#[test]
fn a_lie_about_the_counter_is_a_breach() {
    let (mut front, worker) = both_ends(1);
    front.place(b"x", b"", None).unwrap().unwrap();
    let Ticket { slot, .. } = worker.claim().unwrap();
    worker.publish(slot, 5000);
    assert!(front.readable(slot).is_err());
    assert!(front.read(slot, usize::MAX, &mut Vec::new()).is_err());
}

#[test]
fn an_answer_to_a_request_that_was_not_claimed_is_a_breach() {
    let (mut front, worker) = both_ends(1);
    let placed = front.place(b"x", b"", None).unwrap().unwrap();
    answer(&worker, placed.slot, b"answer");
    assert!(front.read(placed.slot, usize::MAX, &mut Vec::new()).is_err());
}

#[test]
fn the_late_bit_of_an_answer_that_has_ended_says_nothing() {
    let (mut front, worker) = both_ends(1);
    let placed = front.place(b"x", b"", None).unwrap().unwrap();
    worker.claim().unwrap();
    answer(&worker, placed.slot, b"answer");
    assert_eq!(read_all(&mut front).len(), 1);
    front.release(placed.slot);
    worker.publish(placed.slot, 6);
    assert_eq!(read_all(&mut front), []);
    assert_eq!(front.readable(placed.slot).unwrap(), 0);
    front.release(placed.slot);
    assert!(front.place(b"x", b"", None).unwrap().is_some());
    assert!(front.place(b"x", b"", None).unwrap().is_none(), "the slot is free once, not twice");
}

#[test]
fn the_front_does_not_block_where_the_worker_made_the_eventfd_blocking() {
    let (front, fds) = create(Geometry::new(1, 1, 100)).unwrap();
    rustix::io::ioctl_fionbio(&fds.wake_front, false).unwrap();
    front.clear_wake();
    rustix::io::write(&fds.wake_front, &5u64.to_ne_bytes()).unwrap();
    front.clear_wake();
    let wake = PollFd::from_borrowed_fd(front.wake_fd(), PollFlags::IN);
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(poll(&mut [wake], Some(&now)).unwrap(), 0, "it was emptied");
}

#[test]
fn spool_files_of_requests_taken_back_do_not_pile_up() {
    let (mut front, worker) = both_ends(4);
    let file = tempfile();
    let place = |front: &mut FrontRing| front.place(b"x", b"", Some(file.as_fd())).unwrap().unwrap();
    for _ in 0..8 {
        let placed = place(&mut front);
        assert!(front.take_back(placed));
    }
    let placed = place(&mut front);
    assert!(!front.take_back(placed), "the worker has to begin it, and to meet the other files so");
    let plain = front.place(b"x", b"", None).unwrap().unwrap();
    assert!(front.take_back(plain));
    let Ticket { slot, .. } = worker.claim().unwrap();
    answer(&worker, slot, b"answer");
    assert_eq!(read_all(&mut front).len(), 1);
    let placed: Vec<Ticket> = (0..2).map(|_| place(&mut front)).collect();
    assert!(front.take_back(placed[0]));
    for _ in 0..7 {
        let placed = place(&mut front);
        assert!(front.take_back(placed));
    }
    assert!(!front.take_back(placed[1]));
    front.retire();
    assert!(front.take_back(placed[1]), "who ends begins nothing more");
    assert!(!front.has_room());
}

#[test]
fn what_was_left_unread_can_be_looked_at_again() {
    let (mut front, worker) = both_ends(1);
    front.place(b"x", b"", None).unwrap().unwrap();
    let Ticket { slot, .. } = worker.claim().unwrap();
    answer(&worker, slot, b"answer");
    let mut got = Vec::new();
    for _ in 0..2 {
        front.take_ready(|front, slot| {
            front.read(slot, 3, &mut got).unwrap();
            front.look_again(slot);
        });
    }
    assert_eq!(got, b"answer");
    assert!(front.any_ready());
}

#[test]
fn only_files_that_can_be_read_are_taken_from_a_worker() {
    let (pipe, _end) = rustix::pipe::pipe().unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let datagram = std::os::unix::net::UnixDatagram::unbound().unwrap();
    let (stream, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
    let folder = std::fs::File::open(".").unwrap();
    let path_only = rustix::fs::open("Cargo.toml", OFlags::PATH, Mode::empty()).unwrap();
    let file = tempfile();
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    let write_only = std::fs::File::options().write(true).open(again).unwrap();
    for (descriptor, fits) in [
        (pipe.as_fd(), false),
        (tcp.as_fd(), false),
        (datagram.as_fd(), false),
        (folder.as_fd(), false),
        (stream.as_fd(), false),
        (write_only.as_fd(), false),
        (path_only.as_fd(), false),
        (file.as_fd(), true),
    ] {
        let (mut front, worker) = both_ends(1);
        let Ticket { slot, position } = front.place(b"x", b"", None).unwrap().unwrap();
        assert!(worker.send_descriptor(slot, position, descriptor).unwrap());
        match front.receive_descriptor(slot) {
            Ok(_) => assert!(fits),
            Err(error) => assert!(!fits && matches!(error, RingError::Breach(_)), "{error}"),
        }
    }
}

#[test]
fn a_hijack_is_answered_with_a_socket_of_the_fronts_own() {
    let (mut front, worker) = both_ends(2);
    let Ticket { slot, position } = front.place(b"x", b"", None).unwrap().unwrap();
    worker.claim().unwrap();
    // What the worker sends beside its frame is not looked at.
    let (chosen, peer) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(worker.send_descriptor(slot, position, chosen.as_fd()).unwrap());
    let seen = worker.announce_wait_for_descriptor(slot);
    let ours = front.connect(slot).unwrap();
    worker.sleep_for_room(slot, seen); // does not sleep: the bell has rung
    let (ticket, theirs) = worker.receive_descriptor().unwrap().unwrap();
    assert_eq!(ticket, Ticket { position, slot });
    rustix::io::write(&ours, b"of the client").unwrap();
    let mut bytes = [0; 20];
    assert_eq!(rustix::io::read(&theirs, &mut bytes).unwrap(), 13);
    peer.set_nonblocking(true).unwrap();
    assert!((&peer).read(&mut bytes).is_err(), "nothing goes to a socket that the worker chose");
}

#[test]
fn a_worker_that_waits_for_a_socket_in_vain_learns_it() {
    let (mut front, worker) = both_ends(2);
    let Ticket { slot, .. } = front.place(b"x", b"", None).unwrap().unwrap();
    worker.claim().unwrap();
    while front.connect(slot).is_ok() {} // until the descriptor socket is full
    assert!(worker.is_cancelled(slot));
}

/// Closing a TCP socket with a linger time blocks the process that closes it last.
#[test]
fn descriptors_that_block_when_they_are_closed_do_not_block_the_front() {
    let (ours, theirs) = highball_ring::descriptors::pair().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lingering = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (_peer, _) = listener.accept().unwrap(); // it reads nothing
    rustix::net::sockopt::set_socket_linger(&lingering, Some(Duration::from_secs(600))).unwrap();
    lingering.set_nonblocking(true).unwrap();
    while lingering.write(&[0; 65536]).is_ok() {}
    let file = tempfile();
    send_together(theirs.as_fd(), &[lingering.as_fd(), file.as_fd(), file.as_fd()]);
    drop(lingering);
    let (done, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(highball_ring::descriptors::receive(ours).is_err()));
    assert!(received.recv_timeout(Duration::from_secs(60)).unwrap(), "several descriptors are a breach");
}

fn send_together(socket: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let bytes = [std::io::IoSlice::new(&[0; 10])];
    rustix::net::sendmsg(socket, &bytes, &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn memory_that_is_no_ring_is_refused() {
    let (_, fds) = create(Geometry::new(1, 1, 100)).unwrap();
    let mut file = tempfile();
    file.write_all(&[0; 8192]).unwrap();
    assert!(WorkerRing::open(file.as_fd(), fds.wake_front, fds.descriptors).is_err());
}

fn tempfile() -> std::fs::File {
    std::fs::File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
}

#[derive(Debug, Clone)]
enum Step {
    Place(u8),
    TakeBack(prop::sample::Index),
    Claim,
    Answer(prop::sample::Index, Vec<u8>),
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u8>().prop_map(Step::Place),
        any::<prop::sample::Index>().prop_map(Step::TakeBack),
        Just(Step::Claim),
        (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..100))
            .prop_map(|(which, bytes)| Step::Answer(which, bytes)),
        Just(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Any sequence of steps does what a plain queue would do.
    #[test]
    fn the_ring_is_a_queue(steps in prop::collection::vec(step(), 1..300)) {
        let (mut front, worker) = both_ends(5);
        let mut waiting: VecDeque<(Ticket, u8)> = VecDeque::new();
        let mut begun: Vec<(u16, u8)> = Vec::new();
        let mut answered: Vec<(u16, Vec<u8>)> = Vec::new();
        for step in steps {
            match step {
                Step::Place(byte) => {
                    let placed = front.place(&[byte], b"", None).unwrap();
                    let used = waiting.len() + begun.len() + answered.len();
                    if used == 5 {
                        prop_assert!(placed.is_none());
                    } else if let Some(placed) = placed {
                        waiting.push_back((placed, byte));
                    } else {
                        prop_assert!(!front.has_room());
                    }
                }
                Step::TakeBack(which) if !waiting.is_empty() => {
                    let (placed, _) = waiting.remove(which.index(waiting.len())).unwrap();
                    prop_assert!(front.take_back(placed));
                }
                Step::Claim => match (worker.claim(), waiting.pop_front()) {
                    (Some(Ticket { slot, .. }), Some((placed, byte))) => {
                        prop_assert_eq!(slot, placed.slot);
                        // SAFETY: the slot is claimed and its answer not yet ended.
                        #[allow(unsafe_code)]
                        let first = unsafe { worker.request(slot) }[0];
                        prop_assert_eq!(first, byte);
                        begun.push((slot, byte));
                    }
                    (claimed, expected) => prop_assert!(claimed.is_none() && expected.is_none()),
                },
                Step::Answer(which, bytes) if !begun.is_empty() => {
                    let (slot, _) = begun.swap_remove(which.index(begun.len()));
                    answer(&worker, slot, &bytes);
                    answered.push((slot, bytes));
                }
                Step::Read => {
                    let mut got = read_all(&mut front);
                    for (slot, _) in &got {
                        front.release(*slot);
                    }
                    got.sort();
                    answered.sort();
                    prop_assert_eq!(&got, &answered);
                    answered.clear();
                }
                _ => {}
            }
        }
    }
}
