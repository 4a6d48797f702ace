//! Finding the servers that run: their control sockets are looked for, and each is asked for its status.

use crate::control::asking::{ask_in_time, closes, not_an_answer, ServerAddress};
use crate::control::listening::ports_of;
use crate::control::messages::{Answer, Question};
use crate::control::places::{ControlFolder, ControlPlaces};
use crate::output::complain;
use crate::process::event_loop::event_loop;
use highball_link::ServerReport;
use highball_users::Place;
use rustix::process::geteuid;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::UCred;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout_at, Instant};

/// How often this user's servers are looked for, while one takes the place of another.
const LOOKS: u32 = 5;
/// Time between looks at servers that close connections.
const CLOSING_TIME: Duration = Duration::from_millis(50);
/// How many servers are asked at the same time: many, as those of other users may keep from answering.
const AT_ONCE: usize = 512;
/// Time that others have to answer once the right server has answered: in a hot restart there are two.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// A server that has answered.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) address: ServerAddress,
    pub(crate) status: ServerReport,
    /// The user that its process has; none where that is the one who asks.
    pub(crate) other_user: Option<u32>,
}

/// What there is, and what was found that cannot be used.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) found: Vec<Instance>,
    /// Servers that were reached and gave no answer that can be used: why, and what to do.
    pub(crate) unanswered: Vec<String>,
    /// What is wrong with places.
    problems: Vec<String>,
    /// A server has gone before it answered: another may have come in its place meanwhile.
    one_has_gone: bool,
}

/// What is found in the places of this user, or else, where root asks, in those of other users.
pub(crate) fn ours_else_others<T>(mut find: impl FnMut(&ControlPlaces) -> Option<T>) -> Option<T> {
    let ours = find(&ControlPlaces::of_commands());
    ours.or_else(|| find(&ControlPlaces::of_others()))
}

/// Every server that answers. Sockets of dead ones are removed; what cannot be used is reported on standard error. Once one has
/// answered that is `enough`, others that take long are not waited for.
pub(crate) fn running(places: &ControlPlaces, enough: impl Fn(&ServerReport) -> bool) -> Vec<Instance> {
    let Looked { found, unanswered, .. } = look_for(places, enough);
    unanswered.into_iter().for_each(complain);
    found
}

/// The same; servers that do not answer are not reported, but returned.
pub(crate) fn look_for(places: &ControlPlaces, enough: impl Fn(&ServerReport) -> bool) -> Looked {
    let mut looked = Looked::default();
    // Another user could have root look again and again.
    let looks = if places.are_of_others() { 1 } else { LOOKS };
    for _ in 0..looks {
        looked = Looked::in_places(places, &enough);
        let is_there = |pid: i32| looked.found.iter().any(|instance| instance.status.pid == pid);
        let mut successors = looked.found.iter().filter_map(|instance| instance.status.processes.successor);
        if !looked.one_has_gone && successors.all(is_there) {
            break;
        }
        // A server that closes connections is about to end, most likely.
        if looked.found.is_empty() && !looked.unanswered.is_empty() {
            let _ = event_loop().map(|event_loop| event_loop.block_on(async { sleep(CLOSING_TIME).await }));
        }
    }
    std::mem::take(&mut looked.problems).into_iter().for_each(complain);
    looked
}

impl Looked {
    fn in_places(places: &ControlPlaces, enough: &impl Fn(&ServerReport) -> bool) -> Looked {
        let mut looked = Looked::default();
        let addresses = looked.addresses(places);
        match event_loop() {
            Ok(event_loop) => {
                let answers = event_loop.block_on(ask_all(addresses, enough));
                answers.into_iter().for_each(|(address, answer)| looked.take(address, answer));
            }
            Err(error) => looked.problems.push(format!("no server can be asked: {error}")),
        }
        looked.found.sort_by_key(|instance| instance.status.pid);
        note_successors(&mut looked.found);
        looked
    }

    /// The control sockets in these places.
    fn addresses(&mut self, places: &ControlPlaces) -> Vec<ServerAddress> {
        let mut addresses = Vec::new();
        let mut look_in = |folder: io::Result<ControlFolder>, owner: Option<u32>| {
            let is_ours = owner.is_none_or(|owner| owner == geteuid().as_raw());
            match folder.and_then(|folder| folder.sockets(is_ours)) {
                Ok(sockets) => {
                    addresses.extend(sockets.into_iter().map(|place| ServerAddress { place, owner }))
                }
                // What is wrong with folders of others is their own business.
                Err(error) if error.kind() == io::ErrorKind::NotFound || !is_ours => {}
                Err(error) => self.problems.push(error.to_string()),
            }
        };
        match places {
            ControlPlaces::Folders(folders) => {
                folders.iter().for_each(|(path, uid)| look_in(ControlFolder::open(path, *uid), Some(*uid)));
            }
            ControlPlaces::Named(path) if path.is_dir() => look_in(ControlFolder::open_named(path), None),
            ControlPlaces::Named(path) => match Place::open_to_find(path) {
                Ok(place) => addresses.push(ServerAddress { place, owner: None }),
                Err(error) => self.problems.push(error.to_string()),
            },
        }
        addresses
    }

