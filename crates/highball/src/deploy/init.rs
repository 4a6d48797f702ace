//! `highball init`: what an application is deployed with. It creates missing files, and changes and removes none:
//! it says what to change in existing ones.
//!
//! It writes as the user who runs it, below the application's folder, and follows no link there.

use super::config::ProgramConfig;
use crate::output::progress;
use highball_config::{ConfigError, Deployment, User};
use highball_tenant::TenantFolder;
use rustix::fs::{fstat, mkdirat, open, openat, unlinkat, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use thiserror::Error;

use crate::deploy::other_servers::{self, UnreadFile};
use crate::process::started_path;

/// The folder of configuration files.
const CONFIG: &str = "config";
/// The most that is read of a file that is there, in bytes.
const READ_BYTES: u64 = 256 * 1024;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Why nothing more is written.
#[derive(Debug, Error)]
pub(crate) enum InitError {
    #[error("cannot open the folder {0}: {1}")]
    Folder(PathBuf, Errno),
    #[error("{0} belongs to {1}: run this as its owner, for example: sudo -u {1} highball init {0}")]
    NotRoots(PathBuf, Box<User>),
    #[error("there is no application in {0}: neither config.ru nor a Ruby file")]
    NoApplication(PathBuf),
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, io::Error),
    #[error(transparent)]
    Unit(Box<ConfigError>),
}

/// A file that the application is deployed with.
struct Planned {
    /// The folder below the application's; none: that itself.
    folder: Option<&'static str>,
    name: &'static str,
    /// What it says where it is not there; none: then it is not needed.
    text: Option<String>,
    /// What it is for.
    purpose: &'static str,
    /// What has to be in it where it is there, and how to get that into it.
    if_there: Advice,
}

/// What to do about a file that is there.
enum Advice {
    /// Nothing: the file needs no change.
    Keep,
    /// Add these lines, or put them in the place of others, unless this is in it.
    Change { unless: &'static str, lines: String },
}

/// What became of a planned file.
enum Outcome {
    Written,
    /// Another file of that name is there, and is kept; with what to change in it.
    Kept(Option<String>),
    /// It was left alone, as what is there is no file that could be written.
    Refused(String),
    NotNeeded,
}

/// Writes the files of the application in `folder` and says what it did; `unit` is what systemd is to know of it.
pub(crate) fn init(folder: &Path, unit: &Deployment, dry_run: bool) -> Result<(), InitError> {
    let failed = |error| InitError::Folder(folder.to_owned(), error);
    let place = open(folder, FOLDER, Mode::empty()).map_err(failed)?;
    let owner = User::with_uid(fstat(&place).map_err(failed)?.st_uid, 0);
    if geteuid().is_root() && owner.uid != 0 {
        return Err(InitError::NotRoots(folder.to_owned(), Box::new(owner)));
    }
    if !is_application(folder) {
        return Err(InitError::NoApplication(folder.to_owned()));
    }
    let program = started_path::started_path().unwrap_or_else(|| "highball".into());
    let unit = ProgramConfig::of(unit).and_then(|unit| unit.text(&program));
    let plan = plan(folder, unit.map_err(|error| InitError::Unit(Box::new(error)))?);
    for planned in &plan {
        let outcome = carry_out(planned, &place, dry_run)
            .map_err(|error| InitError::Write(folder.join(planned.path()), error))?;
        report(planned, outcome, dry_run);
    }
    report_others(folder, &plan);
    Ok(())
}

/// Prints a line about each file that configures another server, and is not planned.
fn report_others(folder: &Path, plan: &[Planned]) {
    let puma = puma_files(folder);
    let Ok(folder) = TenantFolder::open(folder, None) else { return };
    for file in puma.iter().filter(|file| folder.has_file(file)) {
        let words = "it counts for what config/highball.toml does not set, and its hooks run";
        print_line("left alone", file, words);
    }
    let is_planned =
        |unread: &UnreadFile| plan.iter().any(|planned| planned.path() == Path::new(unread.file));
    let others = other_servers::in_folder(&folder).into_iter().filter(|unread| !is_planned(unread));
    for UnreadFile { file, what, remedy, .. } in others {
        print_line("left alone", file, &format!("it {what}. {remedy}"));
    }
}

/// Puma configurations that Highball reads: one for all environments, and one for each.
fn puma_files(folder: &Path) -> Vec<String> {
    let entries = folder.join("config/puma").read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let of_environments =
        names.filter(|name| name.ends_with(".rb")).map(|name| format!("config/puma/{name}"));
    let mut files: Vec<String> = of_environments.chain(["config/puma.rb".into()]).collect();
    files.sort();
    files
}

/// Whether there is something that could be served by Ruby.
fn is_application(folder: &Path) -> bool {
    let is_ruby = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "rb" || end == "ru"))
    };
    folder.read_dir().is_ok_and(|mut entries| entries.any(is_ruby))
        || folder.join("config/environment.rb").is_file()
}

