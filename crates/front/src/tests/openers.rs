//! Openers for tests: each has its own user, answers as one would, and can be held up.

use std::collections::HashMap;
use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use highball_tenant::{answer_to, Answer};
use highball_users::User;

use super::runtime;

/// Nothing here takes that long, unless it never ends.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// What an opener does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Answers,
    /// It waits until it has another mood.
    Hangs,
    /// It has been killed.
    IsDead,
}

/// The opener of one user, and a folder of that user.
#[derive(Debug)]
pub(crate) struct Opener {
    pub(crate) user: User,
    folder: tempfile::TempDir,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mood: Mood,
    asked: usize,
    asking: usize,
    most_asking: usize,
}

impl Opener {
    /// Another one, of a user with these files in the folder `public`.
    pub(crate) fn with(files: &[(&str, &str)]) -> Arc<Opener> {
        highball_tenant::open_by(ALL.get_or_init(All::default));
        let mut all = ALL.get().unwrap().0.lock().unwrap();
        let user = User::with_uid(3_000_000_000 + all.len() as u32, 3_000_000_000);
        let state = State { mood: Mood::Answers, asked: 0, asking: 0, most_asking: 0 };
        let opener = Arc::new(Opener {
            user,
            folder: tempfile::tempdir().unwrap(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        all.insert(opener.user.uid, Arc::clone(&opener));
        drop(all);
        fs::create_dir(opener.public()).unwrap();
        files.iter().for_each(|(name, content)| opener.write(name, content));
        opener
    }

    pub(crate) fn public(&self) -> PathBuf {
        self.folder.path().join("public")
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: &str) {
        fs::write(self.public().join(name), content).unwrap();
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
        self.changed.notify_all();
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.state.lock().unwrap().asked
    }

    /// The most questions at the same time.
    pub(crate) fn most_asking(&self) -> usize {
        self.state.lock().unwrap().most_asking
    }

    fn answer(&self, question: &[u8], folder: Option<BorrowedFd<'_>>) -> io::Result<Answer> {
        let mut state = self.state.lock().unwrap();
        state.asked += 1;
        state.asking += 1;
        state.most_asking = state.most_asking.max(state.asking);
        state = self.changed.wait_while(state, |state| state.mood == Mood::Hangs).unwrap();
        state.asking -= 1;
        match state.mood {
            Mood::IsDead => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(answer_to(question, folder.map(|folder| folder.try_clone_to_owned()).transpose()?)),
        }
    }
}

/// All of them, by user.
#[derive(Debug, Default)]
struct All(Mutex<HashMap<u32, Arc<Opener>>>);

static ALL: OnceLock<All> = OnceLock::new();

impl highball_tenant::Openers for All {
    fn have(&self, user: Option<&User>) -> bool {
        user.is_some_and(|user| self.0.lock().unwrap().contains_key(&user.uid))
    }

    fn ask(
        &self,
        user: Option<&User>,
        question: &[u8],
        folder: Option<BorrowedFd<'_>>,
    ) -> io::Result<Answer> {
        let opener = Arc::clone(&self.0.lock().unwrap()[&user.unwrap().uid]);
        opener.answer(question, folder)
    }
}

/// Runs this as the front runs: on one thread, which asks no opener.
pub(crate) fn on_the_fronts_thread(test: impl Future<Output = ()>) {
    highball_tenant::never_ask_on_this_thread();
    let runtime = runtime();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await.expect("it ends in time") });
    runtime.shutdown_background();
}

/// Lets other tasks go on until this is so.
pub(crate) async fn wait_for(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
