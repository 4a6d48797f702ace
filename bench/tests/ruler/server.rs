//! A small HTTP server that does, request by request, what a test has chosen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a request ends.
#[derive(Clone, Copy)]
pub(crate) enum Reaction {
    /// This status and body.
    Answer(u16, &'static str),
    /// The body, and its length as the head tells it; what is missing never comes.
    Cut(&'static str, usize),
    /// The body, and more bytes behind it.
    Surplus(&'static str, &'static str),
    /// The body, without a length: it ends with the connection.
    Closed(&'static str),
    /// The connection ends without an answer.
    Drop,
    /// The same, by a reset.
    Reset,
}

/// What every good answer says.
pub(crate) const HELLO: Reaction = Reaction::Answer(200, "hello, world");

/// It serves until it is dropped, each connection on its own thread.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    delays: Arc<Mutex<Vec<Duration>>>,
    ends: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// `react` gets the request's number, from 0. It may take its time.
    pub(crate) fn start(react: impl Fn(u64) -> Reaction + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (delays, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let requests = Arc::new(AtomicU64::new(0));
        let react = Arc::new(react);
        let accepting = std::thread::spawn({
            let (delays, ends) = (delays.clone(), ends.clone());
            move || {
                while let Ok((stream, _)) = listener.accept() {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    let (react, requests, delays) = (react.clone(), requests.clone(), delays.clone());
                    std::thread::spawn(move || serve(&stream, &*react, &requests, &delays));
                }
            }
        });
        Server { address, delays, ends, accepting: Some(accepting) }
    }

    /// How long the requests since the last call took here, ascending: from their end to that of their answer.
    pub(crate) fn take_delays(&self) -> Vec<Duration> {
        let mut delays = std::mem::take(&mut *self.delays.lock().unwrap_or_else(PoisonError::into_inner));
        delays.sort_unstable();
        delays
    }

    /// Serves for ever.
    pub(crate) fn join(mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("it does not panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let (Some(accepting), Ok(_)) = (self.accepting.take(), TcpStream::connect(self.address)) {
            accepting.join().expect("it does not panic");
        }
    }
}

/// A request, as far as it matters here.
struct Request {
    is_head: bool,
    closes: bool,
}

fn serve(
    stream: &TcpStream,
    react: &dyn Fn(u64) -> Reaction,
    requests: &AtomicU64,
    delays: &Mutex<Vec<Duration>>,
) {
    stream.set_nodelay(true).expect("a TCP connection");
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let arrived = Instant::now();
        let reaction = react(requests.fetch_add(1, Ordering::Relaxed));
        let goes_on = answer(stream, reaction, &request);
        delays.lock().unwrap_or_else(PoisonError::into_inner).push(arrived.elapsed());
        if !goes_on {
            break;
        }
    }
}

/// `None`: the connection has ended.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length = field("Content-Length: ").and_then(|length| length.parse().ok()).unwrap_or(0);
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    let head = head.to_ascii_lowercase();
    Some(Request { is_head: head.starts_with("head"), closes: head.contains("connection: close") })
}

/// Whether the connection goes on.
fn answer(mut stream: &TcpStream, reaction: Reaction, request: &Request) -> bool {
    let mut goes_on = !request.closes;
    let (status, body, length, surplus) = match reaction {
        Reaction::Answer(status, body) => (status, body, body.len(), ""),
        Reaction::Cut(body, length) => (200, body, length, ""),
        Reaction::Surplus(body, surplus) => (200, body, body.len(), surplus),
        Reaction::Closed(body) => {
            // The client may be gone.
            let _ = stream.write_all(format!("HTTP/1.1 200 X\r\nConnection: close\r\n\r\n{body}").as_bytes());
            return false;
        }
        Reaction::Drop => return false,
        Reaction::Reset => {
            let reset = Some(Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(stream, reset).expect("a TCP connection");
            return false;
        }
    };
    goes_on &= length == body.len();
    let close = if request.closes { "Connection: close\r\n" } else { "" };
    let body = if request.is_head { "" } else { body };
    let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{close}\r\n{body}{surplus}");
    stream.write_all(text.as_bytes()).is_ok() && goes_on
}
