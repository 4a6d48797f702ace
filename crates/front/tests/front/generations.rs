//! Which workers a connection's requests may go to while two releases of the application serve side by side.

use crate::support::{set_apps, the_app, Client, FakeWorker, Front, Job};
use highball_link::{AppCommand, FrontAppEvent, FrontCommand};

/// Both generations have one worker with one thread, and this client has met the new one.
fn two_generations(front: &Front) -> (FakeWorker, FakeWorker, Client) {
    let old = front.worker_of(1, 1);
    let mut client = front.get("/");
    old.answers(&mut client, "old");
    let new = front.worker_of(2, 1);
    // The old one is busy, so the next request goes to the new one.
    let mut other = front.get("/busy");
    let busy = old.claim();
    client.get("/");
    new.answers(&mut client, "new");
    busy.answer("old");
    other.answer();
    (old, new, client)
}

fn admit(front: &Front, canary: &FakeWorker) {
    front.tell_app(AppCommand::AdmitCanary { worker: canary.number });
}

fn canary_answered(front: &Front) -> Result<u16, String> {
    loop {
        if let FrontAppEvent::CanaryAnswered { answer, .. } = front.app_event() {
            return answer;
        }
    }
}

#[test]
fn a_connection_that_has_met_the_new_generation_never_gets_the_old_one_again() {
    let front = Front::start();
    let (old, new, mut client) = two_generations(&front);
    for _ in 0..3 {
        client.get("/");
        new.answers(&mut client, "new");
    }
    assert!(old.try_claim().is_none());
}

#[test]
fn one_that_has_not_stays_with_the_old_one_while_that_is_free() {
    let front = Front::start();
    let (old, new, _client) = two_generations(&front);
    let mut other = front.get("/");
    old.answers(&mut other, "old");
    assert!(new.try_claim().is_none());
}

#[test]
fn one_that_waits_for_the_new_one_does_not_hold_up_those_behind_it() {
    let front = Front::start();
    let (old, new, mut client) = two_generations(&front);
    let mut others: Vec<Client> = (0..2).map(|_| front.get("/long")).collect();
    let jobs: Vec<Job> = vec![old.claim(), new.claim()];
    client.get("/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let mut behind = front.get("/behind");
    front.until("both wait", |report| report.apps[0].queue == 2);
    let mut jobs = jobs.into_iter();
    jobs.next().unwrap().answer("");
    old.answers(&mut behind, "behind");
    jobs.next().unwrap().answer("");
    new.answers(&mut client, "new");
    others.iter_mut().for_each(|other| drop(other.answer()));
}

#[test]
fn a_request_that_a_worker_has_begun_is_not_refused_for_those_that_a_broken_one_gives_back() {
    let front = Front::with(|settings| the_app(settings).limits.queue = 1);
    // Three connections have met the new generation, and their next requests are with its worker, which breaks.
    let new = front.worker_of(2, 4);
    let mut met: Vec<Client> = (0..3).map(|_| front.get("/")).collect();
    (0..met.len()).for_each(|_| new.claim().answer("new"));
    met.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "new"));
    met.iter_mut().for_each(|client| client.get("/again"));
    front.until("the worker has them", |report| report.apps[0].workers[0].placed == 3);
    let old = front.worker_of(1, 1);
    new.claim().raw(&[0xff; 64]);
    front.until("they wait", |report| report.apps[0].queue == 3);
    // They are more than may wait; a client that may go to the old generation is served at once all the same.
    let mut client = front.get("/");
    old.answers(&mut client, "old");
    let newer = front.worker_of(2, 1);
    (0..met.len()).for_each(|_| newer.claim().answer("newer"));
    met.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "newer"));
}

