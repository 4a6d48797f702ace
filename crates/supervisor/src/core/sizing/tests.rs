//! Pools under loads of all kinds, second by second.

use super::*;
use highball_cgroups::{CpuLimit, Cpus};

const ROOM: Room = Room { workers: 100, worker_bytes: 50 << 20, free_bytes: 5 << 30 };
const REPORT: Duration = Duration::from_millis(200);

/// A pool under a load that was computed from its size.
struct Machine {
    sizing: Sizing,
    size: u16,
    threads: u16,
    now: Instant,
    start: Instant,
    room: Option<Room>,
    /// Every change: when, from, to.
    changes: Vec<(Duration, u16, u16)>,
    hindrances: Vec<Hindrance>,
}

impl Machine {
    fn new(cpus: f64, min: u16, max: u16, size: u16) -> Machine {
        let start = Instant::now() + Duration::from_secs(10_000);
        let range = PoolRange { min, max, cpus: Cpus { count: cpus, by: CpuLimit::CpuMax } };
        Machine {
            sizing: Sizing::new(range, start),
            size,
            threads: 3,
            now: start,
            start,
            room: Some(ROOM),
            changes: Vec::new(),
            hindrances: Vec::new(),
        }
    }

    fn look(&mut self) {
        let pool = Pool { size: self.size, threads: self.threads, is_complete: true };
        match self.sizing.look(pool, self.now) {
            Some(Outcome::Change(Decision { from, to, .. })) => {
                assert_eq!(from, self.size);
                self.changes.push((self.now - self.start, from, to));
                self.size = to;
            }
            Some(Outcome::Hindered(hindrance)) => self.hindrances.push(hindrance),
            None => {}
        }
        let PoolRange { min, max, .. } = *self.sizing.range();
        assert!((min..=max).contains(&self.size), "{} of {min}..{max}", self.size);
    }

    /// Requests that compute and wait, in workers' worth: `cpus` processors, `requests` at a time. What does not fit into the pool
    /// waits in the queue.
    fn under(&mut self, time: Duration, cpus: f64, requests: f64) {
        let until = self.now + time;
        while self.now < until {
            self.now += REPORT;
            let threads = f64::from(self.size * self.threads);
            let busy = requests.min(threads);
            let queue = requests - busy;
            let waited = if queue > 0.0 { Duration::from_millis(50) } else { Duration::ZERO };
            let cpus = cpus.min(f64::from(self.size));
            let load = Load { elapsed: REPORT, busy, queue, waited, cpus, room: self.room };
            self.sizing.note(load, self.now);
            self.look();
        }
    }

    /// Nothing is reported; the pool is looked at when that is due.
    fn idle(&mut self, time: Duration) {
        self.under(REPORT, 0.0, 0.0);
        let until = self.now + time;
        loop {
            let pool = Pool { size: self.size, threads: self.threads, is_complete: true };
            let Some(due) = self.sizing.due(pool).filter(|due| *due < until) else { break };
            assert!(due > self.now, "it is due, and nothing comes of it");
            self.now = due;
            self.look();
        }
        self.now = until;
    }

