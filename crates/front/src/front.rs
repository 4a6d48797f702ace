//! The front's thread: its event loop, whose turns are in [`turn`], and its commands. In a hot restart, [`handing_over`] is what the old
//! process gives to the new one, and [`taking_over`] what the new one takes.

mod handing_over;
mod taking_over;

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use highball_config::{BindProtocol, Settings};
use highball_link::{AppCommand, FrontCommand, FrontEvent, HubSequence};
use highball_trace::SpanQueue;
use rustix::io::Errno;
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::canary;
use crate::clock::{self, now_ms, Seldom, TICK};
use crate::connection;
use crate::dispatch::DispatchState;
use crate::https::Https;
use crate::protocol::Protocol;
use crate::publishers::PublishersSocket;
use crate::refusals::failure::Developers;
use crate::route::app_state::AppState;
use crate::shared::{Counted, Leaving, Opening, Shared, Unanswered};
use crate::transport::listener::{Acceptor, Listener};
use crate::transport::stream::{Peer, Stream};
use crate::transport::tls::Tls;
use crate::turn;

/// How long accepting pauses when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The log says at most this often that a connection could not be accepted, in ms.
const LOG_MS: u64 = 60_000;

/// The sockets of a front.
#[derive(Debug)]
pub struct Entrances {
    /// For clients.
    pub listeners: Vec<Listener>,
    /// For processes of applications that publish messages.
    pub publishers: PublishersSocket,
    /// To the front of the process that this one takes over from.
    pub predecessor: Option<OwnedFd>,
    /// How messages are numbered.
    pub hub: HubSequence,
}

/// Serves on these sockets, from the start or from [`FrontCommand::Open`], until [`FrontCommand::End`]. Spans of requests go to
/// `spans`.
/// Takes this thread. Returns what was not answered from when it was to stop.
///
/// # Errors
/// The event loop cannot be set up.
pub fn run(
    settings: Arc<Settings>,
    developers: Developers,
    tls: Option<Arc<Tls>>,
    entrances: Entrances,
    opening: Opening,
    (commands, events): (Receiver<FrontCommand>, UnboundedSender<FrontEvent>),
    spans: Option<Arc<SpanQueue>>,
) -> io::Result<Unanswered> {
    // All clients depend on this thread, and each opener on a single user.
    highball_tenant::never_ask_on_this_thread();
    let Entrances { listeners, publishers, predecessor, hub } = entrances;
    let https_port = listeners.iter().find_map(Listener::https_port);
    let https = tls.map(|tls| Https::new(tls, https_port, &settings.tls));
    let address = Arc::clone(&publishers.address);
    let shared =
        Shared::new(settings, developers, https, (address, hub), (events, spans), listeners.len(), opening);
    let shared = Rc::new(shared);
    turn::run(&shared.turn, async {
        for listener in listeners {
            spawn_local(accept_all(listener.open()?, Rc::clone(&shared)));
        }
        let ends = Rc::new(Notify::new());
        let publishers = spawn_local(publishers.accept_all(Rc::clone(&shared), Rc::clone(&ends))?);
        spawn_local(Rc::clone(&shared.fan_out).run());
        spawn_local(tick(Rc::clone(&shared)));
        obey(commands, &shared, predecessor).await;
        let unanswered = shared.unanswered();
        ends.notify_one();
        let _ = publishers.await; // an error: it has panicked
        shared.finish_logs().await;
        Ok(unanswered)
    })?
}

async fn obey(mut commands: Receiver<FrontCommand>, shared: &Rc<Shared>, mut predecessor: Option<OwnedFd>) {
    while let Some(command) = commands.recv().await {
        match command {
            FrontCommand::Open => match predecessor.take() {
                Some(socket) => drop(spawn_local(taking_over::take_over(socket, Rc::clone(shared)))),
                None => drop(shared.open.send_replace(true)),
            },
            FrontCommand::NewProcess(socket) => {
                drop(spawn_local(handing_over::hand_over(socket, Rc::clone(shared))));
            }
            FrontCommand::HandOver { kept } => shared.leave(Leaving::HandedOver, kept),
            FrontCommand::AnnounceStop => shared.stop_soon(),
            FrontCommand::Drain => shared.leave(Leaving::Stopping, Vec::new()),
            FrontCommand::ReopenLogs => shared.reopen_logs(),
            FrontCommand::Report(reply) => {
                // The command that asked may have ended.
                let _ = reply.send(shared.report());
            }
            FrontCommand::ListRequests { most, to } => {
                let requests = shared.apps.borrow().iter().map(|app| app.running(most)).collect();
                let _ = to.send(requests); // as above
            }
            FrontCommand::AddApp(app) => shared.add_app(app),
            FrontCommand::ChangeApp(app) => shared.change_app(app),
            FrontCommand::RemoveApp(app) => shared.remove_app(app),
            FrontCommand::End => break,
            FrontCommand::ToApp(id, command) => {
                let app = shared.apps.borrow().get(id);
                match app {
                    Some(app) => obey_for(&app, command, shared),
                    None => shared.answer_for_forgotten(id, command),
                }
            }
        }
    }
}

