//! Heads of requests, for tests.

use crate::message::request_head::{RequestHead, RingContext};
use crate::protocol::http1::reader::{Parsed, Reader};
use crate::tests::limits::limits;

/// What a worker gets of requests beside their heads.
pub(crate) const CONTEXT: RingContext<'_> = RingContext {
    remote_addr: "10.0.0.1",
    server_name: "localhost",
    server_port: 3000,
    script_name: "",
    prefix_bytes: 0,
    request_id: None,
    remote_user: None,
    https: false,
    takeover: true,
    received_us: 77,
    content_length: None,
};

/// The head that this text is.
pub(crate) fn head_of(text: impl AsRef<[u8]>) -> RequestHead {
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let parsed = reader.parse(text.as_ref(), &limits(), &mut head);
    let is_whole = matches!(parsed, Ok(Parsed::Complete { .. }));
    assert!(is_whole, "{parsed:?}: {}", String::from_utf8_lossy(text.as_ref()));
    head
}
