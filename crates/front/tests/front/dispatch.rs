//! Which worker gets a request, and what happens to it when that worker, or its client, leaves.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::support::{eventually, the_app, Client, FakeWorker, Front, Job};
use highball_link::{FrontAppEvent, FrontEvent};
use highball_ring::entry::{MAX_POSITION, REPLACE_FROM};

/// A worker whose one thread is at a request while others were placed behind it, and their clients.
struct Stuck {
    job: Job,
    client: Client,
    behind: Vec<Client>,
}

/// Makes the worker fast enough to be given requests ahead, and then lets it take its time. Requests that are
/// placed ahead are POSTs to `/behind`.
fn look_ahead(front: &Front, worker: &FakeWorker) -> Stuck {
    let deadline = Instant::now() + crate::support::PATIENCE;
    let mut clients: Vec<Client> = (0..8).map(|_| front.connect()).collect();
    loop {
        assert!(Instant::now() < deadline, "no look-ahead");
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(25));
        }
        (0..25 * clients.len()).for_each(|_| worker.claim().answer(""));
        clients.iter_mut().for_each(|client| (0..25).for_each(|_| drop(client.answer())));
        front.until("the worker is idle", |report| report.apps[0].workers[0].in_flight == 0);

        let mut client = front.get("/stuck");
        let mut job = worker.claim();
        let mut behind: Vec<Client> = (0..4).map(|_| front.connect()).collect();
        for (number, client) in behind.iter_mut().enumerate() {
            client.post("/behind", b"");
            front.until("it has arrived", |report| {
                report.apps[0].workers[0].placed + report.apps[0].queue == number + 1
            });
        }
        let placed = worker.ring.announce_sleep().inspect(|_| worker.ring.awake()).is_none();
        if placed {
            return Stuck { job, client, behind };
        }
        // It was not fast enough for that: again.
        job.head(200, &[]).end();
        (0..4).for_each(|_| worker.claim().answer(""));
        client.answer();
    }
}

/// It says that it computes, and waits for something all the same: another thread is woken a moment later.
#[test]
fn a_request_does_not_wait_long_for_a_thread_that_computes() {
    let front = Front::start();
    let worker = front.worker(2);
    worker.ring.set_computes(true);
    let mut first = front.get("/first");
    let at_work = worker.claim();
    let mut second = front.get("/second");
    worker.answers(&mut second, "by another thread");
    at_work.answer("at last");
    assert_eq!(first.answer().text(), "at last");
}

#[test]
fn the_least_busy_worker_gets_the_request() {
    let front = Front::start();
    let workers = [front.worker(3), front.worker(3)];
    let mut clients: Vec<Client> = (0..4).map(|number| front.get(&format!("/{number}"))).collect();
    let jobs: Vec<Job> = workers.iter().flat_map(|worker| [worker.claim(), worker.claim()]).collect();
    assert!(workers.iter().all(|worker| worker.try_claim().is_none()));
    for job in jobs {
        let path = job.path().to_owned();
        job.answer(&path);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.answer().text(), format!("/{number}"));
    }
}

#[test]
fn a_slow_worker_gets_nothing_ahead() {
    let front = Front::start();
    let worker = front.worker(2);
    let _clients: Vec<Client> = (0..5).map(|_| front.get("/")).collect();
    let _jobs = [worker.claim(), worker.claim()];
    front.until("three wait", |report| report.apps[0].queue == 3);
    assert!(worker.try_claim().is_none());
}

#[test]
fn every_free_thread_is_woken_for_slow_requests() {
    let front = Front::start();
    let together = Barrier::new(3);
    let serving = front.worker(3).serve(3, move |job| {
        together.wait();
        job.answer("together");
    });
    let mut clients: Vec<Client> = (0..3).map(|_| front.get("/")).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.answer().text(), "together"));
    drop(serving);
}

#[test]
fn an_answer_does_not_wait_for_the_slow_request_after_it() {
    let front = Front::start();
    let worker = front.worker(1);
    let Stuck { job, mut client, mut behind } = look_ahead(&front, &worker);
    job.answer("fast");
    let slow = worker.claim();
    assert_eq!(client.answer().text(), "fast");
    slow.answer("slow");
    (1..behind.len()).for_each(|_| worker.claim().answer("fast again"));
    let texts: Vec<String> = behind.iter_mut().map(|client| client.answer().text().to_owned()).collect();
    assert_eq!(texts, ["slow", "fast again", "fast again", "fast again"]);
}

#[test]
fn what_waits_behind_a_slow_request_goes_to_a_worker_that_comes() {
    let front = Front::start();
    let slow = front.worker(1);
    let mut stuck = look_ahead(&front, &slow);
    let other = front.worker(1);
    for client in &mut stuck.behind {
        other.answers(client, "by the other");
    }
    assert!(slow.try_claim().is_none());
    stuck.job.answer("slow");
    assert_eq!(stuck.client.answer().text(), "slow");
}

