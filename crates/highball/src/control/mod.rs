//! The control socket. In reading order: `places` (where these sockets are, and who may be at the other end), `messages` (questions and
//! answers), `socket` (that of this process), `callers` (the connections at it, and at other listeners that are not the clients'),
//! `actions` (what operators do with a running server), `asking` (finding instances, and one question to one), `listening` (the
//! ports that an instance really listens on), `elsewhere` (how to ask instances that were not found), `selection` (the one that a
//! command means).

pub(crate) mod actions;
pub(crate) mod asking;
pub(crate) mod callers;
mod elsewhere;
mod listening;
pub(crate) mod messages;
pub(crate) mod places;
pub(crate) mod selection;
pub(crate) mod socket;
