//! Processes that bring in what other machines publish, one at a time.

use std::io;
use std::pin::pin;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{orders, reply, Brings, DONE, MESSAGE_TIME, STAND_BY};
use crate::hub::BusTurn;
use crate::route::app_state::AppState;
use crate::shared::Shared;

/// Serves a process from its order to bring messages in on.
///
/// # Errors
/// The process has left, or takes too long.
pub(super) async fn serve(mut stream: UnixStream, app: &AppState, shared: &Shared) -> io::Result<()> {
    timeout(MESSAGE_TIME, stream.read_exact(&mut [0; 12])).await??;
    let Some(_turn) = turn(&mut stream, app, shared).await? else { return Ok(()) };
    reply(&mut stream, DONE, &app.hub.bus.position()).await?;
    orders(&mut stream, app, shared, Brings::Bus).await;
    Ok(())
}

/// Waits for the turn of this process. `None`: it has left, or another server takes over.
async fn turn(stream: &mut UnixStream, app: &AppState, shared: &Shared) -> io::Result<Option<BusTurn>> {
    // Before this server has taken over from another one, that one's processes bring messages in.
    if *shared.open.borrow() {
        if let Some(turn) = app.hub.bus.free_turn() {
            return Ok(Some(turn));
        }
    }
    let (mut marks, mut open) = (app.hub.bus.marks(), shared.open.subscribe());
    let turn = async {
        let _ = open.wait_for(|is_open| *is_open).await; // its sender is `shared`
        app.hub.bus.turn().await
    };
    let mut turn = pin!(turn);
    loop {
        let mark = marks.borrow_and_update().clone();
        reply(stream, STAND_BY, &mark).await?;
        tokio::select! {
            turn = &mut turn => return Ok(Some(turn)),
            _ = marks.changed() => {} // its sender is the hub
            _ = stream.read_u8() => return Ok(None),
            () = shared.handed_over() => return Ok(None),
        }
    }
}
