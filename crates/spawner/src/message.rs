//! The messages between the spawner and the server, as closed types with a fixed binary encoding. Numbers are
//! little-endian; each message is one packet, and has an upper bound. See `PROTOCOL.md`.

use rustix::process::{Pid, Signal};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest path.
pub const PATH_BYTES: usize = 4095;
/// The longest text that says why an order is refused.
pub const TEXT_BYTES: usize = 2048;
/// The largest packet.
pub const PACKET_BYTES: usize = PATH_BYTES + 32;

/// The signals that the server may have sent.
const SIGNALS: [Signal; 11] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::KILL,
    Signal::USR1,
    Signal::USR2,
    Signal::TERM,
    Signal::TTIN,
    Signal::TTOU,
    Signal::URG,
    Signal::POWER,
];

/// What a process of an application's user is started as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It becomes the application's mold.
    Mold,
    /// It opens files for the server.
    Opener,
    /// It runs a companion of the application, and ends what is left of it.
    Companion,
}

/// What the spawner reports to systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// The server serves.
    Ready,
    /// The successor with this process id serves.
    HandedOver(Pid),
    /// The server's event loops run.
    Alive,
    /// The server reads its configuration again; then it serves.
    Reloading,
    /// The server stops.
    Stopping,
}

/// An order of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnerOrder {
    /// Listen on this address, as the table has it: `127.0.0.1:80`, `unix:/run/blog.sock`.
    Listen(String),
    /// Open the log at this path for appending.
    OpenLog(PathBuf),
    /// Start a process of root's that reads the configuration and ends; a socket for what it has read comes with the order.
    ReadConfiguration,
    /// Start a process of root's that reads certificates again when their files change; a socket for what it has read comes with the
    /// order. The one before ends.
    WatchCertificates,
    /// Write the PID file.
    WritePidfile,
    /// Make the control socket.
    OpenControlSocket,
    /// Start a process as an application's user; a socket for it comes with the order.
    Start {
        /// The application, by its path as root's configuration has it: absolute, not resolved.
        app: PathBuf,
        /// The user that the server expects.
        uid: u32,
        /// What it is started as.
        role: Role,
    },
    /// Send a signal to a process, whose pidfd comes with the order.
    Signal(Signal),
    /// Start the program again for a hot restart; a socket for it comes with the order.
    StartSuccessor,
    /// Tell systemd.
    Tell(ServiceState),
    /// Say whether there are children besides the server.
    AnyChildren,
    /// Remove the path of the Unix socket at this address of the table: no server listens there any more.
    Leave(String),
}

/// A reply of the spawner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The order is done; what was opened comes with the reply.
    Done,
    /// A process was started, whose pidfd comes with the reply.
    Started(Pid),
    /// Whether there are children.
    Children(bool),
    /// The order is refused.
    Refused {
        /// The system's error number; 0 where it was not the system.
        errno: i32,
        /// What failed, and what to do.
        text: String,
    },
}

/// A child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its process id.
    pub pid: Pid,
    /// How it ended.
    pub how: How,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl SpawnerOrder {
    /// The packet, with the number that its reply will carry.
    pub fn encode(&self, number: u32) -> Vec<u8> {
        let packet = Writer::begin(number);
        match self {
            SpawnerOrder::Listen(address) => packet.byte(1).rest(address.as_bytes()),
            SpawnerOrder::OpenLog(path) => packet.byte(2).path(path),
            SpawnerOrder::ReadConfiguration => packet.byte(3),
            SpawnerOrder::WritePidfile => packet.byte(4),
            SpawnerOrder::OpenControlSocket => packet.byte(5),
            SpawnerOrder::Start { app, uid, role } => packet.byte(6).byte(*role as u8).long(*uid).path(app),
            SpawnerOrder::Signal(signal) => packet.byte(7).byte(signal.as_raw() as u8),
            SpawnerOrder::StartSuccessor => packet.byte(8),
            SpawnerOrder::Tell(ServiceState::Ready) => packet.byte(9).byte(0),
            SpawnerOrder::Tell(ServiceState::HandedOver(pid)) => packet.byte(9).byte(1).pid(*pid),
            SpawnerOrder::Tell(ServiceState::Alive) => packet.byte(9).byte(2),
            SpawnerOrder::Tell(ServiceState::Reloading) => packet.byte(9).byte(3),
            SpawnerOrder::Tell(ServiceState::Stopping) => packet.byte(9).byte(4),
            SpawnerOrder::AnyChildren => packet.byte(10),
            SpawnerOrder::Leave(address) => packet.byte(11).rest(address.as_bytes()),
            SpawnerOrder::WatchCertificates => packet.byte(12),
        }
        .0
    }

    /// The number and the order of a packet; `None` for anything that [`SpawnerOrder::encode`] does not make.
    pub fn decode(packet: &[u8]) -> Option<(u32, SpawnerOrder)> {
        let mut packet = Reader(packet);
        let number = packet.long()?;
        let order = match packet.byte()? {
            1 => SpawnerOrder::Listen(packet.text()?),
            2 => SpawnerOrder::OpenLog(packet.path()?),
            3 => SpawnerOrder::ReadConfiguration,
            4 => SpawnerOrder::WritePidfile,
            5 => SpawnerOrder::OpenControlSocket,
            6 => SpawnerOrder::Start { role: packet.role()?, uid: packet.long()?, app: packet.path()? },
            7 => SpawnerOrder::Signal(packet.signal()?),
            8 => SpawnerOrder::StartSuccessor,
            9 => SpawnerOrder::Tell(match packet.byte()? {
                0 => ServiceState::Ready,
                1 => ServiceState::HandedOver(packet.pid()?),
                2 => ServiceState::Alive,
                3 => ServiceState::Reloading,
                4 => ServiceState::Stopping,
                _ => return None,
            }),
            10 => SpawnerOrder::AnyChildren,
            11 => SpawnerOrder::Leave(packet.text()?),
            12 => SpawnerOrder::WatchCertificates,
            _ => return None,
        };
        packet.is_empty().then_some((number, order))
    }
}

