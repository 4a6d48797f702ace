//! Schemes and deployments: the real files of `bench/schemes`, and real processes.

use highball_bench::deployment::{Deployment, Setting};
use highball_bench::scheme::{Floor, Scheme};
use highball_bench::socket::Protocol;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use std::{fs, thread};
use tempfile::TempDir;

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the source tree")
}

fn schemes() -> Vec<Scheme> {
    Scheme::read_all(&tree().join("bench/schemes")).expect("all schemes can be read")
}

/// A folder with one scheme, and its parts.
struct Written {
    folder: TempDir,
}

impl Written {
    fn new(scheme: &str) -> Written {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("parts")).expect("a folder");
        fs::write(folder.path().join("mine.toml"), scheme).expect("written");
        Written { folder }
    }

    fn part(self, name: &str, part: &str) -> Written {
        fs::write(self.folder.path().join("parts").join(name).with_extension("toml"), part).expect("written");
        self
    }

    fn read(&self) -> Result<Scheme, String> {
        Scheme::read(&self.folder.path().join("mine.toml")).map_err(|failure| failure.to_string())
    }

    /// The words of the failure to read it.
    fn words(&self) -> String {
        self.read().expect_err("it is no scheme")
    }
}

/// A scheme of one program: a script of Ruby, which is given the port and a folder that outlives the deployment.
struct Script {
    folder: TempDir,
    _company: Option<RwLockReadGuard<'static, ()>>,
}

impl Script {
    fn new(ruby: &str) -> Script {
        Script { _company: Some(ALONE.read().unwrap_or_else(PoisonError::into_inner)), ..Script::alone(ruby) }
    }

    fn alone(ruby: &str) -> Script {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let scheme = r#"
            title = "the test's server"
            server = "script"
            [[process]]
            command = ["ruby", "--disable=gems", "{app}/server.rb", "{port}"]
            stop_seconds = 1
        "#;
        fs::write(folder.path().join("script.toml"), scheme).expect("written");
        fs::write(folder.path().join("server.rb"), format!("{SERVE}\n{ruby}")).expect("written");
        Script { folder, _company: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self) -> Result<Deployment, String> {
        self.start_with(&self.setting())
    }

    fn setting(&self) -> Setting {
        Setting { start_time: Duration::from_secs(20), ..Setting::new(self.folder.path()) }
    }

    fn start_with(&self, setting: &Setting) -> Result<Deployment, String> {
        let scheme = Scheme::read(&self.path("script.toml")).expect("a scheme");
        Deployment::start(&scheme, setting).map_err(|failure| failure.to_string())
    }

    /// Process ids that the script has noted.
    fn noted(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path("pids")).expect("the script has noted process ids");
        text.lines().map(|line| line.parse().expect("a process id")).collect()
    }
}

/// An orphan that has lost its mark goes to the test that looks first: a test with such orphans has to run alone.
static ALONE: RwLock<()> = RwLock::new(());

/// What scripts begin with: `note` writes down who runs, `leave` goes on in a child when this process has ended, `serve`
/// answers.
const SERVE: &str = r##"
    require "socket"
    def note = File.write(File.join(__dir__, "pids"), "#{Process.pid}\n", mode: "a")
    def leave
      parent = Process.pid
      exit if fork
      sleep 0.01 while Process.ppid == parent
    end
    def serve
      listener = TCPServer.new("127.0.0.1", Integer(ARGV[0]))
      loop do
        client = listener.accept
        client.gets("\r\n\r\n")
        client.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        client.close
      end
    end
"##;

