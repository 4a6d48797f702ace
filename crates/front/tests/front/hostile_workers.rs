//! Misbehaving workers: each costs its own requests a 502, and is reported; the others keep serving.
#![allow(clippy::disallowed_methods)] // the files are a test's own

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::support::{frame, head, head_payload, FakeWorker, Front, Job};
use highball_link::{AppCommand, FrontAppEvent, NewWorker};
use highball_ring::entry::{EntryState, Word};
use highball_ring::frame::{Kind, IS_FILE};
use highball_ring::layout::{ENTRIES_AT, FRONT_ASLEEP, PLACES, READY, WANTED, WRITTEN};
use proptest::prelude::*;

/// Lets a worker do something with a request that cannot be repeated: what the front says of it, and what the
/// client got.
fn breach(name: &str, misbehave: impl FnOnce(&mut Job, &FakeWorker)) -> (String, String) {
    let front = Front::start();
    let bad = front.worker(1);
    let mut client = front.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let mut job = bad.claim();
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    misbehave(&mut job, &bad);
    let FrontAppEvent::WorkerBroken { worker, why } = front.app_event() else { panic!("{name}: not broken") };
    assert_eq!(worker, bad.number);
    let (answer, _) = client.rest();
    assert_eq!(front.get("/").answer().text(), "good", "{name}");
    front.remove(&bad);
    assert_eq!(front.get("/").answer().text(), "good", "{name}");
    drop(good);
    (why, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn impossible_frames_are_breaches() {
    let ok = || head(200, &[]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("an unknown kind", vec![9, 0, 0, 0]),
        ("kind zero", vec![0, 0, 0, 0]),
        ("an end without a head", frame(Kind::End, b"")),
        ("a body without a head", frame(Kind::Body, b"x")),
        ("an end with a payload", [ok(), vec![5, 1, 0, 0, 0]].concat()),
        ("a second head", [ok(), ok()].concat()),
        ("bytes after the end", [ok(), frame(Kind::End, b""), vec![0]].concat()),
        ("an answer after the end", [ok(), frame(Kind::End, b""), ok()].concat()),
        ("a status below all", frame(Kind::Head, &head_payload(99, 0, &[]))),
        ("a status beyond all", frame(Kind::Head, &head_payload(1000, 0, &[]))),
        ("a head too short", vec![1, 2, 0, 0, 200, 0]),
        ("a head too long", vec![1, 0xff, 0xff, 0xff]),
        ("a head cut off in a field", frame(Kind::Head, &[200, 0, 0, 0, 5, 0, 0, 0, 0, 0, b'a'])),
        ("a name that is no token", head(200, &[("a b", "c")])),
        ("a name that is empty", head(200, &[("", "c")])),
        ("a value with CR", head(200, &[("a", "b\rc")])),
        ("a value with LF", head(200, &[("a", "b\nSet-Cookie: c")])),
        ("a value with NUL", head(200, &[("a", "b\0")])),
        ("a file frame of the wrong length", [ok(), vec![3, 8, 0, 0]].concat()),
        ("a file without a descriptor", [ok(), frame(Kind::File, &[0; 16])].concat()),
    ];
    for (name, bytes) in cases {
        let begun = bytes.starts_with(&ok()[..8]);
        let (why, answer) = breach(name, |job, _| {
            job.raw(&bytes);
        });
        assert!(why.contains("broke") || why.contains("head"), "{name}: {why}");
        let expected = if begun { "HTTP/1.1 200 " } else { "HTTP/1.1 502 " };
        assert!(answer.starts_with(expected), "{name}: {answer}");
    }
}

#[test]
fn unfit_descriptors_are_breaches() {
    let file = File::open("/proc/self/exe").unwrap();
    let (socket, _other) = UnixStream::pair().unwrap();
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = File::open("/").unwrap();
    let hijack = frame(Kind::Hijack, b"");
    let send = [head(200, &[]), frame(Kind::File, &[1; 16])].concat();
    let cases = [
        ("a socket as a file", socket.as_fd(), &send),
        ("a TCP socket as a file", tcp.as_fd(), &send),
        ("a pipe as a file", pipe.as_fd(), &send),
        ("a folder as a file", folder.as_fd(), &send),
    ];
    for (name, descriptor, bytes) in cases {
        breach(name, |job, _| {
            job.send_descriptor(descriptor);
            job.raw(bytes);
        });
    }
    breach("a body after a hijack", |job, _| {
        job.raw(&[&hijack[..], &frame(Kind::Body, b"x")].concat());
    });
    breach("a body instead of a hijack", |job, _| {
        job.raw(&[frame(Kind::Head, &head_payload(200, 1, &[])), frame(Kind::Body, b"x")].concat());
    });
    breach("a second hijack", |job, _| {
        job.raw(&[&hijack[..], &hijack[..]].concat());
    });
    breach("an answer that leaves without an offer", |job, _| {
        job.raw(&[head(200, &[]), frame(Kind::Stream, b"")].concat());
    });
    breach("files without end", |job, _| {
        job.head(200, &[]);
        for _ in 0..17 {
            job.send_descriptor(&file);
            job.raw(&frame(Kind::File, &[&[0; 8][..], &1u64.to_le_bytes()].concat()));
        }
    });
}

#[test]
fn a_file_that_was_announced_is_all_that_comes() {
    let file = File::open("Cargo.toml").unwrap();
    let announced = frame(Kind::Head, &head_payload(200, IS_FILE, &[("content-length", "1")]));
    let (why, _) = breach("a body where a file was announced", |job, _| {
        job.raw(&[&announced[..], &frame(Kind::Body, b"x")].concat());
    });
    assert!(why.contains("a body where a file was announced"), "{why}");
    breach("a second file", |job, _| {
        job.raw(&announced).file(&file, 0, 1).file(&file, 0, 1);
    });
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=5-\r\n\r\n");
    let announced = head_payload(200, IS_FILE, &[("content-length", "10")]);
    worker.claim().raw(&frame(Kind::Head, &announced)).file(&file, u64::MAX - 4, 10);
    let FrontAppEvent::WorkerBroken { why, .. } = front.app_event() else { panic!("not broken") };
    assert!(why.contains("a file beyond the end of all files"), "{why}");
}

/// The lengths of the head and of the frame are the worker's, and the file's is another.
#[test]
fn a_file_that_is_shorter_than_announced_is_cut_off() {
    let file = File::open("Cargo.toml").unwrap();
    let length = file.metadata().unwrap().len();
    for (announced, framed) in [(length + 1, length), (length + 1, length + 1), (u64::MAX, u64::MAX)] {
        for range in ["", "Range: bytes=10-\r\n", "Range: bytes=-1\r\n"] {
            let front = Front::start();
            let worker = front.worker(1);
            let mut client = front.connect();
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{range}\r\n"));
            let mut job = worker.claim();
            let fields = [("content-length", &*announced.to_string())];
            job.raw(&frame(Kind::Head, &head_payload(200, IS_FILE, &fields)));
            job.file(&file, 0, framed).end();
            let (answer, _) = client.rest();
            let body =
                answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| answer.len() - at - 4);
            assert!((body as u64) <= length, "{announced} {framed} {range:?}: {body}");
            let mut client = front.get("/");
            worker.claim().answer("good");
            assert_eq!(client.answer().body, b"good");
        }
    }
}

/// Writes into the ring's memory behind the back of its code.
fn scribble(worker: &FakeWorker, at: usize, bytes: &[u8]) {
    assert_eq!(rustix::io::pwrite(&worker.memory, bytes, at as u64).unwrap(), bytes.len());
}

fn control_at(worker: &FakeWorker, slot: u16) -> usize {
    worker.ring.geometry().control_at(slot)
}

#[test]
fn impossible_counters_are_breaches() {
    for written in [64 * 1024 + 1, u32::MAX, 1 << 31] {
        breach("more than the area holds", |job, worker| {
            scribble(worker, control_at(worker, job.slot) + WRITTEN, &written.to_le_bytes());
            worker.ring.publish(job.slot, written);
        });
    }
}

#[test]
fn an_answer_to_what_was_not_begun_is_a_breach_and_the_request_goes_elsewhere() {
    let front = Front::start();
    let bad = front.worker(1);
    let mut client = front.connect();
    client.post("/", b"x");
    front.until("it is placed", |report| report.apps[0].workers[0].placed == 1);
    let answer = [head(200, &[]), frame(Kind::End, b"")].concat();
    bad.ring.write(0, 0, &answer);
    bad.ring.publish(0, answer.len() as u32);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerBroken { .. }));
    front.worker(1).answers(&mut client, "by another, although it is a POST");
}

