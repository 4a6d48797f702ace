//! Packets on a SOCK_SEQPACKET socket, each with at most one descriptor.

use crate::message::PACKET_BYTES;
use rustix::net::{
    recvmsg, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A received packet.
#[derive(Debug)]
pub enum Received {
    /// The bytes, and the descriptor that came with them.
    Packet(Vec<u8>, Option<OwnedFd>),
    /// It was too long, or had too many descriptors.
    CutOff,
    /// The other end is closed.
    Closed,
}

/// Makes a pair; both ends are closed on exec.
///
/// # Errors
/// There are no descriptors left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a packet without waiting.
///
/// # Errors
/// The other end is closed, or does not read: [`io::ErrorKind::WouldBlock`].
pub fn send(socket: &OwnedFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// Receives a packet. `wait`: as long as the socket lets it.
///
/// # Errors
/// There is none yet ([`io::ErrorKind::WouldBlock`]), or the system refuses it.
pub fn receive(socket: &OwnedFd, wait: bool) -> io::Result<Received> {
    let mut bytes = vec![0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = if wait { RecvFlags::CMSG_CLOEXEC } else { RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT };
    let received = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Closed),
        other => other?,
    };
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptor = rights.last(); // the others are closed
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Ok(Received::CutOff);
    }
    if received.bytes == 0 {
        return Ok(Received::Closed);
    }
    bytes.truncate(received.bytes);
    Ok(Received::Packet(bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_packet_arrives_with_its_descriptor() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, b"order", Some(ours.as_fd())).unwrap();
        let Received::Packet(bytes, descriptor) = receive(&theirs, true).unwrap() else { panic!() };
        assert_eq!((&bytes[..], descriptor.is_some()), (&b"order"[..], true));
        assert_eq!(receive(&theirs, false).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop((ours, descriptor));
        assert!(matches!(receive(&theirs, true).unwrap(), Received::Closed));
    }

    #[test]
    fn what_is_too_much_is_cut_off() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &[0; PACKET_BYTES + 1], None).unwrap();
        assert!(matches!(receive(&theirs, true).unwrap(), Received::CutOff));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let eight = [ours.as_fd(); 8];
        assert!(control.push(SendAncillaryMessage::ScmRights(&eight)));
        sendmsg(&ours, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        assert!(matches!(receive(&theirs, true).unwrap(), Received::CutOff));
    }
}
