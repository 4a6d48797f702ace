//! Whether a server answers yet.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::socket::{Protocol, Socket};

/// How long one attempt may take: an application's first answer can be slow.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The state of a listener in /proc/net/tcp, as the kernel's `TCP_LISTEN` in hexadecimal digits.
const TCP_LISTEN: &str = "0A";

/// Where a backend listens.
#[derive(Debug, Clone)]
pub(super) enum Listener {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listener {
    /// Whether connections are taken. This is not tried out but looked up: a FastCGI process dies of a connection
    /// without a request.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Listener::Tcp(address) => is_port_listened_on(address.port()),
            Listener::Unix(path) => is_listened_on(path),
        }
    }
}

/// Whether /proc/net/tcp has a listener of this port, at whatever address. Listeners stand first in it.
fn is_port_listened_on(port: u16) -> bool {
    let is_it = |line: String| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        let ends_with_port = local.is_some_and(|local| local.ends_with(&format!(":{port:04X}")));
        ends_with_port && state == Some(TCP_LISTEN)
    };
    let Ok(table) = File::open("/proc/net/tcp") else { return false };
    BufReader::new(table).lines().map_while(Result::ok).any(is_it)
}

/// Whether /proc/net/unix has a listener of this path.
fn is_listened_on(path: &Path) -> bool {
    // A socket that listens has the flag __SO_ACCEPTON; the path is the last field, and may hold spaces.
    let listens = |line: &str| line.split_whitespace().nth(3) == Some("00010000");
    let name = format!(" {}", path.display());
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    String::from_utf8_lossy(&table).lines().any(|line| line.ends_with(&name) && listens(line))
}

/// The status of the answer to `GET path`.
///
/// # Errors
/// There was no answer, or none of HTTP.
pub(crate) fn status(address: SocketAddr, protocol: Protocol, path: &str) -> io::Result<u16> {
    let mut stream = Socket::open(address, protocol, ATTEMPT)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let status = words.next().and_then(|status| status.trim().parse().ok());
    status
        .filter(|_| is_http)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("not HTTP: {line:?}")))
}