#[test]
fn when_the_new_generation_is_withdrawn_the_old_one_answers_all() {
    let front = Front::start();
    let (old, new, mut client) = two_generations(&front);
    front.retire(&new);
    assert!(matches!(front.app_event(), FrontAppEvent::WorkerIdle { .. }));
    // That it has no worker does not mean that none will come.
    client.get("/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    assert!(old.try_claim().is_none());
    front.tell_app(AppCommand::WithdrawGeneration { generation: 2 });
    old.answers(&mut client, "old");
    // And from there to the next attempt.
    let fixed = front.worker_of(3, 1);
    front.retire(&old);
    client.get("/");
    fixed.answers(&mut client, "fixed");
}

#[test]
fn a_canary_gets_one_request_of_the_fronts_own_and_no_clients_before_it_is_admitted() {
    let front = Front::start();
    let canary = front.canary_of(2);
    let mut client = front.get("/client");
    front.until("the client waits", |report| report.apps[0].queue == 1);
    let mut job = canary.claim();
    assert_eq!(job.path(), "/canary");
    job.head(503, &[]).end();
    assert_eq!(canary_answered(&front), Ok(503));
    assert!(canary.try_claim().is_none());
    admit(&front, &canary);
    canary.answers(&mut client, "admitted");
}

#[test]
fn a_canary_is_asked_for_the_pages_of_the_warm_up_before_it_may_serve() {
    let front =
        Front::with(|settings| the_app(settings).process.warm_up = vec!["/one".into(), "/two?a=b".into()]);
    let canary = front.canary_of(2);
    canary.claim().answer("");
    for (path, query, status) in [("/one", "", 404), ("/two", "a=b", 200)] {
        let mut job = canary.claim();
        let asked = ["PATH_INFO", "QUERY_STRING", "SERVER_PORT"]
            .map(|name| job.env.get(name).map_or("", String::as_str));
        assert_eq!(asked, [path, query, "443"]);
        job.head(status, &[]).end();
    }
    assert_eq!(canary_answered(&front), Ok(200));
}

#[test]
fn a_canary_that_does_not_answer_well_is_asked_for_nothing_else() {
    let front = Front::with(|settings| the_app(settings).process.warm_up = vec!["/one".into()]);
    let canary = front.canary_of(2);
    let begun = canary.claim();
    front.remove(&canary);
    drop(begun);
    assert!(canary_answered(&front).is_err());
}

#[test]
fn a_canary_is_asked_where_clients_find_the_application() {
    let front = Front::with(|settings| set_apps(settings, &[(&["shop.example", "localhost"], "/shop")]));
    let canary = front.canary_of(2);
    let job = canary.claim();
    let asked = ["HTTP_HOST", "SERVER_NAME", "SCRIPT_NAME", "PATH_INFO"].map(|name| job.env[name].as_str());
    assert_eq!(asked, ["shop.example", "shop.example", "/shop", "/canary"]);
    job.answer("");
    assert_eq!(canary_answered(&front), Ok(200));
}

#[test]
fn only_the_canary_answers_its_requests() {
    let front = Front::start();
    let old = front.worker_of(1, 1);
    let canary = front.canary_of(2);
    front.until("it was asked", |report| report.apps[0].workers.iter().any(|worker| worker.placed == 1));
    front.retire(&canary);
    assert!(canary_answered(&front).is_err());
    let canary = front.canary_of(2);
    let begun = canary.claim();
    front.remove(&canary);
    assert!(canary_answered(&front).is_err());
    drop(begun);
    assert!(old.try_claim().is_none());
}

#[test]
fn of_a_canarys_answer_the_head_is_enough() {
    let front = Front::start();
    let canary = front.canary_of(2);
    let mut job = canary.claim();
    job.head(200, &[]);
    assert_eq!(canary_answered(&front), Ok(200));
}

#[test]
fn where_all_threads_of_the_old_one_are_stuck_the_new_one_answers_all() {
    let front = Front::start();
    let old = front.worker_of(1, 2);
    let mut stuck: Vec<Client> = (0..2).map(|_| front.get("/stuck")).collect();
    let jobs: Vec<Job> = (0..2).map(|_| old.claim()).collect();
    let mut queued = front.get("/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let new = front.worker_of(2, 1);
    new.answers(&mut queued, "new");
    for _ in 0..3 {
        let mut other = front.get("/");
        new.answers(&mut other, "new");
    }
    jobs.into_iter().for_each(|job| job.answer("old"));
    stuck.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "old"));
}

#[test]
fn what_an_old_one_that_is_stopped_does_not_begin_goes_to_the_new_one() {
    let front = Front::start();
    let old = front.worker_of(1, 3);
    let new = front.worker_of(2, 1);
    let mut client = front.get("/");
    front.until("it was given to the old one", |report| {
        report.apps[0].workers.iter().any(|worker| worker.worker == old.number && worker.placed == 1)
    });
    new.answers(&mut client, "new");
}

#[test]
fn when_the_server_stops_connections_do_not_wait_for_new_workers_that_will_not_come() {
    let front = Front::start();
    let (old, new, mut client) = two_generations(&front);
    let mut begun = front.get("/begun");
    let busy = old.claim();
    client.get("/");
    let job = new.claim();
    front.tell(FrontCommand::Drain);
    front.remove(&new);
    drop(job);
    // It was begun, and may be repeated: by the old one, since there is no other.
    busy.answer("old");
    assert_eq!(begun.answer().text(), "old");
    old.answers(&mut client, "old");
}