    fn take(&mut self, address: ServerAddress, answer: io::Result<(Answer, UCred)>) {
        match answer {
            Ok((Answer::Status(status), peer)) => {
                let other_user = Some(peer.uid()).filter(|uid| *uid != geteuid().as_raw());
                let mut status = *status;
                if let (Some(uid), Some(_)) = (other_user, address.owner) {
                    // Root is not to take one user's server for another's.
                    let really = ports_of(status.pid, uid).unwrap_or_default();
                    status.ports.retain(|port| really.contains(port));
                }
                self.found.push(Instance { address, status, other_user });
            }
            Ok((Answer::Refused { why }, _)) => self.unanswered.push(format!("{address} refuses: {why}")),
            Ok(_) => self.unanswered.push(format!("{address}: {}", not_an_answer("it is another one"))),
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    address.remove_stale(); // its process has crashed
                    self.one_has_gone = true;
                }
                io::ErrorKind::NotFound => self.one_has_gone = true,
                // It is not one of this user's.
                io::ErrorKind::PermissionDenied => self.problems.push(error.to_string()),
                _ => {
                    self.one_has_gone |= closes(&error);
                    self.unanswered.push(format!("{address} does not answer: {error}"));
                }
            },
        }
    }
}

/// Asks servers for their status, side by side. Each answers within its time, or not at all; once the selected one has, the
/// others have little time left.
async fn ask_all(
    addresses: Vec<ServerAddress>,
    enough: &impl Fn(&ServerReport) -> bool,
) -> Vec<(ServerAddress, io::Result<(Answer, UCred)>)> {
    let (room, mut asked) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for address in addresses {
        let room = Arc::clone(&room);
        asked.spawn(async move {
            let _room = room.acquire().await;
            let answer = ask_in_time(&address, Question::Status).await;
            (address, answer)
        });
    }
    let (mut answers, mut deadline) = (Vec::new(), None);
    loop {
        let next = match deadline {
            Some(deadline) => timeout_at(deadline, asked.join_next()).await.unwrap_or_default(),
            None => asked.join_next().await,
        };
        let Some(asked) = next else { return answers };
        let Ok((address, answer)) = asked else { continue }; // it has panicked, which was reported
        if let (None, Ok((Answer::Status(status), peer))) = (deadline, &answer) {
            // What another user's server says of itself is not enough.
            let is_ours = address.owner.is_none() || peer.uid() == geteuid().as_raw();
            deadline = (is_ours && enough(status)).then(|| Instant::now() + SETTLE_TIME);
        }
        answers.push((address, answer));
    }
}

/// A process may have answered before it knew that another of its user serves in its place, which has answered as well.
fn note_successors(found: &mut [Instance]) {
    let succession =
        |instance: &Instance| Some((instance.status.predecessor?, instance.other_user, instance.status.pid));
    let successions: Vec<_> = found.iter().filter_map(succession).collect();
    for (predecessor, user, successor) in successions {
        let is_it =
            |instance: &&mut Instance| instance.status.pid == predecessor && instance.other_user == user;
        if let Some(instance) = found.iter_mut().find(is_it) {
            instance.status.processes.successor.get_or_insert(successor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status::a_status;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_socket_of_a_dead_instance_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join("4711.sock");
        drop(UnixListener::bind(&path).unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(running(&ControlPlaces::Folders(vec![(folder.path().into(), geteuid().as_raw())]), |_| {
            false
        })
        .is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn a_process_that_does_not_know_of_its_successor_yet_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let instance = |pid: i32, predecessor: Option<i32>, other_user: Option<u32>| {
            let status = ServerReport { pid, predecessor, ..a_status() };
            let place = Place::open_to_find(&folder.path().join(pid.to_string())).unwrap();
            Instance { address: ServerAddress { place, owner: None }, status, other_user }
        };
        // The last one says that it is the successor of another user's.
        let mut found = [instance(1, None, None), instance(2, Some(1), None), instance(3, Some(2), Some(7))];
        note_successors(&mut found);
        let successors = found.map(|instance| instance.status.processes.successor);
        assert_eq!(successors, [Some(2), None, None]);
    }
}
