//! An interrupt from outside: the benchmark ends what it runs, and reports what it has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

/// Signals come to the whole process, and so whatever waits in it can look here.
static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on INT, TERM and HUP end nothing, however often they come: what runs is given up, and
/// nothing is left behind.
pub(crate) fn catch() -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, flag())
            .map_err(|error| Failure(format!("cannot catch signal {signal}: {error}")))?;
    }
    Ok(())
}

/// Whether one of these came since [`catch`].
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// What a deployment looks at while it waits.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&CAME)
}

/// What waiting for something ends with when an interrupt came.
pub(crate) fn failure() -> Failure {
    Failure::new("the benchmark was interrupted")
}
