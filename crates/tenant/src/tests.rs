use super::*;
use highball_users::may_change_users;
use rustix::fs::{mkfifoat, mknodat, renameat_with, RenameFlags};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];
const RULES: [Links; 3] = [Links::Beneath, Links::Anywhere, Links::Refused];

/// A folder of a tenant, and beside it what is another's.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in ["app/config", "app/log", "other"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        place.write("app/file", "of the application");
        place.write("app/config/settings", "settings");
        place.write("other/file", "of another");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.path(name)).unwrap();
    }

    fn app(&self, resolver: Resolver) -> TenantFolder {
        TenantFolder::open_by(resolver, &self.path("app"), None).unwrap()
    }

    /// What reading a name gives by each rule; both resolvers have to agree.
    fn read(&self, name: &str) -> [String; 3] {
        let [kernel, walk] = RESOLVERS.map(|resolver| {
            let folder = self.app(resolver);
            RULES.map(|links| folder.read_text(name, links, 100).unwrap_or_else(|error| format!("{error:?}")))
        });
        assert_eq!(kernel, walk, "the resolvers agree on {name:?}");
        kernel
    }
}

#[test]
fn files_and_folders_are_opened() {
    let place = Place::new();
    for name in ["file", "./file", "config/../file", "config//.././file"] {
        assert_eq!(place.read(name), ["of the application"; 3], "{name}");
    }
    for resolver in RESOLVERS {
        let folder = place.app(resolver);
        let config = folder.folder("config", Links::Beneath).unwrap();
        assert_eq!(config.read_text("settings", Links::Beneath, 8).unwrap(), "settings");
        assert_eq!(config.path(), place.path("app/config"));
        assert_eq!(config.real_path().unwrap(), place.path("app/config").canonicalize().unwrap());
        let (about, found) =
            (folder.look("file", Links::Refused).unwrap(), fs::metadata(place.path("app/file")));
        let found = found.unwrap();
        assert_eq!((about.id.1, about.bytes, about.kind), (found.ino(), found.len(), Kind::File));
        assert_eq!(about.modified_at(), found.modified().unwrap());
        assert_eq!(folder.look("log", Links::Refused).unwrap().kind, Kind::Folder);
        assert!(folder.has_file("file") && !folder.has_file("config") && !folder.has_file("no"));
        assert!(TenantFolder::open_by(resolver, &place.path("app/file"), None).unwrap_err().is_not_found());
    }
}

#[test]
fn a_name_says_no_more_than_a_name() {
    let place = Place::new();
    for name in ["no", "no/file", "file/", "file/.", "file/more", "config/settings/"] {
        assert_eq!(place.read(name), ["NotFound"; 3], "{name:?}");
    }
    for name in ["config", ".", "config/"] {
        assert_eq!(place.read(name), ["NotAFile(Folder)"; 3], "{name:?}");
    }
    let refused = ["OutsideOfFolder", "of another", "OutsideOfFolder"];
    assert_eq!(place.read("../other/file"), refused);
    assert_eq!(place.read("config/../../other/file"), refused);
    assert_eq!(place.read(place.path("other/file").to_str().unwrap()), refused);
    for name in ["", "a\0b", &"x".repeat(300)] {
        assert!(
            place.read(name).iter().all(|text| text.starts_with("Io(") || text == "NotFound"),
            "{name:?}"
        );
    }
    let odd = "\n\u{1b}[2J -rf ; %s";
    place.write(&format!("app/{odd}"), "odd");
    assert_eq!(place.read(odd), ["odd"; 3]);
}

