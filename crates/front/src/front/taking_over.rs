//! What the new process of a hot restart takes over from the front of the old one: what its hubs keep, then the clients whose WebSockets are
//! held.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::timeout;

use crate::connection::serve_passed;
use crate::hub::Inheritance;
use crate::shared::Shared;
use crate::succession::message::{FromNew, FromOld};
use crate::succession::wire::{encode, Wire};

/// The time for what the hubs keep. Then connections are accepted without it.
const HUBS_TIME: Duration = Duration::from_secs(3);

/// Messages that are taken before others get their turn.
const MOST_IN_A_TURN: usize = 256;

/// Takes over from the old process, and begins to accept connections in between.
pub(super) async fn take_over(socket: OwnedFd, shared: Rc<Shared>) {
    let inherited = timeout(HUBS_TIME, inherit(socket, &shared)).await;
    let inherited = inherited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    shared.open.send_replace(true);
    match inherited {
        Ok(Some(wire)) => take_clients(wire, &shared).await,
        Ok(None) => {} // the old process is of a version without this
        Err(error) => {
            tracing::warn!(
                name: "hub_not_inherited",
                %error, "clients of event streams and Action Cable may miss messages: what the old process kept of them could not be taken over"
            );
        }
    }
}

/// Takes over what the hubs keep. `None`: the old process has gone.
async fn inherit(socket: OwnedFd, shared: &Shared) -> io::Result<Option<Wire>> {
    let mut wire = Wire::over(socket)?;
    let mut asked = Vec::new();
    encode(&FromNew::Hubs, &mut asked)?;
    if wire.send(&asked, None).await.is_err() {
        return Ok(None);
    }
    let mut hub: Option<Inheritance> = None;
    for count in 1.. {
        match wire.receive().await? {
            Some(FromOld::Hub { app, forgotten, dropped, bus }) => {
                let apps = shared.apps.borrow();
                let app = apps.iter().find(|state| state.settings().name == app);
                hub = app.map(|app| app.hub.inherit(forgotten, dropped, &bus));
            }
            Some(FromOld::Stream { name, lost }) => {
                hub.iter_mut().for_each(|hub| hub.begin_stream(name.0.clone(), lost));
            }
            Some(FromOld::Message { number, at_ms, event, data }) => {
                hub.iter_mut().for_each(|hub| hub.add(number, at_ms, &event, &data));
            }
            Some(FromOld::HubsEnd) => return Ok(Some(wire)),
            Some(FromOld::Cable(_) | FromOld::Unknown) => {}
            None => break,
        }
        if count % MOST_IN_A_TURN == 0 {
            yield_now().await;
        }
    }
    Ok(None)
}

async fn take_clients(mut wire: Wire, shared: &Rc<Shared>) {
    let (mut taken, mut lost) = (0_u64, 0_u64);
    loop {
        let received = match wire.receive().await {
            Ok(Some(received)) => received,
            Ok(None) => break,
            Err(error) => {
                tracing::error!(
                    name: "websockets_not_inherited", %error, "WebSockets of the old process could not be taken over"
                );
                break;
            }
        };
        let FromOld::Cable(passed) = received else { continue };
        let socket = wire.take_descriptor().ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
        match socket.and_then(|socket| serve_passed(&passed, socket, shared)) {
            Ok(()) => taken += 1,
            Err(error) => {
                tracing::debug!(%error, application = passed.app, "a WebSocket could not be taken over");
                lost += 1;
            }
        }
        shared.turn.step();
    }
    if taken + lost > 0 {
        tracing::info!(
            name: "websockets_inherited", taken, closed = lost, "took over held WebSockets of the old process"
        );
    }
}
