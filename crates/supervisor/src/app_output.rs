//! What the processes of an application of another user print: they have a pipe in the place of Highball's standard output
//! and error, and each line of it goes to the log, cleaned, with the application's name before it, and within limits.
//!
//! In reading order: [`lines`], [`budget`], [`relay`].

mod budget;
mod lines;
mod relay;

pub(crate) use relay::Relay;

use highball_config::{App, User};
use relay::OutputSource;
use rustix::fs::{fchmod, fchown, open, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{getegid, geteuid, Gid, Uid};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Writes a line that an application has printed to the log: the application's name, and the line.
pub type OutputSink = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How long the log may take to receive what was printed.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// The output of one application.
pub(crate) struct AppOutput {
    relay: Relay,
    source: Arc<OutputSource>,
    pipe: Option<AppPipe>,
}

/// The pipe of all its processes, from the first one on.
struct AppPipe {
    /// Whose it is.
    uid: u32,
    end: OwnedFd,
    reader: mpsc::Sender<oneshot::Sender<()>>,
}

impl AppOutput {
    pub(crate) fn new(app: &App, relay: Relay) -> AppOutput {
        AppOutput { relay, source: Arc::new(OutputSource::new(&app.name, app.max_output_bytes)), pipe: None }
    }

    /// The output of an application's companion, with its name and a limit for itself.
    pub(crate) fn of_companion(app: &App, name: &str, relay: Relay) -> AppOutput {
        let source = OutputSource::new(&companion_name(app, name), app.max_output_bytes);
        AppOutput { relay, source: Arc::new(source), pipe: None }
    }

    /// Applies a changed name and limit of the application.
    pub(crate) fn change_of_companion(&self, app: &App, name: &str) {
        self.source.change(&companion_name(app, name), app.max_output_bytes);
    }

    /// What reads and writes it.
    pub(crate) fn relay(&self) -> Relay {
        self.relay.clone()
    }

    /// Applies a changed name and limit.
    pub(crate) fn change(&self, app: &App) {
        self.source.change(&app.name, app.max_output_bytes);
    }

    /// The pipe that a process of this user prints into; `None`: Highball's own.
    ///
    /// # Errors
    /// The system has no pipe for it.
    #[allow(clippy::disallowed_methods)] // it is a descriptor of this process
    pub(crate) fn pipe(&mut self, user: Option<&User>) -> io::Result<OwnedFd> {
        let (uid, gid) =
            user.map_or_else(|| (geteuid().as_raw(), getegid().as_raw()), |user| (user.uid, user.gid));
        if self.pipe.as_ref().is_none_or(|pipe| pipe.uid != uid) {
            self.pipe = Some(self.open(uid, gid)?);
        }
        let pipe = self.pipe.as_ref().expect("it is open by now");
        // Opened separately: flags that one process sets, such as O_NONBLOCK, do not affect the next.
        let path = format!("/proc/self/fd/{}", pipe.end.as_raw_fd());
        Ok(open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn open(&self, uid: u32, gid: u32) -> io::Result<AppPipe> {
        let (out, end) = pipe_with(PipeFlags::CLOEXEC)?;
        // So that the user may open /dev/stdout.
        match fchown(&end, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
            // This process is not root then, and other users cannot reach the pipe by its number.
            Err(Errno::PERM) => fchmod(&end, Mode::from_raw_mode(0o666))?,
            changed => changed?,
        }
        let reader = self.relay.read(out, Arc::clone(&self.source))?;
        Ok(AppPipe { uid, end, reader })
    }

    /// Returns when what was printed so far is in the log; or after a while, if that cannot be written.
    pub(crate) async fn settle(&self) {
        let Some(pipe) = &self.pipe else { return };
        let (to, settled) = oneshot::channel();
        let ask = async {
            if pipe.reader.send(to).await.is_ok() {
                let _ = settled.await; // there is no answer when the process ends
            }
        };
        let _ = timeout(SETTLE_TIME, ask).await;
    }
}

fn companion_name(app: &App, name: &str) -> String {
    format!("{} {name}", app.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getgid, getuid};
    use std::fs::File;
    use std::io::Write;
    use std::sync::Mutex;

    fn myself() -> User {
        User::with_uid(getuid().as_raw(), getgid().as_raw())
    }

    fn output() -> (AppOutput, Arc<Mutex<Vec<String>>>) {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&lines);
        let sink: OutputSink = Arc::new(move |app, line| seen.lock().unwrap().push(format!("{app}: {line}")));
        let source = Arc::new(OutputSource::new("blog", None));
        (AppOutput { relay: Relay::new(sink), source, pipe: None }, lines)
    }

    #[tokio::test]
    async fn what_is_printed_is_there_when_it_has_settled() {
        let (mut output, lines) = output();
        let mut pipe = File::from(output.pipe(Some(&myself())).unwrap());
        write!(pipe, "one\n\x1b[31mtwo").unwrap();
        output.settle().await;
        assert_eq!(*lines.lock().unwrap(), ["blog: one", "blog: \\x1b[31mtwo"]);
        drop(output); // a process that still has the other end does not keep its reader alive
        while pipe.write_all(b"x").is_ok() {}
    }
}
