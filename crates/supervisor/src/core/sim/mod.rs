//! A simulator for the core: a world of processes, a front, operators and files that answer its actions at random, in any
//! order, twice, late, or with lies; that die, hang and cannot be started; under a clock that jumps. After each step the
//! invariants of [`invariants`] have to hold, and once the world is calm ([`Chaos::calm`]) everything has to come to rest.
//!
//! In reading order: [`world`], [`chaos`] (how much goes wrong), [`books`] (what was ordered and promised),
//! [`invariants`].
//!
//! Each run has a seed, which is printed when an invariant is violated: `HIGHBALL_SIM_SEED` repeats it, with a trace of
//! its last steps. `HIGHBALL_SIM_STEPS` sets the number of steps. The usual tests begin with the same seed each
//! time; with `HIGHBALL_TEST_LEVEL=full` they begin with another one, to find what no run has found yet.

mod books;
mod chaos;
mod invariants;
mod world;

use super::event::{Event, ReceivedSignal};
use chaos::Chaos;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use world::World;

/// Steps when nothing else is asked for, by the level of the tests.
const STEPS: u64 = 1_000_000;
const STEPS_OF_QUICK_TESTS: u64 = 200_000;
const STEPS_OF_FULL_TESTS: u64 = 10_000_000;
/// Steps of one run, before its world gets calm.
const STEPS_OF_A_RUN: u64 = 2_000;
/// How long a calm world may take to come to rest, and a stopped one to end.
const REST_TIME: Duration = Duration::from_secs(3600);
/// Steps that this may take.
const REST_STEPS: u64 = 50_000;

/// Kinds of what a simulation of this length comes to (see `Books::note_reached`).
const KINDS: usize = 75;

/// A violated invariant.
#[derive(Debug)]
pub(super) struct Violation {
    seed: u64,
    what: String,
    trace: String,
}

/// What a simulation came to.
#[derive(Debug, Default)]
struct Tale {
    steps: u64,
    /// How often each of these came about.
    reached: BTreeMap<String, u64>,
}

/// One life of a server, from its start to its end.
fn run(seed: u64, traced: bool) -> Result<Tale, Violation> {
    let mut world = World::new(seed, traced);
    match live(&mut world) {
        Ok(()) => Ok(Tale { steps: world.steps, reached: world.books.reached }),
        Err(what) => Err(Violation { seed, what, trace: world.trace() }),
    }
}

fn live(world: &mut World) -> Result<(), String> {
    while world.steps < STEPS_OF_A_RUN && !world.has_ended() {
        step(world)?;
    }
    if world.is_open() {
        world.chaos = Chaos::calm();
        come_to_rest(world)?;
    }
    come_to_an_end(world)
}

fn step(world: &mut World) -> Result<(), String> {
    let event = world.next_event();
    tell(world, event)
}

fn tell(world: &mut World, event: Event) -> Result<(), String> {
    world.tell(event)?;
    invariants::check(world)?;
    if world.steps % 64 == 0 {
        world.check_undone()?;
    }
    Ok(())
}

/// Without chaos everything comes to rest: what is wanted is there, and nothing else.
fn come_to_rest(world: &mut World) -> Result<(), String> {
    let (until, most) = (world.now + REST_TIME, world.steps + REST_STEPS);
    let mut ask_at = world.now;
    while world.now < until {
        if world.has_ended() || !world.is_open() {
            return Ok(());
        }
        if world.steps > most {
            return Err("it does not come to rest: it does something all the time".into());
        }
        if world.now >= ask_at {
            world.request_all(); // what failed is tried again then
            world.end_rollouts();
            ask_at = world.now + Duration::from_secs(300);
        }
        step(world)?;
    }
    invariants::check_at_rest(world)
}

/// A server that was asked to stop ends.
fn come_to_an_end(world: &mut World) -> Result<(), String> {
    world.chaos.jump = 0; // time is what is looked at
    let (until, most) = (world.now + REST_TIME, world.steps + REST_STEPS);
    if !world.has_ended() {
        tell(world, Event::Signal(ReceivedSignal::Terminate))?;
    }
    world.may_be_interrupted();
    while !world.has_ended() {
        if world.now >= until || world.steps > most {
            return Err("it was asked to stop, and does not end".into());
        }
        step(world)?;
    }
    Ok(())
}

fn simulate(seeds: impl Iterator<Item = u64>, mut go_on: impl FnMut(u64) -> bool) -> Result<Tale, Violation> {
    let mut tale = Tale::default();
    for seed in seeds {
        let run = run(seed, false)?;
        tale.steps += run.steps;
        for (what, times) in run.reached {
            *tale.reached.entry(what).or_default() += times;
        }
        if !go_on(tale.steps) {
            break;
        }
    }
    Ok(tale)
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.replace('_', "").parse().ok()
}

/// The number of steps, and the first seed, unless the environment names them.
fn extent_of_this_level() -> (u64, u64) {
    match std::env::var("HIGHBALL_TEST_LEVEL").as_deref() {
        Ok("quick") => (STEPS_OF_QUICK_TESTS, 0),
        Ok("full") => (STEPS_OF_FULL_TESTS, fastrand::u64(..1 << 40)),
        _ => (STEPS, 0),
    }
}

/// The seed, and what happened last.
fn explain(violation: &Violation) -> String {
    let trace = if violation.trace.is_empty() {
        match run(violation.seed, true) {
            Err(again) => again.trace,
            Ok(_) => "(it does not happen again)".into(),
        }
    } else {
        violation.trace.clone()
    };
    format!("seed {}: {}\n{trace}", violation.seed, violation.what)
}

#[test]
fn nothing_that_happens_breaks_an_invariant() {
    if let Some(seed) = number_from_environment("HIGHBALL_SIM_SEED") {
        let violation = run(seed, true).err();
        assert!(violation.is_none(), "{}", explain(&violation.unwrap()));
        return;
    }
    let (steps, first) = extent_of_this_level();
    let wanted = number_from_environment("HIGHBALL_SIM_STEPS").unwrap_or(steps);
    let began = Instant::now();
    match simulate(first.., |steps| steps < wanted) {
        Ok(tale) => {
            let rate = tale.steps as f64 / began.elapsed().as_secs_f64();
            println!("{} steps, {rate:.0} a second, from seed {first} on", tale.steps);
            for (what, times) in &tale.reached {
                println!("{times:>9} × {what}");
            }
            assert!(
                tale.steps < STEPS || tale.reached.len() >= KINDS,
                "the simulation reaches too little: {:#?}",
                tale.reached
            );
        }
        Err(violation) => panic!("{}", explain(&violation)),
    }
}
