//! Open descriptors that travel beside a ring, each tagged with the request it belongs to.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::entry::Ticket;
use crate::layout::RingError;

/// Bytes of a ticket.
const TICKET_BYTES: usize = 10;

/// Most descriptors in one message (`SCM_MAX_FD` of Linux).
const MESSAGE_DESCRIPTORS: usize = 253;

/// A pair of descriptor sockets: one for each side.
///
/// # Errors
/// What the system refused.
pub fn pair() -> Result<(OwnedFd, OwnedFd), RingError> {
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(|e| RingError::system("create the descriptor socket", e))
}

/// A pair of connected stream sockets.
///
/// # Errors
/// What the system refused: too many open files.
pub fn stream_pair() -> Result<(OwnedFd, OwnedFd), RingError> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|e| RingError::system("create a socket pair", e))
}

/// Sends a descriptor. `Ok(false)`: the socket is full, or this user has too many descriptors on their way.
///
/// # Errors
/// What the system refused; the other side may be gone.
pub fn send(socket: impl AsFd, ticket: Ticket, descriptor: BorrowedFd<'_>) -> Result<bool, RingError> {
    let mut bytes = [0; TICKET_BYTES];
    bytes[..8].copy_from_slice(&ticket.position.to_le_bytes());
    bytes[8..].copy_from_slice(&ticket.slot.to_le_bytes());
    match send_message(socket, &bytes, &[descriptor], SendFlags::DONTWAIT) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => Ok(false),
        Err(e) => Err(RingError::system("send a descriptor", e)),
    }
}

/// Receives the next descriptor. `Ok(None)`: there is none now.
///
/// # Errors
/// What the system refused, too many open files included; a message without a ticket, or with none or several descriptors,
/// is a breach.
pub fn receive(socket: impl AsFd) -> Result<Option<(Ticket, OwnedFd)>, RingError> {
    let mut bytes = [0; TICKET_BYTES];
    let message = match receive_message(&socket, &mut bytes, RecvFlags::DONTWAIT) {
        Ok(message) => message,
        Err(Errno::AGAIN) => return Ok(None),
        Err(e) => return Err(RingError::system("receive a descriptor", e)),
    };
    if message.has_lost_descriptors {
        return Err(RingError::system("receive a descriptor", Errno::MFILE));
    }
    let mut descriptors = message.descriptors.into_iter();
    let length = if message.is_cut_off { usize::MAX } else { message.length };
    match (descriptors.next(), descriptors.next(), length) {
        (Some(descriptor), None, TICKET_BYTES) => {
            let ticket = Ticket {
                position: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
                slot: u16::from_le_bytes([bytes[8], bytes[9]]),
            };
            Ok(Some((ticket, descriptor)))
        }
        (None, None, 0) => Ok(None),
        _ => Err(RingError::Breach("a descriptor message that is not one ticket and one descriptor")),
    }
}

/// Sends bytes, and descriptors beside them, over a Unix socket. Returns the number of bytes that were sent: over a stream,
/// they may be fewer. There is no signal if the other side is gone.
///
/// # Errors
/// What the system refused; `EINVAL` if there are more descriptors than one message can have.
pub fn send_message(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    let flags = flags | SendFlags::NOSIGNAL;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            sent => return sent,
        }
    }
}

/// A message that came over a Unix socket.
#[derive(Debug)]
pub struct Message {
    /// Bytes received.
    pub length: usize,
    /// The descriptors beside them. To close them does not block.
    pub descriptors: Vec<OwnedFd>,
    /// Whether a packet had more bytes than there was room for.
    pub is_cut_off: bool,
    /// Whether descriptors were lost since this process has too many open files.
    pub has_lost_descriptors: bool,
}

/// Receives bytes from a process that is not trusted, and all descriptors that come with them.
///
/// Descriptors that a receiver does not ask for are closed in its name. A TCP socket with a linger time would hold it up
/// then: so there is always room for all of them, and the linger time is taken away before anything is closed.
///
/// # Errors
/// What the system refused.
pub fn receive_message(socket: impl AsFd, bytes: &mut [u8], flags: RecvFlags) -> Result<Message, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::new();
    for item in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = item {
            descriptors.extend(rights);
        }
    }
    for descriptor in &descriptors {
        let _ = sockopt::set_socket_linger(descriptor, None); // most are no sockets
    }
    Ok(Message {
        length: received.bytes,
        descriptors,
        is_cut_off: received.flags.contains(ReturnFlags::TRUNC),
        has_lost_descriptors: received.flags.contains(ReturnFlags::CTRUNC),
    })
}

/// Receives bytes of a stream from a process that is not trusted; descriptors that come with them are closed.
///
/// # Errors
/// What the system refused.
pub fn receive_bytes(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    Ok(receive_message(socket, bytes, RecvFlags::DONTWAIT)?.length)
}

/// Front: checks that a descriptor is what a frame can speak of: a regular file that is open for reading. Reading from
/// anything else could block the front. (Which file systems it may lie on is for the front to say.)
///
/// # Errors
/// Anything else is a breach.
pub fn check(descriptor: &OwnedFd) -> Result<(), RingError> {
    let unfit = |_| RingError::Breach("a descriptor that cannot be examined");
    let about = rustix::fs::fstat(descriptor).map_err(unfit)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(RingError::Breach("a descriptor that is not a regular file"));
    }
    let flags = rustix::fs::fcntl_getfl(descriptor).map_err(unfit)?;
    if flags.contains(OFlags::PATH) || flags & OFlags::ACCMODE == OFlags::WRONLY {
        return Err(RingError::Breach("a descriptor that is not open for reading"));
    }
    Ok(())
}
