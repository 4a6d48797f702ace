//! A Puma configuration, `config/puma.rb`. It counts for what a `highball.toml` does not set.
//!
//! It is Ruby, so the application's own Ruby evaluates it ([`AskRuby`]) and reports what it says: a source as a file is one.
//! It runs with the rights of this process. So root evaluates none that another user could have written, and none of an
//! application that runs as another user.

use std::path::{Path, PathBuf};

use highball_tenant::{Links, TenantFolder};
use serde::Deserialize;

use crate::companions::companion;
use crate::error::{ConfigError, Origin};
use crate::file::{self, is_there, not_foreign};
use crate::foreign;
use crate::form::Raw;
use crate::given::Given;
use crate::given_path::absolute;
use crate::options::{named, Opt, Scope};
use crate::origins::{Origins, Outweighed};
use crate::ownership::Starter;
use crate::settings::{App, Companion, PumaNote};
use crate::value;
use highball_users::trust::Author;

/// Where an application has one for all environments.
const USUAL: &str = "config/puma.rb";

/// The largest that is looked into without Ruby, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// The option by which a file starts processes beside the workers.
const PROCESS: &str = "process";

/// Options of the server by which a file narrows what is served, so that they may not get lost.
const NARROWING: [&str; 2] = ["bind", "proxy_protocol"];

/// Options that decide something together: where a weightier source gives one of the first, what a Puma configuration says
/// of the second does not count, as both would contradict each other or stay without effect.
const TOGETHER: [(&[&str], &[&str]); 5] = [
    (&["bind", "domain", "domain_on_demand", "domain_ask"], &["bind"]),
    (&["workers", "min_workers", "max_workers"], &["workers"]),
    (&["preload", "refork_after"], &["preload", "refork_after"]),
    (&["tls_certificate", "tls_key", "https"], &["tls_certificate", "tls_key", "https"]),
    (&["domain", "domain_on_demand", "domain_ask"], &["https"]),
];

/// Evaluates a Puma configuration.
///
/// # Errors
/// Ruby cannot be run, or has not answered; why.
pub type AskRuby<'a> = &'a dyn Fn(&PumaQuestion<'_>) -> Result<PumaAnswer, String>;

/// What Ruby is to evaluate.
#[derive(Debug)]
pub struct PumaQuestion<'a> {
    /// The application, as it is configured without the file: its Ruby, folder and environment.
    pub app: &'a App,
    /// The file; relative paths begin at the application's folder.
    pub file: &'a Path,
    /// Whether the application's environment (`production`) was given. Else the file decides.
    pub has_environment: bool,
}

/// What a Puma configuration says, as lib/highball/puma_config.rb reports it.
#[derive(Debug, Default, Deserialize)]
pub struct PumaAnswer {
    settings: Vec<Setting>,
    notes: Vec<PumaNote>,
    rackup: Option<NamedFile>,
    #[serde(default)]
    directory: Option<NamedFile>,
    error: Option<Raised>,
}

/// The value of an option.
#[derive(Debug, Deserialize)]
struct Setting {
    name: String,
    value: String,
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    line: Option<usize>,
}

/// A file or folder that a statement names.
#[derive(Debug, Deserialize)]
struct NamedFile {
    #[serde(with = "highball_text::exact")]
    path: PathBuf,
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    line: Option<usize>,
}

/// The file has raised an exception.
#[derive(Debug, Deserialize)]
struct Raised {
    message: String,
    #[serde(with = "highball_text::exact")]
    file: PathBuf,
    line: Option<usize>,
}

/// Where a Puma configuration may be.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// None is read: another file was named.
    None,
    /// In the application's folder, and it is the server's configuration too.
    OfServer,
    /// In the application's folder, and the server is configured elsewhere, or has several applications.
    OfApp,
    /// The file that `--config` names.
    Named(PathBuf),
}

/// What counts of a file.
enum Standing {
    /// Everything.
    Whole,
    /// Options of the application alone; why.
    App(String),
    /// It is left to the application's own processes; why.
    Hooks(String),
    /// Nothing; why.
    Nothing(String),
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// What counts for the application, and what for the server.
    pub(crate) app: Given,
    pub(crate) server: Given,
    /// The file, for the application's processes, which run its hooks.
    pub(crate) file: Option<PathBuf>,
    /// The file to load the application from, below its folder.
    pub(crate) rackup: Option<PathBuf>,
    pub(crate) directory: Option<Directory>,
    pub(crate) notes: Vec<PumaNote>,
    /// What it says and what weightier sources say differently.
    pub(crate) outweighed: Vec<Outweighed>,
    /// Whether it was evaluated.
    pub(crate) is_evaluated: bool,
    /// Whether none is to be read.
    pub(crate) is_off: bool,
}

