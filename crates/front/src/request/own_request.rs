//! A request that the server itself has for an application. It takes the way of every other request: through the ring. Its env has
//! a [mark](append_mark_of_probe) that no client can give a request.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::clock::now_us;
use crate::exchange::response::Progress;
use crate::exchange::response_head::HeadContext;
use crate::exchange::Exchange;
use crate::message::refusal::Refusal;
use crate::message::request_head::{append_mark_of_probe, RequestHead, RingContext};
use crate::protocol::http1::reader::{Parsed, Reader};
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// Most characters of an exception that the application has raised.
const EXCEPTION_CHARS: usize = 2000;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The path below the application's prefix, with a query.
    pub(crate) path: &'a str,
    pub(crate) host: &'a str,
    /// Whether it is asked for as by HTTPS.
    pub(crate) https: bool,
}

/// A GET as a client on this machine would send it.
///
/// # Errors
/// This cannot be asked for.
pub(crate) fn get(asked: Asked<'_>, app: &AppState, shared: &Shared) -> Result<Rc<Exchange>, String> {
    let Asked { path, host, https } = asked;
    let settings = app.settings();
    let script_name = settings.prefix.as_str();
    let text = format!(
        "GET {script_name}{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Highball\r\nAccept: */*\r\n\r\n"
    );
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    match reader.parse(text.as_bytes(), &shared.settings.limits, &mut head) {
        Ok(Parsed::Complete { .. }) => {}
        Ok(Parsed::Partial) => return Err(format!("{path:?} is not a path that can be asked for")),
        Err(refusal) => return Err(format!("{path:?} cannot be asked for: {}", refusal.why())),
    }
    let exchange = Rc::new(Exchange::new());
    let mut inner = exchange.borrow();
    let context = RingContext {
        remote_addr: "127.0.0.1",
        server_name: host,
        server_port: if https { 443 } else { 80 },
        script_name,
        prefix_bytes: script_name.len(),
        request_id: None,
        remote_user: None,
        https,
        takeover: true,
        received_us: now_us(),
        content_length: None,
    };
    head.encode_for_ring(text.as_bytes(), &context, &mut inner.request.head);
    append_mark_of_probe(&mut inner.request.head);
    inner.response.reset(HeadContext::default());
    drop(inner);
    Ok(exchange)
}

/// Waits for the head of the answer, and says what its status is. What follows the head is not looked at: some answers never end.
///
/// # Errors
/// There is none; why.
pub(crate) async fn status(exchange: &Rc<Exchange>, app: &AppState) -> Result<u16, String> {
    let _open = Open { exchange, app };
    poll_fn(|context| poll_status(exchange, context)).await
}

/// A request that ends with this, also if its answer is not waited for any more.
struct Open<'a> {
    exchange: &'a Rc<Exchange>,
    app: &'a AppState,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.app.dispatcher.borrow_mut().cancel(self.exchange);
    }
}

fn poll_status(exchange: &Exchange, context: &Context<'_>) -> Poll<Result<u16, String>> {
    let mut inner = exchange.borrow();
    match inner.response.progress() {
        Progress::Waiting => {
            inner.waker = Some(context.waker().clone());
            Poll::Pending
        }
        Progress::Refused(Refusal::AppRaised) => {
            let exception = String::from_utf8_lossy(&inner.response.exception);
            let exception: String = exception.chars().take(EXCEPTION_CHARS).collect();
            let status = Refusal::AppRaised.status();
            Poll::Ready(match exception.is_empty() {
                true => Ok(status),
                false => Err(format!("status {status}, {exception}")),
            })
        }
        Progress::Refused(refusal) => Poll::Ready(Err(refusal.why().into())),
        Progress::GivenBack => Poll::Ready(Err("it was not taken".into())),
        Progress::Streaming | Progress::Ended | Progress::Aborted => Poll::Ready(Ok(inner.response.status)),
    }
}
