//! What the steps of a request are given beside the transaction.

use std::rc::Rc;

use super::flow::{Decision, Flow};
use crate::message::request_head::RequestHead;
use crate::pending::Pending;
use crate::protocol::Protocol;
use crate::request::client::Client;
use crate::route::app_state::AppState;
use crate::shared::Shared;
use crate::transport::stream::Stream;

/// A request as it arrived: its text, and the connection that it arrived on.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub(crate) shared: &'a Rc<Shared>,
    pub(crate) stream: &'a Stream,
    pub(crate) client: &'a Client,
    pub(crate) protocol: &'a Protocol,
    /// Text that the head has spans of.
    pub(crate) text: &'a [u8],
}

/// A request that was routed to an application.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'a> {
    pub(crate) arrived: Arrived<'a>,
    pub(crate) app: &'a Rc<AppState>,
    /// Length of the application's prefix in the path.
    pub(crate) prefix_bytes: usize,
}

impl<'a> Routed<'a> {
    /// Text that the head has spans of.
    pub(crate) fn text(&self) -> &'a [u8] {
        self.arrived.text
    }

    /// The path as the application knows it.
    pub(crate) fn path<'h>(&self, head: &'h RequestHead) -> &'h [u8]
    where
        'a: 'h,
    {
        &head.with(self.text()).path()[self.prefix_bytes..]
    }

    /// Has the request wait for this, and be routed again then.
    pub(crate) fn wait<T>(&self, pending: Pending) -> Flow<T> {
        Flow::Break(Decision::Wait { pending, text: self.text().to_vec() })
    }
}