/// What goes before a Puma configuration.
pub(crate) struct Weightier<'a> {
    /// The command line and the environment; of this, what is given for this start.
    pub(crate) start: &'a Given,
    /// A file for Highball: the application's, or its server's if it is the only application.
    pub(crate) file: &'a Given,
}

impl Weightier<'_> {
    /// Where this option was given, for this start or in the file.
    fn given(&self, name: &str) -> Option<&Origin> {
        let of_start = self.start.origin(name).filter(|_| self.start.is_for_this_start(name));
        let origin = of_start.or_else(|| self.file.origin(name));
        origin.filter(|origin| !matches!(origin, Origin::Default { .. }))
    }

    /// Where something was given that leaves no room for this option of a Puma configuration.
    fn origin(&self, name: &str) -> Option<&Origin> {
        let together = TOGETHER.iter().filter(|(_, yielding)| yielding.contains(&name));
        let mut names = std::iter::once(name).chain(together.flat_map(|(names, _)| names.iter().copied()));
        names.find_map(|name| self.given(name))
    }

    /// A process that the file starts does not start, as the processes were named otherwise, and it is not among them.
    fn not_started(&self, setting: &Setting, by: &Origin) -> Option<PumaNote> {
        let Companion { name, command, .. } =
            Some(setting).filter(|setting| setting.name == PROCESS).map(|one| companion(&one.value))?.ok()?;
        let given = [self.start, self.file].into_iter().flat_map(|given| given.values_of(PROCESS));
        let names = given.filter_map(|raw| companion(&raw.text).ok()).map(|companion| companion.name);
        if names.into_iter().any(|other| other == name) {
            return None;
        }
        Some(PumaNote {
            statement: "plugin :solid_queue".into(),
            what: format!("Its jobs do not run: {by} names the processes."),
            remedy: format!("Name them there, too: --with {name}=\"{command}\", or [[process]] in a file."),
            file: setting.file.clone(),
            line: setting.line,
            narrows: None,
        })
    }
}

/// Where an application may have one: the file of its environment goes before the usual one.
fn places(environment: &str) -> impl Iterator<Item = PathBuf> {
    let of_environment = Some(format!("config/puma/{environment}.rb")).filter(|_| !environment.contains('/'));
    of_environment.into_iter().chain([USUAL.to_owned()]).map(PathBuf::from)
}

/// The folder of the application, as the file names it.
#[derive(Debug)]
pub(crate) struct Directory {
    /// As it is given, absolute: a restart looks there again.
    pub(crate) path: PathBuf,
    /// Whether it depends on the folder that the file is read in.
    pub(crate) is_relative: bool,
    /// What that leads to by now.
    folder: PathBuf,
    file: PathBuf,
    line: Option<usize>,
}

impl Directory {
    fn of(named: NamedFile, app: &App) -> Directory {
        let path = absolute(&app.link, &named.path);
        let folder = path.canonicalize().unwrap_or_else(|_| path.clone());
        Directory { path, is_relative: named.path.is_relative(), folder, file: named.file, line: named.line }
    }

    pub(crate) fn is_of(&self, folder: &Path) -> bool {
        self.folder == folder
    }

    /// Where the application stays where it is.
    pub(crate) fn unused(self, app: &Path) -> PumaNote {
        PumaNote {
            statement: "directory".into(),
            what: format!(
                "The application is served from {}, and not from {}.",
                app.display(),
                self.path.display()
            ),
            remedy: format!("Name the folder on the command line: highball {}.", self.path.display()),
            file: self.file,
            line: self.line,
            narrows: None,
        }
    }
}

/// Whether this configuration file is one of Puma's.
pub(crate) fn is_puma(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rb")
}

/// Whether only the server's own configuration may give this option.
fn is_of_server(option: &Opt) -> bool {
    option.scope == Scope::Server || option.scope.is_privileged()
}

