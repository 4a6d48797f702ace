//! What happens between fork and exec, and what a process inherits over exec: descriptors, and how it takes signals. The only
//! `unsafe` of this crate.
#![allow(unsafe_code)]

use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{getpid, getppid, set_parent_process_death_signal, Signal};
use std::io::{self, IsTerminal};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};

/// Lets signals arrive that the process which started this one had blocked or ignored, as both last over exec: the server would
/// follow none of them, and its children would end unseen. To be called before there are threads.
///
/// `SIGHUP` stays ignored until something listens to it, which looks whether it is ([`ends_with_terminal`]). `SIGPIPE` is the Rust runtime's.
pub fn receive_signals() {
    // SAFETY: each call changes only how this process, which has one thread, takes signals. It reads and writes nothing but
    // these values, for which zeros are valid; handlers are left alone.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, null_mut());
        for signal in (1..=libc::SIGRTMAX()).filter(|one| ![libc::SIGHUP, libc::SIGPIPE].contains(one)) {
            let mut action: libc::sigaction = zeroed();
            let is_known = libc::sigaction(signal, null(), &mut action) == 0;
            if is_known && action.sa_sigaction == libc::SIG_IGN {
                action = zeroed(); // SIG_DFL
                libc::sigaction(signal, &action, null_mut());
            }
        }
    }
}

/// Whether HUP means that this process loses its terminal, and ends it: its standard input is a terminal, and its parent has not
/// ignored HUP for it (`nohup`; proc(5), `SigIgn`). To be called before anything listens to HUP.
#[allow(clippy::disallowed_methods)] // a file of the kernel's
pub fn ends_with_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_ignored = mask.is_some_and(|mask| mask & (1 << (Signal::HUP.as_raw() - 1)) != 0);
    io::stdin().is_terminal() && !is_ignored
}

/// Leaves a descriptor open for the program that the command runs, and its number in this variable.
pub fn inherits(command: &mut Command, variable: &str, descriptor: OwnedFd) {
    command.env(variable, descriptor.as_raw_fd().to_string());
    before(command, move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?));
}

/// Has the new process enter a cgroup before it runs the program, by this file (`cgroup.procs`).
pub fn enters(command: &mut Command, cgroup: OwnedFd) {
    before(command, move || Ok(rustix::io::write(&cgroup, b"0").map(drop)?));
}

/// Has the kernel kill the new process when the thread that starts it has ended.
pub fn dies_with_this_process(command: &mut Command) {
    let parent = getpid();
    before(command, move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have ended before that.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(rustix::io::Errno::SRCH.into())
        }
    });
}

/// Does something in the new process before it runs the program. It makes system calls, and takes no lock and allocates
/// nothing.
pub(crate) fn before(command: &mut Command, act: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: it runs in a copy of this process that has but one thread, where others may have held locks. All callers
    // are in this crate, and only make system calls.
    unsafe { command.pre_exec(act) };
}

/// Takes the descriptor whose number stands in this variable, and the variable out of the environment: no process that
/// is started from here on inherits either. To be called before there are threads, and before anything is opened.
///
/// # Errors
/// The variable holds something else.
pub fn take(variable: &str) -> io::Result<Option<OwnedFd>> {
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    std::env::remove_var(variable);
    let number: Option<RawFd> = text.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 2);
    let number =
        number.ok_or_else(|| io::Error::other(format!("{variable} holds no descriptor's number")))?;
    // SAFETY: the number was inherited, so nothing in this process has opened it; it is taken once, since the
    // variable that names it is gone, and it is given up again where it is not open.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(error) = fcntl_setfd(&fd, FdFlags::CLOEXEC) {
        std::mem::forget(fd); // it is not open: nothing may close this number
        return Err(io::Error::other(format!("{variable} names descriptor {number}: {error}")));
    }
    Ok(Some(fd))
}

/// The most sockets that systemd passes here.
const ACTIVATED: RawFd = 64;

/// Takes the sockets that systemd has passed to this process (sd_listen_fds(3)), and its variables out of the environment. To be
/// called before there are threads, and before anything is opened.
pub fn take_activated() -> Vec<OwnedFd> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<RawFd>().ok();
    let is_for_us = number("LISTEN_PID") == Some(getpid().as_raw_pid());
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0).clamp(0, ACTIVATED);
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"] {
        std::env::remove_var(name);
    }
    let take = |number| {
        // SAFETY: the numbers were inherited, so nothing in this process has opened them; they are taken once, since the
        // variables are gone, and given up again where they are not open.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        match fcntl_setfd(&fd, FdFlags::CLOEXEC) {
            Ok(()) => Some(fd),
            Err(_) => {
                std::mem::forget(fd); // it is not open: nothing may close this number
                None
            }
        }
    };
    (3..3 + count).filter_map(take).collect()
}

/// Keeps every descriptor but the standard ones from the programs that this process runs. The process that started this
/// one may have left some open.
///
/// # Errors
/// The descriptors of this process cannot be listed.
pub fn close_all_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|number| number.parse::<RawFd>().ok());
        if let Some(number) = number.filter(|number| *number > 2) {
            // SAFETY: it is borrowed for one call, which does nothing to a number that is not open any more.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC); // it fails only for such
        }
    }
    Ok(())
}
