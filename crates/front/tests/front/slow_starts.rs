//! Which requests a worker of a new version gets while it starts slowly.

use crate::support::{Client, FakeWorker, Front, Job};
use highball_link::{AppCommand, FrontAppEvent, FrontEvent};
use highball_ring::RequestTimes;

/// A worker of the old version with one thread, and one of the new version with two that starts slowly: each has a request.
struct Both {
    old: FakeWorker,
    at_old: (Client, Job),
    new: FakeWorker,
    at_new: (Client, Job),
}

fn old_and_new(front: &Front) -> Both {
    let old = front.worker_of(1, 1);
    let client = front.get("/old");
    let at_old = (client, old.claim());
    let waits = front.get("/new");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let new = admitted(front);
    let at_new = (waits, new.claim());
    Both { old, at_old, new, at_new }
}

fn admitted(front: &Front) -> FakeWorker {
    let canary = front.canary_of(2);
    canary.claim().answer("");
    front.tell_app(AppCommand::AdmitCanary { worker: canary.number });
    canary
}

fn answer((mut client, job): (Client, Job), text: &str) -> Client {
    job.answer(text);
    assert_eq!(client.answer().text(), text);
    client
}

fn slow_start_ends(front: &Front, worker: &FakeWorker) {
    loop {
        if let FrontAppEvent::SlowStartEnded { worker: ended } = front.app_event() {
            return assert_eq!(ended, worker.number);
        }
    }
}

fn has_ended(front: &Front) -> bool {
    front.report(); // what was answered before has been counted
    let ended =
        |event: &FrontEvent| matches!(event, FrontEvent::OfApp(_, FrontAppEvent::SlowStartEnded { .. }));
    front.events().iter().any(ended)
}

#[test]
fn it_gets_one_at_a_time_while_old_ones_serve() {
    let front = Front::start();
    let Both { at_old, new, at_new, .. } = old_and_new(&front);
    let mut waits = front.get("/waits");
    front.until("it waits", |report| report.apps[0].queue == 1);
    assert!(new.try_claim().is_none());
    answer(at_new, "new");
    new.answers(&mut waits, "new");
    answer(at_old, "old");
}

#[test]
fn a_connection_that_it_has_answered_stays_with_it() {
    let front = Front::start();
    let Both { old, at_old, new, at_new } = old_and_new(&front);
    let mut met = answer(at_new, "new");
    let _other = front.get("/other");
    let _at_new = new.claim();
    answer(at_old, "old");
    met.get("/again");
    new.answers(&mut met, "new");
    assert!(old.try_claim().is_none());
}

#[test]
fn it_ends_when_few_requests_arrive() {
    let front = Front::start();
    let Both { at_old: _at_old, new, at_new, .. } = old_and_new(&front);
    answer(at_new, "new");
    slow_start_ends(&front, &new);
}

#[test]
fn it_ends_if_none_has_anything_to_do() {
    let front = Front::start();
    let _old = front.worker_of(1, 2);
    let new = admitted(&front);
    slow_start_ends(&front, &new);
}

#[test]
fn it_ends_when_the_worker_is_as_fast_as_the_old_ones() {
    let front = Front::start();
    let Both { old, at_old, new, at_new } = old_and_new(&front);
    answer(at_old, "old");
    answer(at_new, "new");
    let ended = (0..200).any(|_| {
        let mut clients = [front.get("/"), front.get("/")];
        let jobs = [(&new, new.claim()), (&old, old.claim())];
        for (worker, job) in jobs {
            let time = RequestTimes { requests: 1, computed_us: 1000, ..RequestTimes::default() };
            worker.ring.add_request_time(&time);
            job.answer("");
        }
        clients.iter_mut().for_each(|client| drop(client.answer()));
        has_ended(&front)
    });
    assert!(ended);
}

#[test]
fn it_ends_with_the_last_old_worker() {
    let front = Front::start();
    let Both { old, at_old: (mut client, job), new, at_new } = old_and_new(&front);
    let mut waits = front.get("/waits");
    front.until("it waits", |report| report.apps[0].queue == 1);
    drop(job);
    front.remove(&old);
    slow_start_ends(&front, &new);
    // The request of the old one is repeated.
    new.answers(&mut client, "new");
    new.answers(&mut waits, "new");
    answer(at_new, "new");
}