#[test]
fn links_lead_as_far_as_the_rule_allows() {
    let place = Place::new();
    for (target, name) in [
        ("file", "inside"),
        ("./config/../file", "winding"),
        ("config", "folder"),
        ("../other/file", "outside"),
        ("../other", "other"),
        ("../app/file", "out-and-in"),
        ("no", "dangling"),
        ("circle", "circle"),
        ("file/", "slash"),
        ("inside", "twice"),
    ] {
        place.link(target, &format!("app/{name}"));
    }
    place.link(place.path("other/file"), "app/absolute");
    place.link(place.path("app/file"), "app/absolute-inside");
    place.link("../../other/file", "app/config/up");

    let inside = ["of the application", "of the application", "LinkRefused"];
    for name in ["inside", "winding", "twice", "folder/../file"] {
        assert_eq!(place.read(name), inside, "{name}");
    }
    let leads_out = ["OutsideOfFolder", "of another", "LinkRefused"];
    for name in ["outside", "other/file", "absolute", "config/up", "folder/up"] {
        assert_eq!(place.read(name), leads_out, "{name}");
    }
    for name in ["out-and-in", "absolute-inside"] {
        assert_eq!(place.read(name), ["OutsideOfFolder", "of the application", "LinkRefused"], "{name}");
    }
    for name in ["dangling", "slash"] {
        assert_eq!(place.read(name), ["NotFound", "NotFound", "LinkRefused"], "{name}");
    }
    assert_eq!(place.read("circle"), ["BadLink", "BadLink", "LinkRefused"]);
}

#[test]
fn at_most_forty_links_are_followed() {
    let place = Place::new();
    place.link("file", "app/1");
    for number in 2..=41 {
        place.link((number - 1).to_string(), &format!("app/{number}"));
    }
    assert_eq!(place.read("40")[0], "of the application");
    assert_eq!(place.read("41")[0], "BadLink");
}

#[test]
fn what_the_kernel_makes_up_is_not_opened() {
    let place = Place::new();
    let descriptor = File::open(place.path("other/file")).unwrap();
    let number = descriptor.as_raw_fd();
    for (number, target) in [
        format!("/proc/self/fd/{number}"),
        format!("/proc/thread-self/fd/{number}"),
        "/proc/self/cwd/Cargo.toml".into(),
        "/proc/self/root/etc/passwd".into(),
        "/proc/self/exe".into(),
        "/dev/fd/0".into(),
        "/dev/stdin".into(),
        "/proc/self/maps".into(),
        "/proc/self/environ".into(),
        "/proc/version".into(),
        "/proc/mounts".into(),
        "/proc/../proc/version".into(),
        "/sys/kernel/mm/transparent_hugepage/enabled".into(),
    ]
    .iter()
    .enumerate()
    {
        place.link(target, &format!("app/kernel-{number}"));
        let found = RESOLVERS.map(|resolver| {
            let folder = place.app(resolver);
            assert!(folder.look(format!("kernel-{number}"), Links::Anywhere).is_err(), "{target}");
            folder.read(format!("kernel-{number}"), Links::Anywhere, 1 << 20).unwrap_err()
        });
        for error in found {
            // A system may lack some of these.
            let refused = matches!(error, OpenError::BadLink | OpenError::Kernel(_));
            assert!(refused || (error.is_not_found() && !Path::new(target).exists()), "{target}: {error:?}");
        }
        assert!(open_anywhere(Path::new(target), None).is_err(), "{target}");
    }
    let of_the_kernel = File::open("/proc/self/stat").unwrap();
    assert_eq!(handed_over(&of_the_kernel).unwrap(), Backing::Unknown);
    assert!(matches!(file_system(of_the_kernel), Err(OpenError::Kernel("procfs"))));
    assert!(matches!(handed_over(File::open("/").unwrap()), Err(OpenError::NotAFile(Kind::Folder))));
    assert!(handed_over(&descriptor).is_ok() && file_system(descriptor).is_ok());
    let folder = TenantFolder::open(Path::new("/proc/self"), None).unwrap();
    assert!(matches!(folder.entries(1000), Err(OpenError::Kernel("procfs"))));
    for name in ["maps", "exe", "cwd/Cargo.toml", "fd/0"] {
        assert!(folder.file(name, Links::Anywhere).is_err() && folder.look(name, Links::Anywhere).is_err());
    }
    assert!(TenantFolder::open(Path::new("/proc/self/cwd"), None).is_err());
}

