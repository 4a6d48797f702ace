//! `Highball::Native`: system calls that Ruby lacks, and what is written in Rust once for all.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use highball_secrets::Secrets;
use magnus::{function, prelude::*, Error, RArray, RModule, RString, Ruby, Value};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{
    getpid, getppid, pidfd_open, set_parent_process_death_signal, Pid, PidfdFlags, Signal,
};

use crate::clock::cpu_ns;
use crate::request_clock::delayed_us;
use crate::{allocator, fiber_stack, nogvl, profile, pstore, ruby31, signals, turns};

/// Defines the module.
pub(crate) fn define(ruby: &Ruby, highball: RModule) -> Result<(), Error> {
    let native = highball.define_module("Native")?;
    native.define_singleton_method("pidfd", function!(pidfd, 0))?;
    native.define_singleton_method("pidfd_of", function!(pidfd_of, 1))?;
    native.define_singleton_method("exit_when_closed", function!(exit_when_closed, 1))?;
    native.define_singleton_method("end_with_parent", function!(end_with_parent, 1))?;
    native.define_singleton_method("allocator_version", function!(allocator::version, 0))?;
    native.define_singleton_method("separate_heap", function!(allocator::separate, 0))?;
    native.define_singleton_method("join_heap", function!(allocator::join, 0))?;
    native.define_singleton_method("trim_malloc", function!(allocator::trim, 0))?;
    native.define_singleton_method("stack_place", function!(fiber_stack::place, 0))?;
    native.define_singleton_method("give_back_stack", function!(fiber_stack::give_back, 2))?;
    native.define_singleton_method("masked", function!(masked, 5))?;
    native.define_singleton_method("path_without_tokens", function!(path_without_tokens, 1))?;
    native.define_singleton_method("steps_aside?", function!(turns::is_aside, 1))?;
    native.define_singleton_method("thread_clocks", function!(thread_clocks, 1))?;
    native.define_singleton_method("open_within", function!(open_within, 2))?;
    native.const_set("PROTOCOL_VERSION", highball_ring::layout::VERSION)?;
    ruby31::define(native)?;
    profile::define(ruby, native)?;
    pstore::define(native)
}

/// `Native.pidfd -> Integer`: a descriptor that refers to this process (pidfd_open(2)). The caller
/// closes it.
fn pidfd(ruby: &Ruby) -> Result<RawFd, Error> {
    pidfd_of(ruby, getpid().as_raw_pid())
}

/// `Native.pidfd_of(pid) -> Integer`: the same for another process.
fn pidfd_of(ruby: &Ruby, pid: i32) -> Result<RawFd, Error> {
    Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::INVAL)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .map(OwnedFd::into_raw_fd)
        .map_err(|e| Error::new(ruby.exception_runtime_error(), format!("pidfd_open: {e}")))
}

/// `Native.end_with_parent(pid) -> nil`: from now on the kernel kills this process when its parent, the process `pid`, has ended
/// (`PR_SET_PDEATHSIG`, prctl(2)), and not when the socket of [`exit_when_closed`] is closed. Call it after `fork`.
fn end_with_parent(ruby: &Ruby, pid: i32) -> Result<(), Error> {
    close_inherited();
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|e| Error::new(ruby.exception_runtime_error(), format!("prctl: {e}")))?;
    if getppid().map(Pid::as_raw_pid) != Some(pid) {
        exit_now(); // the parent had ended before that
    }
    Ok(())
}

/// `Native.exit_when_closed(fd) -> nil`: from now on this process ends at once when the other end of the
/// socket `fd` is closed, whatever Ruby is doing. Call it after `fork`: threads are not inherited.
fn exit_when_closed(ruby: &Ruby, fd: RawFd) -> Result<(), Error> {
    let failed = |e: std::io::Error| {
        Error::new(ruby.exception_runtime_error(), format!("cannot watch the control socket: {e}"))
    };
    // SAFETY: Ruby gives the number of an open descriptor; it is only borrowed to copy it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let socket = rustix::io::fcntl_dupfd_cloexec(borrowed, 3).map_err(|e| failed(e.into()))?;
    close_inherited();
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).replace((getpid(), socket.as_raw_fd()));
    std::thread::Builder::new()
        .name("highball-watch".into())
        .stack_size(64 * 1024)
        .spawn(move || watch(&socket))
        .map_err(failed)?;
    Ok(())
}

