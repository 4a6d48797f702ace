//! What the server and the benchmark both ask of the kernel: what it reports about a process in `/proc` (for
//! `highball memory`), and more open files.

mod open_files;
mod process_figures;
mod process_memory;

pub use open_files::allow_open_files;
pub use process_figures::{process_figures, proportional_bytes, ProcessFigures};
pub use process_memory::{ProcessMemory, RingMemory};
