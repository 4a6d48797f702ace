//! Requests and answers on a connection, with a worker that is played by the test.
#![allow(clippy::disallowed_methods)] // the files are a test's own

mod support;

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use highball_config::Bind;
use support::{eventually, pattern, Client, Front};

#[test]
fn hello() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.get("/hello?a=b");
    let job = worker.claim();
    assert_eq!(job.path(), "/hello");
    assert_eq!(job.env["QUERY_STRING"], "a=b");
    assert_eq!(job.env["REMOTE_ADDR"], "127.0.0.1");
    job.answer("Hello");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (200, "Hello"));
    assert_eq!(answer.field("content-length"), Some("5"));
    assert_eq!(answer.field("connection"), None);
}

#[test]
fn a_connection_is_kept_for_one_request_after_the_other() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    for text in ["one", "two", "three"] {
        client.get("/");
        worker.claim().answer(text);
        assert_eq!(client.answer().text(), text);
    }
    assert_eq!(front.report().server.connections, 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let front = Front::start();
    let _serving = front.worker(1).serve(1, |job| {
        let path = job.path().to_owned();
        job.answer(&path);
    });
    let mut client = front.connect();
    let requests: String =
        (0..500).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(requests);
    for number in 0..500 {
        assert_eq!(client.answer().text(), format!("/{number}"));
    }
}

#[test]
fn a_pipelined_body_is_not_taken_for_a_request() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send(
        "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let job = worker.claim();
    assert_eq!((job.path(), job.body.as_slice()), ("/1", b"body".as_slice()));
    job.answer("1");
    worker.claim().answer("2");
    assert_eq!(client.answer().text(), "1");
    assert_eq!(client.answer().text(), "2");
}

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
fn a_large_body_comes_by_file() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    let body: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
    client.post("/", &body);
    let job = worker.claim();
    assert!(job.spooled);
    assert!(job.body == body);
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

/// First it is in a buffer, then in a file in memory, then in one on the disk.
#[test]
fn a_chunked_body_of_any_size_arrives_whole() {
    let front = Front::start();
    let worker = front.worker(1);
    let body = pattern(3_000_000);
    let mut client = front.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in body.chunks(7_919) {
        client.send(format!("{:x}\r\n", piece.len()));
        client.send(piece);
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    let job = worker.claim();
    assert!(job.spooled && job.body == body);
    job.answer("");
    assert_eq!(client.answer().status, 200);
    front.until("no spool file is left", |report| {
        report.server.spool_bytes == 0 && report.server.buffer_bytes == 0
    });
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer().status, 100);
    client.send("body");
    let job = worker.claim();
    assert_eq!(job.body, b"body");
    job.answer("done");
    assert_eq!(client.answer().text(), "done");
}

#[test]
fn http_1_0_ends_the_connection_unless_it_is_asked_not_to() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    worker.claim().answer("kept");
    let answer = client.answer();
    assert_eq!((answer.text(), answer.field("connection")), ("kept", Some("keep-alive")));
    client.send("GET / HTTP/1.0\r\n\r\n");
    let mut job = worker.claim();
    job.head(200, &[]).body(b"first, ");
    assert_eq!(client.answer_head().field("transfer-encoding"), None);
    job.body(b"second").end();
    assert_eq!(client.rest(), (b"first, second".to_vec(), true));
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
    worker.claim().answer("seen");
    assert_eq!(client.answer().text(), "seen");
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
    worker.claim().answer("the connection was kept");
    assert_eq!(client.answer().text(), "the connection was kept");
}

#[test]
fn interim_answers_come_before_the_final_one() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.get("/");
    let mut job = worker.claim();
    job.head(103, &[("link", "</a.css>")]);
    let early = client.answer_head();
    assert_eq!((early.status, early.field("link")), (103, Some("</a.css>")));
    job.answer("final");
    assert_eq!(client.answer().text(), "final");
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
    front.worker(1).claim().answer("late");
    assert_eq!(client.answer().text(), "late");
    assert!(client.has_ended());
}

