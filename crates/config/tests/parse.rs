//! What a command line, an environment and a file come to, as the binary sees it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use highball_config::{
    AccessLog, AppId, AppSelector, Bind, Changes, ConfigError, Invocation, LineFormat, LogFormat, Named,
    Selector, Settings, StatusForm,
};

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

    fn serve(&self, args: &[&str]) -> Result<Settings, ConfigError> {
        match self.parse(args)? {
            Invocation::Serve(settings) => Ok(*settings),
            other => panic!("not serve: {other:?}"),
        }
    }

    fn try_settings(&self, args: &[&str]) -> Result<Settings, ConfigError> {
        self.serve(&[args, &[self.folder.path().to_str().unwrap()]].concat())
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
    Bind::tcp(text.parse().unwrap())
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
    assert_eq!((the_only.workers, the_only.threads.most), (1, 3));
    assert_eq!(the_only.limits.request_timeout, None);
    assert_eq!(the_only.limits.body_bytes, Some(1 << 30));
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
fn the_mold_of_a_worker_with_a_limit_stays() {
    let rests = |args: &[&str]| App::new().app(args).rest_mold_after();
    assert_eq!(rests(&["-e", "production"]), Some(Duration::from_secs(10)));
    assert_eq!(rests(&["-e", "production", "--rest-mold-after", "1m"]), Some(Duration::from_secs(60)));
    assert_eq!(rests(&["-e", "production", "--memory-limit", "512m"]), None);
    assert_eq!(rests(&[]), None);
}

#[test]
fn the_command_line_outweighs_the_environment_and_that_the_file() {
    let app = App::new().file("highball.toml", "threads = 7\nport = 1007\nmax_queue = 7");
    assert_eq!(app.app(&[]).threads.most, 7);
    let app = app.env("RAILS_MAX_THREADS", "8").env("PORT", "1008");
    assert_eq!(app.app(&[]).threads.most, 8);
    let app = app.env("HIGHBALL_THREADS", "9");
    let settings = app.settings(&["-p", "1009"]);
    assert_eq!((settings.apps[0].threads.most, settings.apps[0].limits.queue), (9, 7));
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
    assert_eq!(app.settings(&[]).binds, [tcp("0.0.0.0:3000"), Bind::unix(app.path().join("tmp/app.sock"))]);
    let settings = app.settings(&["-b", "127.0.0.1:4000", "-b", "[::1]", "-p", "5000"]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:4000"), tcp("[::1]:5000")]);
    let settings = App::new().env("HIGHBALL_BIND", "127.0.0.1, unix:/run/a.sock").settings(&[]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:3000"), Bind::unix("/run/a.sock")]);
}

#[test]
fn addresses_for_balancers_have_ports_of_their_kind() {
    let settings = App::new().settings(&["--admin", "10.0.0.5", "--agent-check", "10.0.0.5", "-p", "80"]);
    assert_eq!(settings.admin.binds, [tcp("10.0.0.5:9394")]);
    assert_eq!(settings.admin.agent_binds, [tcp("10.0.0.5:9395")]);
    let error = App::new().error(&["--agent-check", "unix:/run/agent"]);
    assert!(error.contains("is not an IP address with a port; write one such as 10.0.0.5:9395"), "{error}");
}

#[test]
fn proxies_that_report_their_clients() {
    let loopback = |settings: &Settings| {
        let has = |text: &str| {
            highball_config::Network::any_contains(&settings.proxy_protocol.from, text.parse().unwrap())
        };
        [has("127.0.0.1"), has("::1"), has("10.0.0.1"), has("192.0.2.7")]
    };
    let settings = App::new().settings(&[]);
    assert!(!settings.proxy_protocol.is_on());
    assert_eq!(loopback(&settings), [true, true, false, false]);
    let app = App::new()
        .file("highball.toml", "proxy_protocol = 'v1,v2'\nproxy_protocol_from = ['private', '192.0.2.0/29']");
    let settings = app.settings(&[]);
    assert!(settings.proxy_protocol.v1 && settings.proxy_protocol.v2);
    assert_eq!(loopback(&settings), [false, false, true, true]);
    let settings = app.settings(&["--proxy-protocol", "v2", "--proxy-protocol-from", "::1"]);
    assert!(!settings.proxy_protocol.v1 && settings.proxy_protocol.v2);
    assert_eq!(loopback(&settings), [false, true, false, false]);
    assert!(app.error(&["--proxy-protocol", "v3"]).contains("`v3` is not one of: off, v1, v2, v1,v2"));
    assert!(app.error(&["--proxy-protocol-from", "10.0.0.0/40"]).contains("`10.0.0.0/40` is not a network"));
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
    let settings = app.serve(&[current.to_str().unwrap()]).unwrap();
    let served = &settings.apps[0];
    assert_eq!((&served.folder, &served.link), (&app.path(), &current));
}

#[test]
fn an_application_can_be_a_file() {
    let app = App::new().file("my.ru", "").file("my.txt", "");
    let parse = |name: &str| app.serve(&[app.folder.path().join(name).to_str().unwrap()]);
    let settings = parse("my.ru").unwrap();
    let served = &settings.apps[0];
    assert_eq!((&served.folder, served.file.as_deref()), (&app.path(), Some(Path::new("my.ru"))));
    assert_eq!(served.link, app.folder.path());
    assert!(parse("my.txt").unwrap_err().to_string().contains("neither a folder nor a Ruby file"));
    let file = app.path().join("my.ru");
    let Invocation::Stop { selector } = app.parse(&["stop", file.to_str().unwrap()]).unwrap() else {
        panic!("not stop")
    };
    assert_eq!(selector.app.unwrap().folder, app.path());
}

#[test]
fn a_ruby_is_looked_up_in_path() {
    let app = App::new();
    assert_eq!(app.app(&["--ruby", "ruby"]).ruby, Some(app.folder.path().join("ruby")));
}

#[test]
fn threads_are_a_number_or_a_range() {
    let app = App::new();
    let threads = |text: &str| app.app(&["-t", text]).threads.to_string();
    assert_eq!(
        ["5", "3..32", "0:5", "4:8", "1:2", "7..7"].map(threads),
        ["5", "3..32", "3..5", "4..8", "2", "7"]
    );
    for (text, problem) in [
        ("32..3", "the range `32..3` begins above its end: write `3..32`"),
        ("0..5", "in the range `0..5`, `0` is not a whole number from 1 to 256"),
        ("3..257", "in the range `3..257`, `257` is not a whole number from 1 to 256"),
        ("a..b", "in the range `a..b`, `a` is not a whole number from 1 to 256"),
        ("3..", "in the range `3..`, `` is not a whole number from 1 to 256"),
        ("0", "`0` is not a whole number from 1 to 256"),
    ] {
        let error = app.error(&["-t", text]);
        assert!(error.contains(problem), "{error}");
    }
    assert_eq!(app.app(&["-e", "development"]).threads.to_string(), "3");
    let usual = app.app(&["-e", "production"]).threads;
    assert!(usual.are_default && usual.least == 3 && usual.most > 3, "{usual}");
    let of_file = App::new().file("highball.toml", "threads = \"3..32\"");
    assert_eq!(of_file.app(&[]).threads.to_string(), "3..32");
}

#[test]
fn a_file_can_be_named() {
    let app = App::new().file("highball.toml", "threads = 1").file("other.toml", "threads = 2");
    let other = app.folder.path().join("other.toml");
    assert_eq!(app.app(&["-c", other.to_str().unwrap()]).threads.most, 2);
    let app = app.env("HIGHBALL_CONFIG", other.to_str().unwrap());
    assert_eq!(app.app(&[]).threads.most, 2);
    assert!(app.error(&["-c", "/nowhere.toml"]).contains("/nowhere.toml: does not exist"));
}

#[test]
fn the_example_file_of_the_manual_works() {
    let manual = highball_config::manual();
    let (_, rest) = manual.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let text = text.replace("/opt/ruby/bin/ruby", "ruby");
    // Every user may name themselves.
    let text = text.replace("user = \"blog\"", &format!("user = {}", rustix::process::getuid()));
    let app = App::new().file("highball.toml", &text).file("Procfile", "worker: bin/worker\n");
    let changed = app.settings(&[]);
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
        "environment variable WEB_CONCURRENCY: `many` is not a whole number from 0 to 512, or auto"
    );
    assert!(app.error(&["-w", "-1"]).contains("-1"));
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
    for (text, words) in [
        ("[server]\nport = 1", "there is no section `[server]`: write the options of the server"),
        ("[workers_pool]\nport = 1", "there is no section `[workers_pool]`"),
        ("server.port = 1", "there is no section `[server]`"),
        ("[[apps]]\npath = 'x'", "there is no list `[[apps]]`: each application has its own entry, [[app]]"),
    ] {
        let error = error(text);
        assert!(error.contains(words) && !error.contains("did you mean"), "{error}");
    }
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
    let of = |option: &str| error(&["serve", option, "1"]);
    assert!(of("--wokers").contains("a similar argument exists: '--workers'"));
    for other in ["--server", "--log", "--max", "--tls"] {
        assert!(of(other).contains("unexpected argument") && !of(other).contains("similar"), "{}", of(other));
        assert!(!of(other).contains("Usage: highball serve --"), "{}", of(other));
    }
    assert!(error(&["statsu"]).contains("did you mean the command `highball status`?"));
}

#[test]
fn commands() {
    let app = App::new();
    let folder = app.folder.path().to_str().unwrap();
    let links = vec![folder.into(), app.path()];
    let here = AppSelector { text: folder.into(), folder: app.path(), links };
    let (root, path) = (Path::new("/"), app.path());
    assert!(here.is("other", &path, root) && here.is("other", root, &path) && here.is(folder, root, root));
    assert!(!here.is("other", root, root));
    let here = Selector { port: None, app: Some(here) };
    assert_eq!(
        app.parse(&["status", "--json"]).unwrap(),
        Invocation::Status {
            form: StatusForm::Json,
            check: false,
            slow: false,
            selector: Selector::default()
        }
    );
    assert_eq!(
        app.parse(&["status", "--check", folder]).unwrap(),
        Invocation::Status { form: StatusForm::Table, check: true, slow: false, selector: here }
    );
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
    assert_eq!(app.serve(&["serve", folder, "-t", "9"]).unwrap().apps[0].threads.most, 9);
}

#[test]
fn help_and_version() {
    let app = App::new();
    let help = |args: &[&str]| match app.parse(args).unwrap() {
        Invocation::Help(text) => text,
        other => panic!("no help: {other:?}"),
    };
    for args in [&["serve", "--help"], &["help", "serve"], &["serve", "-h"]] {
        assert!(help(args).contains("--drain-timeout <TIME>"), "{args:?}: {}", help(args));
    }
    for args in [&["--help"], &["help"], &["-h"]] {
        assert!(help(args).contains("highball serve --help"), "{args:?}: {}", help(args));
    }
    assert!(help(&["help", "status"]).contains("--json"));
    assert!(help(&["help", "memory"]).contains("--gc"));
    assert!(
        matches!(app.parse(&["--version"]).unwrap(), Invocation::Version(text) if text.starts_with("highball 0."))
    );
}

/// A folder with these applications in it, and files.
fn folder_with(apps: &[&str], files: &[(&str, &str)]) -> App {
    let mut here = App::new();
    for name in apps {
        std::fs::create_dir_all(here.folder.path().join(name)).unwrap();
    }
    for (name, text) in files {
        here = here.file(name, text);
    }
    here
}

impl App {
    /// Settings for what lies in these places, below the folder.
    fn try_many(&self, options: &[&str], places: &[&str]) -> Result<Settings, ConfigError> {
        let places: Vec<String> = places.iter().map(|place| self.at(place)).collect();
        let args: Vec<&str> = options.iter().copied().chain(places.iter().map(String::as_str)).collect();
        self.serve(&args)
    }

    fn many(&self, options: &[&str], places: &[&str]) -> Settings {
        self.try_many(options, places).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Settings for both applications, the blog's own file being this.
    fn with_own(&self, file: &str) -> Settings {
        std::fs::write(self.path().join("blog/highball.toml"), file).unwrap();
        self.many(&[], &["blog", "shop"])
    }

    fn at(&self, place: &str) -> String {
        self.path().join(place).to_str().unwrap().to_owned()
    }
}

#[test]
fn several_folders_are_several_applications_by_their_names() {
    let here = folder_with(&["Blog", "shop/current"], &[]);
    let settings = here.many(&[], &["Blog", "shop/current"]);
    let [blog, shop] = &settings.apps[..] else { panic!("{:?}", settings.apps) };
    assert_eq!((blog.name.as_str(), shop.name.as_str()), ("Blog", "shop"));
    assert_eq!(blog.hosts, ["blog.localhost", "blog"]);
    assert_eq!((shop.prefix.as_str(), shop.link.clone()), ("", here.path().join("shop/current")));
    assert!(blog.id != shop.id && !blog.prestart);
    assert!(here.many(&["-e", "production"], &["Blog", "shop/current"]).apps[0].prestart);
    assert!(here.many(&["--prestart", "on"], &["Blog", "shop/current"]).apps[0].prestart);
}

#[test]
fn an_applications_own_file_gives_its_own_options_alone() {
    let here = folder_with(
        &["shop"],
        &[(
            "blog/highball.toml",
            "threads = 7\nport = 1\naccess_log = 'log/a.log'\nhosts = ['blog.example.org']",
        )],
    );
    let settings = here.many(&["--workers", "2"], &["blog", "shop"]);
    let [blog, shop] = &settings.apps[..] else { panic!("{:?}", settings.apps) };
    assert_eq!((blog.threads.most, blog.workers, shop.threads.most, shop.workers), (7, 2, 3, 2));
    assert_eq!(blog.hosts, ["blog.example.org"]);
    assert_eq!(blog.access_log, AccessLog::Own(here.path().join("blog/log/a.log")));
    assert_eq!(settings.binds, [tcp("127.0.0.1:3000")]);
    assert!(settings.ignored.iter().any(|place| place.ends_with("line 2, port")), "{:?}", settings.ignored);
}

#[test]
fn entries_are_applications() {
    let file = "threads = 2\nsleep_after = '1h'\n[[app]]\npath = 'blog'\nprefix = '/blog/'\nvariables = { A = 'b', C = 1 }\n\
                [[app]]\npath = 'shop'\nname = 'Store'\nthreads = 5\nenvironment = 'staging'\nhosts = ['*']\naccess_log = 'none'";
    let here = folder_with(&["blog", "shop"], &[("config/highball.toml", file)]);
    for options in [vec![], vec!["-c", "config/highball.toml"]] {
        let options: Vec<String> =
            options.iter().map(|text| if *text == "-c" { text.to_string() } else { here.at(text) }).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let settings = here.many(&options, &[""]);
        let [blog, shop] = &settings.apps[..] else { panic!("{:?}", settings.apps) };
        assert_eq!((blog.folder.clone(), blog.threads.most), (here.path().join("blog"), 2));
        assert_eq!((blog.hosts.len(), blog.prefix.as_str()), (0, "/blog"));
        assert_eq!(
            blog.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            ["A=b", "C=1"]
        );
        assert_eq!(blog.sleep_after, Some(Duration::from_secs(3600)));
        assert_eq!(
            (shop.name.as_str(), shop.threads.most, shop.environment.as_str()),
            ("Store", 5, "staging")
        );
        assert_eq!((shop.hosts.len(), &shop.access_log), (0, &AccessLog::Off));
        assert!(!blog.prestart && shop.prestart);
    }
}

#[test]
fn entries_that_cannot_be() {
    let error = |text: &str| {
        let here = folder_with(&["blog", "shop"], &[("highball.toml", text)]);
        here.try_many(&[], &[""]).expect_err("should be refused").to_string()
    };
    assert!(error("[[app]]\nname = 'x'").contains("line 1: the entry has no `path`"));
    assert!(error("[[app]]\npath = 'no'").contains("/no: does not exist"));
    assert!(error("[app]\npath = 'blog'").contains("has its own entry: [[app]]"));
    assert!(
        error("[[app]]\npath = 'blog'\nport = 1").contains("line 3: `port` is the server's; write it above")
    );
    assert!(error("[[app]]\npath = 'blog'\nthreds = 1").contains("did you mean `threads`?"));
    let two = |first: &str, second: &str| {
        error(&format!("[[app]]\npath = 'blog'\n{first}\n[[app]]\npath = 'shop'\n{second}"))
    };
    assert!(two("name = 'a'", "name = 'a'").contains("would both be called `a`"));
    assert!(two("hosts = ['a', 'B']", "hosts = ['b']").contains("would both be reached at b;"));
    assert!(two("prefix = '/a'", "prefix = '/a'").contains("would both be reached at every host/a;"));
    assert!(error("prefix = '/a'\n[[app]]\npath = 'blog'\n[[app]]\npath = 'shop'")
        .contains("line 1, prefix: there are several"));
    let here = folder_with(&["blog", "shop"], &[("server.toml", "[[app]]\npath = 'blog'")]);
    let error = here.try_many(&["-c", &here.at("server.toml")], &["blog", "shop"]).unwrap_err().to_string();
    assert!(error.contains("name them in one place"), "{error}");
    let error = here.try_many(&["-c", &here.at("server.toml")], &["shop"]).unwrap_err().to_string();
    assert!(error.contains("name them in one place"), "it would not be served: {error}");
    let error = here.try_many(&[], &["blog", "blog"]).unwrap_err().to_string();
    assert!(error.contains("was given twice"), "{error}");
}

#[test]
fn hosts_are_compared_as_requests_name_them() {
    let here = folder_with(&["blog", "my shop"], &[]);
    let two = |first: &str, second: &str| {
        let text =
            format!("[[app]]\npath = 'blog'\n{first}\n[[app]]\npath = 'my shop'\nname = 'shop'\n{second}");
        std::fs::write(here.path().join("highball.toml"), text).unwrap();
        here.try_many(&[], &[""]).map_err(|error| error.to_string())
    };
    assert!(two("hosts = ['a.example']", "hosts = ['A.Example.']").unwrap_err().contains("both be reached"));
    assert!(two("hosts = ['[::1]']", "hosts = ['[0::1]']").unwrap_err().contains("both be reached"));
    assert!(two("hosts = ['[::x]']", "").unwrap_err().contains("is not a host name"));
    assert_eq!(two("", "").unwrap().apps[1].hosts, ["shop.localhost", "shop"]);
    std::fs::remove_file(here.path().join("highball.toml")).unwrap();
    let settings = here.try_many(&[], &["blog", "my shop"]).unwrap();
    assert_eq!(settings.apps[1].hosts, ["my-shop.localhost", "my-shop"]);
}

#[test]
fn possible_secrets_are_not_shown() {
    let here = folder_with(&["blog"], &[("highball.toml", "variables = ['DATABASE URL=hunter2']")]);
    let error = here.try_many(&[], &[""]).unwrap_err().to_string();
    assert!(error.contains("NAME=VALUE") && !error.contains("hunter2"), "{error}");
}

#[test]
fn a_reloaded_configuration() {
    let entry = |name: &str, more: &str| format!("[[app]]\npath = '{name}'\n{more}\n");
    let here = folder_with(&["blog", "shop", "wiki"], &[]);
    let read = |text: String| {
        std::fs::write(here.path().join("highball.toml"), text).unwrap();
        here.many(&[], &[""])
    };
    let old = read(entry("blog", "") + &entry("shop", ""));
    let ids: Vec<AppId> = old.apps.iter().map(|app| app.id).collect();
    let same = Changes::between(&old, read(entry("blog", "") + &entry("shop", "")));
    assert!(
        same.added.is_empty() && same.changed.is_empty() && same.removed.is_empty() && !same.is_about_server
    );
    assert_eq!(same.settings, old);
    let new = read(format!("port = 9\n{}{}", entry("wiki", ""), entry("blog", "threads = 9")));
    let changes = Changes::between(&old, new);
    assert_eq!((changes.added.len(), changes.added[0].name.as_str()), (1, "wiki"));
    assert_eq!(
        (changes.changed.len(), changes.changed[0].threads.most, changes.changed[0].id),
        (1, 9, ids[0])
    );
    assert_eq!(changes.removed, [ids[1]]);
    assert!(changes.is_about_server && !ids.contains(&changes.added[0].id));
    assert_eq!(changes.settings.binds, old.binds, "that takes another process");
    assert!(!changes.changed[0].has_processes_of(&old.apps[0]));
    let hosts =
        Changes::between(&old, read(entry("blog", "hosts = ['b']\nmax_queue = 5") + &entry("shop", "")));
    assert!(hosts.changed[0].has_processes_of(&old.apps[0]));
    let files = Changes::between(&old, read(entry("blog", "static_files = 'off'") + &entry("shop", "")));
    assert!(!files.changed[0].has_processes_of(&old.apps[0]), "they say where the files are");
}

#[test]
fn it_is_known_where_the_applications_were_named() {
    let here = folder_with(&["shop"], &[("server.toml", "threads = 1")]);
    let file = PathBuf::from(here.at("server.toml"));
    let nowhere = here.many(&["--config", &here.at("server.toml")], &[]);
    assert_eq!(nowhere.named, Named::Nowhere { file: Some(file.clone()) });
    assert_eq!(here.many(&[], &["shop"]).named, Named::OnCommandLine);
    std::fs::write(&file, "threads = 1\n[[app]]\npath = 'shop'").unwrap();
    let in_file = here.many(&["--config", &here.at("server.toml")], &[]);
    assert_eq!(in_file.named, Named::InFile);
    let changes = Changes::between(&nowhere, in_file);
    assert!(changes.settings.named == Named::InFile && !changes.is_about_server);
}

#[test]
fn where_a_link_leads_to_is_no_change_of_the_configuration() {
    let here = folder_with(&["1", "2"], &[]);
    let link_to = |release: &str| {
        let link = here.path().join("current");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(release, link).unwrap();
        here.many(&[], &["current"])
    };
    let changes = Changes::between(&link_to("1"), link_to("2"));
    assert!(changes.added.is_empty() && changes.changed.is_empty() && changes.removed.is_empty());
}

/// Two applications of an entry each.
const BLOG_AND_SHOP: &str = "[[app]]\npath = 'blog'\nmax_queue = 7\n[[app]]\npath = 'shop'";

fn fault(app: &highball_config::App) -> &str {
    app.fault.as_ref().map_or("", |fault| fault.message.as_str())
}

#[test]
fn what_is_wrong_with_one_of_several_is_its_fault_alone() {
    let here =
        folder_with(&["shop"], &[("highball.toml", BLOG_AND_SHOP), ("blog/highball.toml", "\nthreds = 1")]);
    let settings = here.many(&[], &[""]);
    let [blog, shop] = &settings.apps[..] else { panic!("{:?}", settings.apps) };
    assert!(
        fault(blog).ends_with("line 2: there is no option `threds`; did you mean `threads`?"),
        "{blog:?}"
    );
    let place = blog.fault.as_ref().map(|fault| (fault.file.clone().unwrap(), fault.line)).unwrap();
    assert_eq!(place, (here.path().join("blog/highball.toml"), Some(2)));
    assert_eq!((blog.limits.queue, blog.prestart, shop.prestart), (7, true, false));
    assert_eq!(
        (blog.hosts.as_slice(), &shop.fault),
        (["blog.localhost".into(), "blog".into()].as_slice(), &None)
    );
    std::fs::remove_dir_all(here.path().join("blog")).unwrap();
    assert!(fault(&here.many(&[], &[""]).apps[0]).contains("blog: does not exist"));
}

#[test]
fn what_the_server_says_wrongly_is_wrong_for_all() {
    let here = folder_with(&["shop"], &[("blog/highball.toml", "threds = 1")]);
    let error = |text: &str| {
        std::fs::write(here.path().join("highball.toml"), text).unwrap();
        here.try_many(&[], &[""]).unwrap_err().to_string()
    };
    let of_server = BLOG_AND_SHOP.replace("max_queue = 7", "max_queue = 0");
    assert!(error(&of_server).contains("line 3, max_queue"));
    assert!(error(&format!("port = 1\n{BLOG_AND_SHOP}\nport = 2")).contains("`port` is the server's"));
    let one = here.try_many(&[], &["blog"]).unwrap_err().to_string();
    assert!(one.contains("threds"), "one alone is refused: {one}");
}

#[test]
fn one_that_was_all_right_stays_as_it_was_while_its_file_has_a_mistake() {
    let here = folder_with(&["shop"], &[("blog/highball.toml", "threads = 7\nhosts = ['a']")]);
    let read = |own| here.with_own(own);
    let old = read("threads = 7\nhosts = ['a']");
    let now = Changes::between(&old, read("threads = 0"));
    assert!(now.added.is_empty() && now.removed.is_empty());
    let [(blog, why)] = &now.refused[..] else { panic!("{:?}", now.refused) };
    assert!(why.message.contains("line 1, threads"), "{why:?}");
    assert_eq!((blog.id, blog.threads.most, &blog.fault), (old.apps[0].id, 7, &None));
    let then = Changes::between(&now.settings, read("threads = 8\nhosts = ['a']"));
    assert_eq!(
        (then.changed.len(), then.changed[0].id, then.changed[0].threads.most),
        (1, old.apps[0].id, 8)
    );
}

#[test]
fn one_with_a_fault_is_tried_again_each_time_that_its_file_is_read() {
    let here = folder_with(&["shop"], &[("blog/highball.toml", "threds = 1")]);
    let read = |own| here.with_own(own);
    let old = read("threds = 1");
    let same = Changes::between(&old, read("threds = 1"));
    assert_eq!((same.changed.len(), same.changed[0].id), (1, old.apps[0].id));
    let named = Changes::between(&old, read("name = 'weblog'"));
    assert!(named.added.is_empty() && named.removed.is_empty() && named.refused.is_empty());
    assert_eq!((named.changed[0].id, named.changed[0].name.as_str()), (old.apps[0].id, "weblog"));
}

#[test]
fn domains_stand_for_the_hosts_of_applications() {
    let app = App::new().env("HOME", "/home/somebody").file("blog/config.ru", "").file("shop/config.ru", "").file(
        "highball.toml",
        "domain = [\"hosts\", \"b.test\"]\n[[app]]\npath = \"blog\"\nhosts = [\"b.test\", \"a.test\", \"a.localhost\"]\n\
         [[app]]\npath = \"shop\"\n",
    );
    let file = app.path().join("highball.toml");
    let settings = app.serve(&["serve", "--config", file.to_str().unwrap()]).unwrap();
    assert_eq!(settings.tls.acme.unwrap().domains, ["a.test", "b.test"]);
    let refused = App::new().env("HOME", "/home/somebody").try_settings(&["--domain", "hosts"]).unwrap_err();
    assert!(refused.to_string().contains("no authority issues certificates for any of them"), "{refused}");
}

#[test]
fn names_on_demand_need_no_domain() {
    let app = App::new().env("HOME", "/home/somebody");
    let given =
        ["--domain-on-demand", "*.Shops.test", "--domain-on-demand", "one.test", "--domain-ask", "/may"];
    let settings = app.try_settings(&given).unwrap();
    assert_eq!(
        settings.binds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["tls://0.0.0.0:443", "0.0.0.0:80"]
    );
    assert!(settings.tls.redirect);
    let acme = settings.tls.acme.unwrap();
    assert_eq!((acme.domains.len(), acme.on_demand.ask.as_deref()), (0, Some("/may")));
    let listed = |host| acme.on_demand.lists(host);
    assert!(listed("one.test") && listed("a.shops.test"));
    for other in ["shops.test", "a.b.shops.test", "a.one.test", "xshops.test", "test", "a.test", ""] {
        assert!(!listed(other), "{other}");
    }
    let refused = app.try_settings(&["--domain-ask", "/may", "--https"]).unwrap_err().to_string();
    assert!(refused.contains("for development"), "{refused}");
}

#[test]
fn names_with_an_asterisk_need_a_program_for_the_dns() {
    let app = App::new().env("HOME", "/home/somebody");
    let refused = app.try_settings(&["--domain", "*.a.test"]).unwrap_err().to_string();
    assert!(refused.contains("acme_dns_hook"), "{refused}");
    let settings = app.try_settings(&["--domain", "*.A.test", "--acme-dns-hook", "/bin/true"]).unwrap();
    assert_eq!(settings.tls.acme.unwrap().domains, ["*.a.test"]);
    for name in ["*", "*.test", "a.*.test", "*.*.a.test", "**.a.test", "*a.test"] {
        assert!(app.try_settings(&["--domain", name, "--acme-dns-hook", "/bin/true"]).is_err(), "{name}");
    }
}

#[test]
fn an_external_account_has_a_key() {
    let app = App::new().env("HOME", "/home/somebody");
    for alone in [["--acme-eab-kid", "1"], ["--acme-eab-key-file", "/key"]] {
        let refused = app.try_settings(&["--domain", "a.test", alone[0], alone[1]]).unwrap_err().to_string();
        assert!(refused.contains("go together"), "{refused}");
    }
}

#[test]
fn a_log_for_programs_covers_the_access_log() {
    let format = |arguments: &[&str]| {
        let app = App::new();
        let folder = app.folder.path().to_str().unwrap().to_owned();
        let Invocation::Serve(settings) = app.parse(&[arguments, &[&folder]].concat()).unwrap() else {
            panic!("no settings");
        };
        settings.log.access_rules.format.clone()
    };
    assert_eq!(format(&[]), LineFormat::Combined);
    assert_eq!(format(&["--log-format", "json"]), LineFormat::Json);
    assert_eq!(format(&["--log-format", "json", "--access-log-format", "combined"]), LineFormat::Combined);
}
