//! A client's socket, TCP or Unix, with or without TLS, or a part of one, as the connection uses it: by polling.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use highball_config::Network;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, RecvFlags, SendFlags};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop;

use crate::aside::file_reads::{FileProgress, Next};
use crate::message::answer::FilePart;
use crate::transport::http2::Http2Stream;
use crate::transport::peer_user;
use crate::transport::tls::clients::SharedProof;
use crate::transport::tls::stream::TlsStream;

/// A connection that was silent for this long is probed, at this interval, and given up after this many probes without an
/// answer: two minutes in all.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;

/// The peer.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The client's address, without port.
    pub(crate) remote_addr: String,
    /// The address that the client connected to, for requests that name no host.
    pub(crate) server_name: String,
    /// Its port.
    pub(crate) server_port: u16,
    /// Whether the client uses TLS.
    pub(crate) is_tls: bool,
    /// Whether this is what a proxy reports.
    pub(crate) is_reported: bool,
    /// Whether the client speaks HTTP without TLS at an address for HTTPS: it is sent away.
    pub(crate) is_plain_http_on_tls_port: bool,
    /// What the other end of the connection has proved, if it was asked for a certificate in its handshake.
    pub(crate) proof: Option<SharedProof>,
}

impl Peer {
    /// The address from which the client has connected to this server itself; none, if a proxy stands between.
    pub(crate) fn direct_addr(&self) -> &str {
        if self.is_reported {
            return "";
        }
        &self.remote_addr
    }
}

/// The socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
    /// One of the streams of HTTP/2 that share a socket.
    Http2(Rc<Http2Stream>, Rc<RefCell<Stream>>),
}

impl Stream {
    /// Whether `peer`, the other end, is trusted where these networks are. The permissions of a Unix socket's file decide who
    /// can connect to it; behind it, a client that is reported counts by its address.
    pub(crate) fn is_trusted(&self, peer: &Peer, networks: &[Network]) -> bool {
        let address = peer.remote_addr.parse();
        let is_by_file = !self.is_tcp() && !peer.is_reported;
        is_by_file || address.is_ok_and(|address| Network::any_contains(networks, address))
    }

    /// Whether the process at the other end, on this machine, runs as `starter`, the user who started Highball, or as root.
    pub(crate) fn is_of_trusted_user(&self, starter: u32) -> bool {
        let is_trusted = |stream: &TcpStream| match (stream.local_addr(), stream.peer_addr()) {
            (Ok(local), Ok(peer)) => peer_user::is_trusted(local, peer, starter),
            _ => false,
        };
        match self {
            Stream::Tcp(stream) => is_trusted(stream),
            Stream::Tls(stream) => is_trusted(stream.tcp()),
            Stream::Unix(stream) => {
                stream.peer_cred().is_ok_and(|user| peer_user::is_trusted_user(user.uid(), starter))
            }
            Stream::Http2(_, socket) => socket.borrow().is_of_trusted_user(starter),
        }
    }

    /// Looks at the name by which the client has chosen a certificate; there is none without TLS, or if it has named none.
    pub(crate) fn look_at_server_name<T>(&self, look: impl FnOnce(Option<&str>) -> T) -> T {
        match self {
            Stream::Tls(stream) => look(stream.server_name()),
            Stream::Http2(_, socket) => match &*socket.borrow() {
                Stream::Tls(stream) => look(stream.server_name()),
                _ => look(None),
            },
            Stream::Tcp(_) | Stream::Unix(_) => look(None),
        }
    }

    /// Whether the connection is secured by this server.
    pub(crate) fn is_secured(&self) -> bool {
        match self {
            Stream::Tls(_) => true,
            Stream::Http2(_, socket) => socket.borrow().is_secured(),
            Stream::Tcp(_) | Stream::Unix(_) => false,
        }
    }