#[test]
fn an_old_client_that_ends_its_side_while_it_is_queued_gets_its_answer_alone() {
    let front = Front::start();
    let mut client = queued_and_half_closed(&front, "GET / HTTP/1.0\r\n\r\n");
    client.stays_quiet(Duration::from_millis(500));
    front.worker(1).claim().answer("late");
    assert_eq!(client.answer().text(), "late");
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
    worker.claim().answer("good");
    assert_eq!(client.answer().text(), "good");
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
fn bodies_have_a_least_rate() {
    let front = Front::with(|settings| {
        settings.limits.body_timeout = Duration::from_secs(1);
        settings.limits.body_bytes_per_second = 1000;
    });
    let worker = front.worker(1);
    let is_refused = Arc::new(AtomicBool::new(false));
    // Sends this many bytes every 20 ms until the other is refused.
    let begin = |piece: usize| {
        let mut sender = TcpStream::connect(("127.0.0.1", front.port)).unwrap();
        let client = Client::new(sender.try_clone().unwrap());
        let is_refused = Arc::clone(&is_refused);
        sender.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        let chunk = format!("{piece:x}\r\n{}\r\n", "x".repeat(piece));
        let sending = std::thread::spawn(move || {
            while !is_refused.load(Ordering::Relaxed) {
                sender.write_all(chunk.as_bytes()).unwrap();
                std::thread::park_timeout(Duration::from_millis(20));
            }
            sender.write_all(b"0\r\n\r\n").unwrap();
        });
        (client, sending)
    };
    let ((mut slow, slow_sending), (mut fast, fast_sending)) = (begin(1), begin(1000));
    assert_eq!(slow.answer().status, 408);
    is_refused.store(true, Ordering::Relaxed);
    worker.claim().answer("fast enough");
    assert_eq!(fast.answer().text(), "fast enough");
    slow_sending.join().unwrap();
    fast_sending.join().unwrap();
}

#[test]
fn an_idle_connection_is_kept_only_so_long() {
    let front = Front::with(|settings| settings.limits.idle_timeout = Duration::from_millis(100));
    let worker = front.worker(1);
    let (mut silent, mut used) = (front.connect(), front.get("/"));
    worker.claim().answer("");
    assert_eq!(used.answer().status, 200);
    assert!(silent.has_ended() && used.has_ended());
}

#[test]
fn unix_sockets_serve_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let front = Front::with(|settings| settings.binds.push(Bind::unix(path.clone())));
    let worker = front.worker(1);
    let mut client = Client::unix(&path);
    client.get("/");
    let job = worker.claim();
    assert_eq!(job.env["REMOTE_ADDR"], "127.0.0.1");
    job.answer("by path");
    assert_eq!(client.answer().text(), "by path");
    drop(client);
    front.stop();
    assert!(!path.exists());
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
    let (mut one, mut two) = (front.get("/one"), front.get("/two"));
    let (first, second) = (worker.claim(), worker.claim());
    let mut third = front.get("/");
    third.stays_silent(Duration::from_millis(50));
    assert!(worker.try_claim().is_none());
    first.answer("first");
    assert_eq!(one.answer().text(), "first");
    worker.claim().answer("after all");
    assert_eq!(third.answer().text(), "after all");
    assert_eq!(front.report().server.connections, 2);
    second.answer("in time");
    assert_eq!(two.answer().text(), "in time");
}

#[test]
fn at_the_limit_the_connection_that_has_been_idle_for_the_longest_time_gives_way() {
    let front = Front::with(|settings| settings.limits.connections = 3);
    let _serving = front.worker(1).serve(1, |job| job.answer("served"));
    let ask = |client: &mut Client| {
        client.get("/");
        assert_eq!(client.answer().text(), "served");
    };
    let mut clients: Vec<Client> = (0..3).map(|_| front.connect()).collect();
    clients.iter_mut().for_each(ask);
    ask(&mut clients[1]);
    let mut new = front.connect();
    ask(&mut new);
    assert!(clients[0].has_ended());
    [&mut clients[1], &mut new].into_iter().for_each(ask);
    front.until("the limit is kept", |report| report.server.connections == 3);
    // However many come.
    for _ in 0..200 {
        ask(&mut front.connect());
    }
    front.until("the limit is kept", |report| report.server.connections <= 3);
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
    worker.claim().answer("second");
    assert_eq!(second.answer().text(), "second");
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
fn the_access_log_has_a_line_for_every_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let front = Front::with(|settings| settings.log.access = Some(path.clone()));
    let worker = front.worker(1);
    let mut client = front.connect();
    client.send("GET /a?b HTTP/1.1\r\nHost: a\r\nUser-Agent: \"me\"\r\n\r\n");
    worker.claim().answer("12345");
    client.answer();
    client.send("HEAD /c HTTP/1.1\r\nHost: a\r\n\r\n");
    worker.claim().answer("not sent");
    client.answer_head();
    client.send("garbage\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    let log = || std::fs::read_to_string(&path).unwrap_or_default(); // it is opened beside the event loop
    eventually("three lines", || log().lines().count() == 3);
    for (line, expected) in log().lines().zip([
        r#"] "GET /a?b HTTP/1.1" 200 5 "-" "\"me\"" 0."#,
        r#"] "HEAD /c HTTP/1.1" 200 0 "-" "-" 0."#,
        r#"] "-" 400 47 "-" "-" 0."#,
    ]) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.contains(expected), "{line}");
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
