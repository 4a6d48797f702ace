//! FastCGI 1.0, the role of a responder, one request at a time on a connection.
//!
//! - [`Record`]: the header of a record;
//! - [`Reader`]: what a web server sends;
//! - [`Writer`]: what it gets.

mod pairs;
mod reader;
mod record;
mod writer;

pub use reader::Reader;
pub use record::{Record, HEADER_BYTES};
pub use writer::{Writer, RECORD_BYTES};

#[cfg(test)]
mod tests;