    /// Whether the client has connected by TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        match self {
            Stream::Http2(_, socket) => socket.borrow().is_tcp(),
            socket => socket.tcp().is_some(),
        }
    }

    /// The TCP connection, if there is one.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            Stream::Tls(stream) => Some(stream.tcp()),
            Stream::Unix(_) | Stream::Http2(..) => None,
        }
    }

    /// Reads into `buffer`. Returns the number of bytes; 0 at the end.
    pub(crate) fn poll_read_some(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => self.poll_receiving(context, buffer),
            Stream::Tls(stream) => stream.poll_read(context, buffer),
            Stream::Http2(stream, _) => stream.poll_read(context, buffer),
        }
    }

    /// Writes some of `bytes`. Returns their number.
    pub(crate) fn poll_write_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => {
                self.poll_sending(context, |socket| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL))
            }
            Stream::Tls(stream) => stream.poll_write(context, bytes),
            Stream::Http2(stream, _) => stream.poll_write(context, bytes),
        }
    }

    /// Writes some of `bytes`, which more follows at once. Returns their number. What does not fill a segment waits for
    /// the rest.
    pub(crate) fn poll_write_ahead(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tls(stream) => return stream.poll_write_ahead(context, bytes),
            Stream::Http2(stream, _) => return stream.poll_write(context, bytes),
            Stream::Tcp(_) | Stream::Unix(_) => {}
        }
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        self.poll_sending(context, |socket| rustix::net::send(socket, bytes, flags))
    }

    /// Sends some of a file; an error if it cannot be read, or has become shorter. Pending: the client takes nothing.
    pub(crate) fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        part: &mut FilePart,
    ) -> Poll<io::Result<FileProgress>> {
        if let Stream::Tls(stream) = self {
            return stream.poll_send_file(context, part);
        }
        // What the client does not take is not read.
        ready!(self.poll_writable(context))?;
        let FilePart { file, offset, length, ahead, .. } = part;
        let Poll::Ready(next) = ahead.poll_next(context, file, *offset, *length) else {
            return Poll::Ready(Ok(FileProgress::Reading));
        };
        let polled = match next? {
            Next::Bytes(bytes) => self.poll_write_some(context, bytes),
            Next::FromCache(most) => match self {
                Stream::Http2(stream, _) => stream.poll_write_file(context, file, *offset, most),
                Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) => self.poll_sending(context, |socket| {
                    let mut offset = *offset;
                    rustix::fs::sendfile(socket, &***file, Some(&mut offset), most)
                }),
            },
        };
        let Poll::Ready(sent) = polled else {
            ahead.forget();
            return Poll::Pending;
        };
        let sent = sent?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        ahead.advance(sent);
        *offset += sent as u64;
        *length -= sent as u64;
        Poll::Ready(Ok(FileProgress::Sent))
    }

    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_write_ready(context),
            Stream::Tls(stream) => stream.tcp().poll_write_ready(context),
            Stream::Unix(stream) => stream.poll_write_ready(context),
            Stream::Http2(stream, _) => stream.poll_writable(context),
        }
    }

    /// Receives by a system call, when there is something. Only for a whole socket without TLS. (The functions of libc, which
    /// tokio calls, also prepare the thread for being cancelled, see pthreads(7): 1 % of the time of a small request.)
    fn poll_receiving(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut received = None;
            let mut receive = |socket: BorrowedFd<'_>| {
                let length = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())?.0;
                received = Some(length);
                // There was less than there is room for, so nothing is left: a call more would find that.
                let is_emptied = 0 < length && length < buffer.len();
                if is_emptied {
                    Err(io::ErrorKind::WouldBlock.into())
                } else {
                    Ok(())
                }
            };
            let tried = match self {
                Stream::Tcp(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || receive(stream.as_fd()))
                }
                Stream::Unix(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_io(Interest::READABLE, || receive(stream.as_fd()))
                }
                Stream::Tls(_) | Stream::Http2(..) => Err(io::ErrorKind::Unsupported.into()),
            };
            match (received, tried) {
                (Some(length), _) => return Poll::Ready(Ok(length)),
                (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                (None, tried) => return Poll::Ready(tried.map(|()| 0)),
            }
        }
    }

    /// Sends by a system call, when the socket takes something. Only for a whole socket without TLS.
    fn poll_sending(
        &mut self,
        context: &mut Context<'_>,
        mut send: impl FnMut(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        loop {
            // The socket nearly always takes something: what tokio knows of it is asked only where it does not. A client and a
            // worker that are both fast leave others their turn all the same.
            let turn = ready!(coop::poll_proceed(context));
            let sent = match self.socket() {
                Some(socket) => send(socket).map_err(io::Error::from),
                None => Err(io::ErrorKind::Unsupported.into()),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.note_unwritable(),
                sent => {
                    turn.made_progress();
                    return Poll::Ready(sent);
                }
            }
            drop(turn);
            ready!(self.poll_writable(context))?;
        }
    }

    /// The kernel has no room for more: tokio has to look for it again.
    fn note_unwritable(&self) {
        let full = || Err(io::Error::from(io::ErrorKind::WouldBlock));
        let _: io::Result<()> = match self {
            Stream::Tcp(stream) => stream.try_io(Interest::WRITABLE, full),
            Stream::Unix(stream) => stream.try_io(Interest::WRITABLE, full),
            Stream::Tls(_) | Stream::Http2(..) => Ok(()),
        };
    }

    /// Has the kernel end the connection when the client's machine no longer answers: on a mostly idle connection, nothing
    /// else may notice for hours (tcp(7), SO_KEEPALIVE).
    pub(crate) fn keep_looking_for_peer(&self) {
        if let Stream::Http2(_, socket) = self {
            socket.borrow().keep_looking_for_peer();
        }
        let Some(socket) = self.tcp().map(SockRef::from) else { return };
        if socket.keepalive().is_ok_and(|is_on| is_on) {
            return; // since an earlier request
        }
        let every = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
        if let Err(error) = socket.set_tcp_keepalive(&every.with_retries(KEEPALIVE_RETRIES)) {
            tracing::debug!(%error, "cannot make the kernel check whether a client is still there");
        }
    }

    /// Whether the client has closed its socket, as far as the kernel knows: of a TCP connection, only after a reset.
    pub(crate) fn is_closed(&self) -> bool {
        let Some(socket) = self.socket() else { return false };
        let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
        let found = poll(&mut polled, Some(&Timespec::default()));
        found.is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Everything was sent. TLS has an alert for that, by which clients know that nothing is missing.
    pub(crate) fn end(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.end();
        }
    }

    /// Ends our side; the client may still be sending.
    pub(crate) fn shut_down_write(&mut self) {
        self.end();
        if let Some(socket) = self.socket() {
            // The client may be gone already.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
        }
    }

    /// Makes the client see a broken connection (a reset, where there is such a thing) instead of a clean end.
    pub(crate) fn reset_at_close(&self) {
        if let Stream::Http2(stream, _) = self {
            stream.reset();
        }
        if let Some(stream) = self.tcp() {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// A socket that another process has served, without TLS.
    ///
    /// # Errors
    /// It is no socket, or the event loop has no room for it.
    pub(crate) fn over(socket: OwnedFd) -> io::Result<Stream> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(if socket_domain(&socket)? == AddressFamily::UNIX {
            Stream::Unix(UnixStream::from_std(socket.into())?)
        } else {
            Stream::Tcp(TcpStream::from_std(socket.into())?)
        })
    }

    /// A second descriptor of the socket, for another process.
    ///
    /// # Errors
    /// It is a part of one, or there are too many open files.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket().ok_or(io::ErrorKind::Unsupported)?.try_clone_to_owned()
    }

    /// The socket, if it is a whole one.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_fd()),
            Stream::Tls(stream) => Some(stream.tcp().as_fd()),
            Stream::Unix(stream) => Some(stream.as_fd()),
            Stream::Http2(..) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            stream @ (Stream::Tls(_) | Stream::Http2(..)) => {
                let length = ready!(stream.poll_read_some(context, buffer.initialize_unfilled()))?;
                buffer.advance(length);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => stream.poll_write(context, bytes),
            Stream::Http2(stream, _) => stream.poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(stream) => stream.poll_write_vectored(context, slices),
            Stream::Http2(stream, _) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                stream.poll_write(context, first.map_or(&[], |slice| slice))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        !matches!(self, Stream::Http2(..))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            stream @ Stream::Tls(_) => {
                stream.shut_down_write();
                Poll::Ready(Ok(()))
            }
            Stream::Http2(stream, _) => {
                stream.end(false);
                Poll::Ready(Ok(()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::runtime::Builder;

    #[test]
    fn a_client_that_takes_everything_leaves_others_their_turn() {
        // Writes of one byte: the socket has room for more (278, where it has the usual 208 KiB), and a task gets fewer.
        const MOST: usize = 200;
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let written = runtime.block_on(async {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let mut stream = Stream::Unix(ours);
            poll_fn(|context| {
                let writes = (0..MOST).take_while(|_| stream.poll_write_some(context, b"x").is_ready());
                Poll::Ready(writes.count())
            })
            .await
        });
        assert!((1..MOST).contains(&written), "{written}");
    }
}