    fn directions(&self) -> usize {
        let ups: Vec<bool> = self.changes.iter().map(|(_, from, to)| to > from).collect();
        ups.windows(2).filter(|two| two[0] != two[1]).count()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn it_grows_within_a_second_to_what_the_load_needs() {
    let mut machine = Machine::new(8.0, 1, 16, 1);
    machine.under(Duration::from_secs(5), 4.0, 10.0);
    let first = machine.changes[0];
    assert!(first.0 < Duration::from_secs(1), "{:?}", machine.changes);
    assert!((6..=8).contains(&machine.size), "{:?}", machine.changes);
    let (_, from, to) = *machine.changes.last().unwrap();
    assert!(to > from);
    machine.under(MINUTE * 10, 4.0, 10.0);
    assert_eq!(machine.directions(), 0, "a steady load: {:?}", machine.changes);
}

#[test]
fn large_pools_grow_by_several_workers_at_once() {
    let mut machine = Machine::new(64.0, 1, 128, 8);
    machine.under(Duration::from_secs(3), 30.0, 90.0);
    assert!(machine.changes[0].2 - machine.changes[0].1 > 1, "{:?}", machine.changes);
    assert!(machine.changes.len() <= 4 && machine.size >= 48, "{:?}", machine.changes);
}

#[test]
fn a_short_burst_is_no_reason_to_grow() {
    let mut machine = Machine::new(8.0, 1, 16, 1);
    machine.sizing.note(
        Load {
            elapsed: REPORT,
            busy: 1.0,
            queue: 0.5,
            waited: Duration::from_millis(15),
            cpus: 0.3,
            room: Some(ROOM),
        },
        machine.now + REPORT,
    );
    machine.now += REPORT;
    machine.look();
    machine.idle(MINUTE);
    assert_eq!(machine.changes, []);
}

#[test]
fn an_idle_pool_shrinks_step_by_step_and_not_below_its_least() {
    let mut machine = Machine::new(8.0, 2, 16, 8);
    machine.idle(Duration::from_secs(59));
    assert_eq!(machine.changes, []);
    machine.idle(MINUTE * 5);
    let sizes: Vec<u16> = machine.changes.iter().map(|(_, _, to)| *to).collect();
    assert_eq!(sizes, [6, 5, 4, 3, 2]);
    let pauses = machine.changes.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(pauses.min().unwrap() >= SHRINK_REST);
    machine.idle(MINUTE * 1000);
    assert_eq!(machine.size, 2);
}

#[test]
fn one_worker_less_is_only_enough_where_its_processor_would_be() {
    // One processor's worth of work: few threads are busy at a time, and one worker could not do it.
    let mut machine = Machine::new(8.0, 1, 16, 2);
    machine.under(MINUTE * 30, 1.0, 1.3);
    assert_eq!((machine.size, machine.changes.len()), (2, 0));
}

#[test]
fn it_never_grows_where_the_memory_does_not_suffice() {
    for room in [None, Some(Room { workers: 0, worker_bytes: 50 << 20, free_bytes: 40 << 20 })] {
        let mut machine = Machine::new(8.0, 1, 16, 2);
        machine.room = room;
        machine.under(MINUTE * 9, 8.0, 60.0);
        assert_eq!((machine.size, machine.hindrances.len()), (2, 1), "{room:?}");
        machine.room = Some(Room { workers: 1, ..ROOM });
        machine.under(REPORT, 8.0, 60.0);
        assert_eq!(machine.size, 3, "and no further than it suffices");
    }
}

#[test]
fn where_all_processors_are_in_use_more_workers_do_not_help() {
    let mut machine = Machine::new(1.5, 1, 3, 1);
    for _ in 0..3000 {
        machine.now += REPORT;
        let busy = f64::from(machine.size * 3);
        let load = Load { elapsed: REPORT, busy, queue: 20.0, waited: REPORT, cpus: 1.5, room: Some(ROOM) };
        machine.sizing.note(load, machine.now);
        machine.look();
    }
    assert_eq!(machine.size, 2, "{:?}", machine.changes);
    assert!(matches!(machine.hindrances[..], [Hindrance::Cpus(90..=100)]), "{:?}", machine.hindrances);
    // Requests that wait for a database leave the processors free.
    machine.under(MINUTE, 0.2, 30.0);
    assert_eq!(machine.size, 3);
}

#[test]
fn threads_of_the_applications_own_make_no_pool_grow_or_stay_large() {
    let mut machine = Machine::new(8.0, 1, 16, 4);
    for _ in 0..3000 {
        machine.now += REPORT;
        let cpus = f64::from(machine.size);
        let load = Load { elapsed: REPORT, busy: 0.1, cpus, room: Some(ROOM), ..Load::default() };
        machine.sizing.note(load, machine.now);
        machine.look();
    }
    assert_eq!(machine.size, 1);
    assert!(machine.changes.iter().all(|(_, from, to)| to < from));
}

/// Whatever the period of a load that comes and goes: it meets workers, and these do not start and end all the time.
#[test]
fn loads_that_come_and_go_do_not_make_a_pool_swing() {
    for seconds in [1, 2, 5, 10, 30, 60, 70, 90, 120, 200, 300, 600, 1200, 3600] {
        let mut machine = Machine::new(8.0, 1, 16, 4);
        let half = Duration::from_secs(seconds);
        let hours = 12;
        while machine.now < machine.start + Duration::from_secs(hours * 3600) {
            machine.under(half, 3.0, 8.0);
            machine.idle(half);
        }
        let swings = machine.directions() as u64;
        let periods = hours * 3600 / (2 * seconds);
        assert!(swings <= 6 * hours, "a period of {} s: {swings} swings", 2 * seconds);
        assert!(swings <= 2 * periods + 1, "a period of {} s: {swings} swings", 2 * seconds);
    }
}

#[test]
fn rubbish_leads_nowhere_outside_of_the_range() {
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut machine = Machine::new(rng.f64() * 8.0 + 0.1, rng.u16(1..4), rng.u16(4..40), 4);
        for _ in 0..500 {
            let huge = [0.0, 0.5, 3.0, 1e3, 1e9][rng.usize(..5)];
            let load = Load {
                elapsed: Duration::from_millis(rng.u64(..100_000)),
                busy: rng.f64() * huge,
                queue: rng.f64() * huge,
                waited: Duration::from_millis(rng.u64(..1_000_000)),
                cpus: rng.f64() * huge,
                room: rng.bool().then_some(Room { workers: rng.u16(..), ..ROOM }),
            };
            machine.now += Duration::from_millis(rng.u64(..20_000));
            machine.sizing.note(load, machine.now);
            machine.look();
        }
    }
}

#[test]
fn an_operators_order_holds_for_a_while_and_widens_the_range() {
    let mut machine = Machine::new(1.0, 1, 2, 2);
    machine.size = 3;
    machine.sizing.ordered(3, machine.now);
    machine.idle(Duration::from_secs(59));
    assert_eq!((machine.size, machine.sizing.range().max), (3, 3));
    machine.idle(MINUTE * 3);
    assert_eq!(machine.size, 1);
}

#[test]
fn memory_that_is_short_takes_a_worker_and_lets_none_come_back_soon() {
    let mut machine = Machine::new(8.0, 1, 16, 4);
    let pool = |size| Pool { size, threads: 3, is_complete: true };
    let decision = machine.sizing.give_memory_back(pool(4), machine.now).unwrap();
    assert_eq!((decision.to, decision.reason), (3, Reason::MemoryShort));
    assert_eq!(machine.sizing.give_memory_back(pool(3), machine.now), None, "one at a time");
    machine.size = 3;
    machine.under(MINUTE * 4, 4.0, 20.0);
    assert_eq!(machine.size, 3);
    machine.under(MINUTE * 2, 4.0, 20.0);
    assert!(machine.size > 3);
    assert_eq!(machine.sizing.give_memory_back(pool(1), machine.now + MINUTE), None, "the last one stays");
}

#[test]
fn reasons_are_in_words() {
    let decision = |reason| Decision { from: 1, to: 2, reason }.to_string();
    assert_eq!(
        decision(Reason::Waiting(Duration::from_millis(35))),
        "1 to 2: requests wait in the queue for 35 ms"
    );
    assert_eq!(decision(Reason::Cpu(91)), "1 to 2: each worker uses 91% of a CPU");
    let room = Room { workers: 0, worker_bytes: 60 << 20, free_bytes: 50 << 20 };
    assert_eq!(Hindrance::Memory(room).to_string(), "a worker takes 60 MiB, and 50 MiB are left");
}
