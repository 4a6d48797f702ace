use super::*;
use crate::protocol::http1::reader::{Parsed, Reader};
use crate::test_limits::limits;

/// A head, and the buffer that it was read from.
pub(super) fn head_of(text: &str) -> (RequestHead, Vec<u8>) {
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let buffer = text.as_bytes().to_vec();
    let parsed = reader.parse(&buffer, &limits(), &mut head);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{parsed:?}: {text}");
    (head, buffer)
}