#[test]
fn what_a_broken_worker_had_begun_is_repeated_if_it_may_be() {
    let front = Front::start();
    let bad = front.worker(3);
    let mut get = front.get("/get");
    let mut bad_job = bad.claim();
    let mut streaming = front.get("/streaming");
    bad.claim().head(200, &[]).body(b"some");
    assert_eq!(streaming.answer_head().status, 200);
    let mut post = front.connect();
    post.post("/post", b"");
    bad.claim();
    bad_job.raw(&[8, 0, 0, 0]);
    assert_eq!(post.answer().status, 502);
    assert_eq!(streaming.chunked(), None);
    let job = front.worker(1).claim();
    assert_eq!(job.path(), "/get");
    job.answer("repeated");
    assert_eq!(get.answer().text(), "repeated");
}

#[test]
fn a_worker_that_lets_nothing_be_taken_back_does_not_hold_up_the_others() {
    let front = Front::start();
    let bad = front.worker(3);
    let _clients = [front.get("/"), front.get("/")];
    let jobs = [bad.claim(), bad.claim()];
    let _third = front.get("/");
    front.until("a third is placed", |report| report.apps[0].workers[0].placed == 1);
    // Not begun, as it seems, and yet not what was placed: to take it back fails.
    let position = jobs[1].position + 1;
    let word = Word { position, slot: 200, state: EntryState::Placed };
    scribble(&bad, ENTRIES_AT + 8 * position as usize, &word.pack().to_le_bytes());
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    for _ in 0..20 {
        assert_eq!(front.get("/").answer().text(), "good");
    }
    drop(good);
}

