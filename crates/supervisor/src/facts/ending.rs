//! How a process ended, and the words for it.

use std::fmt;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal with this number killed it.
    Killed(i32),
    /// The kernel killed it because memory ran out.
    OutOfMemory,
    /// It is gone, but it was not our child to ask.
    Unknown,
}

impl Ending {
    /// The exit code that a shell would report.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Ending::Exited(code) => code as u8,
            Ending::Killed(signal) => 128 + signal as u8,
            Ending::OutOfMemory => 128 + 9,
            Ending::Unknown => 1,
        }
    }
}

impl Ending {
    /// The same as what a process did: `exited with code 1`, `was killed by SIGSEGV`.
    pub(crate) fn of_process(self) -> String {
        match self {
            Ending::Exited(_) | Ending::Unknown => self.to_string(),
            Ending::Killed(_) | Ending::OutOfMemory => format!("was {self}"),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "exited with code {code}"),
            Ending::OutOfMemory => f.write_str(
                "killed by the kernel's OOM killer (SIGKILL) because memory ran out: see `memory_limit` and `memory_budget`",
            ),
            Ending::Killed(9) => {
                f.write_str("killed by SIGKILL: by a user, or by the kernel when out of memory (see dmesg)")
            }
            Ending::Killed(signal @ (4 | 6 | 7 | 11)) => {
                let name = match signal {
                    4 => "SIGILL",
                    6 => "SIGABRT",
                    7 => "SIGBUS",
                    _ => "SIGSEGV",
                };
                write!(f, "killed by {name}: a crash of the interpreter or of an extension (`jit = off` runs it without YJIT)")
            }
            Ending::Killed(15) => f.write_str("killed by SIGTERM"),
            Ending::Killed(signal) => write!(f, "killed by signal {signal}"),
            Ending::Unknown => f.write_str("ended"),
        }
    }
}
