//! The processes that open files for the server, where that is not root: one of each user, and a second and third one where
//! it is at something. A user can hold up its own; then the asking ends after a while, and that process is replaced. Long
//! idle ones are ended: with many users, all of them together would take much memory.

use highball_front::open_access_logs_by;
use highball_spawner::channel::{pair, receive, send, Received};
use highball_spawner::Role;
use highball_supervisor::{checkpoint, Client, Launcher};
use highball_tenant::Answer;
use highball_users::User;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::warn;

/// Processes of a user at a time.
const MOST: usize = 3;
/// Time for an answer. The thread that serves all clients waits for none.
const TIME: Duration = Duration::from_secs(2);
/// An opener that was asked nothing for this time is ended, within the same time again.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// The environment variable that names another time, in seconds. For tests only.
const IDLE_VARIABLE: &str = "HIGHBALL_OPENER_IDLE_SECONDS";

/// After a process that has not answered, or two that were killed before they did, none of its user is asked for this
/// time; the double after the next one, and so on.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The processes that open files for this one.
static OPENERS: OnceLock<Openers> = OnceLock::new();

/// Has files opened by processes that may, where this one is not root.
pub(crate) fn open_files_by(launcher: &Launcher) {
    if let Launcher::Spawner(spawner) = launcher {
        let openers = OPENERS.get_or_init(|| Openers::new(Arc::clone(spawner)));
        highball_tenant::open_by(openers);
        let spawner = Arc::clone(spawner);
        open_access_logs_by(Box::new(move |path| spawner.open_log(path).map(File::from)));
    }
}

/// The application at this path is this user's.
pub(super) fn know(path: &Path, uid: u32) {
    OPENERS.get().inspect(|openers| openers.know(path, uid));
}

/// Ends the processes that open files, and that are idle for long.
pub(crate) async fn end_idle() {
    if let Some(openers) = OPENERS.get() {
        openers.end_idle().await;
    }
}

/// All openers.
#[derive(Debug)]
struct Openers {
    spawner: Arc<Client>,
    /// An application of each user, by which the spawner knows the user.
    apps: Mutex<HashMap<u32, PathBuf>>,
    users: Mutex<HashMap<u32, Arc<OpenersOfUser>>>,
    /// One has been started.
    started: Notify,
}

impl Openers {
    fn new(spawner: Arc<Client>) -> Openers {
        Openers { spawner, apps: Mutex::default(), users: Mutex::default(), started: Notify::new() }
    }

    /// The application at this path is this user's.
    fn know(&self, path: &Path, uid: u32) {
        lock(&self.apps).insert(uid, path.to_owned());
    }

    fn of(&self, uid: u32) -> Arc<OpenersOfUser> {
        Arc::clone(lock(&self.users).entry(uid).or_default())
    }

    fn start(&self, uid: u32) -> io::Result<Opener> {
        let app = lock(&self.apps).get(&uid).cloned();
        let app = app.ok_or_else(|| io::Error::other("this user has no application"))?;
        let (ours, theirs) = pair()?;
        let (_, pidfd) = self.spawner.start(&app, uid, Role::Opener, theirs.as_fd())?;
        self.started.notify_one();
        Ok(Opener { socket: ours, pidfd })
    }

    /// Ends openers that are idle for long. Sleeps while there are none.
    async fn end_idle(&'static self) {
        let idle_time = idle_time();
        loop {
            if !self.has_some() {
                self.started.notified().await;
            }
            sleep(idle_time).await;
            let unused = self.take_unused();
            if unused.is_empty() {
                continue;
            }
            // Who wants one from here on finds another, or starts one: these are asked nothing any more.
            checkpoint::pass("opener.taken").await;
            let ended = spawn_blocking(move || unused.into_iter().for_each(|opener| self.end(opener)));
            let _ = ended.await; // it does not panic
            checkpoint::pass("opener.ended").await;
        }
    }

    fn all_users(&self) -> Vec<Arc<OpenersOfUser>> {
        lock(&self.users).values().cloned().collect()
    }

    fn has_some(&self) -> bool {
        self.all_users().iter().any(|user| user.has_some())
    }

    fn take_unused(&self) -> Vec<Opener> {
        self.all_users().iter().flat_map(|user| user.take_unused()).collect()
    }

    /// Kills the opener: if its user has stopped it, it does not notice that its socket is closed.
    fn end(&self, opener: Opener) {
        let _ = self.spawner.signal(opener.pidfd.as_fd(), Signal::KILL); // it may have ended
    }

    fn asked(&self, uid: u32, question: &[u8], folder: Option<BorrowedFd<'_>>) -> io::Result<Answer> {
        let until = Instant::now() + TIME;
        let user = self.of(uid);
        let mut opener = match user.take(until)? {
            Some(idle) => idle,
            None => self.start(uid).inspect_err(|_| user.lost(false))?,
        };
        let mut answer = opener.ask(question, folder, until);
        if matches!(&answer, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            // It was killed. The new one may be killed, too: one retry only.
            opener = self.start(uid).inspect_err(|_| user.lost(false))?;
            answer = opener.ask(question, folder, until);
        }
        match &answer {
            Ok(_) => user.give_back(opener),
            Err(error) => {
                let is_stuck = error.kind() == io::ErrorKind::WouldBlock;
                let is_killed_again = error.kind() == io::ErrorKind::BrokenPipe;
                if is_stuck {
                    warn!(
                        name: "opener_replaced",
                        uid,
                        "no answer from the process that opens files of this user, which is replaced: the file system does \
                         not answer, or the user has stopped the process"
                    );
                }
                self.end(opener);
                user.lost(is_stuck || is_killed_again);
            }
        }
        answer
    }
}

