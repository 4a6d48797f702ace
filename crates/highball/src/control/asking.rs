//! One question to a server, one answer. What a server answers is data: it may be another user's, and repeats texts of
//! applications. So an answer has a limit in size and time, holds nothing that a terminal would obey, and comes from the process that
//! really is at the other end.

use crate::control::messages::{Answer, Question};
use crate::control::places::{connect, pid_of};
use crate::process::event_loop::event_loop;
use highball_text::{json, visible, visible_lines, visible_path};
use highball_users::Place;
use rustix::process::geteuid;
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::UCred;
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::timeout;

/// What an answer may take, beyond the time that an instance has for finding it.
const ANSWER_SLACK: Duration = Duration::from_secs(1);
/// The longest answer: some hundred applications, each with a diagnosis.
const ANSWER_BYTES: u64 = 16 << 20;
/// Fields whose texts may have several lines.
const LONG_TEXTS: [&str; 6] = ["failure", "last_failure", "why", "no_refork", "diagnosis", "backtrace"];

/// Where an instance is asked.
#[derive(Debug)]
pub(crate) struct ServerAddress {
    pub(crate) place: Place,
    /// The user that the socket has to belong to; `None`: it was named, and may be anybody's whom this user may ask.
    pub(crate) owner: Option<u32>,
}

impl ServerAddress {
    /// Removes the socket of an instance that does not exist any more, unless another has its name by now.
    pub(crate) fn remove_stale(&self) {
        if let Ok(Some(found)) = self.place.find() {
            if found.is_socket() && self.owner == Some(geteuid().as_raw()) {
                let _ = self.place.remove(&found); // somebody else may be quicker
            }
        }
    }
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.place.path();
        write!(f, "the server at {}", visible_path(path))?;
        pid_of(path.file_name().unwrap_or_default()).map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// Asks an instance; waits no longer than it may take.
pub(crate) fn ask(address: &ServerAddress, question: Question) -> io::Result<Answer> {
    event_loop()?.block_on(ask_in_time(address, question)).map(|(answer, _)| answer)
}

/// The same of a question that takes long. If this process is interrupted, it asks the server by `end` to finish what it does,
/// and waits for the answer that there is by then. A second interrupt ends the wait.
pub(crate) fn ask_until_interrupted(
    address: &ServerAddress,
    question: Question,
    end: Question,
) -> io::Result<Answer> {
    event_loop()?.block_on(async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let answer = ask_in_time(address, question);
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => return answer.map(|(answer, _)| answer),
            _ = interrupts.recv() => ask_in_time(address, end).await?,
        };
        tokio::select! {
            answer = answer => answer.map(|(answer, _)| answer),
            _ = interrupts.recv() => Err(io::ErrorKind::Interrupted.into()),
        }
    })
}

/// The same, beside other things that this process does.
pub(crate) async fn ask_aside(address: &ServerAddress, question: Question) -> io::Result<Answer> {
    ask_in_time(address, question).await.map(|(answer, _)| answer)
}

pub(crate) async fn ask_in_time(address: &ServerAddress, question: Question) -> io::Result<(Answer, UCred)> {
    let limit = question.time_limit() + ANSWER_SLACK;
    let answer =
        timeout(limit, exchange(address, question)).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
    answer.map_err(|error| match error.kind() {
        // The latter is what connecting meets where too many wait for an answer already.
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            let seconds = limit.as_secs();
            let why = format!(
                "no answer within {seconds} s; its process is stopped or hangs, or this machine is too busy"
            );
            io::Error::new(io::ErrorKind::TimedOut, why)
        }
        kind if closes(&error) => {
            let why = "it has closed the connection without an answer: it is about to end, or it has failed to answer, and its log \
                       says why";
            io::Error::new(kind, why)
        }
        _ => error,
    })
}

async fn exchange(address: &ServerAddress, question: Question) -> io::Result<(Answer, UCred)> {
    let (mut connection, peer) = connect(&address.place, address.owner).await?;
    connection.write_all((json::try_compact(&question)? + "\n").as_bytes()).await?;
    let mut line = Vec::new();
    BufReader::new(connection).take(ANSWER_BYTES).read_until(b'\n', &mut line).await?;
    match line.last() {
        None => Err(io::ErrorKind::UnexpectedEof.into()), // it is ending
        Some(b'\n') => Ok((read(&line, peer.pid())?, peer)),
        Some(_) if line.len() as u64 == ANSWER_BYTES => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"))
        }
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads an answer. An instance that says that it is another process is not believed: commands wait for that process to
/// end.
fn read(line: &[u8], pid: Option<i32>) -> io::Result<Answer> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let unknown = |error: serde_json::Error| invalid(not_an_answer(error));
    let mut value: Value = serde_json::from_slice(line).map_err(unknown)?;
    make_printable(&mut value, false);
    let answer: Answer = serde_json::from_value(value).map_err(unknown)?;
    match (&answer, pid.filter(|pid| *pid > 0)) {
        (Answer::Status(status), Some(pid)) if status.pid != pid => {
            Err(invalid(format!("it says that its pid is {}, but it is {pid}", status.pid)))
        }
        (Answer::Status(_), None) => Err(invalid(
            "its process is not visible from here: it runs in another container; run this command there"
                .into(),
        )),
        _ => Ok(answer),
    }
}

/// Replaces what a terminal would obey, or show as something else, in all texts of an answer. Lines end only where long texts
/// are expected.
fn make_printable(value: &mut Value, may_have_lines: bool) {
    match value {
        Value::String(text) => {
            let shown = if may_have_lines { visible_lines(text) } else { visible(text) };
            if let Cow::Owned(shown) = shown {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| make_printable(value, may_have_lines)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| {
            make_printable(value, may_have_lines || LONG_TEXTS.contains(&name.as_str()));
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The connection was closed with our question in it.
pub(crate) fn closes(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// An answer that cannot be used, in words.
pub(crate) fn not_an_answer(why: impl std::fmt::Display) -> String {
    format!(
        "its answer does not fit this command ({why}): it is another program, or another version than highball {}. \
         Use the program that has started it",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_in_an_answer() {
        let mut value = serde_json::json!({
            "name": "a\u{1b}[2J\nb\u{9b}31m", "apps": [{ "last_failure": "one\ntwo\r\u{202e}" }]
        });
        make_printable(&mut value, false);
        assert_eq!(value["name"], "a\\x1b[2J\\nb\\u{9b}31m");
        assert_eq!(value["apps"][0]["last_failure"], "one\ntwo\\r\\u{202e}");
    }

    #[test]
    fn a_status_is_believed_of_no_other_process() {
        let status = r#"{"type":"status","pid":1,"version":"","phase":"","uptime_seconds":0,"binds":[],"ports":[],
            "connections":0,"hijacked":0,"upgrade":null,"predecessor":null,"successor":null,"apps":[]}"#;
        let read = |pid| read(status.as_bytes(), pid).map(drop).map_err(|error| error.to_string());
        assert_eq!(read(Some(1)), Ok(()));
        assert!(read(Some(2)).unwrap_err().contains("but it is 2"));
        assert!(read(None).unwrap_err().contains("another container"));
    }
}
