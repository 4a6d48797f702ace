//! Answers that go on for long give their places back, and come over sockets.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::support::{eventually, frame, head_payload, the_app, Front, Job};
use highball_ring::frame::{Kind, STREAMS};
use rustix::net::{send, SendFlags};

/// An answer that has begun, and whose worker is asked to free its place.
fn begun(mut job: Job) -> OwnedFd {
    job.head(200, &[]).body(b"one");
    job.leave()
}

fn sends(socket: &OwnedFd, kind: Kind, payload: &[u8]) -> bool {
    send(socket, &frame(kind, payload), SendFlags::NOSIGNAL).is_ok()
}

#[test]
fn an_answer_goes_on_without_its_place() {
    let front = Front::start();
    let worker = front.worker(2);
    let mut client = front.get("/stream");
    let socket = begun(worker.claim());
    assert_eq!(client.answer_head().status, 200);
    assert_eq!(client.chunk(), Some(Some(b"one".to_vec())));
    front.until("its place is free", |report| {
        let worker = &report.apps[0].workers[0];
        (worker.in_flight, worker.streams) == (0, 1)
    });
    let mut other = front.get("/");
    worker.claim().answer("beside it");
    assert_eq!(other.answer().text(), "beside it");
    assert!(sends(&socket, Kind::Body, b"two"));
    assert_eq!(client.chunk(), Some(Some(b"two".to_vec())));
    assert!(sends(&socket, Kind::End, b""));
    assert_eq!(client.chunk(), Some(None), "the end");
    front.until("it has ended", |report| report.apps[0].workers[0].streams == 0);
    client.get("/again");
    worker.claim().answer("the connection is kept");
    assert_eq!(client.answer().text(), "the connection is kept");
}

#[test]
fn one_that_announces_it_leaves_at_once() {
    let front = Front::start();
    let worker = front.worker(2);
    let _client = front.get("/stream");
    let mut job = worker.claim();
    job.raw(&frame(Kind::Head, &head_payload(200, STREAMS, &[])));
    let _socket = job.leave();
    front.until("it has left", |report| report.apps[0].workers[0].streams == 1);
}

#[test]
fn what_is_no_frame_of_a_body_cuts_that_answer_off_alone() {
    let front = Front::start();
    let worker = front.worker(2);
    let bad = [
        b"garbage".to_vec(),
        frame(Kind::Hijack, b""),
        frame(Kind::File, &[0; 16]),
        frame(Kind::Stream, b""),
        frame(Kind::Head, &head_payload(200, 0, &[])),
        vec![2, 0xff, 0xff, 0xff],
    ];
    let mut good = front.get("/good");
    let good_socket = begun(worker.claim());
    for packet in bad {
        let mut client = front.get("/bad");
        let socket = begun(worker.claim());
        send(&socket, &packet, SendFlags::NOSIGNAL).unwrap();
        drop(socket);
        let (answer, _) = client.rest();
        assert!(!answer.ends_with(b"0\r\n\r\n"), "{packet:?}");
    }
    assert!(sends(&good_socket, Kind::Body, b"two") && sends(&good_socket, Kind::End, b""));
    assert_eq!(good.answer().body, b"onetwo");
    assert!(front.events().iter().all(|event| !format!("{event:?}").contains("WorkerBroken")));
}

#[test]
fn a_socket_that_closes_before_the_end_and_a_dead_worker_cut_it_off() {
    let front = Front::start();
    let worker = front.worker(2);
    // One after the other: the front may read the second connection first.
    let mut closed = front.get("/closed");
    drop(begun(worker.claim()));
    let mut orphaned = front.get("/orphaned");
    let kept_by_a_fork = begun(worker.claim());
    assert!(sends(&kept_by_a_fork, Kind::Body, b"two"));
    front.remove(&worker);
    for (client, last) in [(&mut closed, "one"), (&mut orphaned, "two")] {
        let text = String::from_utf8(client.rest().0).unwrap();
        assert!(text.contains(last) && !text.ends_with("0\r\n\r\n"), "{text}");
    }
}

#[test]
fn a_writer_waits_for_its_client_and_learns_that_it_has_left() {
    let front = Front::start();
    let worker = front.worker(2);
    let client = front.get("/stream");
    let socket = begun(worker.claim());
    let piece = frame(Kind::Body, &[b'x'; 16 * 1024]);
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let mut sent = 0;
    let mut waits = 0;
    while waits < 100 {
        match send(&socket, &piece, flags) {
            Ok(_) => (sent, waits) = (sent + 1, 0),
            Err(_) => {
                waits += 1;
                client.stays_quiet(Duration::from_millis(2));
            }
        }
    }
    assert!(sent < 1000, "{sent} pieces wait somewhere");
    assert_eq!(front.report().server.spool_bytes, 0);
    drop(client);
    eventually("the writer learns it", || {
        send(&socket, &piece, flags).is_err_and(|error| error == rustix::io::Errno::PIPE)
    });
}

