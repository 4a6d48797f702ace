//! What counts of a Puma configuration, beside everything else that is given.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use highball_config::{Bind, ConfigError, Invocation, PumaAnswer, Settings};

/// An application with `config/puma.rb`, and what Ruby would report of it.
struct App {
    folder: tempfile::TempDir,
    env: HashMap<&'static str, &'static str>,
    report: String,
    /// What Ruby was asked for: the file, and whether the environment was given.
    asked: RefCell<Vec<(PathBuf, bool)>>,
}

impl App {
    /// With these settings: the option's name and its text; the first stands in line 1, and so on.
    fn with(settings: &[(&str, &str)]) -> App {
        let row = |(index, (name, value)): (usize, &(&str, &str))| {
            let line = index + 1;
            format!("[[settings]]\nname = '{name}'\nvalue = '{value}'\nfile = '/app/config/puma.rb'\nline = {line}\n")
        };
        let rows: String = settings.iter().enumerate().map(row).collect();
        let folder = tempfile::tempdir().unwrap();
        let app = App {
            folder,
            env: HashMap::new(),
            report: if settings.is_empty() {
                "settings = []\nnotes = []".into()
            } else {
                format!("notes = []\n{rows}")
            },
            asked: RefCell::default(),
        };
        app.file("config/puma.rb")
    }

    fn file(self, name: &str) -> App {
        self.file_with(name, "")
    }

    fn file_with(self, name: &str, text: &str) -> App {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn env(mut self, name: &'static str, value: &'static str) -> App {
        self.env.insert(name, value);
        self
    }

    fn try_settings(&self, args: &[&str]) -> Result<Settings, ConfigError> {
        let folder = self.folder.path().to_str().unwrap();
        let args = ["highball"].iter().chain(args).chain([&folder]).map(OsString::from);
        let ask = |question: &highball_config::PumaQuestion<'_>| -> Result<PumaAnswer, String> {
            self.asked.borrow_mut().push((question.file.to_owned(), question.has_environment));
            toml::from_str(&self.report).map_err(|error| error.to_string())
        };
        let env = |name: &str| self.env.get(name).map(|value| (*value).to_owned());
        let callbacks = highball_config::Callbacks { ask_ruby: Some(&ask), ..Default::default() };
        match highball_config::parse_with(args, &env, callbacks)? {
            Invocation::Serve(settings) => Ok(*settings),
            other => panic!("not serve: {other:?}"),
        }
    }

