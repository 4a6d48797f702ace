//! Requests and answers on a connection, with a worker that is played by the test.
#![allow(clippy::disallowed_methods)] // the files are a test's own

use std::time::Duration;

use crate::support::{pattern, Client, Front};
use highball_config::Bind;

#[test]
fn a_chunked_body_is_whole_before_a_worker_sees_it() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    front.until("the connection is there", |report| report.server.connections == 1);
    assert!(worker.try_claim().is_none());
    client.send("6;x=y\r\n there!\r\n0\r\nTrailer: t\r\n\r\n".replace("6;", "7;"));
    let job = worker.claim();
    assert_eq!(job.body, b"hello there!");
    assert_eq!(job.env["CONTENT_LENGTH"], "12");
    job.answer("");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn bodies_up_to_a_mebibyte_touch_no_disk() {
    let front = Front::start();
    let worker = front.worker(1);
    let body = pattern((1 << 20) + 1);
    for (length, on_disk) in [(65_537, false), (1 << 20, false), ((1 << 20) + 1, true)] {
        let (mut client, mut chunked) = (front.connect(), front.connect());
        client.post("/", &body[..length]);
        let job = worker.claim();
        assert!(job.spooled && job.body == body[..length]);
        assert_eq!(front.has_file_on_disk(), on_disk, "with {length} bytes");
        job.answer("");
        assert_eq!(client.answer().status, 200);
        chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in body[..length].chunks(100_000) {
            chunked.send(format!("{:x}\r\n", piece.len()));
            chunked.send(piece);
            chunked.send("\r\n");
        }
        chunked.send("0\r\n\r\n");
        let job = worker.claim();
        assert!(job.spooled && job.body == body[..length]);
        assert_eq!(front.has_file_on_disk(), on_disk, "with {length} bytes in chunks");
        job.answer("");
        assert_eq!(chunked.answer().status, 200);
    }
}

#[test]
fn answers_without_bodies_stay_without() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404)] {
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut job = worker.claim();
        job.head(status, &[("content-type", "text/plain")]).body(b"not to be seen").end();
        assert_eq!(client.answer_head().status, status);
    }
    client.get("/");
    worker.answers(&mut client, "seen");
}

#[test]
fn an_answer_to_head_may_say_that_it_would_be_chunked() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    for (method, status) in [("HEAD", 200), ("GET", 304)] {
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        worker.claim().head(status, &[("transfer-encoding", "chunked")]).end();
        assert_eq!(client.answer_head().status, status);
    }
    client.get("/");
    worker.answers(&mut client, "the connection was kept");
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answers() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET");
    client.end_writing();
    let job = worker.claim();
    front.until("the worker has it", |report| report.apps[0].workers[0].in_flight == 1);
    job.answer("one");
    worker.claim().answer("two");
    assert_eq!(client.answer().text(), "one");
    assert_eq!(client.answer().text(), "two");
    assert!(client.has_ended());
}

/// A client that has sent this request, and ended its side.
fn queued_and_half_closed(front: &Front, request: &str) -> Client {
    let mut client = front.connect();
    client.send(request);
    client.end_writing();
    front.until("it is queued", |report| report.apps[0].queue == 1);
    client
}

#[test]
fn a_client_that_ends_its_side_while_it_is_queued_is_answered() {
    let front = Front::start();
    let mut client = queued_and_half_closed(&front, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_head().status, 100);
    client.stays_quiet(Duration::from_millis(500));
    assert_eq!(front.report().apps[0].queue, 1);
    front.worker(1).answers(&mut client, "late");
    assert!(client.has_ended());
}

#[test]
fn an_old_client_that_ends_its_side_while_it_is_queued_gets_its_answer_alone() {
    let front = Front::start();
    let mut client = queued_and_half_closed(&front, "GET / HTTP/1.0\r\n\r\n");
    client.stays_quiet(Duration::from_millis(500));
    front.worker(1).answers(&mut client, "late");
}

#[test]
fn a_client_that_closes_its_unix_socket_leaves_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let front = Front::with(|settings| settings.binds.push(Bind::unix(path.clone())));
    let mut client = Client::unix(&path);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    front.until("it is queued", |report| report.apps[0].queue == 1);
    drop(client);
    front.until("it has left", |report| report.apps[0].queue == 0);
}

#[test]
fn what_is_malformed_is_refused_and_what_came_before_answered() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost : a\r\n\r\n");
    worker.answers(&mut client, "good");
    let refused = client.answer();
    assert_eq!((refused.status, refused.field("connection")), (400, Some("close")));
    assert!(client.has_ended());
}

