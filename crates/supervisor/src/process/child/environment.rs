//! The environment of an application's processes.
//!
//! An application of the user that Highball runs as inherits Highball's environment, as from a shell, without what is
//! meant for Highball alone and without what `bundle exec` has set for another Gemfile. An application of another user
//! gets a login's variables and those of a short list: what else stands in the environment of root may be a secret, or
//! lead to what is root's.

use highball_config::{App, STARTED_IN};
use std::collections::BTreeMap;
use std::env::{join_paths, split_paths};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The variables of a process.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// What the service manager tells Highball, and what Highball was started with. A process that believed them would take
/// descriptors for sockets that are something else, or speak to the service manager in Highball's name.
const HIGHBALLS_OWN: [&str; 15] = [
    "FDSTORE",
    COMPILER,
    "HIGHBALL_LAUNCHER",
    "HIGHBALL_LAUNCHER_RUBY",
    "HIGHBALL_LEAST_FREE_SLOTS",
    "HIGHBALL_MOLD",
    "HIGHBALL_PREDECESSOR_FD",
    STARTED_IN,
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Whether Ruby's compiler is to be on, for the mold; not there where the environment decides.
pub(super) const COMPILER: &str = "HIGHBALL_COMPILER";

/// What applications of other users get of Highball's environment: language and time, the ways into the network, how
/// much Ruby and Rails may take, and Highball's own code.
pub(crate) const FOR_OTHER_USERS: [&str; 28] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "MALLOC_ARENA_MAX",
    "RUBY_GC_*",
    "RUBY_YJIT_ENABLE",
    "RAILS_LOG_LEVEL",
    "RAILS_LOG_TO_STDOUT",
    "RAILS_MAX_THREADS",
    "RAILS_SERVE_STATIC_FILES",
    "WEB_CONCURRENCY",
    "HIGHBALL_BINARY",
    "HIGHBALL_CHECKPOINTS",
    "HIGHBALL_LIB",
];

/// Variables that lead to what belongs to the user who has started Highball. Only a name without `*` passes them on.
const OF_A_SESSION: [&str; 11] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LOGNAME",
    "MAIL",
    "SHELL",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// What a shell sets for itself.
const OF_A_SHELL: [&str; 5] = ["OLDPWD", "PWD", "SHLVL", "TERM", "_"];

/// The variable by which `config/database.yml` of a Rails application knows how many connections it needs, and the number that
/// stands there for an application without it.
const RAILS_POOL: &str = "RAILS_MAX_THREADS";
const USUAL_POOL: u16 = 5;
/// What a pool needs beyond the serving threads, for other threads of the application (ThreadPlaces::SPARE, in Ruby).
const SPARE_CONNECTIONS: u16 = 2;
/// How many connections the workers of an application may take together by default: PostgreSQL has 100
/// by default, and consoles, jobs and workers of another release need some.
const USUAL_CONNECTIONS: u16 = 64;

/// What Bundler keeps beside each variable that it changes.
const BUNDLERS_COPY: &str = "BUNDLER_ORIG_";
/// The copy of a variable that was not there.
const WAS_NOT_THERE: &str = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL";

/// The whole environment of an application's processes, but for what Highball tells each of them; `server` is Highball's
/// own, and `folder` the folder from which the application is loaded.
pub(crate) fn of_app(app: &App, folder: &Path, server: Environment) -> Environment {
    let mut environment = inherited(app, folder, server);
    if !app.prefix.is_empty() {
        // For the paths of its assets; all others it knows by SCRIPT_NAME.
        environment.insert("RAILS_RELATIVE_URL_ROOT".into(), app.prefix.clone().into());
    }
    // As a shell names the folder in which the processes begin. Highball was started in another.
    environment.insert("PWD".into(), app.link.clone().into());
    environment.extend(app.env.iter().map(|(name, value)| (name.into(), value.into())));
    for name in ["RAILS_ENV", "RACK_ENV", "APP_ENV"] {
        environment.insert(name.into(), app.environment.clone().into());
    }
    if let Some(size) = pool_size(app) {
        environment.entry(RAILS_POOL.into()).or_insert_with(|| size.to_string().into());
    }
    environment
}

/// Lets `ruby` in a command be the Ruby that is configured for the application, if one is. (A version manager's shims choose it, too.)
pub(super) fn prefer_ruby(environment: &mut Environment, app: &App) {
    let Some(folder) = app.ruby.as_deref().and_then(Path::parent).filter(|folder| folder.is_absolute())
    else {
        return;
    };
    let before = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let others = split_paths(&before).filter(|path| path != folder && !path.as_os_str().is_empty());
    if let Ok(path) = join_paths(std::iter::once(folder.to_owned()).chain(others)) {
        environment.insert("PATH".into(), path);
    }
}

/// The database pool for a range of threads, where they need a larger one than Rails has by default.
fn pool_size(app: &App) -> Option<u16> {
    let threads = app.threads;
    let workers = app.most_workers().max(1);
    let wanted = threads.most + SPARE_CONNECTIONS;
    let size = if threads.are_default { wanted.min(USUAL_CONNECTIONS / workers) } else { wanted };
    (threads.are_range() && size > USUAL_POOL).then_some(size)
}

