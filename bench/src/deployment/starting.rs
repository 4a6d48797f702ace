//! Starting a scheme.

use super::family::{self, Family};
use super::readiness::{self, Listener};
use super::{ports, Deployment, Running, Setting, CACHE, LOG, TEMPORARY};
use crate::scheme::root::Root;
use crate::scheme::template::{self, Values};
use crate::scheme::{programs, Over, Process, Scheme};
use crate::{interrupt, Failure};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a server that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// The files of the certificate and its key, there.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The longest path that a Unix socket can have.
const SOCKET_PATH_BYTES: usize = 107;
/// What changes servers or applications when the shell has set it; a scheme names all that it needs.
const NOT_INHERITED: [&str; 8] = [
    "BINDING",
    "BUNDLE_GEMFILE",
    "LISTEN_FDS",
    "LISTEN_PID",
    "PIDFILE",
    "PORT",
    "RUBYOPT",
    "WEB_CONCURRENCY",
];

impl Deployment {
    /// All that there is before a process is started.
    pub(super) fn prepare(scheme: &Scheme, setting: &Setting) -> Result<Deployment, Failure> {
        let problem = |error| Failure(format!("no temporary folder: {error}"));
        let folder = tempfile::Builder::new().prefix("highball-bench-").tempdir().map_err(problem)?;
        // Front ends that give up root's rights still have to reach the backends' sockets.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).map_err(problem)?;
        let made = fs::metadata(folder.path()).and_then(|folder| folder.modified()).map_err(problem)?;
        let ports = ports::free(1 + scheme.backends(setting.workers))?;
        let mut deployment = Deployment {
            title: scheme.title.clone(),
            port: ports[0],
            protocol: scheme.protocol,
            backends: Vec::new(),
            listeners: Vec::new(),
            processes: Vec::new(),
            family: Family::new(folder.path().to_string_lossy().into_owned()),
            cold_start: Duration::ZERO,
            made,
            folder: Some(folder),
        };
        let values = deployment.values(scheme, setting);
        for (index, port) in ports[1..].iter().enumerate() {
            deployment.add_backend(index + 1, *port, scheme.over, &values)?;
        }
        deployment.write_files(scheme, &values)?;
        if scheme.protocol.has_tls() {
            deployment.write_certificate()?;
        }
        Ok(deployment)
    }

    fn values(&self, scheme: &Scheme, setting: &Setting) -> Values {
        let mut values = scheme.values();
        values.insert("app", setting.app.to_string_lossy().into_owned());
        values.insert("port", self.port.to_string());
        values.insert("dir", self.path().to_string_lossy().into_owned());
        values.insert("workers", setting.workers.to_string());
        values.insert("threads", setting.threads.to_string());
        let file = |name: &str| self.path().join(name).to_string_lossy().into_owned();
        values.insert("certificate", file(CERTIFICATE));
        values.insert("key", file(KEY));
        values
    }

    fn add_backend(
        &mut self,
        number: usize,
        port: u16,
        over: Option<Over>,
        common: &Values,
    ) -> Result<(), Failure> {
        let socket = self.path().join(format!("backend-{number}.sock"));
        if over == Some(Over::Unix) && socket.as_os_str().len() > SOCKET_PATH_BYTES {
            let remedy = "name a shorter folder in TMPDIR";
            return Err(Failure(format!(
                "{} is too long a path for a Unix socket: {remedy}",
                socket.display()
            )));
        }
        let mut values = common.clone();
        values.insert("backend", number.to_string());
        values.insert("backend_port", port.to_string());
        values.insert("socket", socket.to_string_lossy().into_owned());
        self.backends.push(values);
        self.listeners.push(match over {
            Some(Over::Unix) => Listener::Unix(socket),
            _ => Listener::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        });
        Ok(())
    }

