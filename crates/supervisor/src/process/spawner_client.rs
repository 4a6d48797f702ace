//! The spawner as the server sees it: orders, which it replies to at once, and the news of processes that have ended. The
//! protocol is `crates/spawner/PROTOCOL.md`. A loop gives its orders [`Client::aside`], so that a spawner that is stuck does
//! not hold it up.

use highball_spawner::channel::{receive, send, Received};
use highball_spawner::exec;
use highball_spawner::message::{Ended, Reply, Role, ServiceState, SpawnerOrder};
use highball_spawner::{NEWS, ORDERS};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::process::{
    getppid, set_dumpable_behavior, set_parent_process_death_signal, DumpableBehavior, Pid, Signal,
};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{mpsc, Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// The spawner follows an order within milliseconds. If it does not reply for so long, it is stuck.
const REPLY_TIME: Duration = Duration::from_secs(10);

/// Orders that may wait to be given aside: more than there are processes to signal.
const MOST_ASIDE: usize = 4096;

/// The server's view of the spawner.
#[derive(Debug)]
pub struct Client {
    spawner: Pid,
    orders: Mutex<Orders>,
    news: OwnedFd,
    /// Where orders go that are given aside; the thread begins with the first of them.
    aside: OnceLock<mpsc::SyncSender<Act>>,
}

/// A task for the thread that gives orders aside.
type Act = Box<dyn FnOnce(&Client) + Send>;

#[derive(Debug)]
struct Orders {
    socket: OwnedFd,
    /// The number of the last one.
    last: u32,
}

impl Client {
    /// The spawner that has started this process as its server; `None` if it was started otherwise. From here on only
    /// root can look into this process, and it ends with the spawner. To be called before there are threads, and before
    /// anything is opened.
    ///
    /// # Errors
    /// The spawner has gone.
    pub fn from_environment() -> io::Result<Option<Client>> {
        let (Some(orders), Some(news)) = (exec::take(ORDERS)?, exec::take(NEWS)?) else { return Ok(None) };
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // From here on it cannot end unnoticed; before, its sockets show it.
        let is_there = !matches!(receive(&orders, false), Ok(Received::Closed));
        let spawner = getppid().filter(|_| is_there).ok_or_else(gone)?;
        let _ = rustix::thread::set_name(c"highball-server");
        Client::over(spawner, orders, news).map(Some)
    }

    /// Over the ends of two sockets.
    ///
    /// # Errors
    /// They are no sockets.
    pub fn over(spawner: Pid, orders: OwnedFd, news: OwnedFd) -> io::Result<Client> {
        set_socket_timeout(&orders, Timeout::Recv, Some(REPLY_TIME))?;
        Ok(Client {
            spawner,
            orders: Mutex::new(Orders { socket: orders, last: 0 }),
            news,
            aside: OnceLock::new(),
        })
    }

    /// The spawner's process id, which people know as Highball's.
    pub fn pid(&self) -> Pid {
        self.spawner
    }

    /// Gives orders on another thread, one after another in the order of the calls. What comes of it can be waited for.
    ///
    /// # Errors
    /// The thread that gives the orders, if there is one.
    pub(crate) fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Client) -> io::Result<T> + Send + 'static,
    ) -> impl Future<Output = io::Result<T>> + Send + 'static {
        let (to, done) = oneshot::channel();
        let act = Box::new(move |client: &Client| drop(to.send(act(client)))); // it need not be waited for
        if self.aside.get_or_init(|| acting(Arc::downgrade(self))).try_send(act).is_err() {
            tracing::error!(name: "spawner_overloaded", "the spawner is overloaded: dropping an order");
        }
        async move { done.await.unwrap_or_else(|_| Err(io::Error::other("the spawner does not keep up"))) }
    }

    /// Listens on this address.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn listen(&self, address: &str) -> io::Result<OwnedFd> {
        self.descriptor(&SpawnerOrder::Listen(address.into()))
    }

    /// Has the path of the Unix socket at this address removed.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn leave(&self, address: &str) -> io::Result<()> {
        self.done(&SpawnerOrder::Leave(address.into()))
    }

    /// Opens the log at this path for appending.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn open_log(&self, path: &Path) -> io::Result<OwnedFd> {
        self.descriptor(&SpawnerOrder::OpenLog(path.into()))
    }

    /// Starts a process of root's that reads the configuration, and gives it the socket for what it has read.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn read_configuration(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.ask(&SpawnerOrder::ReadConfiguration, Some(socket)).map(drop)
    }

    /// Starts a process of root's that reads certificates when their files change, and gives it the socket for what it has read.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn watch_certificates(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.ask(&SpawnerOrder::WatchCertificates, Some(socket)).map(drop)
    }

    /// Writes the PID file.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn write_pidfile(&self) -> io::Result<()> {
        self.done(&SpawnerOrder::WritePidfile)
    }

    /// Makes the control socket, and listens on it.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn open_control_socket(&self) -> io::Result<OwnedFd> {
        self.descriptor(&SpawnerOrder::OpenControlSocket)
    }

    /// Starts a process as the application's user, and gives it the socket.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn start(
        &self,
        app: &Path,
        uid: u32,
        role: Role,
        socket: BorrowedFd<'_>,
    ) -> io::Result<(Pid, OwnedFd)> {
        self.started(&SpawnerOrder::Start { app: app.into(), uid, role }, socket)
    }

    /// Sends a signal to a process below the spawner.
    ///
    /// # Errors
    /// It is no such process, or has ended.
    pub fn signal(&self, pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
        self.ask(&SpawnerOrder::Signal(signal), Some(pidfd)).map(drop)
    }

    /// Starts the program again for a hot restart, and gives it the socket.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn start_successor(&self, socket: BorrowedFd<'_>) -> io::Result<(Pid, OwnedFd)> {
        self.started(&SpawnerOrder::StartSuccessor, socket)
    }

    /// Tells systemd.
    ///
    /// # Errors
    /// The spawner says why it cannot.
    pub fn tell(&self, state: ServiceState) -> io::Result<()> {
        self.done(&SpawnerOrder::Tell(state))
    }

    /// Whether the spawner has children besides this process.
    pub fn has_children(&self) -> bool {
        matches!(self.ask(&SpawnerOrder::AnyChildren, None), Ok((Reply::Children(true), _)))
    }

    /// The socket that is readable when a process has ended.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// A process that has ended, if there is news of one.
    ///
    /// # Errors
    /// There is none ([`io::ErrorKind::WouldBlock`]), or the spawner has gone.
    pub fn next_ended(&self) -> io::Result<Ended> {
        match receive(&self.news, false)? {
            Received::Packet(bytes, _) => Ended::decode(&bytes).ok_or_else(misunderstood),
            Received::CutOff => Err(misunderstood()),
            Received::Closed => Err(gone()),
        }
    }

    fn done(&self, order: &SpawnerOrder) -> io::Result<()> {
        self.ask(order, None).map(drop)
    }

    fn descriptor(&self, order: &SpawnerOrder) -> io::Result<OwnedFd> {
        self.ask(order, None)?.1.ok_or_else(misunderstood)
    }

    fn started(&self, order: &SpawnerOrder, socket: BorrowedFd<'_>) -> io::Result<(Pid, OwnedFd)> {
        match self.ask(order, Some(socket))? {
            (Reply::Started(pid), Some(pidfd)) => Ok((pid, pidfd)),
            _ => Err(misunderstood()),
        }
    }

    /// Gives an order, and waits for its reply.
    fn ask(
        &self,
        order: &SpawnerOrder,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<(Reply, Option<OwnedFd>)> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.last = orders.last.wrapping_add(1);
        send(&orders.socket, &order.encode(orders.last), descriptor)?;
        loop {
            let (bytes, descriptor) = match receive(&orders.socket, true) {
                Ok(Received::Packet(bytes, descriptor)) => (bytes, descriptor),
                Ok(Received::CutOff) => return Err(misunderstood()),
                Ok(Received::Closed) => return Err(gone()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("the spawner has not replied within {} s", REPLY_TIME.as_secs()),
                    ))
                }
                Err(error) => return Err(error),
            };
            match Reply::decode(&bytes).ok_or_else(misunderstood)? {
                (number, _) if number != orders.last => {} // to an order that was not waited for any longer
                (_, Reply::Refused { errno, text }) => {
                    let kind = io::Error::from_raw_os_error(errno).kind();
                    let kind = if errno == 0 { io::ErrorKind::Other } else { kind };
                    return Err(io::Error::new(kind, text));
                }
                (_, reply) => return Ok((reply, descriptor)),
            }
        }
    }
}

