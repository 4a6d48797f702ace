//! The request by which the first worker of a new release has to show that it answers, before clients' requests go
//! to it. It comes from here and not from a client, and takes the way of every other request: through the ring.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::clock::now_us;
use crate::exchange::response::Progress;
use crate::exchange::response_head::HeadContext;
use crate::exchange::Exchange;
use crate::message::refusal::Refusal;
use crate::message::request_head::{append_mark_of_probe, RequestHead, RingContext};
use crate::messages::AppEvent;
use crate::protocol::http1::reader::{Parsed, Reader};
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// Most characters of an exception that the application has raised.
const EXCEPTION_CHARS: usize = 2000;

/// Sends a canary its request, waits for the head of its answer, and says what it was. How long that may take is for
/// others to say: when the canary is retired or gone, the request fails.
pub(crate) async fn ask(worker: u32, path: String, app: Rc<AppState>, shared: Rc<Shared>) {
    let answer = answer_of(worker, &path, &app, &shared).await;
    app.send(AppEvent::CanaryAnswered { worker, answer });
}

async fn answer_of(worker: u32, path: &str, app: &Rc<AppState>, shared: &Shared) -> Result<u16, String> {
    let exchange = request(path, app, shared)?;
    shared.turn.activate(app);
    if !app.dispatcher.borrow_mut().submit_to_canary(worker, &exchange) {
        return Err("it was gone before it could be asked".into());
    }
    let answer = poll_fn(|context| poll_status(&exchange, context)).await;
    // What follows the head is not looked at: some answers never end.
    app.dispatcher.borrow_mut().cancel(&exchange);
    answer
}

/// A GET as a client on this machine would send it, for the first host that leads to the application: one that it does
/// not know it may turn away before it has done anything.
fn request(path: &str, app: &AppState, shared: &Shared) -> Result<Rc<Exchange>, String> {
    let settings = app.settings();
    let script_name = settings.prefix.as_str();
    let host = settings.hosts.first().map_or("localhost", String::as_str);
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
        server_port: 80,
        script_name,
        prefix_bytes: script_name.len(),
        request_id: None,
        remote_user: None,
        https: false,
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
        // (It never waits in the queue, and so is not given back.)
        Progress::Streaming | Progress::Ended | Progress::Aborted | Progress::GivenBack => {
            Poll::Ready(Ok(inner.response.status))
        }
    }
}
