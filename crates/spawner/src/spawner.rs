//! The loop: an order from the server, a signal to pass on, a child that has ended.

use crate::channel::{self, receive, send, Received};
use crate::message::{Ended, How, Reply, Role, ServiceState, SpawnerOrder};
use crate::policy::{Policy, Refusal, Successor};
use crate::{descent, exec, start};
use highball_users::User;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{
    getpid, kill_process, pidfd_send_signal, set_child_subreaper, wait, waitpid, Pid, Signal, WaitOptions,
    WaitStatus,
};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The variable by which a successor finds the socket to the server that it takes over from.
pub const HANDOVER: &str = "HIGHBALL_PREDECESSOR_FD";
/// The most processes of one user that the server has had started and that have not ended.
const MOST_STARTED: usize = 256;
/// The most processes at a time that read the configuration: one, and readers that wait for the file system of an application, each
/// for another one. They may not even end when they are killed.
const MOST_READERS: usize = 64;
/// How long one of them may take while another order to read it waits.
const READER_TIME: Duration = Duration::from_secs(10);
/// How long the table may take to be read.
pub const TABLE_TIME: Duration = Duration::from_secs(5);
/// The most processes at a time that watch certificates: one, and those before it that are ending.
const MOST_WATCHERS: usize = 4;
/// The most successors at a time: one takes over, and some are ending.
const MOST_SUCCESSORS: usize = 4;
/// Time for the end of all processes, where the server has been killed.
const END_TIME: Duration = Duration::from_secs(5);
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
const END_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// How a Rust program ends that has panicked.
const PANICKED: How = How::Exited(101);

/// Signals that are passed on to the server.
const PASSED_ON: [Signal; 10] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TERM,
    Signal::TTIN,
    Signal::TTOU,
    Signal::URG,
    Signal::POWER,
];

/// A process of an application's user.
#[derive(Debug, Clone, Copy)]
struct Started {
    role: Role,
    uid: u32,
}

/// The table is being read by another process.
#[derive(Debug)]
struct TableReading {
    process: Pid,
    socket: OwnedFd,
    until: Instant,
}

/// The process that stays root.
#[derive(Debug)]
pub struct Spawner<P> {
    policy: P,
    server: Pid,
    /// Where orders come from; `None` once the server has closed it.
    orders: Option<OwnedFd>,
    news: OwnedFd,
    signals: Signals,
    /// Processes of the applications' users, and what they were started as.
    started: HashMap<Pid, Started>,
    successors: HashSet<Pid>,
    /// Processes that read the configuration, and since when.
    readers: HashMap<Pid, Instant>,
    /// Processes that watch certificates.
    watchers: HashSet<Pid>,
    /// Processes that read the table, and the reading that counts. The server hears of HUP when it is done.
    table_readers: HashSet<Pid>,
    table_reading: Option<TableReading>,
    /// News for which the socket had no room; no other child is reaped before it is sent.
    unsent: Option<Ended>,
}

