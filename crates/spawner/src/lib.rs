//! The small process that stays root.
//!
//! Started as root, `highball serve` is this process, the *spawner*. It starts the *server* (front and supervisor) as an
//! unprivileged user, and from then on does nothing but follow a closed set of orders, within a table that was computed
//! from root's configuration. It reads no byte of a client and parses nothing that belongs to an application. The text of
//! the protocol is `PROTOCOL.md`.
//!
//! In reading order:
//!
//! - [`message`]: the orders, the replies and the news, and how they are encoded;
//! - [`channel`]: packets and descriptors on a socket;
//! - [`policy`]: the table, as the spawner sees it; the binary has the real one;
//! - [`spawner`]: the loop: orders, signals, children;
//! - [`start`]: starting the server, and processes of applications' users;
//! - [`descent`]: which processes may be sent signals;
//! - [`exec`]: what happens between fork and exec, and descriptors that are inherited: the only `unsafe` here.

pub mod channel;
pub mod descent;
pub mod exec;
pub mod message;
pub mod policy;
pub mod spawner;
mod start;

pub use message::{Ended, Role, ServiceState};
pub use policy::{Policy, Refusal, Runner, Successor};
pub use spawner::Spawner;
pub use start::{as_user, become_user, take_silent, NEWS, ORDERS, READER, SERVER_TITLE, TABLE, WATCHER};
