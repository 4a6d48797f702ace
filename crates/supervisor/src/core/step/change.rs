//! A configuration that has changed.

use super::super::app::App;
use super::super::condition::Condition;
use super::super::config::{AppConfig, Source};
use super::super::AppLog;
use crate::core::restart::Asked;

impl App {
    /// From now on it is configured like this. Its processes are replaced if they would be others.
    pub(super) fn configure(&mut self, config: AppConfig, replaces: bool) {
        if self.config.has_fault {
            return self.begin_again(config);
        }
        if !self.config.is_site() {
            self.staff.resize_as_configured(&self.config, &config, self.now);
        }
        if config.max_boot_failures != self.config.max_boot_failures {
            self.boots.configure(config.max_boot_failures);
            self.staff.configure(config.max_boot_failures);
        }
        if config.refork_after != self.config.refork_after {
            self.reforks.configure(&config.refork_after, self.now);
        }
        self.staff.forget_limit();
        let may_fail = self.config.may_fail;
        self.config = AppConfig { may_fail, source: self.config.source, ..config };
        self.out.log(AppLog::Configured { restarts: replaces });
        if replaces {
            self.replace_processes(); // and with them the companions
        } else {
            self.adopt_companions();
        }
    }

    /// Companions run as they are configured by now.
    pub(super) fn adopt_companions(&mut self) {
        self.companions.adopt(&self.config.companions, self.now);
        self.out.go_on();
    }

    /// It has never had processes, as its own configuration could not be used; that may have changed.
    fn begin_again(&mut self, config: AppConfig) {
        self.staff.size_at_first(&config, self.now);
        self.reforks.configure(&config.refork_after, self.now);
        self.boots.configure(config.max_boot_failures);
        self.staff.configure(config.max_boot_failures);
        self.config = AppConfig { may_fail: self.config.may_fail, ..config };
        self.out.log(AppLog::Configured { restarts: true });
        if !self.phase.is_running() || self.condition.is_asleep() {
            return;
        }
        self.let_go(self.current.line());
        self.boots.forget_site();
        self.condition = Condition::Booting;
        self.current.follow_link();
        self.begin_line();
    }

    /// Replaces its processes by a restart; at once, if they have not come up yet and may never do.
    fn replace_processes(&mut self) {
        let is_coming = matches!(self.condition, Condition::Booting | Condition::Explaining(_));
        let boots = self.phase.is_running() && is_coming;
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