impl<P: Policy> Spawner<P> {
    /// Starts the server as this user. `handover` is the socket to the server that it takes over from.
    ///
    /// To be called before there are threads.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn start(policy: P, user: &User, handover: Option<OwnedFd>) -> io::Result<Spawner<P>> {
        exec::close_all_on_exec()?;
        set_child_subreaper(Some(getpid()))?;
        let (orders, servers_orders) = channel::pair()?;
        let (news, servers_news) = channel::pair()?;
        let handover = handover.map(|socket| (HANDOVER, socket));
        let server = start::server(user, servers_orders, servers_news, handover)?;
        Ok(Spawner {
            policy,
            server,
            orders: Some(orders),
            news,
            signals: Signals::listen()?,
            started: HashMap::new(),
            successors: HashSet::new(),
            readers: HashMap::new(),
            watchers: HashSet::new(),
            table_readers: HashSet::new(),
            table_reading: None,
            unsent: None,
        })
    }

    /// This process has read the table before the start, and still waits for a file system.
    pub fn has_table_reader(&mut self, process: Pid) {
        self.table_readers.insert(process);
    }

    /// Follows orders until the server has ended. Returns the exit code.
    pub fn run(mut self) -> u8 {
        loop {
            self.pass_signals_on();
            if let Some(how) = self.reap() {
                return self.end(how);
            }
            self.wait();
            self.take_table();
            self.follow_order();
        }
    }

    /// Waits for an order, a signal, or room for news.
    fn wait(&self) {
        let watched = |fd, flags| PollFd::from_borrowed_fd(fd, flags);
        let mut all = vec![watched(self.signals.wake.as_fd(), PollFlags::IN)];
        all.extend(self.orders.as_ref().map(|orders| watched(orders.as_fd(), PollFlags::IN)));
        all.extend(self.unsent.map(|_| watched(self.news.as_fd(), PollFlags::OUT)));
        all.extend(self.table_reading.as_ref().map(|reading| watched(reading.socket.as_fd(), PollFlags::IN)));
        let left = self.table_reading.as_ref().map(|reading| reading.left());
        let _ = poll(&mut all, left.as_ref()); // interrupted by a signal at most
    }

    fn pass_signals_on(&mut self) {
        for signal in self.signals.received() {
            // The table is read before the server reads the configuration, and asks.
            if signal == Signal::HUP && self.read_table().is_ok() {
                continue;
            }
            let _ = kill_process(self.server, signal); // it has ended, and is reaped in a moment
        }
    }

    fn read_table(&mut self) -> io::Result<()> {
        self.end_table_reading();
        // Where one still waits for a file system, another would wait for it, too.
        let known = if self.table_readers.is_empty() { &[] } else { self.policy.silent() };
        let (process, socket) = table_reader(known)?;
        self.table_readers.insert(process);
        self.table_reading = Some(TableReading { process, socket, until: Instant::now() + TABLE_TIME });
        Ok(())
    }

    /// Takes the table, if it has been read, or its time is up.
    fn take_table(&mut self) {
        let Some(reading) = &self.table_reading else { return };
        let mut watched = [PollFd::from_borrowed_fd(reading.socket.as_fd(), PollFlags::IN)];
        let has_ended = poll(&mut watched, Some(&AT_ONCE)).is_ok_and(|ready| ready > 0);
        if has_ended {
            self.policy.read_again(&reading.socket);
        }
        if has_ended || reading.until <= Instant::now() {
            self.end_table_reading();
            let _ = kill_process(self.server, Signal::HUP); // it has ended, and is reaped in a moment
        }
    }

    fn end_table_reading(&mut self) {
        let reading = self.table_reading.take();
        // It is not reaped yet: the number is still its own.
        if let Some(process) = reading.map(|one| one.process).filter(|one| self.table_readers.contains(one)) {
            let _ = kill_process(process, Signal::KILL); // it may have ended
        }
    }

    /// Reaps children, and reports them to the server. Returns how the server ended, if it has.
    fn reap(&mut self) -> Option<How> {
        // The server first: it may not read its news, and others may hold its socket.
        if let Ok(Some((_, status))) = waitpid(Some(self.server), WaitOptions::NOHANG) {
            return Some(how(status));
        }
        loop {
            if let Some(ended) = self.unsent.take() {
                match send(&self.news, &ended.encode(), None) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.unsent = Some(ended);
                        return None;
                    }
                    _ => {} // sent, or the server is gone
                }
            }
            let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) else { return None };
            let how = how(status);
            if pid == self.server {
                return Some(how);
            }
            self.started.remove(&pid);
            self.successors.remove(&pid);
            self.readers.remove(&pid);
            self.watchers.remove(&pid);
            self.table_readers.remove(&pid);
            self.policy.child_ended();
            self.unsent = Some(Ended { pid, how });
        }
    }

    fn follow_order(&mut self) {
        let Some(orders) = &self.orders else { return };
        let (packet, descriptor) = match receive(orders, false) {
            Ok(Received::Packet(packet, descriptor)) => (packet, descriptor),
            Ok(Received::CutOff) => return,
            Ok(Received::Closed) => return self.orders = None,
            Err(_) => return, // there is none
        };
        let Some((number, order)) = SpawnerOrder::decode(&packet) else { return };
        let (reply, opened) = self
            .obey(order, descriptor)
            .unwrap_or_else(|refusal| (Reply::Refused { errno: refusal.errno, text: refusal.text }, None));
        if let Some(orders) = &self.orders {
            // A server that does not read its replies loses them.
            let _ = send(orders, &reply.encode(number), opened.as_ref().map(OwnedFd::as_fd));
        }
    }

    fn obey(
        &mut self,
        order: SpawnerOrder,
        with: Option<OwnedFd>,
    ) -> Result<(Reply, Option<OwnedFd>), Refusal> {
        let missing = || Refusal::because("a descriptor has to come with this order");
        let opened = |descriptor| (Reply::Done, Some(descriptor));
        let done = |()| (Reply::Done, None);
        let started = |(pid, pidfd)| (Reply::Started(pid), Some(pidfd));
        match order {
            SpawnerOrder::Listen(address) => self.policy.listen(&address).map(opened),
            SpawnerOrder::OpenLog(path) => self.policy.open_log(&path).map(opened),
            SpawnerOrder::ReadConfiguration => self.start_reader(with.ok_or_else(missing)?).map(done),
            SpawnerOrder::WatchCertificates => self.start_watcher(with.ok_or_else(missing)?).map(done),
            SpawnerOrder::WritePidfile => self.policy.write_pidfile().map(done),
            SpawnerOrder::OpenControlSocket => self.policy.open_control_socket().map(opened),
            SpawnerOrder::Start { app, uid, role } => {
                let runner = self.policy.runner(&app).ok_or_else(Refusal::not_in_table)?;
                if runner.user().map_or(0, |user| user.uid) != uid {
                    return Err(Refusal::because("the application belongs to another user by now"));
                }
                let user = runner.user().cloned();
                let cgroup = if role.runs_code_of_application() { self.policy.cgroup(&app)? } else { None };
                self.start_as(user.as_ref(), role, with.ok_or_else(missing)?, cgroup).map(started)
            }
            SpawnerOrder::Signal(signal) => send_signal(with.ok_or_else(missing)?.as_fd(), signal).map(done),
            SpawnerOrder::StartSuccessor => self.start_successor(with.ok_or_else(missing)?).map(started),
            SpawnerOrder::Tell(ServiceState::HandedOver(pid)) if !self.successors.contains(&pid) => {
                Err(Refusal::because("this is not a successor"))
            }
            SpawnerOrder::Tell(state) => self.policy.tell(state).map(done),
            SpawnerOrder::Leave(address) => self.policy.leave(&address).map(done),
            SpawnerOrder::AnyChildren => {
                // These go with the server.
                let is_own = |pid: &Pid| {
                    let goes = self.role(*pid) == Some(Role::Opener) || self.is_roots(*pid);
                    *pid == self.server || goes
                };
                let any = descent::children()?.iter().any(|pid| !is_own(pid));
                Ok((Reply::Children(any), None))
            }
        }
    }

    fn start_reader(&mut self, socket: OwnedFd) -> Result<(), Refusal> {
        // The server does not wait for it any longer, so it is killed. It is not reaped yet, so the number is still its
        // own.
        for (pid, _) in self.readers.iter().filter(|(_, since)| since.elapsed() > READER_TIME) {
            let _ = kill_process(*pid, Signal::KILL); // it may have ended
        }
        if self.readers.len() >= MOST_READERS {
            return Err(Refusal::because("the configuration is being read already"));
        }
        self.readers.insert(start::reader(socket, self.policy.silent())?, Instant::now());
        Ok(())
    }

    fn start_watcher(&mut self, socket: OwnedFd) -> Result<(), Refusal> {
        for pid in &self.watchers {
            let _ = kill_process(*pid, Signal::KILL); // it is not reaped yet: the number is still its own
        }
        if self.watchers.len() >= MOST_WATCHERS {
            return Err(Refusal::because("processes that watch certificates have not ended"));
        }
        self.watchers.insert(start::watcher(socket)?);
        Ok(())
    }

    fn start_as(
        &mut self,
        user: Option<&User>,
        role: Role,
        socket: OwnedFd,
        cgroup: Option<OwnedFd>,
    ) -> Result<(Pid, OwnedFd), Refusal> {
        let uid = user.map_or(0, |user| user.uid);
        if self.started.values().filter(|started| started.uid == uid).count() >= MOST_STARTED {
            return Err(Refusal::because(
                "too many processes of this user have been started and have not ended",
            ));
        }
        let (pid, pidfd) = start::as_user(user, role, socket, cgroup)?;
        self.started.insert(pid, Started { role, uid });
        Ok((pid, pidfd))
    }

    fn start_successor(&mut self, socket: OwnedFd) -> Result<(Pid, OwnedFd), Refusal> {
        if self.successors.len() >= MOST_SUCCESSORS {
            return Err(Refusal::because("too many successors have been started"));
        }
        let Successor { program, arguments } = self.policy.successor()?;
        let mut command = Command::new(program);
        if let [name, arguments @ ..] = &arguments[..] {
            command.arg0(name).args(arguments);
        }
        exec::inherits(&mut command, HANDOVER, socket);
        let (pid, pidfd) = start::held(&mut command)?;
        self.successors.insert(pid);
        Ok((pid, pidfd))
    }

    /// The server has ended, and with it the openers. If it was killed or has panicked, all processes that were started
    /// are ended as well, but for a successor, which is another server.
    fn end(mut self, how: How) -> u8 {
        self.policy.end();
        let has_crashed = matches!(how, How::Killed(_)) || how == PANICKED;
        self.end_all(has_crashed);
        self.policy.all_ended();
        match how {
            How::Exited(code) => code as u8,
            How::Killed(signal) => 128 + signal as u8,
        }
    }

    fn end_all(&mut self, has_crashed: bool) {
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
                self.started.remove(&pid);
            }
            let children = descent::children().unwrap_or_default();
            let left: Vec<Pid> =
                children.into_iter().filter(|pid| self.is_to_end(*pid, has_crashed)).collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL); // it is not reaped yet: the number is still its own
            }
            let _ = poll(&mut [], Some(&END_PAUSE));
        }
    }

    fn role(&self, pid: Pid) -> Option<Role> {
        self.started.get(&pid).map(|started| started.role)
    }

    /// Whether a child reads the table, or watches certificates.
    fn is_roots(&self, pid: Pid) -> bool {
        self.watchers.contains(&pid) || self.table_readers.contains(&pid)
    }

    /// Whether a child was started for an application, or by one. Other children of root's are successors.
    fn is_to_end(&self, pid: Pid, has_crashed: bool) -> bool {
        match self.role(pid) {
            _ if self.is_roots(pid) => true,
            Some(Role::Opener) => true,
            Some(Role::Mold | Role::Companion) => has_crashed,
            None => has_crashed && descent::is_of_another_user(pid),
        }
    }
}

