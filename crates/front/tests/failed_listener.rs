//! A listening socket that fails for good: other listeners serve, and the event loop does not spin. Alone in its process,
//! because it looks at the processor time of it all.

mod support;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use highball_config::Bind;
use highball_front::Opening;
use highball_link::{FrontCommand, FrontEvent};
use rustix::net::{shutdown, Shutdown};
use rustix::time::{clock_gettime, ClockId};
use support::{eventually, Client, Front};

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether the process sleeps most of the time.
fn is_at_rest() -> bool {
    let (begin, before) = (Instant::now(), processor_time());
    while let Some(rest) = Duration::from_millis(200).checked_sub(begin.elapsed()) {
        std::thread::park_timeout(rest);
    }
    processor_time() - before < begin.elapsed() / 4
}

#[test]
fn a_listener_that_fails_for_good_holds_up_neither_the_event_loop_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let bind = |bind| highball_front::bind(&bind).unwrap();
    let listeners = vec![bind(Bind::tcp("127.0.0.1:0".parse().unwrap())), bind(Bind::unix(path.clone()))];
    let failing: OwnedFd = listeners[0].share().unwrap();
    let front = Front::on(listeners, Opening::AtOnce);
    let worker = front.worker(1);
    // accept(2) fails with EINVAL from now on.
    shutdown(&failing, Shutdown::Both).unwrap();
    let mut client = Client::unix(&path);
    client.get("/");
    worker.answers(&mut client, "by the other");
    eventually("the front sleeps", is_at_rest);
    drop(client);
    front.tell(FrontCommand::Drain);
    assert!(matches!(front.event(), FrontEvent::Drained));
}
