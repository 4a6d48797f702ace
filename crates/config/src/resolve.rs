//! From what was given to [`Settings`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use highball_cgroups::{available_memory, Cpus};
use highball_tenant::{Links, TenantFolder};
use highball_text::visible_name;
use highball_users::{with_rights_of, User};

use crate::access_format::LineFormat;
use crate::callbacks::Callbacks;
use crate::companions::{check as check_companions, check_order, of_procfile};
use crate::counterparts::misspelt_command;
use crate::environments;
use crate::error::{reason, ConfigError, Fault, Origin};
use crate::fields::Fields;
use crate::file::{self, File, Rights, PLACES};
use crate::form::Place;
use crate::given::Given;
use crate::given_path::{absolute, move_working_folder, split_file, working_folder, HERE};
use crate::options::{Opt, Scope};
use crate::origins::Origins;
use crate::ownership::{maker_of_link, owner, Owner, Starter};
use crate::pool::PoolRange;
use crate::puma::{check_notes, is_puma, Layer, Source, Weightier};
use crate::redirects::check;
use crate::settings::{
    AccessLog, AcmeSettings, AdminSettings, App, AppId, BasicAuth, Bind, BindAddress, BindProtocol,
    CertificateFiles, ClientAuth, Companion, ExternalAccount, Limits, Log, Named, NamesOnDemand, Redirects,
    ReforkAfter, RunsAs, Settings, TlsSettings,
};
use crate::threads::Threads;
use crate::traces::traces;
use crate::value::{self, Address};

/// No buffers are fewer bytes than this by default.
const LEAST_BUFFER_BYTES: u64 = 16 << 20;

/// Where an application lists its processes.
const PROCFILE: &str = "Procfile";
/// The largest that is read, in bytes.
const PROCFILE_BYTES: u64 = 64 << 10;

/// Adds environment and file to what the command line gave, and makes settings of it all.
pub(crate) fn resolve(
    paths: Vec<PathBuf>,
    given: Given,
    env: &dyn Fn(&str) -> Option<String>,
    callbacks: Callbacks<'_>,
) -> Result<Settings, ConfigError> {
    gather(paths, given, env, callbacks)?.settings()
}

/// All options that were given, and the applications that they are for.
pub(crate) struct Sources<'a> {
    /// By the command line and the environment.
    given: Given,
    /// By the file of the server, or of the only application.
    pub(crate) top: Given,
    apps: Vec<AppSources>,
    named: Named,
    place: Place<'a>,
    callbacks: Callbacks<'a>,
}

/// Adds environment and files to what the command line gave.
pub(crate) fn gather<'a>(
    paths: Vec<PathBuf>,
    mut given: Given,
    env: &'a dyn Fn(&str) -> Option<String>,
    callbacks: Callbacks<'a>,
) -> Result<Sources<'a>, ConfigError> {
    let current = working_folder().map_err(ConfigError::CurrentFolder)?;
    given.add_environment(env)?;
    let place = Place { current, env };
    let named = given.fields(&place, |option| option.scope == Scope::Start)?.config;
    let current = &place.current;
    let named_file = named.clone();
    let puma = named.as_deref().filter(|path| is_puma(path));
    let puma = puma.map(|path| puma_of_one(path, &paths)).transpose()?;
    let named = named.filter(|_| puma.is_none());
    let file_place = named.as_deref().map(file::folder_of);
    let found = if puma.is_some() { None } else { server_file(named.clone(), &paths, &given, &place)? };
    let path = found.as_ref().and_then(|file| file.path.clone());
    let file = found.unwrap_or_default();
    if let [first, others @ ..] = &paths[..] {
        // A single one may be the folder that the file was found in.
        let is_about_file =
            others.is_empty() && file_place.is_none_or(|place| is_same(&place, &current.join(first)));
        if !file.entries.is_empty() && !is_about_file {
            return Err(ConfigError::Usage(twice_given(first)));
        }
    }
    let named = match (file.entries.is_empty(), paths.is_empty()) {
        (false, _) => Named::InFile,
        (true, false) => Named::OnCommandLine,
        (true, true) => Named::Nowhere { file: named },
    };
    let apps = if !file.entries.is_empty() {
        let entries = file.entries.into_iter().map(|entry| (entry.path, entry.given));
        several(entries.collect(), &given, &file.top, &place, callbacks)?
    } else if paths.len() > 1 {
        let paths = paths.into_iter().map(|path| (absolute(current, &path), Given::default()));
        several(paths.collect(), &given, &file.top, &place, callbacks)?
    } else {
        let app = Where::of(paths.into_iter().next(), current)?;
        let is_own = |named: &Path| PLACES.iter().any(|place| is_same(named, &app.folder.join(place)));
        // A file that is named takes the place of those in the folder.
        let usual = if named_file.as_deref().is_none_or(is_own) { Source::OfServer } else { Source::None };
        let (entry, file) = (Given::default(), Ok(Given::default()));
        let given = app.link.clone();
        vec![AppSources { given, app, entry, file, path, puma: puma.unwrap_or(usual), layer: None }]
    };
    Ok(Sources { given, top: file.top, apps, named, place, callbacks })
}

/// A Puma configuration that was named: it is for the only application.
fn puma_of_one(path: &Path, paths: &[PathBuf]) -> Result<Source, ConfigError> {
    if paths.len() > 1 {
        let path = path.display();
        return Err(ConfigError::Usage(format!(
            "{path} is a Puma configuration, which is for one application, and there are several: write a highball.toml"
        )));
    }
    Starter::now().believes_named(path)?;
    Ok(Source::Named(path.to_owned()))
}

