//! Opening by another process. Where Highball was started as root, the server is not root, and has no user's rights: then a
//! process of each user, the *opener*, opens that user's files and passes their descriptors. What it answers is believed
//! no more than the user: every descriptor is judged again.
//!
//! Question and answer are one packet each, with at most one descriptor. A question is a kind, then numbers
//! (little-endian), then a path; its descriptor is the folder in which the path begins. An answer is a kind, then numbers.

use crate::{walk_limit, About, Kind, Links, OpenError, Purpose, Request, Resolver};
use highball_spawner::channel::{receive, send, Received};
use highball_users::{OutOfReach, User};
use rustix::fs::{fstatfs, memfd_create, openat, statat, AtFlags, FileType, MemfdFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::process::{set_dumpable_behavior, DumpableBehavior};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The magic number of files in memory (statfs(2)).
const TMPFS: u32 = 0x0102_1994;
/// Numbers of a surveyed name, and their bytes.
const NUMBERS: usize = 9;
const NUMBERS_BYTES: usize = NUMBERS * 8;
/// The longest name.
const NAME_BYTES: usize = 255;

/// An answer of a user's process, with its descriptor.
pub type Answer = (Vec<u8>, Option<OwnedFd>);

/// Passes questions on to the openers.
pub trait Openers: Send + Sync {
    /// Whether there can be one of this user; `None` is root.
    fn have(&self, user: Option<&User>) -> bool;

    /// Asks the one of this user, and waits for the answer.
    ///
    /// # Errors
    /// It does not answer in time.
    fn ask(&self, user: Option<&User>, question: &[u8], folder: Option<BorrowedFd<'_>>)
        -> io::Result<Answer>;
}

static OPENERS: OnceLock<&dyn Openers> = OnceLock::new();

/// Has files opened by these from here on.
pub fn open_by(openers: &'static dyn Openers) {
    let _ = OPENERS.set(openers); // once in a process
}

/// The openers of this user's files; `None`: this process opens them.
pub(crate) fn openers_of(user: Option<&User>) -> Option<&'static dyn Openers> {
    OPENERS.get().copied().filter(|openers| openers.have(user))
}

thread_local! {
    static IS_FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread ask no opener from here on, as others depend on it and an answer may take long.
pub fn never_ask_on_this_thread() {
    IS_FORBIDDEN.set(true);
}

/// Asks an opener.
///
/// # Errors
/// It does not answer in time.
fn ask(
    openers: &dyn Openers,
    user: Option<&User>,
    question: &Question,
    folder: Option<BorrowedFd<'_>>,
) -> io::Result<Answer> {
    if IS_FORBIDDEN.get() {
        debug_assert!(false, "a thread that must not wait for an opener asks one: {question:?}");
        return Err(io::Error::other("this thread asks no opener"));
    }
    openers.ask(user, &question.encode(), folder)
}

/// Whether another process opens this user's files: then looking for them may take as long as that user likes.
pub fn is_by_opener(user: Option<&User>) -> bool {
    openers_of(user).is_some()
}

/// A request to an opener.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// Open something in the folder.
    Open(Request),
    /// Open the folder itself, to read its names.
    List,
    /// Report what is known about each name in the folder, up to this limit.
    Survey(u32),
    /// Report whether this can be read or entered.
    Reach(PathBuf),
    /// Report the memory of these processes together.
    Memory(Vec<i32>),
}

impl Question {
    fn encode(&self) -> Vec<u8> {
        match self {
            Question::Open(Request { name, links, purpose }) => {
                let (purpose, mode) = match purpose {
                    Purpose::Read => (0, 0),
                    Purpose::Append { mode } => (1, *mode),
                    Purpose::Folder => (2, 0),
                    Purpose::Look => (3, 0),
                };
                let mut bytes = vec![0, *links as u8, purpose];
                bytes.extend(mode.to_le_bytes());
                bytes.extend(name.as_os_str().as_bytes());
                bytes
            }
            Question::List => vec![1],
            Question::Survey(limit) => [&[2][..], &limit.to_le_bytes()].concat(),
            Question::Reach(path) => [&[3], path.as_os_str().as_bytes()].concat(),
            Question::Memory(pids) => {
                [4].into_iter().chain(pids.iter().flat_map(|pid| pid.to_le_bytes())).collect()
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Question> {
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        match bytes {
            [0, links, purpose, a, b, c, d, name @ ..] => {
                let all = [Links::Beneath, Links::Anywhere, Links::Refused];
                let links = all.into_iter().find(|known| *known as u8 == *links)?;
                let purpose = match purpose {
                    0 => Purpose::Read,
                    1 => Purpose::Append { mode: u32::from_le_bytes([*a, *b, *c, *d]) & 0o777 },
                    2 => Purpose::Folder,
                    3 => Purpose::Look,
                    _ => return None,
                };
                Some(Question::Open(Request { name: path(name), links, purpose }))
            }
            [1] => Some(Question::List),
            [2, a, b, c, d] => Some(Question::Survey(u32::from_le_bytes([*a, *b, *c, *d]))),
            [3, name @ ..] => Some(Question::Reach(path(name))),
            [4, pids @ ..] => {
                let pids = pids.chunks(4).map(|pid| Some(i32::from_le_bytes(pid.try_into().ok()?)));
                Some(Question::Memory(pids.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}

const OPENED: u8 = 0;
const FAILED: u8 = 1;
const BARRIER: u8 = 2;
const MEASURED: u8 = 3;

// --- the server's side

/// Opens by the openers what the request names.
pub(crate) fn open(
    openers: &dyn Openers,
    user: Option<&User>,
    folder: Option<BorrowedFd<'_>>,
    request: &Request,
) -> Result<OwnedFd, Errno> {
    descriptor(ask(openers, user, &Question::Open(request.clone()), folder))
}

/// Opens a folder for reading its names.
pub(crate) fn list(
    openers: &dyn Openers,
    user: Option<&User>,
    folder: BorrowedFd<'_>,
) -> Result<OwnedFd, Errno> {
    descriptor(ask(openers, user, &Question::List, Some(folder)))
}

/// What is known about each name in a folder.
pub(crate) fn survey(
    openers: &dyn Openers,
    user: Option<&User>,
    folder: BorrowedFd<'_>,
    limit: usize,
) -> Result<Vec<(OsString, About)>, OpenError> {
    let question = Question::Survey(u32::try_from(limit).unwrap_or(u32::MAX));
    let failed = |errno| OpenError::of(errno, Purpose::Folder, Links::Refused, user);
    let listing = match descriptor(ask(openers, user, &question, Some(folder))) {
        Err(Errno::OVERFLOW) => return Err(OpenError::TooManyNames { limit }),
        listing => listing.map_err(failed)?,
    };
    // A file of any other kind could keep its reader waiting.
    if fstatfs(&listing).map_err(failed)?.f_type as u32 != TMPFS {
        return Err(OpenError::Io(misunderstood()));
    }
    let mut listing = File::from(listing);
    let mut bytes = Vec::new();
    let most = (limit as u64).saturating_mul((NUMBERS_BYTES + NAME_BYTES + 1) as u64);
    listing.rewind().and_then(|()| listing.take(most).read_to_end(&mut bytes)).map_err(OpenError::Io)?;
    Ok(surveyed(&bytes))
}

/// Looks whether the user may read a file, or enter a folder, at an absolute path.
///
/// # Errors
/// The user may not; the error names the path that is closed.
pub fn reaches(user: &User, path: &Path) -> Result<(), OutOfReach> {
    let Some(openers) = openers_of(Some(user)) else { return user.reaches(path) };
    let out = |barrier: &Path, error| OutOfReach::new(user.name.clone(), path.into(), barrier.into(), error);
    let question = Question::Reach(path.to_owned());
    let (answer, _) = ask(openers, Some(user), &question, None).map_err(|error| out(path, error))?;
    match answer[..] {
        [OPENED] => Ok(()),
        [BARRIER, a, b, c, d, levels] => {
            let barrier = path.ancestors().nth(levels.into()).unwrap_or(path);
            Err(out(barrier, io::Error::from_raw_os_error(i32::from_le_bytes([a, b, c, d]))))
        }
        _ => Err(out(path, misunderstood())),
    }
}

/// The memory that processes of this user have together and do not share with others, in bytes. Ended processes have none.
///
/// # Errors
/// Highball cannot inspect one of them, or it takes too long.
pub fn own_memory(user: Option<&User>, pids: &[i32]) -> io::Result<u64> {
    let Some(openers) = openers_of(user) else { return memory_now(pids) };
    let (answer, _) = ask(openers, user, &Question::Memory(pids.to_vec()), None)?;
    match &answer[..] {
        [MEASURED, bytes @ ..] => Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| misunderstood())?)),
        [FAILED, a, b, c, d] => Err(io::Error::from_raw_os_error(i32::from_le_bytes([*a, *b, *c, *d]))),
        _ => Err(misunderstood()),
    }
}

fn memory_now(pids: &[i32]) -> io::Result<u64> {
    let has_ended = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
    };
    let each = pids.iter().map(|pid| match highball_proc::own_bytes(*pid) {
        Err(error) if has_ended(&error) => Ok(0),
        measured => measured,
    });
    each.sum()
}

fn descriptor(answer: io::Result<Answer>) -> Result<OwnedFd, Errno> {
    let (answer, descriptor) = answer.map_err(|_| Errno::TIMEDOUT)?; // whatever kept it from answering
    match (&answer[..], descriptor) {
        ([OPENED], Some(descriptor)) => Ok(descriptor),
        ([FAILED, a, b, c, d], _) => {
            let errno = i32::from_le_bytes([*a, *b, *c, *d]);
            Err(Errno::from_io_error(&io::Error::from_raw_os_error(errno)).unwrap_or(Errno::IO))
        }
        _ => Err(Errno::PROTO),
    }
}

fn misunderstood() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the opener's answer is invalid")
}

// --- the opener's side

/// Opens files for the server, as the user of this process, until the server closes the socket.
pub fn serve(socket: OwnedFd) -> ExitCode {
    // Other processes of the user must not change its answers.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::thread::set_name(c"highball-opener");
    loop {
        let (bytes, folder) = match receive(&socket, true) {
            Ok(Received::Packet(bytes, folder)) => (bytes, folder),
            Ok(Received::CutOff) => (Vec::new(), None),
            Ok(Received::Closed) | Err(_) => return ExitCode::SUCCESS,
        };
        let (answer, descriptor) = answer_to(&bytes, folder);
        if send(&socket, &answer, descriptor.as_ref().map(AsFd::as_fd)).is_err() {
            return ExitCode::FAILURE;
        }
    }
}

/// What an opener answers, with the rights of this process.
pub fn answer_to(question: &[u8], folder: Option<OwnedFd>) -> Answer {
    match Question::decode(question) {
        Some(question) => answer(question, folder),
        None => (failed(Errno::INVAL), None),
    }
}

fn answer(question: Question, folder: Option<OwnedFd>) -> Answer {
    let folder = folder.as_ref().map_or(CWD, |folder| folder.as_fd());
    let opened = match question {
        Question::Open(request) => Resolver::available().descriptor(folder, &request),
        Question::List => {
            openat(folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        }
        Question::Survey(limit) => survey_now(folder, limit as usize),
        Question::Memory(pids) => {
            let measured = memory_now(&pids).map(|bytes| [&[MEASURED], &bytes.to_le_bytes()[..]].concat());
            let errno = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
            return (measured.unwrap_or_else(|error| failed(errno(&error))), None);
        }
        Question::Reach(path) => {
            return (
                highball_users::barrier(&path).map_or(vec![OPENED], |(barrier, error)| {
                    let levels = path.ancestors().position(|part| part == barrier).unwrap_or_default();
                    let errno = error.raw_os_error().unwrap_or_default();
                    [&[BARRIER], &errno.to_le_bytes()[..], &[u8::try_from(levels).unwrap_or(0)]].concat()
                }),
                None,
            )
        }
    };
    match opened {
        Ok(descriptor) => (vec![OPENED], Some(descriptor)),
        Err(errno) => (failed(errno), None),
    }
}

fn failed(errno: Errno) -> Vec<u8> {
    [&[FAILED], &errno.raw_os_error().to_le_bytes()[..]].concat()
}

fn survey_now(folder: BorrowedFd<'_>, limit: usize) -> Result<OwnedFd, Errno> {
    let list = openat(folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut listing = Vec::new();
    for (name, _) in walk_limit(list, limit)? {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let Ok(stat) = statat(folder, &name, flags) else { continue }; // it has gone meanwhile
        let about = About::of(&stat);
        listing.push(name.len() as u8);
        listing.extend(name.as_bytes());
        let mode = u64::from(stat.st_mode);
        let ((modified, modified_ns), (changed, changed_ns)) = (about.modified, about.changed);
        let times = [modified, modified_ns, changed, changed_ns].map(|time| time as u64);
        let numbers = [mode, u64::from(about.uid), about.id.0, about.id.1, about.bytes];
        numbers.into_iter().chain(times).for_each(|number| listing.extend(number.to_le_bytes()));
    }
    let mut file = File::from(memfd_create(c"highball-survey", MemfdFlags::CLOEXEC)?);
    file.write_all(&listing).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(file.into())
}

/// What [`survey_now`] has written, as far as it is valid.
fn surveyed(mut bytes: &[u8]) -> Vec<(OsString, About)> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let Some((name, rest)) = rest.split_at_checked((*length).into()) else { break };
        let Some((numbers, rest)) = rest.split_at_checked(NUMBERS_BYTES) else { break };
        bytes = rest;
        let mut all = numbers.chunks_exact(8).map(|number| number.try_into().map_or(0, u64::from_le_bytes));
        let mut next = || all.next().unwrap_or_default();
        let mode = next() as u32;
        let about = About {
            kind: Kind::of(FileType::from_raw_mode(mode)),
            mode: mode & 0o7777,
            uid: next() as u32,
            id: (next(), next()),
            bytes: next(),
            modified: (next() as i64, next() as i64),
            changed: (next() as i64, next() as i64),
        };
        found.push((OsStr::from_bytes(name).into(), about));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is stopped.
    struct Stopped;

    impl Openers for Stopped {
        fn have(&self, _: Option<&User>) -> bool {
            true
        }

        fn ask(&self, _: Option<&User>, _: &[u8], _: Option<BorrowedFd<'_>>) -> io::Result<Answer> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    #[test]
    fn an_opener_that_does_not_answer_is_distinguished_from_a_lease() {
        let surveyed = survey(&Stopped, None, CWD, 1);
        assert!(matches!(surveyed, Err(OpenError::NoAnswer)), "{surveyed:?}");
    }

    #[test]
    #[cfg(debug_assertions)] // else it is an error
    #[should_panic(expected = "must not wait for an opener")]
    fn a_thread_that_must_not_wait_asks_none() {
        never_ask_on_this_thread();
        let _ = list(&Stopped, None, CWD);
    }
}
