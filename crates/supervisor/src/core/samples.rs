//! Reports as processes send them, for tests of the core.

use super::worker::StartFailure;
use crate::facts::boot_failure::{Account, BootFailure};
use highball_config::{Companion, CompanionCommand, MemoryBound, RestartRule};
use highball_link::{Booted, Diagnosis, RubyError, Step};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn booted(restartable: bool) -> Booted {
    Booted { pid: 1, framework: "Rack".into(), restartable, ..Booted::default() }
}

pub(super) fn boot_failure() -> BootFailure {
    let account = Account {
        error: RubyError::default(),
        causes: Vec::new(),
        cause: String::new(),
        remedy: None,
        command: None,
        quoted: Vec::new(),
        versions: BTreeMap::new(),
        output: Vec::new(),
    };
    BootFailure { step: Step::LoadApp, account }
}

pub(super) fn start_failure() -> StartFailure {
    StartFailure { error: RubyError::default(), boot: None }
}

pub(super) fn diagnosis() -> Diagnosis {
    Diagnosis {
        cause: String::new(),
        step: None,
        request: None,
        error: RubyError::default(),
        causes: Vec::new(),
        threads: Vec::new(),
        remedy: None,
        command: None,
        sources: Vec::new(),
        folder: PathBuf::new(),
        versions: BTreeMap::new(),
        environment: BTreeMap::new(),
        log_tail: Vec::new(),
    }
}

pub(super) fn companion(name: &str, count: u16) -> Companion {
    Companion {
        name: name.into(),
        command: CompanionCommand::Shell("true".into()),
        count,
        fork: false,
        env: BTreeMap::new(),
        directory: None,
        restart: RestartRule::Always,
        stop_timeout: Duration::from_secs(30),
        start_after: Vec::new(),
        memory_limit: MemoryBound::None,
    }
}