#[test]
fn what_waits_behind_a_slow_request_is_not_overtaken_for_ever() {
    let front = Front::start();
    let slow = front.worker(1);
    let mut stuck = look_ahead(&front, &slow);
    let other = front.worker(1).serve(1, |job| job.answer("by the other"));
    // The other worker is never idle, nor is the queue ever empty.
    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (mut client, stop) = (front.connect(), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
                    (0..20).for_each(|_| drop(client.answer()));
                }
            })
        })
        .collect();
    for client in &mut stuck.behind {
        assert_eq!(client.answer().text(), "by the other");
    }
    stop.store(true, Ordering::Relaxed);
    load.into_iter().for_each(|thread| thread.join().unwrap());
    drop(other);
}

#[test]
fn what_a_retiring_worker_has_not_begun_goes_to_others_in_its_order() {
    let front = Front::start();
    let old = front.worker(1);
    let mut stuck = look_ahead(&front, &old);
    front.retire(&old);
    front.until("all were taken back", |report| {
        report.apps[0].workers[0].placed == 0 && report.apps[0].queue == 4
    });
    let new = front.worker(1);
    for client in &mut stuck.behind {
        new.answers(client, "in order");
    }
    let is_idle =
        |event: &FrontEvent| matches!(event, FrontEvent::OfApp(_, FrontAppEvent::WorkerIdle { .. }));
    assert!(!front.events().iter().any(is_idle), "it has not finished");
    stuck.job.answer("the last");
    assert_eq!(stuck.client.answer().text(), "the last");
    assert!(
        matches!(front.app_event(), FrontAppEvent::WorkerIdle { worker, is_stuck: false } if worker == old.number)
    );
    front.get("/");
    new.claim().answer("");
    assert!(old.try_claim().is_none());
}

#[test]
fn what_a_dead_worker_had_not_begun_goes_to_others_whatever_it_is() {
    let front = Front::start();
    let dead = front.worker(1);
    let mut stuck = look_ahead(&front, &dead);
    front.remove(&dead);
    let new = front.worker(1);
    let job = new.claim();
    assert_eq!(job.path(), "/stuck", "it can be repeated");
    job.answer("repeated");
    assert_eq!(stuck.client.answer().text(), "repeated");
    for client in &mut stuck.behind {
        new.answers(client, "begun for the first time");
    }
}

#[test]
fn what_a_retiring_worker_had_to_be_killed_for_is_not_repeated() {
    let front = Front::start();
    let first = front.worker(1);
    let mut endless = front.get("/endless");
    first.claim();
    let second = front.worker(1);
    front.retire(&first);
    front.remove_killed(&first);
    assert_eq!(endless.answer().status, 502);

    // A worker that dies while it retires has not shown that.
    let mut get = front.get("/get");
    second.claim();
    let third = front.worker(1);
    front.retire(&second);
    front.remove(&second);
    third.answers(&mut get, "well");
}

#[test]
fn a_repeated_request_comes_with_its_body() {
    let front = Front::start();
    let mut clients = [front.connect(), front.connect()];
    let bodies = [b"small".to_vec(), vec![b'x'; 300_000]];
    let first = front.worker(2);
    for (client, body) in clients.iter_mut().zip(&bodies) {
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
        client.send(body);
        first.claim();
    }
    front.remove(&first);
    let second = front.worker(2);
    let mut jobs = [second.claim(), second.claim()];
    jobs.sort_by_key(|job| job.body.len());
    for ((job, body), client) in jobs.into_iter().zip(&bodies).zip(&mut clients) {
        assert!(job.body == *body);
        job.answer("again");
        assert_eq!(client.answer().text(), "again");
    }
}

#[test]
fn what_a_worker_wrote_before_it_died_still_counts() {
    let front = Front::with(|settings| settings.limits.response_buffer_bytes = 8192);
    let worker = front.worker(1);
    let mut client = front.get("/");
    // More than the buffer takes, and never read until the worker is gone.
    worker.claim().answer_bytes(&[b'x'; 60_000]);
    front.remove(&worker);
    front.until("it is gone", |report| report.apps[0].workers.is_empty());
    assert_eq!(client.answer().body.len(), 60_000);
}

#[test]
fn a_full_queue_refuses_and_keeps_the_connection() {
    let front = Front::with(|settings| the_app(settings).limits.queue = 2);
    let worker = front.worker(1);
    let mut first = front.get("/");
    let job = worker.claim();
    let mut waiting = [front.get("/"), front.get("/")];
    front.until("the queue is full", |report| report.apps[0].queue == 2);
    let mut refused = front.get("/");
    let answer = refused.answer();
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")));
    job.answer("");
    assert_eq!(first.answer().status, 200);
    for client in &mut waiting {
        worker.claim().answer("");
        assert_eq!(client.answer().status, 200);
    }
    refused.get("/");
    worker.claim().answer("");
    assert_eq!(refused.answer().status, 200);
}

