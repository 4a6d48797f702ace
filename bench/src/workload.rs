//! The requests that an application gets: a file of `bench/workloads`.
//!
//! People write what [`Workload`] and [`Request`] have, by the same names.
#![allow(missing_docs)] // where a name and its unit say all

use crate::scheme::{Floor, Scheme};
use crate::socket::Protocol;
use crate::waiting::ended_within;
use crate::Failure;
use rustix::process::{kill_process_group, Pid, Signal};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The most requests of a workload.
const MOST_REQUESTS: usize = 10_000;
/// The longest that the preparation of an application may take. Redmine's takes a minute on two slow cores.
const PREPARATION: Duration = Duration::from_secs(600);

/// A workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    pub title: String,
    /// The application's folder, absolute; in the file absolute, or relative to `bench`.
    pub app: PathBuf,
    /// What is sent, one after the other and from the beginning again.
    #[serde(rename = "request", default)]
    pub requests: Vec<Request>,
    /// The floors that can answer it too.
    pub floors: Option<Floor>,
    /// Debian packages that the application needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Environment variables of the application. `{bench}` in a value of the file stands for that folder's absolute path.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Every request is made once beforehand; the cookies of its answer are sent with it from then on.
    #[serde(default)]
    pub cookies: bool,
    /// Clients that are there all the while and are not measured.
    pub slow_clients: Option<SlowClients>,
    /// The page on which the process that answers tells what its Ruby has done; see `bench/apps/heap.rb`.
    pub heap: Option<String>,
    /// A command that makes what the application needs, and does nothing if that is there.
    #[serde(default)]
    pub prepare: Vec<String>,
    /// The folder `bench`, in which that command runs.
    #[serde(skip)]
    pub bench: PathBuf,
}

/// A request, and what the answer to it must be. In a file, one with `n` stands for many.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Bytes of the request's body.
    pub body_bytes: u64,
    pub status: u16,
    /// Bytes of the answer's body, as far as they are known: at `HEAD` there are none.
    pub bytes: Option<u64>,
    /// The answer is another one each time, so only its status (and `bytes`) can be checked.
    pub dynamic: bool,
    /// Text that the answer's body must contain.
    pub marker: Option<String>,
    /// It is known to take long: `highball bench fairness` counts its latency apart.
    pub long: bool,
    /// The first and the last number to replace `{n}` in its path and marker.
    pub n: Option<(u32, u32)>,
}

/// Connections that ask for one thing, and read the answer slowly for as long as others are measured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowClients {
    pub connections: u32,
    /// What they ask for. The answer has to be larger than a socket's buffer can grow: 4 MiB on Linux.
    pub path: String,
    pub bytes_per_second: u32,
}

impl Default for Request {
    /// `GET /`, which has to be answered by 200.
    fn default() -> Self {
        Request {
            method: "GET".into(),
            path: "/".into(),
            headers: Vec::new(),
            body_bytes: 0,
            status: 200,
            bytes: None,
            dynamic: false,
            marker: None,
            long: false,
            n: None,
        }
    }
}

impl Workload {
    /// Whether the scheme can answer the requests, which a floor cannot that has not got the application; and whether it
    /// can be asked.
    pub(crate) fn suits(&self, scheme: &Scheme) -> bool {
        let is_answered = scheme.floor.is_none() || scheme.floor == self.floors;
        // Cookies are fetched, and slow clients connect, without TLS.
        is_answered && (scheme.protocol == Protocol::Http || !(self.cookies || self.slow_clients.is_some()))
    }

