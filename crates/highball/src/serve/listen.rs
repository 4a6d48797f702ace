//! A server that listens, before it boots and serves: what is checked, and what happens before there are threads.

use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use highball_config::{Bind, Named, RunsAs, Settings};
use highball_front as front;
use highball_link::HubSequence;
use highball_supervisor::{AppBlueprint, Launcher, Predecessor, TicketKeys, UpgradeContext};
use tracing::warn;
use zeroize::Zeroizing;

use crate::apps::source::{blueprints, is_given_as_object, one_too_many};
use crate::apps::{cgroups, puma};
use crate::certificates::{self, acme};
use crate::process::pidfile::Pidfile;
use crate::process::{open_files, started_path};
use crate::root::by_chance::warn_of_root;
use crate::root::{at_root, confinement, policy};
use crate::{admin, log};

/// A server that listens, before it boots and serves.
pub(super) struct ListeningServer {
    pub(super) settings: Arc<Settings>,
    pub(super) started: Instant,
    pub(super) apps: Vec<AppBlueprint>,
    pub(super) pidfile: Option<Pidfile>,
    pub(super) entrances: front::Entrances,
    /// For health checks, metrics and agent checks.
    pub(super) admin: admin::Listeners,
    /// For addresses with HTTPS.
    pub(super) tls: Option<Arc<front::Tls>>,
    /// What a successor will be made from; none where the application was given as an object.
    pub(super) upgrade_context: Option<UpgradeContext>,
    pub(super) launcher: Launcher,
}

impl ListeningServer {
    pub(super) fn listen(
        mut settings: Settings,
        mut predecessor: Option<&mut Predecessor>,
        launcher: Launcher,
    ) -> Result<ListeningServer, Box<dyn Error>> {
        let started = Instant::now();
        may_be_served(&mut settings, &launcher)?;
        let certificates = checked_certificates(&settings, &launcher)?;
        let apps = blueprints(&settings, predecessor.as_deref())?;
        let pidfile = match (&settings.pidfile, &predecessor) {
            (Some(path), None) => at_root::write_pidfile(path, false, &launcher)?,
            _ => None, // or once we have taken over
        };
        log::start(settings.log.format);
        // Before there are threads, and before it listens.
        open_files::make_room(&settings);
        if certificates.is_some() {
            certificates::keep_out_of_core_files();
        }
        cgroups::begin(&settings, &launcher);
        let publishers = front::PublishersSocket::bind()?;
        confinement::confine(&settings, &launcher);
        log::write_aside();
        warn_of_root(&settings);
        warn_of_ignored(&settings);
        warn_of_environments(&settings);
        settings.trace_notes.iter().for_each(|note| warn!(name: "trace_variable_ignored", "{note}"));
        puma::report(&settings);
        let tickets = predecessor.as_deref_mut().and_then(Predecessor::take_ticket_keys).map(Zeroizing::new);
        let tickets = tickets.as_ref().map(|tickets| tickets.as_str());
        let set_up = |certificates| certificates::set_up(&settings, certificates, tickets);
        let tls = certificates.map(set_up).transpose()?;
        let unused = front::close_other_activated(settings.binds.iter().chain(settings.admin.all_binds()));
        if let (Some(why), true) = (unused.first(), settings.bind_places.is_empty()) {
            return Err(why.as_str().into());
        }
        unused.iter().for_each(|warning| warn!(name: "socket_unused", "{warning}"));
        let mut listen_on = |binds: &[Bind], name: fn(&Bind) -> String, places: &[String]| {
            let listen = |(index, bind): (usize, &Bind)| {
                let listener = listen(bind, &name(bind), predecessor.as_deref_mut(), &launcher);
                listener.map_err(|error| at_place(places.get(index), error))
            };
            binds.iter().enumerate().map(listen).collect::<Result<Vec<_>, _>>()
        };
        let listeners = listen_on(&settings.binds, Bind::to_string, &settings.bind_places)?;
        let admin = admin::Listeners {
            health: listen_on(&settings.admin.binds, admin_name, &[])?,
            agents: listen_on(&settings.admin.agent_binds, agent_name, &[])?,
        };
        let old_front = predecessor.as_deref_mut().and_then(Predecessor::take_front);
        let pid_proxy = predecessor.and_then(|predecessor| {
            predecessor.drop_rest();
            predecessor.take_pid_proxy()
        });
        let (predecessor, hub) = match old_front {
            Some((socket, hub)) => (Some(socket), hub),
            None => (None, publishers.address().sequence()),
        };
        let upgrade_context = if is_given_as_object() {
            None
        } else {
            upgrade_context(&settings, &listeners, &admin, (pid_proxy, hub), tls.as_ref())?
        };
        Ok(ListeningServer {
            settings: Arc::new(settings),
            started,
            apps,
            pidfile,
            entrances: front::Entrances { listeners, publishers, predecessor, hub },
            admin,
            tls,
            upgrade_context,
            launcher,
        })
    }
}

