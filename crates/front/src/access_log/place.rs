//! Where an access log is, and how it is opened.
//!
//! As root, a log in a folder that only root can write to is opened by root. A log elsewhere belongs to its
//! application, and is opened with the rights of that application's user, as a regular file: a link
//! there would have root write wherever it leads, and a named pipe or a device would hold the server up.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use highball_tenant::TenantFolder;
use highball_users::{may_change_users, with_rights_of, NotOwn, OwnPlace, User};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{openat, Mode, OFlags};

use crate::line_buffer::LineEnds;

/// The mode of a new log, before the umask.
const MODE: u32 = 0o666;
/// How long something that takes nothing for now is waited for: a pipe, or a terminal.
const WRITABLE_WITHIN: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// `-` is standard output.
    pub(crate) path: PathBuf,
    /// Whose log it is, if it is the log of another user's application.
    pub(crate) user: Option<User>,
}

/// An open log.
#[derive(Debug)]
pub(crate) struct OpenLog {
    file: File,
    /// With whose rights it is written, if not with this process's: it counts against the user's quota.
    user: Option<User>,
    ends: LineEnds,
}

/// The names of standard output, and of standard error.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
const STANDARD_ERROR: [&str; 3] = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];

impl Place {
    /// Whether this is standard output or standard error.
    pub(super) fn is_in_terminal(&self) -> bool {
        self.is_one_of(&STANDARD_OUTPUT) || self.is_one_of(&STANDARD_ERROR)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        self.path.to_str().is_some_and(|path| names.contains(&path))
    }

    /// Opens it for appending. This may take long, and is not for the event loop.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    #[allow(clippy::disallowed_methods)] // by path where this process has no rights but its own
    pub(crate) fn open(&self) -> Result<OpenLog, String> {
        let text = |error: io::Error| error.to_string();
        let own = |file: io::Result<OwnedFd>| {
            file.map(|file| OpenLog::new(file.into(), None)).map_err(|error| error.to_string())
        };
        if self.is_one_of(&STANDARD_OUTPUT) {
            return own(io::stdout().as_fd().try_clone_to_owned());
        }
        if self.is_one_of(&STANDARD_ERROR) {
            return own(io::stderr().as_fd().try_clone_to_owned());
        }
        if let Some(open) = BY_ANOTHER.get() {
            return match (open(&self.path), &self.user) {
                (Ok(file), _) => Ok(OpenLog::new(file, None)),
                // Written with the rights of this process: it has none that the user lacks.
                (Err(_), Some(user)) => Ok(OpenLog { user: None, ..self.open_as(user)? }),
                (Err(error), None) => Err(error.to_string()),
            };
        }
        if !may_change_users() {
            let file = OpenOptions::new().create(true).append(true).open(&self.path).map_err(text)?;
            return Ok(OpenLog::new(file, None));
        }
        match (OwnPlace::of(&self.path), &self.user) {
            (Ok(place), _) => own(open_own(&place)),
            (Err(_), Some(user)) => self.open_as(user),
            (Err(problem), None) => Err(advice(problem)),
        }
    }

    fn open_as(&self, user: &User) -> Result<OpenLog, String> {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err("it is a folder; name a file".into());
        };
        let in_folder = |error| format!("the folder {}: {error}", folder.display());
        let folder = TenantFolder::open(folder, Some(user)).map_err(in_folder)?;
        let file = folder.append(name, MODE).map_err(|error| error.to_string())?;
        Ok(OpenLog::new(file, Some(user.clone())))
    }
}

fn advice(problem: NotOwn) -> String {
    match problem {
        NotOwn::OfOthers { .. } => format!(
            "{problem}, and Highball runs as root: a user who can change that could make root write to any file. Choose a \
             folder that belongs to root, such as /var/log/highball, or write this line into the [[app]] of an application: \
             the log is then written as that application's user"
        ),
        _ => problem.to_string(),
    }
}

/// Opens a log as root, in a folder that only root can write to.
///
/// # Errors
/// What is wrong, and what to do.
pub fn open_log_of_root(path: &Path) -> Result<OwnedFd, String> {
    let place = OwnPlace::of(path).map_err(advice)?;
    open_own(&place).map_err(|error| error.to_string())
}

/// Opens a log for appending.
pub type OpenLogBy = Box<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// How logs are opened that are root's, if another process does that.
static BY_ANOTHER: OnceLock<OpenLogBy> = OnceLock::new();

/// Has another process open the logs that are root's, from here on.
pub fn open_access_logs_by(open: OpenLogBy) {
    let _ = BY_ANOTHER.set(open); // once in a process
}

/// Without waiting for a reader, where it is a named pipe of root's.
#[allow(clippy::disallowed_methods)] // only root can write there
fn open_own(place: &OwnPlace) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    openat(&place.folder, &place.name, flags, Mode::from_raw_mode(MODE)).map_err(|errno| match errno {
        rustix::io::Errno::NXIO => io::Error::other("it is a named pipe without a reader, or a socket"),
        other => other.into(),
    })
}

impl OpenLog {
    fn new(file: File, user: Option<User>) -> OpenLog {
        OpenLog { file, user, ends: LineEnds::default() }
    }

    /// Writes all lines. This may take long, and is not for the event loop.
    ///
    /// # Errors
    /// Why it cannot be written, and the lines that are missing.
    pub(crate) fn write<'a>(&mut self, lines: &'a [u8]) -> Result<(), (io::Error, &'a [u8])> {
        let OpenLog { file, user, ends } = self;
        let written = with_rights_of(user.as_ref(), || ends.write(lines, |bytes| write_some(file, bytes)));
        written.unwrap_or_else(|error| Err((error, lines)))
    }
}

/// Waits until it can write, if `file` does not block.
fn write_some(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    match file.write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            if poll(&mut [PollFd::new(&*file, PollFlags::OUT)], Some(&WRITABLE_WITHIN))? == 0 {
                return Err(error);
            }
            file.write(bytes)
        }
        written => written,
    }
}
