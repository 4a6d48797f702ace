//! Messages between the old and the new `highball` in a hot restart. They may be of different versions: see
//! `PROTOCOL.md`.

use highball_link::HubSequence;
use serde::{Deserialize, Serialize};

/// The variable that names the new process's end of the control socket.
pub(crate) use highball_spawner::spawner::HANDOVER as VARIABLE;

/// Messages from the old process to the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToSuccessor {
    /// A listening socket, which comes with it, and the address as it was given, by which the new process knows it again.
    Listener { bind: String },
    /// With it comes the socket on which the new process reports its own successor to the PID proxy of both.
    PidProxy,
    /// Everything that it inherits was sent.
    Begin {
        /// The old process.
        pid: i32,
        /// The names of the applications that do not serve there either.
        #[serde(default)]
        broken: Vec<String>,
        /// The keys of TLS session tickets, by which clients of the old process resume their sessions in the new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket_keys: Option<String>,
        /// How the new process numbers messages. With it comes the socket over which its front gets what the hubs keep, and held
        /// clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hub: Option<HubSequence>,
    },
    /// Accept connections.
    TakeOver,
}

/// Messages from the new process to the old one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromSuccessor {
    /// It has read its options, listens to signals, and boots the application; when it is to be given up.
    Booting { version: String, limit_ms: u64 },
    /// Its workers wait for requests; the addresses that it has taken over.
    Ready { kept: Vec<String> },
    /// It accepts connections.
    Serving,
    /// It ends: at which step, why, and what to do.
    Failed { why: String },
}

/// Messages from a process that has been succeeded to its PID proxy; a pidfd comes with each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToPidProxy {
    /// This process serves from now on.
    Succeeded { pid: i32 },
}
