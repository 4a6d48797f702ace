//! What a command line, an environment and a file come to, as the binary sees it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use highball_config::{Bind, ConfigError, Invocation, LogFormat, Selector, Settings};

/// An application folder, an environment, and the means to ask for settings.
struct App {
    folder: tempfile::TempDir,
    env: HashMap<&'static str, String>,
}

impl App {
    fn new() -> App {
        let path = std::env::var("PATH").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ruby = folder.path().join("ruby");
        std::fs::write(&ruby, "").unwrap();
        std::fs::set_permissions(&ruby, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        App { env: HashMap::from([("PATH", format!("{}:{path}", folder.path().display()))]), folder }
    }

    fn env(mut self, name: &'static str, value: &str) -> App {
        self.env.insert(name, value.to_owned());
        self
    }

    fn file(self, name: &str, text: &str) -> App {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn parse(&self, args: &[&str]) -> Result<Invocation, ConfigError> {
        let args = ["highball"].iter().chain(args).map(OsString::from);
        highball_config::parse(args, &|name| self.env.get(name).cloned())
    }

    fn try_settings(&self, args: &[&str]) -> Result<Settings, ConfigError> {
        let folder = self.folder.path().to_str().unwrap();
        let args: Vec<&str> = args.iter().copied().chain([folder]).collect();
        match self.parse(&args)? {
            Invocation::Serve(settings) => Ok(*settings),
            other => panic!("not serve: {other:?}"),
        }
    }

    /// The settings of the one application.
    fn app(&self, args: &[&str]) -> Arc<highball_config::App> {
        Arc::clone(&self.settings(args).apps[0])
    }

    fn settings(&self, args: &[&str]) -> Settings {
        self.try_settings(args).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(&self, args: &[&str]) -> String {
        let error = self.try_settings(args).expect_err("should be refused");
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }
}

fn tcp(text: &str) -> Bind {
    Bind::Tcp(text.parse().unwrap())
}

#[test]
fn defaults_in_development() {
    let app = App::new();
    let settings = app.settings(&[]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:3000")]);
    assert_eq!(settings.log.format, LogFormat::Human);
    assert_eq!(settings.log.access.as_deref(), Some(Path::new("-")));
    assert_eq!(settings.pidfile, None);
    let [the_only] = &settings.apps[..] else { panic!("{:?}", settings.apps) };
    assert_eq!(the_only.folder, app.path());
    assert_eq!(the_only.environment, "development");
    assert_eq!((the_only.workers, the_only.threads), (1, 3));
    assert_eq!(the_only.limits.request_timeout, None);
    assert_eq!(the_only.limits.body_bytes, None);
    assert_eq!(the_only.process.boot_timeout, Duration::from_secs(300));
    assert_eq!((&the_only.ruby, &the_only.file), (&None, &None));
}

#[test]
fn defaults_in_production() {
    let settings = App::new().settings(&["-e", "production"]);
    assert_eq!(settings.binds, [tcp("0.0.0.0:3000")]);
    assert_eq!(settings.log.access, None);
    let app = &settings.apps[0];
    assert!(app.workers >= 1);
    assert_eq!(app.limits.request_timeout, Some(Duration::from_secs(60)));
    assert_eq!(app.process.boot_timeout, Duration::from_secs(60));
}

#[test]
fn the_command_line_outweighs_the_environment_and_that_the_file() {
    let app = App::new().file("highball.toml", "threads = 7\nport = 1007\nmax_queue = 7");
    assert_eq!(app.app(&[]).threads, 7);
    let app = app.env("RAILS_MAX_THREADS", "8").env("PORT", "1008");
    assert_eq!(app.app(&[]).threads, 8);
    let app = app.env("HIGHBALL_THREADS", "9");
    let settings = app.settings(&["-p", "1009"]);
    assert_eq!((settings.apps[0].threads, settings.apps[0].limits.queue), (9, 7));
    assert_eq!(settings.binds, [tcp("127.0.0.1:1009")]);
}

#[test]
fn blank_variables_are_unset() {
    let settings = App::new().env("WEB_CONCURRENCY", " ").env("PORT", "").settings(&[]);
    assert_eq!((settings.apps[0].workers, settings.binds), (1, vec![tcp("127.0.0.1:3000")]));
}

#[test]
fn variables_of_platforms_and_frameworks() {
    let app = App::new().env("RACK_ENV", "staging").env("WEB_CONCURRENCY", "auto").env("BINDING", "::1");
    let settings = app.env("PIDFILE", "/run/x.pid").settings(&[]);
    assert_eq!(settings.apps[0].environment, "staging");
    assert!(settings.apps[0].workers >= 1);
    assert_eq!(settings.binds, [tcp("[::1]:3000")]);
    assert_eq!(settings.pidfile, Some("/run/x.pid".into()));
    let app = App::new().env("RACK_ENV", "staging").env("RAILS_ENV", "production");
    assert_eq!(app.app(&[]).environment, "production");
}

#[test]
fn several_addresses() {
    let app = App::new().file("highball.toml", "bind = ['0.0.0.0', 'unix:tmp/app.sock']");
    assert_eq!(app.settings(&[]).binds, [tcp("0.0.0.0:3000"), Bind::Unix(app.path().join("tmp/app.sock"))]);
    let settings = app.settings(&["-b", "127.0.0.1:4000", "-b", "[::1]", "-p", "5000"]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:4000"), tcp("[::1]:5000")]);
    let settings = App::new().env("HIGHBALL_BIND", "127.0.0.1, unix:/run/a.sock").settings(&[]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:3000"), Bind::Unix("/run/a.sock".into())]);
}

#[test]
fn paths_in_the_file_begin_at_the_application() {
    let app = App::new().file("config/highball.toml", "pidfile = 'tmp/pid'\naccess_log = 'log/access.log'");
    let settings = app.settings(&[]);
    assert_eq!(settings.pidfile, Some(app.path().join("tmp/pid")));
    assert_eq!(settings.log.access, Some(app.path().join("log/access.log")));
    let here = std::env::current_dir().unwrap();
    assert_eq!(app.settings(&["--pidfile", "x.pid"]).pidfile, Some(here.join("x.pid")));
}

#[test]
fn the_application_folder_keeps_its_links_for_a_restart() {
    let app = App::new();
    let current = app.folder.path().join("current");
    std::os::unix::fs::symlink(app.path(), &current).unwrap();
    let Invocation::Serve(settings) = app.parse(&[current.to_str().unwrap()]).unwrap() else {
        panic!("not serve")
    };
    let served = &settings.apps[0];
    assert_eq!((&served.folder, &served.link), (&app.path(), &current));
}

#[test]
fn an_application_can_be_a_file() {
    let app = App::new().file("my.ru", "").file("my.txt", "");
    let parse = |name: &str| app.parse(&[app.folder.path().join(name).to_str().unwrap()]);
    let Invocation::Serve(settings) = parse("my.ru").unwrap() else { panic!("not serve") };
    let served = &settings.apps[0];
    assert_eq!((&served.folder, served.file.as_deref()), (&app.path(), Some(Path::new("my.ru"))));
    assert_eq!(served.link, app.folder.path());
    assert!(parse("my.txt").unwrap_err().to_string().contains("neither a folder nor a Ruby file"));
    let file = app.path().join("my.ru");
    let Invocation::Stop { selector } = app.parse(&["stop", file.to_str().unwrap()]).unwrap() else {
        panic!("not stop")
    };
    assert_eq!(selector.app, Some(app.path()));
}

#[test]
fn a_ruby_is_looked_up_in_path() {
    let app = App::new();
    assert_eq!(app.app(&["--ruby", "ruby"]).ruby, Some(app.folder.path().join("ruby")));
}

#[test]
fn a_file_can_be_named() {
    let app = App::new().file("highball.toml", "threads = 1").file("other.toml", "threads = 2");
    let other = app.folder.path().join("other.toml");
    assert_eq!(app.app(&["-c", other.to_str().unwrap()]).threads, 2);
    let app = app.env("HIGHBALL_CONFIG", other.to_str().unwrap());
    assert_eq!(app.app(&[]).threads, 2);
    assert!(app.error(&["-c", "/nowhere.toml"]).contains("/nowhere.toml: does not exist"));
}

#[test]
fn the_example_file_of_the_manual_works() {
    let manual = highball_config::manual();
    let (_, rest) = manual.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let text = text.replace("/opt/ruby/bin/ruby", "ruby");
    let changed = App::new().file("highball.toml", &text).settings(&[]);
    let default = App::new().settings(&["--environment", "production"]);
    assert_eq!(changed.log.format, LogFormat::Json);
    let (changed, default) = (&changed.apps[0], &default.apps[0]);
    assert_eq!(changed.process.max_boot_failures, 2);
    assert_eq!(changed.limits.body_bytes, Some(100 << 20));
    assert!(!changed.static_files.enabled && default.static_files.enabled);
}

#[test]
fn wrong_values_name_the_place_they_were_given_at() {
    let app = App::new().env("WEB_CONCURRENCY", "many").file("highball.toml", "\nidle_timeout = 'ages'");
    assert_eq!(
        app.error(&[]),
        "environment variable WEB_CONCURRENCY: `many` is not a whole number from 1 to 512, or auto"
    );
    assert!(app.error(&["-w", "0"]).starts_with("option --workers: `0` is not"));
    let text = app.error(&["-w", "2"]);
    assert!(text.contains("highball.toml, line 2, idle_timeout: `ages` is not a duration"), "{text}");
}

#[test]
fn wrong_files() {
    let error = |text| App::new().file("highball.toml", text).error(&[]);
    assert!(error("# x\nwokers = 2")
        .ends_with("highball.toml, line 2: there is no option `wokers`; did you mean `workers`?"));
    assert!(error("config = 'x'").contains("there is no option `config`"));
    assert!(error("port = [1, 2]").contains("port takes one value, such as \"8080\""));
    assert!(error("[server]\nport = 1").contains("there is no option `server`"));
    assert!(error("port = 1\nport = 2").contains("line 2: duplicate key"));
    assert!(error("port 1").contains("line 1: "));
    let both = App::new().file("highball.toml", "").file("config/highball.toml", "");
    assert!(both.error(&[]).contains("keep one of them"));
}

#[test]
fn wrong_options() {
    let app = App::new();
    assert!(app.error(&["--prot", "1"]).contains("--port"));
    assert!(app.error(&["-p", "66000"]).contains("`66000` is not a whole number from 0 to 65535"));
    assert!(app.error(&["-p"]).contains("option --port"), "the folder is taken for the port");
    assert!(app.error(&["--log-format", "xml"]).contains("human, json"));
    assert!(app.error(&["-b", "example.org"]).contains("is not an address"));
    assert!(app.error(&["--ruby", "no-such-ruby"]).contains("no `no-such-ruby` in PATH"));
    assert!(app.error(&["--probe-path", "up"]).contains("`up` is not the path of a URL"));
    assert!(app.error(&["--spool-dir", "/nowhere"]).contains("/nowhere is not a folder"));
}

#[test]
fn application_folders_that_cannot_be_served() {
    let app = App::new().file("README", "");
    let error = |args: &[&str]| app.parse(args).expect_err("should be refused").to_string();
    let folder = app.folder.path().to_str().unwrap();
    assert!(error(&["/no/such/app"])
        .starts_with("application folder /no/such/app: does not exist; name the folder"));
    assert!(error(&[&format!("{folder}/README")]).contains("is neither a folder nor a Ruby file"));
    assert!(error(&[folder, folder]).contains("was given twice"));
    assert!(error(&[folder, "/"]).contains("one server serves one application"));
    assert!(error(&["statsu"]).contains("did you mean the command `highball status`?"));
}

#[test]
fn commands() {
    let app = App::new();
    let folder = app.folder.path().to_str().unwrap();
    let here = Selector { port: None, app: Some(app.path()) };
    assert_eq!(
        app.parse(&["status", "--json"]).unwrap(),
        Invocation::Status { json: true, selector: Selector::default() }
    );
    assert_eq!(app.parse(&["status", folder]).unwrap(), Invocation::Status { json: false, selector: here });
    let port = Selector { port: Some(4000), app: None };
    assert_eq!(
        app.parse(&["restart", "-p", "4000"]).unwrap(),
        Invocation::Restart { selector: port.clone() }
    );
    assert_eq!(app.parse(&["stop", "-p", "4000"]).unwrap(), Invocation::Stop { selector: port.clone() });
    assert_eq!(
        app.parse(&["memory", "--gc", "-p", "4000"]).unwrap(),
        Invocation::Memory { json: false, gc: true, selector: port }
    );
    assert_eq!(
        app.parse(&["memory", "--json"]).unwrap(),
        Invocation::Memory { json: true, gc: false, selector: Selector::default() }
    );
    assert!(
        matches!(app.parse(&["serve", folder, "-t", "9"]).unwrap(), Invocation::Serve(s) if s.apps[0].threads == 9)
    );
}

#[test]
fn help_and_version() {
    let app = App::new();
    let help = |args: &[&str]| match app.parse(args).unwrap() {
        Invocation::Help(text) => text,
        other => panic!("no help: {other:?}"),
    };
    for args in [&["--help"][..], &["help"], &["-h"], &["help", "serve"]] {
        assert!(help(args).contains("--drain-timeout <TIME>"), "{args:?}: {}", help(args));
    }
    assert!(help(&["help", "status"]).contains("--json"));
    assert!(help(&["help", "memory"]).contains("--gc"));
    assert!(
        matches!(app.parse(&["--version"]).unwrap(), Invocation::Version(text) if text.starts_with("highball 0."))
    );
}
