//! What a worker answers about a WebSocket. The text comes from a process that is not trusted.

use serde::Deserialize;

/// The answer makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("a worker's answer about a WebSocket of Action Cable cannot be read: {0}")]
pub(crate) struct Unreadable(#[from] serde_json::Error);

/// What a WebSocket does next.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What the application remembers of the client; `None`: the same as before.
    #[serde(default)]
    pub(super) state: Option<Box<str>>,
    /// Whether the client is to know where each message is in its stream. (It has connected now.)
    #[serde(default)]
    pub(super) shows_positions: bool,
    /// Texts for the client, in their order.
    #[serde(default)]
    pub(super) transmit: Vec<String>,
    /// Streams of messages for the client itself.
    #[serde(default)]
    pub(super) internal: Option<Vec<String>>,
    /// Channels that are new, or have changed.
    #[serde(default)]
    pub(super) channels: Vec<ChannelNow>,
    /// Identifiers of channels that are not subscribed to any more.
    #[serde(default)]
    pub(super) gone: Vec<Box<str>>,
    /// The application closes the WebSocket.
    #[serde(default)]
    pub(super) close: bool,
    /// The client has to connect again: what was remembered makes no sense to this version of the application.
    #[serde(default)]
    pub(super) restart: bool,
    /// What the application needs that cannot be held.
    #[serde(default)]
    pub(super) unsupported: Option<String>,
}

/// A channel from now on.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(super) struct ChannelNow {
    pub(super) identifier: Box<str>,
    /// What the application remembers of it.
    pub(super) state: Box<str>,
    /// What stands before each message of its streams.
    pub(super) wrap: Box<str>,
    /// Names of its streams.
    pub(super) streams: Vec<String>,
}

impl Outcome {
    /// # Errors
    /// The answer makes no sense.
    pub(super) fn read(text: &[u8]) -> Result<Outcome, Unreadable> {
        Ok(serde_json::from_slice(text)?)
    }

    /// Whether it names more channels or streams than a client may have. (What it names is compared with what there is.)
    pub(super) fn is_beyond(&self, most: usize) -> bool {
        let streams = self.channels.iter().map(|channel| channel.streams.len()).sum::<usize>();
        let internal = self.internal.as_ref().map_or(0, Vec::len);
        [self.channels.len(), self.gone.len(), streams, internal].iter().any(|count| *count > most)
    }
}
