//! Whether a server answers yet.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long one attempt may take: an application's first answer can be slow.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Where a backend listens.
#[derive(Debug, Clone)]
pub(super) enum Listener {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listener {
    /// Whether it takes a connection.
    pub(super) fn accepts(&self) -> bool {
        match self {
            Listener::Tcp(address) => TcpStream::connect_timeout(address, ATTEMPT).is_ok(),
            Listener::Unix(path) => UnixStream::connect(path).is_ok(),
        }
    }
}

/// The status of the answer to `GET path`.
///
/// # Errors
/// There was no answer, or none of HTTP.
pub(super) fn status(address: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, ATTEMPT)?;
    stream.set_read_timeout(Some(ATTEMPT))?;
    stream.set_write_timeout(Some(ATTEMPT))?;
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
