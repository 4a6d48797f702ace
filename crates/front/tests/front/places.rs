//! Workers whose number of threads follows the requests.

use crate::support::{Client, FakeWorker, Front, Job, PATIENCE};

/// Requests for this path.
fn requests(front: &Front, path: &str, number: usize) -> Vec<Client> {
    (0..number).map(|_| front.get(path)).collect()
}

/// Begins all that was placed, and waits until the front has seen that.
fn claim_all(front: &Front, worker: &FakeWorker, jobs: &mut Vec<Job>, number: usize) {
    while jobs.len() < number {
        jobs.push(worker.claim());
    }
    front.until("the requests to be begun", |report| report.apps[0].workers[0].in_flight >= number);
    assert!(worker.try_claim().is_none(), "more than the worker has places");
}

fn wait_until_wanted(worker: &FakeWorker) {
    let began = std::time::Instant::now();
    while !worker.ring.is_place_wanted() {
        assert!(began.elapsed() < PATIENCE, "no place is wanted");
        std::thread::yield_now();
    }
}

#[test]
fn a_worker_gets_as_many_requests_as_it_has_places() {
    let front = Front::start();
    let worker = front.worker_of_range(1, 4);
    let mut clients = requests(&front, "/wait", 6);
    let mut jobs = Vec::new();
    claim_all(&front, &worker, &mut jobs, 1);
    for places in [2, 3] {
        wait_until_wanted(&worker);
        worker.ring.set_places(places);
        claim_all(&front, &worker, &mut jobs, places as usize);
    }
    wait_until_wanted(&worker);
    worker.ring.set_places(99);
    front.until("the largest number", |report| report.apps[0].workers[0].threads == 4);
    assert!(worker.try_claim().is_none(), "the last place is for other requests");
    let mut other = front.get("/");
    worker.claim().answer("other");
    assert_eq!(other.answer().text(), "other");
    worker.ring.set_places(1);
    while let Some(job) = jobs.pop() {
        job.answer("waited");
    }
    (0..3).for_each(|_| worker.claim().answer("waited"));
    clients.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "waited"));
    assert!(!worker.ring.is_place_wanted());
}

#[test]
fn no_place_is_wanted_while_one_is_free() {
    let front = Front::start();
    let worker = front.worker_of_range(2, 4);
    let mut client = front.get("/");
    let job = worker.claim();
    assert!(!worker.ring.is_place_wanted());
    job.answer("one");
    assert_eq!(client.answer().text(), "one");
}

#[test]
fn a_worker_that_dies_with_its_places_leaves_none_behind() {
    let front = Front::start();
    let first = front.worker_of_range(1, 4);
    let mut clients = requests(&front, "/wait", 3);
    let mut jobs = Vec::new();
    claim_all(&front, &first, &mut jobs, 1);
    wait_until_wanted(&first);
    first.ring.set_places(3);
    claim_all(&front, &first, &mut jobs, 3);
    let second = front.worker_of_range(1, 4);
    front.remove(&first);
    let mut again = vec![second.claim()];
    front.until("one worker", |report| report.apps[0].workers.len() == 1);
    assert!(second.try_claim().is_none(), "the new one has one place");
    wait_until_wanted(&second);
    second.ring.set_places(3);
    again.extend((0..2).map(|_| second.claim()));
    again.into_iter().for_each(|job| job.answer("again"));
    clients.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "again"));
}
