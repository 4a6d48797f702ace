//! Names and passwords for an application: without the right ones, neither its files nor Ruby answer.
//!
//! Hashing a password takes a thread of the pool for up to a second, so most requests are answered from memory. In reading
//! order:
//!
//! - [`credentials`]: what a request has;
//! - [`user_file`], [`password_hash`]: whose password it may be;
//! - [`known_logins`]: what was found right lately;
//! - [`failures`]: how many a client can try.
//!
//! The event loop asks [`BasicAuth::judge`]. It answers, or leaves the rest to [`BasicAuth::find_out`], which waits for the pool.

mod credentials;
mod failures;
mod known_logins;
mod password_hash;
mod user_file;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use highball_config::{App, BasicAuth as Settings};
use highball_users::User;
use tokio::task::spawn_local;

use crate::aside::{patiently, Ages, Memory, PoolShare, Recalled};
use crate::budget::Origin;
use crate::clock::now_ms;
use crate::message::refusal::Refusal;
use crate::message::request_head::{Head, Method};
use credentials::Credentials;
use failures::Failures;
use known_logins::{KnownLogins, Login};
use user_file::{UserFile, Users};

/// Requests of one application that wait for a password to be checked.
const MOST_WAITING: usize = 64;

/// When a client may try again that found too many others waiting, in seconds.
const BUSY_SECONDS: u32 = 2;

/// Where an authority looks for the answer to its challenge (RFC 8555 section 8.3): it has no password.
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// What a request may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is this user's.
    User(Rc<[u8]>),
    /// It is refused.
    Refused(Refusal),
}

/// What is known at once.
#[derive(Debug)]
pub(crate) enum Judged {
    /// All of it.
    At(Verdict),
    /// The rest is to be [found out](BasicAuth::find_out).
    Later(Question),
}

/// Whether somebody has the right password. The request counts as waiting.
#[derive(Debug)]
pub(crate) struct Question {
    credentials: Credentials,
    client: Option<Origin>,
    waiting: Waiting,
}

/// The users of one application.
#[derive(Debug)]
pub(crate) struct BasicAuth {
    settings: Settings,
    /// The name of the application, for the log.
    app: String,
    /// Whose rights the file is opened with.
    reader: Option<User>,
    /// The file, and when it was looked at last.
    file: Memory<(), Arc<UserFile>>,
    /// For the file.
    reads: PoolShare,
    /// One password of the application is checked at a time: so equal ones are checked once, and others have threads left.
    pool: PoolShare,
    /// The same for all applications together.
    all: PoolShare,
    known: RefCell<KnownLogins>,
    failures: RefCell<Failures>,
    waiting: Cell<usize>,
    has_looked: Cell<bool>,
}

/// A request that waits, while this lives.
#[derive(Debug)]
struct Waiting(Rc<BasicAuth>);

