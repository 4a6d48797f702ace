//! A request: what is known of it, and its outcome. Nothing here reads from a client or writes to one; that is the
//! [connection](crate::connection)'s.
//!
//! In reading order: [`transaction`] (what is known of a request), [`client`] (who sends it), [`routed`] (what its steps
//! are given), [`steps`] (a file for each step, and their order), [`flow`] (what a step decides).
//! Then [`record`] (its line in the access log, and its place in the figures), [`timing`] (how long things took), [`page`]
//! (what a client gets beside the reason of a refusal), [`cached_answer`] (an answer of the cache while it is sent),
//! [`without_client`] (answers that go on although their client has left), [`own_request`] (what the server itself asks an
//! application).

pub(crate) mod cached_answer;
pub(crate) mod client;
mod flow;
pub(crate) mod own_request;
pub(crate) mod page;
pub(crate) mod record;
mod routed;
pub(crate) mod steps;
pub(crate) mod timing;
pub(crate) mod transaction;
mod without_client;

pub(crate) use flow::{Decision, Flow};
pub(crate) use routed::{Arrived, Routed};
pub(crate) use transaction::Transaction;