impl Sources<'_> {
    /// The settings that result.
    pub(crate) fn settings(self) -> Result<Settings, ConfigError> {
        let Sources { mut given, mut top, mut apps, named, place, callbacks } = self;
        let many = apps.len() > 1;
        let is_named = !matches!(named, Named::Nowhere { .. });
        let shared = Shared { cli_and_env: &given, top: &top, many, place: &place };
        apps.iter_mut().for_each(|app| app.read_puma(shared, is_named, callbacks));
        for layer in apps.iter().filter_map(|app| app.layer.as_ref()) {
            given.yield_to(&layer.server);
            top.add_all(&layer.server, |_| true);
        }
        let files = apps.iter().filter_map(|app| app.file.as_ref().ok());
        let of_server = files.flat_map(|file| file.of_options(|option| option.scope == Scope::Server));
        let ignored = of_server.map(Origin::to_string).collect();
        let apps = apps.into_iter().map(|sources| {
            (callbacks.may_look)(&sources.given);
            Shared { cli_and_env: &given, top: &top, many, place: &place }.app_or_fault(sources)
        });
        let apps: Vec<Arc<App>> = apps.map(|app| app.map(Arc::new)).collect::<Result<_, _>>()?;
        no_two_alike(&apps)?;
        given.add_all(&top, |option| !many || !option.scope.is_of_one());
        server(&given, apps, named, ignored, &place)
    }

    /// What files say.
    fn files(&self) -> impl Iterator<Item = &Given> {
        self.apps.iter().flat_map(|app| std::iter::once(&app.entry).chain(&app.file)).chain([&self.top])
    }

    /// Ignores the configured user: a program that starts applications in another way changes users by other means.
    pub(crate) fn take_user(&mut self) -> Result<Option<String>, ConfigError> {
        let of_apps =
            self.apps.iter_mut().flat_map(|app| std::iter::once(&mut app.entry).chain(&mut app.file));
        let all = std::iter::once(&mut self.given).chain(of_apps).chain([&mut self.top]);
        let mut asked = None;
        for given in all {
            asked = asked.or(given.take_user()?);
        }
        Ok(asked)
    }

    /// What the command line and the environment say, as arguments for `highball serve` and its only application.
    pub(crate) fn as_arguments(&self) -> Result<Vec<String>, ConfigError> {
        let mut all = self.given.clone();
        self.files().for_each(|file| all.add_all(file, |_| true));
        all.as_arguments(&self.place)
    }
}

/// Whether both lead to the same place.
fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Where an application lies, and whose it is.
struct Where {
    folder: PathBuf,
    link: PathBuf,
    file: Option<PathBuf>,
    /// Its owner, where that decides the user that it runs as.
    owner: Owner,
}

impl Where {
    fn of(path: Option<PathBuf>, current: &Path) -> Result<Where, ConfigError> {
        let changes_users = Starter::now().changes_users();
        let given = path.unwrap_or_else(|| PathBuf::from("."));
        let whole = absolute(current, &given);
        let maker = if changes_users { maker_of_link(&whole) } else { None };
        let (link, file) = split_file(whole);
        let folder = app_folder(&given, &link, maker.as_ref())?;
        let owner = if changes_users { owner(&link, &folder, file.as_deref()) } else { Owner::default() };
        Ok(Where { folder, link, file, owner })
    }

    /// Takes up the `directory` of a Puma configuration: as with Puma, restarts find the application there. What people have named
    /// for this start stays, unless the other path leads to the same folder, and may lead to another one later. So does a
    /// link by which the folder of a relative one was found.
    fn move_into(&mut self, layer: &mut Layer, is_named: bool) {
        let Some(directory) = layer.directory.take() else { return };
        let is_same = directory.is_of(&self.folder);
        let is_by_link = self.link != self.folder;
        let keeps_own =
            (is_named && !is_same) || (is_same && is_by_link && (is_named || directory.is_relative));
        let there = if keeps_own { None } else { Where::of(Some(directory.path.clone()), &self.link).ok() };
        // Root's configuration, which lists who runs as whom, does not know the file.
        let there =
            there.filter(|there| there.owner.user == self.owner.user && there.owner.stray_link.is_none());
        match there {
            Some(there) => {
                // A hot restart reads the file there, as this folder may have been removed by then.
                if is_same && !is_named {
                    move_working_folder(&there.link);
                }
                layer.file = layer.file.take().map(|file| if is_same { file } else { self.link.join(file) });
                *self = Where { file: self.file.take(), ..there };
            }
            None if is_same => {}
            None => layer.notes.push(directory.unused(&self.link)),
        }
    }

    /// Of a folder that cannot be used.
    fn unusable(link: PathBuf) -> Where {
        let user = if Starter::now().changes_users() { maker_of_link(&link) } else { None };
        Where { folder: link.clone(), link, file: None, owner: Owner { user, stray_link: None } }
    }

    /// Of a folder whose file system does not answer: nothing is looked up.
    fn silent(link: PathBuf) -> Where {
        Where { folder: link.clone(), link, file: None, owner: Owner::default() }
    }

    /// The name of the folder as it was given: where that leads to may be a release with a number.
    fn name(&self) -> String {
        let name = |path: &Path| path.file_name().map(visible_name);
        let given = name(&self.link).filter(|name| name != "current");
        let around = || self.link.parent().and_then(name);
        given.or_else(around).or_else(|| name(&self.folder)).unwrap_or_else(|| "app".into())
    }
}

