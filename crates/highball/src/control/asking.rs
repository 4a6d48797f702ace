//! Asking instances: finding those that run, one question, one answer. What an instance answers is data: it may be
//! another user's, and repeats texts of applications. So an answer has a limit in size and time, holds nothing that a
//! terminal would obey, and an instance is the process that really is at the other end.

use crate::control::listening::ports_of;
use crate::control::messages::{Answer, Question};
use crate::control::places::{connect, pid_of, ControlFolder, ControlPlaces, Peer, Whose};
use crate::output::complain;
use crate::process::event_loop::event_loop;
use crate::status::report::Status;
use highball_text::{json, visible, visible_lines, visible_path};
use highball_users::Place;
use rustix::process::geteuid;
use serde_json::Value;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout, timeout_at, Instant};

/// What an answer may take, beyond the time that an instance has for finding it.
const ANSWER_SLACK: Duration = Duration::from_secs(1);
/// The longest answer: some hundred applications, each with a diagnosis.
const ANSWER_BYTES: u64 = 16 << 20;
/// How often instances are looked for, while one takes the place of another.
const LOOKS: u32 = 5;
/// Time between looks at servers that close connections.
const CLOSING_TIME: Duration = Duration::from_millis(50);
/// How many instances are asked at the same time.
const SIDE_BY_SIDE: usize = 16;
/// Time for all servers of other users together, of which those users decide how many there are.
const OTHERS_TIME: Duration = Duration::from_secs(4);
/// Time that others have to answer once the one that is meant has answered: a hot restart has two.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// Fields whose texts may have several lines.
const LONG_TEXTS: [&str; 6] = ["failure", "last_failure", "why", "no_refork", "diagnosis", "backtrace"];

/// A question's address, and what came of it.
type Exchanged = (Address, io::Result<(Answer, Peer)>);

/// An instance that has answered.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) address: Address,
    pub(crate) status: Status,
    /// The user that its process has; none where that is the one who asks.
    pub(crate) other_user: Option<u32>,
}

/// Where an instance is asked.
#[derive(Debug)]
pub(crate) struct Address {
    place: Place,
    whose: Whose,
}

/// What there is, and what was found that cannot be used.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) found: Vec<Instance>,
    /// Servers that were reached and gave no answer that can be used: why, and what to do.
    pub(crate) unanswered: Vec<String>,
    /// What is wrong with places.
    problems: Vec<String>,
    /// One that was there has gone before it answered: another may have come in its place meanwhile.
    one_has_gone: bool,
}

/// Every instance that answers. Sockets of dead ones are removed; what cannot be used is reported on standard error. Once one
/// has answered that is `enough`, others that take long are not waited for.
pub(crate) fn running(places: &ControlPlaces, enough: impl Fn(&Status) -> bool) -> Vec<Instance> {
    let Looked { found, unanswered, .. } = look_for(places, enough);
    unanswered.into_iter().for_each(complain);
    found
}

/// The same; servers that do not answer are not reported, but returned.
pub(crate) fn look_for(places: &ControlPlaces, enough: impl Fn(&Status) -> bool) -> Looked {
    let mut looked = Looked::default();
    // Another user could have root look for ever.
    let looks = if matches!(places, ControlPlaces::OfOthers(_)) { 1 } else { LOOKS };
    for _ in 0..looks {
        looked = look(places, &enough);
        let is_there = |pid: i32| looked.found.iter().any(|instance| instance.status.pid == pid);
        let mut successors = looked.found.iter().filter_map(|instance| instance.status.successor);
        if !looked.one_has_gone && successors.all(is_there) {
            break;
        }
        // One that closes connections is about to end, most likely.
        if looked.found.is_empty() && !looked.unanswered.is_empty() {
            let _ = event_loop().map(|event_loop| event_loop.block_on(async { sleep(CLOSING_TIME).await }));
        }
    }
    std::mem::take(&mut looked.problems).into_iter().for_each(complain);
    looked
}

fn look(places: &ControlPlaces, enough: &impl Fn(&Status) -> bool) -> Looked {
    let mut looked = Looked::default();
    let addresses = looked.addresses(places);
    let (count, limit) =
        (addresses.len(), matches!(places, ControlPlaces::OfOthers(_)).then_some(OTHERS_TIME));
    match ask_all(addresses, limit, enough) {
        Ok(answers) => {
            let silent = count - answers.len();
            if limit.is_some() && silent > 0 {
                looked.unanswered.push(format!("{silent} servers of other users have not answered in time"));
            }
            answers.into_iter().for_each(|(address, answer)| looked.take(address, answer));
        }
        Err(error) => looked.problems.push(format!("no server can be asked: {error}")),
    }
    looked.found.sort_by_key(|instance| instance.status.pid);
    note_successors(&mut looked.found);
    looked
}