/// `Native.masked(texts, folder, target, fields, form) -> [String]`: texts for the log without the secrets of the
/// environment and of the application in `folder`, as they are when this is first asked, and of a request: its path and
/// query, its header fields as pairs, the body of a form.
fn masked(
    texts: Vec<String>,
    folder: RString,
    target: String,
    fields: Vec<(String, String)>,
    form: String,
) -> Vec<String> {
    static SECRETS: OnceLock<Secrets> = OnceLock::new();
    let of_the_application = || {
        let variables = std::env::vars_os();
        let readable = |text: OsString| text.to_string_lossy().into_owned();
        let variables = variables.map(|(name, value)| (readable(name), readable(value))).collect();
        Secrets::of(&variables, &path_of(folder), None)
    };
    let mut secrets = SECRETS.get_or_init(of_the_application).clone();
    secrets.learn_request(&target, &fields, &form);
    texts.iter().map(|text| secrets.masked(text)).collect()
}

/// `Native.path_without_tokens(path) -> String`: a path for the log.
fn path_without_tokens(path: String) -> String {
    highball_secrets::path_without_tokens(&path)
}

/// `Native.thread_clocks(tid) -> [cpu, delayed] | nil`: the CPU time of the thread of this process with this number
/// (`Thread#native_thread_id`) in nanoseconds, and how long it has waited for a processor, in microseconds; nil: it has ended. The
/// GVL stays held.
fn thread_clocks(thread: Option<i32>) -> Option<(u64, u64)> {
    let thread = thread?;
    Some((cpu_ns(thread)?, delayed_us(Pid::from_raw(thread)?)))
}

/// `Native.open_within(path, folders) -> File | String`: the regular file at this absolute path, open; or why it is not: it
/// cannot be opened, or lies in none of the folders, wherever links lead. Other threads run meanwhile.
fn open_within(ruby: &Ruby, path: RString, folders: RArray) -> Result<Value, Error> {
    let path = path_of(path);
    let folders = folders.into_iter().map(|folder| RString::try_convert(folder).map(path_of));
    let folders: Vec<PathBuf> = folders.collect::<Result<_, _>>()?;
    let opened = Cell::new(None);
    nogvl::without_gvl(&|| opened.set(Some(highball_tenant::open_within(&path, &folders, None))), &|| ())?;
    match opened.take() {
        Some(Ok((file, _))) => {
            let class: Value = ruby.class_object().const_get("File")?;
            class.funcall("for_fd", (file.into_raw_fd(), "rb"))
        }
        Some(Err(error)) => Ok(ruby.into_value(error.to_string())),
        None => Ok(ruby.into_value("it was interrupted")),
    }
}

/// A path of any bytes.
fn path_of(text: RString) -> PathBuf {
    // SAFETY: with the GVL held; the bytes are copied before Ruby runs again.
    OsString::from_vec(unsafe { text.as_slice() }.to_vec()).into()
}

/// The process that watches, and the descriptor it does it with.
static WATCHED: Mutex<Option<(Pid, RawFd)>> = Mutex::new(None);

/// Closes the descriptor that the parent watched before the fork: with it this process could speak in the parent's
/// name, and its thread did not come along.
fn close_inherited() {
    let inherited = WATCHED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((pid, fd)) = inherited {
        if pid != getpid() {
            // SAFETY: ours alone: the thread that had it exists only in the parent.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

fn watch(socket: &OwnedFd) {
    signals::block();
    loop {
        // No events asked for: a hang-up is always reported.
        let mut watched = [PollFd::new(socket, PollFlags::empty())];
        let _ = poll(&mut watched, None);
        if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            exit_now();
        }
    }
}

/// Ends the process without running anything of Ruby's (no `at_exit`, no finalizer).
fn exit_now() -> ! {
    // SAFETY: async-signal-safe, takes any number, never returns.
    unsafe { libc::_exit(1) }
}