/// Obeys what concerns one application.
fn obey_for(app: &Rc<AppState>, command: AppCommand, shared: &Rc<Shared>) {
    match command {
        AppCommand::Booted(reported) => app.booted(&reported),
        AppCommand::OpenSite { root } => app.open_site(root),
        AppCommand::Failed(diagnosis) => app.failed(&diagnosis, shared.pages),
        AppCommand::Abandon => app.abandon(),
        AppCommand::AddWorker(new) => {
            app.served();
            app.figures.borrow_mut().workers_started += 1;
            app.dispatcher.borrow_mut().add_worker(new, DispatchState::Serving);
        }
        AppCommand::AddCanary(new) => {
            let worker = new.worker;
            app.figures.borrow_mut().workers_started += 1;
            if app.dispatcher.borrow_mut().add_worker(new, DispatchState::Canary) {
                spawn_local(canary::ask(worker, Rc::clone(app), Rc::clone(shared)));
            }
        }
        AppCommand::AdmitCanary { worker } => {
            app.served();
            app.dispatcher.borrow_mut().admit_canary(worker);
        }
        AppCommand::WithdrawGeneration { generation } => app.withdraw(generation),
        AppCommand::Rollout(rollout) => app.set_rollout(&rollout),
        AppCommand::EndRollout => app.end_rollout(),
        AppCommand::NameWarmWorker { requests } => app.dispatcher.borrow_mut().name_warm_worker(requests),
        AppCommand::CrashLoop { is_on } => app.dispatcher.borrow_mut().is_crashing = is_on,
        AppCommand::SignOfLife { worker, answers, is_stopped } => {
            app.dispatcher.borrow_mut().note_sign_of_life(worker, answers, is_stopped);
        }
        AppCommand::RetireWorker { worker } => {
            let has_hijacked = app.dispatcher.borrow_mut().retire_worker(worker);
            if has_hijacked {
                shared.deadlines.nudge_all();
            }
            app.give_up_waiting();
        }
        AppCommand::RelieveWorker { worker } => {
            if app.dispatcher.borrow_mut().relieve_worker(worker) {
                app.give_up_waiting();
            }
        }
        AppCommand::RemoveWorker { worker, killed } => {
            app.count_end_of_worker(worker, killed);
            app.dispatcher.borrow_mut().remove_worker(worker, killed);
            app.give_up_waiting();
        }
    }
}

async fn tick(shared: Rc<Shared>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Where tasks always have something to do, no turn begins.
        clock::look();
        shared.deadlines.tick();
        shared.tick(now_ms());
    }
}

/// Accepts until the server drains, and then what is in the backlog: it was accepted by the kernel already. (Where
/// another server has the same socket, that one will take it.)
async fn accept_all(acceptor: Acceptor, shared: Rc<Shared>) {
    let mut draining = shared.draining.subscribe();
    tokio::select! {
        () = accept_while_there_is_room(&acceptor, &shared) => {}
        _ = draining.wait_for(|draining| *draining) => {}
    }
    if shared.is_left_to_another(&acceptor) {
        acceptor.leave_to_another();
    } else {
        // The event loop may not have looked at the backlog yet; and all of it has to be taken in one go.
        tokio::task::yield_now().await;
        tokio::task::unconstrained(accept_backlog(&acceptor, &shared)).await;
    }
    drop(acceptor);
    shared.acceptor_ended();
}

async fn accept_while_there_is_room(acceptor: &Acceptor, shared: &Rc<Shared>) {
    // Fails only when the front is gone.
    let _ = shared.open.subscribe().wait_for(|open| *open).await;
    let logged = Seldom::default();
    loop {
        while !shared.makes_room() {
            shared.freed.notified().await;
        }
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            () = shared.full.notified() => continue,
        };
        let Err(error) = take(accepted, acceptor.protocol, shared) else { continue };
        if logged.is_due(LOG_MS) {
            tracing::error!(
                name: "connection_not_accepted",
                %error, address = acceptor.address, "a connection could not be accepted; trying again every {ACCEPT_PAUSE:?}. If files have run out, raise the limit (ulimit -n, LimitNOFILE= of systemd); until then, idle connections are closed for new ones"
            );
        }
        if is_about_room(&error) && shared.dismiss_longest_idle() {
            let _ = tokio::time::timeout(ACCEPT_PAUSE, shared.freed.notified()).await;
        } else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

async fn accept_backlog(acceptor: &Acceptor, shared: &Rc<Shared>) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            () = std::future::ready(()) => return,
        };
        match take(accepted, acceptor.protocol, shared) {
            Ok(()) => {}
            // Ending connections make room.
            Err(error) if is_about_room(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
            Err(error) => {
                return tracing::error!(
                    name: "accepting_ended", %error, "no more connections could be accepted"
                )
            }
        }
    }
}

/// Serves a connection that was accepted, and speaks this protocol.
fn take(accepted: io::Result<(Stream, Peer)>, protocol: BindProtocol, shared: &Rc<Shared>) -> io::Result<()> {
    match accepted {
        Ok((stream, peer)) => {
            let counted = Counted::new(Rc::clone(shared));
            let shared = Rc::clone(shared);
            if protocol == BindProtocol::Https {
                spawn_local(connection::serve_tls(stream, peer, shared, counted));
            } else {
                spawn_local(connection::serve(stream, peer, Protocol::of(protocol), shared, counted));
            }
            Ok(())
        }
        Err(error) if is_about_one_client(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// accept(2) also reports errors of the connection that it would have returned.
fn is_about_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, TimedOut};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | TimedOut)
}

/// Whether there was no room for another connection, of which there may be some later.
fn is_about_room(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
