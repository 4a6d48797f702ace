//! A way to deploy an application: a file of `bench/schemes`.
//!
//! Such a file says in a few lines what is joined; the programs themselves are described by parts, in the folder
//! `parts` beside it, so that a front end is configured alike for whatever stands behind it. A scheme of a single
//! program needs no parts: it can hold everything itself. `bench/schemes/README.md` explains the form.
//!
//! In reading order: this file (the form, and its rules), `template` (placeholders), `programs` (where programs and
//! gems are found), `root` (those of other releases of Debian), `version`.

pub(crate) mod programs;
pub(crate) mod root;
pub(crate) mod template;
mod version;

use crate::socket::Protocol;
use crate::{results, Failure};
use root::Root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use template::Values;
use version::{KnownVersions, Version};

/// A way to deploy.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Its file's name without `.toml`.
    pub name: String,
    /// What tables call it.
    pub title: String,
    /// The server that calls the application, such as "Puma".
    pub server: String,
    /// The program in front of it, such as "nginx".
    pub front: Option<String>,
    /// The scheme of 2006 that it is today's equivalent of.
    pub stands_for: Option<String>,
    /// It runs no Ruby, and this is what it answers.
    pub floor: Option<Floor>,
    /// The gem it needs, which no Debian package brings.
    pub gem: Option<String>,
    /// What clients speak with it.
    pub protocol: Protocol,
    /// How its front end reaches the backends.
    pub(crate) over: Option<Over>,
    pub(crate) files: Vec<ConfigFile>,
    /// In the order in which they are started: backends first.
    pub(crate) processes: Vec<Process>,
    sources: Vec<Source>,
    versions: KnownVersions,
}

/// What a scheme answers that runs no Ruby; and which of these schemes can answer a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Floor {
    /// A few bytes, whatever is asked.
    Constant,
    /// The files in the application's public folder.
    Files,
}

/// Where a part of a scheme, or the scheme itself, has its programs from.
#[derive(Debug, Clone)]
struct Source {
    /// `None`: from this machine.
    root: Option<Root>,
    packages: Vec<String>,
    needs: Vec<PathBuf>,
    versions: Vec<Version>,
}

/// What cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Such as "there is no program thin".
    pub why: String,
    /// Debian packages that would bring it; none where no package does.
    pub packages: Vec<String>,
}

/// A configuration file. A line that names a backend is repeated for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigFile {
    /// Below the deployment's folder.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A program that is started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    /// The program and its arguments. In a front end's command, an argument that names a backend is repeated for each.
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    #[serde(default = "app")]
    pub(crate) folder: String,
    /// It listens for a front end, not for clients; the number of its copies.
    pub(crate) backends: Option<Backends>,
    #[serde(default)]
    pub(crate) stop_signal: StopSignal,
    /// How long it may take to end, in seconds; after that it is killed.
    #[serde(default = "stop_seconds")]
    pub(crate) stop_seconds: u64,
    /// Whose program it is; `None`: this machine's.
    #[serde(skip)]
    pub(crate) root: Option<Root>,
}

/// How many backends a process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Backends {
    /// One, which has its own workers.
    One,
    /// A copy of the process for every worker of the setting.
    Workers,
}

/// What asks a process to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum StopSignal {
    #[default]
    Term,
    Int,
    Quit,
}

impl From<StopSignal> for rustix::process::Signal {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Term => Self::TERM,
            StopSignal::Int => Self::INT,
            StopSignal::Quit => Self::QUIT,
        }
    }
}

/// How a front end reaches its backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    Tcp,
    Unix,
}