impl Source {
    /// Reads it, if there is one. `app` is the application as it is configured without; `has_server_user`: another user is
    /// named for the server.
    pub(crate) fn read(
        &self,
        app: &App,
        weightier: &Weightier<'_>,
        (has_environment, has_server_user): (bool, bool),
        ask: AskRuby<'_>,
    ) -> Result<Option<Layer>, ConfigError> {
        let Some(file) = self.find(app)? else { return Ok(None) };
        let path = app.link.join(&file);
        let standing = self.standing(app, &file, has_server_user);
        if let (Source::Named(_), Standing::Hooks(why) | Standing::Nothing(why)) = (self, &standing) {
            let problem = format!("it is not evaluated, as {why}; write a highball.toml, and name that");
            return Err(ConfigError::File { path, line: None, problem });
        }
        let (Standing::Whole | Standing::App(_)) = &standing else {
            return Layer::unread(app, path, file, standing).map(Some);
        };
        look_into(app, &file).map_or(Ok(()), |text| not_foreign(&path, &text))?;
        let wrong = |problem| ConfigError::File { path: path.clone(), line: None, problem };
        let answer = ask(&PumaQuestion { app, file: &file, has_environment }).map_err(wrong)?;
        if let Some(Raised { message, file, line }) = answer.error {
            let problem = format!(
                "{message}; correct it, or turn it off: `puma_config = false` in config/highball.toml"
            );
            return Err(ConfigError::File { path: file, line, problem });
        }
        Layer::of(answer, file, app, weightier, standing).map(Some)
    }

