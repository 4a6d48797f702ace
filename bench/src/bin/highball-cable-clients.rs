//! Clients of Action Cable for `bench/cable.rb`: as many as are asked for, in one thread, so that they leave the CPUs to the server.
//!
//! Each client subscribes to a channel and reads messages such as `{"n":7,"at":123}`: a number that rises by one, and when the
//! message was published, in microseconds of CLOCK_MONOTONIC. Like the JavaScript client, it connects again when it is disconnected.
//!
//! Usage: `highball-cable-clients PORT [--tls] [--wait MIN..MAX] [--identifier JSON]`. A client that was disconnected waits between MIN
//! and MAX seconds. The identifier is the channel's; by default, that is `RoomChannel`.
//!
//! Orders come on standard input, a line each, and each has one line of JSON as its answer: `open N` (N more clients), `count`, `delays`
//! (of messages since the last such order) and `events`.

use std::collections::VecDeque;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use highball_bench::socket::{Protocol, Socket};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::Timespec;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{clock_gettime, ClockId};
use serde_json::{json, Value};

const REQUEST: &str = "GET /cable HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: ORIGIN\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: actioncable-v1-json\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en\r\n\r\n";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Opcodes (RFC 6455, section 5.2), with FIN.
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

/// Clients that may be on their way to a subscription at a time, as long as new ones are opened.
const AT_ONCE: usize = 50;
/// How long a client waits that was refused (503), in microseconds.
const AFTER_REFUSAL: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(20);
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const EVENTS_PER_TURN: usize = 1024;
const READ_BYTES: usize = 64 * 1024;
const ORDERS: u64 = u64::MAX;

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let usage = || {
        io::Error::other("usage: highball-cable-clients PORT [--tls] [--wait MIN..MAX] [--identifier JSON]")
    };
    let port = words.next().and_then(|port| port.parse().ok()).ok_or_else(usage)?;
    let mut clients = Clients::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--tls" => clients.protocol = Protocol::Https,
            "--identifier" => clients.identifier = words.next().ok_or_else(usage)?.into(),
            "--wait" => {
                let wait = words.next().ok_or_else(usage)?;
                let (from, to) = wait.split_once("..").ok_or_else(usage)?;
                let micros = |text: &str| {
                    text.parse::<f64>().map(|seconds| (seconds * 1e6) as u64).map_err(|_| usage())
                };
                clients.wait = micros(from)?..micros(to)?;
            }
            _ => return Err(usage()),
        }
    }
    clients.run()
}

/// CLOCK_MONOTONIC, in microseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// What has happened to all clients.
#[derive(Default)]
struct Totals {
    subscribed: usize,
    heard: u64,
    lost: u64,
    /// Messages that came again, or after a later one.
    repeated: u64,
    /// From publishing to reading, in microseconds.
    delays: Vec<u32>,
    /// What, when (in seconds of CLOCK_MONOTONIC), and the close status or how many ms a client was without a subscription.
    events: Vec<(&'static str, f64, Option<f64>)>,
}

impl Totals {
    fn note(&mut self, what: &'static str, number: Option<f64>) {
        self.events.push((what, now() as f64 / 1e6, number));
    }

    fn counts(&self) -> Value {
        json!({ "subscribed": self.subscribed, "heard": self.heard, "lost": self.lost, "repeated": self.repeated })
    }

