//! A configuration that has changed.

use super::super::app::{App, AppConfig, Condition, Source};
use super::super::AppLog;
use crate::core::restart::Asked;
use crate::core::restart_policy::RestartPolicy;
use crate::core::sizing::Sizing;

impl App {
    /// From now on it is configured like this. Its processes are replaced if they would be others.
    pub(super) fn configure(&mut self, config: AppConfig, replaces: bool) {
        if self.config.has_fault {
            return self.begin_again(config);
        }
        let is_fixed = config.pool.is_none() && self.config.pool.is_none();
        if config.workers != self.config.workers && is_fixed && !self.is_site() {
            self.staff.wanted = config.workers;
        }
        if config.pool != self.config.pool && !self.is_site() {
            self.configure_sizing(config.pool, config.workers);
        }
        if config.max_boot_failures != self.config.max_boot_failures {
            self.boots.policy = RestartPolicy::new(config.max_boot_failures);
            self.staff.policy = RestartPolicy::new(config.max_boot_failures);
        }
        if config.refork_after != self.config.refork_after {
            self.reforks.configure(&config.refork_after, self.now);
        }
        self.replacements.memory.too_small = None; // the limit may be another one
        let may_fail = self.config.may_fail;
        self.config = AppConfig { may_fail, source: self.config.source, ..config };
        self.out.log(AppLog::Configured { restarts: replaces });
        if replaces {
            self.replace_processes();
        }
    }

    /// It has never had processes, as its own configuration could not be used; that may have changed.
    fn begin_again(&mut self, config: AppConfig) {
        self.staff.wanted = if config.source == Source::Site { 0 } else { config.workers };
        self.sizing = config.pool.map(|range| Sizing::new(range, self.now));
        self.reforks.configure(&config.refork_after, self.now);
        self.boots.policy = RestartPolicy::new(config.max_boot_failures);
        self.staff.policy = RestartPolicy::new(config.max_boot_failures);
        self.config = AppConfig { may_fail: self.config.may_fail, ..config };
        self.out.log(AppLog::Configured { restarts: true });
        if !self.is_running() || self.is_asleep() {
            return;
        }
        self.let_go(self.current.line());
        self.boots.site = None;
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.begin_line();
    }

    /// Replaces its processes by a restart; those that have not come up yet, and may not, at once.
    fn replace_processes(&mut self) {
        let is_coming = matches!(self.condition, Condition::Booting | Condition::Explaining(_));
        let boots = self.is_running() && is_coming;
        if !boots || self.config.source != Source::Folder {
            let _ = self.ask_restart(Asked::Configuration); // a refusal is logged
            return;
        }
        self.let_go(self.current.line());
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.begin_line();
    }
}