impl Reply {
    /// The packet that replies to the order with this number.
    pub fn encode(&self, number: u32) -> Vec<u8> {
        let packet = Writer::begin(number);
        match self {
            Reply::Done => packet.byte(1),
            Reply::Started(pid) => packet.byte(2).pid(*pid),
            Reply::Children(any) => packet.byte(3).byte(u8::from(*any)),
            Reply::Refused { errno, text } => {
                packet.byte(4).long(*errno as u32).rest(&text.as_bytes()[..text.len().min(TEXT_BYTES)])
            }
        }
        .0
    }

    /// The number and the reply of a packet.
    pub fn decode(packet: &[u8]) -> Option<(u32, Reply)> {
        let mut packet = Reader(packet);
        let number = packet.long()?;
        let reply = match packet.byte()? {
            1 => Reply::Done,
            2 => Reply::Started(packet.pid()?),
            3 => Reply::Children(packet.byte()? != 0),
            4 => Reply::Refused {
                errno: packet.long()? as i32,
                text: String::from_utf8_lossy(packet.rest()).into_owned(),
            },
            _ => return None,
        };
        packet.is_empty().then_some((number, reply))
    }
}

impl Ended {
    /// The packet.
    pub fn encode(self) -> Vec<u8> {
        let (kind, value) = match self.how {
            How::Exited(code) => (0, code),
            How::Killed(signal) => (1, signal),
        };
        Writer::begin(self.pid.as_raw_pid() as u32).byte(kind).long(value as u32).0
    }

