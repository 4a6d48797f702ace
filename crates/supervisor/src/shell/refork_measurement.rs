//! What the processes of an application take in memory, as they report it themselves: with a spawner, the server may not look
//! into them. What they say decides on nothing but their own application's reforks.

use super::app::AppSupervisor;
use crate::control::message::OwnMemory;
use crate::control::questions::Answer;
use crate::core::auto_refork::{AppMemory, MEASURE_TIME};
use crate::core::{AppEvent, Receipt};
use crate::shell::event::{Discovery, Found};
use tokio::time::timeout;

impl AppSupervisor {
    /// Asks this mold and these workers. `free_bytes`: what the application can still get, if there is a limit. The answer comes
    /// as an event; nothing is waited for here.
    pub(super) fn measure_memory(
        &mut self,
        receipt: Receipt,
        boot: u32,
        workers: &[u32],
        free_bytes: Option<u64>,
    ) {
        let mold = self.molds.get_mut(&boot).and_then(|mold| mold.ask_memory().ok());
        let mut ask = |worker| self.workers.get_mut(worker)?.ask_memory().ok();
        let workers: Option<Vec<Answer<_>>> = workers.iter().map(&mut ask).collect();
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let answers = async { measured(mold?, workers?, free_bytes).await };
            // Half of the time that the core waits: so it knows soon that there will be no answer.
            let memory = timeout(MEASURE_TIME / 2, answers).await.ok().flatten();
            let event = AppEvent::MemoryMeasured { receipt, memory };
            inbox.put(Discovery::Found(Found::Event(Box::new(event)))).await;
        });
    }
}

/// `None`: one has ended, or cannot tell.
async fn measured(
    mold: Answer<Option<OwnMemory>>,
    workers: Vec<Answer<Option<OwnMemory>>>,
    free_bytes: Option<u64>,
) -> Option<AppMemory> {
    let mold = mold.await.ok()??;
    let mut all = Vec::with_capacity(workers.len());
    for worker in workers {
        all.push(worker.await.ok()??);
    }
    Some(summed(mold, &all, free_bytes))
}

fn summed(mold: OwnMemory, workers: &[OwnMemory], free_bytes: Option<u64>) -> AppMemory {
    let sum = |of: fn(&OwnMemory) -> u64| workers.iter().map(of).fold(0, u64::saturating_add);
    let number = workers.len() as u64;
    AppMemory {
        workers: number,
        private_kib: sum(|worker| worker.private_dirty_kib) / number.max(1),
        resident_kib: workers.iter().map(|worker| worker.rss_kib).max().unwrap_or_default(),
        total_kib: sum(|worker| worker.pss_kib).saturating_add(mold.pss_kib),
        free_kib: free_bytes.map(|bytes| bytes / 1024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_shared_count_once() {
        let process =
            |private_dirty_kib, pss_kib| OwnMemory { private_dirty_kib, pss_kib, rss_kib: 2 * pss_kib };
        let memory = summed(process(1, 50), &[process(10, 20), process(30, 40)], Some(4096));
        let expected =
            AppMemory { workers: 2, private_kib: 20, resident_kib: 80, total_kib: 110, free_kib: Some(4) };
        assert_eq!(memory, expected);
        assert_eq!(summed(process(0, 0), &[], None), AppMemory::default());
    }
}
