//! Open descriptors that travel beside a ring, each tagged with the request it belongs to.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::layout::RingError;

/// Bytes of a tag.
const TAG_BYTES: usize = 10;

/// Which request a descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The entry's position.
    pub position: u64,
    /// The slot.
    pub slot: u16,
}

/// A pair of descriptor sockets: one for each side.
///
/// # Errors
/// What the system refused.
pub fn pair() -> Result<(OwnedFd, OwnedFd), RingError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(|e| RingError::system("create the descriptor socket", e))
}

/// Sends a descriptor. `Ok(false)`: the socket is full.
///
/// # Errors
/// What the system refused; the other side may be gone.
pub fn send(socket: impl AsFd, tag: Tag, descriptor: BorrowedFd<'_>) -> Result<bool, RingError> {
    let mut bytes = [0; TAG_BYTES];
    bytes[..8].copy_from_slice(&tag.position.to_le_bytes());
    bytes[8..].copy_from_slice(&tag.slot.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Ok(false);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => return Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(e) => return Err(RingError::system("send a descriptor", e)),
        }
    }
}

/// Receives the next descriptor. `Ok(None)`: there is none now.
///
/// # Errors
/// What the system refused; a message without a tag or descriptor is a breach.
pub fn receive(socket: impl AsFd) -> Result<Option<(Tag, OwnedFd)>, RingError> {
    let mut bytes = [0; TAG_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let length = loop {
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(message) => break message.bytes,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(e) => return Err(RingError::system("receive a descriptor", e)),
        }
    };
    let mut received = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            // Surplus descriptors are closed as they are dropped.
            received = descriptors.into_iter().last();
        }
    }
    match received {
        Some(descriptor) if length == TAG_BYTES => {
            let tag = Tag {
                position: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
                slot: u16::from_le_bytes([bytes[8], bytes[9]]),
            };
            Ok(Some((tag, descriptor)))
        }
        _ if length == 0 => Ok(None),
        _ => Err(RingError::Breach("a descriptor message without tag or descriptor")),
    }
}
