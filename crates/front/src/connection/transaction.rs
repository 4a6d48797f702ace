//! A request on a connection: what is known of it, from the first byte of its head to the last of its answer.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use super::login::Login;
use crate::access_log::Entry;
use crate::compression::Stage;
use crate::exchange::Exchange;
use crate::message::request_head::RequestHead;
use crate::message::request_id::RequestId;
use crate::refusals::failure_pages::Audience;
use crate::route::app_state::Visit;
use crate::transport::stream::Peer;

/// A request.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The head; its memory serves the next request's, too.
    pub(super) head: RequestHead,
    /// The request and its response, as the application's dispatcher knows them. Used again for the next request.
    pub(super) exchange: Rc<Exchange>,
    /// The peer itself, if the request reports another client.
    pub(super) proxy: Option<Box<Peer>>,
    /// The request's text, if it is to be routed again.
    pub(super) again: Option<Again>,
    /// The application that the request is for.
    pub(super) visit: Option<Visit>,
    /// Time limit of the response.
    pub(super) limit: Option<Duration>,
    /// Compression of the response, if the client accepts one.
    pub(super) compression: Option<Box<Stage>>,
    /// Check of the request's password, if it needed one.
    pub(super) login: Option<Login>,
    /// User whose password came with the request.
    pub(super) user: Option<Rc<[u8]>>,
    /// Number of times that the request has waited for the response to another.
    pub(super) cache_waits: u8,
    /// Request id, if requests get one.
    pub(super) request_id: Option<RequestId>,
    /// Whether the response says how long the request has waited and taken.
    pub(super) reports_timing: bool,
    /// Line of the access log about the request, until it is written.
    pub(super) entry: Option<Entry>,
    /// Whether the request has been received and is not in the figures yet.
    pub(super) is_uncounted: bool,
    /// Whether the client asks for a WebSocket.
    pub(super) wants_web_socket: bool,
    /// Socket of the application, once it has taken the connection over.
    pub(super) taken_over: Option<OwnedFd>,
    /// Who gets the page about a failure of the application.
    pub(super) audience: Audience,
}

/// A request that is to be routed again.
#[derive(Debug)]
pub(super) struct Again {
    /// What its head has spans of.
    pub(super) text: Vec<u8>,
    /// Number of times that it has waited until more was known of a file.
    pub(super) waits: u8,
}

impl Transaction {
    /// The first request of a connection.
    pub(super) fn new() -> Self {
        Transaction {
            head: RequestHead::new(),
            exchange: Rc::new(Exchange::new()),
            proxy: None,
            again: None,
            visit: None,
            limit: None,
            compression: None,
            login: None,
            user: None,
            cache_waits: 0,
            request_id: None,
            reports_timing: false,
            entry: None,
            is_uncounted: false,
            wants_web_socket: false,
            taken_over: None,
            audience: Audience::Public,
        }
    }

    /// Begins the next request: nothing is known of it.
    pub(super) fn begin(&mut self) {
        // By name, so that no field is forgotten.
        let Transaction {
            head: _,     // the protocol writes it
            exchange: _, // the generation in it is that of the connection
            proxy,
            again,
            visit,
            limit,
            compression,
            login,
            user,
            cache_waits,
            request_id,
            reports_timing,
            entry,
            is_uncounted,
            wants_web_socket,
            taken_over,
            audience,
        } = self;
        (*proxy, *again, *visit, *limit, *compression) = (None, None, None, None, None);
        (*login, *user, *cache_waits, *request_id) = (None, None, 0, None);
        (*reports_timing, *entry, *is_uncounted, *wants_web_socket) = (false, None, false, false);
        (*taken_over, *audience) = (None, Audience::Public);
    }
}
