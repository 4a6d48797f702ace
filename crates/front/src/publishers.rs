//! Processes of applications that publish messages: workers, consoles, jobs and scripts. [`listening`] serves processes
//! that receive messages, [`bringing`] processes that bring in what other machines publish.
//!
//! They connect to a Unix socket with a random name, and send the key of their application. The kernel reports the user of the
//! process. On a connection, one order follows the other, and each gets a reply. Numbers are little-endian.
//!
//! | from | what |
//! | --- | --- |
//! | process | once: u32 length, credentials: the address after its first slash |
//! | process | to publish: u8 0, u32 lengths of stream, event and data, then these |
//! | process | to listen: u8 1, u32 lengths of a prefix of names and of the id of its last message, 0, then these |
//! | process | to bring in what other machines publish: u8 2, three u32 0; when it is done, messages as above, with the place on the bus as the event; without stream and data, the place alone |
//! | front | u8 code (0: done, 1: refused, 2: another server takes it, at the address in the text, 3: another process does it, and this one is next; again for each place that it brings in without a message), u16 length, text: the id of the message, the id before the first message to come, the place on the bus up to which messages were brought in (for 3: the last one without a message), or the reason |
//! | front | to a process that listens, for each message: u32 lengths of stream and text, then these; the text is an event's |
//!
//! Once another server accepts connections, this one takes no messages any more: it says so on each connection, in the place of the next
//! reply, with the address of the application's hub there, and closes it. It does so until it ends.
//!
//! A process waits for the reply while its application is too far ahead of the subscribers.

