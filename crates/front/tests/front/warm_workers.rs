//! Which worker is named as warm, and when.

use crate::support::{FakeWorker, Front};
use highball_link::{AppCommand, FrontAppEvent, FrontEvent};

fn name_warm(front: &Front, requests: u64) {
    front.tell_app(AppCommand::NameWarmWorker { requests });
}

fn named(front: &Front) -> u32 {
    loop {
        if let FrontAppEvent::WorkerWarm { worker } = front.app_event() {
            return worker;
        }
    }
}

fn is_named(front: &Front) -> bool {
    front.report(); // what was answered before has been counted
    front.events().iter().any(|event| matches!(event, FrontEvent::OfApp(_, FrontAppEvent::WorkerWarm { .. })))
}

/// The only free worker answers a request.
fn answer(front: &Front, worker: &FakeWorker) {
    let mut client = front.get("/");
    worker.claim().answer("");
    client.answer();
}

#[test]
fn the_first_to_answer_that_number_from_then_on_is_named_once() {
    let front = Front::start();
    let worker = front.worker(1);
    answer(&front, &worker);
    answer(&front, &worker);
    name_warm(&front, 2);
    answer(&front, &worker);
    assert!(!is_named(&front));
    answer(&front, &worker);
    assert_eq!(named(&front), worker.number);
    answer(&front, &worker);
    answer(&front, &worker);
    assert!(!is_named(&front));
}

#[test]
fn without_a_number_it_is_the_one_that_has_answered_the_most() {
    let front = Front::start();
    let warm = front.worker(1);
    answer(&front, &warm);
    let others = [front.worker(1), front.worker(1)];
    name_warm(&front, 0);
    assert_eq!(named(&front), warm.number);
    // A worker that serves no more is not meant.
    front.retire(&warm);
    name_warm(&front, 0);
    let second = named(&front);
    assert!(others.iter().any(|other| other.number == second));
}

#[test]
fn while_no_worker_serves_it_is_the_first_that_answers() {
    let front = Front::start();
    name_warm(&front, 0);
    assert!(!is_named(&front));
    let worker = front.worker(1);
    answer(&front, &worker);
    assert_eq!(named(&front), worker.number);
}