/// # Errors
/// Why these settings are not served by this process.
fn may_be_served(settings: &mut Settings, launcher: &Launcher) -> Result<(), Box<dyn Error>> {
    if let Some(why) = one_too_many(settings) {
        return Err(why.into());
    }
    if is_given_as_object() {
        // It keeps the user that has loaded it.
        settings.apps.iter_mut().for_each(|app| Arc::make_mut(app).runs_as = RunsAs::Starter);
    } else if let Some(why) = none_is_named(settings) {
        return Err(why.into());
    } else if let Some(why) = policy::cannot_become_server_user(settings, launcher) {
        return Err(why.into());
    }
    if let Some(why) = at_root::why_no_spool_files(settings, launcher) {
        return Err(why.into());
    }
    acme::why_not(settings, launcher).map_or(Ok(()), |why| Err(why.into()))
}

/// What is wrong where a file was named that names no application, and there is none where this process was started.
fn none_is_named(settings: &Settings) -> Option<String> {
    let Named::Nowhere { file: Some(file) } = &settings.named else { return None };
    let app = settings.apps.first()?;
    let folder = &app.folder;
    (!highball_supervisor::may_be_served(folder, app.runs_as.another())).then(|| {
        let (file, folder) = (file.display(), folder.display());
        format!(
            "{file} has no [[app]], and there is no application in the current folder, {folder}: write an [[app]] with \
             its `path` for each application, or name the folder of the only one (highball --config {file} /srv/blog)"
        )
    })
}

/// The certificates, if there are addresses for HTTPS.
fn checked_certificates(
    settings: &Settings,
    launcher: &Launcher,
) -> Result<Option<certificates::Checked>, Box<dyn Error>> {
    if !certificates::are_needed(settings) {
        if settings.tls.redirect {
            return Err(
                "`redirect_https` needs an address for HTTPS, such as `bind = \"tls://0.0.0.0:443\"`".into(),
            );
        }
        return Ok(None);
    }
    let sources = at_root::read_certificates(settings, launcher)?;
    Ok(Some(certificates::check(sources)?))
}

/// An error with the address that was named there.
fn at_place(place: Option<&String>, error: Box<dyn Error>) -> Box<dyn Error> {
    place.map_or(error.to_string(), |place| format!("{place}: {error}")).into()
}

/// The name by which a process passes the socket for health checks to the next: both kinds may have the same address
/// with the port 0.
fn admin_name(bind: &Bind) -> String {
    format!("admin {bind}")
}

/// The same, for agent checks.
fn agent_name(bind: &Bind) -> String {
    format!("agent {bind}")
}

/// Listens on an address: with the socket that the process before has by this name, or with a new one.
fn listen(
    bind: &Bind,
    name: &str,
    predecessor: Option<&mut Predecessor>,
    launcher: &Launcher,
) -> Result<front::Listener, Box<dyn Error>> {
    match predecessor.and_then(|predecessor| predecessor.take_listener(name)) {
        Some(socket) => Ok(at_root::adopt(bind, socket, launcher)?),
        None => at_root::listen(bind, launcher),
    }
}

/// What a successor of this process will be made from.
fn upgrade_context(
    settings: &Settings,
    listeners: &[front::Listener],
    admin: &admin::Listeners,
    (pid_proxy, hub): (Option<OwnedFd>, HubSequence),
    tls: Option<&Arc<front::Tls>>,
) -> io::Result<Option<UpgradeContext>> {
    let share = |(name, listener): (String, &front::Listener)| Ok((name, listener.share()?));
    let of_admin = settings.admin.binds.iter().map(admin_name);
    let of_agents = settings.admin.agent_binds.iter().map(agent_name);
    let names = settings.binds.iter().map(Bind::to_string).chain(of_admin).chain(of_agents);
    let Some(program) = started_path::started_path() else { return Ok(None) };
    Ok(Some(UpgradeContext {
        program,
        arguments: std::env::args_os().collect(),
        listeners: names.zip(listeners.iter().chain(admin.iter())).map(share).collect::<io::Result<_>>()?,
        pid_proxy,
        ticket_keys: tls.map(|tls| {
            let tls = Arc::clone(tls);
            TicketKeys(Arc::new(move || tls.ticket_keys().to_string()))
        }),
        hub,
    }))
}

/// Warns of options that have no effect.
fn warn_of_ignored(settings: &Settings) {
    for place in &settings.ignored {
        warn!(
            name: "option_of_server",
            at = %place, "this option belongs to the server; the file of one of several applications cannot set it"
        );
    }
}

/// Warns of environments that Rails has no file for.
fn warn_of_environments(settings: &Settings) {
    for app in &settings.apps {
        if let Some(note) = &app.environment_note {
            warn!(name: "environment_unknown", application = app.name, "{note}");
        }
    }
}
