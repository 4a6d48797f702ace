//! The shared-memory contract between the front and one worker. See `PROTOCOL.md`.
//!
//! In reading order: [`layout`], [`env_keys`].

pub mod env_keys;
