//! A connection after its handshake, as the others use it: by polling.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::task::{ready, Context, Poll};

use rustls::ServerConnection;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::aside::file_reads::{FileProgress, Next};
use crate::message::answer::FilePart;
use crate::transport::tls::{Alpn, HTTP_2};

/// Most bytes that are encrypted at a time, so that one client does not keep the others waiting: some 20 µs.
const PIECE_BYTES: usize = 64 * 1024;

thread_local! {
    /// A piece of a file between the page cache and its encryption.
    static PIECE: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_BYTES].into());
}

/// The socket and what encrypts for it.
#[derive(Debug)]
pub(crate) struct TlsStream {
    tcp: TcpStream,
    tls: ServerConnection,
    /// The encrypted bytes of the current write, which the socket has not taken completely. The caller writes the same
    /// bytes again.
    encrypted: usize,
}

/// The socket as rustls uses it: it never waits.
pub(crate) struct Socket<'a>(pub(crate) &'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.try_read(buffer)?;
        if length > 0 && length < buffer.len() {
            // That was all: the next read waits for more, and need not ask the system first. (An end that the client has sent
            // already is not forgotten.)
            let all_read = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = self.0.try_io(Interest::READABLE, all_read);
        }
        Ok(length)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends all that is encrypted. Pending: the socket takes nothing.
pub(crate) fn poll_flush(
    tls: &mut ServerConnection,
    tcp: &TcpStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while tls.wants_write() {
        ready!(tcp.poll_write_ready(context))?;
        match tls.write_tls(&mut Socket(tcp)) {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

/// The same, as far as the socket takes it at once.
pub(crate) fn flush_now(tls: &mut ServerConnection, tcp: &TcpStream) {
    while tls.wants_write() && tls.write_tls(&mut Socket(tcp)).is_ok_and(|length| length > 0) {}
}

/// Receives some records. `false`: the client has closed the connection.
pub(crate) fn poll_receive(
    tls: &mut ServerConnection,
    tcp: &TcpStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    loop {
        ready!(tcp.poll_read_ready(context))?;
        match tls.read_tls(&mut Socket(tcp)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return Poll::Ready(received.map(|length| length > 0)),
        }
    }
}

impl TlsStream {
    pub(crate) fn new(tcp: TcpStream, mut tls: ServerConnection) -> Self {
        tls.set_buffer_limit(Some(PIECE_BYTES));
        TlsStream { tcp, tls, encrypted: 0 }
    }

    /// The protocol that the client has chosen.
    pub(crate) fn alpn(&self) -> Alpn {
        match self.tls.alpn_protocol() {
            Some(HTTP_2) => Alpn::Http2,
            _ => Alpn::Http1, // only what is offered is chosen
        }
    }

    /// The name by which the client has chosen the certificate, in small letters.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.tls.server_name()
    }

    /// The socket below.
    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Reads into `buffer`. Returns the number of bytes; 0 after the client has ended its side in order. A connection that is
    /// closed without that is an error: what was received may not be all.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
            // What the protocol itself has to answer. It waits with the rest if the socket takes nothing.
            if let Poll::Ready(Err(error)) = poll_flush(&mut self.tls, &self.tcp, context) {
                return Poll::Ready(Err(error));
            }
            ready!(poll_receive(&mut self.tls, &self.tcp, context))?;
            if let Err(error) = self.tls.process_new_packets() {
                // The alert goes out if there is room for it.
                let _ = poll_flush(&mut self.tls, &self.tcp, context);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        }
    }

    /// Writes some of `bytes`. Returns their number once the socket has taken what they have become; while it is pending,
    /// they have to stay.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    /// The same for bytes in several places. They may be divided in another way the next time.
    pub(crate) fn poll_write_vectored(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.encrypted == 0 {
            // What the protocol itself has to send, tickets above all, goes out with these bytes.
            self.encrypted = self.tls.writer().write_vectored(slices)?;
        }
        if self.encrypted == 0 {
            ready!(poll_flush(&mut self.tls, &self.tcp, context))?; // there was no room behind it
            self.encrypted = self.tls.writer().write_vectored(slices)?;
        }
        self.poll_sent(context)
    }

    /// The same for few bytes which more follows at once: they are sent with those.
    pub(crate) fn poll_write_ahead(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.encrypted > 0 || self.tls.wants_write() {
            return self.poll_write(context, bytes);
        }
        Poll::Ready(self.tls.writer().write(&bytes[..bytes.len().min(PIECE_BYTES)]))
    }

    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(poll_flush(&mut self.tls, &self.tcp, context))?;
        Poll::Ready(Ok(std::mem::take(&mut self.encrypted)))
    }

    /// Sends some of a file, as [`crate::transport::stream::Stream::poll_send_file`] does: the kernel cannot send what is to be
    /// encrypted.
    pub(crate) fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        part: &mut FilePart,
    ) -> Poll<io::Result<FileProgress>> {
        let FilePart { file, offset, length, ahead, .. } = part;
        if self.encrypted == 0 {
            // What the client does not take is not read.
            ready!(self.tcp.poll_write_ready(context))?;
            let Poll::Ready(next) = ahead.poll_next(context, file, *offset, *length) else {
                return Poll::Ready(Ok(FileProgress::Reading));
            };
            self.encrypted = match next? {
                Next::Bytes(bytes) => self.tls.writer().write(&bytes[..bytes.len().min(PIECE_BYTES)])?,
                Next::FromCache(most) => PIECE.with_borrow_mut(|piece| {
                    let read = file.read_at(&mut piece[..most.min(PIECE_BYTES)], *offset)?;
                    self.tls.writer().write(&piece[..read])
                })?,
            };
            if self.encrypted == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            ahead.advance(self.encrypted);
        }
        let Poll::Ready(sent) = self.poll_sent(context) else {
            ahead.forget();
            return Poll::Pending;
        };
        let sent = sent? as u64;
        *offset += sent;
        *length -= sent;
        Poll::Ready(Ok(FileProgress::Sent))
    }

    /// Tells the client that it has received everything, as far as the socket takes that at once.
    pub(crate) fn end(&mut self) {
        self.tls.send_close_notify();
        flush_now(&mut self.tls, &self.tcp);
    }
}