/// A file of `bench/schemes`, or of its folder `parts`: a program that many schemes use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    title: String,
    #[serde(default)]
    server: String,
    front: Option<String>,
    stands_for: Option<String>,
    floor: Option<Floor>,
    gem: Option<String>,
    #[serde(default)]
    protocol: Protocol,
    over: Option<Over>,
    /// The name of a scheme that it is like, but for its title and root.
    like: Option<String>,
    /// Names of files in the folder `parts`: backends first.
    #[serde(default)]
    parts: Vec<String>,
    /// In a part: what `{address}` stands for, which is where a backend listens, in its own words or in those of the front end.
    #[serde(default)]
    address: BTreeMap<Over, String>,
    root: Option<String>,
    #[serde(default)]
    packages: Vec<String>,
    #[serde(default)]
    needs: Vec<PathBuf>,
    #[serde(default, rename = "version")]
    versions: Vec<Version>,
    #[serde(default, rename = "file")]
    files: Vec<ConfigFile>,
    #[serde(default, rename = "process")]
    processes: Vec<Process>,
}

fn app() -> String {
    "{app}".into()
}

fn stop_seconds() -> u64 {
    10
}

impl Process {
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.command.iter().chain(self.env.values()).chain([&self.folder]).map(String::as_str)
    }

    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.command.iter_mut().chain(self.env.values_mut()).chain([&mut self.folder])
    }
}

impl Written {
    /// What this file says, and for the rest what the other says; but that one stands for no other release.
    fn over(self, other: Written) -> Written {
        Written {
            title: self.title,
            root: self.root,
            stands_for: self.stands_for,
            like: None,
            packages: [other.packages, self.packages].concat(),
            needs: [other.needs, self.needs].concat(),
            versions: [other.versions, self.versions].concat(),
            ..other
        }
    }

    /// Sets how the backends are reached.
    fn join(&mut self, over: Over) {
        let Some(address) = self.address.get(&over) else {
            return;
        };
        let files = self.files.iter_mut().map(|file| &mut file.text);
        for text in files.chain(self.processes.iter_mut().flat_map(Process::texts_mut)) {
            *text = text.replace("{address}", address);
        }
    }
}