    fn settings(&self, args: &[&str]) -> Settings {
        self.try_settings(args).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(&self, args: &[&str]) -> String {
        self.try_settings(args).expect_err("should be refused").to_string()
    }
}

fn tcp(text: &str) -> Bind {
    Bind::tcp(text.parse().unwrap())
}

#[test]
fn a_highball_toml_of_comments_changes_nothing() {
    let app = App::with(&[("workers", "4"), ("port", "4000")]);
    let without = app.settings(&[]);
    let app = app.file_with("config/highball.toml", "# workers = 2\n");
    let with = app.settings(&[]);
    assert_eq!((with.apps[0].workers, &with.binds), (without.apps[0].workers, &without.binds));
    assert_eq!(with.apps[0].file_notes[0], "config/highball.toml sets no options");
}

#[test]
fn jobs_that_it_starts_run_unless_others_are_named() {
    let jobs = r#"{"name":"jobs","command":["bin/jobs"],"env":{}}"#;
    let app = App::with(&[("process", jobs)]);
    let names = |settings: &Settings| -> Vec<String> {
        settings.apps[0].companions.iter().map(|companion| companion.name.clone()).collect()
    };
    let notes = |settings: &Settings| -> Vec<String> {
        settings.apps[0].puma_notes.iter().map(highball_config::PumaNote::text).collect()
    };
    let settings = app.settings(&[]);
    assert_eq!((names(&settings), notes(&settings)), (vec!["jobs".to_owned()], Vec::new()));
    let settings = app.settings(&["--with", "jobs=bin/other"]);
    assert_eq!((names(&settings), notes(&settings)), (vec!["jobs".to_owned()], Vec::new()));
    let settings = app.settings(&["--with", "css=bin/css"]);
    assert_eq!(names(&settings), ["css"]);
    assert!(notes(&settings)[0].contains("option --with names the processes"), "{:?}", notes(&settings));
    assert!(settings.apps[0].puma_notes[0].remedy.contains("--with jobs=\"bin/jobs\""));
    let app = app.file_with("config/highball.toml", "[[process]]\nname = 'css'\ncommand = 'bin/css'\n");
    assert_eq!(names(&app.settings(&[])), ["css"]);
    assert_eq!(notes(&app.settings(&[])).len(), 1);
}

#[test]
fn what_the_server_says_does_not_become_the_applications() {
    let app = App::with(&[("workers", "4")]);
    let text = "bind = 'tls://0.0.0.0:443'\ntls_certificate = 'site.pem'\nhosts = 'blog.example.org'\n";
    let server_only = text.lines().take(2).collect::<Vec<_>>().join("\n");
    for text in [text, &server_only] {
        std::fs::write(app.folder.path().join("highball.toml"), text).unwrap();
        let settings = app.settings(&[]);
        assert_eq!((settings.apps[0].workers, settings.apps[0].certificates.len()), (4, 0));
        assert_eq!(settings.tls.certificates.len(), 1);
    }
}

#[test]
fn the_folder_of_configurations_may_be_a_link() {
    let app = App::with(&[("workers", "4")]);
    let (config, shared) = (app.folder.path().join("config"), tempfile::tempdir().unwrap());
    std::fs::rename(&config, shared.path().join("config")).unwrap();
    std::os::unix::fs::symlink(shared.path().join("config"), &config).unwrap();
    assert_eq!(app.settings(&[]).apps[0].workers, 4);
    // A link that leads nowhere is one all the same.
    let nowhere = shared.path().join("config/highball.toml");
    std::os::unix::fs::symlink("/nonexistent/highball.toml", &nowhere).unwrap();
    assert!(app.error(&[]).contains("highball.toml: cannot be read"));
    std::fs::remove_file(&nowhere).unwrap();
    std::fs::remove_dir_all(shared.path().join("config")).unwrap();
    assert!(app.error(&[]).contains("cannot be read"));
}

#[test]
fn it_can_be_turned_off() {
    let app = App::with(&[("workers", "4")]).file_with("config/highball.toml", "puma_config = false\n");
    let settings = app.settings(&[]);
    assert_eq!((settings.apps[0].workers, &settings.apps[0].puma_file), (1, &None));
    assert_eq!(settings.apps[0].file_notes, ["config/puma.rb is not read, as puma_config is off"]);
    assert!(app.asked.borrow().is_empty());
    let named = app.folder.path().join("config/puma.rb");
    assert_eq!(app.settings(&["-C", named.to_str().unwrap()]).apps[0].workers, 4, "it is named");
    assert_eq!(App::with(&[("workers", "4")]).settings(&["--puma-config", "off"]).apps[0].workers, 1);
}

#[test]
fn options_that_decide_together_come_from_one_source() {
    let socket = ("bind", "unix:///tmp/x.sock");
    for (own, settings, outweighed) in [
        ("domain = 'blog.example.org'\nstate_dir = '/tmp'", &[socket][..], "bind"),
        ("domain = 'blog.example.org'\nstate_dir = '/tmp'", &[("https", "on")], "https"),
        ("max_workers = 8", &[("workers", "2")], "workers"),
        ("preload = false", &[("refork_after", "1000")], "refork_after"),
        ("refork_after = 1000", &[("preload", "off")], "preload"),
    ] {
        let app = App::with(settings).file_with("highball.toml", own);
        let settings = app.settings(&["-e", "production"]);
        let note = settings.apps[0].file_notes.last().unwrap();
        assert!(
            note.ends_with(&format!("it sets no options; outweighed: {outweighed} by highball.toml")),
            "{note}"
        );
    }
    let settings = App::with(&[socket]).file_with("highball.toml", "port = 5000").settings(&[]);
    assert_eq!(settings.binds, [tcp("127.0.0.1:5000")]);
    assert!(settings.apps[0].puma_notes[0].text().contains("is not bound: the port that was given"));
    let settings = App::with(&[("workers", "2")]).settings(&["--max-workers", "8", "-e", "production"]);
    assert!(settings.apps[0].pool.is_some());
    assert!(settings.apps[0].file_notes[0].ends_with("outweighed: workers by --max-workers"));
}

#[test]
fn what_goes_before_a_file_is_named() {
    let app = App::with(&[]).file_with("config/highball.toml", "workers = 2\nthreads = 4\n");
    std::fs::remove_file(app.folder.path().join("config/puma.rb")).unwrap();
    assert!(app.settings(&[]).apps[0].file_notes.is_empty());
    let app = app.env("WEB_CONCURRENCY", "3");
    assert_eq!(
        app.settings(&["-t", "5"]).apps[0].file_notes,
        ["config/highball.toml sets no options; outweighed: workers by WEB_CONCURRENCY, threads by --threads"]
    );
}

#[test]
fn files_that_another_takes_the_place_of_are_named() {
    let app = App::with(&[("workers", "4")]).file("highball.toml").file("config/puma/production.rb");
    let other = app.folder.path().join("other.toml");
    std::fs::write(&other, "workers = 2\n").unwrap();
    let settings = app.settings(&["-C", other.to_str().unwrap()]);
    assert_eq!((settings.apps[0].workers, &settings.apps[0].puma_file), (2, &None));
    let why = "is not read, as --config names another file";
    assert_eq!(
        settings.apps[0].file_notes,
        [format!("config/puma.rb {why}"), format!("highball.toml {why}")]
    );
    let own = app.folder.path().join("highball.toml");
    assert_eq!(app.settings(&["-C", own.to_str().unwrap()]).apps[0].workers, 4, "it is the usual one");
    let notes = app.settings(&["-e", "production"]).apps[0].file_notes.clone();
    assert_eq!(
        notes.last().unwrap(),
        "config/puma.rb is not read, as config/puma/production.rb goes before it"
    );
}

#[test]
fn the_file_of_one_of_several_applications_goes_before_it() {
    let app =
        App::with(&[("threads", "7"), ("workers", "4")]).file_with("config/highball.toml", "threads = 2\n");
    let other = tempfile::tempdir().unwrap();
    let settings = app.settings(&[other.path().to_str().unwrap()]);
    let of_puma = settings.apps.iter().find(|app| app.puma_file.is_some()).unwrap();
    assert_eq!((of_puma.workers, of_puma.threads.most), (4, 2));
}
