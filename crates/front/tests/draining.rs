//! Stopping: everything that was accepted is answered, and then nothing is left.

mod support;

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use highball_front::{Command, Event};
use support::{eventually, Client, Front};

#[test]
fn everything_that_was_asked_is_answered() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut begun = front.get("/begun");
    let job = worker.claim();
    let mut queued = front.get("/queued");
    let mut arriving = front.connect();
    arriving.send("POST /arriving HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    let mut pipelined = front.connect();
    pipelined.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut idle = front.connect();
    front.until("all are there", |report| report.connections == 5 && report.queue == 2);
    front.tell(Command::Drain);
    eventually("nobody listens any more", || TcpStream::connect(("127.0.0.1", front.port)).is_err());
    arriving.send("dy");
    front.until("the last has arrived", |report| report.queue == 3);
    job.answer("begun");
    assert_eq!(begun.answer().text(), "begun");
    for _ in 0..3 {
        let job = worker.claim();
        let path = job.path().to_owned();
        job.answer(&path);
    }
    assert_eq!(queued.answer().text(), "/queued");
    assert_eq!(arriving.answer().text(), "/arriving");
    let first = pipelined.answer();
    assert_eq!((first.text(), first.field("connection")), ("/1", Some("close")));
    assert!(pipelined.has_ended());
    idle.get("/idle");
    worker.claim().answer("its last");
    assert_eq!(idle.answer().field("connection"), Some("close"));
    drop((begun, queued, arriving));
    assert!(matches!(front.event(), Event::Drained));
    assert_eq!(front.report().connections, 0);
}

#[test]
fn what_is_in_the_backlog_is_served() {
    let front = Front::with(|settings| settings.limits.connections = 10);
    let _serving = front.worker(1).serve(1, |job| job.answer("served"));
    let mut clients: Vec<Client> = (0..400).map(|_| front.get("/")).collect();
    front.tell(Command::Drain);
    for client in &mut clients {
        assert_eq!(client.answer().text(), "served");
    }
    drop(clients);
    assert!(matches!(front.event(), Event::Drained));
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut used = front.get("/");
    worker.claim().answer("");
    used.answer();
    let mut silent = front.connect();
    front.until("both are there", |report| report.connections == 2);
    front.tell(Command::Drain);
    assert!(used.has_ended() && silent.has_ended());
    assert!(matches!(front.event(), Event::Drained));
}

#[test]
fn hijacked_connections_count() {
    let front = Front::start();
    let worker = front.worker(1);
    let client = front.get("/");
    let mut job = worker.claim();
    let (application, theirs) = UnixStream::pair().unwrap();
    job.hijack(theirs).end();
    front.until("it is hijacked", |report| report.hijacked == 1);
    front.tell(Command::Drain);
    eventually("nobody listens any more", || TcpStream::connect(("127.0.0.1", front.port)).is_err());
    assert_eq!(front.report().hijacked, 1);
    assert!(front.events().is_empty());
    drop((application, client));
    assert!(matches!(front.event(), Event::Drained));
}

#[test]
fn without_clients_the_end_is_at_once() {
    let front = Front::start();
    front.tell(Command::Drain);
    assert!(matches!(front.event(), Event::Drained));
}
