//! WebSockets of Action Cable that the front holds. It speaks the client's protocol (`actioncable-v1-json`, or AnyCable's extension of
//! it), and asks any worker of the application by a request about everything that only the application can know: whether a client
//! may connect, each command, and the end. What the application remembers of a client goes back and forth with these requests. So no
//! worker has a client.
//!
//! In reading order: this file (a WebSocket: what is known of it, and what happens to it in which order); [`question`] (what a worker
//! is asked), [`outcome`] (what it answers), [`history`] (what a client may have missed), and [`passing`] (what goes to another
//! process in a hot restart).
//!
//! Whatever the worker is asked about a WebSocket is asked one by one, and the client is read again once the answer has come. What
//! that says is done at once: its texts are sent, and then streams begin, from what was published since the question.

mod history;
mod outcome;
mod passing;
mod question;

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Deserialize;

use crate::budget::Permit;
use crate::clock::{now_ms, since_1970};
use crate::hub::{Fed, Feed, Hub, Unsubscribable};
use crate::message::refusal::Refusal;
use crate::message::web_socket_frames::{self as frames, Broken, ClientFrames, Heard};
use crate::route::app_state::AppState;
use crate::shared::Shared;

pub(crate) use outcome::Unreadable;
use outcome::{ChannelNow, Outcome};
use question::{Known, Lost, Question, Running};

/// How often a client gets a ping, as Action Cable has it, in ms.
const BEAT_MS: u64 = 3000;

/// How long a question waits for workers that take it, and when it is tried again, in ms.
const PATIENCE_MS: u64 = 30_000;
const PAUSE_MS: u64 = 250;

/// Most questions that wait. Further messages for a worker stay in their streams.
const MOST_WAITING: usize = 4;

/// The time for the application to learn of the end.
const FAREWELL_TIME: Duration = Duration::from_secs(30);

/// Action Cable's words to a client that is to connect again.
const RESTART: &str = r#"{"type":"disconnect","reason":"server_restart","reconnect":true}"#;

/// Memory of a WebSocket beside its texts, in bytes.
const CABLE_BYTES: usize = 1024;
/// The same of a channel.
const CHANNEL_BYTES: usize = 128;
/// What a WebSocket may have where memory is full, in bytes.
const FREE_BYTES: usize = 16 * 1024;

/// A WebSocket.
#[derive(Debug)]
pub(crate) struct Cable {
    /// The request by which it began, as workers get it.
    head: Box<[u8]>,
    /// The generation that has answered last: no older one is asked.
    generation: u32,
    /// What the application remembers of the client.
    state: Box<str>,
    channels: Vec<Channel>,
    /// What stands before messages to the client itself, as opposed to its channels: nothing.
    internal: Rc<str>,
    feed: Feed,
    frames: ClientFrames,
    waiting: VecDeque<Waiting>,
    running: Option<Running>,
    /// The command that is under way, if it subscribes and says what the client may have missed.
    subscribing: Option<String>,
    /// When the next ping is due, in milliseconds.
    beat_ms: u64,
    /// Whether what it ends with has been written.
    is_closed: bool,
    held: Permit,
    /// Bytes that the client has got.
    pub(crate) sent_bytes: u64,
}

/// A subscription.
#[derive(Debug)]
struct Channel {
    identifier: Box<str>,
    /// What the application remembers of it.
    state: Box<str>,
    /// What stands before each message of its streams.
    wrap: Rc<str>,
}

/// A question that has not been asked yet.
#[derive(Debug)]
struct Waiting {
    asked: Asked,
    /// When it was first tried, and when it is tried again, in milliseconds.
    since_ms: Option<u64>,
    again_ms: u64,
}

/// What a worker is to be asked.
#[derive(Debug)]
enum Asked {
    /// The client sends this.
    Command(String),
    /// This was published for the client itself: to disconnect it.
    Internal(String),
}

/// What comes next.
pub(crate) enum Next {
    /// This was written, and is to be sent.
    Sent,
    /// Nothing, until something happens or this time comes, in milliseconds.
    Nothing { until_ms: u64 },
    /// The client is to be read.
    Read { until_ms: u64 },
    /// It ends with what was written.
    End,
    /// The client is too slow.
    TooSlow,
}

/// The part of a command that the front has to know.
#[derive(Deserialize)]
struct Command<'a> {
    #[serde(borrow)]
    command: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    identifier: std::borrow::Cow<'a, str>,
}

