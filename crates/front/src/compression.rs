//! Compression of answers, whichever protocol they go out by.
//!
//! In reading order:
//!
//! - [`accept_encoding`]: which coding the client prefers;
//! - [`content`]: which content becomes shorter;
//! - [`rules`]: whether an answer is compressed, and what its head says then;
//! - [`encoder`]: the encoders;
//! - [`room`]: how many of them there may be, and on which threads they work;
//! - [`stage`]: an answer's events on their way to the protocol.

pub mod accept_encoding;
pub(crate) mod content;
pub(crate) mod encoder;
pub(crate) mod room;
pub(crate) mod rules;
mod stage;

pub(crate) use rules::{coding_for, write_compressed};
pub(crate) use stage::Stage;