#[test]
fn a_retiring_worker_waits_for_its_streams() {
    let front = Front::start();
    let worker = front.worker(2);
    let mut client = front.get("/stream");
    let socket = begun(worker.claim());
    front.until("it has left", |report| report.apps[0].workers[0].streams == 1);
    front.retire(&worker);
    client.answer_head();
    assert!(sends(&socket, Kind::End, b""));
    assert_eq!(client.chunked(), Some(b"one".to_vec()));
    eventually("the supervisor knows", || format!("{:?}", front.events()).contains("WorkerIdle"));
}

#[test]
fn a_worker_that_is_relieved_keeps_its_streams() {
    let front = Front::start();
    let worker = front.worker(2);
    let mut client = front.get("/stream");
    let socket = begun(worker.claim());
    front.until("it has left", |report| report.apps[0].workers[0].streams == 1);
    front.relieve(&worker);
    eventually("it is kept", || format!("{:?}", front.events()).contains("WorkerKept"));
    client.answer_head();
    assert!(sends(&socket, Kind::End, b""));
    assert_eq!(client.chunked(), Some(b"one".to_vec()));
    front.until("the stream has ended", |report| report.apps[0].workers[0].streams == 0);
    let mut next = front.get("/next");
    worker.claim().answer("it serves on");
    assert_eq!(next.answer().text(), "it serves on");
    front.relieve(&worker);
    eventually("it is idle", || format!("{:?}", front.events()).contains("WorkerIdle"));
}

#[test]
fn beyond_the_limit_it_is_refused_or_keeps_its_place_while_nothing_waits() {
    let front = Front::with(|settings| the_app(settings).limits.streams = 1);
    let worker = front.worker(2);
    let _first = front.get("/first");
    let _socket = begun(worker.claim());
    front.until("it has left", |report| report.apps[0].workers[0].streams == 1);
    let mut announced = front.get("/announced");
    let mut job = worker.claim();
    job.raw(&frame(Kind::Head, &head_payload(200, STREAMS, &[])));
    let refused = announced.answer();
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("5")));
    eventually("the writer learns it", || job.is_cancelled());
    job.end();
    let _busy = front.get("/busy");
    let mut busy = worker.claim();
    let mut surplus = front.get("/surplus");
    let mut job = worker.claim();
    job.head(200, &[]).body(b"one");
    surplus.answer_head();
    let mut waiting = front.get("/waiting");
    eventually("it is cut off for the other", || job.is_cancelled());
    job.end();
    worker.answers(&mut waiting, "served");
    busy.head(204, &[]).end();
}

#[test]
fn with_one_thread_it_keeps_its_place() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.get("/announced");
    let mut job = worker.claim();
    job.raw(&frame(Kind::Head, &head_payload(200, STREAMS, &[]))).body(b"one");
    client.answer_head();
    let mut waiting = front.get("/waiting");
    client.stays_quiet(Duration::from_millis(400));
    assert!(worker.ring.receive_descriptor().unwrap().is_none() && !job.is_cancelled());
    job.end();
    worker.answers(&mut waiting, "served");
    assert_eq!(client.chunked(), Some(b"one".to_vec()));
}

#[test]
fn a_worker_that_claims_to_have_countless_streams_gets_no_more_and_serves() {
    let front = Front::start();
    let worker = front.worker(2);
    let mut first = front.get("/first");
    let mut offered = worker.claim();
    offered.raw(&frame(Kind::Head, &head_payload(200, STREAMS, &[])));
    assert_eq!(first.answer_head().status, 200);
    worker.ring.set_left(u32::MAX, 0);
    let mut announced = front.get("/announced");
    let mut job = worker.claim();
    job.raw(&frame(Kind::Head, &head_payload(200, STREAMS, &[])));
    assert_eq!(announced.answer().status, 503);
    job.end();
    let mut other = front.get("/");
    worker.answers(&mut other, "served");
    let socket = offered.leave();
    assert!(sends(&socket, Kind::Body, b"one") && sends(&socket, Kind::End, b""));
    assert_eq!(first.chunked(), Some(b"one".to_vec()));
}