impl Cable {
    /// A WebSocket that a worker has accepted with this answer to the request with this head; what it published after that number of
    /// the hub is the client's. What it gets first is written to `out`.
    ///
    /// # Errors
    /// The answer makes no sense.
    pub(crate) fn begin(
        (answer, after): (&[u8], u64),
        head: Box<[u8]>,
        generation: u32,
        app: &AppState,
        held: Permit,
        out: &mut Vec<u8>,
    ) -> Result<Box<Cable>, Unreadable> {
        let outcome = Outcome::read(answer)?;
        let mut cable = Cable::new(head, generation, app, held);
        if outcome.shows_positions {
            cable.feed.show_positions();
        }
        cable.apply(outcome, after, app, out);
        cable.count(out);
        Ok(cable)
    }

    /// A WebSocket that nothing has happened to.
    fn new(head: Box<[u8]>, generation: u32, app: &AppState, held: Permit) -> Box<Cable> {
        Box::new(Cable {
            head,
            generation,
            state: "".into(),
            channels: Vec::new(),
            internal: "".into(),
            feed: app.hub.feed(),
            frames: ClientFrames::default(),
            waiting: VecDeque::new(),
            running: None,
            subscribing: None,
            beat_ms: now_ms() + BEAT_MS,
            is_closed: false,
            held,
            sent_bytes: 0,
        })
    }

    pub(crate) fn hub(&self) -> &Rc<Hub> {
        self.feed.hub()
    }

    /// The task that is woken for messages from now on.
    pub(crate) fn wake(&self, context: &Context<'_>) {
        self.feed.wake(context.waker());
    }

    /// Whether the client can get no more of a message that was begun.
    pub(crate) fn is_behind(&self) -> bool {
        self.feed.is_behind()
    }

    /// Counts its memory. Where there is none, a WebSocket with much of it is closed.
    fn count(&mut self, out: &mut Vec<u8>) {
        let channels = self.channels.iter().map(|channel| {
            CHANNEL_BYTES + channel.identifier.len() + channel.state.len() + channel.wrap.len()
        });
        let waiting = self.waiting.iter().map(|waiting| waiting.asked.text().len());
        let bytes = CABLE_BYTES + self.head.len() + self.state.len() + self.frames.held_bytes();
        let subscribing = self.subscribing.as_ref().map_or(0, String::len);
        let bytes = bytes + channels.sum::<usize>() + waiting.sum::<usize>() + subscribing;
        self.held.set(bytes as u64);
        if bytes > FREE_BYTES && self.held.account().free() == 0 {
            self.held.account().note_full();
            self.close(frames::LATER, "there is no memory for this WebSocket", out);
        }
    }

    // --- What comes next -----------------------------------------------------------------------------

    /// Writes what is to be sent next to `out`: everything before was sent.
    pub(crate) fn next(
        &mut self,
        context: &Context<'_>,
        most: usize,
        (app, shared): (&Rc<AppState>, &Shared),
        out: &mut Vec<u8>,
    ) -> Next {
        if self.is_closed {
            return Next::End;
        }
        if self.waiting.len() < MOST_WAITING || !self.feed.is_between_frames() {
            match self.feed.take(most, |bytes| out.extend_from_slice(bytes)) {
                Fed::Bytes(_) => return Next::Sent,
                Fed::Behind => return Next::TooSlow,
                Fed::ForWorker(data) => {
                    self.ask(Asked::Internal(String::from_utf8_lossy(&data).into_owned()))
                }
                Fed::Nothing => {}
            }
        } else if self.feed.is_behind() {
            return Next::TooSlow;
        }
        if self.beat_ms <= now_ms() {
            self.beat_ms = now_ms() + BEAT_MS;
            out.extend_from_slice(&frames::text(&ping()));
            return Next::Sent;
        }
        let until_ms = self.go_on(context, app, shared, out);
        match until_ms {
            _ if !out.is_empty() || self.is_closed => Next::Sent,
            _ if self.feed.is_replaying() && self.waiting.len() < MOST_WAITING => Next::Sent,
            Some(until_ms) => Next::Nothing { until_ms: until_ms.min(self.beat_ms) },
            None => Next::Read { until_ms: self.beat_ms },
        }
    }

