//! Options: one table, from which the command line, the configuration file, the environment and the
//! manual are made, and the resolved [`Settings`] that the rest of Highball is given.

pub mod settings;

pub use settings::{Bind, Limits, Log, LogFormat, Process, Settings, StaticFiles};