/// An application, and what was given for it alone.
struct AppSources {
    /// As it was given.
    given: PathBuf,
    app: Where,
    /// By the server's file, in its `[[app]]`.
    entry: Given,
    /// By its own file; or why that, or the folder, cannot be used.
    file: Result<Given, ConfigError>,
    /// Where that file is; for an only application, the server's.
    path: Option<PathBuf>,
    /// Where a Puma configuration may be, for what nothing else sets.
    puma: Source,
    /// What that says.
    layer: Option<Layer>,
}

impl AppSources {
    /// Reads its Puma configuration, if it has one and Ruby can be asked.
    fn read_puma(&mut self, shared: Shared<'_>, is_named: bool, callbacks: Callbacks<'_>) {
        let Shared { cli_and_env, top, many, place } = shared;
        let (Some(ask), Ok(file)) = (callbacks.ask_ruby, &self.file) else { return };
        (callbacks.may_look)(&self.given); // it was looked at before: this only reports where the reader is
        let mut own = self.entry.clone();
        own.add_all(file, |option| option.scope != Scope::Server);
        let mut files = own.clone();
        if !many {
            files.add_all(top, |_| true);
        }
        let has_environment = [cli_and_env, &files, top].into_iter().any(|given| given.names("environment"));
        let has_server_user = cli_and_env.names("server_user") || files.names("server_user");
        let weightier = Weightier { start: cli_and_env, file: &files };
        let is_off = || {
            let fields = shared.merged(&own).fields(place, Opt::is_puma_config)?;
            Ok(!fields.puma_config && !matches!(self.puma, Source::Named(_)))
        };
        let read = is_off().and_then(|is_off| match is_off {
            true => Ok(Some(Layer { is_off, ..Layer::default() })),
            false => shared
                .app(&self.app, &own)
                .and_then(|app| self.puma.read(&app, &weightier, (has_environment, has_server_user), ask))
                .and_then(|layer| {
                    let notes = layer.as_ref().map_or(&[][..], |layer| &layer.notes);
                    check_notes(notes, &[cli_and_env, &files, top]).map(|()| layer)
                }),
        });
        match read {
            Ok(mut layer) => {
                if let Some(layer) = &mut layer {
                    self.app.move_into(layer, is_named);
                }
                self.app.file =
                    self.app.file.take().or(layer.as_ref().and_then(|layer| layer.rackup.clone()));
                self.layer = Some(layer.unwrap_or_default());
            }
            Err(error) => self.file = Err(error),
        }
    }
}

/// The file that is named, or, for a single application, its own, if it has one.
fn server_file(
    named: Option<PathBuf>,
    paths: &[PathBuf],
    given: &Given,
    place: &Place<'_>,
) -> Result<Option<File>, ConfigError> {
    let current = place.current.as_path();
    if let Some(path) = &named {
        Starter::now().believes_named(path)?;
    }
    if paths.len() > 1 {
        return named.map(|path| file::read_named(&path, &file::folder_of(&path))).transpose();
    }
    // What is named need not lie in an application: a server with several applications has none around it.
    match (named, Where::of(paths.first().cloned(), current)) {
        (Some(path), app) => {
            let file = file::read_named(&path, app.as_ref().map_or(current, |app| &app.link))?;
            if file.entries.is_empty() {
                app?;
            }
            Ok(Some(file))
        }
        (None, app) => own_file(&app?, &[given], false, place),
    }
}

/// What an application's own file says, if it has one. `asked`: the sources that may name its user, by priority.
fn own_file(
    app: &Where,
    asked: &[&Given],
    many: bool,
    place: &Place<'_>,
) -> Result<Option<File>, ConfigError> {
    let starter = Starter::now();
    // Where this process cannot change users, it makes no difference to who reads the file; and `highball config` may
    // name one.
    let runs_as = match asked.iter().find(|given| given.names("user")) {
        Some(given) if starter.changes_users() => given.fields(place, Opt::is_user)?.user,
        _ => None,
    };
    let user = runs_as.as_ref().map_or(app.owner.user.as_ref(), RunsAs::another);
    let mut found: Option<(&str, File)> = None;
    for name in PLACES {
        // By the path that was given: who has made a link on it has a say as well.
        let author = starter.author(&app.folder, &app.link.join(name));
        let reader = starter.reader(runs_as.as_ref(), app.owner.user.as_ref(), &author);
        let server_routes = many && starter.is_root();
        let rights = Rights { author, owner: user.map(|user| user.uid), server_routes, reader };
        let Some(file) = file::read_own((&app.folder, &app.link), name, &rights)? else { continue };
        if let Some((first, _)) = found {
            return Err(file::two_files(&app.link.join(first), app.link.join(name)));
        }
        found = Some((name, file));
    }
    Ok(found.map(|(_, file)| file))
}

/// Each of several applications, with what its entry and its own file say.
fn several(
    entries: Vec<(PathBuf, Given)>,
    given: &Given,
    top: &Given,
    place: &Place<'_>,
    callbacks: Callbacks<'_>,
) -> Result<Vec<AppSources>, ConfigError> {
    let mut all: Vec<AppSources> = Vec::new();
    let many = entries.len() > 1;
    for (path, entry) in entries {
        let (app, there) = if !(callbacks.may_look)(&path) {
            (Where::silent(path.clone()), Err(ConfigError::Silent { path: path.clone() }))
        } else {
            match Where::of(Some(path.clone()), Path::new("/")) {
                Ok(app) => (app, Ok(())),
                Err(error) => (Where::unusable(path.clone()), Err(error)),
            }
        };
        if all.iter().any(|other| (&other.app.link, &other.app.file) == (&app.link, &app.file)) {
            return Err(ConfigError::Usage(format!(
                "the application folder {} was given twice; name it once",
                app.link.display()
            )));
        }
        let found = there.and_then(|()| own_file(&app, &[given, &entry, top], many, place));
        let given = path;
        let path = found.as_ref().ok().and_then(|file| file.as_ref()?.path.clone());
        // With entries, it is a server's configuration, and this application may be one of the server's.
        let own = |file: Option<File>| file.filter(|file| file.entries.is_empty()).unwrap_or_default().top;
        all.push(AppSources {
            given,
            app,
            entry,
            file: found.map(own),
            path,
            puma: Source::OfApp,
            layer: None,
        });
    }
    Ok(all)
}

