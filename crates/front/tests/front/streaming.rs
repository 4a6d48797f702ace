//! Answers of any size at any speed, files, and connections that the application takes over.
#![allow(clippy::disallowed_methods)] // the files are a test's own

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{pattern, Client, Front, Job};

const MIB: usize = 1024 * 1024;

fn pattern_file(front: &Front, length: usize) -> (File, Vec<u8>) {
    let bytes = pattern(length);
    let path = front.folder().join("file");
    std::fs::write(&path, &bytes).unwrap();
    (File::open(path).unwrap(), bytes)
}

#[test]
fn what_a_slow_client_does_not_take_goes_to_a_file() {
    let front = Front::start();
    let worker = front.worker(1);
    let body = pattern(20 * MIB);
    let mut slow = front.get("/");
    worker.claim().answer_bytes(&body);
    front.until("the worker is free", |report| report.apps[0].workers[0].in_flight == 0);
    assert!(slow.answer().body == body);
}

/// Of the memory that every answer may have, whatever the others hold, what was sent is free for the rest.
#[test]
fn an_answer_goes_on_where_others_hold_all_the_memory() {
    let front = Front::with(|settings| {
        settings.limits.buffer_bytes = 64 * 1024;
        settings.limits.response_spool_bytes = 0;
    });
    let worker = front.worker(2);
    let body = pattern(8 * MIB);
    let mut slow = front.get("/");
    let (job, for_slow) = (worker.claim(), body.clone());
    let answering = std::thread::spawn(move || job.answer_bytes(&for_slow));
    front.until("no memory is left", |report| report.server.buffer_bytes >= report.server.max_buffer_bytes);
    let mut other = front.get("/");
    worker.claim().answer_bytes(&body[..MIB / 4]);
    assert!(other.answer().body == body[..MIB / 4]);
    assert!(slow.answer().body == body);
    answering.join().unwrap();
}

/// In all they have a mebibyte of memory, and each the rest of its answer in a file.
#[test]
fn slow_clients_share_a_budget_of_memory() {
    let front = Front::with(|settings| settings.limits.buffer_bytes = MIB as u64);
    let worker = front.worker(1);
    let body = pattern(10 * MIB); // more than the kernel takes for them
    let mut slow: Vec<Client> = (0..6).map(|_| front.get("/")).collect();
    let for_worker = body.clone();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answered);
    let serving = worker.serve(1, move |job| {
        job.answer_bytes(&for_worker);
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let most = Cell::new(0);
    front.until("the worker has answered all of them", |report| {
        most.set(report.server.buffer_bytes.max(most.get()));
        answered.load(Ordering::Relaxed) == 6
    });
    assert!(most.get() < 2 * MIB as u64, "{} bytes in memory", most.get());
    front.until("the rest is in files", |report| report.server.spool_bytes > MIB as u64);
    slow.iter_mut().for_each(|client| assert!(client.answer().body == body));
    drop(serving);
    front.until("all is given back", |report| {
        report.server.buffer_bytes == 0 && report.server.spool_bytes == 0
    });
}

/// Where there is no memory, bodies go to the disk, and where there is no room there, they are refused.
#[test]
fn uploads_share_budgets_of_memory_and_of_the_disk() {
    let front = Front::with(|settings| {
        settings.limits.buffer_bytes = MIB as u64;
        settings.limits.spool_bytes = Some(MIB as u64);
    });
    let body = pattern(600_000);
    let mut queued: Vec<Client> = (1..=2)
        .map(|number| {
            let mut client = front.connect();
            client.post("/", &body);
            front.until("it is queued", |report| report.apps[0].queue == number);
            client
        })
        .collect();
    front.until("the second one is on the disk", |report| {
        report.server.buffer_bytes == 600_000 && report.server.spool_bytes == 600_000
    });
    let mut refused = front.connect();
    refused.post("/", &body);
    let answer = refused.answer();
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("5")));
    let mut too_large = front.connect();
    too_large.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000000000\r\n\r\n");
    assert_eq!(too_large.answer().status, 413);
    let worker = front.worker(1);
    for client in &mut queued {
        let job = worker.claim();
        assert!(job.body == body);
        job.answer("stored");
        assert_eq!(client.answer().text(), "stored");
    }
    front.until("all is given back", |report| {
        report.server.buffer_bytes == 0 && report.server.spool_bytes == 0
    });
}

