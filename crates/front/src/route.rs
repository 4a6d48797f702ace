//! Whose a request is: the application by host and path, and what belongs to that application alone.
//!
//! In reading order: [`apps`] (the applications of the server), [`router`] (which one a request is for), [`app_state`]
//! (all state of one: workers, queue, files, failures), [`load_meter`] (how busy it is), [`app_list`] (what developers
//! see where there is none).

pub(crate) mod app_list;
pub(crate) mod app_state;
pub(crate) mod apps;
pub(crate) mod load_meter;
pub mod router;