#[test]
fn a_worker_that_cries_wolf_does_not_hold_up_the_others() {
    let front = Front::start();
    let bad = front.worker(1);
    let _client = front.get("/");
    let _job = bad.claim();
    let stop = Arc::new(AtomicBool::new(false));
    let crying = {
        let (stop, memory) = (Arc::clone(&stop), bad.memory.try_clone().unwrap());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                rustix::io::pwrite(&memory, &[0xff; 32], READY as u64).unwrap();
                rustix::io::pwrite(&memory, &[1], FRONT_ASLEEP as u64).unwrap();
            }
        })
    };
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    for _ in 0..100 {
        assert_eq!(front.get("/").answer().text(), "good");
    }
    stop.store(true, Ordering::Relaxed);
    crying.join().unwrap();
    drop(good);
}

#[test]
fn a_worker_that_lies_about_its_places_gets_no_more_requests_than_its_largest_number_and_holds_up_no_other() {
    let front = Front::start();
    let bad = front.worker_of_range(1, 4);
    let _waiting: Vec<_> = (0..8).map(|_| front.get("/wait")).collect();
    let mut jobs = vec![bad.claim()];
    let stop = Arc::new(AtomicBool::new(false));
    let lying = {
        let (stop, memory) = (Arc::clone(&stop), bad.memory.try_clone().unwrap());
        std::thread::spawn(move || {
            for number in [0, 1, 4, 99, u32::MAX].into_iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                rustix::io::pwrite(&memory, &[number.to_le_bytes(); 2].concat(), PLACES as u64).unwrap();
                rustix::io::pwrite(&memory, &[0xff; 12], WANTED as u64).unwrap();
            }
        })
    };
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    for _ in 0..100 {
        assert_eq!(front.get("/").answer().text(), "good");
        jobs.extend(bad.try_claim());
    }
    stop.store(true, Ordering::Relaxed);
    lying.join().unwrap();
    assert!(jobs.len() <= 4, "it has {} requests", jobs.len());
    let worker = &front.report().apps[0].workers[0];
    assert!((1..=4).contains(&worker.threads), "the report says {} threads", worker.threads);
    drop(good);
}

#[test]
fn a_worker_without_its_descriptor_socket_is_broken_and_the_body_goes_elsewhere() {
    let front = Front::start();
    let geometry = highball_front::geometry(&front.settings.limits, &front.settings.apps[0]);
    let (ring, fds) = highball_ring::create(geometry).unwrap();
    drop(fds);
    let new = NewWorker { worker: 100, generation: 1, ring };
    front.tell_app(AppCommand::AddWorker(new));
    let mut client = front.connect();
    client.post("/", &[b'x'; 200_000]);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerBroken { worker: 100, .. }));
    let job = front.worker(1).claim();
    assert_eq!(job.body.len(), 200_000);
    job.answer("by another");
    assert_eq!(client.answer().text(), "by another");
}

/// Frames as they might come, and some that must not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => (100u16..600).prop_map(|status| head(status, &[("x-a", "b")])),
        2 => Just(head(200, &[("content-length", "20")])),
        1 => Just(head(200, &[("transfer-encoding", "chunked")])),
        6 => bytes().prop_map(|payload| frame(Kind::Body, &payload)),
        1 => Just(frame(Kind::Body, b"5\r\nhello\r\n0\r\n\r\n")),
        3 => Just(frame(Kind::End, b"")),
        1 => Just(frame(Kind::Abort, b"")),
        1 => Just(frame(Kind::Failure, b"{}")),
        1 => Just(frame(Kind::Hijack, b"")),
        1 => Just(frame(Kind::Stream, b"")),
        1 => any::<[u8; 16]>().prop_map(|payload| frame(Kind::File, &payload)),
        1 => bytes().prop_map(|payload| frame(Kind::Head, &payload)),
        2 => bytes(),
    ]
}

#[test]
fn whatever_a_worker_writes_its_client_gets_an_end_and_others_their_answers() {
    let front = Front::start();
    let cases = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (prop::collection::vec(any_frame(), 0..8), prop::collection::vec(1usize..50, 0..10));
    proptest!(cases, |((frames, cuts) in strategy)| {
        let bad = front.worker(1);
        let mut client = front.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let mut job = bad.claim();
        let bytes = frames.concat();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            job.raw(piece);
            rest = after;
        }
        job.raw(rest);
        front.remove(&bad);
        drop((job, bad)); // with the end of a connection that it has taken over
        let (answer, _) = client.rest();
        prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "));
        let good = front.worker(1);
        let mut client = front.get("/");
        good.claim().answer("good");
        prop_assert_eq!(client.answer().body, b"good");
        front.remove(&good);
    });
    assert_eq!(front.report().apps[0].queue, 0);
}