impl highball_tenant::Openers for Openers {
    fn have(&self, user: Option<&User>) -> bool {
        lock(&self.apps).contains_key(&uid(user))
    }

    fn ask(
        &self,
        user: Option<&User>,
        question: &[u8],
        folder: Option<BorrowedFd<'_>>,
    ) -> io::Result<Answer> {
        self.asked(uid(user), question, folder)
    }
}

fn idle_time() -> Duration {
    let seconds = std::env::var(IDLE_VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(IDLE_TIME)
}

fn uid(user: Option<&User>) -> u32 {
    user.map_or(0, |user| user.uid)
}

/// One process.
#[derive(Debug)]
struct Opener {
    socket: OwnedFd,
    pidfd: OwnedFd,
}

impl Opener {
    fn ask(&self, question: &[u8], folder: Option<BorrowedFd<'_>>, until: Instant) -> io::Result<Answer> {
        send(&self.socket, question, folder)?;
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        set_socket_timeout(&self.socket, Timeout::Recv, Some(left))?;
        match receive(&self.socket, true)? {
            Received::Packet(bytes, descriptor) => Ok((bytes, descriptor)),
            Received::CutOff => Err(io::ErrorKind::InvalidData.into()),
            Received::Closed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The processes of a user.
#[derive(Debug, Default)]
struct OpenersOfUser {
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The opener that was given back last is taken first.
    idle: Vec<Opener>,
    busy: usize,
    /// Those at the beginning of `idle` that were not taken since the last look for such.
    unused: usize,
    /// Openers that have not answered since one has.
    stuck: u32,
    paused_until: Option<Instant>,
}

impl OpenersOfUser {
    /// An idle opener; `None`: one may be started. Either has to be given back, or lost.
    fn take(&self, until: Instant) -> io::Result<Option<Opener>> {
        let mut state = lock(&self.state);
        loop {
            if state.paused_until.is_some_and(|paused_until| Instant::now() < paused_until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if let Some(opener) = state.idle.pop() {
                state.busy += 1;
                state.unused = state.unused.min(state.idle.len());
                return Ok(Some(opener));
            }
            if state.busy < MOST {
                state.busy += 1;
                return Ok(None);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let waited = self.given_back.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_some(&self) -> bool {
        let state = lock(&self.state);
        state.busy > 0 || !state.idle.is_empty()
    }

    /// Openers that were idle all the time since the last call.
    fn take_unused(&self) -> Vec<Opener> {
        let mut state = lock(&self.state);
        let unused = state.unused;
        let taken = state.idle.drain(..unused).collect();
        state.unused = state.idle.len();
        taken
    }

    fn give_back(&self, opener: Opener) {
        let mut state = lock(&self.state);
        state.busy -= 1;
        state.stuck = 0;
        state.idle.push(opener);
        self.given_back.notify_one();
    }

    fn lost(&self, is_to_pause: bool) {
        let mut state = lock(&self.state);
        state.busy -= 1;
        if is_to_pause {
            let pause = PAUSE.saturating_mul(1 << state.stuck.min(16)).min(LONGEST_PAUSE);
            state.stuck += 1;
            state.paused_until = Some(Instant::now() + pause);
        }
        self.given_back.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opener() -> (Opener, OwnedFd) {
        let (socket, theirs) = pair().unwrap();
        let pidfd = socket.try_clone().unwrap();
        (Opener { socket, pidfd }, theirs)
    }

    #[test]
    fn one_that_is_stuck_is_waited_for_once_and_then_its_user_is_not_asked_for_a_while() {
        let user = OpenersOfUser::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        assert!(user.take(soon()).unwrap().is_none(), "one may be started");
        let (stuck, _theirs) = opener();
        assert_eq!(stuck.ask(b"?", None, soon()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        user.lost(true);
        assert_eq!(user.take(soon()).unwrap_err().kind(), io::ErrorKind::TimedOut);
        lock(&user.state).paused_until = None;
        assert!(user.take(soon()).is_ok());
        user.lost(true);
        let pause = lock(&user.state).paused_until.unwrap() - Instant::now();
        assert!(pause > PAUSE, "the second time it is longer: {pause:?}");
    }

    #[test]
    fn there_are_three_of_a_user_and_they_are_used_again() {
        let user = OpenersOfUser::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        for _ in 0..MOST {
            assert!(user.take(soon()).unwrap().is_none());
        }
        assert!(user.take(soon()).is_err());
        user.give_back(opener().0);
        assert!(user.take(soon()).unwrap().is_some());
        let (gone, theirs) = opener();
        drop(theirs);
        assert_eq!(gone.ask(b"?", None, soon()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn those_that_are_not_taken_between_two_looks_are_unused() {
        let user = OpenersOfUser::default();
        let take = || user.take(Instant::now()).unwrap();
        assert!(!user.has_some());
        for _ in 0..MOST {
            assert!(take().is_none());
        }
        assert!(user.has_some(), "they are busy");
        for _ in 0..MOST {
            user.give_back(opener().0);
        }
        assert!(user.take_unused().is_empty(), "they were busy since the last look");
        let (one, another) = (take().unwrap(), take().unwrap());
        assert!(user.take_unused().len() == 1 && user.has_some(), "one was idle; the others are busy");
        user.give_back(one);
        assert!(user.take_unused().is_empty());
        user.give_back(another);
        let last = take().unwrap();
        assert_eq!(user.take_unused().len(), 1, "the same one is taken again and again");
        user.give_back(last);
        assert!(user.take_unused().is_empty(), "it was busy");
        assert_eq!(user.take_unused().len(), 1);
        assert!(!user.has_some());
        assert!(take().is_none(), "one may be started");
    }
}
