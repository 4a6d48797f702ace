//! A load generator that runs.

use crate::process_tree::Stat;
use crate::waiting::ended_within;
use crate::{interrupt, Failure};
use rustix::io::Errno;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// It is ended and waited for when this is dropped.
pub(super) struct Generator {
    name: String,
    child: Child,
    /// Files and not pipes: they are not read while it runs.
    output: File,
    complaints: File,
}

/// A generator that ended well.
pub(super) struct Ended {
    pub(super) output: String,
    /// CPU time of all its threads.
    pub(super) cpu_us: f64,
}

impl Generator {
    /// Starts this command.
    pub(super) fn start(command: &mut Command) -> Result<Generator, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failure = |error: std::io::Error| Failure(format!("{name} cannot be started: {error}"));
        let output = tempfile::tempfile().map_err(failure)?;
        let complaints = tempfile::tempfile().map_err(failure)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failure)?)
            .stderr(complaints.try_clone().map_err(failure)?)
            .spawn()
            .map_err(failure)?;
        Ok(Generator { name, child, output, complaints })
    }

    /// The same for a generator with one thread: it keeps to one CPU.
    ///
    /// It stands for clients on other machines. Where it moves between the CPUs, it drives the server's threads before it:
    /// what they then use depends on the scheduler, and more so the more threads a server has.
    pub(super) fn start_on_one_cpu(command: &mut Command) -> Result<Generator, Failure> {
        // A child has the CPUs of the thread that starts it, and this thread starts nothing else.
        let start = || keep_to_last_cpu().and_then(|()| Generator::start(command));
        std::thread::scope(|scope| scope.spawn(start).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Waits for its end, for `at_most`.
    pub(super) fn finish(mut self, at_most: Duration) -> Result<Ended, Failure> {
        let ended = ended_within(&self.child, at_most, &interrupt::came);
        let ended = ended.map_err(|error| self.failure(&format!("cannot be waited for: {error}")))?;
        if interrupt::came() {
            // Ctrl-C reaches it too, and then it tells of less than was wanted.
            return Err(interrupt::failure());
        }
        if !ended {
            return Err(self.failure(&format!("did not end within {} s", at_most.as_secs())));
        }
        // It has ended, and was not waited for yet: only now are its figures whole and still there.
        let cpu_us = Stat::of(self.child.id() as i32).map_or(0.0, |stat| stat.cpu_us());
        let status =
            self.child.wait().map_err(|error| self.failure(&format!("cannot be waited for: {error}")))?;
        if !status.success() {
            return Err(self.failure(&format!("failed ({status})")));
        }
        Ok(Ended { output: text_of(&mut self.output), cpu_us })
    }

    /// What it did, with its own words.
    pub(super) fn failure(&mut self, what: &str) -> Failure {
        let printed = text_of(&mut self.complaints) + &text_of(&mut self.output);
        let end = printed.char_indices().rev().nth(1000).map_or(0, |(at, _)| at);
        Failure(format!("{} {what}: {}", self.name, printed[end..].trim()))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Both fail where it has been waited for, and then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the calling thread to the last of the CPUs that it may use (sched_setaffinity(2)).
fn keep_to_last_cpu() -> Result<(), Failure> {
    let failure = |error: Errno| Failure(format!("the load generator cannot be kept to one CPU: {error}"));
    let usable = sched_getaffinity(None).map_err(failure)?;
    let mut one = CpuSet::new();
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| usable.is_set(*cpu)).unwrap_or(0);
    one.set(last);
    sched_setaffinity(None, &one).map_err(failure)
}

/// All of a file. An unreadable one is empty, and its reader then reports missing figures.
fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(script: &str) -> Result<Generator, Failure> {
        Generator::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn one_that_does_not_end_is_ended() -> Result<(), Failure> {
        let began = Instant::now();
        let generator = shell("exec sleep 60")?;
        let pid = generator.child.id() as i32;
        let words = generator.finish(Duration::from_millis(50)).map(|_| ()).unwrap_err().to_string();
        assert!(words.contains("did not end"), "{words}");
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(Stat::of(pid).is_none());
        Ok(())
    }

    #[test]
    fn one_kept_to_one_cpu_has_one_and_leaves_the_others_to_us() -> Result<(), Failure> {
        let ours = sched_getaffinity(None).expect("our CPUs");
        let generator = Generator::start_on_one_cpu(Command::new("nproc").env_remove("OMP_NUM_THREADS"))?;
        assert_eq!(generator.finish(Duration::from_secs(20))?.output.trim(), "1");
        assert_eq!(sched_getaffinity(None).expect("our CPUs"), ours);
        Ok(())
    }

    #[test]
    fn one_that_fails_says_why() -> Result<(), Failure> {
        let words = shell("echo no such host >&2; exit 3")?.finish(Duration::from_secs(20));
        let words = words.map(|_| ()).unwrap_err().to_string();
        assert!(words.contains("no such host") && words.contains('3'), "{words}");
        Ok(())
    }
}
