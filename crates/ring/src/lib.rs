//! The shared-memory contract between the front and one worker: `PROTOCOL.md` in code.
//!
//! In reading order:
//!
//! - [`layout`]: where everything lies in the memfd, and how large it is;
//! - [`entry`]: the dispatch order: place, claim, take back;
//! - [`ready`]: the bits that say which slots have news;
//! - [`sleep`]: who sleeps, who wakes, and why nobody sleeps through news;
//! - [`stream`]: the counters of a slot's response area;
//! - [`memory`]: the memfd, mapped: the only place with raw pointers;
//! - [`descriptors`]: open files that travel beside the ring;
//! - [`request`] and [`frame`]: what stands in the areas;
//! - [`front`] and [`worker`]: the two ends.
//!
//! The first part (`entry`, `ready`, `sleep`, `stream`) works on atomics that it is given, so that
//! loom can model it (`tests/loom.rs`).

pub mod entry;
pub mod env_keys;
pub mod frame;
pub mod layout;
pub mod ready;
pub mod request;
pub mod sleep;
pub mod stream;
mod sync;

#[cfg(not(loom))]
pub mod descriptors;
#[cfg(not(loom))]
pub mod front;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod worker;

#[cfg(not(loom))]
pub use front::{create, FrontRing, Placed, WorkerFds};
pub use layout::{Geometry, RingError};
#[cfg(not(loom))]
pub use worker::WorkerRing;