    /// Asks workers what is to be asked, and takes their answers. `Some`: there is nothing to do until then, in milliseconds, and the
    /// client is not to be read. `None`: all is answered, or there is something to send.
    fn go_on(
        &mut self,
        context: &Context<'_>,
        app: &Rc<AppState>,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        loop {
            if let Some(running) = &self.running {
                let Poll::Ready(answer) = running.poll(context, app) else { return Some(running.ends_ms) };
                let after = running.after;
                match self.take_answer(answer) {
                    Ok(outcome) => self.apply(outcome, after, app, out),
                    Err(why) => self.lose(&why, app, out),
                }
                self.count(out);
            }
            if !out.is_empty() || self.is_closed {
                return None;
            }
            let waiting = self.waiting.front()?;
            if waiting.again_ms > now_ms() {
                return Some(waiting.again_ms);
            }
            self.ask_next(app, shared, out);
        }
    }

    fn take_answer(&mut self, answer: Result<Vec<u8>, Lost>) -> Result<Outcome, Lost> {
        if let Some(Running { exchange, .. }) = &self.running {
            self.generation = exchange.borrow().generation;
        }
        Outcome::read(&answer?).map_err(|_| Lost::Foreign)
    }

    /// What a worker was asked has got no answer.
    fn lose(&mut self, lost: &Lost, app: &AppState, out: &mut Vec<u8>) {
        let is_repeatable = self.running.take().is_some_and(|running| running.is_repeatable);
        self.hub().note_lost_command(&app.settings().name, &lost.to_string());
        // The client would wait for ever for the answer to its subscription. What it wanted the application to do is not repeated: some
        // of it may be done.
        if is_repeatable || matches!(lost, Lost::Foreign) {
            self.restart(out);
        }
    }

    /// Asks a worker the next question, if one takes it.
    fn ask_next(&mut self, app: &Rc<AppState>, shared: &Shared, out: &mut Vec<u8>) {
        let Some(mut waiting) = self.waiting.pop_front() else { return };
        let begins_with_history = match self.extended(&waiting.asked) {
            Some(command) if self.answer_here(&command) => return,
            command => command.is_some_and(|command| self.may_begin_with_history(&command)),
        };
        let text = waiting.asked.text();
        let (kind, is_repeatable, channel) = match &waiting.asked {
            Asked::Internal(_) => ("internal", true, None),
            Asked::Command(text) => {
                let command = serde_json::from_str::<Command<'_>>(text).ok();
                let identifier = command.as_ref().map(|command| &*command.identifier);
                let channel = self.channels.iter().find(|channel| Some(&*channel.identifier) == identifier);
                let subscribes = command.as_ref().is_some_and(|command| command.command == "subscribe");
                if let (true, None, Some(identifier)) = (subscribes, channel, identifier) {
                    if self.channels.len() >= self.hub().limits().cable_streams as usize {
                        self.hub().note_rejected_subscription(&app.settings().name);
                        return out
                            .extend_from_slice(&frames::text(&notice(identifier, "reject_subscription")));
                    }
                }
                ("command", command.is_some_and(|command| command.command != "message"), channel)
            }
        };
        let question = Question {
            kind,
            state: &self.state,
            channels: channel.iter().map(|channel| channel.known()).collect(),
            text,
        };
        match question.ask(&self.head, self.generation, is_repeatable, app, shared) {
            Ok(running) => {
                self.subscribing = match waiting.asked {
                    Asked::Command(text) if begins_with_history => Some(text),
                    _ => None,
                };
                self.running = Some(running);
            }
            Err(why) => {
                let since_ms = *waiting.since_ms.get_or_insert_with(now_ms);
                waiting.again_ms = now_ms() + PAUSE_MS;
                if now_ms() >= since_ms + PATIENCE_MS {
                    self.hub().note_lost_command(&app.settings().name, &why.to_string());
                    return self.restart(out);
                }
                self.waiting.push_front(waiting);
            }
        }
        self.count(out);
    }

    fn ask(&mut self, asked: Asked) {
        self.waiting.push_back(Waiting { asked, since_ms: None, again_ms: 0 });
    }

    // --- What a worker answers -----------------------------------------------------------------------

