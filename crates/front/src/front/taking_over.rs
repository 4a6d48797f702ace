//! What the new process of a hot restart takes over from the front of the old one: what its hubs keep, then the clients whose WebSockets are
//! held. Meanwhile it sends the old one what it publishes.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{yield_now, JoinSet};
use tokio::time::timeout;

use crate::connection::serve_passed;
use crate::hub::Inheritance;
use crate::route::app_state::AppState;
use crate::shared::Shared;
use crate::succession::message::{FromNew, FromOld};
use crate::succession::wire::{encode, wire_over, WireReader, WireWriter};

/// The time for what the hubs keep. Then connections are accepted without it.
const HUBS_TIME: Duration = Duration::from_secs(3);

/// Messages that are taken before others get their turn.
const MOST_IN_A_TURN: usize = 256;

/// Bytes of messages that are sent at a time. (One message may be larger.)
const PIECE_BYTES: usize = 16 * 1024;

/// Takes over from the old process, and begins to accept connections in between.
pub(super) async fn take_over(socket: OwnedFd, shared: Rc<Shared>) {
    let inherited = timeout(HUBS_TIME, inherit(socket, &shared)).await;
    let inherited = inherited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    shared.open.send_replace(true);
    match inherited {
        Ok(Some(Taken { reader, writer, wants_messages })) => {
            let forwarding = wants_messages.then(|| Forwarding::begin(&writer, &shared));
            take_clients(reader, forwarding, &shared).await;
        }
        Ok(None) => {} // the old process is of a version without this
        Err(error) => {
            tracing::warn!(
                name: "hub_not_inherited",
                %error, "clients of event streams and Action Cable may miss messages: what the old process kept of them could not be taken over"
            );
        }
    }
}

/// The hubs are taken over.
struct Taken {
    reader: WireReader,
    writer: WireWriter,
    /// Whether the old process takes what is published from now on.
    wants_messages: bool,
}

/// Takes over what the hubs keep. `None`: the old process has gone.
async fn inherit(socket: OwnedFd, shared: &Shared) -> io::Result<Option<Taken>> {
    let (mut reader, writer) = wire_over(socket)?;
    let mut asked = Vec::new();
    let address = |app: &Rc<AppState>| (app.settings().name.clone(), shared.hub_address.of(app.id));
    let addresses = shared.apps.borrow().iter().map(address).collect();
    encode(&FromNew::Hubs { addresses }, &mut asked)?;
    if writer.send(&asked, None).await.is_err() {
        return Ok(None);
    }
    let mut hub: Option<Inheritance> = None;
    for count in 1.. {
        match reader.receive().await? {
            Some(FromOld::Hub { app, forgotten, dropped, bus }) => {
                let app = shared.apps.borrow().named(&app);
                hub = app.map(|app| app.hub.inherit(forgotten, dropped, &bus));
            }
            Some(FromOld::Stream { name, lost }) => {
                hub.iter_mut().for_each(|hub| hub.begin_stream(name.0.clone(), lost));
            }
            Some(FromOld::Message { number, at_ms, event, data }) => {
                hub.iter_mut().for_each(|hub| hub.add(number, at_ms, &event, &data));
            }
            Some(FromOld::HubsEnd { wants_messages }) => {
                return Ok(Some(Taken { reader, writer, wants_messages }))
            }
            Some(FromOld::Cable(_) | FromOld::WantsMessages { .. } | FromOld::Unknown) => {}
            None => break,
        }
        if count % MOST_IN_A_TURN == 0 {
            yield_now().await;
        }
    }
    Ok(None)
}

/// Forwards to the old process what each application publishes. Ends when it is dropped.
struct Forwarding {
    /// Notified when the old process takes more messages of the application with this name.
    asked: HashMap<String, Rc<Notify>>,
    _tasks: JoinSet<()>,
}

impl Forwarding {
    fn begin(writer: &WireWriter, shared: &Shared) -> Forwarding {
        let (mut asked, mut tasks) = (HashMap::new(), JoinSet::new());
        for app in shared.apps.borrow().iter() {
            let asks = Rc::new(Notify::new());
            asked.insert(app.settings().name.clone(), Rc::clone(&asks));
            tasks.spawn_local(forward(Rc::clone(app), writer.clone(), asks));
        }
        Forwarding { asked, _tasks: tasks }
    }

    /// The old process takes more messages of this application.
    fn go_on(&self, app: &str) {
        self.asked.get(app).iter().for_each(|asks| asks.notify_one());
    }
}

/// Forwards the messages of an application, until the hub has dropped one before its turn.
async fn forward(app: Rc<AppState>, writer: WireWriter, asks: Rc<Notify>) {
    let Ok(mut listener) = app.hub.listen_to_own() else { return };
    let name = app.settings().name.clone();
    loop {
        listener.news().await;
        let turn = writer.turn().await;
        let messages = listener.take_to_forward(PIECE_BYTES);
        if listener.may_have_missed {
            return app.hub.note_missed(&name);
        }
        if listener.is_over() && messages.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        let encoded = encode(&FromNew::Messages { app: name.clone(), messages }, &mut bytes);
        if encoded.is_err() || turn.send(&bytes, None).await.is_err() {
            return; // they are too long, or the old process has gone
        }
        drop(turn);
        asks.notified().await;
    }
}

async fn take_clients(mut reader: WireReader, forwarding: Option<Forwarding>, shared: &Rc<Shared>) {
    let (mut taken, mut lost) = (0_u64, 0_u64);
    loop {
        let received = match reader.receive().await {
            Ok(Some(received)) => received,
            Ok(None) => break,
            Err(error) => {
                tracing::error!(
                    name: "websockets_not_inherited", %error, "WebSockets of the old process could not be taken over"
                );
                break;
            }
        };
        let passed = match received {
            FromOld::Cable(passed) => passed,
            FromOld::WantsMessages { app } => {
                forwarding.iter().for_each(|forwarding| forwarding.go_on(&app));
                continue;
            }
            _ => continue,
        };
        let socket = reader.take_descriptor().ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
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