impl Waiting {
    fn of(auth: &Rc<BasicAuth>) -> Waiting {
        auth.waiting.set(auth.waiting.get() + 1);
        Waiting(Rc::clone(auth))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl BasicAuth {
    /// An application's, if it has one. `reads` are its threads to ask the file system, `all` the threads of all applications to
    /// check passwords.
    pub(crate) fn of(app: &App, reads: &PoolShare, all: &PoolShare) -> Option<Rc<BasicAuth>> {
        let settings = app.basic_auth.clone()?;
        Some(Rc::new(BasicAuth {
            settings,
            app: app.name.clone(),
            reader: app.runs_as.another().cloned(),
            file: Memory::of(1, Ages::LONG),
            reads: reads.clone(),
            pool: PoolShare::of_threads(1),
            all: all.clone(),
            known: RefCell::new(KnownLogins::new().expect("the system has random bytes")), // as `HashMap` needs them
            failures: RefCell::default(),
            waiting: Cell::new(0),
            has_looked: Cell::new(false),
        }))
    }

    /// Whether this is what the configuration says of an application.
    pub(crate) fn is_of(&self, app: &App) -> bool {
        app.basic_auth.as_ref() == Some(&self.settings) && app.runs_as.another() == self.reader.as_ref()
    }

    /// The value of `WWW-Authenticate` (RFC 7617).
    pub(crate) fn challenge(&self) -> String {
        format!("Basic realm=\"{}\", charset=\"UTF-8\"", self.settings.realm)
    }

    // --- What a request may do -----------------------------------------------------------------------

    /// What a request of this client may do, as far as that is known at once.
    pub(crate) fn judge(self: &Rc<Self>, head: Head<'_>, client: Option<Origin>) -> Judged {
        let Some(credentials) = Credentials::of(head) else {
            return Judged::At(Verdict::Refused(Refusal::LoginNeeded));
        };
        let file = match self.file.recall(&(), now_ms()) {
            Recalled::Fresh(file) => Some(file),
            Recalled::Aging(file) => {
                spawn_local(Rc::clone(self).look());
                Some(file)
            }
            Recalled::Nothing => None,
        };
        match file.and_then(|file| self.known_verdict(&file, &credentials, client)) {
            Some(verdict) => Judged::At(verdict),
            None if self.waiting.get() >= MOST_WAITING => Judged::At(busy()),
            None => Judged::Later(Question { credentials, client, waiting: Waiting::of(self) }),
        }
    }

    /// What needs no hash.
    fn known_verdict(
        &self,
        file: &UserFile,
        credentials: &Credentials,
        client: Option<Origin>,
    ) -> Option<Verdict> {
        let Ok(users) = &file.users else { return Some(Verdict::Refused(Refusal::UsersUnreadable)) };
        let login = self.login(users, credentials);
        if login.is_some_and(|login| self.known.borrow().has(&login, now_ms())) {
            return Some(Verdict::User(Rc::clone(&credentials.name)));
        }
        self.verdict_on_attempts(client)
    }

    fn verdict_on_attempts(&self, client: Option<Origin>) -> Option<Verdict> {
        let wait = self.failures.borrow().wait_seconds(client, now_ms());
        wait.map(|seconds| Verdict::Refused(Refusal::TooManyLogins { retry_after_seconds: seconds }))
    }

    /// `None`: there is no user of this name.
    fn login(&self, users: &Users, credentials: &Credentials) -> Option<Login> {
        users.mark_of(&credentials.name).map(|mark| self.known.borrow().login(credentials, mark))
    }

    /// What a request may do: on a thread of the pool.
    pub(crate) async fn find_out(self: Rc<Self>, question: Question) -> Verdict {
        let Question { credentials, client, waiting: _waiting } = question;
        let Some(file) = Rc::clone(&self).current_file().await else {
            return Verdict::Refused(Refusal::UsersUnreadable);
        };
        let Some(held) = self.pool.take_soon().await else { return busy() };
        // Who had the thread before may have found it out.
        if let Some(verdict) = self.known_verdict(&file, &credentials, client) {
            return verdict;
        }
        let Some(_all) = self.all.take_soon().await else { return busy() };
        let login = file.users.as_ref().ok().and_then(|users| self.login(users, &credentials));
        let (name, file_of_thread) = (Rc::clone(&credentials.name), Arc::clone(&file));
        let (name_of_thread, password) = (name.to_vec(), credentials.password);
        let check = move || {
            let users = file_of_thread.users.as_ref();
            users.is_ok_and(|users| users.has(&name_of_thread, &password))
        };
        match held.spend(check).await {
            Some((true, _held)) => {
                login.into_iter().for_each(|login| self.known.borrow_mut().add(login, now_ms()));
                Verdict::User(name)
            }
            Some((false, _held)) => {
                self.failures.borrow_mut().note(client, now_ms());
                self.verdict_on_attempts(client).unwrap_or(Verdict::Refused(Refusal::LoginNeeded))
            }
            None => busy(),
        }
    }

    // --- The file ------------------------------------------------------------------------------------

    /// The file as it is, or as it was if it cannot be looked at in time.
    async fn current_file(self: Rc<Self>) -> Option<Arc<UserFile>> {
        match self.file.recall(&(), now_ms()) {
            Recalled::Fresh(file) => return Some(file),
            Recalled::Aging(_) | Recalled::Nothing => {}
        }
        if !patiently(Rc::clone(&self).look()).await {
            let unread = UserFile { about: None, users: Err("it was not opened in time".into()) };
            self.file.put_off_until_learned((), Arc::new(unread), now_ms());
        }
        self.file.latest(&())
    }

    /// Reads the file, if it was not read lately or has changed.
    async fn look(self: Rc<Self>) {
        let Some(held) = self.reads.take_soon().await else {
            let unread = UserFile { about: None, users: Err("its file system does not answer".into()) };
            return self.file.put_off((), Arc::new(unread), now_ms());
        };
        if self.file.is_fresh(&(), now_ms()) == Some(true) {
            return;
        }
        let before = self.file.latest(&());
        let (path, user) = (self.settings.file.clone(), self.reader.clone());
        let about = before.as_ref().and_then(|file| file.about);
        let read = held.spend(move || UserFile::read(&path, user.as_ref(), about.as_ref())).await;
        let (read, _held) = read.unzip();
        match (read.flatten(), before) {
            (None, Some(same)) => self.file.learn((), same, now_ms()),
            (None, None) => {}
            (Some(read), before) => self.learn(read, before),
        }
    }

    fn learn(&self, read: UserFile, before: Option<Arc<UserFile>>) {
        // A file that has changed lately is read again and again, mostly with the same users.
        if before.as_ref().is_some_and(|before| read.has_users_of(before)) {
            return self.file.learn((), Arc::new(read), now_ms());
        }
        let path = self.settings.file.display();
        match (&read.users, before.map(|before| before.users.as_ref().err().cloned())) {
            (Err(error), Some(Some(before))) if *error == before => {}
            (Err(error), _) => tracing::error!(
                name: "basic_auth_unusable",
                application = self.app,
                %path,
                error,
                remedy = "Write it with `htpasswd -B`, readable for the user of the application. It is read again at the next request.",
                "cannot use the file of users (basic_auth): refusing all requests"
            ),
            (Ok(users), before) => {
                if before.is_some_and(|error| error.is_some()) {
                    tracing::info!(
                        name: "basic_auth_usable", application = self.app, %path, ?users, "the file of users can be used again"
                    );
                }
                if users.weak_lines > 0 {
                    tracing::warn!(
                        name: "basic_auth_weak",
                        application = self.app,
                        %path,
                        passwords = users.weak_lines,
                        remedy = "Set them again with `htpasswd -B`.",
                        "the file of users has passwords hashed with {{SHA}}, which are quick to guess"
                    );
                }
            }
        }
        self.file.learn((), Arc::new(read), now_ms());
    }

    /// Periodic work. The file is read before the first request needs it, so that the log soon says what is wrong with it.
    pub(crate) fn tick(self: &Rc<Self>, now_ms: u64) {
        if self.file.latest(&()).is_none() && !self.has_looked.replace(true) {
            spawn_local(Rc::clone(self).look());
        }
        self.known.borrow_mut().forget_old(now_ms);
        self.failures.borrow_mut().forget_old(now_ms);
    }
}

/// How many users an application has, and how many of their passwords are easy to find out from their hashes; or why its file
/// cannot be used. `None`: it has no such file.
pub fn count_users(app: &App) -> Option<Result<(usize, usize), String>> {
    let file = &app.basic_auth.as_ref()?.file;
    let read = UserFile::read(file, app.runs_as.another(), None)?;
    Some(read.users.map(|users| (users.count(), users.weak_lines)))
}

fn busy() -> Verdict {
    Verdict::Refused(Refusal::LoginsBusy { retry_after_seconds: BUSY_SECONDS })
}

/// Whether a request needs no password: a load balancer's to the application's `probe_path`, unless that is the page at the
/// root; or an authority's that certifies the host. Only what stands in the request exactly so.
pub(crate) fn is_open(head: Head<'_>, prefix_bytes: usize, probe_path: &str) -> bool {
    if !matches!(head.method, Method::Get | Method::Head) {
        return false;
    }
    let (path, query) = (head.path(), head.query());
    let token = path.strip_prefix(CHALLENGES).unwrap_or_default();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    if !token.is_empty() && token.iter().all(is_token) {
        return true;
    }
    let (probe, probe_query) = probe_path.split_once('?').unwrap_or((probe_path, ""));
    probe != "/" && &path[prefix_bytes..] == probe.as_bytes() && query == probe_query.as_bytes()
}

#[cfg(test)]
mod tests;