    /// The median, the 99th percentile and the longest delay, in ms.
    fn take_delays(&mut self) -> Value {
        let mut delays = std::mem::take(&mut self.delays);
        delays.sort_unstable();
        let at = |part: f64| {
            delays
                .get(((delays.len() as f64 * part) as usize).min(delays.len().saturating_sub(1)))
                .map(|us| f64::from(*us) / 1000.0)
        };
        json!({ "count": delays.len(), "p50": at(0.5), "p99": at(0.99), "longest": at(1.0) })
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Open,
    Subscribed,
}

/// How a connection ends.
enum End {
    Closed,
    Refused,
}

struct Client {
    socket: Socket,
    stage: Stage,
    /// The begin of a frame, or of the head, whose rest has not come yet.
    rest: Vec<u8>,
    identifier: Rc<str>,
    history: History,
}

/// What a client knows over all its connections.
#[derive(Default, Clone, Copy)]
struct History {
    last: Option<u64>,
    /// When it lost its subscription.
    lost_at: Option<u64>,
}

impl Client {
    /// Reads what is there.
    fn read(&mut self, buffer: &mut [u8], totals: &mut Totals) -> Result<(), End> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Err(End::Closed),
                Ok(length) => {
                    self.take(&buffer[..length], totals)?;
                    // The kernel says when there is more; what TLS has already read, it does not know.
                    if length < buffer.len() && matches!(self.socket, Socket::Plain(_)) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(End::Closed),
            }
        }
    }

    fn take(&mut self, bytes: &[u8], totals: &mut Totals) -> Result<(), End> {
        if self.rest.is_empty() {
            let used = self.take_all(bytes, totals)?;
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            let mut all = std::mem::take(&mut self.rest);
            all.extend_from_slice(bytes);
            let used = self.take_all(&all, totals)?;
            all.drain(..used);
            self.rest = all;
        }
        Ok(())
    }

    /// Takes the head and whole frames. Returns their length.
    fn take_all(&mut self, bytes: &[u8], totals: &mut Totals) -> Result<usize, End> {
        let mut used = 0;
        if self.stage == Stage::Head {
            let Some(end) = bytes.windows(END_OF_HEAD.len()).position(|part| part == END_OF_HEAD) else {
                return Ok(0);
            };
            if !bytes.starts_with(b"HTTP/1.1 101") {
                return Err(End::Refused);
            }
            self.stage = Stage::Open;
            used = end + END_OF_HEAD.len();
        }
        while let Some((opcode, payload)) = frame(&bytes[used..]) {
            used += payload.end;
            self.take_frame(opcode, &bytes[used - payload.len()..used], totals)?;
        }
        Ok(used)
    }

    fn take_frame(&mut self, opcode: u8, payload: &[u8], totals: &mut Totals) -> Result<(), End> {
        if opcode == CLOSE {
            let status = payload.first_chunk().map(|status| f64::from(u16::from_be_bytes(*status)));
            self.leave(totals);
            totals.note("closed", status);
            return self.send(CLOSE, payload);
        }
        if let Some(number) = number_behind(payload, b"\"n\":") {
            self.count(number, totals);
            if let Some(at) = number_behind(payload, b"\"at\":") {
                totals.delays.push(now().saturating_sub(at) as u32);
            }
        } else if contains(payload, b"\"welcome\"") {
            let command = json!({ "command": "subscribe", "identifier": *self.identifier });
            self.send(TEXT, command.to_string().as_bytes())?;
        } else if contains(payload, b"\"confirm_subscription\"") {
            self.stage = Stage::Subscribed;
            totals.subscribed += 1;
            let without_ms = self.history.lost_at.map(|at| (now() - at) as f64 / 1000.0);
            totals.note("subscribed", without_ms);
        }
        Ok(())
    }

    /// The messages between two that were heard are lost. (Those before the first do not count.)
    fn count(&mut self, number: u64, totals: &mut Totals) {
        totals.heard += 1;
        if let Some(last) = self.history.last {
            if number <= last {
                totals.repeated += 1;
                return;
            }
            totals.lost += number - last - 1;
        }
        self.history.last = Some(number);
    }

