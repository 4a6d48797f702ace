//! The shared-memory contract between the front and one worker: `PROTOCOL.md` in code.
//!
//! In reading order:
//!
//! - [`layout`]: where everything lies in the memfd, and how large it is;
//! - [`entry`]: the dispatch order: place, claim, take back;
//! - [`ready`]: the bits that say which slots have news;
//! - [`sleep`]: who sleeps, who wakes, and why no side misses news;
//! - [`places`]: how many requests the worker may have begun at a time;
//! - [`stream`]: the counters of a slot's response area;
//! - [`memory`] over `mapping`: the memfd, mapped: the only place with raw pointers;
//! - `wake`: the system calls behind sleep and wake;
//! - [`descriptors`]: open files that travel beside the ring;
//! - [`request`] and [`frame`]: what stands in the areas;
//! - [`request_times`]: what requests do with their time;
//! - [`front`] and [`worker`]: the two ends.
//!
//! Under `--cfg loom` the atomics, [`memory`] and `wake` are models, and loom runs the rest as it is
//! (`tests/loom.rs`).

pub mod descriptors;
pub mod entry;
pub mod env_keys;
pub mod frame;
pub mod front;
pub mod layout;
pub mod places;
pub mod ready;
pub mod request;
pub mod request_times;
pub mod sleep;
pub mod stream;
mod sync;
pub mod worker;

#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
pub mod memory;
#[cfg(loom)]
#[path = "memory_model.rs"]
pub mod memory;
#[cfg(not(loom))]
mod wake;
#[cfg(loom)]
#[path = "wake_model.rs"]
pub mod wake;

pub use entry::Ticket;
pub use front::{create, create_from, FrontRing, WorkerFds};
pub use layout::{Geometry, RingError};
pub use places::KeptBy;
pub use request_times::RequestTimes;
pub use worker::WorkerRing;
