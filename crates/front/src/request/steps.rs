//! The steps of a request, a file each. [`pipeline`](super::pipeline) has their order.

pub(super) mod application;
pub(super) mod body_size;
pub(super) mod cache;
pub(super) mod client_certificate;
pub(super) mod developer;
pub(super) mod file;
pub(super) mod headers;
pub(super) mod health;
pub(super) mod https;
pub(crate) mod identity;
pub(super) mod login;
pub(super) mod maintenance;
pub(super) mod misdirected;
pub(super) mod rate;
pub(super) mod redirect;
pub(super) mod rollout;
pub(crate) mod submit;
