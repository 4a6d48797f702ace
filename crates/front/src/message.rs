//! What crosses the line between protocols and all else: the head of a request, the events of an answer, and the reasons for
//! which the front answers itself. None of them knows a protocol.
//!
//! In reading order: [`request_head`]; what parts of it mean: [`forwarded`] (the client that a proxy reports),
//! [`request_id`], [`request_start`] (when a proxy got the request), [`trace_context`]; [`answer`] (its events),
//! [`conditions`] (how much of a file a client gets), [`refusal`] (the reasons, each with its status), [`web_socket_frames`].

pub mod answer;
pub(crate) mod conditions;
pub mod forwarded;
pub mod refusal;
pub mod request_head;
pub(crate) mod request_id;
pub(crate) mod request_start;
pub(crate) mod trace_context;
pub(crate) mod web_socket_frames;