/// What is given for all applications, and where they are.
#[derive(Clone, Copy)]
struct Shared<'a> {
    cli_and_env: &'a Given,
    /// The file of the server.
    top: &'a Given,
    /// Whether there are several applications.
    many: bool,
    place: &'a Place<'a>,
}

impl Shared<'_> {
    /// One application. Where it is one of several, and its own file or folder cannot be used, it is what the server says of
    /// it, with a fault: the others are served.
    fn app_or_fault(self, sources: AppSources) -> Result<App, ConfigError> {
        let AppSources { app: at, entry, file, path, puma, layer, .. } = sources;
        let is_complete = layer.is_some();
        let layer = layer.unwrap_or_default();
        let says_user = [self.cli_and_env, &entry, self.top].into_iter().any(|given| given.names("user"));
        let mut cli_and_env = self.cli_and_env.clone();
        cli_and_env.yield_to(&layer.app);
        let shared = Shared { cli_and_env: &cli_and_env, ..self };
        let whole = file.and_then(|file| {
            if let Some(problem) = at.owner.stray_link.clone().filter(|_| !says_user) {
                return Err(ConfigError::App { path: at.link.clone(), problem });
            }
            let mut own = entry.clone();
            own.add_all(&file, |option| option.scope != Scope::Server);
            own.add_all(&layer.app, |_| true);
            let whole = shared.app(&at, &own)?;
            let environment_note = environments::check(&whole)?;
            let origins = Origins {
                folder: &at.folder,
                all: &shared.merged(&own),
                own: if self.many { &file } else { self.top },
                file: path.as_deref(),
            };
            let file_notes =
                if is_complete { file_notes(&whole, &puma, &layer, &origins) } else { Vec::new() };
            let is_own = |path: &PathBuf| PLACES.iter().any(|place| *path == at.folder.join(place));
            let config_file = path.clone().filter(is_own);
            let Layer { file: puma_file, notes: puma_notes, .. } = layer;
            Ok(App { config_file, puma_file, puma_notes, file_notes, environment_note, ..whole })
        });
        match whole {
            Err(error) if self.many => {
                // What is wrong in there is wrong for all.
                let of_server = shared.app(&at, &entry)?;
                let server_routes = Starter::now().is_root() || entry.names("hosts") || entry.names("prefix");
                Ok(App { fault: Some(Fault::of(&error, server_routes)), prestart: true, ..of_server })
            }
            whole => whole,
        }
    }

    /// What is given for one application: that for the server counts after that for it alone in files.
    fn merged(self, own: &Given) -> Given {
        let mut given = self.cli_and_env.clone();
        given.add_all(own, |_| true);
        given.add_all(self.top, |option| !self.many || option.scope.is_shared());
        given
    }

    /// One application.
    fn app(self, app: &Where, own: &Given) -> Result<App, ConfigError> {
        let Shared { cli_and_env, many, place, .. } = self;
        let given = self.merged(own);
        if many {
            self.none_is_of_one()?;
        }
        let fields = given.fields(place, |option| match option.scope {
            Scope::Start | Scope::Server => false,
            // Both count.
            Scope::ServerAndApp(_) if option.is_certificate() => false,
            // The server's, unless it is given for the application alone, in a file.
            Scope::ServerAndApp(_) => own.has(option) && !cli_and_env.has(option),
            Scope::App(_) | Scope::Privileged(_) | Scope::OneApp(_) | Scope::Route(_) => true,
        })?;
        let certificates =
            certificates(&own.fields(place, |option| option.is_certificate() && own.has(option))?)?;
        let access_log = fields
            .access_log
            .clone()
            .map_or(AccessLog::OfServer, |log| log.map_or(AccessLog::Off, AccessLog::Own));
        rules_have_log(own)?;
        let mut access_log_rules = fields.access_log_rules.clone();
        let mut of_server = cli_and_env.clone();
        of_server.add_all(self.top, |option| option.name == "log_format");
        if !own.names("access_log_format") && of_server.logs_json(place)? {
            access_log_rules.format = LineFormat::Json;
        }
        agree(&fields, &given)?;
        realm_has_users(&fields, &given)?;
        clients_have_authorities(&fields, &given)?;
        let name = fields.name.clone().unwrap_or_else(|| app.name());
        let hosts = hosts(fields.hosts.clone(), many && fields.app.prefix.is_empty(), &name);
        if hosts.is_empty() && !certificates.is_empty() {
            return Err(certificate_without_hosts(&name));
        }
        redirects_end(&fields.app.redirects, &hosts, &given)?;
        let pool = fields.workers.is_none().then(|| range_of_pool(&fields));
        let runs_unasked = || Starter::now().runs_unasked(app.owner.user.clone());
        let runs_as = fields.user.clone().unwrap_or_else(runs_unasked);
        let companions = processes(&fields, &given, &app.folder, &runs_as)?;
        Ok(App {
            id: AppId::next(),
            hosts,
            workers: fields.workers.or(pool.map(|pool| pool.start())).unwrap_or(1).max(1),
            pool,
            threads: fields.threads.unwrap_or_else(|| match fields.app.is_development() {
                true => Threads::of_development(),
                false => Threads::of_production(fields.workers.or(pool.map(|pool| pool.max)).unwrap_or(1)),
            }),
            prestart: fields.prestart.unwrap_or(!(many && fields.app.is_development())),
            runs_as,
            companions,
            basic_auth: fields.basic_auth.map(|file| BasicAuth { file, realm: fields.basic_auth_realm }),
            access_log,
            access_log_rules,
            certificates,
            folder: app.folder.clone(),
            link: app.link.clone(),
            file: app.file.clone(),
            name,
            ..fields.app
        })
    }

    /// # Errors
    /// An option for one application is given for all of several.
    fn none_is_of_one(self) -> Result<(), ConfigError> {
        let is_of_one = |option: &Opt| option.scope.is_of_one();
        let mut of_one = self.cli_and_env.of_options(is_of_one).chain(self.top.of_options(is_of_one));
        of_one.next().map_or(Ok(()), |origin| {
            let problem = "there are several applications, and this is for one; write it into its [[app]], or into its own \
                           config/highball.toml";
            Err(ConfigError::Value { origin: origin.clone(), problem: problem.into() })
        })
    }
}

