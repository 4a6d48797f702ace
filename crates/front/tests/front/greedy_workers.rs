//! Workers that would have the front for themselves: it does not wait for them, nor stay with them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::support::{frame, Front};
use highball_ring::frame::Kind;

#[test]
fn an_answer_without_end_that_is_dropped_leaves_others_their_turn() {
    let front = Front::start();
    let greedy = front.worker(1);
    let mut client = front.connect();
    // No body is sent for it, so there is always room for more.
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut job = greedy.claim();
    job.head(200, &[]);
    let stop = Arc::new(AtomicBool::new(false));
    let writing = {
        let stop = Arc::clone(&stop);
        // Many small frames: for the front more work than for the one who writes them.
        let frames = frame(Kind::Body, b"").repeat(8 * 1024);
        std::thread::spawn(move || {
            let mut done = 0;
            while !stop.load(Ordering::Relaxed) {
                done = (done + job.try_raw(&frames[done..])) % frames.len();
            }
        })
    };
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    for _ in 0..100 {
        assert_eq!(front.get("/").answer().text(), "good");
    }
    stop.store(true, Ordering::Relaxed);
    writing.join().unwrap();
    drop(good);
}

#[test]
fn a_hijacked_connection_that_the_application_does_not_read_blocks_no_other() {
    let front = Front::start();
    let greedy = front.worker(1);
    let mut client = front.get("/");
    let mut job = greedy.claim();
    let application = job.hijack();
    job.end();
    front.until("it is hijacked", |report| report.server.hijacked == 1);
    // More than all the buffers on the way hold, and the application does not read it.
    std::thread::spawn(move || client.send("x".repeat(64 << 20)));
    let good = front.worker(1).serve(1, |job| job.answer("good"));
    for _ in 0..100 {
        assert_eq!(front.get("/").answer().text(), "good");
    }
    drop((good, application));
}
