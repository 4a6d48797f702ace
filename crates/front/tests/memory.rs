//! How much memory the front takes. One test at a time: they look at the whole process.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::{eventually, pattern, private_bytes, Front};

const MIB: usize = 1024 * 1024;

static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn an_answer_larger_than_all_buffers_comes_with_back_pressure() {
    let _alone = ALONE.lock();
    let front = Front::with(|settings| settings.limits.response_spool_bytes = 0);
    let worker = front.worker(1);
    let mut client = front.get("/");
    let mut job = worker.claim();
    let before = private_bytes();
    let (piece, sent) = (Arc::new(pattern(MIB)), Arc::new(AtomicUsize::new(0)));
    let (for_thread, counted) = (Arc::clone(&piece), Arc::clone(&sent));
    let writer = std::thread::spawn(move || {
        job.head(200, &[]);
        for _ in 0..100 {
            job.body(&for_thread);
            counted.fetch_add(1, Ordering::Relaxed);
        }
        job.end();
    });
    assert_eq!(client.answer_head().field("transfer-encoding"), Some("chunked"));
    // The client takes nothing more for a while: the worker must come to a halt.
    let mut last = (0, Instant::now());
    eventually("the worker waits", || {
        let now = sent.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(300)
    });
    assert!(sent.load(Ordering::Relaxed) < 20, "the worker was not held back");
    let mut received = 0;
    while let Some(chunk) = client.chunk().expect("the whole body") {
        let mut rest = &chunk[..];
        while !rest.is_empty() {
            let at = received % MIB;
            let (part, behind) = rest.split_at(rest.len().min(MIB - at));
            assert!(part == &piece[at..at + part.len()], "at {received}");
            received += part.len();
            rest = behind;
        }
    }
    assert_eq!(received, 100 * MIB);
    writer.join().unwrap();
    let grown = private_bytes().saturating_sub(before);
    assert!(grown < 16 * MIB as u64, "{grown} bytes of memory");
}

#[test]
fn idle_connections_take_little_memory() {
    const CONNECTIONS: usize = 400;
    let _alone = ALONE.lock();
    let front = Front::start();
    let _serving = front.worker(1).serve(1, |job| job.answer_bytes(&[b'x'; 100_000]));
    let mut answer = vec![0; 200_000];
    let mut connect_and_ask = || {
        let mut client = TcpStream::connect(("127.0.0.1", front.port)).unwrap();
        client.set_read_timeout(Some(support::PATIENCE)).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut received = 0;
        while received < 100_000 {
            received += client.read(&mut answer).unwrap();
        }
        client
    };
    let _first: Vec<_> = (0..10).map(|_| connect_and_ask()).collect();
    let before = private_bytes();
    let _clients: Vec<_> = (0..CONNECTIONS).map(|_| connect_and_ask()).collect();
    front.until("all are there", |report| report.server.connections == CONNECTIONS + 10);
    let each = private_bytes().saturating_sub(before) / CONNECTIONS as u64;
    assert!(each < 10_000, "{each} bytes for each");
}
