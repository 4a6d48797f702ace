//! The control socket between the supervisor and one mold or worker: JSON messages in packets, with open
//! descriptors beside them.

use crate::control::message::{MESSAGE_BYTES, MESSAGE_DESCRIPTORS};
use crate::control::watched_fd::watched;
use highball_ring::descriptors::{receive_message, send_message};
use rustix::net::{socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// The supervisor's end of a control socket.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    socket: AsyncFd<OwnedFd>,
}

/// One received message and the descriptors that came with it.
#[derive(Debug)]
pub(crate) struct Packet<M> {
    pub(crate) message: M,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl ControlSocket {
    /// Makes a pair: our end, and the one for the other process. Both are closed on exec.
    pub(crate) fn pair() -> io::Result<(ControlSocket, OwnedFd)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((ControlSocket::over(ours)?, theirs))
    }

    /// Takes over our end of a pair that another process has made.
    pub(crate) fn over(socket: OwnedFd) -> io::Result<ControlSocket> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        Ok(ControlSocket { socket: watched(socket, interest)? })
    }

    /// Sends one message at once. A full socket is an error: the other side has stopped to read, and
    /// there are never more messages under way than the socket holds.
    pub(crate) fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send_packet(self.socket.get_ref(), message, descriptors)
    }

    /// Waits for the next message; `None` when the other side has closed.
    ///
    /// # Errors
    /// `InvalidData` for a message that is too long or not one of `M`.
    pub(crate) async fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<Packet<M>>> {
        loop {
            let mut ready = self.socket.readable().await?;
            match ready.try_io(|socket| receive_packet(socket.get_ref())) {
                Ok(Ok(None)) => return Ok(None),
                Ok(Ok(Some((bytes, descriptors)))) => {
                    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
                    let message = serde_json::from_slice(&bytes).map_err(invalid)?;
                    return Ok(Some(Packet { message, descriptors }));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => continue,
            }
        }
    }
}

/// Sends one message, outside of an event loop too.
pub(crate) fn send_packet(
    socket: &OwnedFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if descriptors.len() > MESSAGE_DESCRIPTORS {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    send_message(socket, &bytes, descriptors, SendFlags::empty())?;
    Ok(())
}

/// Receives one message, undecoded; `None` when the other side has closed.
pub(crate) fn receive_packet(socket: &OwnedFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MESSAGE_BYTES];
    let received = receive_message(socket, &mut bytes, RecvFlags::empty())?;
    let is_cut_off = received.is_cut_off || received.has_lost_descriptors;
    if is_cut_off || received.descriptors.len() > MESSAGE_DESCRIPTORS {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message was cut off"));
    }
    bytes.truncate(received.length);
    Ok((received.length > 0).then_some((bytes, received.descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::message::{Form, FromMold, FromWorker, ToMold};
    use rustix::net::send;
    use std::os::fd::AsFd;

    #[tokio::test]
    async fn a_message_arrives_with_its_descriptors() {
        let (ours, theirs) = ControlSocket::pair().unwrap();
        let theirs = ControlSocket::over(theirs).unwrap();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let order = ToMold::Fork {
            worker: 1,
            log_format: Form::Human,
            development: true,
            early_hints: false,
            timeout_header: None,
            client_certificates: false,
            slow_request_ms: None,
            sendfile: &[],
            fibers: false,
            fiber_scheduler: None,
            hub: None,
            hub_file: false,
            may_refork: false,
        };
        ours.send(&order, &[reader.as_fd(), reader.as_fd()]).unwrap();
        let packet = theirs.receive::<serde_json::Value>().await.unwrap().unwrap();
        assert_eq!(packet.message["worker"], 1);
        assert_eq!(packet.descriptors.len(), 2);
    }

    #[tokio::test]
    async fn an_invalid_message_is_an_error() {
        let (ours, theirs) = ControlSocket::pair().unwrap();
        for invalid in [&b"not json"[..], br#"{"type":"rea"#, br#"{"type":"rumour"}"#] {
            send(&theirs, invalid, SendFlags::empty()).unwrap();
            let error = ours.receive::<FromWorker>().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        send(&theirs, br#"{"type":"ready"}"#, SendFlags::empty()).unwrap();
        assert_eq!(ours.receive::<FromWorker>().await.unwrap().unwrap().message, FromWorker::Ready);
    }

    #[tokio::test]
    async fn a_closed_end_is_the_end() {
        let (ours, theirs) = ControlSocket::pair().unwrap();
        drop(theirs);
        assert!(ours.receive::<FromMold>().await.unwrap().is_none());
    }
}