fn is_running(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// The answer to `GET /` up to these words, or whole without them: the floor does not end its connection.
fn get(address: SocketAddr, words: &str) -> String {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains(words) {
        match stream.read(&mut piece).expect("an answer") {
            0 => break,
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Nothing of it is there any more: no process that it noted, no listener, no folder.
fn assert_nothing_left(script: &Script, address: SocketAddr, folder: &Path) {
    for pid in script.noted() {
        assert!(!is_running(pid), "process {pid} is left");
    }
    assert!(!is_open(address), "a process listens on {address}");
    assert!(!folder.exists(), "{} is left", folder.display());
}

/// The deployment's own folder: its processes have it as mark.
fn folder_of(deployment: &Deployment) -> PathBuf {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let environment =
            fs::read(format!("/proc/{}/environ", deployment.roots()[0])).expect("its environment");
        let mut variables = environment.split(|byte| *byte == 0);
        let mark = variables.find_map(|variable| variable.strip_prefix(b"HIGHBALL_BENCH_DEPLOYMENT="));
        if let Some(mark) = mark {
            return PathBuf::from(String::from_utf8_lossy(mark).into_owned());
        }
        // The kernel shows none while the process executes a program.
        assert!(Instant::now() < until, "its mark");
        thread::yield_now();
    }
}

mod reading {
    use super::*;

    const SCHEME: &str = "title = 'Mine'\nserver = 'Mine'\n";

    #[test]
    fn every_scheme_can_be_read() {
        let schemes = schemes();
        assert!(schemes.len() >= 50, "there are {}", schemes.len());
        assert!(schemes.is_sorted_by_key(|scheme| &scheme.name));
    }

    #[test]
    fn every_scheme_of_2006_has_one_counterpart() {
        let schemes = schemes();
        let mut counterparts: Vec<&str> =
            schemes.iter().filter_map(|scheme| scheme.stands_for.as_deref()).collect();
        counterparts.sort_unstable();
        let expected = [
            "Apache 2 → 4 FastCGI",
            "LiteSpeed → 4 LSAPI",
            "WEBrick",
            "haproxy → 4 mongrels",
            "lighttpd → 4 FastCGI",
            "lighttpd → 4 mongrels",
            "nginx → 4 FastCGI",
            "nginx → 4 mongrels",
            "one mongrel",
            "pen → 4 mongrels",
            "pound → 4 mongrels",
        ];
        assert_eq!(counterparts, expected);
    }

    #[test]
    fn unknown_keys_are_named() {
        let command = "[[process]]\ncommand = ['serve', '{port}']\n";
        let words = Written::new(&format!("{SCHEME}colour = 'red'\n{command}")).words();
        assert!(words.contains("mine.toml") && words.contains("unknown field `colour`"), "{words}");
        let words = Written::new(&format!("{SCHEME}{command}nice = 5\n")).words();
        assert!(words.contains("unknown field `nice`"), "{words}");
    }

    #[test]
    fn unknown_placeholders_are_named_wherever_they_stand() {
        for place in [
            "[[process]]\ncommand = ['serve', '{port}', '{prot}']",
            "[[process]]\ncommand = ['serve', '{port}']\nenv = { A = '{prot}' }",
            "[[process]]\ncommand = ['serve', '{port}']\nfolder = '{prot}'",
            "[[process]]\ncommand = ['serve', '{port}']\n[[file]]\npath = 'a'\ntext = '{prot}'",
            "[[process]]\ncommand = ['serve', '{port}']\n[[version]]\nname = 'A'\ncommand = ['{prot}']",
        ] {
            let words = Written::new(&format!("{SCHEME}{place}")).words();
            assert!(words.contains("unknown placeholder {prot}") && words.contains("port"), "{words}");
        }
    }

    #[test]
    fn placeholders_of_a_backend_need_backends() {
        let words =
            Written::new(&format!("{SCHEME}[[process]]\ncommand = ['serve', '{{port}}', '{{socket}}']"))
                .words();
        assert!(words.contains("{socket} needs a process with `backends`"), "{words}");
    }

    #[test]
    fn an_address_needs_the_form_in_its_part() {
        let part = "[address]\ntcp = '{backend_port}'\n[[process]]\nbackends = 'one'\ncommand = ['serve', '{address}']";
        let scheme =
            format!("{SCHEME}over = 'unix'\nparts = ['back']\n[[process]]\ncommand = ['proxy', '{{port}}']");
        let words = Written::new(&scheme).part("back", part).words();
        assert!(words.contains("{address}") && words.contains("over"), "{words}");
        let scheme = scheme.replace("unix", "tcp");
        Written::new(&scheme).part("back", part).read().expect("a scheme");
    }

    #[test]
    fn a_scheme_has_to_listen_on_the_port() {
        let words = Written::new(&format!("{SCHEME}[[process]]\ncommand = ['serve']")).words();
        assert!(words.contains("{port}"), "{words}");
    }

    #[test]
    fn a_configuration_file_stays_in_the_folder() {
        let scheme =
            format!("{SCHEME}[[process]]\ncommand = ['s', '{{port}}']\n[[file]]\npath = '../a'\ntext = ''");
        let words = Written::new(&scheme).words();
        assert!(words.contains("../a"), "{words}");
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let scheme =
            format!("{SCHEME}packages = ['gin']\n[[process]]\ncommand = ['no-such-program', '{{port}}']");
        let missing = Written::new(&scheme).read().expect("a scheme").missing().expect("it is missing");
        assert!(missing.why.contains("no-such-program"), "{}", missing.why);
        assert_eq!(missing.packages, ["gin"]);
    }

    #[test]
    fn versions_are_asked() {
        let version = "[[version]]\nname = 'Sea'\ncommand = ['echo', 'sea v1.2.3-4']\n";
        let scheme = format!("{SCHEME}[[process]]\ncommand = ['sh', '{{port}}']\n{version}");
        let scheme = Written::new(&scheme).read().expect("a scheme");
        assert_eq!((scheme.missing(), scheme.version().as_str()), (None, "Sea 1.2.3"));
    }
}

mod roots {
    use super::*;

    /// A release of Debian that is this machine's own, but for /etc.
    fn root() -> TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink("/usr", root.path().join("usr")).expect("a link");
        fs::create_dir(root.path().join("etc")).expect("a folder");
        fs::write(root.path().join("etc/highball-bench-test"), "laid over").expect("written");
        root
    }

    /// A script that is run in a root.
    fn script_in(root: &str, ruby: &str) -> Script {
        let script = Script::new(ruby);
        let scheme = fs::read_to_string(script.path("script.toml")).expect("a scheme");
        fs::write(script.path("script.toml"), format!("root = '{root}'\n{scheme}")).expect("written");
        script
    }

    #[test]
    fn programs_see_the_root_and_this_machine_keeps_what_it_has() {
        let root = root();
        let script = script_in(
            &root.path().to_string_lossy(),
            r#"puts File.read("/etc/highball-bench-test"), ENV.fetch("LC_ALL"); $stdout.flush; note; serve"#,
        );
        if let Some(missing) = Scheme::read(&script.path("script.toml")).expect("a scheme").missing() {
            assert!(missing.why.contains("only root"), "{}", missing.why);
            return;
        }
        let mounts = fs::read_to_string("/proc/self/mounts").expect("read");
        let deployment = script.start().expect("started");
        let (address, folder) = (deployment.address(), folder_of(&deployment));
        assert_eq!(deployment.log_tail(), "laid over\nC.UTF-8");
        assert_eq!(deployment.roots(), script.noted());
        deployment.stop().expect("stopped");
        assert_nothing_left(&script, address, &folder);
        assert_eq!(fs::read_to_string("/proc/self/mounts").expect("read"), mounts);
        assert!(!Path::new("/etc/highball-bench-test").exists());
    }

    #[test]
    fn a_root_that_is_not_there_is_named_with_what_makes_it() {
        let script = script_in("buzz", "serve");
        let missing =
            Scheme::read(&script.path("script.toml")).expect("a scheme").missing().expect("missing");
        assert!(
            missing.why.contains("no Debian buzz") && missing.why.contains("--install"),
            "{}",
            missing.why
        );
    }

    #[test]
    fn an_application_that_the_root_would_hide_is_refused() {
        let script = script_in("buzz", "serve");
        let setting = Setting { app: "/usr/share/app".into(), ..script.setting() };
        let words = script.start_with(&setting).expect_err("it cannot be served");
        assert!(words.contains("/usr/share/app cannot be served"), "{words}");
    }

    #[test]
    fn one_that_is_like_another_differs_in_title_and_root() {
        let command = "[[process]]\ncommand = ['no-such-program', '{port}']\n";
        let other = "title = 'Other'\nserver = 'Sea'\nstands_for = 'one mongrel'\n";
        let written = Written::new("title = 'Mine'\nlike = 'other'\nroot = 'buzz'\n");
        fs::write(written.folder.path().join("other.toml"), format!("{other}{command}")).expect("written");
        let scheme = written.read().expect("a scheme");
        assert_eq!((scheme.title.as_str(), scheme.server.as_str()), ("Mine", "Sea"));
        assert_eq!(scheme.stands_for, None);
        assert!(scheme.missing().expect("missing").why.contains("buzz"));
    }
}

mod processes {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_server() {
        let script = Script::new("note; serve");
        let deployment = script.start().expect("started");
        let (address, folder) = (deployment.address(), folder_of(&deployment));
        assert_eq!(deployment.roots(), script.noted());
        assert!(deployment.cold_start() > Duration::ZERO);
        assert!(get(address, "hello").ends_with("hello"));
        deployment.stop().expect("stopped");
        assert_nothing_left(&script, address, &folder);
    }

    #[test]
    fn nothing_is_left_of_one_that_is_dropped() {
        let script = Script::new("note; serve");
        let deployment = script.start().expect("started");
        let (address, folder) = (deployment.address(), folder_of(&deployment));
        drop(deployment);
        assert_nothing_left(&script, address, &folder);
    }

    /// Daemonises twice over, ignores what it can, and has children that leave its session as well.
    #[test]
    fn nothing_is_left_of_one_that_hides() {
        let script = Script::new(
            r#"
            trap("TERM", "IGNORE")
            leave
            Process.setsid
            leave
            fork { Process.setsid; fork { note; sleep }; note; sleep }
            fork { note; sleep }
            note
            serve
            "#,
        );
        let deployment = script.start().expect("started");
        let (address, folder) = (deployment.address(), folder_of(&deployment));
        assert_eq!(deployment.roots().len(), 1, "the daemon");
        deployment.stop().expect("stopped");
        assert_eq!(script.noted().len(), 4);
        assert_nothing_left(&script, address, &folder);
    }

    /// A process title is written over the environment, and with it over the mark.
    #[test]
    fn nothing_is_left_of_one_that_hides_its_environment() {
        let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
        let script = Script::alone("leave; Process.setsid; leave; $0 = 'x' * 20; note; serve");
        let deployment = script.start().expect("started");
        assert_eq!(deployment.roots(), script.noted());
        let address = deployment.address();
        deployment.stop().expect("stopped");
        assert_nothing_left(&script, address, Path::new("/none"));
    }

    #[test]
    fn no_shared_memory_is_left_of_one_that_is_killed() {
        let script = Script::new(
            r##"
            require "fiddle"
            trap("TERM", "IGNORE")
            file = File.open("/dev/shm/highball-bench-test-#{Process.pid}", "w+")
            file.truncate(4096)
            ints = [Fiddle::TYPE_INT] * 3
            mmap = Fiddle::Function.new(Fiddle.dlopen(nil)["mmap"],
              [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, *ints, Fiddle::TYPE_LONG], Fiddle::TYPE_VOIDP)
            mmap.call(nil, 4096, 1, 1, file.fileno, 0) # readable, shared
            note
            serve
            "##,
        );
        let deployment = script.start().expect("started");
        let memory = format!("/dev/shm/highball-bench-test-{}", script.noted()[0]);
        assert!(Path::new(&memory).exists());
        deployment.stop().expect("stopped");
        assert!(!Path::new(&memory).exists(), "{memory} is left");
    }

    #[test]
    fn one_that_dies_at_the_start_gives_the_end_of_its_log() {
        let script = Script::new("note; puts 'first words'; abort 'no database'");
        let words = script.start().expect_err("it does not start");
        for part in ["the test's server did not start", "exit status: 1", "no database"] {
            assert!(words.contains(part), "{words}");
        }
        assert!(script.noted().into_iter().all(|pid| !is_running(pid)));
    }

    #[test]
    fn a_starter_that_succeeds_but_leaves_no_process_has_failed() {
        let words = Script::new("puts 'bye'").start().expect_err("it does not start");
        assert!(words.contains("exit status: 0") && words.contains("bye"), "{words}");
    }

    #[test]
    fn one_that_never_answers_is_given_up() {
        let script = Script::new("note; sleep");
        let setting = Setting { start_time: Duration::from_secs(2), ..script.setting() };
        let words = script.start_with(&setting).expect_err("it does not start");
        assert!(words.contains("within 2 s"), "{words}");
        assert!(script.noted().into_iter().all(|pid| !is_running(pid)));
    }

    #[test]
    fn an_interruption_ends_the_wait() {
        let script = Script::new("sleep");
        let setting = Setting { interrupted: Arc::new(true.into()), ..script.setting() };
        let words = script.start_with(&setting).expect_err("it does not start");
        assert!(words.contains("interrupted"), "{words}");
    }

    #[test]
    fn two_at_a_time_have_ports_and_processes_of_their_own() {
        let one = Script::new("note; serve");
        let other = Script::alone("note; serve");
        let (first, second) = (one.start().expect("started"), other.start().expect("started"));
        assert_ne!(first.address(), second.address());
        first.stop().expect("stopped");
        assert!(get(second.address(), "hello").ends_with("hello"));
        assert_eq!(second.roots(), other.noted());
    }

    /// Backends listen before the front end starts, which finds every one of them in its configuration.
    #[test]
    fn a_line_that_names_a_backend_is_there_for_each() {
        let script = Script::new("serve");
        let folder = &script.folder;
        fs::create_dir(folder.path().join("parts")).expect("a folder");
        let backend = r#"
            [address]
            tcp = "{backend_port}"
            [[process]]
            backends = "workers"
            command = ["ruby", "{app}/server.rb", "{address}"]
        "#;
        fs::write(folder.path().join("parts/back.toml"), backend).expect("written");
        let scheme = r#"
            title = "front"
            server = "script"
            over = "tcp"
            parts = ["back"]
            [[file]]
            path = "in/backends"
            text = '''
            begin
            {backend} {backend_port}
            end'''
            [[process]]
            command = ["sh", "-c", 'cat in/backends; echo "$@"; exec ruby {app}/server.rb {port}', "{backend}", "{backend}"]
            folder = "{dir}"
        "#;
        fs::write(folder.path().join("front.toml"), scheme).expect("written");
        let scheme = Scheme::read(&folder.path().join("front.toml")).expect("a scheme");
        let setting = Setting { workers: 3, ..Setting::new(folder.path()) };
        let deployment = Deployment::start(&scheme, &setting).expect("started");
        let log = deployment.log_tail();
        let lines: Vec<&str> = log.lines().map(str::trim).collect();
        assert_eq!((lines[0], lines[4]), ("begin", "end"), "{log}");
        for (number, line) in lines[1..4].iter().enumerate() {
            let (backend, port) = line.split_once(' ').expect("two words");
            assert_eq!(backend, (number + 1).to_string());
            assert!(is_open(format!("127.0.0.1:{port}").parse().expect("an address")));
        }
        // The first of them is the shell's own name.
        assert_eq!(lines[5], "2 3 1 2 3");
        assert_eq!(deployment.roots().len(), 4);
        deployment.stop().expect("stopped");
    }
}

/// Whether a scheme has a server or a front end that none of these has, over the same kind of socket. A front end has the same
/// configuration before each server, but FastCGI's; with --full, every scheme is tried all the same.
fn is_new(scheme: &Scheme, tried: &mut HashSet<String>) -> bool {
    let (server, rest) = scheme.name.split_once('-').unwrap_or((scheme.name.as_str(), ""));
    let socket = rest.rsplit('-').next().unwrap_or_default();
    let front = if server == "fastcgi" { scheme.name.as_str() } else { rest };
    let is_new = [tried.insert(format!("{server} {socket}")), tried.insert(front.into())].contains(&true);
    is_new || std::env::var_os("HIGHBALL_TEST_LEVEL").is_some_and(|level| level == "full")
}

/// Starts every kind of scheme whose programs are here, and asks it for the smallest application there is.
#[test]
fn every_scheme_answers() {
    let _company = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let app = tree().join("bench/apps/hello");
    let site = TempDir::new().expect("a temporary folder");
    fs::create_dir(site.path().join("public")).expect("made");
    fs::write(site.path().join("public/index.html"), "Hello World").expect("written");
    let (mut failures, mut tried) = (Vec::new(), HashSet::new());
    for scheme in schemes() {
        let app = if scheme.floor == Some(Floor::Files) { site.path() } else { &app };
        if let Some(missing) = scheme.missing() {
            eprintln!("skipped {}: {} {:?}", scheme.name, missing.why, missing.packages);
            continue;
        }
        if !is_new(&scheme, &mut tried) {
            continue;
        }
        let setting = Setting { workers: 2, ..Setting::new(app) };
        match try_out(&scheme, &setting) {
            Ok(cold_start) => eprintln!("{}: {} in {cold_start:?}", scheme.name, scheme.version()),
            Err(words) => failures.push(format!("{}: {words}", scheme.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn try_out(scheme: &Scheme, setting: &Setting) -> Result<Duration, String> {
    let deployment = Deployment::start(scheme, setting).map_err(|failure| failure.to_string())?;
    let (version, answer) = match scheme.protocol {
        Protocol::Http => ("HTTP/1.1", get(deployment.address(), "Hello World")),
        Protocol::Https => ("HTTP/1.1", get_by_curl(&deployment, "--http1.1")),
        Protocol::Http2 => ("HTTP/2", get_by_curl(&deployment, "--http2")),
    };
    if !(answer.starts_with(&format!("{version} 200")) && answer.contains("Hello World")) {
        return Err(format!("answered {answer:?}; its log:\n{}", deployment.log_tail()));
    }
    let cold_start = deployment.cold_start();
    deployment.stop().map_err(|failure| failure.to_string())?;
    Ok(cold_start)
}

/// The answer over TLS, by a certificate that no authority has issued.
fn get_by_curl(deployment: &Deployment, version: &str) -> String {
    let address = format!("https://{}/", deployment.address());
    let arguments = ["--silent", "--show-error", "--insecure", "--include", "--max-time", "20", version];
    let asked = Command::new("curl").args(arguments).arg(address).output().expect("curl");
    String::from_utf8_lossy(&[asked.stdout, asked.stderr].concat()).into_owned()
}
