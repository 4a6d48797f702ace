//! What clients of AnyCable's extended protocol (`actioncable-v1-ext-json`) say beyond Action Cable's: that they are there, and which
//! messages they have, in a command or when they subscribe. They get what they have missed, which takes no worker.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::{notice, Asked, Cable};
use crate::clock::{now_ms, since_1970};
use crate::hub::{EventId, Missed};
use crate::message::web_socket_frames as frames;

/// The part of a command that the front may answer.
#[derive(Deserialize)]
pub(super) struct Extended<'a> {
    #[serde(borrow)]
    command: Cow<'a, str>,
    #[serde(default, borrow)]
    identifier: Cow<'a, str>,
    #[serde(default)]
    history: Value,
}

/// What a client has.
#[derive(Deserialize)]
struct History {
    /// Since when it may have missed messages of other streams, in seconds since 1970. Zero, null, `false`: it wants none.
    #[serde(default)]
    since: Value,
    /// Its last message of each stream.
    #[serde(default)]
    streams: HashMap<String, Position>,
}

#[derive(Deserialize)]
struct Position {
    epoch: String,
    offset: u64,
}

impl Cable {
    /// Returns a command of such a client.
    pub(super) fn extended<'a>(&self, asked: &'a Asked) -> Option<Extended<'a>> {
        match asked {
            Asked::Command(text) if self.feed.shows_positions() => serde_json::from_str(text).ok(),
            _ => None,
        }
    }

    /// Answers the client, if that takes no worker. Returns whether it is so.
    pub(super) fn answer_here(&mut self, command: &Extended<'_>) -> bool {
        match &*command.command {
            "pong" => {}
            "history" => self.replay(command),
            _ => return false,
        }
        true
    }

    /// Whether a command subscribes to another channel, and says which messages the client has.
    pub(super) fn may_begin_with_history(&self, command: &Extended<'_>) -> bool {
        command.command == "subscribe" && !command.history.is_null() && !self.has(&command.identifier)
    }

    /// The subscription that a worker was asked for begins with what the client has missed.
    pub(super) fn begin_with_history(&mut self) {
        let Some(text) = self.subscribing.take() else { return };
        if let Ok(command) = serde_json::from_str::<Extended<'_>>(&text) {
            if self.has(&command.identifier) {
                self.replay(&command);
            }
        }
    }

    fn has(&self, identifier: &str) -> bool {
        self.channels.iter().any(|channel| &*channel.identifier == identifier)
    }

    /// Sends what the client has missed of this channel, and then whether that is all.
    fn replay(&mut self, command: &Extended<'_>) {
        let channel = self.channels.iter().find(|channel| *channel.identifier == *command.identifier);
        let is_whole = match (channel, missed(&command.history)) {
            (Some(channel), Some(missed)) => self.feed.replay(&channel.wrap, &missed),
            _ => false,
        };
        let kind = if is_whole { "confirm_history" } else { "reject_history" };
        self.feed.add_behind_replay(&frames::text(&notice(&command.identifier, kind)));
    }
}

/// Returns `None` if it makes no sense.
fn missed(history: &Value) -> Option<Missed> {
    let History { since, streams } = history.is_object().then(|| History::deserialize(history).ok())??;
    let after = streams.into_iter().map(|(stream, at)| (stream, EventId::of(&at.epoch, at.offset)));
    let since_ms = match since {
        Value::Null | Value::Bool(_) => None,
        seconds => Some(seconds.as_u64()?).filter(|seconds| *seconds > 0).map(ms_of),
    };
    Some(Missed { after: after.collect(), since_ms })
}

/// The same time on the clock of messages, in milliseconds.
fn ms_of(unix_seconds: u64) -> u64 {
    let unix_ms = since_1970().as_millis() as u64;
    now_ms().saturating_sub(unix_ms.saturating_sub(unix_seconds.saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(history: &str) -> Option<Missed> {
        missed(&serde_json::from_str(history).unwrap())
    }

    #[test]
    fn a_client_names_its_last_messages_or_a_time() {
        let read =
            of(r#"{"streams":{"a":{"offset":7,"epoch":"000000000000feed"},"b":{"epoch":"x","offset":1}}}"#)
                .unwrap();
        assert_eq!(read.after["a"], Some(EventId { epoch: 0xfeed, number: 7 }));
        assert_eq!(read.after["b"], None, "it is of another server");
        assert_eq!(read.since_ms, None);
        for nothing in ["{}", r#"{"since":0}"#, r#"{"since":false,"streams":{}}"#] {
            assert_eq!(of(nothing), Some(Missed::default()), "{nothing}");
        }
    }

    #[test]
    fn a_time_is_one_of_the_clock_of_messages() {
        let unix_seconds = since_1970().as_secs();
        let ago = |seconds| {
            now_ms() - of(&format!(r#"{{"since":{}}}"#, unix_seconds - seconds)).unwrap().since_ms.unwrap()
        };
        assert!((10_000..12_000).contains(&ago(10)), "{}", ago(10));
        assert_eq!(of(r#"{"since":1}"#).unwrap().since_ms, Some(0), "the machine was not there");
        let future = of(&format!(r#"{{"since":{}}}"#, u64::MAX)).unwrap().since_ms.unwrap();
        assert!(future <= now_ms());
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        for bad in [
            "null",
            "[]",
            "1",
            r#"{"since":-1}"#,
            r#"{"since":"1"}"#,
            r#"{"since":1.5}"#,
            r#"{"streams":[]}"#,
            r#"{"streams":{"a":1}}"#,
            r#"{"streams":{"a":{"offset":-1,"epoch":""}}}"#,
            r#"{"streams":{"a":{"offset":1}}}"#,
            r#"{"streams":{"a":{"offset":1e30,"epoch":""}}}"#,
            r#"{"streams":null}"#,
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
