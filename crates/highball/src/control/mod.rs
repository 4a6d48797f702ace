//! The control socket. In reading order: `places` (where these sockets are, and who may be at the other end), `messages` (questions and
//! answers), `socket` (this process's), `callers` (the connections at it, and at other listeners that are not the clients'),
//! `actions` (what operators do with a running server), `asking` (one question to a server, one answer), `finding` (the
//! servers that run), `listening` (the ports that a process really listens on), `elsewhere` (how to ask servers that were not
//! found), `selection` (the server that a command means).

pub(crate) mod actions;
pub(crate) mod asking;
pub(crate) mod callers;
mod elsewhere;
pub(crate) mod finding;
mod listening;
pub(crate) mod messages;
pub(crate) mod places;
pub(crate) mod selection;
pub(crate) mod socket;
