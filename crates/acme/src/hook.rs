//! The program that makes entries in the DNS (DNS-01, RFC 8555 section 8.4): `PROGRAM present|cleanup NAME VALUE`.
//!
//! The supervisor reaps all children of this process, so that nothing else here learns how one ended. A shell between them reports it:
//! the program's output is one pipe, and what the shell writes at the end another.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{kill_process_group, Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::problem::Problem;

/// The longest that it may take: some wait until the entry is known everywhere.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much of its output is shown.
const MOST_BYTES: usize = 2000;
/// How a script ends that reports the status of the program before it.
const SCRIPT: &str = r#""$@" </dev/null 2>&1; printf %d $? >&2"#;

/// What is to be done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Present,
    Cleanup,
}

/// An entry of the type TXT.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Has the program do it.
///
/// # Errors
/// It cannot be started, takes too long, or has failed.
pub(crate) async fn run(program: &Path, action: Action, entry: &Entry) -> Result<(), Problem> {
    let verb = match action {
        Action::Present => "present",
        Action::Cleanup => "cleanup",
    };
    let what = |what: String| {
        Problem::new(
            format!("`acme_dns_hook`: {} {verb} {} {what}", program.display(), entry.name),
            "Run the program by hand as Highball's user, with the arguments `present NAME VALUE`, and see why it fails",
        )
    };
    let failed = |error: io::Error| what(format!("cannot be run: {error}"));
    let mut group = Group::start(program, verb, entry).map_err(failed)?;
    match timeout(PATIENCE, group.finish()).await {
        Err(_) => Err(what(format!("has not ended within {} s", PATIENCE.as_secs()))),
        Ok(Err(error)) => Err(failed(error)),
        Ok(Ok((status, _))) if status == "0" => Ok(()),
        Ok(Ok((status, output))) => {
            let output = output.trim().escape_debug().to_string().replace("\\n", " ").replace("\\\"", "\"");
            let output = if output.is_empty() { "and has written nothing".into() } else { output };
            let status =
                if status.is_empty() { "was killed" } else { &format!("has failed (status {status})") };
            Err(what(format!("{status}: {output}")))
        }
    }
}

/// The program, with what it has started. All of it ends when this is dropped too soon.
struct Group {
    id: Option<Pid>,
    output: Receiver,
    status: Receiver,
}

impl Group {
    fn start(program: &Path, verb: &str, entry: &Entry) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).arg(program).args([verb, &entry.name, &entry.value]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let (Some(output), Some(status)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("there are no pipes"));
        };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let receiver = |end: OwnedFd| Receiver::from_owned_fd(end);
        Ok(Group { id, output: receiver(output.into())?, status: receiver(status.into())? })
    }

    /// The status of the program, or nothing if it was killed with the shell, and what it has written. What it leaves running is not
    /// waited for.
    async fn finish(&mut self) -> io::Result<(String, String)> {
        let (mut status, mut output) = (Vec::new(), Vec::new());
        tokio::select! {
            biased;
            () = drain(&mut self.output, &mut output) => read_all(&mut self.status, &mut status).await?,
            read = read_all(&mut self.status, &mut status) => read?,
        }
        self.id = None; // the shell has ended, and the number may be another's
        read_rest(&self.output, &mut output);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(status), text(output)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Reads to the end, and keeps the beginning.
async fn drain(from: &mut (impl AsyncRead + Unpin), kept: &mut Vec<u8>) {
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        keep(kept, &piece[..length]);
    }
}

fn keep(kept: &mut Vec<u8>, piece: &[u8]) {
    kept.extend(&piece[..piece.len().min(MOST_BYTES - kept.len())]);
}

/// What is in the pipe by now.
fn read_rest(from: &Receiver, kept: &mut Vec<u8>) {
    let mut piece = [0; 1024];
    while kept.len() < MOST_BYTES {
        let Ok(length @ 1..) = from.try_read(&mut piece) else { return };
        keep(kept, &piece[..length]);
    }
}

async fn read_all(from: &mut Receiver, to: &mut Vec<u8>) -> io::Result<()> {
    from.take(16).read_to_end(to).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::Instant;

    fn program(folder: &Path, body: &str) -> PathBuf {
        let path = folder.join("hook");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        path
    }

    async fn outcome(body: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let entry = Entry { name: "_acme-challenge.a.test".into(), value: "va lue".into() };
        run(&program(folder.path(), body), Action::Present, &entry).await.map_err(|problem| problem.what)
    }

    #[tokio::test]
    async fn it_gets_the_entry() {
        let check = r#"[ "$1|$2|$3|$#" = "present|_acme-challenge.a.test|va lue|3" ]"#;
        assert_eq!(outcome(check).await, Ok(()));
    }

    #[tokio::test]
    async fn a_failure_shows_its_output() {
        let what = outcome("echo no such zone; echo hint >&2; exit 3").await.expect_err("failed");
        assert!(what.ends_with("has failed (status 3): no such zone hint"), "{what}");
        let what = outcome("kill -KILL $PPID; kill -KILL $$").await.expect_err("killed");
        assert!(what.contains("was killed"), "{what}");
        let what = outcome("printf '\\033[31m'; exit 1").await.expect_err("failed");
        assert!(!what.contains('\u{1b}'), "{what}");
    }

    #[tokio::test]
    async fn much_output_is_cut() {
        let what = outcome("head -c 300000 /dev/zero | tr '\\0' x; exit 1").await.expect_err("failed");
        assert!(what.len() < MOST_BYTES + 300, "{}", what.len());
    }

    #[tokio::test]
    async fn what_it_leaves_running_is_not_waited_for() {
        let began = Instant::now();
        assert_eq!(outcome("sleep 20 &").await, Ok(()));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn it_ends_with_the_attempt() {
        let folder = tempfile::tempdir().expect("a folder");
        let (alive, late) = (folder.path().join("alive"), folder.path().join("late"));
        let body = format!("touch {}; sleep 1; touch {}", alive.display(), late.display());
        let hook = program(folder.path(), &body);
        let entry = Entry { name: "a".into(), value: "b".into() };
        let until = async {
            while !alive.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = run(&hook, Action::Present, &entry) => panic!("it has ended"),
            () = until => {}
        }
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!late.exists());
    }
}
