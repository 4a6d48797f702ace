//! Whose process is at the other end of a connection from this machine, as the kernel knows it.
//!
//! It is asked only for a client that has shown the cookie already: a cookie that another user's process has learnt
//! (an application that listens at another port of the same host, for example) is of no use to that user.

use std::net::{IpAddr, SocketAddr};

/// Whether the process at the other end of a TCP connection runs as `starter`, the user who started Highball, or as root.
#[allow(clippy::disallowed_methods)] // of the kernel, about this process
pub(crate) fn is_trusted(local: SocketAddr, peer: SocketAddr, starter: u32) -> bool {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let mut tables = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let user = tables.find_map(|table| table.lines().find_map(|line| user_of(line, peer, local)));
    user.is_some_and(|user| is_trusted_user(user, starter))
}

/// Whether it may see what the user may who started Highball: it is that user, or root; where that is root, also the one who
/// has become root by sudo for that.
pub(crate) fn is_trusted_user(user: u32, starter: u32) -> bool {
    let by_sudo = || std::env::var("SUDO_UID").is_ok_and(|uid| uid.parse() == Ok(user));
    user == 0 || user == starter || (starter == 0 && by_sudo())
}

/// The user of the socket between these addresses, if it is the one in this line (proc_pid_net(5), `/proc/net/tcp`).
fn user_of(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (this, that) = (address(words.next()?)?, address(words.next()?)?);
    let is_same = |one: SocketAddr, other: SocketAddr| {
        one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
    };
    if !is_same(this, local) || !is_same(that, remote) {
        return None;
    }
    let (user, inode) = (words.nth(4)?.parse().ok()?, words.nth(1)?);
    // A socket that its process has closed has no inode, and counts as root's.
    (inode != "0").then_some(user)
}

/// `0100007F:0BB8`: words in the order of this machine, of bytes in the order of the network.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match digits.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::from(<[u8; 16]>::try_from(words.concat()).ok()?)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn our_own_connections_are_ours() {
        for host in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue }; // without IPv6
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let starter = geteuid().as_raw();
            assert!(is_trusted(accepted.local_addr().unwrap(), peer, starter), "{host}");
            assert!(!is_trusted(peer, peer, starter), "{host}");
            drop(client); // what is left of it has no owner
            assert!(!is_trusted(accepted.local_addr().unwrap(), peer, starter), "{host}");
        }
    }

    #[test]
    fn a_line_names_its_user() {
        let line = "   0: 0100007F:0BB8 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1";
        let at = |text: &str| text.parse().unwrap();
        if cfg!(target_endian = "little") {
            assert_eq!(user_of(line, at("127.0.0.1:3000"), at("127.0.0.1:50000")), Some(1000));
        }
        assert_eq!(user_of(line, at("127.0.0.1:3000"), at("127.0.0.1:50001")), None);
        assert_eq!(user_of(&line.replace("4711", "0"), at("127.0.0.1:3000"), at("127.0.0.1:50000")), None);
    }

    #[test]
    fn other_users_are_not_trusted() {
        assert!(is_trusted_user(1000, 1000) && is_trusted_user(0, 1000));
        assert!(!is_trusted_user(1000, 1001) && !is_trusted_user(65_534, 0));
    }
}