impl Scheme {
    /// The same with further arguments of its last process, which clients reach, with an environment of all, and with another title.
    pub(crate) fn with(mut self, arguments: &[String], env: &[(&str, &str)], title: String) -> Scheme {
        for process in &mut self.processes {
            process.env.extend(env.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())));
        }
        if let Some(last) = self.processes.last_mut() {
            let app = last.command.pop();
            last.command.extend(arguments.iter().cloned().chain(app));
        }
        self.title = title;
        self
    }

    /// Reads the scheme in this file.
    ///
    /// # Errors
    /// It or one of its parts cannot be read, or breaks a rule; the words name the file and the rule.
    pub fn read(file: &Path) -> Result<Scheme, Failure> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut read: Written = read_toml(file)?;
        if let Some(name) = &read.like {
            let other = read_toml(&folder.join(name).with_extension("toml"))?;
            read = read.over(other);
        }
        let mut scheme = Scheme {
            name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            title: read.title.clone(),
            server: read.server.clone(),
            front: read.front.clone(),
            stands_for: read.stands_for.clone(),
            floor: read.floor,
            gem: read.gem.clone(),
            protocol: read.protocol,
            over: read.over,
            files: Vec::new(),
            processes: Vec::new(),
            sources: Vec::new(),
            versions: KnownVersions::default(),
        };
        let (root, names) = (read.root.clone(), std::mem::take(&mut read.parts));
        scheme.add(read, None);
        for name in names {
            let mut part: Written = read_toml(&folder.join("parts").join(name).with_extension("toml"))?;
            if let Some(over) = scheme.over {
                part.join(over);
            }
            scheme.add(part, root.as_deref());
        }
        scheme.check().map_err(|rule| Failure(format!("scheme {}: {rule}", file.display())))?;
        Ok(scheme)
    }

    /// Reads all schemes of a folder, sorted by their names.
    ///
    /// # Errors
    /// The folder cannot be read, or one of its schemes; see [`Scheme::read`].
    pub fn read_all(folder: &Path) -> Result<Vec<Scheme>, Failure> {
        let versions = KnownVersions::default();
        let read = |file: &PathBuf| Ok(Scheme { versions: versions.clone(), ..Scheme::read(file)? });
        crate::data_files(folder)?.iter().map(read).collect()
    }

    /// What it lacks on this machine; `None`: it can run here.
    pub fn missing(&self) -> Option<Missing> {
        let why = self
            .missing_root()
            .or_else(|| self.missing_program())
            .or_else(|| self.missing_file())
            .or_else(|| self.ask_versions().find_map(Result::err))?;
        let why = match &self.gem {
            Some(gem) => {
                format!("{why} (the gem {gem} can be installed, or its folder named by HIGHBALL_BENCH_GEMS)")
            }
            None => why,
        };
        let of_machine = self.sources.iter().filter(|source| source.root.is_none());
        Some(Missing { why, packages: of_machine.flat_map(|source| source.packages.clone()).collect() })
    }

    /// Packages that it needs, and in which root; `None`: on this machine.
    pub(crate) fn packages(&self) -> impl Iterator<Item = (Option<&Root>, &[String])> {
        self.sources.iter().map(|source| (source.root.as_ref(), source.packages.as_slice()))
    }

    /// The other release of Debian that its server is from; `None`: it is this machine's.
    pub(crate) fn release(&self) -> Option<&str> {
        let mut servers =
            self.processes.iter().filter(|process| process.backends.is_some() || self.front.is_none());
        servers.find_map(|process| Some(process.root.as_ref()?.release.as_str()))
    }

    /// Versions of its programs, such as "Puma 5.6.5, nginx 1.22.1"; without programs that do not tell theirs.
    pub fn version(&self) -> String {
        let versions: Vec<String> = self.ask_versions().filter_map(Result::ok).collect();
        versions.join(", ")
    }

    /// Whether it can have several worker processes.
    pub fn takes_workers(&self) -> bool {
        let copies = self.processes.iter().any(|process| process.backends == Some(Backends::Workers));
        copies || self.mentions("{workers}")
    }

    /// Whether its workers can have several threads.
    pub fn takes_threads(&self) -> bool {
        self.mentions("{threads}")
    }

    fn mentions(&self, placeholder: &str) -> bool {
        let commands = self.processes.iter().flat_map(|process| &process.command);
        let envs = self.processes.iter().flat_map(|process| process.env.values());
        let files = self.files.iter().map(|file| &file.text);
        commands.chain(envs).chain(files).any(|text| text.contains(placeholder))
    }

    /// What reports say of it.
    pub fn info(&self) -> results::SchemeInfo {
        results::SchemeInfo {
            name: self.name.clone(),
            title: self.title.clone(),
            server: self.server.clone(),
            front: self.front.clone(),
            stands_for: self.stands_for.clone(),
            version: self.version(),
            floor: self.floor.is_some(),
            release: self.release().map(String::from),
        }
    }

    /// The number of its backends, with this number of workers.
    pub(crate) fn backends(&self, workers: u32) -> usize {
        match self.processes.iter().find_map(|process| process.backends) {
            None => 0,
            Some(Backends::One) => 1,
            Some(Backends::Workers) => workers as usize,
        }
    }

    /// What the placeholders stand for that are the same in every deployment.
    pub(crate) fn values(&self) -> Values {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        Values::from([("highball", path(programs::highball())), ("floor", path(programs::floor()))])
    }

    fn ask_versions(&self) -> impl Iterator<Item = Result<String, String>> + '_ {
        let each = |source: &'_ Source| {
            let root = source.root.clone();
            source.versions.clone().into_iter().map(move |version| (root.clone(), version))
        };
        let all = self.sources.iter().flat_map(each);
        let environment = programs::environment(self.gem.is_some());
        all.map(move |(root, version)| {
            self.versions.ask(&version, root.as_ref(), &self.values(), &environment)
        })
    }

    fn missing_root(&self) -> Option<String> {
        self.sources.iter().filter_map(|source| source.root.as_ref()).find_map(Root::missing)
    }

    fn missing_program(&self) -> Option<String> {
        let values = self.values();
        self.processes.iter().find_map(|process| {
            let program = template::fill(&process.command[0], &values);
            let (is_there, place) = match &process.root {
                None => (programs::find(&program).is_some(), String::new()),
                Some(root) => (root.has_program(&program), self.place_and_remedy(root)),
            };
            let remedy = if program.ends_with("highball-floor") { " (bin/setup --bench)" } else { "" };
            (!is_there).then(|| format!("there is no program {program}{place}{remedy}"))
        })
    }

    fn missing_file(&self) -> Option<String> {
        self.sources.iter().find_map(|source| {
            let (file, place) = match &source.root {
                None => (source.needs.iter().find(|file| !file.exists())?, String::new()),
                Some(root) => {
                    (source.needs.iter().find(|file| !root.has(file))?, self.place_and_remedy(root))
                }
            };
            Some(format!("there is no file {}{place}", file.display()))
        })
    }

    /// Where something is missing in a root, and what brings it.
    fn place_and_remedy(&self, root: &Root) -> String {
        let of_root = self.sources.iter().filter(|source| source.root.as_ref() == Some(root));
        let packages: Vec<&str> = of_root.flat_map(|source| &source.packages).map(String::as_str).collect();
        format!(
            " in the Debian {} in {} (--install installs {} there)",
            root.release,
            root.folder.display(),
            packages.join(" ")
        )
    }

    /// Its own root is the part's, else that of the scheme.
    fn add(&mut self, part: Written, root_of_scheme: Option<&str>) {
        let root = part.root.as_deref().or(root_of_scheme).map(Root::of);
        self.files.extend(part.files);
        self.processes
            .extend(part.processes.into_iter().map(|process| Process { root: root.clone(), ..process }));
        self.sources.push(Source {
            root,
            packages: part.packages,
            needs: part.needs,
            versions: part.versions,
        });
    }

    /// The rules that the form alone cannot hold.
    fn check(&self) -> Result<(), String> {
        if self.title.is_empty() {
            return Err("it has no `title`".into());
        }
        if self.server.is_empty() {
            return Err("it does not say which `server` calls the application".into());
        }
        if self.processes.iter().all(|process| process.backends.is_some()) {
            return Err("it has no [[process]] that clients talk to".into());
        }
        if self.processes.iter().any(|process| process.command.is_empty()) {
            return Err("a [[process]] has an empty command".into());
        }
        if self.processes.iter().filter(|process| process.backends.is_some()).count() > 1 {
            return Err("more than one [[process]] makes backends".into());
        }
        if self.over.is_none() && self.processes.iter().any(|process| process.backends.is_some()) {
            return Err("it has backends, and does not say `over` what they are reached".into());
        }
        let inside =
            |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if let Some(file) = self.files.iter().find(|file| !inside(&file.path)) {
            return Err(format!("the path of the file {} leads out of the deployment's folder", file.path));
        }
        self.check_placeholders()
    }

    fn check_placeholders(&self) -> Result<(), String> {
        let mut known: BTreeSet<&str> = template::EVERYWHERE.into();
        if self.processes.iter().any(|process| process.backends.is_some()) {
            known.extend(template::PER_BACKEND);
        }
        let used: Vec<&str> = self.texts().flat_map(template::placeholders).collect();
        if let Some(unknown) = used.iter().find(|name| !known.contains(*name)) {
            let remedy = match *unknown {
                "address" => {
                    "; {address} needs `over` in the scheme, and a form for it in the part".to_owned()
                }
                name if template::PER_BACKEND.contains(&name) => {
                    format!("; {{{name}}} needs a process with `backends`")
                }
                _ => String::new(),
            };
            let known: Vec<&str> = known.into_iter().collect();
            return Err(format!("unknown placeholder {{{unknown}}}: there are {}{remedy}", known.join(", ")));
        }
        match used.contains(&"port") {
            true => Ok(()),
            false => Err("nothing in it names {port}, where clients ask".into()),
        }
    }

    /// All that may hold placeholders.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().flat_map(|file| [file.path.as_str(), &file.text]);
        let versions = self.sources.iter().flat_map(|source| &source.versions);
        let versions = versions.flat_map(|version| version.command.iter().map(String::as_str));
        files.chain(versions).chain(self.processes.iter().flat_map(Process::texts))
    }
}

fn read_toml<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let problem = |error: &dyn std::fmt::Display| Failure(format!("scheme {}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|e| problem(&e))?;
    toml::from_str(&text).map_err(|e| problem(&e))
}
