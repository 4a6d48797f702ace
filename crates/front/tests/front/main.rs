//! The front as its clients, its workers and the supervisor see it. One program, because linking one for each file takes longer than
//! all of them run: a file that needs a process for itself lies beside this folder.

mod dispatch;
mod draining;
mod generations;
mod greedy_workers;
mod hostile_workers;
mod leaving;
mod many_apps;
mod places;
mod rollouts;
mod serving;
mod slow_starts;
mod streaming;
#[path = "../support/mod.rs"]
mod support;
mod warm_workers;
mod web_sockets;
