//! What stands below the protocols: how connections come, and from whom.
//!
//! In reading order: [`listener`] (binding and accepting), [`activated`] (sockets that systemd has opened),
//! [`proxy_header`] (the client that a proxy reports), [`peer_user`] (whose process a local client is), [`tls`]
//! (certificates), [`stream`] (a socket, with TLS or without), [`http2`] (a stream of HTTP/2 in its place).

pub mod activated;
pub(crate) mod http2;
pub mod listener;
pub(crate) mod peer_user;
pub mod proxy_header;
pub(crate) mod stream;
pub mod tls;
