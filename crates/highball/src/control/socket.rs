//! The control socket of this process, which only its user and root may talk to (`places`). One line of JSON asks, one line of
//! JSON answers (`messages`).

use crate::control::callers::{Caller, Callers};
use crate::control::messages::{Answer, Question};
use crate::control::places::{connect, in_folder, may_ask, ControlFolder, ControlPlaces, VARIABLE};
use highball_text::json;
use highball_users::{Found, Place};
use rustix::fs::{fchmod, Mode};
use rustix::net::{bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{geteuid, getpid};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tracing::{info, warn};

/// The longest question, in bytes.
const QUESTION_BYTES: usize = 1024;
/// Connections that the kernel holds for us; it cuts this down to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// Connections at a time.
const CONNECTIONS: usize = 64;
/// The file of a control socket, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct MadeSocket {
    place: Place,
    file: Found,
}

impl Drop for MadeSocket {
    fn drop(&mut self) {
        let _ = self.place.remove(&self.file); // the next `highball status` removes what is left behind
    }
}

/// The listening socket of this instance; its file goes when this is dropped, unless another process has replaced it.
#[derive(Debug)]
pub(crate) struct InstanceSocket {
    listener: UnixListener,
    /// What this process has made; none where another process has, which removes it too.
    made: Option<(Place, Found)>,
}

impl InstanceSocket {
    /// Opens the socket of this process in the first of these places that can be used. A named socket may be
    /// another's already. The socket of the process that this one takes over from is replaced.
    pub(crate) async fn open(places: &ControlPlaces, predecessor: Option<i32>) -> io::Result<InstanceSocket> {
        match places {
            ControlPlaces::Named(path) if path.is_dir() => {
                InstanceSocket::bind(own_place(&ControlFolder::open_named(path)?)?)
            }
            ControlPlaces::Named(path) => InstanceSocket::open_named(path, predecessor).await,
            ControlPlaces::Folders(folders) => {
                let mut unusable = Unusable::default();
                for (folder, _) in folders {
                    match InstanceSocket::open_in(folder) {
                        Ok(socket) => {
                            unusable.report(socket.path());
                            return Ok(socket);
                        }
                        Err(error) => unusable.add(folder, &error),
                    }
                }
                Err(io::Error::other(unusable.problems.join("; ")))
            }
        }
    }

    fn open_in(folder: &Path) -> io::Result<InstanceSocket> {
        InstanceSocket::bind(own_place(&ControlFolder::claim(folder)?)?)
    }

    async fn open_named(path: &Path, predecessor: Option<i32>) -> io::Result<InstanceSocket> {
        let place = Place::open(path).map_err(in_folder)?;
        let problem = |what: &str| {
            let message = format!("{} {what}: name another path in {VARIABLE}", path.display());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        };
        if !place.is_safe() {
            return problem("lies in a folder that others may write to");
        }
        if let Some(found) = place.find()? {
            if !found.is_socket() || !place.may_replace(&found) {
                return problem("is not a control socket of this user");
            }
            if let Ok((_, peer)) = connect(&place, Some(geteuid().as_raw())).await {
                if predecessor.is_none() || peer.pid() != predecessor {
                    return problem("is the control socket of another Highball that runs");
                }
            }
        }
        InstanceSocket::bind(place)
    }

    /// Makes the socket; it gets its name when a process listens at it.
    fn bind(place: Place) -> io::Result<InstanceSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file is made with the rights of the socket: it was never open to others.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        let temporary = place.temporary()?;
        bind(&socket, &SocketAddrUnix::new(temporary.address())?)?;
        listen(&socket, BACKLOG)?;
        let listener = UnixListener::from_std(socket.into())?;
        let file = temporary.publish()?;
        Ok(InstanceSocket { listener, made: Some((place, file)) })
    }

    /// Takes over a socket that another process has made.
    pub(crate) fn over(socket: OwnedFd) -> io::Result<InstanceSocket> {
        Ok(InstanceSocket { listener: UnixListener::from_std(socket.into())?, made: None })
    }

    /// Makes it for another process: the socket, and what this one has made.
    pub(crate) fn into_parts(mut self) -> io::Result<(OwnedFd, Option<MadeSocket>)> {
        let socket = self.listener.as_fd().try_clone_to_owned()?;
        Ok((socket, self.made.take().map(|(place, file)| MadeSocket { place, file })))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.made.as_ref().map_or(Path::new(""), |(place, _)| place.path())
    }

    /// Answers questions for ever, several at a time: one may wait for a worker that is busy.
    pub(crate) async fn answer<R>(&self, respond: impl Fn(Question) -> R + Clone + Send + 'static)
    where
        R: Future<Output = Option<Answer>> + Send + 'static,
    {
        let callers = Callers::new("commands", CONNECTIONS);
        let serve = |connection, caller| {
            let (respond, callers) = (respond.clone(), callers.clone());
            tokio::spawn(serve(connection, caller, callers, respond));
        };
        callers.accept_all(&self.listener, serve).await;
    }
}

