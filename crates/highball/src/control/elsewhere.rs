//! How to ask servers that run and were not found: their control sockets are where another environment puts them.

use crate::control::places::{is_named, VARIABLE};
use crate::process::owner::{parent_and_uid_of, user_name};
use highball_config::COMMANDS;
use rustix::process::{geteuid, getpid};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Variables that say where a control socket is.
const PLACES: [&str; 2] = [VARIABLE, "XDG_RUNTIME_DIR"];
/// Hints that are given; other users decide how many servers run.
const MOST: usize = 8;

/// A line for each server that this user may ask and that is none of these, with the command to use. Nothing where a place was
/// named: then no other is meant.
pub(crate) fn hints(seen: &[i32]) -> String {
    let mut text = String::new();
    if is_named() {
        return text;
    }
    for server in servers().filter(|server| !seen.contains(&server.pid)).take(MOST) {
        let _ = write!(text, "\n{}", server.hint());
    }
    text
}

/// A process that is a server.
struct ServerProcess {
    pid: i32,
    uid: u32,
    /// `NAME=value`, as it was started with.
    places: Vec<String>,
    /// It sees other files than this process: a container's, or a private `/tmp`.
    has_own_files: bool,
}

impl ServerProcess {
    fn hint(&self) -> String {
        let ServerProcess { pid, uid, places, has_own_files } = self;
        let who = if *uid == geteuid().as_raw() { String::new() } else { format!(" of {}", user_name(*uid)) };
        let found = format!("a server{who} runs as pid {pid}, and cannot be reached here");
        if *has_own_files {
            return format!(
                "{found}: it is in a container, or has a private /tmp (PrivateTmp=). Run the command there (nsenter --target \
                 {pid} --mount highball status), or start it with HIGHBALL_CONTROL=/run/NAME/control"
            );
        }
        let through = if who.is_empty() { String::new() } else { format!("sudo -u {} ", user_name(*uid)) };
        match &places[..] {
            [] => format!("{found}: its log says why (no control socket, or no answer)"),
            places => format!("{found}; ask it so: {through}env {} highball status", places.join(" ")),
        }
    }
}

/// The servers whose processes this user may look into.
fn servers() -> impl Iterator<Item = ServerProcess> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(server)
}

fn server(pid: i32) -> Option<ServerProcess> {
    let (parent, uid) = parent_and_uid_of(pid)?;
    let own = geteuid();
    let may_ask = own.is_root() || uid == own.as_raw();
    // A process below another one is its opener, or its server where root has started it.
    if pid == getpid().as_raw_nonzero().get() || !may_ask || !is_server(pid) || is_server(parent) {
        return None;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variables = environment.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let places = variables.filter(|text| names_place(text)).map(str::to_owned).collect();
    let files = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt"));
    let both = files(&pid.to_string()).ok().zip(files("self").ok());
    Some(ServerProcess { pid, uid, places, has_own_files: both.is_some_and(|(theirs, ours)| theirs != ours) })
}

/// Whether this program runs there, and serves.
fn is_server(pid: i32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let is_highball = program.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
        name.trim_end_matches(" (deleted)") == "highball" // after a new version was installed
    });
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = arguments.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    let is_other_command = |name: &str| name != "serve" && name.as_bytes() == first;
    is_highball && !COMMANDS.into_iter().any(is_other_command)
}

/// Whether this is a place that can be typed as it is: the variable is another user's to set, and people copy the command.
fn names_place(variable: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/_.-".contains(char);
    variable.split_once('=').is_some_and(|(name, value)| {
        PLACES.contains(&name) && Path::new(value).is_absolute() && value.chars().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_copied_into_a_shell_is_shown() {
        assert!(names_place("HIGHBALL_CONTROL=/run/blog/control-1.sock"));
        for other in
            ["HIGHBALL_CONTROL=/x;id", "HIGHBALL_CONTROL=x", "XDG_RUNTIME_DIR=/$(id)", "PATH=/bin", "x"]
        {
            assert!(!names_place(other), "{other}");
        }
    }

    #[test]
    fn the_command_is_for_its_user() {
        let uid = geteuid().as_raw();
        let server = |uid, places: &[&str], has_own_files| ServerProcess {
            pid: 7,
            uid,
            places: places.iter().map(|place| (*place).to_owned()).collect(),
            has_own_files,
        };
        let hint = server(uid, &["XDG_RUNTIME_DIR=/run/blog"], false).hint();
        assert!(hint.ends_with("ask it so: env XDG_RUNTIME_DIR=/run/blog highball status"), "{hint}");
        assert!(server(uid + 1, &["XDG_RUNTIME_DIR=/x"], false).hint().contains("sudo -u "));
        assert!(server(uid, &[], true).hint().contains("nsenter --target 7"));
    }
}
