//! The process core: decides what happens to applications and their processes, and does none of it.
//!
//! [`Server::step`] takes an [`Event`] and the time, changes the state, and returns [`Action`]s. It reads no clock and no
//! file, sends no message and starts no process: the shell performs the actions and reports each outcome as an event. So
//! the same events always lead to the same actions, and a simulator ([`sim`]) can drive the core through millions of
//! them.
//!
//! Processes have numbers here: a mold the number of its boot, a worker its own. Numbers are never used twice, so a late
//! event cannot reach the wrong process. Process ids, descriptors and rings are the shell's.
//!
//! In reading order:
//!
//! - [`event`], [`action`], [`log`]: what goes in, and what comes out; [`ids`]: what it is about; [`config`]: what is given;
//! - [`server`]: what exists once, whose turn it is to boot, and the handover to another `highball`;
//! - [`staff`], [`molds`], [`boots`], [`restarts`], [`reforks`]: the parts of an application. Each alone changes its state, and
//!   returns what follows for others. [`condition`]: whether the application is there; [`version`]: what it is;
//! - [`app`]: the parts together; [`step`]: what an event means for which of them, and in which order; [`outbox`]: what comes
//!   of a step;
//! - [`mold`], [`worker`], [`workers`]: processes; [`restart`], [`refork`]: stages and causes;
//! - [`rolling`], [`restart_policy`], [`crash_loop`], [`replacement`], [`auto_refork`]: what comes next, and when, as pure
//!   functions;
//! - [`memory`]: which worker has too much of it; [`sizing`]: how many workers the load needs;
//! - [`companions`]: processes beside the workers;
//! - [`departure`]: the end of a process;

pub(crate) mod action;
pub(crate) mod app;
pub(crate) mod auto_refork;
mod boots;
pub(crate) mod companions;
pub(crate) mod condition;
pub(crate) mod config;
pub(crate) mod crash_loop;
pub(crate) mod departure;
pub(crate) mod event;
pub(crate) mod ids;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod mold;
pub(crate) mod molds;
mod outbox;
#[cfg(test)]
mod purity;
pub(crate) mod refork;
pub(crate) mod reforks;
pub(crate) mod replacement;
pub(crate) mod restart;
pub(crate) mod restart_policy;
pub(crate) mod restarts;
pub(crate) mod rolling;
#[cfg(test)]
mod samples;
pub(crate) mod server;
#[cfg(test)]
mod sim;
pub(crate) mod sizing;
mod staff;
mod step;
#[cfg(test)]
mod table;
mod version;
pub(crate) mod worker;
pub(crate) mod workers;

pub(crate) use action::{Action, AppAction, WorkerOrder};
pub(crate) use app::App;
pub(crate) use config::{AppConfig, ServerConfig, Source};
pub(crate) use event::{AppEvent, Event, SuccessorEvent};
pub(crate) use ids::{Process, Receipt};
pub(crate) use log::{AppLog, ServerLog};
pub(crate) use server::Server;