    fn apply(&mut self, mut outcome: Outcome, after: u64, app: &AppState, out: &mut Vec<u8>) {
        self.running = None;
        outcome.transmit.iter().for_each(|text| out.extend_from_slice(&frames::text(text)));
        if let Some(state) = outcome.state.take() {
            self.state = state;
        }
        let begun = match outcome.is_beyond(self.hub().limits().cable_streams as usize) {
            true => Err(Unsubscribable::Full),
            false => self.change_channels(&outcome, after),
        };
        if let Some(why) = &outcome.unsupported {
            self.hub().relay_cables(self.generation, &app.settings().name, why);
            return self.restart(out);
        }
        match begun {
            Err(Unsubscribable::Full) => {
                self.hub().note_rejected_subscription(&app.settings().name);
                self.restart(out);
            }
            Err(Unsubscribable::Field(why)) => {
                self.hub().note_lost_command(&app.settings().name, why);
                self.restart(out);
            }
            Ok(()) if outcome.restart => self.restart(out),
            Ok(()) if outcome.close => self.close(frames::NORMAL, "", out),
            Ok(()) => self.begin_with_history(),
        }
    }

    fn change_channels(&mut self, outcome: &Outcome, after: u64) -> Result<(), Unsubscribable> {
        for identifier in &outcome.gone {
            if let Some(at) = self.channels.iter().position(|channel| channel.identifier == *identifier) {
                let channel = self.channels.swap_remove(at);
                self.feed.stop(&channel.wrap);
            }
        }
        let internal = Rc::clone(&self.internal);
        outcome.internal.iter().try_for_each(|names| self.feed.set(&internal, names, after))?;
        outcome.channels.iter().try_for_each(|channel| self.set_channel(channel, after))
    }

    fn set_channel(&mut self, now: &ChannelNow, after: u64) -> Result<(), Unsubscribable> {
        let known = self.channels.iter().position(|channel| channel.identifier == now.identifier);
        if known.is_none() && self.channels.len() >= self.hub().limits().cable_streams as usize {
            return Err(Unsubscribable::Full);
        }
        let at = known.unwrap_or_else(|| {
            let ChannelNow { identifier, wrap, .. } = now;
            let channel =
                Channel { identifier: identifier.clone(), state: "".into(), wrap: Rc::from(&**wrap) };
            self.channels.push(channel);
            self.channels.len() - 1
        });
        let channel = &mut self.channels[at];
        channel.state = now.state.clone();
        let wrap = Rc::clone(&channel.wrap);
        self.feed.set(&wrap, &now.streams, after)
    }

    // --- What the client says ------------------------------------------------------------------------

    /// Takes bytes of the client, up to the end of the first message that a worker has to be asked about. Returns how many.
    pub(crate) fn hear(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let most = self.hub().limits().cable_message_bytes;
        let mut rest = bytes;
        while self.waiting.is_empty() && !self.is_closed {
            match self.frames.read(&mut rest, most) {
                Ok(None) => break,
                Ok(Some(Heard::Text(text))) => self.ask(Asked::Command(text)),
                Ok(Some(Heard::Binary | Heard::Pong)) => {}
                Ok(Some(Heard::Ping(payload))) => out.extend_from_slice(&frames::pong(&payload)),
                Ok(Some(Heard::Close(code, reason))) => self.close(code, &reason, out),
                Err(Broken { code, why }) => self.close(code, &why, out),
            }
        }
        self.count(out);
        bytes.len() - rest.len()
    }

    // --- The end -------------------------------------------------------------------------------------

    /// Asks the client to connect again.
    pub(crate) fn restart(&mut self, out: &mut Vec<u8>) {
        if !self.is_closed && self.feed.is_between_frames() {
            out.extend_from_slice(&frames::text(RESTART));
            self.close(frames::RESTART, "", out);
        }
        self.is_closed = true;
    }

    fn close(&mut self, code: u16, reason: &str, out: &mut Vec<u8>) {
        if !self.is_closed && self.feed.is_between_frames() {
            out.extend_from_slice(&frames::close(code, reason));
        }
        self.is_closed = true;
    }

    /// Whether the client is to connect again, and may learn that now.
    pub(crate) fn may_restart(&self) -> bool {
        !self.is_closed && self.feed.is_between_frames()
    }

    /// The WebSocket has ended: tells the application.
    pub(crate) async fn say_farewell(mut self: Box<Self>, app: &Rc<AppState>, shared: &Shared) {
        let _ = tokio::time::timeout(FAREWELL_TIME, self.farewell(app, shared)).await;
        // it had its time
    }