/// Which of the application's files counts for what.
fn file_notes(app: &App, puma: &Source, layer: &Layer, origins: &Origins<'_>) -> Vec<String> {
    let of_puma = layer.file.as_ref().filter(|_| layer.is_evaluated);
    let of_puma = of_puma.map(|file| origins.of_puma(&app.folder.join(file), &layer.outweighed));
    let mut notes: Vec<String> = origins.of_own_file(of_puma.is_some()).into_iter().chain(of_puma).collect();
    notes.extend(puma.left_out(app, layer, origins));
    notes
}

/// The processes beside its workers: the named ones, and the processes of its Procfile.
fn processes(
    fields: &Fields,
    given: &Given,
    folder: &Path,
    runs_as: &RunsAs,
) -> Result<Vec<Companion>, ConfigError> {
    let mut all = fields.app.companions.clone();
    if let Some(raw) = given.first_of("procfile").filter(|_| !fields.procfile.is_empty()) {
        // A folder that cannot be opened is reported where the application boots.
        let Ok(folder) = TenantFolder::open(folder, runs_as.another()) else { return Ok(all) };
        let text = folder.read_text(PROCFILE, Links::Anywhere, PROCFILE_BYTES);
        let text =
            text.map_err(|error| raw.wrong(format!("the application's Procfile cannot be read: {error}")))?;
        let named = of_procfile(&text, &fields.procfile).and_then(|named| {
            all.extend(named);
            check_companions(&all)
        });
        named.map_err(|problem| raw.wrong(problem))?;
    }
    // Entries name what they start after, no line of a Procfile does.
    match given.first_of("process") {
        Some(raw) => check_order(&all).map(|()| all).map_err(|problem| raw.wrong(problem)),
        None => Ok(all),
    }
}