#[test]
fn beyond_its_limit_the_file_makes_the_worker_wait_and_go_on() {
    let front = Front::with(|settings| settings.limits.response_spool_bytes = MIB);
    let worker = front.worker(1);
    let body = pattern(30 * MIB);
    let mut slow = front.get("/");
    let writer = {
        let (mut job, body) = (worker.claim(), body.clone());
        std::thread::spawn(move || {
            job.head(200, &[]).body(&body[..20 * MIB]).body(&body[20 * MIB..]).end();
        })
    };
    assert_eq!(slow.answer_head().status, 200);
    let mut received = Vec::new();
    // In the middle of it the client takes another rest.
    slow.stays_quiet(Duration::from_millis(400));
    while received.len() < 15 * MIB {
        received.extend(slow.chunk().unwrap().unwrap());
    }
    slow.stays_quiet(Duration::from_millis(400));
    received.extend(slow.chunked().unwrap());
    assert!(received == body);
    writer.join().unwrap();
}

#[test]
fn streams_to_fast_clients_do_not_keep_others_waiting() {
    let front = Front::start();
    let streaming = front.worker(2);
    let jobs_wanted = 2;
    let mut readers: Vec<_> = (0..jobs_wanted).map(|_| front.get("/endless")).collect();
    let jobs: Vec<Job> = (0..jobs_wanted).map(|_| streaming.claim()).collect();
    let writers: Vec<_> = jobs
        .into_iter()
        .map(|mut job| {
            std::thread::spawn(move || {
                job.head(200, &[]);
                let piece = vec![b'x'; 60_000];
                while !job.is_cancelled() {
                    job.body(&piece);
                }
                job.abort();
            })
        })
        .collect();
    let quick = front.worker(1).serve(1, |job| job.answer("quick"));
    let stop = Arc::new(AtomicUsize::new(0));
    let reading: Vec<_> = readers
        .drain(..)
        .map(|mut client| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                client.answer_head();
                while stop.load(Ordering::Relaxed) == 0 {
                    assert!(client.chunk().unwrap().is_some());
                }
            })
        })
        .collect();
    let started = Instant::now();
    for _ in 0..50 {
        assert_eq!(front.get("/").answer().text(), "quick");
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    stop.store(1, Ordering::Relaxed);
    reading.into_iter().for_each(|thread| thread.join().unwrap());
    writers.into_iter().for_each(|thread| thread.join().unwrap());
    drop(quick);
}

#[test]
fn files_are_sent_between_pieces_of_the_body() {
    let front = Front::start();
    let worker = front.worker(1);
    let (file, bytes) = pattern_file(&front, 3 * MIB);
    let mut client = front.get("/");
    let mut job = worker.claim();
    let length = 7 + 2 * MIB + 6 + 100;
    job.head(200, &[("content-length", &length.to_string())]);
    job.body(b"before ").file(&file, 1000, 2 * MIB as u64).body(b" after").file(&file, 0, 100).end();
    let expected = [&b"before "[..], &bytes[1000..1000 + 2 * MIB], b" after", &bytes[..100]].concat();
    assert!(client.answer().body == expected);
    client.get("/");
    let mut job = worker.claim();
    job.head(200, &[]).body(b"x");
    assert_eq!(client.answer_head().field("transfer-encoding"), Some("chunked"));
    job.file(&file, 0, bytes.len() as u64).body(b"y").end();
    assert!(client.chunked().unwrap() == [&b"x"[..], &bytes, b"y"].concat());
}

#[test]
fn a_client_that_says_nothing_learns_that_the_application_has_left() {
    let front = Front::with(|settings| settings.limits.idle_timeout = Duration::from_millis(200));
    let worker = front.worker(1);
    let mut client = front.get("/");
    let mut job = worker.claim();
    let mut application = job.hijack();
    job.end();
    application.write_all(b"HTTP/1.1 200 OK\r\n\r\nbye").unwrap();
    drop(application);
    assert_eq!(client.rest(), (b"HTTP/1.1 200 OK\r\n\r\nbye".to_vec(), true));
    // The client keeps its side open, and the front must not wait for ever.
    front.until("it is gone", |report| report.server.connections == 0);
}
