//! How likely everything is that may go wrong. Chances are in 10,000.

use fastrand::Rng;

#[derive(Debug, Clone)]
pub(super) struct Chaos {
    /// A process dies at a step.
    pub(super) death: u32,
    /// A process that should do something does nothing.
    pub(super) hang: u32,
    /// A boot, a start or a promotion fails.
    pub(super) failure: u32,
    /// An action fails: no descriptors, no memory, a full socket.
    pub(super) refusal: u32,
    /// A message is delivered twice.
    pub(super) double: u32,
    /// A process sends what it should not, at a step.
    pub(super) forgery: u32,
    /// An order of an operator, a file or a signal, at a step.
    pub(super) order: u32,
    /// The load of an application is reported, at a step.
    pub(super) load: u32,
    /// The whole server is asked to stop, at a step.
    pub(super) stop: u32,
    /// The clock jumps, at a step.
    pub(super) jump: u32,
    /// A process cannot be killed for a while.
    pub(super) unkillable: u32,
    /// A worker dies a moment after it was ready.
    pub(super) early_death: u32,
    /// A worker does not begin the requests that it is given, and follows no order.
    pub(super) stuck: u32,
    /// Things happen late, where they usually happen soon.
    pub(super) delay: u32,
}

impl Chaos {
    /// One of several kinds of bad times.
    pub(super) fn any(rng: &mut Rng) -> Chaos {
        let level = [10, 100, 600, 2000][rng.usize(..4)];
        let early_death = [0, 0, level, 9_500][rng.usize(..4)];
        let mut some = |most: u32| if rng.bool() { rng.u32(..=most.max(1)) } else { 0 };
        Chaos {
            death: some(level / 10),
            hang: some(level),
            failure: some(level * 2),
            refusal: some(level),
            double: some(level),
            forgery: some(level / 4),
            order: 20 + some(level),
            load: some(1000),
            stop: some(2),
            jump: some(level / 20),
            unkillable: some(level / 4),
            delay: some(level * 2),
            early_death,
            stuck: some(level),
        }
    }

    /// Nothing goes wrong.
    pub(super) fn calm() -> Chaos {
        Chaos {
            death: 0,
            hang: 0,
            failure: 0,
            refusal: 0,
            double: 0,
            forgery: 0,
            order: 0,
            load: 0,
            stop: 0,
            jump: 0,
            unkillable: 0,
            delay: 0,
            early_death: 0,
            stuck: 0,
        }
    }
}
