//! What root's configuration says, and nothing else: what the process that stays root may be ordered to do. It comes from the
//! command line, the environment and a file of root's. Files of applications are not opened for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::command_line::{self, Command};
use crate::error::ConfigError;
use crate::file::{self, File};
use crate::form::Place;
use crate::given::Given;
use crate::given_path::{absolute, split_file, working_folder};
use crate::options::Scope;
use crate::ownership::{owner, Starter};
use crate::puma::is_puma;
use crate::settings::{Bind, RunsAs};
use highball_cgroups::Limits as KernelLimits;
use highball_users::trust::Author;

/// How long all applications have to be looked up. The file system of one may never answer.
const LOOKUP_TIME: Duration = Duration::from_secs(2);

/// What root's configuration says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RootTable {
    /// Where to listen.
    pub binds: Vec<Bind>,
    /// The PID file.
    #[serde(with = "highball_text::exact")]
    pub pidfile: Option<PathBuf>,
    /// The access logs: the server's, and those of applications.
    #[serde(with = "highball_text::exact")]
    pub logs: Vec<PathBuf>,
    /// The applications that are there.
    pub apps: Vec<TableApp>,
    /// Applications of which nothing is known, as their file systems do not answer.
    #[serde(with = "highball_text::exact")]
    pub silent: Vec<PathBuf>,
    /// The user that the server runs as, if it is given.
    pub server_user: Option<String>,
}

/// An application, as root's configuration has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableApp {
    /// See [`crate::App::path`].
    #[serde(with = "highball_text::exact")]
    pub path: PathBuf,
    /// The user that it runs as.
    pub runs_as: RunsAs,
    /// Its hard limits.
    pub limits: KernelLimits,
}

/// Whether this command line asks for a server. An invalid one does, so that the error is reported where it is read.
pub fn asks_to_serve(args: impl IntoIterator<Item = OsString>) -> bool {
    command_line::read(args).map_or(true, |command| matches!(command, Command::Serve { .. }))
}

/// Reads it; `None` where the command line asks for something else than to serve. Threads may be left behind that wait for the
/// file system of an application: to be called in a process that ends after it. Applications that are `known` to wait for theirs
/// are not looked at.
///
/// # Errors
/// What [`crate::parse`] would say too.
pub fn root_table(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    known: &[PathBuf],
) -> Result<Option<RootTable>, ConfigError> {
    let Command::Serve { paths, mut given } = command_line::read(args)? else { return Ok(None) };
    let current = working_folder().map_err(ConfigError::CurrentFolder)?;
    given.add_environment(env)?;
    let place = Place { current: current.clone(), env };
    let named = given.fields(&place, |option| option.scope == Scope::Start)?.config;
    let file = match (&named, own_file_of_root(&paths, &current)) {
        // A Puma configuration decides nothing here.
        (Some(path), _) if is_puma(path) => File::default(),
        (Some(path), _) => {
            Starter::now().believes_named(path)?;
            file::read_named(path, &file::folder_of(path))?
        }
        (None, Some((folder, path))) => file::read_named(&path, &folder)?,
        (None, None) => File::default(),
    };
    let single = paths.len() < 2 && file.entries.is_empty();
    let entries: Vec<(PathBuf, Given)> = match (file.entries.is_empty(), paths.is_empty()) {
        (false, _) => file.entries.into_iter().map(|entry| (entry.path, entry.given)).collect(),
        (true, true) => vec![(PathBuf::new(), Given::default())],
        (true, false) => paths.into_iter().map(|path| (path, Given::default())).collect(),
    };
    let mut logs = Vec::new();
    let mut asked = Vec::new();
    for (path, own) in entries {
        let mut all = given.clone();
        all.add_all(&own, |option| option.scope != Scope::Server);
        all.add_all(&file.top, |option| single || option.scope.is_shared());
        logs.extend(
            own.fields(&place, |option| matches!(option.scope, Scope::ServerAndApp(_)))?.access_log.flatten(),
        );
        asked.push((path, all.fields(&place, |option| matches!(option.scope, Scope::Privileged(_)))?));
    }
    let (paths, asked): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
    let (mut apps, mut silent) = (Vec::new(), Vec::new());
    for ((path, found), asked) in look_up(paths, &current, known).into_iter().zip(asked) {
        match found {
            Looked::NoAnswer => silent.push(current.join(path)),
            Looked::NotThere => {}
            Looked::There(path, unasked) => {
                let limits = asked.app.kernel_limits();
                apps.push(TableApp { path, runs_as: asked.user.unwrap_or(unasked), limits });
            }
        }
    }
    given.add_all(&file.top, |_| true);
    let fields =
        given.fields(&place, |option| matches!(option.scope, Scope::Server | Scope::ServerAndApp(_)))?;
    let binds = [fields.addresses(), fields.admin_addresses(), fields.agent_addresses()].concat();
    logs.extend(fields.access_log.flatten());
    logs.retain(|path| path != Path::new("-"));
    Ok(Some(RootTable {
        binds,
        pidfile: fields.server.pidfile,
        logs,
        apps,
        silent,
        server_user: fields.server.server_user,
    }))
}

/// What was found at the path of an application.
#[derive(Debug, Clone)]
enum Looked {
    /// Its path, see [`crate::App::path`], and whom it runs as unasked.
    There(PathBuf, RunsAs),
    NotThere,
    NoAnswer,
}

