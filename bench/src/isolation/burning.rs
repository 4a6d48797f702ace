//! What makes the burners burn, and again when they have ended.
//!
//! Their lives are the same inside and outside: a killed burner begins again at once, a burner that does not boot
//! some seconds later, and an endless request goes on.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};

use super::server_folder::ServerFolder;
use super::{Way, BURNERS};
use crate::Failure;

/// What has ended begins again after this: the next request, or the next process.
const BEGINS_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The time until a failed boot is tried again: Highball looks that often for changes of the application.
const BOOTS_AGAIN_AFTER: Duration = Duration::from_secs(3);
/// How often it is changed.
const CHANGED_EVERY: Duration = Duration::from_secs(1);
/// How often a burner is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Burners that burn until this is dropped.
#[derive(Debug)]
pub(super) struct Burning {
    stop: Vec<SyncSender<()>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// The stop signal for the thread that runs one burner.
struct Stop(Receiver<()>);

impl Burning {
    /// Has them burn. `address` is that of the server that they are served by, where they are.
    pub(super) fn begin(way: Way, folder: &ServerFolder, address: SocketAddr) -> Burning {
        let mut burning = Burning { stop: Vec::new(), threads: Vec::new() };
        for burner in BURNERS {
            let (sender, receiver) = sync_channel(0);
            let stop = Stop(receiver);
            let source = folder.file(burner);
            let thread = match way {
                Way::Inside if burner == "crash" => std::thread::spawn(move || change(&source, &stop)),
                Way::Inside if burner == "loop" => {
                    std::thread::spawn(move || ask_once(address, burner, &stop))
                }
                Way::Inside => std::thread::spawn(move || ask(address, burner, &stop)),
                Way::Outside => {
                    let plain = Plain { burner, source, environment: folder.environment() };
                    std::thread::spawn(move || plain.run(&stop))
                }
            };
            burning.stop.push(sender);
            burning.threads.push(thread);
        }
        burning
    }

    /// Ends them, as far as it was this that began them.
    ///
    /// # Errors
    /// One of them could not be made to burn.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.stop.clear();
        let ends =
            self.threads.drain(..).map(|thread| thread.join().expect("a burner's thread does not panic"));
        // All are waited for before one is complained about.
        let ends: Vec<io::Result<()>> = ends.collect();
        let problem = |error| Failure(format!("make a burner burn: {error}"));
        ends.into_iter().collect::<io::Result<()>>().map_err(problem)
    }
}

impl Drop for Burning {
    fn drop(&mut self) {
        self.stop.clear();
        for thread in self.threads.drain(..) {
            // The owner that drops it reports another failure.
            let _ = thread.join();
        }
    }
}

impl Stop {
    /// Waits for `time`; `false`: it is to stop.
    fn goes_on_after(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}

/// Changes an application that does not boot, as developers do who try to fix it: Highball boots it again.
fn change(source: &Path, stop: &Stop) -> io::Result<()> {
    while stop.goes_on_after(CHANGED_EVERY) {
        fs::write(source.join("changed"), "")?;
    }
    Ok(())
}

/// Asks an application, and again when there was an answer.
fn ask(address: SocketAddr, burner: &str, stop: &Stop) -> io::Result<()> {
    loop {
        ask_once(address, burner, stop)?;
        if !stop.goes_on_after(BEGINS_AGAIN_AFTER) {
            return Ok(());
        }
    }
}

/// Asks, and waits for the end of the answer, whatever it is. (By POST: Highball repeats no such request.)
fn ask_once(address: SocketAddr, burner: &str, stop: &Stop) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let asked = format!(
        "POST /{burner} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(asked.as_bytes())?;
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if !stop.goes_on_after(Duration::ZERO) {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// A burner outside of Highball.
struct Plain {
    burner: &'static str,
    /// The folder with its code.
    source: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Plain {
    /// Starts it, and again when it has ended.
    fn run(&self, stop: &Stop) -> io::Result<()> {
        let pause = if self.burner == "crash" { BOOTS_AGAIN_AFTER } else { BEGINS_AGAIN_AFTER };
        loop {
            let mut child = self.start()?;
            while child.try_wait()?.is_none() {
                if !stop.goes_on_after(LOOK_EVERY) {
                    child.kill()?;
                    child.wait()?;
                    return Ok(());
                }
            }
            if !stop.goes_on_after(pause) {
                return Ok(());
            }
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new("setpriv");
        // The kernel kills it when this process is killed.
        command.args(["--pdeathsig", "KILL", "--", "ruby", "burner.rb"]).current_dir(&self.source);
        command.env_remove("RUBYOPT").envs(&self.environment);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}
