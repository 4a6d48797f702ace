//! The messages between two fronts, as JSON. The processes may be of different versions: a newer one only adds fields that the other
//! can do without, and ignores types that it does not know.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Messages from the new process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromNew {
    /// It takes the hubs now, and then clients. `addresses`: of its hub, for each application by name.
    Hubs {
        #[serde(default)]
        addresses: HashMap<String, String>,
    },
    /// Messages that the application with this name has published, for clients that are still connected to the old process.
    Messages { app: String, messages: Vec<PassedMessage> },
    #[serde(other)]
    Unknown,
}

/// Messages from the old process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromOld {
    /// The hub of the application with this name; what follows is in it. `forgotten` and `dropped`: the largest numbers of messages
    /// that a forgotten stream, and any stream, has dropped. `bus`: where the last message from other machines was.
    Hub {
        app: String,
        forgotten: u64,
        dropped: u64,
        #[serde(default)]
        bus: String,
    },
    /// A stream, and the number of the last message that it has dropped.
    Stream { name: AnyBytes, lost: u64 },
    /// A message of the last stream, and when it was published, in milliseconds of CLOCK_MONOTONIC.
    Message { number: u64, at_ms: u64, event: String, data: String },
    /// That was all of the hubs. `wants_messages`: it publishes what the new process forwards, once that accepts connections.
    HubsEnd {
        #[serde(default)]
        wants_messages: bool,
    },
    /// It has published the last messages that were forwarded of this application.
    WantsMessages { app: String },
    /// A client whose WebSocket is held. Its socket comes with it.
    Cable(Box<PassedCable>),
    #[serde(other)]
    Unknown,
}

/// A message of a stream. `at_ms`: when it was published, in milliseconds of CLOCK_MONOTONIC.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassedMessage {
    pub(crate) stream: AnyBytes,
    pub(crate) number: u64,
    pub(crate) at_ms: u64,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// Bytes that need not be UTF-8: in JSON, each is the character with its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct AnyBytes(pub(crate) Vec<u8>);

impl From<&[u8]> for AnyBytes {
    fn from(bytes: &[u8]) -> AnyBytes {
        AnyBytes(bytes.into())
    }
}

impl From<AnyBytes> for String {
    fn from(bytes: AnyBytes) -> String {
        bytes.0.into_iter().map(char::from).collect()
    }
}

impl TryFrom<String> for AnyBytes {
    type Error = std::char::TryFromCharError;

    fn try_from(text: String) -> Result<AnyBytes, Self::Error> {
        text.chars().map(u8::try_from).collect::<Result<_, _>>().map(AnyBytes)
    }
}

/// A WebSocket of Action Cable, between two frames in both directions, with no question under way.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassedCable {
    /// Name of its application.
    pub(crate) app: String,
    pub(crate) client: PassedClient,
    /// Flags of the request by which it began, and its fields under their Rack env keys.
    pub(crate) flags: u32,
    pub(crate) fields: Vec<(String, AnyBytes)>,
    /// What the application remembers of the client.
    pub(crate) state: String,
    pub(crate) channels: Vec<PassedChannel>,
    /// Whether each message says where it is in its stream.
    #[serde(default)]
    pub(crate) shows_positions: bool,
    /// Streams of messages for the client itself.
    pub(crate) internal: Vec<PassedLine>,
    /// When the next ping is due, in milliseconds of CLOCK_MONOTONIC.
    pub(crate) beat_ms: u64,
    /// Bytes that the client has got.
    pub(crate) sent_bytes: u64,
}

/// A subscription.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassedChannel {
    pub(crate) identifier: Box<str>,
    /// What the application remembers of it.
    pub(crate) state: Box<str>,
    /// What stands before each message of its streams.
    pub(crate) wrap: Box<str>,
    pub(crate) lines: Vec<PassedLine>,
}

/// A position in a stream.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassedLine {
    pub(crate) stream: AnyBytes,
    /// Number of the first message that the client has got, or gets.
    #[serde(default)]
    pub(crate) first: Option<u64>,
    /// Number of the next message.
    pub(crate) next: u64,
    /// Number of the last message that the stream has dropped.
    pub(crate) lost: u64,
}

/// A client, and its request for the access log.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassedClient {
    pub(crate) remote_addr: String,
    pub(crate) server_name: String,
    pub(crate) server_port: u16,
    pub(crate) is_tls: bool,
    pub(crate) is_reported: bool,
    /// The user whose password came with the request.
    pub(crate) user: Option<AnyBytes>,
    pub(crate) request_id: Option<String>,
    /// Method, target, `Referer`, `User-Agent` and host, if the request is logged.
    pub(crate) entry: Option<[Option<AnyBytes>; 5]>,
    /// When the request came, in microseconds of CLOCK_MONOTONIC.
    pub(crate) begun_us: u64,
}

/// A client on its way to the new process.
#[derive(Debug)]
pub(crate) struct Leaver {
    pub(crate) cable: Box<PassedCable>,
    pub(crate) socket: OwnedFd,
    /// Gets a message once it was sent.
    pub(crate) sent: oneshot::Sender<()>,
}

/// The new process, as clients of the old one see it.
#[derive(Debug, Clone, Default)]
pub(crate) enum NewProcess {
    /// There is none that takes clients.
    #[default]
    None,
    /// It may take clients.
    Coming,
    /// It takes clients that are sent here.
    Takes(mpsc::Sender<Leaver>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let bytes = AnyBytes((0..=255).collect());
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(serde_json::from_str::<AnyBytes>(&text).unwrap(), bytes);
        assert!(serde_json::from_str::<AnyBytes>("\"\u{100}\"").is_err());
    }

    #[test]
    fn types_of_newer_versions_are_ignored() {
        let read = |text| serde_json::from_str::<FromOld>(text).unwrap();
        assert_eq!(read(r#"{"type":"rumour","of":[1]}"#), FromOld::Unknown);
        assert_eq!(read(r#"{"type":"hubs_end","more":1}"#), FromOld::HubsEnd { wants_messages: false });
        assert_eq!(serde_json::from_str::<FromNew>(r#"{"type":"rumour"}"#).unwrap(), FromNew::Unknown);
    }
}
