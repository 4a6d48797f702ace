//! The protocols that clients speak. Each reads requests into the one kind of head, and writes the events of an answer.
//!
//! [`fastcgi`] and [`lsapi`], with which web servers pass requests on, have no I/O: bytes in, events out; events in, bytes
//! out. What they have in common is in [`cgi`].

pub mod cgi;
pub mod fastcgi;
pub mod http1;
pub mod lsapi;
