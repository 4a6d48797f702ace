//! When the steps of a request were, for what is counted and measured ([`Figures`]).

use highball_link::Figures;

use crate::message::request_head::Method;

/// When the steps of a request were, in microseconds of CLOCK_MONOTONIC; 0: not yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    /// If nothing reports them, no clock is read.
    pub(crate) are_measured: bool,
    pub(crate) received_us: u64,
    /// How long it was with proxies before that, in microseconds, if a trusted one reports it.
    pub(crate) proxies_us: u64,
    /// The number of the worker that has it; 0: none had.
    pub(crate) worker: u32,
    /// Its body was there: it began to wait for a worker.
    pub(crate) queued_us: u64,
    /// It was given to a worker.
    pub(crate) placed_us: u64,
    /// The answer began.
    pub(crate) first_us: u64,
    /// The worker was done.
    pub(crate) ended_us: u64,
}

impl Moments {
    /// Adds a request that was answered with this status. `trace_id`: of its trace, if that is exported.
    pub(crate) fn add_to(self, figures: &mut Figures, method: Method, status: u16, trace_id: Option<&str>) {
        figures.requests.add(method as usize, status);
        let Moments { received_us, queued_us, placed_us, first_us, ended_us, .. } = self;
        if placed_us > 0 {
            figures.queue_time.add_traced(placed_us.saturating_sub(queued_us), trace_id);
        }
        if first_us > 0 {
            figures.first_byte_time.add_traced(first_us.saturating_sub(received_us), trace_id);
        }
        if ended_us > 0 {
            figures.service_time.add_traced(ended_us.saturating_sub(placed_us), trace_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_link::METHODS;

    #[test]
    fn methods_have_their_labels() {
        let labels = [Method::Get, Method::Trace, Method::Other].map(|method| METHODS[method as usize]);
        assert_eq!(labels, ["GET", "TRACE", "other"]);
    }
}
