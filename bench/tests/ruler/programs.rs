//! Programs that use a known amount of something. Each is this test binary again, a variable says which one.

use crate::server::{Server, HELLO};
use rustix::time::{clock_gettime, ClockId};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

const VARIABLE: &str = "RULER_PROGRAM";

/// A program that runs; it is ended and waited for when this is dropped.
pub(crate) struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// A server that uses so much CPU time for each request, its system calls and the thread for it included. With 0
    /// it uses what it needs.
    pub(crate) fn burning(us: u64) -> Program {
        Program::start(&format!("burn {us}"))
    }

    /// It has written to so much memory.
    pub(crate) fn dirtying(mib: usize) -> Program {
        Program::start(&format!("dirty {mib}"))
    }

    fn start(what: &str) -> Program {
        let this = std::env::current_exe().expect("a test has a binary");
        let mut child = Command::new(this)
            .args(["--exact", "a_program_when_it_is_asked_to_be_one", "--nocapture", "--test-threads", "1"])
            .env(VARIABLE, what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test can start itself");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Program { child, output }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// What it says once it is ready.
    pub(crate) fn ready(&mut self) -> String {
        loop {
            let mut line = String::new();
            let bytes = self.output.read_line(&mut line).expect("it writes text");
            assert!(bytes > 0, "the program ended before it was ready");
            // The test runner, which it still is, has written to the same line.
            if let Some((_, words)) = line.split_once("ready ") {
                return words.trim().into();
            }
        }
    }

    pub(crate) fn address(&mut self) -> SocketAddr {
        self.ready().parse().expect("it says its address")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().expect("it has not been waited for");
        self.child.wait().expect("it has ended");
    }
}

/// Is a program if the variable says so, until its standard input ends or it is killed.
pub(crate) fn be_one() {
    let Ok(what) = std::env::var(VARIABLE) else { return };
    match what.split_once(' ').expect("two words") {
        ("burn", us) => burn(us.parse().expect("a number")),
        ("dirty", mib) => {
            let memory = vec![1_u8; mib.parse::<usize>().expect("a number") << 20];
            println!("ready {}", memory.len());
            wait_for_the_end();
            assert!(memory.iter().all(|&byte| byte == 1));
        }
        _ => panic!("no such program: {what}"),
    }
}

fn burn(us: u64) {
    thread_local! { static SERVED: Cell<u64> = const { Cell::new(0) }; }
    let server = Server::start(move |_| {
        SERVED.set(SERVED.get() + 1);
        while us > 0 && thread_cpu_us() < SERVED.get() * us {
            std::hint::spin_loop();
        }
        HELLO
    });
    println!("ready {}", server.address);
    std::thread::spawn(|| {
        wait_for_the_end();
        std::process::abort(); // the test has gone
    });
    server.join();
}

/// CPU time of this thread.
fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

fn wait_for_the_end() {
    std::io::stdin().read_to_end(&mut Vec::new()).expect("it is a pipe");
}
