//! This process and others, as the system sees them: `environment`, `event_loop`, `open_files` (their limit), `pidfile`, `started_path` (what the next
//! process is started from), `service_notification` (telling systemd), `owner` (whose a process is).

pub(crate) mod environment;
pub(crate) mod event_loop;
pub(crate) mod open_files;
pub(crate) mod owner;
pub(crate) mod pidfile;
pub(crate) mod service_notification;
pub(crate) mod started_path;