/// A process may have answered before it knew that another of its user serves in its place, which has answered as well.
fn note_successors(found: &mut [Instance]) {
    let succession =
        |instance: &Instance| Some((instance.status.predecessor?, instance.other_user, instance.status.pid));
    let successions: Vec<_> = found.iter().filter_map(succession).collect();
    for (predecessor, user, successor) in successions {
        let is_it =
            |instance: &&mut Instance| instance.status.pid == predecessor && instance.other_user == user;
        if let Some(instance) = found.iter_mut().find(is_it) {
            instance.status.successor.get_or_insert(successor);
        }
    }
}

/// Asks instances for their status, side by side, and waits for all of them no longer than `limit`.
fn ask_all(
    addresses: Vec<Address>,
    limit: Option<Duration>,
    enough: &impl Fn(&Status) -> bool,
) -> io::Result<Vec<Exchanged>> {
    event_loop()?.block_on(async {
        let mut left = addresses.into_iter();
        let (mut asked, mut answers) = (JoinSet::new(), Vec::new());
        let mut deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            // Those of other users all at once: who does not answer would keep others waiting.
            let room = if limit.is_some() { usize::MAX } else { SIDE_BY_SIDE - asked.len() };
            for address in left.by_ref().take(room) {
                asked.spawn(async move {
                    let answer = ask_in_time(&address, Question::Status).await;
                    (address, answer)
                });
            }
            let next = match deadline {
                Some(deadline) => timeout_at(deadline, asked.join_next()).await.unwrap_or_default(),
                None => asked.join_next().await,
            };
            let Some(answered) = next else { return Ok(answers) };
            let (address, answer) = answered.map_err(io::Error::other)?;
            // What another user's server says of itself is not enough.
            if deadline.is_none() && matches!(&answer, Ok((Answer::Status(status), _)) if enough(status)) {
                deadline = Some(Instant::now() + SETTLE_TIME);
            }
            answers.push((address, answer));
        }
    })
}

