//! Whose a request is: the application by host and path, and what belongs to that application alone.

pub(crate) mod app_list;
pub(crate) mod app_state;
pub(crate) mod apps;
pub(crate) mod load_meter;
pub mod router;
