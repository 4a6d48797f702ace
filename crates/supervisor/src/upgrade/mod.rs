//! The handover between two versions of Highball: [`successor`] is the new process as the old one sees it,
//! [`predecessor`] the old one as the new one does; `control/handover.rs` has their messages. [`pid_proxy`] is the first
//! process, when it has been succeeded. The decisions are in `core/server/upgrade.rs`.

pub(crate) mod pid_proxy;
pub(crate) mod predecessor;
pub(crate) mod successor;
