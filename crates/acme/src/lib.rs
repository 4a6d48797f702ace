//! Certificates from an authority that speaks ACME (RFC 8555): obtained, kept in a folder, and renewed.
//!
//! In reading order: `owner` (the server, which uses the certificates), [`keeper`] (the thread that obtains and renews them), `schedule` (when
//! something is due), `backoff` (after failures), `renewal` (what the authority suggests), `validity` (of a certificate), `order` (how a
//! certificate is obtained), `client` (how the authority is reached), `proof` (what it is shown), `hook` (the program that shows it in the
//! DNS), `problem` (why it was not, and what to do), `folder` (what is kept, and how it stays whole), `inspection` (what can be seen of
//! it from outside).

mod backoff;
mod client;
mod folder;
mod hook;
mod inspection;
pub mod keeper;
mod order;
mod owner;
mod problem;
mod proof;
mod renewal;
mod schedule;
mod validity;

pub use folder::{certificate_file, kept_hosts};
pub use inspection::{inspect, Inspected};
pub use keeper::{keep, Keeper, Keeping, NameReport};
pub use owner::Owner;
pub use proof::Proof;
