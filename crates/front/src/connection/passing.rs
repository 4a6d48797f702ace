//! A connection whose WebSocket is held, on its way from one server process to the next, in a hot restart. The client does not notice.

use std::io;
use std::mem::take;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use highball_config::BindProtocol;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::cable::ACCEPTED;
use super::{Client, Connection};
use crate::access_log::Entry;
use crate::budget::Permit;
use crate::cable::Cable;
use crate::message::request_id::RequestId;
use crate::protocol::Protocol;
use crate::request::transaction::{Leave, Phase};
use crate::route::app_state::{AppState, Visit};
use crate::shared::{Counted, Leaving, Shared};
use crate::succession::message::{AnyBytes, Leaver, NewProcess, PassedCable, PassedClient};
use crate::transport::stream::{Peer, Stream};

/// The version of a request with a WebSocket that can be passed on, for the access log.
const VERSION: &str = "HTTP/1.1";

impl Connection {
    /// Whether another process could go on with the socket: the state of TLS stays where it is, and a stream shares its socket.
    pub(super) fn can_be_passed(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_) | Stream::Unix(_)) && matches!(self.protocol, Protocol::Http1(_))
    }

    /// Whether another process takes the WebSocket now. Everything was sent.
    pub(super) fn is_to_be_passed(&self, cable: &Cable) -> bool {
        self.shared.leaving() == Leaving::HandedOver
            && self.buffer.is_empty()
            && cable.may_be_passed()
            && self.can_be_passed()
            && matches!(*self.shared.new_process.borrow(), NewProcess::Takes(_))
    }

    /// Gives the WebSocket to the new process. If that does not take it, the connection ends, and its client connects again.
    pub(super) async fn pass_on(mut self: Box<Self>, cable: Box<Cable>) {
        if self.is_passed(&cable).await {
            self.request.end_trace_here(ACCEPTED, &self.client.peer, &self.shared);
            self.request.leave_app(Leave::MayFinish, &self.shared);
        } else {
            self.leave_cable(cable).await;
        }
    }

    async fn is_passed(&mut self, cable: &Cable) -> bool {
        let app = self.request.visit.as_ref().map(|visit| Rc::clone(&**visit));
        let new_process = self.shared.new_process.borrow().clone();
        let (Some(app), NewProcess::Takes(to)) = (app, new_process) else { return false };
        // Only then: the process may not have two descriptors for each client.
        let Ok(place) = to.reserve().await else { return false };
        let Ok(socket) = self.stream.duplicate() else { return false };
        let (sent, is_sent) = oneshot::channel();
        let cable = cable.pass(&app, self.passed_client());
        place.send(Leaver { cable, socket, sent });
        is_sent.await.is_ok()
    }

    fn passed_client(&mut self) -> PassedClient {
        let entry = match take(&mut self.request.phase) {
            Phase::Open { entry } => entry,
            Phase::Reading | Phase::Recorded => None,
        };
        let peer = &self.client.peer;
        PassedClient {
            remote_addr: peer.remote_addr.clone(),
            server_name: peer.server_name.clone(),
            server_port: peer.server_port,
            is_tls: peer.is_tls,
            is_reported: peer.is_reported,
            user: self.request.user.as_deref().map(AnyBytes::from),
            request_id: self.request.request_id.as_ref().map(|id| id.as_str().into()),
            begun_us: entry.as_ref().map_or(0, |entry| entry.begun_us),
            entry: entry.map(|entry| entry.texts().map(|text| text.map(AnyBytes::from))),
        }
    }
}

/// Goes on with a WebSocket of the process before.
///
/// # Errors
/// It ends: its application is not served here, or there is no room for it.
pub(crate) fn serve_passed(passed: &PassedCable, socket: OwnedFd, shared: &Rc<Shared>) -> io::Result<()> {
    let app = shared.apps.borrow().named(&passed.app);
    let app = app.filter(|app| !app.is_leaving()).ok_or(io::ErrorKind::NotFound)?;
    let stream = Stream::over(socket)?;
    let counted = Counted::new(Rc::clone(shared));
    let client = Client::new(peer_of(&passed.client), None);
    let protocol = Protocol::of(BindProtocol::Http);
    let mut connection = Connection::new(stream, client, protocol, Rc::clone(shared), counted);
    connection.begin_passed(&passed.client, &app);
    let held = Permit::new(connection.client.buffers(&app.buffers));
    let cable = Cable::go_on_from(passed, &app, held).map_err(|_| io::ErrorKind::OutOfMemory)?;
    spawn_local(connection.serve_held_cable(cable));
    Ok(())
}

impl Connection {
    fn begin_passed(&mut self, passed: &PassedClient, app: &Rc<AppState>) {
        let entry = passed.entry.as_ref().map(|texts| {
            let texts = std::array::from_fn(|index| texts[index].as_ref().map(|AnyBytes(text)| &**text));
            Entry::new(texts, VERSION, passed.begun_us)
        });
        let request = &mut self.request;
        request.phase = Phase::Open { entry };
        request.visit = Some(Visit::new(Rc::clone(app)));
        request.user = passed.user.as_ref().map(|AnyBytes(user)| Rc::from(&**user));
        request.request_id =
            passed.request_id.as_ref().and_then(|id| RequestId::kept([id.as_bytes()].into_iter()));
    }
}

fn peer_of(passed: &PassedClient) -> Peer {
    Peer {
        remote_addr: passed.remote_addr.clone(),
        server_name: passed.server_name.clone(),
        server_port: passed.server_port,
        is_tls: passed.is_tls,
        is_reported: passed.is_reported,
        is_plain_http_on_tls_port: false,
        proof: None,
    }
}
