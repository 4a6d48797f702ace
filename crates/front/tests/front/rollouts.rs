//! Two versions beside each other: each has its visitors.

use std::sync::Arc;

use crate::support::{Client, FakeWorker, Front};
use highball_link::{AppCommand, Booted, Rollout};

/// A visitor of the old version, and one of the new one, by their numbers.
const OLD: u16 = 500;
const NEW: u16 = 499;

/// Half of the visitors get generation 2. Both versions have one worker with one thread.
fn two_versions(front: &Front) -> (FakeWorker, FakeWorker) {
    let old = front.worker_of(1, 1);
    tell(front, 0, true);
    let new = front.worker_of(2, 1);
    tell(front, 500, true);
    (old, new)
}

fn tell(front: &Front, thousandths: u16, is_held: bool) {
    let app = Arc::new(Booted::default());
    front.tell_app(AppCommand::Rollout(Rollout { generation: 2, thousandths, is_held, app }));
}

fn asks(client: &mut Client, number: u16, path: &str) {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: highball-rollout={number}\r\n\r\n"));
}

fn visit(front: &Front, number: u16, path: &str) -> Client {
    let mut client = front.connect();
    asks(&mut client, number, path);
    client
}

fn waiting(front: &Front, requests: usize) {
    front.until("they wait", |report| report.apps[0].queue == requests);
}

#[test]
fn visitors_of_both_versions_share_a_connection() {
    let front = Front::start();
    let (old, new) = two_versions(&front);
    let mut client = front.connect();
    for _ in 0..3 {
        for (number, worker) in [(OLD, &old), (NEW, &new), (999, &old), (0, &new)] {
            asks(&mut client, number, "/");
            worker.answers(&mut client, "its own");
        }
    }
}

#[test]
fn a_full_version_holds_up_no_visitor_of_the_other() {
    let front = Front::start();
    let (old, new) = two_versions(&front);
    for (number, full, other_number, free) in [(OLD, &old, NEW, &new), (NEW, &new, OLD, &old)] {
        let mut first = visit(&front, number, "/first");
        let begun = full.claim();
        let mut second = visit(&front, number, "/second");
        waiting(&front, 1);
        let mut third = visit(&front, other_number, "/third");
        free.answers(&mut third, "at once");
        assert!(free.try_claim().is_none(), "it is for the other version");
        begun.answer("first");
        assert_eq!(first.answer().text(), "first");
        full.answers(&mut second, "second");
    }
}

#[test]
fn visitors_wait_for_a_worker_of_their_version() {
    for (number, generation) in [(NEW, 2), (OLD, 1)] {
        let front = Front::start();
        let (old, new) = two_versions(&front);
        let (lost, other) = if generation == 1 { (old, new) } else { (new, old) };
        front.remove(&lost);
        let mut client = visit(&front, number, "/");
        waiting(&front, 1);
        assert!(other.try_claim().is_none(), "it is for the other version");
        front.worker_of(generation, 1).answers(&mut client, "by another");
    }
}

#[test]
fn a_larger_share_moves_visitors_that_wait_and_an_end_frees_all() {
    let front = Front::start();
    let (old, new) = two_versions(&front);
    let _first = visit(&front, OLD, "/first");
    let begun = old.claim();
    let mut second = visit(&front, OLD, "/second");
    waiting(&front, 1);
    tell(&front, 501, true);
    new.answers(&mut second, "by the new version");
    let mut third = visit(&front, 900, "/third");
    waiting(&front, 1);
    tell(&front, 501, false);
    new.answers(&mut third, "by any");
    begun.answer("");
    // Visitors of the new version keep it, also when the old one has more room.
    let mut fourth = visit(&front, OLD, "/fourth");
    new.answers(&mut fourth, "by the new version");
    front.tell_app(AppCommand::EndRollout);
    let _fifth = visit(&front, OLD, "/fifth");
    old.claim().answer("");
}

#[test]
fn a_withdrawn_version_loses_its_visitors() {
    let front = Front::start();
    let (old, new) = two_versions(&front);
    let _first = visit(&front, NEW, "/first");
    let begun = new.claim();
    let mut second = visit(&front, NEW, "/second");
    waiting(&front, 1);
    front.tell_app(AppCommand::WithdrawGeneration { generation: 2 });
    old.answers(&mut second, "by the old version");
    begun.answer("");
    let mut client = visit(&front, 0, "/third");
    old.answers(&mut client, "by the old version");
}

#[test]
fn a_visitor_without_a_number_gets_one_and_reports_count_both() {
    let front = Front::start();
    let (old, new) = two_versions(&front);
    let mut numbers = Vec::new();
    for _ in 0..40 {
        let mut client = front.get("/");
        let job = loop {
            match old.try_claim().or_else(|| new.try_claim()) {
                Some(job) => break job,
                None => std::thread::yield_now(),
            }
        };
        job.answer("");
        let answer = client.answer();
        let cookie = answer.field("set-cookie").expect("there is a cookie");
        let number = cookie.strip_prefix("highball-rollout=").unwrap().split(';').next().unwrap();
        numbers.push(number.parse::<u16>().unwrap());
    }
    numbers.sort_unstable();
    assert!(numbers[0] < 500 && numbers[39] >= 500, "{numbers:?}");
    let mut client = visit(&front, numbers[0], "/");
    new.claim().head(500, &[]).end();
    assert_eq!(client.answer().field("set-cookie"), None);
    let of_new = numbers.iter().filter(|number| **number < 500).count() as u64;
    front.until("all are counted", |report| {
        let rollout = report.apps[0].rollout.as_ref().expect("it is under way");
        let (old, new) = (&rollout.old, &rollout.new);
        let counted = (old.requests, old.errors, new.requests, new.errors);
        rollout.share_percent == 50.0 && rollout.holds && counted == (40 - of_new, 0, of_new + 1, 1)
    });
    front.tell_app(AppCommand::EndRollout);
    let mut client = front.get("/");
    old.claim().answer("");
    assert_eq!(client.answer().field("set-cookie"), None);
    assert_eq!(front.report().apps[0].rollout, None);
}
