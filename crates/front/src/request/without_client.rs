//! Answers that come in although no client waits for them: what is recorded of them is in the cache.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::timeout;

use highball_ring::frame::PACKET_BYTES;

use crate::exchange::answer_stream::StreamNews;
use crate::exchange::Exchange;
use crate::message::answer::AnswerEvents;
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// How long an answer may take that no client has asked for, or whose client has left.
const TIME_WITHOUT_CLIENT: Duration = Duration::from_secs(60);

/// Has an answer come in to the end, for the requests that wait for it, although its client has left. `false`: none waits.
pub(super) fn finish_for_others(exchange: &Rc<Exchange>, app: &Rc<AppState>, shared: &Shared) -> bool {
    let is_awaited = exchange.borrow().response.is_awaited();
    if is_awaited {
        shared.turn.activate(app);
        finish(Rc::clone(exchange), Rc::clone(app), |exchange| exchange.borrow().response.is_awaited());
    }
    is_awaited
}

/// Takes the rest of an answer in, and drops it. It ends early when it is of no use.
pub(super) fn finish(
    exchange: Rc<Exchange>,
    app: Rc<AppState>,
    is_of_use: impl Fn(&Exchange) -> bool + 'static,
) {
    spawn_local(async move {
        let mut events = AnswerEvents::default();
        let mut buffer = vec![0; PACKET_BYTES];
        let finished = poll_fn(|context| loop {
            if !is_of_use(&exchange) {
                return Poll::Ready(());
            }
            let mut inner = exchange.borrow();
            inner.response.take_events(&mut events);
            let news = !events.is_empty() || inner.response.caught_up();
            events.clear();
            inner.response.forget_taken();
            inner.waker = Some(context.waker().clone());
            drop(inner);
            let stream = exchange.poll_stream(context, &mut buffer);
            if stream == StreamNews::Ended {
                app.dispatcher.borrow_mut().end_stream(&exchange);
            }
            if !news && stream == StreamNews::None {
                return Poll::Pending;
            }
            app.dispatcher.borrow_mut().pull(&exchange);
        });
        let _ = timeout(TIME_WITHOUT_CLIENT, finished).await; // what has not come by then is not wanted any more
        app.dispatcher.borrow_mut().cancel(&exchange);
        exchange.borrow().response.settle();
    });
}
