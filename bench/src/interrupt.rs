//! An interrupt from outside: the benchmark ends what it runs, and reports what it has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

/// Signals come to the whole process, and so whatever waits in it can look here.
static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether INT, TERM or HUP came since [`Interrupt::catch`].
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// What waiting for something ends with when an interrupt came.
pub(crate) fn failure() -> Failure {
    Failure::new("the benchmark was interrupted")
}

/// Says that these signals are caught.
#[derive(Debug, Clone, Copy)]
pub struct Interrupt(());

impl Interrupt {
    /// From now on INT, TERM and HUP end nothing by themselves, however often they come: what runs is given up, and
    /// nothing is left behind.
    ///
    /// # Errors
    /// The system does not let them be caught.
    pub fn catch() -> Result<Interrupt, Failure> {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&CAME))
                .map_err(|error| Failure(format!("cannot catch signal {signal}: {error}")))?;
        }
        Ok(Interrupt(()))
    }

    /// What a deployment looks at while it waits.
    pub(crate) fn flag(self) -> Arc<AtomicBool> {
        Arc::clone(&CAME)
    }

    /// Whether one came.
    pub fn came(self) -> bool {
        came()
    }
}