/// Starts a process that reads the table, without looking at these applications, and passes it on the socket. It is killed if it
/// takes longer than [`TABLE_TIME`].
///
/// # Errors
/// The system refuses it.
pub fn table_reader(silent: &[PathBuf]) -> io::Result<(Pid, OwnedFd)> {
    let (socket, theirs) = channel::pair()?;
    Ok((start::table_reader(theirs, silent)?, socket))
}

impl TableReading {
    /// The time that it has left.
    fn left(&self) -> Timespec {
        let left = self.until.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    }
}

/// Sends a signal to a process below this one, and to no other.
fn send_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<(), Refusal> {
    if !descent::is_below(pidfd)? {
        return Err(rustix::io::Errno::SRCH.into());
    }
    Ok(pidfd_send_signal(pidfd, signal)?)
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Killed(signal.unwrap_or_default()),
    }
}

/// The listening side of the signals: a flag for each, and a socket that wakes the loop.
#[derive(Debug)]
struct Signals {
    flags: Vec<(Signal, Arc<AtomicBool>)>,
    wake: UnixStream,
    /// The server has no terminal.
    ends_with_terminal: bool,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        let ends_with_terminal = exec::ends_with_terminal();
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut flags = Vec::new();
        for signal in PASSED_ON.into_iter().chain([Signal::CHILD]) {
            let flag = Arc::new(AtomicBool::new(false));
            // In this order: when it wakes, the flag is set.
            signal_hook::flag::register(signal.as_raw(), Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal.as_raw(), waker.try_clone()?)?;
            flags.push((signal, flag));
        }
        Ok(Signals { flags, wake, ends_with_terminal })
    }

    /// The signals that have arrived, except CHLD, by what they mean for the server.
    fn received(&self) -> Vec<Signal> {
        let mut woken = [0; 64];
        while (&self.wake).read(&mut woken).is_ok_and(|read| read == woken.len()) {}
        let came = self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        let meant = |signal| match signal {
            Signal::HUP if self.ends_with_terminal => Signal::TERM,
            signal => signal,
        };
        came.map(|(signal, _)| meant(*signal)).filter(|signal| *signal != Signal::CHILD).collect()
    }
}