#[test]
fn what_is_no_regular_file_is_not_opened_and_nothing_waits() {
    let place = Place::new();
    mkfifoat(CWD, place.path("app/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let _listener = UnixListener::bind(place.path("app/socket")).unwrap();
    place.link("/dev/zero", "app/zero");
    place.link("pipe", "app/to-pipe");
    for (name, kind) in
        [("pipe", Kind::Pipe), ("socket", Kind::Socket), ("zero", Kind::Device), ("to-pipe", Kind::Pipe)]
    {
        for resolver in RESOLVERS {
            let folder = place.app(resolver);
            let error = folder.file(name, Links::Anywhere).unwrap_err();
            assert!(matches!(error, OpenError::NotAFile(found) if found == kind), "{name}: {error:?}");
            assert_eq!(folder.look(name, Links::Anywhere).unwrap().kind, kind, "{name}");
            assert!(folder.append(name, 0o600).is_err(), "{name}");
        }
    }
    let node = rustix::fs::makedev(1, 5);
    if mknodat(CWD, place.path("app/node"), FileType::CharacterDevice, Mode::RUSR, node).is_ok() {
        assert!(place.read("node").iter().all(|text| text == "NotAFile(Device)" || text == "Denied"));
    }
}

#[test]
fn no_more_is_read_than_allowed() {
    let place = Place::new();
    let folder = place.app(Resolver::available());
    assert_eq!(folder.read("file", Links::Refused, 18).unwrap().len(), 18);
    let too_large = |error| matches!(error, OpenError::TooLarge { max_bytes: 17, .. });
    assert!(too_large(folder.read("file", Links::Refused, 17).unwrap_err()));
    let sparse = File::create(place.path("app/sparse")).unwrap();
    sparse.set_len(1 << 42).unwrap();
    assert!(too_large(folder.read("sparse", Links::Refused, 17).unwrap_err()));
    // A file that grows after it was looked at.
    let (file, about) = folder.file("file", Links::Refused).unwrap();
    place.write("app/file", &"x".repeat(1 << 20));
    assert!(too_large(read_whole(file, &about, 17).unwrap_err()));
    // And a file that shrinks.
    let (file, about) = folder.file("file", Links::Refused).unwrap();
    place.write("app/file", "x");
    assert_eq!(read_whole(file, &about, 1 << 20).unwrap(), b"x");
    fs::write(place.path("app/file"), b"\xff").unwrap();
    assert!(matches!(folder.read_text("file", Links::Refused, 17), Err(OpenError::NotText)));
}

#[test]
fn logs_are_appended_to_and_created() {
    for resolver in RESOLVERS {
        let place = Place::new();
        let folder = place.app(resolver);
        for line in ["one\n", "two\n"] {
            folder.append("log/access.log", 0o640).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(place.path("app/log/access.log")).unwrap(), "one\ntwo\n");
        let mode = fs::metadata(place.path("app/log/access.log")).unwrap().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        // A folder for the logs of all releases is reached by a link; a log that is one is refused.
        place.link("../other", "app/shared");
        assert!(folder.append("shared/access.log", 0o600).is_ok());
        place.link("../other/file", "app/log/to-other");
        place.link("../other/new", "app/log/dangling");
        for name in ["log/to-other", "log/dangling"] {
            assert!(matches!(folder.append(name, 0o600), Err(OpenError::LinkRefused)), "{name}");
        }
        assert!(matches!(folder.append("log", 0o600), Err(OpenError::NotAFile(Kind::Folder))));
        assert!(!place.path("other/new").exists());
        assert_eq!(fs::read_to_string(place.path("other/file")).unwrap(), "of another");
    }
}

#[test]
fn a_child_begins_in_the_folder_that_was_opened() {
    for resolver in RESOLVERS {
        let place = Place::new();
        let folder = place.app(resolver);
        fs::rename(place.path("app"), place.path("moved")).unwrap();
        place.link("other", "app");
        let output =
            std::process::Command::new("pwd").arg("-P").current_dir(folder.working_folder()).output();
        let folder_at_start = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(Path::new(folder_at_start.trim_end()), place.path("moved").canonicalize().unwrap());
    }
}

#[test]
fn names_are_listed_up_to_a_limit() {
    let place = Place::new();
    place.link("../other/file", "app/link");
    let folder = place.app(Resolver::available());
    let mut entries = folder.entries(4).unwrap();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let names: Vec<_> = entries.iter().map(|entry| entry.name.to_str().unwrap()).collect();
    assert_eq!(names, ["config", "file", "link", "log"]);
    assert!(entries[2].kind.is_none_or(|kind| kind == Kind::Link));
    assert!(matches!(folder.entries(3), Err(OpenError::TooManyNames { limit: 3 })));
    let surveyed = folder.survey(4).unwrap();
    assert!(surveyed.iter().any(|(name, about)| name == "link" && about.kind == Kind::Link));
    assert_eq!(folder.entries(4).unwrap().len(), 4, "it begins at the first name again");
}

#[test]
fn everything_is_opened_with_the_rights_of_the_user() {
    if !may_change_users() {
        return println!("skipped: only root can try it");
    }
    let place = Place::new();
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.path("other/file"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(place.path("app/config"), Permissions::from_mode(0o700)).unwrap();
    place.link("../other/file", "app/of-root");
    fs::hard_link(place.path("other/file"), place.path("app/hard")).unwrap();
    let nobody = User::of("nobody").unwrap();
    for resolver in RESOLVERS {
        let folder = TenantFolder::open_by(resolver, &place.path("app"), Some(&nobody)).unwrap();
        assert!(folder.read("file", Links::Refused, 100).is_ok());
        let error = |name| folder.read(name, Links::Anywhere, 100).unwrap_err().to_string();
        for name in ["of-root", "hard", "config/settings"] {
            assert!(error(name).contains("the user nobody may not open it"), "{}", error(name));
        }
        assert!(folder.look("of-root", Links::Anywhere).is_ok(), "the user can see that it is there");
        assert!(folder.look("config/settings", Links::Anywhere).is_err());
        assert!(folder.append("new", 0o600).is_err(), "root's folder");
        assert!(folder.folder("config", Links::Refused).is_ok_and(|config| config.entries(9).is_err()));
        assert!(!place.path("app/new").exists());
        let denied = TenantFolder::open_by(resolver, &place.path("app/config/."), Some(&nobody));
        assert!(matches!(denied, Err(OpenError::DeniedTo(_))));
    }
}

/// Trees of links as an attacker could make them, by seeds that are printed.
#[test]
fn whatever_links_there_are_the_rule_holds_and_the_resolvers_agree() {
    for seed in 0..300 {
        let place = Place::new();
        let inside = place.path("app").canonicalize().unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let folders = ["app", "app/config", "app/log"];
        let steps = [
            "..",
            ".",
            "a",
            "b",
            "c",
            "config",
            "log",
            "file",
            "settings",
            "other",
            "app",
            "/",
            "/proc/self/cwd",
        ];
        let path = |parts: usize, random: &mut fastrand::Rng| -> PathBuf {
            let path: PathBuf = (0..random.usize(1..=parts)).map(|_| random.choice(steps).unwrap()).collect();
            if random.u8(..) < 20 {
                place.0.path().join(path)
            } else {
                path
            }
        };
        for folder in folders {
            for name in ["a", "b", "c"] {
                place.link(path(4, &mut random), &format!("{folder}/{name}"));
            }
        }
        let [kernel, walk] = RESOLVERS.map(|resolver| place.app(resolver));
        for _ in 0..40 {
            let name = path(5, &mut random);
            for links in RULES {
                for purpose in [Purpose::Read, Purpose::Folder, Purpose::Look] {
                    let request = Request { name: name.clone(), links, purpose };
                    let found = [&kernel, &walk].map(|folder| match folder.answer(&request) {
                        Ok(opened) => {
                            let path = resolve::path_of(&opened.descriptor).unwrap();
                            let holds = links == Links::Anywhere || path.starts_with(&inside);
                            assert!(holds, "seed {seed}: {request:?} opened {path:?}");
                            assert!(!path.starts_with("/proc"), "seed {seed}: {request:?} opened {path:?}");
                            Ok(path)
                        }
                        Err(error) => Err(error.to_string()),
                    });
                    let which = |found: &Result<PathBuf, String>| found.clone().ok();
                    assert_eq!(which(&found[0]), which(&found[1]), "seed {seed}: {request:?} {found:?}");
                }
            }
        }
    }
}

/// Another process swaps a folder for a link all the time.
#[test]
fn a_swap_at_the_wrong_moment_opens_nothing_else() {
    let place = Place::new();
    place.write("app/config/file", "of the application");
    place.link("../other", "app/link");
    let done = AtomicBool::new(false);
    let opened = std::thread::scope(|scope| {
        scope.spawn(|| {
            let app = File::open(place.path("app")).unwrap();
            while !done.load(Ordering::Relaxed) {
                renameat_with(&app, c"config", &app, c"link", RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mut opened = 0;
        for number in 0..20_000 {
            let folder = place.app(RESOLVERS[number % 2]);
            let links = if number % 4 < 2 { Links::Beneath } else { Links::Refused };
            match folder.read_text("log/../config/file", links, 100) {
                Ok(text) => assert_eq!(text, "of the application"),
                Err(OpenError::OutsideOfFolder | OpenError::LinkRefused | OpenError::Busy) => {}
                // The walk has met the link, and read it when it was none any more.
                Err(OpenError::NotFound) => {}
                Err(error) => panic!("{error:?}"),
            }
            opened += usize::from(folder.look("config/file", links).is_ok());
        }
        done.store(true, Ordering::Relaxed);
        opened
    });
    assert!(opened > 0, "the test has raced");
}

#[test]
fn files_in_some_folders_are_opened_wherever_links_lead() {
    let place = Place::new();
    place.write("other/secret", "secret");
    place.link("../file", "app/config/up");
    place.link(place.path("app/config/settings"), "app/absolute");
    place.link("../../other", "app/config/to-other");
    place.link("/proc/self/fd/0", "app/config/to-process");
    place.link("app", "link-to-app");
    mkfifoat(CWD, place.path("app/config/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let opened = |name: &str, folders: &[&str]| {
        let folders: Vec<PathBuf> = folders.iter().map(|folder| place.path(folder)).collect();
        match open_within(&place.path(name), &folders, None) {
            Ok((file, about)) => String::from_utf8(read_whole(file, &about, 100).unwrap()).unwrap(),
            Err(error) => format!("{error:?}"),
        }
    };
    for (name, folders, expected) in [
        ("app/config/settings", &["app/config"][..], "settings"),
        ("app/config/settings", &["none", "other", "app"], "settings"),
        ("link-to-app/config/settings", &["app/config"], "settings"),
        ("app/config/settings", &["link-to-app"], "settings"),
        ("app/absolute", &["app/config"], "settings"),
        ("app/config/up", &["app"], "of the application"),
        ("app/config/up", &["app/config"], "OutsideOfFolders"),
        ("app/config/../file", &["app/config"], "OutsideOfFolders"),
        ("app/config/to-other/secret", &["app"], "OutsideOfFolders"),
        ("app/config/to-process", &["app"], "BadLink"),
        ("app/config", &["app/con"], "OutsideOfFolders"),
        ("app/config", &["app"], "NotAFile(Folder)"),
        ("app", &["app"], "NotAFile(Folder)"),
        ("app/config/pipe", &["app"], "NotAFile(Pipe)"),
        ("app/config/none", &["app"], "NotFound"),
        ("app/file", &["none"], "OutsideOfFolders"),
        ("app/file", &["app/file"], "OutsideOfFolders"),
        ("app/file", &[], "OutsideOfFolders"),
    ] {
        assert_eq!(opened(name, folders), expected, "{name} in {folders:?}");
    }
}
