//! How a mold begins that the spawner has started: it is this program, runs as the application's user already, and
//! receives from the server the order what to run. So nothing that belongs to the application can hold up the server or
//! the spawner.

use crate::control::control_socket::{receive_packet, send_packet};
use crate::process::child::{Child, Output};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::process::fchdir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// The longest order.
const ORDER_BYTES: u64 = 16 << 20;

/// What the process is to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProcessOrder {
    program: OsString,
    arguments: Vec<OsString>,
    /// Names and values.
    environment: Vec<(OsString, OsString)>,
    output: Output,
    no_new_privs: bool,
}

impl ProcessOrder {
    pub(super) fn of(child: &Child) -> ProcessOrder {
        ProcessOrder {
            program: child.program.clone().into(),
            arguments: child.arguments.clone(),
            environment: child.environment.clone().into_iter().collect(),
            output: child.output,
            no_new_privs: child.no_new_privs,
        }
    }

    /// The same, for a process that is the user's already.
    pub(super) fn into_child(self) -> Child {
        Child {
            program: self.program.into(),
            arguments: self.arguments,
            user: None,
            environment: self.environment.into_iter().collect(),
            output: self.output,
            no_new_privs: self.no_new_privs,
        }
    }
}

/// Sends an order, which may be long, and descriptors with it.
pub(super) fn send_order(
    socket: &OwnedFd,
    order: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"highball-order", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(order)?)?;
    let all: Vec<BorrowedFd<'_>> = [file.as_fd()].into_iter().chain(descriptors.iter().copied()).collect();
    send_packet(socket, &(), &all)
}

/// Receives an order, and the descriptors that have come with it.
pub(super) fn receive_order<T: DeserializeOwned>(
    socket: &OwnedFd,
) -> io::Result<(T, impl Iterator<Item = OwnedFd>)> {
    let (_, descriptors) = receive_packet(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut descriptors = descriptors.into_iter();
    let mut order = File::from(descriptors.next().ok_or_else(no_order)?);
    order.rewind()?;
    let mut text = Vec::new();
    order.take(ORDER_BYTES).read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

pub(super) fn no_order() -> io::Error {
    io::Error::other("the server has sent no order")
}

/// Why it could not be run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Trouble {
    errno: i32,
    text: String,
}

impl From<&io::Error> for Trouble {
    fn from(error: &io::Error) -> Trouble {
        Trouble { errno: error.raw_os_error().unwrap_or_default(), text: error.to_string() }
    }
}

impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> io::Error {
        match trouble.errno {
            0 => io::Error::other(trouble.text),
            errno => io::Error::from_raw_os_error(errno),
        }
    }
}

/// Orders the process at the other end of `socket` what to become, in which folder, with this control socket, and the
/// pipe for its output, if it is to have one.
pub(crate) fn order(
    socket: &OwnedFd,
    child: &Child,
    folder: BorrowedFd<'_>,
    control: &OwnedFd,
    pipe: Option<&OwnedFd>,
) -> io::Result<()> {
    let mut descriptors = vec![folder, control.as_fd()];
    descriptors.extend(pipe.map(OwnedFd::as_fd));
    send_order(socket, &ProcessOrder::of(child), &descriptors)
}

/// Becomes a mold: receives the order from the server, and follows it.
pub fn become_mold(socket: OwnedFd) -> ExitCode {
    let error = match receive(&socket).and_then(run) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let _ = send_packet(&socket, &Trouble::from(&error), &[]); // if the server has gone, so has the application
    ExitCode::FAILURE
}

/// What the server has sent: the order, the folder, the control socket, and the pipe.
type ReceivedOrder = (ProcessOrder, OwnedFd, OwnedFd, Option<OwnedFd>);

fn receive(socket: &OwnedFd) -> io::Result<ReceivedOrder> {
    let (order, mut descriptors) = receive_order(socket)?;
    let (Some(folder), Some(control)) = (descriptors.next(), descriptors.next()) else {
        return Err(no_order());
    };
    let pipe = descriptors.next();
    Ok((order, folder, control, pipe))
}

fn run((order, folder, control, pipe): ReceivedOrder) -> io::Result<Infallible> {
    fchdir(folder)?;
    Err(order.into_child().command(None, Some(control), pipe)?.exec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::control_socket::ControlSocket;
    use crate::process::child::{Child, Output};

    fn child(program: &str) -> Child {
        Child {
            program: program.into(),
            arguments: vec!["boot.rb".into()],
            user: None,
            environment: [("RACK_ENV".into(), "production".into())].into(),
            output: Output::Inherited,
            no_new_privs: false,
        }
    }

    #[tokio::test]
    async fn what_is_to_be_run_arrives_in_the_process_that_becomes_it() {
        let (ours, theirs) = highball_spawner::channel::pair().unwrap();
        let (_control, control) = ControlSocket::pair().unwrap();
        let here = File::open(".").unwrap();
        order(&ours, &child("/usr/bin/ruby"), here.as_fd(), &control, None).unwrap();
        let (received, _, _, pipe) = receive(&theirs).unwrap();
        assert_eq!((received.program, received.arguments), ("/usr/bin/ruby".into(), vec!["boot.rb".into()]));
        assert_eq!(received.environment, [("RACK_ENV".into(), "production".into())]);
        assert!(pipe.is_none());
    }

    #[tokio::test]
    async fn it_says_why_it_cannot() {
        let (ours, theirs) = highball_spawner::channel::pair().unwrap();
        let (_control, control) = ControlSocket::pair().unwrap();
        let here = File::open(".").unwrap();
        order(&ours, &child("/nonexistent/ruby"), here.as_fd(), &control, None).unwrap();
        assert_eq!(format!("{:?}", become_mold(theirs)), format!("{:?}", ExitCode::FAILURE));
        let (text, _) = receive_packet(&ours).unwrap().unwrap();
        let error = io::Error::from(serde_json::from_slice::<Trouble>(&text).unwrap());
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
