//! Certificates from an authority that speaks ACME (RFC 8555): obtained, kept in a folder, and renewed.
//!
//! In reading order: [`keeper`] (the thread that sees to it), `schedule` (when something is due), `validity` (of a certificate), `order` (how a certificate is
//! obtained), `proof` (what the authority is shown), `problem` (why it was not, and what to do), `folder` (what is kept, and how it stays whole).

mod folder;
pub mod keeper;
mod order;
mod problem;
mod proof;
mod schedule;
mod validity;

pub use folder::certificate_file;
pub use keeper::{keep, Keeper, Keeping, NameReport, Owner};
pub use proof::Proof;