    /// The file, below the application's folder or absolute.
    ///
    /// # Errors
    /// There may be one, which cannot be looked at.
    fn find(&self, app: &App) -> Result<Option<PathBuf>, ConfigError> {
        match self {
            Source::None => Ok(None),
            Source::Named(path) => Ok(Some(path.clone())),
            Source::OfServer | Source::OfApp => {
                // A folder that cannot be opened is reported where the application boots.
                let Ok(folder) = TenantFolder::open(&app.folder, app.runs_as.another()) else {
                    return Ok(None);
                };
                for place in places(&app.environment) {
                    let there = is_there(&folder, &place).map_err(|error| {
                        let problem = format!("cannot be read: {error}");
                        ConfigError::File { path: app.folder.join(&place), line: None, problem }
                    })?;
                    if there {
                        return Ok(Some(place));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Configuration files in the application's folder that are not read, a line for each with the reason.
    pub(crate) fn left_out(&self, app: &App, layer: &Layer, origins: &Origins<'_>) -> Vec<String> {
        let by_name = matches!(self, Source::None | Source::Named(_));
        let why = match (by_name, &layer.file) {
            (true, _) => format!("{} names another file", origins.place_of("config")),
            (false, Some(read)) => format!("{} goes before it", read.display()),
            (false, None) if layer.is_off => "puma_config is off".to_owned(),
            (false, None) => return Vec::new(), // there is none, or a note says why it is not read
        };
        let Ok(folder) = TenantFolder::open(&app.folder, app.runs_as.another()) else { return Vec::new() };
        let is_read = |place: &Path| {
            let path = app.folder.join(place);
            origins.file == Some(&path)
                || layer.file.as_ref().is_some_and(|file| app.folder.join(file) == path)
        };
        places(&app.environment)
            .chain(file::PLACES.map(PathBuf::from).into_iter().filter(|_| by_name))
            .filter(|place| !is_read(place) && folder.has_file(place))
            .map(|place| format!("{} is not read, as {why}", place.display()))
            .collect()
    }

    fn standing(&self, app: &App, file: &Path, has_server_user: bool) -> Standing {
        let starter = Starter::now();
        if let Some(user) = app.runs_as.another() {
            return Standing::Hooks(format!("root has started Highball, and the application runs as {user}"));
        }
        match (starter.author(&app.folder, &app.link.join(file)), self) {
            (Author::App(stranger), _) if starter.changes_users() => {
                Standing::Nothing(stranger.reason(&app.link.join(file)))
            }
            (Author::App(stranger), _) => Standing::App(stranger.reason(&app.link.join(file))),
            (Author::Server, Source::OfApp) => Standing::App("the server is configured elsewhere".into()),
            (Author::Server, _) if has_server_user && starter.changes_users() => {
                Standing::App("the server runs as `server_user`".into())
            }
            (Author::Server, _) => Standing::Whole,
        }
    }
}

/// Makes sure that no restriction of a Puma configuration is lost. `weightier`: the sources that go before it.
///
/// # Errors
/// One is, and no other source has given its option; where it stands, and what to write.
pub(crate) fn check_notes(notes: &[PumaNote], weightier: &[&Given]) -> Result<(), ConfigError> {
    let is_given = |name: &str| weightier.iter().any(|given| given.gives_restriction(name));
    let is_lost = |note: &&PumaNote| note.narrows.as_ref().is_some_and(|name| !is_given(name));
    let Some(note) = notes.iter().find(is_lost) else { return Ok(()) };
    let (text, remedy) = (note.text(), &note.remedy);
    let problem = format!(
        "{text} Highball does not start without it, because more would be open than this file says. {remedy}"
    );
    Err(ConfigError::File { path: note.file.clone(), line: note.line, problem })
}

/// The text of a file that Ruby does not evaluate, or not yet.
fn look_into(app: &App, file: &Path) -> Option<String> {
    let folder = TenantFolder::open(&app.folder, app.runs_as.another()).ok()?;
    folder.read_text(file, Links::Anywhere, FILE_BYTES).ok()
}

/// The option that a file which is not evaluated narrows first, and in which line.
fn narrowed_by(text: &str) -> (Option<String>, Option<usize>) {
    let is_address = |name: &str, line: &str| {
        matches!(name, "bind" | "ssl_bind" | "bind_to_activated_sockets" | "set_default_host")
            || (name == "port" && line.contains(','))
    };
    let find = |option: &str, counts: &dyn Fn(&str, &str) -> bool| {
        Some((Some(option.to_owned()), Some(foreign::line_of(text, counts)?)))
    };
    find("bind", &is_address)
        .or_else(|| find("max_body", &|name, _| name == "http_content_length_limit"))
        .or_else(|| {
            find("proxy_protocol", &|name, line| {
                name == "set_remote_address" && line.contains("proxy_protocol")
            })
        })
        .unwrap_or_default()
}

/// Whether this is an address with a port, or a path.
fn names_port(setting: &Setting, folder: &Path) -> bool {
    let names = |text: &str| {
        value::address(text, folder).map_or(true, |address| address.at_port(1) == address.at_port(2))
    };
    setting.name == "bind" && names(&setting.value)
}

/// Whether every client that can reach the machine can connect to this.
fn is_every_address(text: &str) -> bool {
    let place = text.strip_prefix("tcp://").unwrap_or(text);
    place.starts_with("0.0.0.0") || place.starts_with("[::]")
}

fn replaced_by_port(setting: Setting) -> PumaNote {
    PumaNote {
        statement: setting.name,
        what: format!("{} is not bound: the port that was given otherwise takes its place.", setting.value),
        remedy: "To keep the address, leave the port out, or name both with --bind.".into(),
        file: setting.file,
        line: setting.line,
        narrows: None,
    }
}

impl Layer {
    /// Of a file that was not evaluated. What it would narrow is found in its text, which is read with the rights of the
    /// application's user; where that may not be, it may narrow anything.
    fn unread(app: &App, path: PathBuf, file: PathBuf, standing: Standing) -> Result<Layer, ConfigError> {
        let is_of_app = matches!(standing, Standing::Hooks(_));
        let text = if is_of_app { look_into(app, &file) } else { None };
        text.as_ref().map_or(Ok(()), |text| not_foreign(&path, text))?;
        let (narrows, line) = match text {
            Some(text) => narrowed_by(&text),
            None => (Some("bind".into()), None),
        };
        let (hooks, what) = match standing {
            Standing::Hooks(why) => (
                Some(file),
                format!(
                    "its settings are not read, as {why}: only its hooks count, in the application's processes"
                ),
            ),
            Standing::Nothing(why) | Standing::App(why) => {
                (None, format!("it is not read, and its hooks do not run, as {why}"))
            }
            Standing::Whole => (None, String::new()),
        };
        let remedy = match narrows {
            Some(_) => {
                "Name the addresses with --bind, and write other settings into config/highball.toml; or turn the file off \
                 there: `puma_config = false`."
            }
            None => {
                "Write the settings into config/highball.toml, and `puma_config = false` if its hooks are not needed \
                 either."
            }
        };
        let note =
            PumaNote { statement: String::new(), what, remedy: remedy.into(), file: path, line, narrows };
        Ok(Layer { file: hooks, notes: vec![note], ..Layer::default() })
    }

    fn of(
        answer: PumaAnswer,
        file: PathBuf,
        app: &App,
        weightier: &Weightier<'_>,
        standing: Standing,
    ) -> Result<Layer, ConfigError> {
        let notes = answer.notes;
        let mut layer = Layer { file: Some(file), notes, is_evaluated: true, ..Layer::default() };
        let mut settings = answer.settings;
        // As with Puma: who names a port has named where to listen.
        if weightier.given("port").is_some() {
            let (replaced, kept) = settings.into_iter().partition(|setting| names_port(setting, &app.folder));
            settings = kept;
            if weightier.given("bind").is_none() {
                layer.notes.extend(replaced.into_iter().map(replaced_by_port));
            }
        }
        while let Some(first) = settings.first() {
            let Some(option) = named(&first.name) else {
                return Err(ConfigError::Usage(format!("there is no option `{}`", first.name)));
            };
            let (of_option, others) = settings.into_iter().partition(|other| other.name == option.name);
            settings = others;
            let counts_nowhere = is_of_server(option) && matches!(standing, Standing::App(_));
            match weightier.origin(option.name).filter(|_| !counts_nowhere) {
                Some(by) => {
                    let notes = of_option.iter().filter_map(|setting| weightier.not_started(setting, by));
                    layer.notes.extend(notes.collect::<Vec<_>>());
                    layer.outweighed.push(Outweighed { name: option.name, by: by.clone() });
                }
                None => layer.add(option, of_option, &app.link, &standing),
            }
        }
        match (answer.directory.map(|named| Directory::of(named, app)), &standing) {
            (Some(directory), Standing::Whole) => layer.directory = Some(directory),
            (Some(directory), _) if directory.folder != app.folder => {
                layer.notes.push(directory.unused(&app.link));
            }
            _ => {}
        }
        if let Some(rackup) = answer.rackup {
            layer.start_from(rackup, app, &standing);
        }
        Ok(layer)
    }

    fn add(&mut self, option: &'static Opt, settings: Vec<Setting>, folder: &Path, standing: &Standing) {
        let is_of_server = is_of_server(option);
        if let (true, Standing::App(why)) = (is_of_server, standing) {
            let narrows = |text: &str| NARROWING.contains(&option.name) && !is_every_address(text);
            self.notes.extend(settings.into_iter().map(|setting| PumaNote {
                statement: option.name.into(),
                what: format!("This is an option of the server, and does not count here, as {why}."),
                remedy: "Give it on the command line, or in a file that --config names.".into(),
                narrows: narrows(&setting.value).then(|| option.name.into()),
                file: setting.file,
                line: setting.line,
            }));
            return;
        }
        let raw = |setting: Setting| {
            let (path, line) = (setting.file, setting.line.unwrap_or_default());
            let origin = Origin::File { path, line, name: option.name, folder: folder.to_owned() };
            Raw { text: setting.value, origin }
        };
        let given = if is_of_server { &mut self.server } else { &mut self.app };
        given.add(option, settings.into_iter().map(raw).collect());
    }

    /// The rackup file decides what is run, and so who that runs as.
    fn start_from(&mut self, rackup: NamedFile, app: &App, standing: &Standing) {
        let folder = rackup.path.parent().and_then(|folder| folder.canonicalize().ok());
        let name = rackup.path.file_name().map(PathBuf::from);
        let home = self.directory.as_ref().map_or(&app.folder, |directory| &directory.folder);
        let name = name.filter(|_| folder.as_ref() == Some(home));
        let of_another = Starter::now().changes_users() && Starter::now().is_of_another(&rackup.path);
        match name {
            Some(name) if name == Path::new("config.ru") => {}
            Some(name) if matches!(standing, Standing::Whole) && app.file.is_none() && !of_another => {
                self.rackup = Some(name);
            }
            _ => self.notes.push(PumaNote {
                narrows: app.file.is_none().then(|| "rackup".into()),
                statement: "rackup".into(),
                what: format!("The application is not loaded from {}.", rackup.path.display()),
                remedy: format!("Name the file on the command line: highball {}.", rackup.path.display()),
                file: rackup.file,
                line: rackup.line,
            }),
        }
    }
}
