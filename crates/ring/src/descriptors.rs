//! Open descriptors that travel beside a ring, each tagged with the request it belongs to.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType,
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
    use rustix::net::SocketFlags;
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(|e| RingError::system("create the descriptor socket", e))
}

/// Sends a descriptor. `Ok(false)`: the socket is full, or this user has too many descriptors on their way.
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
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(e) => return Err(RingError::system("send a descriptor", e)),
        }
    }
}

/// Receives the next descriptor. `Ok(None)`: there is none now.
///
/// # Errors
/// What the system refused, too many open files included; a message without a tag or descriptor is a breach.
pub fn receive(socket: impl AsFd) -> Result<Option<(Tag, OwnedFd)>, RingError> {
    let mut bytes = [0; TAG_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = loop {
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(message) => break message,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(e) => return Err(RingError::system("receive a descriptor", e)),
        }
    };
    let length = message.bytes;
    let mut received = None;
    for item in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = item {
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
        None if message.flags.contains(ReturnFlags::CTRUNC) => {
            Err(RingError::system("receive a descriptor", Errno::MFILE))
        }
        _ if length == 0 => Ok(None),
        _ => Err(RingError::Breach("a descriptor message without tag or descriptor")),
    }
}

/// Front: checks that a descriptor is what a frame can speak of: a regular file, or a Unix stream socket. To
/// read from anything else could block the front, and so could closing it.
///
/// # Errors
/// Anything else is a breach.
pub fn check(descriptor: &OwnedFd) -> Result<(), RingError> {
    let unfit = |_| RingError::Breach("a descriptor that cannot be examined");
    let kind = FileType::from_raw_mode(rustix::fs::fstat(descriptor).map_err(unfit)?.st_mode);
    let fits = match kind {
        FileType::RegularFile => true,
        FileType::Socket => {
            // A TCP socket with a linger time would hold up whoever closes it.
            sockopt::set_socket_linger(descriptor, None).map_err(unfit)?;
            sockopt::socket_domain(descriptor).map_err(unfit)? == AddressFamily::UNIX
                && sockopt::socket_type(descriptor).map_err(unfit)? == SocketType::STREAM
        }
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(RingError::Breach("a descriptor that is neither a regular file nor a Unix stream socket"))
    }
}