mod bringing;
mod listening;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdUnixListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highball_link::{HubAddress, HUB_SECRET_BYTES};
use rustix::net::{shutdown, Shutdown};
use rustix::process::geteuid;
use rustix::rand::{getrandom, GetRandomFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::budget::{Account, Permit};
use crate::clock::Seldom;
use crate::hub::{Draft, Unpublishable};
use crate::route::app_state::AppState;
use crate::shared::{Leaving, Shared};

/// Kinds of orders.
const PUBLISH: u8 = 0;
const LISTEN: u8 = 1;
const BRING: u8 = 2;

/// Codes of replies.
const DONE: u8 = 0;
const REFUSED: u8 = 1;
const ELSEWHERE: u8 = 2;
const STAND_BY: u8 = 3;

/// Largest number of connections of a user's processes.
const MOST_OF_USER: usize = 1024;

/// Longest credentials, in bytes.
const CREDENTIALS_BYTES: u32 = 64;

/// Largest refused message that is read to its end, in bytes. A larger one ends the connection.
const REFUSED_BYTES: u64 = 64 << 20;

/// Longest name that is read, in bytes.
const NAME_BYTES: u32 = 1024;

/// Time for the credentials to arrive.
const CREDENTIALS_TIME: Duration = Duration::from_secs(2);
/// Time for a message to arrive, from the end of its lengths.
const MESSAGE_TIME: Duration = Duration::from_secs(10);
/// Time for a process to take the reply.
const REPLY_TIME: Duration = Duration::from_secs(10);

/// Time for the last replies, when the front ends: it has a second in all.
const LAST_TIME: Duration = Duration::from_millis(250);

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Shortest time between two log lines about failed connections, in ms.
const LOG_MS: u64 = 60_000;

/// The socket for processes that publish.
#[derive(Debug)]
pub struct PublishersSocket {
    listener: StdUnixListener,
    pub(crate) address: Arc<HubAddress>,
}

impl PublishersSocket {
    /// Listens on an abstract socket. It needs no folder, so it works in read-only containers and for applications of other users.
    ///
    /// # Errors
    /// The system has no random numbers, or no room for the socket.
    pub fn bind() -> io::Result<PublishersSocket> {
        let mut random = [0; HUB_SECRET_BYTES + 16];
        if getrandom(&mut random, GetRandomFlags::empty())? < random.len() {
            return Err(io::ErrorKind::UnexpectedEof.into()); // random(4): not for so few bytes
        }
        let (name, secret) = random.split_at(16);
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("highball-hub-{name}");
        let listener = StdUnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        let mut key = [0; HUB_SECRET_BYTES];
        key.copy_from_slice(secret);
        Ok(PublishersSocket { listener, address: Arc::new(HubAddress::new(name, key)) })
    }

    /// Returns the address and the keys.
    pub fn address(&self) -> &Arc<HubAddress> {
        &self.address
    }

    /// Accepts and serves connections until the front `ends`.
    ///
    /// # Errors
    /// The event loop has no room for the socket.
    pub(crate) fn accept_all(
        self,
        shared: Rc<Shared>,
        ends: Rc<Notify>,
    ) -> io::Result<impl Future<Output = ()>> {
        let listener = UnixListener::from_std(self.listener)?;
        Ok(accept_all(listener, shared, ends))
    }
}

async fn accept_all(listener: UnixListener, shared: Rc<Shared>, ends: Rc<Notify>) {
    let (mut served, places) = (JoinSet::new(), Rc::<Places>::default());
    let logged = Seldom::new();
    loop {
        while served.try_join_next().is_some() {} // those that have left
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted.map(|(stream, _)| stream),
            () = ends.notified() => break,
        };
        match accepted.and_then(|stream| Ok((stream.peer_cred()?.uid(), stream))) {
            Ok((user, stream)) => begin(stream, user, &places, &shared, &mut served),
            Err(error) => {
                if logged.is_due(LOG_MS) {
                    tracing::error!(
                        name: "publisher_not_accepted",
                        %error, "a process that publishes messages could not connect; trying again every {ACCEPT_PAUSE:?}. If there are too many open files, raise the limit (ulimit -n)"
                    );
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    if shared.leaving() == Leaving::HandedOver {
        if let Err(error) = accept_last(listener, &places, &shared, &mut served) {
            tracing::debug!(%error, "processes that were about to connect may not learn that another server takes their messages");
        }
        let replies = async { while served.join_next().await.is_some() {} };
        let _ = timeout(LAST_TIME, replies).await; // a process that gets none finds the server by its control socket
    }
}

/// Ends the socket. Processes that have connected, and were not accepted yet, learn that another server takes their messages.
fn accept_last(
    listener: UnixListener,
    places: &Rc<Places>,
    shared: &Rc<Shared>,
    served: &mut JoinSet<()>,
) -> io::Result<()> {
    let listener = listener.into_std()?;
    // Now the kernel refuses connections. Without this, one could come between the last that is accepted and the end.
    shutdown(&listener, Shutdown::Read)?;
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        let user = stream.peer_cred()?.uid();
        begin(stream, user, places, shared, served);
    }
    Ok(())
}

/// Begins to serve a process of this user, if it may connect.
fn begin(stream: UnixStream, user: u32, places: &Rc<Places>, shared: &Rc<Shared>, served: &mut JoinSet<()>) {
    if let Some(place) = Places::take(places, user).filter(|_| is_known(user, shared)) {
        served.spawn_local(serve(stream, place, Rc::clone(shared)));
    }
}

/// Returns whether processes of this user may connect.
fn is_known(user: u32, shared: &Shared) -> bool {
    is_trusted(user) || shared.apps.borrow().iter().any(|app| is_of(user, app))
}

/// Returns whether this user may publish for any application whose key it has.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Returns whether the application runs as this user.
fn is_of(user: u32, app: &AppState) -> bool {
    app.settings().runs_as.another().is_some_and(|other| other.uid == user)
}

/// Number of connections, by user.
#[derive(Debug, Default)]
struct Places(RefCell<HashMap<u32, usize>>);

/// A counted connection of a user. Dropping it ends the count.
struct Place {
    places: Rc<Places>,
    user: u32,
}

impl Places {
    fn take(places: &Rc<Places>, user: u32) -> Option<Place> {
        let mut counts = places.0.borrow_mut();
        let count = counts.entry(user).or_default();
        *count += 1;
        (*count <= MOST_OF_USER).then(|| Place { places: Rc::clone(places), user }).or_else(|| {
            *count -= 1;
            None
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.0.borrow_mut();
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.user);
            }
        }
    }
}

/// Why a message is not published.
enum Refused {
    /// The process may send the next message.
    This(String),
    /// The connection ends with this reply.
    All(String),
    /// Another server has taken over.
    Elsewhere,
}

impl From<Unpublishable> for Refused {
    fn from(why: Unpublishable) -> Refused {
        Refused::This(why.to_string())
    }
}

/// Whose messages a process publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brings {
    /// Its own.
    Own,
    /// Messages of other machines. In the place of the event is where they were on the bus.
    Bus,
}

/// Serves a process. Logs nothing about processes that leave, are slow or break the protocol: they get an error themselves.
async fn serve(mut stream: UnixStream, place: Place, shared: Rc<Shared>) {
    let introduced = timeout(CREDENTIALS_TIME, introduced(&mut stream, place.user, &shared)).await;
    let Ok(Ok(introduced)) = introduced else { return };
    let Some(app) = introduced else {
        let replied = reply(&mut stream, REFUSED, "no application that is served here has this key").await;
        if replied.is_ok() {
            // Closing with unread data resets the connection, and the process would lose the reply.
            let _ = timeout(CREDENTIALS_TIME, discard(&mut stream, REFUSED_BYTES)).await;
        }
        return;
    };
    match orders(&mut stream, &app, &shared, Brings::Own).await {
        Some(LISTEN) => listen(stream, &app, &shared).await,
        Some(BRING) => drop(bringing::serve(stream, &app, &shared).await), // as above
        _ => {}
    }
}

/// Serves orders to publish. Returns the kind of another order; `None`: the process has left, or is to leave.
async fn orders(stream: &mut UnixStream, app: &AppState, shared: &Shared, brings: Brings) -> Option<u8> {
    loop {
        tokio::select! {
            biased;
            () = shared.handed_over() => {
                // An order that comes now is not read: this is its reply.
                let _ = reply(stream, ELSEWHERE, &elsewhere(app, shared)).await;
                return None;
            }
            _ = stream.readable() => {}
        }
        let kind = stream.read_u8().await.ok()?;
        if kind != PUBLISH {
            return Some(kind);
        }
        let (code, text, goes_on) = match publish_next(stream, app, shared, brings).await.ok()? {
            Ok(id) => (DONE, id, true),
            Err(Refused::This(why)) => (REFUSED, why, true),
            Err(Refused::All(why)) => (REFUSED, why, false),
            Err(Refused::Elsewhere) => (ELSEWHERE, elsewhere(app, shared), false),
        };
        if reply(stream, code, &text).await.is_err() || !goes_on {
            return None;
        }
    }
}

/// Returns the address of the application's hub in the process that has taken over; empty: it is not known.
fn elsewhere(app: &AppState, shared: &Shared) -> String {
    shared.hubs_elsewhere.borrow().get(&app.settings().name).cloned().unwrap_or_default()
}

/// Serves a process that receives messages.
async fn listen(mut stream: UnixStream, app: &AppState, shared: &Shared) {
    let asked = timeout(MESSAGE_TIME, asked_for(&mut stream)).await;
    let Ok(Ok((prefix, last_event_id))) = asked else { return };
    match app.hub.listen(&prefix, &last_event_id) {
        Ok(listener) => {
            if reply(&mut stream, DONE, &listener.position().to_string()).await.is_ok() {
                listening::serve(stream, listener, app, shared).await;
            }
        }
        Err(why) => drop(reply(&mut stream, REFUSED, &why.to_string()).await), // the connection ends in any case
    }
}

/// Reads what the process listens to: a prefix of names, and the id of its last message.
async fn asked_for(stream: &mut UnixStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let lengths = [stream.read_u32_le().await?, stream.read_u32_le().await?, stream.read_u32_le().await?];
    if lengths[2] > 0 || lengths.iter().any(|length| *length > NAME_BYTES) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let [mut prefix, mut id] = [lengths[0], lengths[1]].map(|length| vec![0; length as usize]);
    stream.read_exact(&mut prefix).await?;
    stream.read_exact(&mut id).await?;
    Ok((prefix, id))
}

/// Reads the credentials. Returns the application whose key they have.
async fn introduced(stream: &mut UnixStream, user: u32, shared: &Shared) -> io::Result<Option<Rc<AppState>>> {
    let length = stream.read_u32_le().await?;
    if length > CREDENTIALS_BYTES {
        return Ok(None);
    }
    let mut credentials = vec![0; length as usize];
    stream.read_exact(&mut credentials).await?;
    let app = std::str::from_utf8(&credentials).ok().and_then(|text| shared.hub_address.app_with(text));
    let app = app.and_then(|id| shared.apps.borrow().get(id));
    Ok(app.filter(|app| is_trusted(user) || is_of(user, app)))
}

/// Publishes the next message. Returns its id, or why it is refused.
///
/// # Errors
/// The process has left, or takes too long.
async fn publish_next(
    stream: &mut UnixStream,
    app: &AppState,
    shared: &Shared,
    brings: Brings,
) -> io::Result<Result<String, Refused>> {
    let (name, event, data) =
        (stream.read_u32_le().await?, stream.read_u32_le().await?, stream.read_u32_le().await?);
    let bytes = u64::from(name) + u64::from(event) + u64::from(data);
    let held = Permit::new(Account::new(&app.buffers, None));
    let refused = refusal((name, event, data), app).err();
    let refused = refused.or_else(|| {
        held.grow(bytes).err().map(|_| {
            Refused::This("there is no memory for the message at the moment; max_buffers allows more".into())
        })
    });
    if let Some(refused) = refused {
        if matches!(refused, Refused::This(_)) {
            timeout(MESSAGE_TIME, discard(stream, bytes)).await??;
        }
        return Ok(Err(refused));
    }
    let mut text = vec![0; bytes as usize];
    timeout(MESSAGE_TIME, stream.read_exact(&mut text)).await??;
    let (name, rest) = text.split_at(name as usize);
    let (event, data) = rest.split_at(event as usize);
    app.hub.room().await;
    if shared.leaving() == Leaving::HandedOver {
        return Ok(Err(Refused::Elsewhere)); // subscribers may have left
    }
    shared.turn.step();
    Ok(match brings {
        Brings::Own => published(app, &Draft { stream: name, event, data }),
        Brings::Bus => {
            // What is refused once is refused again: the next process does not begin with it.
            let position = String::from_utf8_lossy(event);
            if name.is_empty() && data.is_empty() {
                app.hub.bus.set_mark(&position);
                return Ok(Ok(String::new()));
            }
            app.hub.bus.set_position(&position);
            published(app, &Draft { stream: name, event: b"", data })
        }
    })
}

fn published(app: &AppState, draft: &Draft<'_>) -> Result<String, Refused> {
    app.hub.publish(draft).map(|id| id.to_string()).map_err(Refused::from)
}

/// Checks the lengths of a message before it is read.
///
/// # Errors
/// The message will be refused.
fn refusal((name, event, data): (u32, u32, u32), app: &AppState) -> Result<(), Refused> {
    let (bytes, most_bytes) = (u64::from(data), app.hub.limits().message_bytes);
    let why = if bytes > most_bytes {
        Unpublishable::TooLarge { bytes, most_bytes }
    } else if name > NAME_BYTES {
        Unpublishable::StreamName
    } else if event > NAME_BYTES {
        Unpublishable::EventName
    } else {
        return Ok(());
    };
    let all = u64::from(name) + u64::from(event) + bytes;
    Err(if all > REFUSED_BYTES { Refused::All(why.to_string()) } else { why.into() })
}

/// Reads and drops this number of bytes.
async fn discard(stream: &mut UnixStream, bytes: u64) -> io::Result<()> {
    let mut rest = stream.take(bytes);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}

async fn reply(stream: &mut UnixStream, code: u8, text: &str) -> io::Result<()> {
    let length = u16::try_from(text.len()).unwrap_or_default().to_le_bytes();
    let bytes = [&[code], &length[..], text.as_bytes()].concat();
    timeout(REPLY_TIME, stream.write_all(&bytes)).await?
}