/// What comes from Highball's environment and from the user's login: Ruby is looked for by this.
pub(crate) fn inherited(app: &App, folder: &Path, server: Environment) -> Environment {
    let mut environment = server;
    environment.retain(|name, _| !HIGHBALLS_OWN.iter().any(|own| name == own));
    let Some(user) = app.runs_as.another() else {
        if !has_gemfile_of(&environment, folder) {
            undo_bundler(&mut environment);
        }
        return environment;
    };
    undo_bundler(&mut environment);
    environment.retain(|name, _| is_for_other_user(name, &app.pass_variables));
    environment.extend(user.variables().map(|(name, value)| (name.into(), value.into())));
    environment
}

/// The names of the variables of Highball's environment that the application does not get as it is another user's.
pub(crate) fn withheld(app: &App, server: &Environment) -> Vec<String> {
    if app.runs_as.another().is_none() {
        return Vec::new();
    }
    let inherited = inherited(app, &app.folder, server.clone());
    let of_a_program = |name: &str| {
        let of_tools = ["HIGHBALL_", BUNDLERS_COPY].iter().any(|beginning| name.starts_with(beginning));
        of_tools || OF_A_SHELL.contains(&name) || HIGHBALLS_OWN.contains(&name)
    };
    let names = server.keys().filter(|name| !inherited.contains_key(*name));
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| !of_a_program(name)).collect()
}

fn is_for_other_user(name: &OsStr, passed: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    if OF_A_SESSION.contains(&name) {
        return passed.iter().any(|passed| passed == name);
    }
    FOR_OTHER_USERS.iter().copied().chain(passed.iter().map(String::as_str)).any(|known| fits(known, name))
}

/// `AWS_*` fits every name that begins with `AWS_`.
fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// Whether the Gemfile that `bundle exec` or the user has chosen is this application's.
#[allow(clippy::disallowed_methods)] // Highball's own environment names it, and the application is the same user's
fn has_gemfile_of(environment: &Environment, folder: &Path) -> bool {
    let Some(gemfile) = environment.get(OsStr::new("BUNDLE_GEMFILE")).map(Path::new) else { return false };
    // As both may have been reached by way of a link.
    gemfile.starts_with(folder) || gemfile.canonicalize().is_ok_and(|gemfile| gemfile.starts_with(folder))
}

/// Makes the environment what it was before `bundle exec`, as `Bundler.with_unbundled_env` does; but settings such as
/// BUNDLE_PATH and BUNDLE_WITHOUT stay, which images of containers have.
fn undo_bundler(environment: &mut Environment) {
    let copies: Vec<OsString> = environment
        .keys()
        .filter(|name| name.to_str().is_some_and(|name| name.starts_with(BUNDLERS_COPY)))
        .cloned()
        .collect();
    for copy in copies {
        let name = OsString::from(&copy.to_string_lossy()[BUNDLERS_COPY.len()..]);
        match environment.remove(&copy) {
            Some(before) if before == WAS_NOT_THERE => drop(environment.remove(&name)),
            Some(before) if !before.is_empty() => drop(environment.insert(name, before)),
            _ => {}
        }
    }
    for name in ["BUNDLE_BIN_PATH", "BUNDLE_GEMFILE", "BUNDLE_LOCKFILE", "BUNDLER_SETUP"] {
        environment.remove(OsStr::new(name));
    }
    undo_in_rubyopt(environment);
}

