//! What the threads of a process do, as far as the kernel tells: processor time, state, the system call in which a thread
//! waits. Everything is read from `/proc/PID/task`; see proc(5).

use rustix::param::clock_ticks_per_second;
use std::fs;
use std::io;
use std::time::Duration;

/// Threads of a process that are looked at.
const MOST_THREADS: usize = 512;

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLoad {
    /// The number that `gettid` returns.
    pub tid: i32,
    /// The name that the process has given it: at most 15 bytes.
    pub name: String,
    /// `R` runs, `S` sleeps, `D` waits for a disk, `T` is stopped.
    pub state: char,
    /// Processor time.
    pub cpu: Duration,
}

/// Reads what the threads of a process do.
///
/// # Errors
/// The process has ended, or `/proc` is not readable.
pub fn thread_loads(pid: i32) -> io::Result<Vec<ThreadLoad>> {
    let mut loads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))?.take(MOST_THREADS) {
        let tid = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(tid) = tid else { continue };
        // A thread may end at any time.
        let Ok(stat) = fs::read(format!("/proc/{pid}/task/{tid}/stat")) else { continue };
        loads.extend(parse(tid, &String::from_utf8_lossy(&stat)));
    }
    Ok(loads)
}

/// The time for which the main thread of a process could have run and waited for a processor, since it began (proc(5),
/// `/proc/PID/schedstat`).
///
/// # Errors
/// The process has ended, or the kernel does not count this.
pub fn waited_for_processor(pid: i32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanoseconds = text.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse().ok());
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, format!("schedstat is {text:?}"));
    nanoseconds.map(Duration::from_nanos).ok_or_else(unknown)
}

fn parse(tid: i32, stat: &str) -> Option<ThreadLoad> {
    // The name, in parentheses, may have any characters. The state, the third field, follows it.
    let (before, after) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let ticks = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let cpu_ms = (ticks(14)? + ticks(15)?) * 1000 / clock_ticks_per_second();
    Some(ThreadLoad {
        tid,
        name: before.split_once('(')?.1.into(),
        state: fields.first()?.chars().next()?,
        cpu: Duration::from_millis(cpu_ms),
    })
}

/// The system call in which a thread waits. `None`: in none that is known here, or the kernel does not say, as of another
/// user's process.
pub fn system_call(pid: i32, tid: i32) -> Option<&'static str> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    CALLS.iter().find(|(call, _)| *call == number).map(|(_, name)| *name)
}

/// System calls in which programs wait.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_write, "write"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_openat, "openat"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_anything() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 99 4096000 10 18446744073709551615 1";
        let load = parse(9, stat).unwrap();
        assert_eq!((load.tid, load.name.as_str(), load.state), (9, "a) b (c", 'S'));
        assert_eq!(load.cpu, Duration::from_millis(200 * 1000 / clock_ticks_per_second()));
        assert_eq!(parse(9, "7 (a"), None);
        assert_eq!(parse(9, ""), None);
    }

    #[test]
    fn the_time_that_this_process_has_waited_is_known() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let before = waited_for_processor(me).unwrap();
        assert!(before < Duration::from_secs(3600));
        assert!(waited_for_processor(me).unwrap() >= before);
        assert!(waited_for_processor(i32::MAX).is_err());
    }

    #[test]
    fn the_threads_of_this_process_are_found() {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        let loads = thread_loads(rustix::process::getpid().as_raw_nonzero().get()).unwrap();
        let load = loads.iter().find(|load| load.tid == me).expect("this thread");
        assert_eq!(load.state, 'R');
        assert!(thread_loads(i32::MAX).is_err());
    }
}