/// A thread that does what is sent, for as long as there is the client.
fn acting(client: Weak<Client>) -> mpsc::SyncSender<Act> {
    let (to, acts) = mpsc::sync_channel::<Act>(MOST_ASIDE);
    let act_on_all = move || {
        for act in acts {
            if let Some(client) = client.upgrade() {
                act(&client);
            }
        }
    };
    let thread = std::thread::Builder::new().name("spawner-orders".into()).spawn(act_on_all);
    if let Err(error) = thread {
        tracing::error!(name: "spawner_failed", %error, "cannot start the thread that writes to the spawner");
    }
    to
}

fn misunderstood() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the spawner's reply is invalid")
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has gone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_spawner::channel::pair;
    use rustix::process::getpid;

    fn reply(spawner: &OwnedFd, order: &SpawnerOrder) {
        let Received::Packet(bytes, _) = receive(spawner, true).unwrap() else { panic!("no order") };
        let (number, received) = SpawnerOrder::decode(&bytes).unwrap();
        assert_eq!(&received, order);
        send(spawner, &Reply::Done.encode(number), None).unwrap();
    }

    #[tokio::test]
    async fn orders_given_aside_arrive_in_their_order_and_are_not_waited_for() {
        let ((orders, spawner), (news, _)) = (pair().unwrap(), pair().unwrap());
        let client = Arc::new(Client::over(getpid(), orders, news).unwrap());
        let first = client.aside(Client::write_pidfile);
        let second = client.aside(|client| client.tell(ServiceState::Ready));
        reply(&spawner, &SpawnerOrder::WritePidfile); // neither call has waited for this
        reply(&spawner, &SpawnerOrder::Tell(ServiceState::Ready));
        first.await.unwrap();
        second.await.unwrap();
    }

    #[tokio::test]
    async fn what_comes_of_orders_given_aside_is_an_error_when_the_spawner_has_gone() {
        let ((orders, spawner), (news, _)) = (pair().unwrap(), pair().unwrap());
        let client = Arc::new(Client::over(getpid(), orders, news).unwrap());
        drop(spawner);
        assert_eq!(client.aside(Client::write_pidfile).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