/// Takes `-rbundler/setup` out, with or without the folder that Bundler lies in.
fn undo_in_rubyopt(environment: &mut Environment) {
    let name = OsStr::new("RUBYOPT");
    let loads_bundler = |word: &&str| word.starts_with("-r") && word.ends_with("bundler/setup");
    let Some(options) = environment.get(name).and_then(|options| options.to_str()) else { return };
    if !options.split_whitespace().any(|word| loads_bundler(&word)) {
        return;
    }
    let others: Vec<&str> = options.split_whitespace().filter(|word| !loads_bundler(word)).collect();
    let others = OsString::from(others.join(" "));
    if others.is_empty() {
        environment.remove(name);
    } else {
        environment.insert(name.into(), others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::{RunsAs, Threads};
    use highball_users::User;

    fn app(user: Option<&str>, passed: &[&str]) -> App {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let arguments = ["highball", "serve", &path].map(OsString::from);
        let parsed = highball_config::parse(arguments, &|_| None).unwrap();
        let highball_config::Invocation::Serve(settings) = parsed else {
            unreachable!("it was asked to serve")
        };
        App {
            runs_as: user.map_or(RunsAs::Starter, |name| RunsAs::User(User::of(name).unwrap())),
            pass_variables: passed.iter().copied().map(String::from).collect(),
            ..App::clone(&settings.apps[0])
        }
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn left(app: &App, folder: &str, server: &[(&str, &str)]) -> Environment {
        inherited(app, Path::new(folder), environment(server))
    }

    #[test]
    fn an_application_of_another_user_gets_what_is_on_the_list_and_a_login() {
        let server = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("SECRET", "1"),
            ("LD_PRELOAD", "x.so"),
            ("HOME", "/root"),
            ("RUBYOPT", "-W0"),
            ("NOTIFY_SOCKET", "@s"),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
        ];
        let daemon = User::of("daemon").unwrap();
        let home = daemon.home.to_str().unwrap();
        let shell = daemon.shell.to_str().unwrap();
        let expected = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("HOME", home),
            ("USER", "daemon"),
            ("LOGNAME", "daemon"),
            ("SHELL", shell),
        ];
        assert_eq!(left(&app(Some("daemon"), &[]), "/srv", &server), environment(&expected));
        let all = left(&app(Some("daemon"), &["*"]), "/srv", &server);
        assert!(all.contains_key(OsStr::new("SECRET")) && all.contains_key(OsStr::new("LD_PRELOAD")));
        assert!(
            !all.contains_key(OsStr::new("NOTIFY_SOCKET"))
                && !all.contains_key(OsStr::new("XDG_RUNTIME_DIR"))
        );
        assert_eq!(all[OsStr::new("HOME")], home);
    }

    #[test]
    fn names_are_passed_whole_or_by_their_beginning() {
        assert!(fits("AWS_*", "AWS_REGION") && fits("*", "X") && fits("A", "A"));
        assert!(!fits("AWS_*", "AWS") && !fits("A", "AB") && !fits("A", "a"));
        let server =
            environment(&[("A", ""), ("AB", ""), ("PATH", ""), ("HOME", "/root"), ("LISTEN_FDS", "1")]);
        assert_eq!(withheld(&app(Some("daemon"), &["AB"]), &server), ["A"]);
        assert!(withheld(&app(None, &[]), &server).is_empty());
    }

    #[test]
    fn an_application_of_the_same_user_gets_everything_but_what_is_highballs() {
        let server = [
            ("SECRET", "1"),
            ("HOME", "/root"),
            ("BUNDLE_PATH", "/b"),
            ("BUNDLER_VERSION", "2"),
            ("RUBYOPT", "-W0  -v"),
        ];
        assert_eq!(left(&app(None, &[]), "/srv", &server), environment(&server));
        let highballs = [("LISTEN_FDS", "1"), ("WATCHDOG_USEC", "1"), (COMPILER, "on")];
        assert!(left(&app(None, &[]), "/srv", &highballs).is_empty());
    }

    /// What `bundle exec` sets with Bundler 2.3.
    const BUNDLED: [(&str, &str); 10] = [
        ("BUNDLE_GEMFILE", "/srv/tool/Gemfile"),
        ("BUNDLE_BIN_PATH", "/usr/bin/bundle"),
        ("BUNDLER_VERSION", "2.3.15"),
        ("RUBYOPT", "-r/usr/lib/ruby/bundler/setup -W0"),
        ("RUBYLIB", "/usr/lib/ruby"),
        ("PATH", "/gems/bin:/bin"),
        ("BUNDLER_ORIG_BUNDLE_GEMFILE", WAS_NOT_THERE),
        ("BUNDLER_ORIG_BUNDLER_VERSION", WAS_NOT_THERE),
        ("BUNDLER_ORIG_RUBYLIB", WAS_NOT_THERE),
        ("BUNDLER_ORIG_PATH", "/bin"),
    ];

    #[test]
    fn a_range_of_threads_gets_a_pool_of_connections() {
        let size = |least, most, are_default, workers| {
            let threads = Threads { least, most, are_default };
            pool_size(&App { threads, workers, pool: None, ..app(None, &[]) })
        };
        assert_eq!(
            [size(3, 32, false, 16), size(5, 5, false, 1), size(1, 3, false, 1)],
            [Some(34), None, None]
        );
        assert_eq!(
            [1, 2, 4, 8, 16].map(|workers| size(3, 32, true, workers)),
            [Some(34), Some(32), Some(16), Some(8), None]
        );
    }

    #[test]
    fn bundle_exec_for_another_gemfile_is_undone() {
        let undone = left(&app(None, &[]), "/srv/blog", &BUNDLED);
        assert_eq!(undone, environment(&[("PATH", "/bin"), ("RUBYOPT", "-W0")]));
        let theirs = left(&app(Some("daemon"), &["*"]), "/srv/tool", &BUNDLED);
        assert!(
            !theirs.contains_key(OsStr::new("BUNDLE_GEMFILE")),
            "another user does not inherit the Gemfile"
        );
    }

    #[test]
    fn bundle_exec_for_its_own_gemfile_is_left_alone() {
        assert_eq!(left(&app(None, &[]), "/srv/tool", &BUNDLED), environment(&BUNDLED));
    }

    #[test]
    fn a_gemfile_that_was_named_without_bundle_exec_is_not_for_others() {
        let named = [
            ("BUNDLE_GEMFILE", "/srv/tool/Gemfile"),
            ("RUBYOPT", "-rbundler/setup"),
            ("BUNDLER_VERSION", "2"),
        ];
        assert_eq!(left(&app(None, &[]), "/srv/blog", &named), environment(&[("BUNDLER_VERSION", "2")]));
    }
}