#[test]
fn a_request_that_takes_too_long_gets_504_and_its_thread_is_busy_until_it_ends() {
    let front = Front::with(|settings| {
        the_app(settings).limits.request_timeout = Some(Duration::from_millis(100));
        settings.limits.response_buffer_bytes = 65_536;
    });
    let worker = front.worker(1);
    let mut slow = front.get("/slow");
    let mut job = worker.claim();
    assert_eq!(slow.answer().status, 504);
    assert!(job.is_cancelled());
    let mut waiting = front.get("/waiting");
    assert_eq!(waiting.answer().status, 504, "the only thread is still busy");
    assert!(worker.try_claim().is_none());
    // Larger than ring and buffer together: it has to be read and dropped.
    job.head(200, &[]).body(&[b'x'; 1_000_000]).end();
    front.until("the thread is free", |report| report.apps[0].workers[0].in_flight == 0);
    let mut next = front.get("/next");
    let job = worker.claim();
    assert_eq!(job.path(), "/next");
    job.answer("in time");
    assert_eq!(next.answer().text(), "in time");
    assert_eq!(front.report().apps[0].queue, 0);
}

#[test]
fn a_request_whose_client_leaves_while_it_waits_never_reaches_a_worker() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut first = front.get("/first");
    let job = worker.claim();
    let leaving = front.get("/leaving");
    front.until("it waits", |report| report.apps[0].queue == 1);
    drop(leaving);
    front.until("it waits no longer", |report| report.apps[0].queue == 0);
    let mut last = front.get("/last");
    job.answer("");
    first.answer();
    let job = worker.claim();
    assert_eq!(job.path(), "/last");
    job.answer("");
    last.answer();
}

#[test]
fn a_client_that_leaves_during_its_answer_cancels_it() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.get("/");
    let mut job = worker.claim();
    job.head(200, &[]).body(b"tick");
    assert_eq!(client.answer_head().status, 200);
    drop(client);
    eventually("the worker learns it", || {
        job.body(b"tick");
        job.is_cancelled()
    });
    assert_eq!(front.report().apps[0].workers[0].in_flight, 1);
    job.abort();
    front.until("the thread is free", |report| report.apps[0].workers[0].in_flight == 0);
    assert!(front.events().is_empty());
}

#[test]
fn an_aborted_answer_is_a_502_or_cut_off() {
    let front = Front::start();
    let worker = front.worker(1);
    let mut client = front.get("/");
    worker.claim().abort();
    assert_eq!(client.answer().status, 502);
    let mut client = front.get("/");
    worker.claim().head(200, &[]).body(b"some").abort();
    assert_eq!(client.answer_head().status, 200);
    assert_eq!(client.chunked(), None);
    assert!(front.events().is_empty());
}

#[test]
fn what_a_stopped_worker_does_not_begin_is_not_overtaken_for_ever() {
    let front = Front::start();
    // It is never idle, nor is the queue ever empty.
    let busy = front.worker(1).serve(1, |job| {
        std::thread::park_timeout(Duration::from_millis(1));
        job.answer("by the other");
    });
    let stop = Arc::new(AtomicBool::new(false));
    let answers: Vec<Arc<AtomicU32>> = (0..8).map(|_| Arc::default()).collect();
    let ask = |count: &Arc<AtomicU32>| {
        let (mut client, count, stop) = (front.connect(), Arc::clone(count), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
                for _ in 0..20 {
                    client.answer();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let load: Vec<_> = answers.iter().map(ask).collect();
    front.until("requests wait", |report| report.apps[0].queue > 0);
    let stopped = front.worker(1);
    front.until("it is given one", |report| {
        report.apps[0].workers.iter().any(|worker| worker.worker == stopped.number && worker.placed == 1)
    });
    let before: Vec<u32> = answers.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    eventually("every client is answered more than once", || {
        answers.iter().zip(&before).all(|(count, before)| count.load(Ordering::Relaxed) > before + 1)
    });
    stop.store(true, Ordering::Relaxed);
    load.into_iter().for_each(|client| client.join().unwrap());
    drop(busy);
}

#[test]
fn where_none_begins_what_it_is_given_each_is_asked_in_turn() {
    let front = Front::start();
    let (_stopped, slow) = (front.worker(1), front.worker(1));
    let mut client = front.get("/");
    // It has been with both.
    eventually("it is given to the second", || {
        slow.ring.announce_sleep().inspect(|_| slow.ring.awake()).is_none()
    });
    eventually("it is taken back", || slow.ring.announce_sleep().inspect(|_| slow.ring.awake()).is_some());
    let started = Instant::now();
    let serving = slow.serve(1, |job| job.answer("begun at last"));
    assert_eq!(client.answer().text(), "begun at last");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    drop(serving);
}

#[test]
fn a_worker_whose_ring_ends_soon_is_to_be_replaced_and_serves_until_it_is() {
    let front = Front::start();
    let worker = front.worker_from(REPLACE_FROM);
    for _ in 0..3 {
        let mut client = front.get("/");
        worker.answers(&mut client, "still");
    }
    assert!(
        matches!(front.app_event(), FrontAppEvent::RingEndsSoon { worker: number } if number == worker.number)
    );
    assert!(front.events().is_empty(), "once");
}

#[test]
fn where_a_ring_has_ended_requests_wait_for_another_worker() {
    let front = Front::start();
    let worker = front.worker_from(MAX_POSITION - 1);
    let mut client = front.get("/");
    worker.answers(&mut client, "the last");
    client.get("/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    front.worker(1).answers(&mut client, "the next");
}
