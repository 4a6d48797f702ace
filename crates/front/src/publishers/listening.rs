//! Processes that receive messages, because their clients are connected to them: workers with Action Cable's WebSockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::budget::{Account, Permit};
use crate::hub::Listener;
use crate::route::app_state::AppState;
use crate::shared::{Leaving, Shared};

/// Bytes of messages to write at a time. (One message may be larger.)
const PIECE_BYTES: usize = 16 * 1024;

/// Writes messages until the process leaves or the server stops taking messages. A process that is disconnected earlier
/// reconnects and continues after its last message.
pub(super) async fn serve(mut stream: UnixStream, mut listener: Listener, app: &AppState, shared: &Shared) {
    let (mut reader, mut writer) = stream.split();
    let mut nothing = [0];
    let held = Permit::new(Account::new(&app.buffers, None));
    loop {
        shared.turn.step();
        let mut frames = Vec::new();
        listener.take(PIECE_BYTES, |name, text| {
            frames.extend_from_slice(&(name.len() as u32).to_le_bytes());
            frames.extend_from_slice(&(text.len() as u32).to_le_bytes());
            frames.extend_from_slice(name);
            frames.extend_from_slice(text);
        });
        if listener.may_have_missed {
            app.hub.note_missed(&app.settings().name);
            listener.may_have_missed = false;
        }
        if !frames.is_empty() {
            if held.grow(frames.len() as u64).is_err() {
                return;
            }
            tokio::select! {
                written = writer.write_all(&frames) => if written.is_err() { return },
                _ = reader.read(&mut nothing) => return, // it has left: it has nothing to say
            }
            held.set(0);
        } else if listener.has_all() {
            if listener.is_over() || shared.leaving() == Leaving::HandedOver {
                return; // another server gets what comes
            }
            tokio::select! {
                () = listener.news() => {}
                () = shared.handed_over() => {}
                _ = reader.read(&mut nothing) => return,
            }
        }
        // Others get their turn between two pieces.
        tokio::task::yield_now().await;
    }
}
