//! Stopping: everything that was accepted is answered, and then nothing is left.
#![allow(clippy::disallowed_methods)] // the files are a test's own

use std::net::TcpStream;

use crate::support::{eventually, Client, Front};
use highball_config::Bind;
use highball_front::{adopt, Opening};
use highball_link::{FrontCommand, FrontEvent};

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
    worker.answers(&mut client, "still here");
}