    /// Decodes a packet.
    pub fn decode(packet: &[u8]) -> Option<Ended> {
        let mut packet = Reader(packet);
        let (pid, kind, value) = (packet.pid()?, packet.byte()?, packet.long()? as i32);
        let how = match kind {
            0 => How::Exited(value),
            1 => How::Killed(value),
            _ => return None,
        };
        packet.is_empty().then_some(Ended { pid, how })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn begin(number: u32) -> Writer {
        Writer(number.to_le_bytes().to_vec())
    }

    fn rest(mut self, bytes: &[u8]) -> Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    fn byte(self, byte: u8) -> Writer {
        self.rest(&[byte])
    }

    fn long(self, number: u32) -> Writer {
        self.rest(&number.to_le_bytes())
    }

    fn pid(self, pid: Pid) -> Writer {
        self.long(pid.as_raw_pid() as u32)
    }

    fn path(self, path: &Path) -> Writer {
        self.rest(path.as_os_str().as_bytes())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn long(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn pid(&mut self) -> Option<Pid> {
        i32::try_from(self.long()?).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)
    }

    fn signal(&mut self) -> Option<Signal> {
        let number = i32::from(self.byte()?);
        SIGNALS.into_iter().find(|signal| signal.as_raw() == number)
    }

    fn role(&mut self) -> Option<Role> {
        let number = self.byte()?;
        [Role::Mold, Role::Opener, Role::Companion].into_iter().find(|role| *role as u8 == number)
    }

    fn text(&mut self) -> Option<String> {
        let text = self.rest();
        (text.len() <= PATH_BYTES).then(|| String::from_utf8(text.to_vec()).ok())?
    }

    /// An absolute path, without a byte that no path has.
    fn path(&mut self) -> Option<PathBuf> {
        let path = self.rest();
        let is_path = path.first() == Some(&b'/') && path.len() <= PATH_BYTES && !path.contains(&0);
        is_path.then(|| Path::new(OsStr::from_bytes(path)).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn app() -> PathBuf {
        "/srv/blog/current".into()
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let pid = Pid::from_raw(4711).unwrap();
        for order in [
            SpawnerOrder::Listen("127.0.0.1:80".into()),
            SpawnerOrder::OpenLog("/var/log/blog.log".into()),
            SpawnerOrder::ReadConfiguration,
            SpawnerOrder::WritePidfile,
            SpawnerOrder::OpenControlSocket,
            SpawnerOrder::Start { app: app(), uid: 1000, role: Role::Mold },
            SpawnerOrder::Start { app: app(), uid: 0, role: Role::Opener },
            SpawnerOrder::Start { app: app(), uid: 1000, role: Role::Companion },
            SpawnerOrder::Signal(Signal::KILL),
            SpawnerOrder::StartSuccessor,
            SpawnerOrder::Tell(ServiceState::Ready),
            SpawnerOrder::Tell(ServiceState::HandedOver(pid)),
            SpawnerOrder::Tell(ServiceState::Alive),
            SpawnerOrder::Tell(ServiceState::Reloading),
            SpawnerOrder::Tell(ServiceState::Stopping),
            SpawnerOrder::AnyChildren,
            SpawnerOrder::Leave("unix:/run/blog.sock".into()),
            SpawnerOrder::WatchCertificates,
        ] {
            assert_eq!(SpawnerOrder::decode(&order.encode(77)), Some((77, order)));
        }
        for reply in [
            Reply::Done,
            Reply::Started(pid),
            Reply::Children(true),
            Reply::Refused { errno: 13, text: "permission denied".into() },
        ] {
            assert_eq!(Reply::decode(&reply.encode(78)), Some((78, reply)));
        }
        for how in [How::Exited(3), How::Killed(9)] {
            assert_eq!(Ended::decode(&Ended { pid, how }.encode()), Some(Ended { pid, how }));
        }
    }

    #[test]
    fn the_longest_messages_fit_into_a_packet() {
        let longest = format!("/{}", "x".repeat(PATH_BYTES - 1)).into();
        let order = SpawnerOrder::Start { app: longest, uid: 1, role: Role::Mold }.encode(1);
        assert!(order.len() <= PACKET_BYTES && SpawnerOrder::decode(&order).is_some());
        let text = "é".repeat(TEXT_BYTES);
        assert!(Reply::Refused { errno: 0, text }.encode(1).len() <= PACKET_BYTES);
    }

    #[test]
    fn other_signals_and_paths_are_refused() {
        for number in [0, 4, 11, 17, 18, 19, 64, 255] {
            let packet = Writer::begin(1).byte(7).byte(number).0;
            assert_eq!(SpawnerOrder::decode(&packet), None, "signal {number}");
        }
        let too_long = format!("/{}", "x".repeat(PATH_BYTES));
        for path in ["", "relative", "/with\0zero", &too_long] {
            let packet = Writer::begin(1).byte(2).rest(path.as_bytes()).0;
            assert_eq!(SpawnerOrder::decode(&packet), None, "{path:?}");
        }
        for pid in [0, u32::MAX, 1 << 31] {
            assert_eq!(SpawnerOrder::decode(&Writer::begin(1).byte(9).byte(1).long(pid).0), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_order_that_encodes_to_them_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some((number, order)) = SpawnerOrder::decode(&bytes) {
                prop_assert_eq!(order.encode(number), bytes);
            }
        }

        #[test]
        fn known_kinds_with_any_rest_are_an_order_that_encodes_to_them_or_none(
            kind in 0..16u8, rest in prop::collection::vec(any::<u8>(), 0..24),
        ) {
            let bytes = Writer::begin(9).byte(kind).rest(&rest).0;
            if let Some((number, order)) = SpawnerOrder::decode(&bytes) {
                prop_assert_eq!(order.encode(number), bytes);
            }
        }

        #[test]
        fn replies_and_news_of_any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (Reply::decode(&bytes), Ended::decode(&bytes));
        }
    }
}