    async fn farewell(&mut self, app: &Rc<AppState>, shared: &Shared) {
        let mut nothing = Vec::new();
        if self.running.is_some() {
            let answer = std::future::poll_fn(|context| match &self.running {
                Some(running) => running.poll(context, app),
                None => Poll::Ready(Err(Lost::Foreign)),
            });
            let answer = answer.await;
            if let Ok(outcome) = self.take_answer(answer) {
                self.apply(outcome, 0, app, &mut nothing);
            }
            self.running = None;
        }
        loop {
            let channels = self.channels.iter().map(Channel::known).collect();
            let question = Question { kind: "close", state: &self.state, channels, text: "" };
            match question.ask(&self.head, self.generation, true, app, shared) {
                Ok(running) => {
                    let answer = std::future::poll_fn(|context| running.poll(context, app)).await;
                    return drop(answer); // the client has left
                }
                Err(Lost::Refused(Refusal::QueueFull { .. }) | Lost::NoMemory) => {
                    tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
                }
                Err(_) => return, // no worker is there any more
            }
        }
    }
}

impl Channel {
    fn known(&self) -> Known<'_> {
        Known { identifier: &self.identifier, state: &self.state }
    }
}

impl Asked {
    fn text(&self) -> &str {
        let (Asked::Command(text) | Asked::Internal(text)) = self;
        text
    }
}

/// As Action Cable sends it.
fn ping() -> String {
    format!(r#"{{"type":"ping","message":{}}}"#, since_1970().as_secs())
}

/// A message about a subscription, such as that it is rejected.
fn notice(identifier: &str, kind: &str) -> String {
    let identifier = serde_json::Value::from(identifier);
    format!(r#"{{"identifier":{identifier},"type":"{kind}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_command_the_front_knows_what_it_is_about() {
        let of = |text: &str| {
            let read = serde_json::from_str::<Command<'_>>(text).ok()?;
            Some((read.command.into_owned(), read.identifier.into_owned()))
        };
        let text = r#"{"command":"subscribe","identifier":"{\"channel\":\"A\"}","more":[1,{}]}"#;
        assert_eq!(of(text), Some(("subscribe".into(), r#"{"channel":"A"}"#.into())));
        let twice = r#"{"command":"message","identifier":"a","identifier":"b"}"#;
        for other in [twice, "", "[]", "{}", r#"{"command":1,"identifier":"a"}"#, "{", &"[".repeat(100_000)] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_notice_is_json_whatever_the_identifier_is() {
        for identifier in ["", "a\"b\\", "\n\u{0}\u{2028}", r#"{"channel":"A"}"#] {
            let read: serde_json::Value =
                serde_json::from_str(&notice(identifier, "reject_subscription")).unwrap();
            assert_eq!(read["identifier"], identifier);
            assert_eq!(read["type"], "reject_subscription");
        }
    }

    #[test]
    fn what_a_worker_does_not_say_is_as_before() {
        let nothing = Outcome::read(b"{}").unwrap();
        assert_eq!(nothing, Outcome::default());
        assert!(!nothing.is_beyond(0));
        for bad in [&b""[..], b"[1]", b"{\"transmit\":[1]}", b"{\"channels\":[{}]}", b"{\"state\":\"\xff\"}"]
        {
            assert!(Outcome::read(bad).is_err());
        }
    }

    #[test]
    fn a_worker_can_name_no_more_than_a_client_may_have() {
        let channel = |streams| format!(r#"{{"identifier":"a","state":"","wrap":"","streams":{streams}}}"#);
        for (text, is_beyond) in [
            (format!(r#"{{"channels":[{}]}}"#, channel(r#"["a","b"]"#)), false),
            (format!(r#"{{"channels":[{}]}}"#, channel(r#"["a","b","c"]"#)), true),
            (format!(r#"{{"channels":[{}]}}"#, vec![channel("[]"); 3].join(",")), true),
            (format!(r#"{{"channels":[{}]}}"#, vec![channel(r#"["a","b"]"#); 2].join(",")), true),
            (r#"{"gone":["a","b","c"]}"#.into(), true),
            (r#"{"internal":["a","b","c"]}"#.into(), true),
        ] {
            assert_eq!(Outcome::read(text.as_bytes()).unwrap().is_beyond(2), is_beyond, "{text}");
        }
    }
}
