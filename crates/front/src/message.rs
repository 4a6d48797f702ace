//! What crosses the line between protocols and all else: the head of a request, the events of an answer, and the reasons for
//! which the front answers itself. None of them knows a protocol.

pub mod answer;
pub(crate) mod conditions;
pub mod forwarded;
pub mod refusal;
pub mod request_head;
pub(crate) mod request_id;
pub(crate) mod request_start;
pub(crate) mod trace_context;
