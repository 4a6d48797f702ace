//! A connection that the application has taken over: bytes go to and fro, and mean nothing here.

use std::os::fd::OwnedFd;

use tokio::io::{copy_bidirectional, AsyncWriteExt};
use tokio::net::UnixStream;

use super::Connection;

impl Connection {
    /// Relays between the client and the application's socket until both have ended.
    pub(super) async fn relay(&mut self, socket: OwnedFd) {
        self.counted.hijack();
        self.counted.deadline.set(None);
        if let Err(error) = self.relay_all(socket).await {
            // Either side may leave without saying so; there is nobody to tell.
            tracing::debug!(%error, "a hijacked connection has ended");
        }
    }

    async fn relay_all(&mut self, socket: OwnedFd) -> std::io::Result<()> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let mut application = UnixStream::from_std(socket)?;
        // What the client sent right behind its request.
        application.write_all(&std::mem::take(&mut self.buffer)).await?;
        if self.eof {
            application.shutdown().await?;
        }
        copy_bidirectional(&mut self.stream, &mut application).await?;
        Ok(())
    }
}
