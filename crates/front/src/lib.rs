//! The data path: from a client's socket to a worker's ring and back. One thread, one event loop.
//!
//! In reading order, which is a request's way:
//!
//! - [`transport`]: binding and accepting, streams, and the header with which a proxy reports its client;
//! - `connection`: the life of a connection: one request after the other; `request`: what is known of a request, and the list
//!   of its steps;
//! - [`protocol`]: HTTP/1, HTTP/2, FastCGI and LSAPI: each reads requests into a [`message::request_head`], and writes the events
//!   of an answer ([`message::answer`]);
//! - [`route`]: whose a request is, and what belongs to one application;
//! - `basic_auth`: names and passwords; [`developer_key`]: how developers are known;
//! - [`files`]: answered here, without Ruby; `aside`: what is found out on other threads, as it may take long;
//! - [`cache`]: answers for all clients, stored and sent without Ruby;
//! - [`compression`]: of answers, on their way from the exchange to the protocol;
//! - [`exchange`]: a request and its answer: bodies, what a worker sends, spool files, within a [`budget`];
//! - `dispatch`: the request queue, and which worker gets a request; `affinity`: the worker of a session;
//! - `hub`: messages to clients whose responses are held; `cable`: WebSockets of Action Cable that are held; `publishers`: how processes of an application publish them;
//! - [`refusals`]: every answer that is an error of the front's own, and what is known of a request that got one;
//! - `https`: sending clients to HTTPS, and keeping them there, and names that get a certificate when a client asks for one;
//!   `location`: where redirects lead; `path_pattern`: paths of options; `response_headers`: fields that an option changes;
//! - `moments`: when the steps of a request were, for what is counted and measured; `pending`: what its steps wait for;
//! - `trace`: spans of requests, for a collector; `random`: bytes for ids;
//! - `running`: the requests that are under way, for operators;
//! - `access_log`; [`line_buffer`], which any log can use;
//! - `rollout`: which version a visitor gets while two serve;
//! - `canary`: the requests that a worker of a new release has to answer before clients reach it;
//! - `succession`: what the fronts of two processes tell each other in a hot restart;
//! - `front`, `turn`, `shared`, `clock`, `heap`, [`http_syntax`]: the event loop, and what all of it stands on.
//!
//! The front does not know the supervisor. It takes [`FrontCommand`](highball_link::FrontCommand)s and sends [`FrontEvent`](highball_link::FrontEvent)s;
//! the binary passes them to and fro. No two modules import each other in a circle.

#![cfg_attr(test, allow(clippy::disallowed_methods))] // the files are a test's own

mod access_log;
mod affinity;
mod aside;
mod basic_auth;
pub mod budget;
mod cable;
pub mod cache;
mod canary;
mod clock;
pub mod compression;
mod connection;
mod cookies;
pub mod developer_key;
mod dispatch;
pub mod exchange;
pub mod files;
mod front;
mod heap;
pub mod http_syntax;
mod https;
mod hub;
pub mod line_buffer;
mod location;
mod maintenance;
pub mod message;
mod moments;
mod path_pattern;
mod pending;
pub mod protocol;
mod publishers;
mod random;
mod rate_limit;
pub mod refusals;
mod request;
mod response_headers;
mod rollout;
pub mod route;
mod running;
mod shared;
mod succession;
#[cfg(test)]
mod tests;
mod trace;
pub mod transport;
mod turn;

pub use access_log::{open_access_logs_by, open_log_of_root, OpenLogBy};
pub use basic_auth::count_users;
pub use clock::Seldom;
pub use dispatch::geometry::geometry;
pub use exchange::spool_room::{spool_problem, SPOOL_REMEDY};
pub use front::{run, Entrances};
pub use publishers::PublishersSocket;
pub use refusals::failure::{Developers, DevelopmentPages};
pub use shared::{Opening, Unanswered};
pub use transport::activated::{activate, activated_count, close_other_activated};
pub use transport::listener::{adopt, bind, over, BindError, BindFault, Listener, SocketPath};
pub use transport::tls::authority::{Authority, AuthorityError, AuthorityFiles, Delegate, Issuer};
pub use transport::tls::certificate::{Certificate, CertificateError, CertificateOwner, Flaw, Pem};
pub use transport::tls::clients::{AuthoritiesError, ClientAuthorities};
pub use transport::tls::{SetupError, Tls};