    /// Sends a frame, whose mask changes no byte. Its payload has at most 125 bytes.
    fn send(&mut self, opcode: u8, payload: &[u8]) -> Result<(), End> {
        assert!(payload.len() < 126, "a short frame");
        let head = [opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        self.socket.write_all(&[&head, payload].concat()).map_err(|_| End::Closed)
    }

    fn leave(&mut self, totals: &mut Totals) {
        if self.stage == Stage::Subscribed {
            self.stage = Stage::Open;
            self.history.lost_at = Some(now());
            totals.subscribed -= 1;
        }
    }
}

/// The opcode of the first frame, and where its payload lies, if all of it is there.
fn frame(bytes: &[u8]) -> Option<(u8, Range<usize>)> {
    let (head, length) = match *bytes.get(1)? {
        126 => (4, u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?) as usize),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?) as usize),
        length => (2, length as usize),
    };
    (bytes.len() >= head + length).then_some((bytes[0], head..head + length))
}

fn contains(payload: &[u8], part: &[u8]) -> bool {
    payload.windows(part.len()).any(|window| window == part)
}

/// The number behind this name.
fn number_behind(payload: &[u8], name: &[u8]) -> Option<u64> {
    let at = payload.windows(name.len()).position(|window| window == name)? + name.len();
    let digits = payload[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// All clients of this process.
struct Clients {
    address: SocketAddr,
    protocol: Protocol,
    /// How long a client that was disconnected waits, in microseconds.
    wait: Range<u64>,
    identifier: Rc<str>,
    epoll: OwnedFd,
    /// An event carries the index of its client. `None`: it is about to connect again.
    all: Vec<Option<Client>>,
    wanted: usize,
    /// When a client connects again, in microseconds, and its index.
    again: VecDeque<(u64, usize, History)>,
    totals: Totals,
}

impl Clients {
    fn new(address: SocketAddr) -> io::Result<Clients> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, io::stdin(), EventData::new_u64(ORDERS), EventFlags::IN)?;
        Ok(Clients {
            address,
            protocol: Protocol::Http,
            wait: 0..0,
            identifier: r#"{"channel":"RoomChannel"}"#.into(),
            epoll,
            all: Vec::new(),
            wanted: 0,
            again: VecDeque::new(),
            totals: Totals::default(),
        })
    }

    /// Runs until the standard input ends.
    fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_PER_TURN);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&TURN)) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            for event in &events {
                let data = event.data; // copied out: the kernel's event is packed
                if data.u64() == ORDERS {
                    if !self.obey()? {
                        return Ok(());
                    }
                } else {
                    self.read(data.u64() as usize, &mut buffer);
                }
            }
            self.connect_more()?;
        }
    }

    /// Answers an order. Returns false at the end.
    fn obey(&mut self) -> io::Result<bool> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let answer = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["open", count] => {
                self.wanted += count.parse::<usize>().map_err(io::Error::other)?;
                self.totals.counts()
            }
            ["count"] => self.totals.counts(),
            ["delays"] => self.totals.take_delays(),
            ["events"] => {
                let mut counts = self.totals.counts();
                counts["events"] = json!(self.totals.events);
                counts
            }
            _ => return Err(io::Error::other(format!("there is no order {line}"))),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
        Ok(true)
    }

    fn read(&mut self, index: usize, buffer: &mut [u8]) {
        let Some(client) = &mut self.all[index] else { return };
        let Err(end) = client.read(buffer, &mut self.totals) else { return };
        client.leave(&mut self.totals);
        let (what, wait) = match end {
            End::Refused => ("refused", AFTER_REFUSAL),
            End::Closed if self.wait.is_empty() => ("ended", 0),
            End::Closed => ("ended", self.wait.start + now() % (self.wait.end - self.wait.start)),
        };
        self.totals.note(what, None);
        let history = client.history;
        self.all[index] = None; // which closes its socket
        self.again.push_back((now() + wait, index, history));
    }

    fn connect_more(&mut self) -> io::Result<()> {
        let at = now();
        for _ in 0..self.again.len() {
            let Some((due, index, history)) = self.again.pop_front() else { break };
            if due > at {
                self.again.push_back((due, index, history));
            } else if let Ok(client) = self.connected(index, history) {
                self.all[index] = Some(client);
                self.totals.note("connected", None);
            } else {
                self.totals.note("refused", None);
                self.again.push_back((at + AFTER_REFUSAL, index, history));
            }
        }
        while self.all.len() < self.wanted
            && self.all.len() - self.totals.subscribed.min(self.all.len()) < AT_ONCE
        {
            let client = self.connected(self.all.len(), History::default())?;
            self.all.push(Some(client));
        }
        Ok(())
    }

    fn connected(&self, index: usize, history: History) -> io::Result<Client> {
        let mut socket = Socket::open(self.address, self.protocol, PATIENCE)?;
        let origin = format!("{}://127.0.0.1", self.protocol.scheme());
        socket.write_all(REQUEST.replace("ORIGIN", &origin).as_bytes())?;
        socket.tcp().set_nonblocking(true)?;
        epoll::add(&self.epoll, socket.tcp(), EventData::new_u64(index as u64), EventFlags::IN)?;
        let identifier = Rc::clone(&self.identifier);
        Ok(Client { socket, stage: Stage::Head, rest: Vec::new(), identifier, history })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A client, and the server's end of its connection.
    fn client() -> (Client, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = Socket::open(listener.local_addr().unwrap(), Protocol::Http, PATIENCE).unwrap();
        let identifier = r#"{"channel":"RoomChannel"}"#.into();
        let client =
            Client { socket, stage: Stage::Head, rest: Vec::new(), identifier, history: History::default() };
        (client, listener.accept().unwrap().0)
    }

    fn frame_of(text: &str) -> Vec<u8> {
        let length = match text.len() {
            length @ ..126 => vec![length as u8],
            length => [&[126][..], &(length as u16).to_be_bytes()].concat(),
        };
        [&[TEXT], &length[..], text.as_bytes()].concat()
    }

    fn sent(messages: &[u64]) -> Vec<u8> {
        let padding = "x".repeat(200);
        let mut bytes = b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec();
        bytes.extend(frame_of(r#"{"type":"welcome"}"#));
        bytes.extend(frame_of(r#"{"type":"confirm_subscription"}"#));
        bytes.extend(
            messages.iter().flat_map(|n| frame_of(&format!(r#"{{"message":{{"n":{n}}},"of":"{padding}"}}"#))),
        );
        bytes
    }

    #[test]
    fn messages_are_counted_wherever_they_are_cut() {
        let bytes = sent(&[5, 6, 8, 8, 7, 9]);
        for size in 1..bytes.len() {
            let (mut client, mut server) = client();
            let mut totals = Totals::default();
            for piece in bytes.chunks(size) {
                assert!(client.take(piece, &mut totals).is_ok());
            }
            assert_eq!((totals.subscribed, totals.heard, totals.lost, totals.repeated), (1, 6, 1, 2));
            let mut subscribe = [0; 200];
            let length = server.read(&mut subscribe).unwrap();
            assert!(subscribe[..length].ends_with(br#""identifier":"{\"channel\":\"RoomChannel\"}"}"#));
        }
    }

    #[test]
    fn a_client_remembers_its_last_message_over_connections() {
        let mut totals = Totals::default();
        let (mut one, _server) = client();
        assert!(one.take(&sent(&[1, 2]), &mut totals).is_ok());
        one.leave(&mut totals);
        let (mut two, _server) = client();
        two.history = one.history;
        assert!(two.take(&sent(&[4]), &mut totals).is_ok());
        assert_eq!((totals.subscribed, totals.lost), (1, 1));
        assert!(two.history.lost_at.is_some());
    }

    #[test]
    fn a_refusal_is_no_subscription() {
        let (mut client, _server) = client();
        let refused = client.take(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", &mut Totals::default());
        assert!(matches!(refused, Err(End::Refused)));
    }
}
