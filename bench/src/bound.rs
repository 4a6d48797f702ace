//! The most throughput within a latency: what people did by hand, raising the load until the answers came late.

use std::time::Duration;

use crate::deployment::Deployment;
use crate::method::{requests, send, setting, target, Candidate, Plan};
use crate::results::{Bound, BoundStep, Load};
use crate::workload::Workload;
use crate::{interrupt, Failure};

/// How often the search halves what it does not know.
const STEPS: u32 = 6;

/// The share of the saturated throughput at which the best latency is looked for.
const EASY: f64 = 0.1;

/// Connections that carry an open load; more than a server under test should ever need.
const CONNECTIONS: u32 = 100;

/// Searches the highest rate at which the 99th percentile stays within `p99_ms`, or twice the best where that is not
/// given. `saturated`: requests per second that the scheme carried at most, from where the search starts.
///
/// # Errors
/// It does not start, or the generator fails.
pub(crate) fn search(
    plan: &Plan,
    candidate: &Candidate,
    workload: &Workload,
    saturated: f64,
    p99_ms: Option<f64>,
) -> Result<Bound, Failure> {
    let deployment = Deployment::start(&candidate.scheme, &setting(candidate, workload))?;
    let requests = requests(&deployment, workload)?;
    let target = target(&deployment, &requests);
    let mut steps = Vec::new();
    let mut offer = |share: f64, time: Duration| -> Result<BoundStep, Failure> {
        let load =
            Load { connections: CONNECTIONS, rate: Some((saturated * share).max(1.0)), keep_alive: true };
        let outcome = send(&target, &load, time)?;
        let step = BoundStep {
            load,
            requests_per_second: outcome.requests_per_second,
            p99_ms: outcome.latency.p99,
            errors: outcome.errors.total(),
        };
        steps.push(step);
        Ok(step)
    };
    offer(EASY, plan.warm_up)?;
    let best = offer(EASY, plan.time)?;
    let p99_ms = p99_ms.unwrap_or(2.0 * best.p99_ms);
    let holds = |step: &BoundStep| step.errors == 0 && step.p99_ms <= p99_ms;
    let mut within = holds(&best).then_some(best.requests_per_second);
    let (mut least, mut most) = (EASY, 1.0);
    for _ in 0..STEPS {
        if within.is_none() || interrupt::came() {
            break;
        }
        let share = f64::midpoint(least, most);
        let step = offer(share, plan.time)?;
        if holds(&step) {
            within = Some(step.requests_per_second);
            least = share;
        } else {
            most = share;
        }
    }
    deployment.stop()?;
    steps.remove(0); // the warm-up
    let (scheme, workload) = (candidate.name.clone(), workload.name.clone());
    Ok(Bound { scheme, workload, p99_ms, requests_per_second: within, steps })
}
