//! Figures from two reports: requests a second, shares of processors, times of the last seconds.

use crate::status::overview::report::{AppOverview, Overview, WorkerOverview};
use std::collections::{BTreeMap, VecDeque};

/// Number of reports to keep: rates are those of some seconds.
const KEPT: usize = 6;
/// Number of rates to keep for each application.
const LONGEST_LINE: usize = 120;

/// The last reports.
#[derive(Debug, Default)]
pub(crate) struct History {
    reports: VecDeque<Overview>,
    /// By application: requests a second, oldest first.
    lines: BTreeMap<u32, VecDeque<f64>>,
}

impl History {
    /// Adds a report. Forgets reports of other server processes.
    pub(crate) fn add(&mut self, overview: Overview) {
        self.reports.retain(|earlier| earlier.pid == overview.pid && earlier.at_ms < overview.at_ms);
        self.lines.retain(|id, _| overview.apps.iter().any(|app| app.id == *id));
        for app in &overview.apps {
            let line = self.lines.entry(app.id).or_default();
            let last =
                self.reports.back().and_then(|last| Some((last.at_ms, of_app(last, app.id)?.answered)));
            let Some((at_ms, answered)) = last else { continue };
            let seconds = (overview.at_ms - at_ms) as f64 / 1000.0;
            line.push_back(app.answered.saturating_sub(answered) as f64 / seconds);
            line.drain(..line.len().saturating_sub(LONGEST_LINE));
        }
        if self.reports.len() == KEPT {
            self.reports.pop_front();
        }
        self.reports.push_back(overview);
    }

    pub(crate) fn now(&self) -> Option<&Overview> {
        self.reports.back()
    }

    /// Returns the last rates of an application's requests, oldest first.
    pub(crate) fn line(&self, app: &AppOverview) -> impl DoubleEndedIterator<Item = f64> + '_ {
        self.lines.get(&app.id).into_iter().flatten().copied()
    }

    fn before(&self) -> Option<&Overview> {
        self.reports.front().filter(|_| self.reports.len() > 1)
    }

    /// Returns the seconds between the two reports, if there are two.
    fn seconds(&self) -> Option<f64> {
        Some((self.now()?.at_ms - self.before()?.at_ms) as f64 / 1000.0)
    }

    fn app_before(&self, app: &AppOverview) -> Option<&AppOverview> {
        of_app(self.before()?, app.id)
    }

    /// Returns the rate of an application's counter, per second.
    pub(crate) fn rate(&self, app: &AppOverview, counter: fn(&AppOverview) -> u64) -> Option<f64> {
        let more = counter(app).saturating_sub(counter(self.app_before(app)?));
        Some(more as f64 / self.seconds()?)
    }

    /// Returns the time within which this share of the last answers began, in milliseconds: the limit of a bucket.
    pub(crate) fn quantile_ms(&self, app: &AppOverview, share: f64) -> Option<f64> {
        let (now, before) = (&app.times, &self.app_before(app)?.times);
        let all = now.count.saturating_sub(before.count);
        if all == 0 || now.counts.len() != before.counts.len() {
            return None;
        }
        let wanted = (all as f64 * share).ceil();
        let up_to = now.counts.iter().zip(&before.counts).map(|(now, before)| now.saturating_sub(*before));
        let bucket = up_to.into_iter().position(|count| count as f64 >= wanted);
        Some(bucket.and_then(|bucket| now.limits_ms.get(bucket)).copied().unwrap_or(f64::INFINITY))
    }

    /// Returns the number of processors that an application uses, if the kernel limits it.
    pub(crate) fn cpus(&self, app: &AppOverview) -> Option<f64> {
        let before = self.app_before(app)?.kernel_limits.as_ref()?;
        let took = app.kernel_limits.as_ref()?.cpu_ms.saturating_sub(before.cpu_ms);
        Some(took as f64 / 1000.0 / self.seconds()?)
    }

    /// Returns the percentage of its computing time in which the application had to wait because of that limit.
    pub(crate) fn throttled_percent(&self, app: &AppOverview) -> Option<f64> {
        app.kernel_limits.as_ref()?.throttled_percent(self.app_before(app)?.kernel_limits.as_ref()?)
    }

    /// Returns the share of a processor that a worker uses, in percent.
    pub(crate) fn cpu_percent(&self, app: &AppOverview, worker: &WorkerOverview) -> Option<f64> {
        let before = self.app_before(app)?.workers.iter().find(|before| before.pid == worker.pid)?;
        let took = worker.cpu_ms?.saturating_sub(before.cpu_ms?);
        Some(took as f64 / 10.0 / self.seconds()?)
    }
}

fn of_app(overview: &Overview, id: u32) -> Option<&AppOverview> {
    overview.apps.iter().find(|app| app.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::overview::report::TimesOverview;

    fn overview(at_ms: u64, answered: u64, counts: [u64; 2], cpu_ms: u64) -> Overview {
        let worker = WorkerOverview { pid: Some(7), cpu_ms: Some(cpu_ms), ..WorkerOverview::default() };
        let times = TimesOverview { limits_ms: vec![1.0, 2.0], counts: counts.to_vec(), count: answered };
        let app = AppOverview { answered, times, workers: vec![worker], ..AppOverview::default() };
        Overview { pid: 1, at_ms, apps: vec![app], ..Overview::default() }
    }

    #[test]
    fn rates_are_differences() {
        let mut history = History::default();
        history.add(overview(1000, 10, [10, 10], 100));
        let app = history.now().unwrap().apps[0].clone();
        assert_eq!(history.rate(&app, |app| app.answered), None);
        history.add(overview(3000, 30, [20, 28], 1100));
        let app = history.now().unwrap().apps[0].clone();
        assert_eq!(history.rate(&app, |app| app.answered), Some(10.0));
        assert_eq!(history.line(&app).collect::<Vec<_>>(), [10.0]);
        assert_eq!(history.quantile_ms(&app, 0.5), Some(1.0));
        assert_eq!(history.quantile_ms(&app, 0.9), Some(2.0));
        assert_eq!(history.quantile_ms(&app, 0.95), Some(f64::INFINITY));
        assert_eq!(history.cpu_percent(&app, &app.workers[0]), Some(50.0));
    }

    #[test]
    fn a_report_of_another_process_is_the_first_one() {
        let mut history = History::default();
        history.add(overview(1000, 10, [0, 0], 0));
        history.add(Overview { pid: 2, ..overview(9000, 5, [0, 0], 0) });
        let app = history.now().unwrap().apps[0].clone();
        assert_eq!(history.rate(&app, |app| app.answered), None);
    }
}
