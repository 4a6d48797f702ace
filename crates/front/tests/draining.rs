//! Stopping: everything that was accepted is answered, and then nothing is left.
#![allow(clippy::disallowed_methods)] // the files are a test's own

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use highball_config::Bind;
use highball_front::{adopt, Opening};
use highball_link::{FrontAppEvent, FrontCommand, FrontEvent};
use support::{eventually, Client, FakeWorker, Front};

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
    front.until("all are there", |report| report.server.connections == 5 && report.apps[0].queue == 2);
    front.tell(FrontCommand::Drain);
    eventually("the port is closed", || TcpStream::connect(("127.0.0.1", front.port)).is_err());
    arriving.send("dy");
    front.until("the last has arrived", |report| report.apps[0].queue == 3);
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
    assert!(matches!(front.event(), FrontEvent::Drained));
    assert_eq!(front.report().server.connections, 0);
}

#[test]
fn what_is_in_the_backlog_is_served() {
    let front = Front::with(|settings| settings.limits.connections = 10);
    let _serving = front.worker(1).serve(1, |job| job.answer("served"));
    let mut clients: Vec<Client> = (0..400).map(|_| front.get("/")).collect();
    front.tell(FrontCommand::Drain);
    for client in &mut clients {
        assert_eq!(client.answer().text(), "served");
    }
    drop(clients);
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut used = front.get("/");
    worker.claim().answer("");
    used.answer();
    let mut silent = front.connect();
    front.until("both are there", |report| report.server.connections == 2);
    front.tell(FrontCommand::Drain);
    assert!(used.has_ended() && silent.has_ended());
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn what_was_handed_over_has_time_for_one_more_answer() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut used = front.get("/");
    worker.claim().answer("");
    used.answer();
    front.tell(FrontCommand::HandOver { kept: Vec::new() });
    eventually("the port is closed", || TcpStream::connect(("127.0.0.1", front.port)).is_err());
    // Longer than an idle connection has while the server stops.
    used.stays_quiet(Duration::from_millis(1500));
    used.get("/");
    worker.claim().answer("its last");
    let last = used.answer();
    assert_eq!((last.text(), last.field("connection")), ("its last", Some("close")));
    assert!(used.has_ended());
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn what_was_handed_over_and_asks_for_nothing_ends_with_the_time_for_draining() {
    let front = Front::with(|settings| settings.drain_timeout = Duration::from_millis(300));
    let mut idle = front.connect();
    front.until("it is there", |report| report.server.connections == 1);
    front.tell(FrontCommand::HandOver { kept: Vec::new() });
    assert!(idle.has_ended());
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn a_stop_after_the_handing_over_waits_no_longer_for_idle_connections() {
    let front = Front::start();
    let mut idle = front.connect();
    front.until("it is there", |report| report.server.connections == 1);
    front.tell(FrontCommand::HandOver { kept: Vec::new() });
    front.tell(FrontCommand::Drain);
    assert!(idle.has_ended());
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn a_socket_that_another_front_accepts_from_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let bind = Bind::unix(path.clone());
    let listener = highball_front::bind(&bind).unwrap();
    let (address, shared) = (listener.address(), listener.share().unwrap());
    let front = Front::on(vec![listener], Opening::AtOnce);
    let new = Front::on(vec![adopt(&bind, shared).unwrap()], Opening::OnCommand);
    let worker = front.worker(1);
    let mut client = Client::unix(&path);
    client.get("/");
    worker.claim().answer("old");
    assert_eq!(client.answer().text(), "old");

    front.tell(FrontCommand::HandOver { kept: vec![address] });
    drop(client);
    assert!(matches!(front.event(), FrontEvent::Drained));
    // This one is not accepted before the new front gets the command.
    let mut client = Client::unix(&path);
    client.get("/");
    let worker = new.worker(1);
    new.tell(FrontCommand::Open);
    worker.claim().answer("new");
    assert_eq!(client.answer().text(), "new");
    new.tell(FrontCommand::Drain);
    assert!(matches!(new.event(), FrontEvent::Drained));
    assert!(!path.exists());
}

#[test]
fn one_that_never_opened_leaves_the_socket_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let bind = Bind::unix(path.clone());
    let listener = highball_front::bind(&bind).unwrap();
    let shared = listener.share().unwrap();
    let front = Front::on(vec![listener], Opening::AtOnce);
    let new = Front::on(vec![adopt(&bind, shared).unwrap()], Opening::OnCommand);
    new.tell(FrontCommand::Drain);
    assert!(matches!(new.event(), FrontEvent::Drained));
    drop(new);
    let worker = front.worker(1);
    let mut client = Client::unix(&path);
    client.get("/");
    worker.claim().answer("still here");
    assert_eq!(client.answer().text(), "still here");
}

#[test]
fn hijacked_connections_end_when_their_time_is_over() {
    let limit = Duration::from_millis(300);
    let front = Front::with(|settings| settings.hijacked_drain_timeout = limit);
    let worker = front.worker(1);
    let mut client = front.get("/");
    let mut job = worker.claim();
    let mut application = job.hijack();
    job.end();
    front.until("it is hijacked", |report| report.server.hijacked == 1);
    front.tell(FrontCommand::Drain);
    assert!(client.has_ended());
    assert_eq!(application.read(&mut [0; 1]).unwrap(), 0);
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn a_worker_that_retires_waits_for_the_connections_that_it_has_taken_over() {
    let limit = Duration::from_millis(300);
    let front = Front::with(|settings| settings.hijacked_drain_timeout = limit);
    let (worker, other) = (front.worker(1), front.worker(1));
    let take_over = |front: &Front, worker: &FakeWorker| {
        let client = front.get("/");
        let mut job = worker.claim();
        let application = job.hijack();
        job.end();
        (client, application)
    };
    let (mut client, mut application) = take_over(&front, &worker);
    let (mut others_client, mut others_application) = {
        front.until("it is hijacked", |report| report.server.hijacked == 1);
        front.retire(&worker);
        take_over(&front, &other)
    };
    // It learns of its end only after the connection's.
    assert!(client.has_ended());
    assert_eq!(application.read(&mut [0; 1]).unwrap(), 0);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerIdle { .. }));
    // The other worker's goes on.
    others_application.write_all(b"x").unwrap();
    assert_eq!(others_client.read_exact(1), b"x");
}

#[test]
fn hijacked_connections_count() {
    let front = Front::start();
    let worker = front.worker(1);
    let client = front.get("/");
    let mut job = worker.claim();
    let application = job.hijack();
    job.end();
    front.until("it is hijacked", |report| report.server.hijacked == 1);
    front.tell(FrontCommand::Drain);
    eventually("the port is closed", || TcpStream::connect(("127.0.0.1", front.port)).is_err());
    assert_eq!(front.report().server.hijacked, 1);
    assert!(front.events().is_empty());
    drop((application, client));
    assert!(matches!(front.event(), FrontEvent::Drained));
}

#[test]
fn without_clients_the_end_is_at_once() {
    let front = Front::start();
    front.tell(FrontCommand::Drain);
    assert!(matches!(front.event(), FrontEvent::Drained));
}
