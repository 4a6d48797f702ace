//! The event loop of this process's main thread, or of a command.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// # Errors
/// The system has no descriptors left.
pub(crate) fn event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
