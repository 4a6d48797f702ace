//! Where a request goes, for the steps that it takes there.

use std::rc::Rc;

use crate::message::request_head::RequestHead;
use crate::route::app_state::AppState;

/// Where a request goes: it was routed to an application.
#[derive(Clone, Copy)]
pub(super) struct Routed<'a> {
    pub(super) app: &'a Rc<AppState>,
    /// Length of the application's prefix in the path.
    pub(super) prefix_bytes: usize,
    /// What the head has spans of.
    pub(super) bytes: &'a [u8],
}

impl<'a> Routed<'a> {
    /// The path as the application knows it.
    pub(super) fn path(&self, head: &RequestHead) -> &'a [u8] {
        &head.path(self.bytes)[self.prefix_bytes..]
    }
}
