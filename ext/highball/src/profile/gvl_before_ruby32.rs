//! Before Ruby 3.2, Ruby does not report who waits for the GVL.

use magnus::{Error, Ruby};

#[derive(Debug)]
pub(super) struct GvlWatch(());

impl GvlWatch {
    /// # Errors
    /// Always.
    pub(super) fn begin(ruby: &Ruby) -> Result<Self, Error> {
        Err(Error::new(
            ruby.exception_runtime_error(),
            "the mode gvl needs Ruby 3.2 or later; `--mode wall` shows all waiting",
        ))
    }
}

/// Since when this thread waits for the GVL.
pub(super) fn waiting_since_ns(_thread: i32) -> Option<u64> {
    None
}
