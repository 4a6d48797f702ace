//! LSAPI, with which LiteSpeed web servers pass requests on, one at a time on a connection.
//!
//! - [`Header`]: the header of a packet;
//! - [`Reader`]: what a web server sends;
//! - [`Writer`]: what it gets.

mod packet;
mod reader;
mod request;
mod writer;

pub use packet::{ByteOrder, Header, HEADER_BYTES};
pub use reader::Reader;
pub use writer::{Writer, PACKET_BYTES};

#[cfg(test)]
mod tests;
