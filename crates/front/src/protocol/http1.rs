//! HTTP/1.0 and HTTP/1.1 (RFC 9112).

pub mod writer;
