//! What the old process of a hot restart gives to the front of the new one: what its hubs keep, then the clients whose WebSockets are held.
//! Meanwhile it takes what the new one publishes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{yield_now, JoinSet};
use tokio::time::{sleep, timeout};

use crate::hub::Estate;
use crate::route::app_state::AppState;
use crate::shared::Shared;
use crate::succession::message::{FromNew, FromOld, Leaver, NewProcess, PassedMessage};
use crate::succession::wire::{encode, wire_over, WireReader, WireWriter};

/// The time for the new process to accept connections, once it has asked for the hubs. Publishers wait meanwhile, and give up soon after.
const OPENING_TIME: Duration = Duration::from_secs(4);

/// The time for it to ask, once it accepts connections.
const ASKING_TIME: Duration = Duration::from_secs(4);

/// Bytes of messages that are sent before others get their turn.
const PIECE_BYTES: usize = 64 * 1024;

/// Most clients on their way to it.
const MOST_LEAVERS: usize = 16;

/// Gives a new process that may take over what it asks for, until this process ends. If it does not take over, this one goes on.
pub(super) async fn hand_over(socket: OwnedFd, shared: Rc<Shared>) {
    shared.set_new_process(NewProcess::Coming);
    if let Err(error) = serve(socket, &shared).await {
        tracing::debug!(%error, "the new process takes no clients any more");
    }
    shared.apps.borrow().iter().for_each(|app| app.hub.resume());
    shared.set_new_process(NewProcess::None);
}

async fn serve(socket: OwnedFd, shared: &Rc<Shared>) -> io::Result<()> {
    let (mut reader, writer) = wire_over(socket)?;
    let is_late = async {
        shared.handed_over().await;
        sleep(ASKING_TIME).await;
    };
    tokio::select! {
        asked = reader.receive() => match asked? {
            Some(FromNew::Hubs { addresses }) => drop(shared.hubs_elsewhere.replace(addresses)),
            _ => return Ok(()),
        },
        () = is_late => return Ok(()),
    }
    if !shared.is_draining() {
        shared.apps.borrow().iter().for_each(|app| app.hub.pause());
    }
    let estates =
        shared.apps.borrow().iter().map(|app| app.hub.estate(&app.settings().name)).collect::<Vec<_>>();
    give_hubs(&writer, estates).await?;
    let (to, leavers) = mpsc::channel(MOST_LEAVERS);
    shared.set_new_process(NewProcess::Takes(to));
    if timeout(OPENING_TIME, shared.handed_over()).await.is_ok() {
        let (given, ()) =
            tokio::join!(give_clients(&writer, leavers), take_forwarded(reader, &writer, shared));
        given?;
    }
    Ok(())
}

/// Publishes here what the new process publishes, until it sends no more. Each application has its turn for itself: the new process sends
/// no messages of one before it has published the last ones.
async fn take_forwarded(mut reader: WireReader, writer: &WireWriter, shared: &Rc<Shared>) {
    let mut tasks = JoinSet::new();
    while let Ok(Some(received)) = reader.receive().await {
        let FromNew::Messages { app, messages } = received else { continue };
        let found = shared.apps.borrow().named(&app);
        if let Some(found) = found {
            tasks.spawn_local(publish_forwarded(found, messages, writer.clone(), Rc::clone(shared)));
        }
        while tasks.try_join_next().is_some() {} // those that have ended
    }
}

/// Publishes messages of an application, and asks for the next ones.
async fn publish_forwarded(
    app: Rc<AppState>,
    messages: Vec<PassedMessage>,
    writer: WireWriter,
    shared: Rc<Shared>,
) {
    for message in &messages {
        if let Err(error) = app.hub.publish_forwarded(message).await {
            // It asks for no more: a client that misses one message and gets the next would not learn that.
            return tracing::debug!(%error, "clients get no more messages before they connect again");
        }
        shared.turn.step();
    }
    let mut bytes = Vec::new();
    let asked = encode(&FromOld::WantsMessages { app: app.settings().name.clone() }, &mut bytes);
    if asked.is_ok() {
        let _ = writer.send(&bytes, None).await; // the new process may have gone
    }
}

async fn give_hubs(wire: &WireWriter, estates: Vec<Estate>) -> io::Result<()> {
    let mut bytes = Vec::new();
    for message in estates.into_iter().flatten() {
        encode(&message, &mut bytes)?;
        if bytes.len() >= PIECE_BYTES {
            wire.send(&bytes, None).await?;
            bytes.clear();
            yield_now().await;
        }
    }
    encode(&FromOld::HubsEnd { wants_messages: true }, &mut bytes)?;
    wire.send(&bytes, None).await
}

async fn give_clients(wire: &WireWriter, mut leavers: mpsc::Receiver<Leaver>) -> io::Result<()> {
    while let Some(Leaver { cable, socket, sent }) = leavers.recv().await {
        let mut bytes = Vec::new();
        encode(&FromOld::Cable(cable), &mut bytes)?;
        wire.send(&bytes, Some(socket.as_fd())).await?;
        let _ = sent.send(()); // its connection may have been ended meanwhile
    }
    Ok(())
}
