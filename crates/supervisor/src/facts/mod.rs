//! Facts that the core and the shell tell each other, below both. Facts for the front and the binary, too, are in
//! `highball-link`.
//!
//! In reading order: [`spawn_journey`] (the step that a boot has reached), [`boot_failure`], [`ending`] (how a process
//! ended), [`folder_state`] (whether files have changed).

pub(crate) mod boot_failure;
pub(crate) mod ending;
pub(crate) mod folder_state;
pub(crate) mod spawn_journey;
