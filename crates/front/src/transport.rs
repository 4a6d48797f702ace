//! What stands below the protocols: how connections come, and from whom.

pub mod activated;
pub(crate) mod http2;
pub mod listener;
pub(crate) mod peer_user;
pub mod proxy_header;
pub(crate) mod stream;
pub mod tls;