impl Looked {
    fn addresses(&mut self, places: &ControlPlaces) -> Vec<Address> {
        let mut addresses = Vec::new();
        let mut look_in = |folder: io::Result<ControlFolder>, whose| match folder
            .and_then(|folder| folder.sockets(whose))
        {
            Ok(sockets) => addresses.extend(sockets.into_iter().map(|place| Address { place, whose })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.problems.push(error.to_string()),
        };
        match places {
            ControlPlaces::Usual(folders) => {
                folders.iter().for_each(|folder| look_in(ControlFolder::open(folder), Whose::Ours));
            }
            ControlPlaces::OfOthers(folders) => {
                let open = |(folder, uid): &(PathBuf, u32)| (ControlFolder::open_of(folder, *uid), *uid);
                // What is wrong with their folders is their own business.
                let usable = folders.iter().map(open).filter(|(folder, _)| folder.is_ok());
                usable.for_each(|(folder, uid)| look_in(folder, Whose::Users(uid)));
            }
            ControlPlaces::Named(path) if path.is_dir() => {
                look_in(ControlFolder::open_named(path), Whose::Named);
            }
            ControlPlaces::Named(path) => match Place::open_to_find(path) {
                Ok(place) => addresses.push(Address { place, whose: Whose::Named }),
                Err(error) => self.problems.push(error.to_string()),
            },
        }
        addresses
    }

    fn take(&mut self, address: Address, answer: io::Result<(Answer, Peer)>) {
        match answer {
            Ok((Answer::Status(status), peer)) => {
                let other_user = (peer.uid != geteuid().as_raw()).then_some(peer.uid);
                let mut status = *status;
                if let Whose::Users(uid) = address.whose {
                    // Root is not to take the server of one user for that of another.
                    let really = ports_of(status.pid, uid).unwrap_or_default();
                    status.ports.retain(|port| really.contains(port));
                }
                self.found.push(Instance { address, status, other_user });
            }
            Ok((Answer::Refused { why }, _)) => self.unanswered.push(format!("{address} refuses: {why}")),
            Ok(_) => self.unanswered.push(format!("{address}: {}", not_an_answer("it is another one"))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                address.remove_stale(); // its process has crashed
                self.one_has_gone = true;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.one_has_gone = true,
            // It is not one of this user's.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.problems.push(error.to_string());
            }
            Err(error) => {
                self.one_has_gone |= closes(&error);
                self.unanswered.push(format!("{address} does not answer: {error}"));
            }
        }
    }
}

/// The connection was closed with our question in it.
fn closes(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// An answer that cannot be used, in words.
fn not_an_answer(why: impl std::fmt::Display) -> String {
    format!(
        "its answer is none to this command ({why}): it is another program, or of a version that this one (highball {}) does not \
         know. Use the program that it was started by",
        env!("CARGO_PKG_VERSION")
    )
}

impl Address {
    /// Removes the socket of an instance that does not exist any more, unless another has its name by now.
    fn remove_stale(&self) {
        if let Ok(Some(found)) = self.place.find() {
            if found.is_socket() && self.whose == Whose::Ours {
                let _ = self.place.remove(&found); // somebody else may be quicker
            }
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.place.path();
        write!(f, "the server at {}", visible_path(path))?;
        pid_of(path.file_name().unwrap_or_default()).map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// Asks an instance; waits no longer than it may take.
pub(crate) fn ask(address: &Address, question: Question) -> io::Result<Answer> {
    event_loop()?.block_on(ask_in_time(address, question)).map(|(answer, _)| answer)
}

/// The same, beside other things that this process does.
pub(crate) async fn ask_aside(address: &Address, question: Question) -> io::Result<Answer> {
    ask_in_time(address, question).await.map(|(answer, _)| answer)
}

async fn ask_in_time(address: &Address, question: Question) -> io::Result<(Answer, Peer)> {
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

async fn exchange(address: &Address, question: Question) -> io::Result<(Answer, Peer)> {
    let (mut connection, peer) = connect(&address.place, address.whose).await?;
    connection.write_all((json::try_compact(&question)? + "\n").as_bytes()).await?;
    let mut line = Vec::new();
    BufReader::new(connection).take(ANSWER_BYTES).read_until(b'\n', &mut line).await?;
    match line.last() {
        None => Err(io::ErrorKind::UnexpectedEof.into()), // it is ending
        Some(b'\n') => Ok((read(&line, peer)?, peer)),
        Some(_) if line.len() as u64 == ANSWER_BYTES => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"))
        }
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads an answer. An instance that says that it is another process is not believed: commands wait for that process to
/// end.
fn read(line: &[u8], peer: Peer) -> io::Result<Answer> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let unknown = |error: serde_json::Error| invalid(not_an_answer(error));
    let mut value: Value = serde_json::from_slice(line).map_err(unknown)?;
    make_printable(&mut value, false);
    let answer: Answer = serde_json::from_value(value).map_err(unknown)?;
    match (&answer, peer.pid) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_socket_of_a_dead_instance_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join("4711.sock");
        drop(UnixListener::bind(&path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(running(&ControlPlaces::Usual(vec![folder.path().into()]), |_| false).is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_in_an_answer() {
        let mut value = serde_json::json!({
            "name": "a\u{1b}[2J\nb\u{9b}31m", "apps": [{ "last_failure": "one\ntwo\r\u{202e}" }]
        });
        make_printable(&mut value, false);
        assert_eq!(value["name"], "a\\x1b[2J\\nb\\u{9b}31m");
        assert_eq!(value["apps"][0]["last_failure"], "one\ntwo\\r\\u{202e}");
    }

    const STATUS: &str = r#"{"type":"status","pid":1,"version":"","phase":"","uptime_seconds":0,"binds":[],"ports":[],
        "connections":0,"hijacked":0,"upgrade":null,"predecessor":null,"successor":null,"apps":[]}"#;

    #[test]
    fn a_process_that_does_not_know_of_its_successor_yet_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let instance = |pid: i32, predecessor: Option<i32>, other_user: Option<u32>| {
            let Ok(Answer::Status(mut status)) = serde_json::from_str(STATUS) else {
                unreachable!("it is one")
            };
            (status.pid, status.predecessor) = (pid, predecessor);
            let place = Place::open_to_find(&folder.path().join(pid.to_string())).unwrap();
            Instance { address: Address { place, whose: Whose::Named }, status: *status, other_user }
        };
        // The last one says that it is the successor of another user's.
        let mut found = [instance(1, None, None), instance(2, Some(1), None), instance(3, Some(2), Some(7))];
        note_successors(&mut found);
        let successors = found.map(|instance| instance.status.successor);
        assert_eq!(successors, [Some(2), None, None]);
    }

    #[test]
    fn a_status_is_believed_of_no_other_process() {
        let read =
            |pid| read(STATUS.as_bytes(), Peer { pid, uid: 0 }).map(drop).map_err(|error| error.to_string());
        assert_eq!(read(Some(1)), Ok(()));
        assert!(read(Some(2)).unwrap_err().contains("but it is 2"));
        assert!(read(None).unwrap_err().contains("another container"));
    }
}