    fn write_files(&self, scheme: &Scheme, values: &Values) -> Result<(), Failure> {
        let problem =
            |error| Failure(format!("its folder {} cannot be filled: {error}", self.path().display()));
        // For temporary files of its processes, whatever user they run as.
        let temporary = self.path().join(TEMPORARY);
        fs::create_dir(&temporary).map_err(problem)?;
        fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).map_err(problem)?;
        for file in &scheme.files {
            let path = self.path().join(template::fill(&file.path, values));
            fs::create_dir_all(path.parent().unwrap_or(self.path())).map_err(problem)?;
            let lines = template::fill_each(file.text.lines(), values, &self.backends);
            fs::write(path, lines.join("\n") + "\n").map_err(problem)?;
        }
        Ok(())
    }

    /// A certificate for localhost, and its key: ECDSA, as certificate authorities issue them by default.
    fn write_certificate(&self) -> Result<(), Failure> {
        let problem = |why: &str| Failure(format!("`openssl req` makes no certificate: {why}"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-keyout", KEY, "-out", CERTIFICATE])
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| problem(&error.to_string()))?;
        match made.status.success() {
            true => Ok(()),
            false => Err(problem(&String::from_utf8_lossy(&made.stderr))),
        }
    }

    /// Backends first: a front end that finds none may not look for them again soon.
    pub(super) fn launch(&mut self, scheme: &Scheme, setting: &Setting) -> Result<(), Failure> {
        for root in scheme.processes.iter().filter_map(|process| process.root.as_ref()) {
            root.shows(&setting.app)?;
        }
        let began = Instant::now();
        let env = self.environment(scheme, setting);
        let (backends, others): (Vec<_>, Vec<_>) =
            scheme.processes.iter().partition(|one| one.backends.is_some());
        for process in backends {
            for backend in self.backends.clone() {
                self.spawn(process, &env, &backend)?;
            }
        }
        let listeners = self.listeners.clone();
        self.wait_until("its backends did not listen", began, setting, || {
            let silent = listeners.iter().filter(|listener| !listener.is_open()).count();
            if silent == 0 {
                Ok(())
            } else {
                Err(format!("{silent} of {}", listeners.len()))
            }
        })?;

        let values = self.values(scheme, setting);
        for process in others {
            self.spawn(process, &env, &values)?;
        }
        let (address, protocol) = (self.address(), self.protocol);
        let what = format!("GET {} was not answered below 500", setting.ready_path);
        self.wait_until(&what, began, setting, || {
            match readiness::status(address, protocol, &setting.ready_path) {
                Ok(status) if status < 500 => Ok(()),
                Ok(status) => Err(format!("the last answer was {status}")),
                Err(error) => Err(error.to_string()),
            }
        })?;
        self.cold_start = began.elapsed();
        Ok(())
    }

    fn spawn(
        &mut self,
        process: &Process,
        env: &BTreeMap<String, String>,
        values: &Values,
    ) -> Result<(), Failure> {
        let words = process.command.iter().map(String::as_str);
        // A backend is one of them; a front end names them all.
        let named = if process.backends.is_some() { std::slice::from_ref(values) } else { &self.backends };
        let words = template::fill_each(words, values, named);
        let folder = template::fill(&process.folder, values);
        let problem =
            |error| Failure(format!("`{}` could not be started in {folder}: {error}", words.join(" ")));
        let log =
            OpenOptions::new().create(true).append(true).open(self.path().join(LOG)).map_err(problem)?;
        let mut command = Command::new("setpriv");
        // The kernel kills it when this process is killed.
        command.args(["--pdeathsig", "KILL", "--"]);
        command.args(process.root.iter().flat_map(Root::enter)).args(&words).current_dir(&folder);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        // As a shell does: Puma refuses to start where there is no such folder.
        command.env("PWD", &folder).envs(env);
        command.envs(process.env.iter().map(|(name, value)| (name, template::fill(value, values))));
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(problem)?).stderr(log);
        let child = command.process_group(0).spawn().map_err(problem)?;
        self.family.add_root(child.id() as i32);
        self.processes.push(Running {
            program: words[0].clone(),
            child,
            ended: None,
            stop_signal: process.stop_signal,
            stop_time: Duration::from_secs(process.stop_seconds),
        });
        Ok(())
    }

    /// What every process is given.
    fn environment(&self, scheme: &Scheme, setting: &Setting) -> BTreeMap<String, String> {
        let mut env = programs::environment(scheme.gem.is_some());
        for name in ["APP_ENV", "RACK_ENV", "RAILS_ENV"] {
            env.insert(name.into(), "production".into());
        }
        // Rails opens this number of connections to its database.
        env.insert("RAILS_MAX_THREADS".into(), setting.threads.to_string());
        env.insert("TMPDIR".into(), self.path().join(TEMPORARY).to_string_lossy().into_owned());
        // What earlier starts have left there would make a cold start faster.
        env.insert("XDG_CACHE_HOME".into(), self.path().join(CACHE).to_string_lossy().into_owned());
        env.insert(family::MARK.into(), self.path().to_string_lossy().into_owned());
        env.extend(setting.env.clone());
        env
    }

    /// Waits until there is no objection left; the last one is part of the words.
    fn wait_until(
        &mut self,
        what: &str,
        began: Instant,
        setting: &Setting,
        mut objection: impl FnMut() -> Result<(), String>,
    ) -> Result<(), Failure> {
        loop {
            self.refuse_ended()?;
            let Err(why) = objection() else {
                return Ok(());
            };
            if setting.interrupted.load(Ordering::Relaxed) {
                return Err(interrupt::failure());
            }
            if began.elapsed() >= setting.start_time {
                return Err(Failure(format!("{what} within {} s ({why})", setting.start_time.as_secs_f64())));
            }
            let running = self.processes.iter().filter(|process| process.ended.is_none());
            let pids: Vec<i32> = running.map(|process| process.child.id() as i32).collect();
            family::wait_for_end_of_any(&pids, ASK_EVERY)?;
        }
    }

    /// A first process that ends has failed, unless it left others behind: then it has daemonised.
    fn refuse_ended(&mut self) -> Result<(), Failure> {
        let before = self.count_ended();
        self.wait_for_roots();
        if self.count_ended() == before {
            return Ok(());
        }
        let running = self.processes.iter().filter(|process| process.ended.is_none()).count();
        let daemons = self.family.heads().len().saturating_sub(running);
        let ended = self.processes.iter().filter_map(|process| Some((process, process.ended?)));
        match ended.into_iter().find(|(_, status)| !status.success() || daemons == 0) {
            Some((process, status)) => {
                Err(Failure(format!("`{}` ended while it started: {status}", process.program)))
            }
            None => Ok(()),
        }
    }

    fn count_ended(&self) -> usize {
        self.processes.iter().filter(|process| process.ended.is_some()).count()
    }
}