#[test]
fn clients_may_take_only_so_long() {
    let front = Front::with(|settings| {
        settings.limits.head_timeout = Duration::from_millis(100);
        settings.limits.body_timeout = Duration::from_millis(100);
    });
    let worker = front.worker(1);
    let (mut slow_head, mut slow_body) = (front.connect(), front.connect());
    slow_head.send("GET / HT");
    slow_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbo");
    assert_eq!(slow_head.answer().status, 408);
    assert_eq!(slow_body.answer().status, 408);
    assert!(slow_head.has_ended() && slow_body.has_ended());
    let mut pipelining = front.connect();
    pipelining.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT");
    worker.claim().answer("");
    assert_eq!(pipelining.answer().status, 200);
    assert_eq!(pipelining.answer().status, 408);
    front.until("all are gone", |report| report.server.connections == 0);
}

#[test]
fn the_name_of_the_server_is_the_address_that_the_client_has_connected_to() {
    let bound_to = [("0.0.0.0:0", "127.0.0.1", "127.0.0.1"), ("[::]:0", "127.0.0.1", "127.0.0.1")];
    let bound_to = bound_to.into_iter().chain([("[::]:0", "::1", "[::1]"), ("[::1]:0", "::1", "[::1]")]);
    for (address, reached_at, name) in bound_to {
        let address = address.parse().unwrap();
        if highball_front::bind(&Bind::tcp(address)).is_err() {
            eprintln!("{address} is left out: there is no such address here");
            continue;
        }
        let front = Front::with(|settings| settings.binds = vec![Bind::tcp(address)]);
        let worker = front.worker(1);
        let mut client = Client::tcp_at(reached_at, front.port);
        client.send("GET / HTTP/1.0\r\n\r\n");
        let job = worker.claim();
        let port = front.port.to_string();
        assert_eq!((job.env["SERVER_NAME"].as_str(), job.env["SERVER_PORT"].as_str()), (name, port.as_str()));
        job.answer("");
        client.answer();
    }
}

#[test]
fn beyond_the_limit_connections_wait() {
    let front = Front::with(|settings| settings.limits.connections = 2);
    let worker = front.worker(3);
    let mut one = front.get("/one");
    let first = worker.claim();
    let mut two = front.get("/two");
    let second = worker.claim();
    let mut third = front.get("/");
    third.stays_silent(Duration::from_millis(50));
    assert!(worker.try_claim().is_none());
    first.answer("first");
    assert_eq!(one.answer().text(), "first");
    worker.answers(&mut third, "after all");
    assert_eq!(front.report().server.connections, 2);
    second.answer("in time");
    assert_eq!(two.answer().text(), "in time");
}

#[test]
fn at_the_limit_a_new_connection_is_served_as_soon_as_one_is_idle() {
    let front = Front::with(|settings| settings.limits.connections = 1);
    let worker = front.worker(2);
    let mut first = front.get("/first");
    let job = worker.claim();
    let mut second = front.get("/second");
    second.stays_silent(Duration::from_millis(50));
    job.answer("first");
    assert_eq!(first.answer().text(), "first");
    worker.answers(&mut second, "second");
    assert!(first.has_ended());
}

#[test]
fn every_listener_learns_of_room_for_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let front = Front::with(|settings| {
        settings.limits.connections = 1;
        settings.binds.push(Bind::unix(path.clone()));
    });
    let _serving = front.worker(1).serve(1, |job| job.answer("served"));
    for _ in 0..2 {
        let mut by_tcp = front.connect();
        by_tcp.send("GET / HTTP");
        front.until("it is there", |report| report.server.connections == 1);
        let mut by_path = Client::unix(&path);
        by_path.get("/");
        drop(by_tcp);
        assert_eq!(by_path.answer().text(), "served");
    }
}

#[test]
fn the_largest_head_with_the_largest_body_fits_into_a_slot() {
    let front = Front::start();
    let worker = front.worker(1);
    let limits = &front.settings.limits;
    let body = vec![b'x'; limits.body_memory_bytes];
    let target = format!("/{}?{}", "a".repeat(limits.target_bytes / 2), "b".repeat(limits.target_bytes / 3));
    let start = format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\nHost: ", body.len());
    let rest = limits.head_bytes - start.len() - 4;
    let host = "h".repeat(rest);
    let mut fields = String::new();
    while fields.len() + 5 < rest && fields.len() / 5 < limits.header_fields - 2 {
        fields += "\r\nx:y";
    }
    for head in [format!("{start}{host}\r\n\r\n"), format!("{start}a{fields}\r\n\r\n")] {
        let mut client = front.connect();
        client.send(&head);
        client.send(&body);
        let job = worker.claim();
        assert!(job.body == body && !job.spooled);
        job.answer("fits");
        assert_eq!(client.answer().status, 200);
    }
}
