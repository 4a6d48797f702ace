//! Each test confines another process: this program again, which runs one ignored test.
#![allow(clippy::disallowed_macros)] // why tests are skipped

use super::*;
use highball_front::budget::{Account, Budget, Holder, Kind, Share};
use highball_front::exchange::spool::SpoolFile;
use rustix::process::{getpid, getppid, kill_process, test_kill_process, Signal};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Names a folder for the test, with folders `spool` and `other` in it: a confined process could not remove them.
const FOLDER: &str = "HIGHBALL_TEST_FOLDER";

/// Runs this ignored test in another process.
fn run(name: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for name in ["spool", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let test = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &test, "--ignored", "--nocapture"]).env(FOLDER, folder.path());
    command.output().unwrap()
}

fn passes(name: &str) {
    let done = run(name);
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    assert!(output.contains("1 passed"), "{output}");
}

fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

const DENIED: Option<ErrorKind> = Some(ErrorKind::PermissionDenied);

#[test]
fn system_calls_are_denied() {
    passes("confined_by_seccomp");
}

#[test]
#[ignore = "confines its process"]
fn confined_by_seccomp() {
    let (listener, file) = (TcpListener::bind("127.0.0.1:0").unwrap(), File::open("/dev/null").unwrap());
    let address = listener.local_addr().unwrap();
    let parent = getppid().unwrap();
    assert!(test_kill_process(parent).is_ok());
    if let Err(why) = system_calls::deny() {
        return println!("there is no seccomp here: {why}");
    }
    assert_eq!(kind(Command::new("/bin/true").status()), DENIED, "running a program");
    assert_eq!(kind(TcpStream::connect(address)), DENIED, "connecting");
    assert_eq!(kind(TcpListener::bind("127.0.0.1:0")), DENIED, "listening");
    assert_eq!(kind(UnixDatagram::pair()), DENIED, "a pair that can send to any address");
    assert!(UnixStream::pair().is_ok());
    assert_eq!(test_kill_process(parent), Err(rustix::io::Errno::PERM), "a signal to another process");
    assert_eq!(kill_process(getpid(), Signal::URG), Ok(()), "a signal to itself");
    let pidfd = rustix::process::pidfd_open(getpid(), rustix::process::PidfdFlags::empty()).unwrap();
    let sent = rustix::process::pidfd_send_signal(&pidfd, Signal::URG);
    assert_eq!(sent, Err(rustix::io::Errno::PERM), "a signal by pidfd");
    let chowned = std::os::unix::fs::fchown(&file, None, None);
    assert_eq!(kind(chowned), DENIED, "another owner for a file");
    let permissions = file.metadata().unwrap().permissions();
    assert_eq!(kind(fs::set_permissions("/dev/null", permissions)), DENIED, "another mode for a file");
    assert_eq!(rustix::net::shutdown(&listener, rustix::net::Shutdown::Both), Err(rustix::io::Errno::PERM));
    assert_eq!(std::thread::spawn(|| 42).join().unwrap(), 42, "threads can be started");
    let in_thread = std::thread::spawn(move || kind(TcpStream::connect(address)));
    assert_eq!(in_thread.join().unwrap(), DENIED, "and are confined");
}

#[test]
fn an_aborting_process_ends_by_its_signal() {
    let done = run("confined_and_aborting");
    assert_eq!(done.status.signal(), Some(Signal::ABORT.as_raw()));
}

#[test]
#[ignore = "ends its process"]
fn confined_and_aborting() {
    let _ = system_calls::deny(); // where there is no seccomp, an ordinary process aborts
    std::process::abort();
}

#[test]
fn files_are_out_of_reach() {
    passes("confined_by_landlock");
}

#[test]
#[ignore = "confines its process"]
fn confined_by_landlock() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let (spool, other) = (folder.join("spool"), folder.join("other"));
    fs::write(other.join("file"), "text").unwrap();
    let descriptor = File::open(other.join("file")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    if let Err(why) = limit_files(&[&spool]) {
        return println!("there is no Landlock here: {why}");
    }
    for path in ["/etc/passwd", "/etc/hostname", "/", "/usr/bin/env", "/dev/null"] {
        assert_eq!(kind(File::open(path)), DENIED, "{path}");
    }
    assert_eq!(kind(File::open(other.join("file"))), DENIED);
    assert_eq!(kind(fs::write(other.join("new"), "text")), DENIED);
    assert_eq!(kind(fs::read_dir(&spool)), DENIED, "names of spool files");
    assert_eq!(kind(fs::write("/proc/self/comm", "text")), DENIED);
    assert_eq!(std::io::read_to_string(descriptor).unwrap(), "text", "an open file can be read");
    assert!(fs::read_to_string("/proc/self/status").is_ok());
    assert!(fs::read_dir(format!("/proc/{}/task", getppid().unwrap().as_raw_nonzero())).is_ok());
    assert_eq!(kind(fs::read_dir("/")), DENIED, "names of files");
    assert!(File::open("/proc/self/exe").is_ok());
    assert!(std::thread::available_parallelism().is_ok());
    spools_files(&spool);
    // Only newer kernels limit this: 6.7.
    let connected = TcpStream::connect(listener.local_addr().unwrap());
    assert!(matches!(kind(connected), None | DENIED));
}

/// As the front does with a large upload.
fn spools_files(folder: &Path) {
    let account = |kind| Account::new(&Share::new(&Budget::new(20, kind), "app", None), Holder::default());
    let mut file = SpoolFile::create(folder, &account(Kind::SpoolFiles), &account(Kind::Buffers)).unwrap();
    file.append(b"text").unwrap();
    file.finish();
    let reopened = File::from(file.reader().unwrap().try_clone().unwrap());
    assert_eq!(std::io::read_to_string(&reopened).unwrap(), "text");
    drop(file);
    assert_eq!(reopened.metadata().unwrap().len(), 0, "it is emptied");
}
