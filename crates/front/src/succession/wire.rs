//! The socket between two fronts: u32 length, little-endian, then a message; with its first byte comes at most one descriptor.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use highball_ring::descriptors::{receive_message, send_message};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use serde::de::DeserializeOwned;
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

/// Longest message, in bytes. (The largest have the state of a client with many channels.)
const MOST_BYTES: usize = 64 << 20;

/// Bytes that are received at a time.
const READ_BYTES: usize = 64 * 1024;

/// Pause where too many descriptors are on their way.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// What this process sends, from several tasks.
#[derive(Debug, Clone)]
pub(crate) struct WireWriter(Rc<Mutex<Rc<UnixStream>>>);

/// The turn of one of them.
#[derive(Debug)]
pub(crate) struct WireTurn<'a>(MutexGuard<'a, Rc<UnixStream>>);

/// What comes from the other one.
#[derive(Debug)]
pub(crate) struct WireReader {
    socket: Rc<UnixStream>,
    /// What has come, and how much of it was used.
    bytes: Vec<u8>,
    used: usize,
    descriptors: VecDeque<OwnedFd>,
}

/// Appends a message to `out`.
///
/// # Errors
/// It is too long.
pub(crate) fn encode(message: &impl Serialize, out: &mut Vec<u8>) -> io::Result<()> {
    let begin = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    serde_json::to_writer(&mut *out, message)?;
    let length = out.len() - begin - LENGTH_BYTES;
    if length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    out[begin..begin + LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Returns both directions of this process's end of the socket.
///
/// # Errors
/// The event loop has no room for the socket.
pub(crate) fn wire_over(socket: OwnedFd) -> io::Result<(WireReader, WireWriter)> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    let socket = Rc::new(UnixStream::from_std(socket)?);
    let writer = WireWriter(Rc::new(Mutex::new(Rc::clone(&socket))));
    Ok((WireReader { socket, bytes: Vec::new(), used: 0, descriptors: VecDeque::new() }, writer))
}

impl WireWriter {
    /// Waits until no other task sends.
    pub(crate) async fn turn(&self) -> WireTurn<'_> {
        WireTurn(self.0.lock().await)
    }

    /// Sends messages that were encoded, and a descriptor with the first.
    ///
    /// # Errors
    /// The other end has gone.
    pub(crate) async fn send(&self, messages: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.turn().await.send(messages, descriptor).await
    }
}

impl WireTurn<'_> {
    /// The same as [`WireWriter::send`].
    ///
    /// # Errors
    /// The other end has gone.
    pub(crate) async fn send(&self, messages: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut sent = 0;
        while sent < messages.len() {
            self.0.writable().await?;
            let descriptors: Vec<_> = descriptor.filter(|_| sent == 0).into_iter().collect();
            let flags = SendFlags::DONTWAIT;
            let send = || Ok(send_message(&**self.0, &messages[sent..], &descriptors, flags)?);
            match self.0.try_io(Interest::WRITABLE, send) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if is_about_room(&error) => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl WireReader {
    /// Waits for the next message. Nothing is lost when the caller stops to wait. `None`: the other end has gone.
    ///
    /// # Errors
    /// What comes is no message.
    pub(crate) async fn receive<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        loop {
            if let Some(length) = self.length()? {
                let begin = self.used + LENGTH_BYTES;
                self.used = begin + length;
                return Ok(Some(serde_json::from_slice(&self.bytes[begin..begin + length])?));
            }
            self.bytes.drain(..std::mem::take(&mut self.used));
            self.socket.readable().await?;
            let mut bytes = [0; READ_BYTES];
            let receive =
                || receive_message(&self.socket, &mut bytes, RecvFlags::DONTWAIT).map_err(io::Error::from);
            match self.socket.try_io(Interest::READABLE, receive) {
                Ok(message) if message.has_lost_descriptors => {
                    return Err(io::Error::other("this process has too many open files"));
                }
                Ok(message) if message.length == 0 => return Ok(None),
                Ok(message) => {
                    self.bytes.extend_from_slice(&bytes[..message.length]);
                    self.descriptors.extend(message.descriptors);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The length of the next message, if all of it has come.
    fn length(&self) -> io::Result<Option<usize>> {
        let rest = &self.bytes[self.used..];
        let Some(length) = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) else {
            return Ok(None);
        };
        if length > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((rest.len() >= LENGTH_BYTES + length).then_some(length))
    }

    /// The descriptor that came with the last message, if that has one. (It may be there before its message.)
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }
}

/// Whether too many descriptors are on their way: the other end takes them soon.
fn is_about_room(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::TOOMANYREFS | Errno::NOBUFS))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::succession::message::FromOld;

    /// What one process sends, and the other receives.
    fn pair() -> (WireWriter, WireReader) {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        (wire_over(one.into()).unwrap().1, wire_over(other.into()).unwrap().0)
    }

    #[tokio::test]
    async fn messages_of_any_size_come_in_order_with_their_descriptors() {
        let (ours, mut theirs) = pair();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let sending = async {
            for (lost, size) in [(1, 1), (2, 1_000_000), (3, 10)] {
                let name = vec![b'x'; size].as_slice().into();
                let mut bytes = Vec::new();
                encode(&FromOld::Stream { name, lost }, &mut bytes).unwrap();
                ours.send(&bytes, (lost != 2).then_some(reader.as_fd())).await.unwrap();
            }
            drop((ours, reader, writer));
        };
        let receiving = async {
            for number in 1..=3 {
                let received = theirs.receive().await.unwrap();
                assert!(matches!(received, Some(FromOld::Stream { lost, .. }) if lost == number));
                assert!(number == 2 || theirs.take_descriptor().is_some());
            }
            assert_eq!(theirs.receive::<FromOld>().await.unwrap(), None);
            assert!(theirs.take_descriptor().is_none());
        };
        tokio::join!(sending, receiving);
    }

    #[tokio::test]
    async fn what_is_no_message_is_an_error() {
        for bad in [&b"\x01\0\0\0{"[..], b"\xff\xff\xff\xff", b"\x02\0\0\0[]"] {
            let (ours, mut theirs) = pair();
            ours.send(bad, None).await.unwrap();
            assert!(theirs.receive::<FromOld>().await.is_err());
        }
    }
}
