//! What processes tell each other: [`message`], to and from molds and workers, over a [`control_socket`] (`PROTOCOL.md`);
//! [`questions`] to them that are under way; [`handover`], between two versions of Highball. [`watched_fd`]: a descriptor in the
//! event loop.

pub(crate) mod control_socket;
pub(crate) mod handover;
pub(crate) mod message;
pub(crate) mod questions;
pub(crate) mod watched_fd;