/// # Errors
/// There is a `basic_auth_realm`, and no file of users that could log in.
fn realm_has_users(fields: &Fields, given: &Given) -> Result<(), ConfigError> {
    match given.first_of("basic_auth_realm") {
        Some(raw) if fields.basic_auth.is_none() && !given.names("basic_auth") => {
            let problem = "it is for `basic_auth`, which names no file of users: name one, or remove this";
            Err(raw.wrong(problem.into()))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// There is a `tls_client_auth`, and no authority whose certificates clients could show.
fn clients_have_authorities(fields: &Fields, given: &Given) -> Result<(), ConfigError> {
    let asked = &fields.app.client_certificates;
    match given.first_of("tls_client_auth") {
        Some(raw) if asked.authorities.is_none() && asked.auth != ClientAuth::Off => {
            let problem =
                "it is for `tls_client_ca`, which names no file of authorities: name one, or remove this";
            Err(raw.wrong(problem.into()))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// Two applications at one host ask clients for different certificates, which is decided before a client names a path; or
/// clients could show none, as there is no HTTPS.
fn clients_can_be_asked(apps: &[Arc<App>], has_https: bool) -> Result<(), ConfigError> {
    let asking = || apps.iter().filter(|app| app.client_certificates.are_asked_for());
    for (index, app) in asking().enumerate() {
        let mut others =
            asking().take(index).filter(|other| other.client_certificates != app.client_certificates);
        if let Some((other, host)) = others.find_map(|other| Some((other, app.host_shared_with(other)?))) {
            return Err(ConfigError::Usage(format!(
                "{} and {} are both reached at {host}, and ask its clients for different certificates: TLS comes before the path, so \
                 give both the same `tls_client_ca` and `tls_client_auth`, or other `hosts`",
                other.name, app.name
            )));
        }
    }
    match asking().next() {
        Some(app) if !has_https => Err(ConfigError::Usage(format!(
            "{} has a `tls_client_ca`, and no address is for HTTPS: name one, such as `bind = \"tls://0.0.0.0:443\"`",
            app.name
        ))),
        _ => Ok(()),
    }
}

/// # Errors
/// Browsers would not get to where redirects send them.
fn redirects_end(redirects: &Redirects, hosts: &[String], given: &Given) -> Result<(), ConfigError> {
    let wrong = |name: &str, problem: String| match given.first_of(name) {
        Some(raw) => Err(raw.wrong(problem)),
        None => Err(ConfigError::Usage(problem)),
    };
    match &redirects.canonical_host {
        Some(host) if !hosts.is_empty() && !hosts.contains(host) => {
            let problem = format!("{host} is not one of the application's `hosts`; add it there");
            wrong("canonical_host", problem)
        }
        _ => check(redirects, hosts).or_else(|problem| wrong("redirects", problem)),
    }
}

fn range_of_pool(fields: &Fields) -> PoolRange {
    PoolRange::new(Cpus::of_process().at_most(fields.app.cpu_max), fields.min_workers, fields.max_workers)
}

fn certificate_without_hosts(name: &str) -> ConfigError {
    ConfigError::Usage(format!(
        "{name} has a `tls_certificate`, which counts for its `hosts` alone, and is reached by every host: name its `hosts`, or \
         give the certificate for the server"
    ))
}

/// # Errors
/// An application says how lines are written in a log that is the server's: others read them there, and have to be able to
/// rely on their form.
fn rules_have_log(own: &Given) -> Result<(), ConfigError> {
    match own.of_options(Opt::is_about_log_lines).next() {
        Some(origin) if !own.names("access_log") => {
            let problem = "it is for a log of the application's own: give it an `access_log`, too";
            Err(ConfigError::Value { origin: origin.clone(), problem: problem.into() })
        }
        _ => Ok(()),
    }
}

/// What is wrong with values that only shows beside others.
fn agree(fields: &Fields, given: &Given) -> Result<(), ConfigError> {
    if let Some(most) = fields.max_workers.filter(|most| *most < fields.min_workers) {
        let problem =
            format!("min_workers is {}, and max_workers is {most}, which is less", fields.min_workers);
        return Err(ConfigError::Usage(problem));
    }
    let process = &fields.app.process;
    match given.first_of("refork_after") {
        Some(raw) if !process.preload && matches!(process.refork_after, ReforkAfter::Requests(_)) => {
            let problem =
                "without preloading workers have nothing to share; leave out either this or `preload = off`";
            Err(raw.wrong(problem.into()))
        }
        _ => Ok(()),
    }
}

/// None: every host. `by_name`: without any, the hosts named after the application.
fn hosts(given: Option<Vec<String>>, by_name: bool, name: &str) -> Vec<String> {
    match given {
        Some(hosts) if hosts.iter().any(|host| host == "*") => Vec::new(),
        Some(hosts) => hosts,
        None if by_name => {
            let host = value::host_of_name(name);
            vec![format!("{host}.localhost"), host]
        }
        None => Vec::new(),
    }
}

/// No two applications have the same name, or are reached at the same place.
fn no_two_alike(apps: &[Arc<App>]) -> Result<(), ConfigError> {
    for (index, app) in apps.iter().enumerate() {
        for other in &apps[..index] {
            let (one, two) = (other.link.display(), app.link.display());
            if app.name == other.name {
                let name = &app.name;
                return Err(ConfigError::Usage(format!(
                    "the applications {one} and {two} would both be called `{name}`; give one of them another `name`, \
                     in its [[app]] or its own config/highball.toml"
                )));
            }
            if let Some(host) = app.place_shared_with(other) {
                let prefix = &app.prefix;
                return Err(ConfigError::Usage(format!(
                    "the applications {one} and {two} would both be reached at {host}{prefix}; give one of them other \
                     `hosts`, or a `prefix`"
                )));
            }
        }
    }
    Ok(())
}

/// What is the server's.
fn server(
    given: &Given,
    apps: Vec<Arc<App>>,
    named: Named,
    ignored: Vec<String>,
    place: &Place<'_>,
) -> Result<Settings, ConfigError> {
    let mut fields =
        given.fields(place, |option| matches!(option.scope, Scope::Server | Scope::ServerAndApp(_)))?;
    let certificates = certificates(&fields)?;
    let access = fields.access_log.take().flatten();
    let proxies = &mut fields.server.proxy_protocol;
    (proxies.v1, proxies.v2) = fields.proxy_versions;
    let mut tls = tls(&fields, certificates, &apps, place.env, given.names("bind"))?;
    if tls.acme.is_some() && !given.names("bind") {
        fields.binds = Address::of_domains().to_vec();
    }
    let bind_places = given.places_of("bind");
    let binds = fields.addresses();
    let (admin_binds, agent_binds) = (fields.admin_addresses(), fields.agent_addresses());
    if let Some(bind) = admin_binds.iter().find(|bind| bind.protocol != BindProtocol::Http) {
        return Err(ConfigError::Usage(format!(
            "option admin: {bind} is not an address for HTTP; write one such as 127.0.0.1:9394 or unix:/path"
        )));
    }
    let is_for_agents = |bind: &&Bind| bind.protocol == BindProtocol::Http && bind.tcp_address().is_some();
    if let Some(bind) = agent_binds.iter().find(|bind| !is_for_agents(bind)) {
        return Err(ConfigError::Usage(format!(
            "option agent_check: {bind} is not an IP address with a port; write one such as 10.0.0.5:9395"
        )));
    }
    let has_https = binds.iter().any(|bind| bind.protocol == BindProtocol::Https);
    without_what_it_narrows(given, &fields.server, has_https)?;
    clients_can_be_asked(&apps, has_https)?;
    let spool_dir = fields.spool_dir.unwrap_or_else(|| default_spool_dir(place.env));
    let buffer_bytes = fields.buffer_bytes.unwrap_or_else(default_buffer_bytes);
    let https = binds.iter().find(|bind| bind.protocol == BindProtocol::Https);
    if let Some(acme) = &mut tls.acme {
        acme.has_http = has_tcp(&binds, BindProtocol::Http);
        if https.is_none() {
            return Err(ConfigError::Usage(
                "`domain` needs an address for HTTPS, such as `bind = \"tls://0.0.0.0:443\"`; without `bind` there is one".into(),
            ));
        }
    } else if let Some(bind) = https.filter(|_| !has_certificates(&tls.certificates, &apps) && !tls.is_local)
    {
        return Err(ConfigError::Usage(format!(
            "{bind} needs a certificate: name its file with `tls_certificate`, and its key's file with `tls_key`; or name the \
             site with `domain`, and Highball obtains one (in development, --https makes certificates)"
        )));
    }
    let mut trace_notes = Vec::new();
    let traces = traces(fields.otlp_endpoint, place.env, &mut trace_notes);
    let settings = fields.server;
    Ok(Settings {
        binds,
        bind_places,
        tls,
        traces,
        trace_notes,
        limits: Limits { spool_dir, buffer_bytes, ..settings.limits },
        admin: AdminSettings { binds: admin_binds, agent_binds, ..settings.admin },
        hijacked_drain_timeout: settings.hijacked_drain_timeout.min(settings.drain_timeout),
        log: Log { access, access_rules: fields.access_log_rules, ..settings.log },
        apps,
        named,
        ignored,
        ..settings
    })
}

/// What is wrong with options that narrow another one, which is not there.
fn without_what_it_narrows(given: &Given, settings: &Settings, has_https: bool) -> Result<(), ConfigError> {
    let wrong = |name: &str, problem: &str| match given.first_of(name) {
        Some(raw) => Err(raw.wrong(problem.into())),
        None => Ok(()),
    };
    if !settings.proxy_protocol.is_on() {
        wrong(
            "proxy_protocol_from",
            "it is for `proxy_protocol`, which is off: set that, too (such as v2), or remove this",
        )?;
    }
    if settings.tls.hsts.is_some() && !has_https {
        wrong(
            "hsts",
            "no address is for HTTPS: name one, such as `bind = \"tls://0.0.0.0:443\"`, or remove this",
        )?;
    }
    Ok(())
}

/// Why there can be no certificates of a local authority.
fn why_not_local(certificates: &[CertificateFiles], apps: &[Arc<App>]) -> Option<String> {
    if has_certificates(certificates, apps) {
        let why = "`https` makes certificates for development, and `tls_certificate` names others: leave one of them out. With \
                   files, an address such as `bind = \"tls://127.0.0.1:3000\"` is for HTTPS";
        return Some(why.into());
    }
    let other = apps.iter().find(|app| !app.is_development())?;
    Some(format!(
        "`https` is for development, as only this machine trusts its certificates, and {} runs in {}: name an address such as \
         `bind = \"tls://0.0.0.0:443\"`, and the files of a certificate with `tls_certificate` and `tls_key`",
        other.name, other.environment
    ))
}

fn has_certificates(of_server: &[CertificateFiles], apps: &[Arc<App>]) -> bool {
    !of_server.is_empty() || apps.iter().any(|app| !app.certificates.is_empty())
}

/// Each certificate with its key.
fn certificates(fields: &Fields) -> Result<Vec<CertificateFiles>, ConfigError> {
    let (certificates, keys) = (&fields.tls_certificates, &fields.tls_keys);
    if !keys.is_empty() && keys.len() != certificates.len() {
        return Err(ConfigError::Usage(format!(
            "`tls_certificate` names {} files and `tls_key` {}: give a key for each certificate, in the same order, or no key where \
             each is in the file of its certificate",
            certificates.len(),
            keys.len()
        )));
    }
    let keys = if keys.is_empty() { certificates } else { keys };
    let files = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    Ok(certificates.iter().zip(keys).map(files).collect())
}

fn tls(
    fields: &Fields,
    certificates: Vec<CertificateFiles>,
    apps: &[Arc<App>],
    env: &dyn Fn(&str) -> Option<String>,
    has_binds: bool,
) -> Result<TlsSettings, ConfigError> {
    let given = &fields.server.tls;
    let asks_authority = asks_authority(&fields.acme);
    if given.is_local && asks_authority {
        return Err(ConfigError::Usage(
            "`https` is for development, and `domain` for sites that the world can reach: leave one of them out".into(),
        ));
    }
    if let Some(why) = why_not_local(&certificates, apps).filter(|_| given.is_local) {
        return Err(ConfigError::Usage(why));
    }
    Ok(TlsSettings {
        certificates,
        redirect: fields.redirect_https.unwrap_or(asks_authority && !has_binds),
        // A browser would use HTTPS for every port of this machine, whatever listens there.
        hsts: given.hsts.filter(|_| !given.is_local),
        acme: acme(fields, apps, env)?,
        ..given.clone()
    })
}

/// Whether certificates are obtained from an authority.
fn asks_authority(acme: &AcmeSettings) -> bool {
    !acme.domains.is_empty() || acme.on_demand.are_possible()
}

/// How certificates are obtained, if some are.
fn acme(
    fields: &Fields,
    apps: &[Arc<App>],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<AcmeSettings>, ConfigError> {
    let given = fields.acme.clone();
    if !asks_authority(&given) {
        return Ok(None);
    }
    if !given.directory.starts_with("https://") {
        return Err(ConfigError::Usage(format!(
            "`acme_directory` is `{}`: write the URL of the authority's directory, which begins with https://",
            given.directory
        )));
    }
    let state_dir = fields.state_dir.clone().or_else(|| default_state_dir(env)).ok_or_else(|| {
        ConfigError::Usage(
            "name a folder for the certificates of `domain` with `state_dir`: there is no HOME".into(),
        )
    })?;
    let domains = domains_of(&given.domains, apps)?;
    if let Some(name) = domains.iter().find(|name| name.starts_with("*.") && given.dns_hook.is_none()) {
        return Err(ConfigError::Usage(format!(
            "`{name}` stands for many names, and for such certificates the authority looks at the DNS: name a program that makes \
             entries there with `acme_dns_hook`, or name each site"
        )));
    }
    let listed = domains_of(&given.on_demand.listed, apps)?;
    Ok(Some(AcmeSettings {
        domains,
        on_demand: NamesOnDemand { listed, ..given.on_demand },
        external_account: external_account(fields)?,
        state_dir,
        ..given // which address is for HTTP is known later
    }))
}

/// The names, each once. Those of applications that have files with certificates, or that no authority looks for, are left out.
fn domains_of(given: &[String], apps: &[Arc<App>]) -> Result<Vec<String>, ConfigError> {
    let mut domains: Vec<String> = given.iter().filter(|name| *name != value::ALL_HOSTS).cloned().collect();
    if domains.len() < given.len() {
        let is_public = |host: &str| !host.ends_with(".localhost") && value::domain(host).is_ok();
        let without_files = apps.iter().filter(|app| app.certificates.is_empty());
        let hosts = without_files.flat_map(|app| &app.hosts).filter(|host| is_public(host));
        domains.extend(hosts.cloned());
    }
    domains.sort();
    domains.dedup();
    if domains.is_empty() && !given.is_empty() {
        return Err(ConfigError::Usage(
            "`hosts` for a `domain` stands for the `hosts` of the applications, but no authority issues certificates for any of them: name hosts, \
             such as `hosts = [\"blog.example.org\"]`"
                .into(),
        ));
    }
    Ok(domains)
}

/// The account that was made with the authority before.
fn external_account(fields: &Fields) -> Result<Option<ExternalAccount>, ConfigError> {
    match (fields.acme_eab_kid.clone(), fields.acme_eab_key_file.clone()) {
        (Some(id), Some(key_file)) => Ok(Some(ExternalAccount { id, key_file })),
        (None, None) => Ok(None),
        _ => Err(ConfigError::Usage(
            "`acme_eab_kid` and `acme_eab_key_file` go together: an account with the authority, and the file with its key".into(),
        )),
    }
}

/// Whether one of the addresses is one of TCP for this protocol.
fn has_tcp(binds: &[Bind], protocol: BindProtocol) -> bool {
    binds.iter().any(|bind| bind.protocol == protocol && matches!(bind.address, BindAddress::Tcp(_)))
}

/// Where systemd, or the XDG base directory specification, has a service keep what it needs for longer.
fn default_state_dir(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let first = |list: String| absolute(PathBuf::from(list.split(':').next().unwrap_or_default()));
    let below = |folder: String, rest: &str| absolute(PathBuf::from(folder).join(rest));
    env("STATE_DIRECTORY")
        .and_then(first)
        .map(|folder| folder.join("acme")) // others may look into what systemd makes
        .or_else(|| below(env("XDG_STATE_HOME")?, "highball"))
        .or_else(|| below(env("HOME")?, ".local/state/highball"))
}

fn twice_given(path: &Path) -> String {
    format!(
        "applications were given on the command line ({}…), and in the configuration file; name them in one place",
        path.display()
    )
}

/// The folder that an application's path leads to by now, with the rights of `maker` where one is given; it can be listed.
fn app_folder(given: &Path, link: &Path, maker: Option<&User>) -> Result<PathBuf, ConfigError> {
    let wrong = |problem: String| ConfigError::App { path: given.to_owned(), problem };
    let found = with_rights_of(maker, || link.canonicalize().map(|folder| (folder.is_dir(), folder)));
    let (is_folder, folder) =
        found.and_then(|found| found).map_err(|error| match misspelt_command(given) {
            _ if link.starts_with(HERE) => ConfigError::CurrentFolder(error),
            Some(command) => {
                wrong(format!("{}; did you mean the command `highball {command}`?", reason(&error)))
            }
            None => {
                wrong(format!("{}; name the folder that the application's config.ru lies in", reason(&error)))
            }
        })?;
    if !is_folder {
        return Err(wrong(
            "is neither a folder nor a Ruby file; name the folder of the application, or its file (.rb or .ru)".into(),
        ));
    }
    // Asking for permission bits would not do: access lists, root and read-only mounts have a say as well.
    // (`folder/.` can only be looked at by those who may enter the folder.)
    std::fs::read_dir(&folder).and_then(|_| folder.join(".").metadata()).map_err(|error| {
        wrong(format!("{}; run highball as a user who may, or change its permissions", reason(&error)))
    })?;
    Ok(folder)
}

/// An eighth of the memory: the applications need most of it.
fn default_buffer_bytes() -> u64 {
    (available_memory().unwrap_or(0) / 8).max(LEAST_BUFFER_BYTES)
}

fn default_spool_dir(env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let var_tmp = Some(PathBuf::from("/var/tmp"));
    let tmpdir = env("TMPDIR").map(PathBuf::from);
    [var_tmp, tmpdir]
        .into_iter()
        .flatten()
        .find(|path| value::is_writable_folder(path))
        .unwrap_or_else(|| "/tmp".into())
}
