//! What the server and the benchmark both ask of the kernel: what it reports about a process in `/proc` (for
//! `highball memory`), more open files, and no core files.
//!
//! In reading order: `process_memory` (of any process), `own_memory` (what it shares with no other), `process_figures`
//! and `thread_load` (processor time and states), `resource_limits`.

mod own_memory;
mod process_figures;
mod process_memory;
mod resource_limits;
mod thread_load;

pub use own_memory::{family, glance, own_bytes, own_bytes_at_most, Glance};
pub use process_figures::{open_files, process_figures, proportional_bytes, started_at, ProcessFigures};
pub use process_memory::{ProcessMemory, RingMemory};
pub use resource_limits::{allow_open_files, open_files_limit, write_no_core_files};
pub use thread_load::{system_call, thread_loads, waited_for_processor, ThreadLoad};
