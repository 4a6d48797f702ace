//! WebSockets: which workers get them, and how they end when their worker, or the server, does.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::{Client, FakeWorker, Front};
use highball_link::{FrontAppEvent, FrontCommand};

/// A close frame with status 1012.
const RESTARTED: [u8; 4] = [0x88, 2, 0x03, 0xf4];
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const ACCEPTED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

fn front(drain: Duration) -> Front {
    Front::with(|settings| settings.hijacked_drain_timeout = drain)
}

fn ask(front: &Front) -> Client {
    let mut client = front.connect();
    client.send(REQUEST);
    client
}

/// The worker takes over the connection that it is given next.
fn take_over(front: &Front, worker: &FakeWorker) -> UnixStream {
    let before = front.report().server.hijacked;
    let mut job = worker.claim();
    let mut application = job.hijack();
    job.end();
    front.until("it is taken over", |report| report.server.hijacked > before);
    application.write_all(ACCEPTED).unwrap();
    application
}

fn web_socket(front: &Front, worker: &FakeWorker) -> (Client, UnixStream) {
    let mut client = ask(front);
    let application = take_over(front, worker);
    assert_eq!(client.read_exact(ACCEPTED.len()), ACCEPTED);
    (client, application)
}

/// A frame of a server.
fn frame(payload: &[u8]) -> Vec<u8> {
    [&[0x81, payload.len() as u8], payload].concat()
}

#[test]
fn a_close_frame_waits_for_the_end_of_the_one_that_is_being_sent() {
    let front = front(Duration::from_secs(60));
    let worker = front.worker(1);
    let (mut client, mut application) = web_socket(&front, &worker);
    let frame = frame(b"in two parts");
    application.write_all(&frame[..5]).unwrap();
    assert_eq!(client.read_exact(5), frame[..5]);
    front.retire(&worker);
    client.stays_silent(Duration::from_millis(300));
    // The next frame is behind the place for the close frame.
    application.write_all(&[&frame[5..], &frame].concat()).unwrap();
    assert_eq!(client.read_exact(frame.len() - 5), frame[5..]);
    assert_eq!(client.read_exact(4), RESTARTED);
    drop(application);
    assert_eq!(client.rest(), (Vec::new(), true));
}

/// A worker that only makes room for another does not take a WebSocket along, not even while it opens.
#[test]
fn a_worker_that_is_relieved_keeps_its_web_sockets() {
    let front = front(Duration::ZERO);
    let worker = front.worker(1);
    let mut client = ask(&front);
    let mut job = worker.claim();
    front.relieve(&worker);
    let number = worker.number;
    let kept = |event| matches!(event, FrontAppEvent::WorkerKept { worker } if worker == number);
    assert!(kept(front.app_event()), "it opens");
    let mut application = job.hijack();
    job.end();
    front.until("it is taken over", |report| report.server.hijacked == 1);
    application.write_all(ACCEPTED).unwrap();
    assert_eq!(client.read_exact(ACCEPTED.len()), ACCEPTED);
    front.relieve(&worker);
    assert!(kept(front.app_event()), "it is open");
    application.write_all(&frame(b"on")).unwrap();
    assert_eq!(client.read_exact(4), frame(b"on"));
    drop(application);
    assert_eq!(client.rest(), (Vec::new(), true));
    drop(client);
    front.until("it has ended", |report| report.server.hijacked == 0);
    front.relieve(&worker);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerIdle { worker, .. } if worker == number));
}

#[test]
fn a_frame_without_an_end_is_cut_off_at_the_end_of_the_time() {
    let front = front(Duration::from_millis(500));
    let worker = front.worker(1);
    let (mut client, mut application) = web_socket(&front, &worker);
    let endless = [&[0x82, 127][..], &[0xff; 8], b"and so on"].concat();
    application.write_all(&endless).unwrap();
    assert_eq!(client.read_exact(endless.len()), endless);
    front.retire(&worker);
    assert_eq!(client.rest(), (Vec::new(), true));
    assert_eq!(application.read(&mut [0; 1]).unwrap(), 0);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerIdle { .. }));
}

/// An application that writes without a pause does not escape the close frame, and gets to know of the end.
#[test]
fn an_application_that_never_pauses_is_closed_between_two_frames() {
    let front = front(Duration::from_secs(2));
    let worker = front.worker(1);
    let (mut client, mut application) = web_socket(&front, &worker);
    let frame = frame(&[b'x'; 100]);
    let piece = frame.repeat(100);
    let writes = std::thread::spawn(move || loop {
        match application.write_all(&piece) {
            Ok(()) => {}
            Err(error) => return error.kind(),
        }
    });
    assert_eq!(client.read_exact(frame.len()), frame);
    front.tell(FrontCommand::Drain);
    let (sent, ended) = client.rest();
    assert!(ended);
    let (frames, close) = sent.split_at(sent.len() - RESTARTED.len());
    assert_eq!(close, RESTARTED);
    assert!(frames.chunks(frame.len()).all(|one| one == frame), "only whole frames before it");
    assert!(matches!(writes.join().unwrap(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
}

#[test]
fn those_of_a_worker_are_not_closed_at_once() {
    let time = Duration::from_secs(2);
    let front = front(time);
    let worker = front.worker(1);
    let mut all: Vec<_> = (0..20).map(|_| web_socket(&front, &worker)).collect();
    let retired = Instant::now();
    front.retire(&worker);
    let readers = all.drain(..).map(|(mut client, application)| {
        std::thread::spawn(move || {
            assert_eq!(client.read_exact(4), RESTARTED);
            drop(application);
            retired.elapsed()
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut closed: Vec<Duration> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    closed.sort();
    // However late this thread runs, none is closed before its moment.
    assert!(closed[19] - closed[0] > time / 2, "{closed:?}");
    assert!(closed[10] >= time / 4, "{closed:?}");
}

#[test]
fn they_are_shared_out_by_number() {
    let front = front(Duration::from_secs(10));
    let workers = [front.worker(1), front.worker(1), front.worker(1)];
    let mut open = Vec::new();
    for round in 1..=3 {
        // Each goes to the next worker, although the first is idle.
        let clients: Vec<_> = workers.iter().map(|_| ask(&front)).collect();
        let applications: Vec<_> = workers.iter().map(|worker| take_over(&front, worker)).collect();
        open.extend(clients.into_iter().zip(applications));
        assert_eq!(front.report().server.hijacked, round * 3);
    }
    // Where one has ended, the next begins.
    drop(open.remove(1));
    front.until("its end", |report| report.server.hijacked == 8);
    let _client = ask(&front);
    let _application = take_over(&front, &workers[1]);
}

#[test]
fn during_a_restart_they_go_to_the_worker_that_stays() {
    let front = front(Duration::from_secs(10));
    let old = [front.worker_of(1, 1), front.worker_of(1, 1)];
    let new = front.worker_of(2, 1);
    let open: Vec<_> = (0..4).map(|_| web_socket(&front, &new)).collect();
    // Other requests go to the old ones first.
    let mut client = front.get("/");
    old[0].answers(&mut client, "old");
    // One more is better than waiting.
    let mut busy = front.connect();
    busy.send(REQUEST);
    let job = new.claim();
    let _other = ask(&front);
    let _application = take_over(&front, &old[0]);
    job.answer("");
    drop(open);
}