/// Looks at all of these paths at the same time.
fn look_up(paths: Vec<PathBuf>, current: &Path, known: &[PathBuf]) -> Vec<(PathBuf, Looked)> {
    let (to_us, found) = mpsc::channel();
    let mut all: Vec<_> = paths.into_iter().map(|path| (path, Looked::NoAnswer)).collect();
    let unknown = all.iter().enumerate().filter(|(_, (path, _))| !known.contains(&current.join(path)));
    for (index, (path, _)) in unknown {
        let (to_us, path, current) = (to_us.clone(), path.clone(), current.to_owned());
        std::thread::spawn(move || drop(to_us.send((index, look_at(&current, &path)))));
    }
    drop(to_us);
    let until = Instant::now() + LOOKUP_TIME;
    while let Ok((index, looked)) = found.recv_timeout(until.saturating_duration_since(Instant::now())) {
        all[index].1 = looked;
    }
    all
}

fn look_at(current: &Path, path: &Path) -> Looked {
    let (link, name) = split_file(absolute(current, path));
    let Ok(folder) = link.canonicalize() else { return Looked::NotThere };
    let runs_as = Starter::now().runs_unasked(owner(&link, &folder, name.as_deref()).user);
    Looked::There(name.map_or_else(|| link.clone(), |name| link.join(name)), runs_as)
}

/// The configuration file in the folder of the only application, if only root could have put it there; and the folder.
fn own_file_of_root(paths: &[PathBuf], current: &Path) -> Option<(PathBuf, PathBuf)> {
    if paths.len() > 1 {
        return None;
    }
    let (link, _) = split_file(absolute(current, paths.first().map_or(Path::new(""), PathBuf::as_path)));
    let folder = link.canonicalize().ok()?;
    let is_roots = |place: &str| {
        Starter::now().author(&folder, &link.join(place)) == Author::Server && folder.join(place).is_file()
    };
    let place = file::PLACES.into_iter().find(|place| is_roots(place))?;
    Some((link.clone(), link.join(place)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_users::may_change_users;
    use std::fs;
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

    fn table(args: &[&str]) -> RootTable {
        let args = ["highball", "serve"].iter().chain(args).map(OsString::from);
        root_table(args, &|_| None, &[]).unwrap().unwrap()
    }

    fn user_of<'a>(table: &'a RootTable, path: &Path) -> &'a RunsAs {
        &table.apps.iter().find(|app| app.path == path).unwrap().runs_as
    }

    fn app_of(place: &Path, name: &str, uid: u32) -> PathBuf {
        let folder = place.join(name);
        fs::create_dir_all(folder.join("config")).unwrap();
        fs::write(folder.join("config/highball.toml"), "user = 'root'\npidfile = '/run/x'\n").unwrap();
        for path in [folder.clone(), folder.join("config"), folder.join("config/highball.toml")] {
            chown(path, Some(uid), None).unwrap();
        }
        folder
    }

    #[test]
    fn files_of_applications_do_not_count() {
        if !may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let place = tempfile::tempdir().unwrap();
        let of_tenant = app_of(place.path(), "tenant", 5);
        let found = table(&[of_tenant.to_str().unwrap()]);
        assert_eq!(found.pidfile, None);
        assert_eq!(user_of(&found, &of_tenant).another().unwrap().uid, 5);
        let of_root = app_of(place.path(), "root", 0);
        let found = table(&[of_root.to_str().unwrap()]);
        assert_eq!(found.pidfile, Some("/run/x".into()));
        assert_eq!(*user_of(&found, &of_root), RunsAs::Starter);
        // A link of the tenant's to root's file, and root's file in a folder that others may write to.
        fs::remove_file(of_tenant.join("config/highball.toml")).unwrap();
        symlink(of_root.join("config/highball.toml"), of_tenant.join("config/highball.toml")).unwrap();
        assert_eq!(table(&[of_tenant.to_str().unwrap()]).pidfile, None);
        fs::set_permissions(of_root.join("config"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(table(&[of_root.to_str().unwrap()]).pidfile, None);
    }

    #[test]
    fn it_has_what_roots_file_says() {
        if !may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (app_of(place.path(), "one", 5), app_of(place.path(), "two", 5));
        let path = place.path().join("server.toml");
        let text = "bind = ['127.0.0.1:81']\naccess_log = '/var/log/a'\nserver_user = 'daemon'\n[[app]]\npath = 'one'\n\
                    user = 'games'\naccess_log = '/var/log/one'\n[[app]]\npath = 'two'\n[[app]]\npath = 'gone'\n";
        fs::write(&path, text).unwrap();
        let found = table(&["-c", path.to_str().unwrap()]);
        assert_eq!(found.binds, [Bind::tcp("127.0.0.1:81".parse().unwrap())]);
        assert_eq!(found.logs, [Path::new("/var/log/one"), Path::new("/var/log/a")]);
        assert_eq!(found.server_user.as_deref(), Some("daemon"));
        let users: Vec<_> =
            found.apps.iter().map(|app| (&app.path, app.runs_as.another().unwrap().name.clone())).collect();
        assert_eq!(users, [(&one, "games".to_owned()), (&two, User5::name())]);
    }

    /// The user with the number 5.
    struct User5;

    impl User5 {
        fn name() -> String {
            highball_users::User::with_uid(5, 5).name
        }
    }
}
