//! Garbage collections and Ruby heaps of a server's workers: each is asked by a signal, and answers in a file
//! (`bench/apps/heap_on_signal.rb`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::waiting::wait_for;
use crate::Failure;

/// How long a collection may take, and how often its end is looked for.
const COLLECTION: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How the command lines of workers begin.
pub(super) const WORKERS_BEGIN: [&str; 4] =
    ["highball worker", "puma: cluster worker", "Passenger RubyApp", "unicorn worker"];

/// Slots of a process's Ruby heap after a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Heap {
    pub(super) used: u64,
    pub(super) free: u64,
}

/// What a process needs to answer.
pub(super) fn env(bench: &Path) -> (String, String) {
    ("RUBYOPT".into(), format!("-r{}", bench.join("apps/heap_on_signal.rb").display()))
}

/// Has each of these processes collect its garbage. `folder` is where they put temporary files.
///
/// # Errors
/// One does not answer.
pub(super) fn collect(pids: &[i32], folder: &Path) -> Result<Vec<Heap>, Failure> {
    for &pid in pids {
        let signalled = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::POWER));
        if !matches!(signalled, Some(Ok(()))) {
            return Err(Failure(format!("process {pid} is gone before its garbage collection")));
        }
    }
    let mut heaps = BTreeMap::new();
    wait_for(COLLECTION, LOOK_EVERY, || {
        for &pid in pids {
            if let Some(heap) =
                fs::read_to_string(folder.join(format!("heap.{pid}"))).ok().as_deref().and_then(parse)
            {
                heaps.insert(pid, heap);
            }
        }
        match heaps.len() == pids.len() {
            true => Ok(()),
            false => Err(Failure(format!("{} of {} workers reported their heaps", heaps.len(), pids.len()))),
        }
    })?;
    Ok(heaps.into_values().collect())
}

/// `12345 678`.
fn parse(text: &str) -> Option<Heap> {
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some(Heap { used: numbers.next()??, free: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_write_is_read() {
        assert_eq!(parse("12345 678\n"), Some(Heap { used: 12345, free: 678 }));
        assert_eq!((parse("12345"), parse("a b"), parse("")), (None, None, None));
    }
}
