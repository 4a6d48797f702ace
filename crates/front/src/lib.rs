//! Placeholder.

pub mod refusal;
pub mod request_body;
pub mod request_head;
pub mod response_head;
pub mod spool;
