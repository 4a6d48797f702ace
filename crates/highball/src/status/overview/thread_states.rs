//! What threads do at requests. All readers within half a second share one result, so that workers are asked no more often.

use highball_config::AppId;
use highball_link::{RequestStage, RunningRequest, RunningRequests};
use highball_supervisor::{Order, ThreadState, WorkersRequests};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, Mutex};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time for which a result counts.
const FRESH: Duration = Duration::from_millis(500);
/// Requests younger than this end before anybody has read about them.
const LEAST_AGE: Duration = Duration::from_millis(100);
/// Largest number of workers to ask: those with the oldest requests.
const MOST_WORKERS: usize = 32;
/// Time for the supervisor to ask them.
const ASKING_TIME: Duration = Duration::from_millis(300);

/// A request at a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) app: AppId,
    pub(crate) worker: u32,
    pub(crate) ticket: u64,
}

impl Key {
    pub(crate) fn of(app: AppId, request: &RunningRequest) -> Option<Key> {
        request.at.map(|(worker, ticket)| Key { app, worker, ticket })
    }
}

/// What is known of requests.
pub(crate) type States = HashMap<Key, ThreadState>;

/// The last result.
#[derive(Debug, Default)]
pub(crate) struct ThreadStates(Mutex<Option<(Instant, Arc<States>)>>);

impl ThreadStates {
    /// Returns what the threads do at these requests, as far as the workers answer.
    pub(crate) async fn of(
        &self,
        supervisor: &mpsc::WeakSender<Order>,
        requests: &[RunningRequests],
    ) -> Arc<States> {
        let mut last = self.0.lock().await;
        match &*last {
            Some((at, states)) if at.elapsed() < FRESH => Arc::clone(states),
            _ => {
                let states = Arc::new(look(supervisor, requests).await.unwrap_or_default());
                *last = Some((Instant::now(), Arc::clone(&states)));
                states
            }
        }
    }
}

async fn look(supervisor: &mpsc::WeakSender<Order>, requests: &[RunningRequests]) -> Option<States> {
    let requests = by_worker(requests);
    if requests.is_empty() {
        return None;
    }
    let (to, asked) = oneshot::channel();
    let asking = async {
        supervisor.upgrade()?.send(Order::AskThreads { requests, to }).await.ok()?;
        asked.await.ok()
    };
    let mut looks = JoinSet::new();
    for asked in timeout(ASKING_TIME, asking).await.ok()?? {
        let (app, worker) = (asked.app, asked.worker);
        looks.spawn(async move { (app, worker, asked.states().await) });
    }
    let mut states = States::new();
    while let Some(found) = looks.join_next().await {
        let Ok((app, worker, found)) = found else { continue };
        states.extend(found.into_iter().map(|state| (Key { app, worker, ticket: state.ticket }, state)));
    }
    Some(states)
}

/// Returns the requests of the workers that have the oldest.
fn by_worker(requests: &[RunningRequests]) -> Vec<WorkersRequests> {
    let mut workers: BTreeMap<(AppId, u32), Vec<(Duration, u64)>> = BTreeMap::new();
    for RunningRequests { app, oldest, .. } in requests {
        let is_begun =
            |request: &&RunningRequest| request.age >= LEAST_AGE && request.stage != RequestStage::Placed;
        for request in oldest.iter().filter(is_begun) {
            let Some((worker, ticket)) = request.at else { continue };
            workers.entry((*app, worker)).or_default().push((request.age, ticket));
        }
    }
    for requests in workers.values_mut() {
        requests.sort_by_key(|(age, _)| Reverse(*age));
    }
    let mut workers: Vec<_> = workers.into_iter().collect();
    workers.sort_by_key(|(_, requests)| Reverse(requests[0].0));
    workers.truncate(MOST_WORKERS);
    let requests_of = |((app, worker), requests): (_, Vec<_>)| {
        let tickets = requests.into_iter().map(|(_, ticket)| ticket).collect();
        WorkersRequests { app, worker, tickets }
    };
    workers.into_iter().map(requests_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(worker: u32, ticket: u64, age_ms: u64, stage: RequestStage) -> RunningRequest {
        RunningRequest {
            stage,
            at: Some((worker, ticket)),
            method: "GET".into(),
            path: "/".into(),
            client: String::new(),
            age: Duration::from_millis(age_ms),
            body_bytes: 0,
            answer_bytes: 0,
        }
    }

    #[test]
    fn those_with_the_oldest_requests_are_looked_at() {
        let running = |worker, age| request(worker, u64::from(worker), age, RequestStage::Running);
        let oldest: Vec<_> = (1..=40).map(|worker| running(worker, 1000 + u64::from(worker))).collect();
        let workers = by_worker(&[RunningRequests { app: AppId(1), oldest, more: 0 }]);
        assert_eq!((workers.len(), workers[0].worker), (MOST_WORKERS, 40));
    }

    #[test]
    fn young_ones_and_those_that_were_not_begun_are_not() {
        let oldest = vec![
            request(1, 1, 5000, RequestStage::Placed),
            request(2, 2, 5, RequestStage::Running),
            request(3, 3, 4000, RequestStage::Abandoned),
            request(3, 4, 5000, RequestStage::Answering),
        ];
        let workers = by_worker(&[RunningRequests { app: AppId(1), oldest, more: 0 }]);
        assert_eq!(workers, [WorkersRequests { app: AppId(1), worker: 3, tickets: vec![4, 3] }]);
    }
}
