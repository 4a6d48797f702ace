//! The floor: what a request costs when nothing is done for it.
//!
//! One thread, one level-triggered epoll, one `read` and one `write` per request, a constant answer. It
//! does not parse: a request is whatever ends in an empty line. It is no web server, it is the yardstick
//! that Highball's CPU time per request is divided by.
//!
//! **This program is frozen.** A ratio means something only as long as its denominator stays the same:
//! do not make it faster, safer or more complete.
//!
//! Usage: `highball-floor PORT`. It listens on 127.0.0.1 until a signal ends it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// As many and as long header fields as Highball sends with the hello-world application.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/plain\r\n\
    content-length: 11\r\n\
    date: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
    \r\n\
    Hello World";
const END_OF_REQUEST: &[u8] = b"\r\n\r\n";
const LISTENER: u64 = u64::MAX;
const EVENTS_PER_TURN: usize = 256;
const READ_BYTES: usize = 16 * 1024;

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| io::Error::other("usage: highball-floor PORT"))?;
    Floor::bind(port)?.run()
}

struct Floor {
    epoll: OwnedFd,
    listener: TcpListener,
    /// An event carries the index of its connection; an index is used again once it is `None`.
    connections: Vec<Option<Connection>>,
}

impl Floor {
    fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Self { epoll, listener, connections: Vec::new() })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_PER_TURN);
        let mut buffer = [0; READ_BYTES];
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                // A tracer that attaches interrupts the wait.
                Err(Errno::INTR) => continue,
                result => result?,
            };
            for event in &events {
                // Copied out: the kernel's event is packed.
                let data = event.data;
                if data.u64() == LISTENER {
                    self.accept()?;
                } else {
                    self.answer(data.u64() as usize, &mut buffer);
                }
            }
        }
    }

    /// Takes one connection per event; level triggering reports the others again.
    fn accept(&mut self) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let index = self.connections.iter().position(Option::is_none).unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        epoll::add(&self.epoll, &stream, EventData::new_u64(index as u64), EventFlags::IN)?;
        self.connections[index] = Some(Connection { stream, matched: 0 });
        Ok(())
    }

    /// Dropping a connection closes it, which also takes it out of the epoll.
    fn answer(&mut self, index: usize, buffer: &mut [u8]) {
        let Some(connection) = &mut self.connections[index] else {
            return;
        };
        if connection.answer(buffer).is_err() {
            self.connections[index] = None;
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// How many bytes of [`END_OF_REQUEST`] the bytes read so far end with.
    matched: usize,
}

impl Connection {
    /// Reads once and answers each request that ended. An error means that the connection is over.
    fn answer(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let length = self.stream.read(buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self.count_ends(&buffer[..length]) {
            0 => Ok(()),
            1 => self.stream.write_all(ANSWER),
            requests => self.stream.write_all(&ANSWER.repeat(requests)),
        }
    }

    fn count_ends(&mut self, bytes: &[u8]) -> usize {
        let mut ends = 0;
        for &byte in bytes {
            if byte == END_OF_REQUEST[self.matched] {
                self.matched += 1;
            } else {
                self.matched = usize::from(byte == b'\r');
            }
            if self.matched == END_OF_REQUEST.len() {
                ends += 1;
                self.matched = 0;
            }
        }
        ends
    }
}
