//! No file descriptors left: it costs what cannot be done without them, and nothing else. Alone in its process,
//! because it uses them all up.
#![allow(clippy::disallowed_methods)] // the files are a test's own

mod support;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use support::{frame, Front};

/// All descriptors that were left.
struct Rest(Vec<OwnedFd>);

impl Rest {
    fn take() -> Rest {
        let mut taken = vec![OwnedFd::from(File::open("/dev/null").unwrap())];
        while let Ok(another) = rustix::io::dup(&taken[0]) {
            taken.push(another);
        }
        Rest(taken)
    }

    /// Gives this number back.
    fn give_back(&mut self, count: usize) {
        self.0.truncate(self.0.len() - count);
    }
}

#[test]
fn the_front_lives_without_file_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), ..limit }).unwrap();
    let front = Front::start();
    let worker = front.worker(2);
    let mut downloading = front.get("/file");
    let mut job = worker.claim();

    // A connection has to wait.
    let mut rest = Rest::take();
    rest.give_back(1);
    let mut client = front.connect();
    client.get("/accepted");
    client.stays_silent(Duration::from_millis(150));
    rest.give_back(1);
    worker.answers(&mut client, "accepted at last");

    // A new connection takes the place of an idle one.
    rest.give_back(1);
    let mut uploading = front.connect();
    assert!(client.has_ended(), "it was idle");
    uploading.get("/accepted");
    worker.answers(&mut uploading, "in its place");

    // A body cannot be stored, or its file not be opened for the worker, and no worker is to blame.
    for given in [0, 1] {
        rest.give_back(given);
        uploading.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
        uploading.send(vec![b'x'; 200_000]);
        assert_eq!(uploading.answer().status, 500);
        drop((rest, uploading));
        front.until("its descriptor is free", |report| report.server.connections == 1);
        uploading = front.connect();
        front.until("it is there", |report| report.server.connections == 2);
        rest = Rest::take();
    }

    // A worker's file cannot be received.
    job.head(200, &[]).send_descriptor(std::io::stdin());
    job.raw(&frame(highball_ring::frame::Kind::File, &[1; 16])).end();
    assert_eq!(downloading.answer_head().status, 200);
    assert_eq!(downloading.chunked(), None);

    drop(rest);
    let mut client = front.get("/after");
    worker.answers(&mut client, "as before");
    assert!(front.events().is_empty(), "a worker was blamed");
}
