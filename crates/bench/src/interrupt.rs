//! An interrupt from outside: the benchmark ends what it runs, and reports what it has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

/// Whether INT, TERM or HUP came.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on these signals end nothing by themselves.
    ///
    /// # Errors
    /// The system does not let them be caught.
    pub fn catch() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .map_err(|error| Failure(format!("cannot catch signal {signal}: {error}")))?;
        }
        Ok(interrupt)
    }

    /// What a deployment looks at while it waits.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
