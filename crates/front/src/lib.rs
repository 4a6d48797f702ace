//! Placeholder.

pub mod content_type;
pub mod refusal;
pub mod request_body;
pub mod request_head;
pub mod response_head;
pub mod spool;
pub mod static_files;
