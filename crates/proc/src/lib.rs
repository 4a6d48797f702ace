//! What the kernel reports about a process in `/proc`: read by the server (`highball memory`) and by the benchmark.

mod process_memory;

pub use process_memory::{ProcessMemory, RingMemory};