fn plan(folder: &Path, unit: String) -> Vec<Planned> {
    let highball = if folder.join("Gemfile").is_file() { "bundle exec highball" } else { "highball" };
    let is_rails = folder.join("bin/rails").is_file();
    let developing = if is_rails { "bin/rails server" } else { highball };
    let web = format!("web: {highball}\n");
    // The entrypoint that Rails generates prepares the database for this command only.
    let in_container = if is_rails { "./bin/rails server" } else { highball };
    let command = in_container.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    vec![
        Planned {
            folder: Some(CONFIG),
            name: "highball.toml",
            text: Some(include_str!("init/highball.toml").to_owned()),
            purpose: "Highball's options, as comments",
            if_there: Advice::Keep,
        },
        Planned {
            folder: None,
            name: "Procfile",
            text: Some(web.clone()),
            purpose: "for Heroku, Render, Dokku and foreman",
            if_there: Advice::Change { unless: "highball", lines: web },
        },
        Planned {
            folder: None,
            name: "Procfile.dev",
            text: Some(format!("web: {developing}\n")),
            purpose: "for bin/dev and foreman",
            if_there: Advice::Change { unless: developing, lines: format!("web: {developing}\n") },
        },
        Planned {
            folder: Some(CONFIG),
            name: "highball.service",
            text: Some(unit),
            purpose: "a unit of systemd; its first lines say where to put it",
            if_there: Advice::Keep,
        },
        Planned {
            folder: None,
            name: "Dockerfile",
            text: None,
            purpose: "for Docker and Kamal",
            if_there: Advice::Change {
                unless: if is_rails { "EXPOSE 3000" } else { "highball" },
                lines: format!("EXPOSE 3000\nCMD [{command}]\n"),
            },
        },
        Planned {
            folder: Some(CONFIG),
            name: "deploy.yml",
            text: None,
            purpose: "for Kamal",
            if_there: Advice::Change {
                unless: "app_port: 3000",
                lines: "proxy:\n  app_port: 3000\n  healthcheck:\n    path: /up\n".to_owned(),
            },
        },
    ]
}

impl Planned {
    fn path(&self) -> PathBuf {
        self.folder.map(PathBuf::from).unwrap_or_default().join(self.name)
    }
}

fn carry_out(planned: &Planned, place: &OwnedFd, dry_run: bool) -> io::Result<Outcome> {
    let folder = match planned.folder.map(|name| (name, folder_in(place, name))) {
        None => Some(place.try_clone()?),
        Some((_, Ok(folder))) => Some(folder),
        Some((_, Err(Errno::NOENT))) => None,
        Some((name, Err(Errno::LOOP | Errno::NOTDIR))) => {
            return Ok(Outcome::Refused(format!("{name} is a link or no folder, and is not followed")));
        }
        Some((_, Err(error))) => return Err(error.into()),
    };
    if let Some(there) = folder.as_ref().map(|folder| look(folder, planned)).transpose()?.flatten() {
        return Ok(there);
    }
    let Some(text) = &planned.text else { return Ok(Outcome::NotNeeded) };
    if !dry_run {
        let folder = match folder {
            Some(folder) => folder,
            None => new_folder_in(place, planned.folder.unwrap_or(CONFIG))?,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, planned.name, flags, Mode::from_raw_mode(0o644))?;
        if let Err(error) = File::from(file).write_all(text.as_bytes()) {
            // The next attempt would keep a part of it as somebody's file.
            let _ = unlinkat(&folder, planned.name, AtFlags::empty());
            return Err(error);
        }
    }
    Ok(Outcome::Written)
}

fn folder_in(place: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    openat(place, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

fn new_folder_in(place: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match mkdirat(place, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => folder_in(place, name),
        Err(error) => Err(error),
    }
}

/// What is to be done about the file of that name, if it is there.
fn look(folder: &OwnedFd, planned: &Planned) -> io::Result<Option<Outcome>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, planned.name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Ok(Some(Outcome::Refused("it is a symbolic link".to_owned()))),
        Err(error) => return Ok(Some(Outcome::Refused(format!("it cannot be read: {error}")))),
    };
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Ok(Some(Outcome::Refused("it is not a file".to_owned())));
    }
    let Advice::Change { unless, lines } = &planned.if_there else { return Ok(Some(Outcome::Kept(None))) };
    let mut bytes = Vec::new();
    File::from(file).take(READ_BYTES).read_to_end(&mut bytes)?;
    let has_it = String::from_utf8_lossy(&bytes).contains(unless);
    Ok(Some(Outcome::Kept((!has_it).then(|| lines.clone()))))
}

/// Without a reader, the files are written all the same.
fn print_line(done: &str, file: &str, words: &str) {
    progress(format!("{done:<11} {file:<24} {words}"));
}

/// Prints a line about the file. Without a reader, the files are written all the same.
fn report(planned: &Planned, outcome: Outcome, dry_run: bool) {
    let line = |done: &str, words: &str| format!("{done:<11} {:<24} {words}\n", planned.path().display());
    let text = match outcome {
        Outcome::Written => line(if dry_run { "would write" } else { "wrote" }, planned.purpose),
        Outcome::Kept(None) => line("left alone", "it is there already"),
        Outcome::Kept(Some(lines)) => {
            let lines = lines.lines().map(|line| format!("{:16}{line}\n", "")).collect::<String>();
            line("left alone", "it is there already; change it for Highball, so that it has:") + &lines
        }
        Outcome::Refused(why) => line("left alone", &why),
        Outcome::NotNeeded => return,
    };
    progress(text.trim_end());
}