    /// Reads the workload in this file, which is in a folder next to `apps`.
    ///
    /// # Errors
    /// It cannot be read, or is not a workload.
    pub fn read(file: &Path) -> Result<Workload, Failure> {
        let problem = |error: &dyn Display| Failure(format!("workload {}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|e| problem(&e))?;
        let written: Workload = toml::from_str(&text).map_err(|e| problem(&e))?;
        let absolute = file.canonicalize().map_err(|e| problem(&e))?;
        let bench = absolute.ancestors().nth(2).ok_or_else(|| problem(&"it is in no folder"))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        written.resolve(name, bench).map_err(|e| problem(&e))
    }

    /// Reads every workload of this folder, sorted by file name.
    ///
    /// # Errors
    /// The folder cannot be read, or one of them is not a workload.
    pub fn read_all(folder: &Path) -> Result<Vec<Workload>, Failure> {
        crate::data_files(folder)?.iter().map(|file| Workload::read(file)).collect()
    }

    /// Makes what the application needs: a database, or files. Returns at once if that is there. `stopped` is asked
    /// all the while whether the benchmark is to end; if so, the preparation is ended too.
    ///
    /// # Errors
    /// The command cannot be run, fails, takes more than ten minutes, or was stopped.
    pub fn prepare(&self, stopped: &dyn Fn() -> bool) -> Result<(), Failure> {
        let [program, arguments @ ..] = self.prepare.as_slice() else { return Ok(()) };
        let problem = |error: &dyn Display| {
            let command = self.prepare.join(" ");
            Failure(format!(
                "workload {}: preparing it by `{command}` in {}: {error}",
                self.name,
                self.bench.display()
            ))
        };
        let output = tempfile::tempfile().map_err(|e| problem(&e))?;
        let (for_stdout, for_stderr) = (output.try_clone(), output.try_clone());
        let child = Command::new("setpriv") // it ends with us, however we end
            .args(["--pdeathsig", "TERM", program])
            .args(arguments)
            .envs(&self.env)
            .current_dir(&self.bench)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(for_stdout.map_err(|e| problem(&e))?)
            .stderr(for_stderr.map_err(|e| problem(&e))?)
            .spawn()
            .map_err(|e| problem(&e))?;
        let status = wait(child, stopped).map_err(|e| problem(&e))?;
        if status.success() {
            return Ok(());
        }
        Err(problem(&format!("{status}\n{}", end_of(output))))
    }
}

/// Waits for the end of a command. Kills it with all it started if it takes too long, or is no longer wanted.
fn wait(mut child: Child, stopped: &dyn Fn() -> bool) -> Result<ExitStatus, Failure> {
    let problem = |error: &dyn Display| Failure(format!("waiting for its end: {error}"));
    let ended = ended_within(&child, PREPARATION, stopped);
    if !matches!(ended, Ok(true)) {
        // Its pid is not used again before it is waited for; if all of it is gone already, all is well.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().map_err(|e| problem(&e))?;
    match ended {
        Ok(true) => Ok(status),
        Ok(false) if stopped() => Err(Failure::new("it was stopped")),
        Ok(false) => Err(Failure(format!("it took more than {} s", PREPARATION.as_secs()))),
        Err(error) => Err(problem(&error)),
    }
}

/// The last lines that were written to this file.
fn end_of(mut file: std::fs::File) -> String {
    use std::io::{Read, Seek};
    const LINES: usize = 20;
    let mut bytes = Vec::new();
    if let Err(error) = file.rewind().and_then(|()| file.read_to_end(&mut bytes)) {
        return format!("(what it wrote cannot be read: {error})");
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

impl Workload {
    /// What is meant by what is written.
    fn resolve(self, name: String, bench: &Path) -> Result<Workload, Failure> {
        let env = self.env.into_iter().map(|(key, value)| Ok((key, expand(&value, bench)?)));
        if let Some(slow) = &self.slow_clients {
            slow.check().map_err(|e| Failure(format!("slow_clients: {e}")))?;
        }
        if let Some(path) = &self.heap {
            check_path(path).map_err(|e| Failure(format!("heap: {e}")))?;
        }
        Ok(Workload {
            name,
            app: bench.join(self.app),
            requests: mixed(&self.requests)?,
            env: env.collect::<Result<_, Failure>>()?,
            bench: bench.to_owned(),
            ..self
        })
    }
}

/// Replaces `{bench}` by the folder's path.
fn expand(value: &str, bench: &Path) -> Result<String, Failure> {
    let bench = bench.to_str().ok_or_else(|| Failure::new("the path of the folder bench is not UTF-8"))?;
    let expanded = value.replace("{bench}", bench);
    match expanded.contains('{') {
        true => Err(Failure(format!("env: only {{bench}} can be put in, not what {value:?} asks for"))),
        false => Ok(expanded),
    }
}

impl SlowClients {
    fn check(&self) -> Result<(), Failure> {
        check_path(&self.path)?;
        if self.connections == 0 || self.bytes_per_second == 0 {
            return Err(Failure::new("connections and bytes_per_second begin at 1"));
        }
        Ok(())
    }
}

impl Request {
    /// How many requests it stands for.
    fn count(&self) -> usize {
        self.n.map_or(1, |(first, last)| (last - first) as usize + 1)
    }

    /// The one of these at this place, from 0.
    fn numbered(&self, index: usize) -> Request {
        let Some((first, _)) = self.n else { return self.clone() };
        let number = (first as usize + index).to_string();
        let with_number = |text: &String| text.replace("{n}", &number);
        Request {
            path: with_number(&self.path),
            marker: self.marker.as_ref().map(with_number),
            n: None,
            ..self.clone()
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let problem = |what: &str| Err(Failure::new(what));
        check_path(&self.path)?;
        match self.n {
            Some((first, last)) if first > last => return problem("n begins after its end"),
            Some(_) if !self.path.contains("{n}") => return problem("there is an n, but no {n} in its path"),
            None if self.path.contains("{n}") => return problem("there is an {n} in its path, but no n"),
            _ => {}
        }
        if self.method.is_empty() || !self.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return problem("its method is not one in capital letters");
        }
        if self.body_bytes > 0 && matches!(self.method.as_str(), "GET" | "HEAD") {
            return problem("a GET or HEAD has no body");
        }
        if !(200..=599).contains(&self.status) {
            return problem("its status is not from 200 to 599");
        }
        match self.headers.iter().find(|(name, value)| !is_token(name) || value.chars().any(char::is_control))
        {
            Some((name, _)) => Err(Failure(format!("{name:?} is not a header field, or its value is not"))),
            None => Ok(()),
        }
    }
}

fn check_path(path: &str) -> Result<(), Failure> {
    match path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => {
            Err(Failure(format!("the path {path:?} does not begin with a slash, or holds what a URL cannot")))
        }
    }
}

/// Whether this can be a header field's name (RFC 9110, 5.1).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// All that these stand for, evenly mixed: any stretch of the list holds as much of each as the whole.
fn mixed(rules: &[Request]) -> Result<Vec<Request>, Failure> {
    if rules.is_empty() {
        return Err(Failure::new("it has no [[request]]"));
    }
    for (rule, number) in rules.iter().zip(1..) {
        rule.check().map_err(|e| Failure(format!("request {number}, {}: {e}", rule.path)))?;
    }
    let total: usize = rules.iter().map(Request::count).sum();
    if total > MOST_REQUESTS {
        return Err(Failure(format!("it has {total} requests; the most are {MOST_REQUESTS}")));
    }
    let place = |index: usize, count: usize| (index as f64 + 0.5) / count as f64;
    let mut placed: Vec<(f64, Request)> = rules
        .iter()
        .flat_map(|rule| (0..rule.count()).map(|index| (place(index, rule.count()), rule.numbered(index))))
        .collect();
    placed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(placed.into_iter().map(|(_, request)| request).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn read(text: &str) -> Result<Workload, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("workloads/one.toml");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        Workload::read(&file)
    }

    fn refusal(text: &str) -> String {
        read(text).expect_err(text).0
    }

    const HEAD: &str = "title = 'One'\napp = 'apps/one'\n";

    #[test]
    fn reads_what_is_written_and_finds_its_folder() {
        let one =
            read(&format!("{HEAD}env = {{ SITE = '{{bench}}/site' }}\n[[request]]\npath = '/'")).unwrap();
        let bench = one.app.ancestors().nth(2).unwrap().to_owned();
        assert_eq!((one.name.as_str(), one.title.as_str()), ("one", "One"));
        assert!(one.app.is_absolute() && one.app.ends_with("apps/one"));
        assert_eq!(one.env["SITE"], bench.join("site").to_str().unwrap());
        assert_eq!(one.requests, [Request::default()]);
    }

    #[test]
    fn an_application_can_be_anywhere() {
        let one = read("title = 'One'\napp = '/usr/share/one'\n[[request]]\npath = '/'").unwrap();
        assert_eq!(one.app, Path::new("/usr/share/one"));
    }

    #[test]
    fn rules_are_mixed_evenly() {
        let rules = "[[request]]\npath = '/a/{n}'\nn = [1, 4]\n[[request]]\npath = '/b/{n}'\nn = [7, 8]";
        let one = read(&format!("{HEAD}{rules}")).unwrap();
        let paths: Vec<&str> = one.requests.iter().map(|request| request.path.as_str()).collect();
        assert_eq!(paths, ["/a/1", "/b/7", "/a/2", "/a/3", "/b/8", "/a/4"]);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, words) in [
            ("", "no [[request]]"),
            ("paht = '/'\n", "unknown field `paht`"),
            ("[[request]]\npath = '/'\nbody = 1", "unknown field `body`"),
            ("[[request]]\npath = 'x'", "request 1, x: the path \"x\" does not begin with a slash"),
            ("[[request]]\npath = '/{n}'", "request 1, /{n}: there is an {n} in its path, but no n"),
            ("[[request]]\npath = '/'\n[[request]]\npath = '/x'\nn = [1, 2]", "request 2, /x: there is an n"),
            ("[[request]]\npath = '/{n}'\nn = [2, 1]", "n begins after its end"),
            ("[[request]]\npath = '/{n}'\nn = [0, 4294967295]", "4294967296 requests; the most are 10000"),
            ("[[request]]\npath = '/'\nmethod = 'get'", "capital letters"),
            ("[[request]]\npath = '/'\nbody_bytes = 1", "has no body"),
            ("[[request]]\npath = '/'\nstatus = 99", "from 200 to 599"),
            ("[[request]]\npath = '/'\nheaders = [['a b', 'c']]", "\"a b\" is not a header field"),
            ("env = { A = '{home}' }\n[[request]]\npath = '/'", "only {bench} can be put in"),
            ("slow_clients = { connections = 0, path = '/', bytes_per_second = 1 }\n[[request]]\npath = '/'", "begin at 1"),
        ] {
            let error = refusal(&format!("{HEAD}{text}"));
            assert!(error.contains(words) && error.contains("one.toml"), "{text}: {error}");
        }
    }

    fn prepared_by(command: &str, stopped: &dyn Fn() -> bool) -> Result<(), Failure> {
        let prepare = format!("prepare = ['sh', '-c', '{command}']\nenv = {{ NEWS = 'no news' }}");
        let mut one = read(&format!("{HEAD}{prepare}\n[[request]]\npath = '/'")).unwrap();
        one.bench = std::env::temp_dir(); // the other is gone
        one.prepare(stopped)
    }

    #[test]
    fn a_failed_preparation_shows_its_output() {
        prepared_by("exit 0", &|| false).unwrap();
        let error = prepared_by("echo $NEWS; exit 3", &|| false).expect_err("it failed").0;
        assert!(error.contains("exit status: 3\nno news"), "{error}");
    }

    #[test]
    fn a_preparation_ends_when_the_benchmark_does() {
        let began = Instant::now();
        let error = prepared_by("sleep 60 & wait", &|| true).expect_err("it was stopped").0;
        assert!(error.contains("it was stopped"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
