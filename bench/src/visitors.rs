//! Clients that are more than a stream of equal requests: clients with cookies, and slow readers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::request;
use crate::workload::{Request, SlowClients};
use crate::Failure;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pace at which slow clients read.
const SECOND: Duration = Duration::from_secs(1);

/// The requests, each with the cookies that its first answer set.
///
/// # Errors
/// One of them is not answered.
pub(crate) fn with_cookies(address: SocketAddr, requests: &[Request]) -> Result<Vec<Request>, Failure> {
    let with_cookies = |request: &Request| {
        let problem = |error| Failure(format!("ask for the cookies of {}: {error}", request.path));
        let cookies = cookies(address, request).map_err(problem)?;
        let mut request = request.clone();
        if !cookies.is_empty() {
            request.headers.push(("Cookie".into(), cookies.join("; ")));
        }
        Ok(request)
    };
    requests.iter().map(with_cookies).collect()
}

/// What the answer to a request sets, as `name=value` (RFC 6265, 4.1).
fn cookies(address: SocketAddr, request: &Request) -> std::io::Result<Vec<String>> {
    let mut stream = open(address, request, false)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let set = fields.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    Ok(set.filter_map(|(_, value)| Some(value.trim().split(';').next()?.to_owned())).collect())
}

/// A connection that has sent a request.
fn open(address: SocketAddr, request: &Request, keep_alive: bool) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request::head(request, &address.to_string(), keep_alive).as_bytes())?;
    Ok(stream)
}

/// Clients that read slowly until this is dropped.
#[derive(Debug)]
pub(crate) struct SlowReaders {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SlowReaders {
    /// They have all asked when this returns.
    ///
    /// # Errors
    /// One of them got no connection.
    pub(crate) fn begin(address: SocketAddr, wanted: &SlowClients) -> Result<SlowReaders, Failure> {
        let request = Request { path: wanted.path.clone(), ..Request::default() };
        let open = |_| {
            let stream = open(address, &request, true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let streams: std::io::Result<Vec<TcpStream>> = (0..wanted.connections).map(open).collect();
        let mut streams =
            streams.map_err(|error| Failure(format!("open the slow clients' connections: {error}")))?;
        let mut bytes = vec![0; wanted.bytes_per_second as usize];
        let (stop, stopped) = mpsc::sync_channel(0);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
                streams.retain_mut(|stream| match stream.read(&mut bytes) {
                    Ok(0) => false, // the answer is over, or the server has lost patience
                    Ok(_) => true,
                    Err(error) => error.kind() == ErrorKind::WouldBlock,
                });
            }
        });
        Ok(SlowReaders { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for SlowReaders {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked: it only reads.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn cookies_are_sent_as_they_were_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let length = stream.read(&mut head).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; path=/; HttpOnly\r\nset-cookie: b=x=y\r\n\r\nSet-Cookie: c=3";
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let asked = Request { path: "/visits".into(), ..Request::default() };
        let requests = with_cookies(address, &[asked]).unwrap();
        assert_eq!(requests[0].headers, [("Cookie".to_owned(), "a=1; b=x=y".to_owned())]);
        assert!(server.join().unwrap().starts_with("GET /visits HTTP/1.1\r\nHost: "));
    }

    #[test]
    fn slow_readers_end_when_they_are_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = SlowClients { connections: 3, path: "/".into(), bytes_per_second: 1 };
        let readers = SlowReaders::begin(listener.local_addr().unwrap(), &wanted).unwrap();
        let mut accepted: Vec<TcpStream> = (0..3).map(|_| listener.accept().unwrap().0).collect();
        drop(readers);
        for stream in &mut accepted {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            assert!(all.starts_with(b"GET / HTTP/1.1\r\n"));
        }
    }
}
