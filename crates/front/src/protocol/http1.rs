//! HTTP/1.0 and HTTP/1.1 (RFC 9112).

pub mod body;
pub mod reader;
mod scan;
pub mod writer;