impl Drop for InstanceSocket {
    fn drop(&mut self) {
        if let Some((place, file)) = self.made.take() {
            drop(MadeSocket { place, file });
        }
    }
}

/// Places that could not be used for the control socket.
#[derive(Debug, Default)]
struct Unusable {
    problems: Vec<String>,
    /// One was refused or cannot be written to, where it should be usable.
    is_odd: bool,
}

impl Unusable {
    fn add(&mut self, folder: &Path, error: &io::Error) {
        self.problems.push(format!("{}: {error}", folder.display()));
        // That is as usual in containers.
        self.is_odd |= !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ReadOnlyFilesystem);
    }

    /// Reports that the socket is in a further place. Commands look there, too.
    fn report(&self, path: &Path) {
        let (path, problems) = (path.display(), self.problems.join("; "));
        if self.is_odd {
            warn!(
                name: "control_socket_elsewhere", %path, problems, "the control socket is in another place"
            );
        } else if !self.problems.is_empty() {
            info!(
                name: "control_socket_elsewhere", %path, problems, "the control socket is in another place"
            );
        }
    }
}

/// The name of this process's socket in a folder.
fn own_place(folder: &ControlFolder) -> io::Result<Place> {
    folder.place(format!("{}.sock", getpid().as_raw_nonzero()).as_ref())
}

/// Answers a connection. What is wrong with one is logged once a minute at most: another process decides how many come.
async fn serve<R>(
    mut connection: UnixStream,
    caller: Caller,
    callers: Callers,
    respond: impl Fn(Question) -> R,
) where
    R: Future<Output = Option<Answer>>,
{
    if let Err(error) = may_ask(&connection) {
        if callers.is_to_be_logged() {
            warn!(
                name: "control_socket_private", %error, "only this user and root can use the control socket"
            );
        }
        return;
    }
    let exchanged = tokio::select! {
        exchanged = exchange(&mut connection, &caller, respond) => exchanged,
        () = caller.dismissed() => Ok(()),
    };
    match exchanged {
        Err(error) if callers.is_to_be_logged() => warn!(
            name: "control_question_failed", %error, "a question on the control socket failed"
        ),
        _ => {}
    }
}

/// A client that leaves without a question, or before its answer, is no fault.
async fn exchange<R>(
    connection: &mut UnixStream,
    caller: &Caller,
    respond: impl Fn(Question) -> R,
) -> io::Result<()>
where
    R: Future<Output = Option<Answer>>,
{
    let Some(line) = caller.hear(connection, &mut Vec::new(), read_line).await else { return Ok(()) };
    let question: Question = serde_json::from_slice(&line?)?;
    let Some(answer) = timeout(question.time_limit(), respond(question)).await? else {
        return Ok(()); // ending already: the connection closes without an answer
    };
    let text = json::try_compact(&answer)? + "\n";
    let _ = caller.answer(connection, text.as_bytes()).await;
    Ok(())
}

/// The first line of what has come, if it is whole.
fn read_line(bytes: &[u8]) -> Option<io::Result<Vec<u8>>> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "the question is too long");
    match bytes.iter().take(QUESTION_BYTES).position(|byte| *byte == b'\n') {
        Some(end) => Some(Ok(bytes[..end].to_vec())),
        None => (bytes.len() >= QUESTION_BYTES).then(|| Err(too_long())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn one_that_is_named_is_one_instances_at_a_time() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("control");
        let places = ControlPlaces::Named(path.clone());
        let first = InstanceSocket::open(&places, None).await.unwrap();
        let error = InstanceSocket::open(&places, None).await.unwrap_err();
        assert!(error.to_string().contains("another Highball that runs"), "{error}");
        // In a hot restart: what the first removes at its end is not the second's.
        let pid = getpid().as_raw_nonzero().get();
        let second = InstanceSocket::open(&places, Some(pid)).await.unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(InstanceSocket::open(&places, None).await.is_err(), "no file is replaced");
    }
}
