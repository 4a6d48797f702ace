//! From what was given to [`Settings`].

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{access, Access};

use crate::command_line::misspelt_command;
use crate::cpus;
use crate::error::{reason, ConfigError};
use crate::file;
use crate::given::{Folders, Given};
use crate::settings::{
    AccessLog, App, AppId, AppLimits, Limits, Log, LogFormat, Process, Settings, StaticFiles,
};

/// Adds environment and file to what the command line gave, and makes settings of it all.
pub(crate) fn resolve(
    path: Option<PathBuf>,
    mut given: Given,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigError> {
    let current = std::env::current_dir().map_err(ConfigError::CurrentFolder)?;
    let (path, app_file) = split_file(path);
    let app_link = current.join(path.clone().unwrap_or_default());
    let app = app_folder(path)?;
    let folders = Folders { current, app };
    given.add_environment(env);
    let named = given.path("config", &folders, |_, path| Ok(path))?;
    if let Some(path) = named.map_or_else(|| file::find(&folders.app), |path| Ok(Some(path)))? {
        file::read(&path, &mut given)?;
    }

    let drain_timeout = given.duration("drain_timeout")?;
    let log = Log {
        format: if given.word("log_format")? == "json" { LogFormat::Json } else { LogFormat::Human },
        access: given.path("access_log", &folders, |text, path| Ok(access_log(text, path)))?.flatten(),
    };
    let name = folders.app.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let app = App {
        id: AppId::next(),
        name,
        hosts: Vec::new(),
        prefix: String::new(),
        environment: given.word("environment")?,
        workers: given.count_or_auto("workers")?.unwrap_or_else(cpus::available),
        threads: given.count("threads")?,
        early_hints: given.switch("early_hints")?,
        ruby: given.path("ruby", &folders, |text, path| ruby(text, path, env))?,
        env: BTreeMap::new(),
        limits: AppLimits {
            body_bytes: given.size_or_none("max_body")?,
            queue: given.count("max_queue")?,
            request_timeout: given.duration_or_none("request_timeout")?,
        },
        static_files: StaticFiles {
            enabled: given.switch("static_files")?,
            follow_symlinks: given.switch("follow_symlinks")?,
        },
        process: process(&given)?,
        prestart: true,
        sleep_after: None,
        access_log: AccessLog::OfServer,
        folder: folders.app.clone(),
        link: app_link,
        file: app_file,
    };
    Ok(Settings {
        binds: given.binds(given.count("port")?, &folders)?,
        pidfile: given.path("pidfile", &folders, |_, path| Ok(path))?,
        limits: limits(&given, &folders, env)?,
        drain_timeout,
        hijacked_drain_timeout: given.duration("hijacked_drain_timeout")?.min(drain_timeout),
        log,
        apps: vec![Arc::new(app)],
    })
}

fn process(given: &Given) -> Result<Process, ConfigError> {
    let (preload, refork_after) = (given.switch("preload")?, given.counts("refork_after")?);
    if !preload && !refork_after.is_empty() {
        return Err(given.clash(
            "refork_after",
            "without preloading workers have nothing to share; leave out either this or `preload = off`",
        )?);
    }
    Ok(Process {
        boot_timeout: given.duration("boot_timeout")?,
        probe_path: given.word("probe_path")?,
        probe_timeout: given.duration("probe_timeout")?,
        preload,
        refork_after,
        max_boot_failures: given.count("max_boot_failures")?,
    })
}

fn limits(
    given: &Given,
    folders: &Folders,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Limits, ConfigError> {
    let spool_dir = given.path("spool_dir", folders, |_, path| spool_dir(path))?;
    Ok(Limits {
        target_bytes: given.size("max_target")?,
        head_bytes: given.size("max_head")?,
        header_fields: given.count("max_fields")?,
        body_memory_bytes: given.size("body_memory")?,
        response_buffer_bytes: given.size("response_buffer")?,
        response_spool_bytes: given.size("response_spool")?,
        connections: given.count("max_connections")?,
        head_timeout: given.duration("head_timeout")?,
        body_timeout: given.duration("body_timeout")?,
        idle_timeout: given.duration("idle_timeout")?,
        send_timeout: given.duration("send_timeout")?,
        spool_dir: spool_dir.unwrap_or_else(|| default_spool_dir(env)),
    })
}

/// The folder and the Ruby file in it, where such a file was given in the place of a folder.
pub(crate) fn split_file(path: Option<PathBuf>) -> (Option<PathBuf>, Option<PathBuf>) {
    let is_ruby = |path: &PathBuf| matches!(path.extension(), Some(end) if end == "rb" || end == "ru");
    match path {
        Some(path) if is_ruby(&path) && path.is_file() => {
            let folder = path.parent().map(Path::to_owned);
            let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
            (folder, path.file_name().map(PathBuf::from))
        }
        path => (path, None),
    }
}

/// The application folder, absolute, links resolved; it can be listed.
fn app_folder(path: Option<PathBuf>) -> Result<PathBuf, ConfigError> {
    let given = path.unwrap_or_else(|| PathBuf::from("."));
    let wrong = |problem: String| ConfigError::App { path: given.clone(), problem };
    let folder = given.canonicalize().map_err(|error| match misspelt_command(&given) {
        Some(command) => wrong(format!("{}; did you mean the command `highball {command}`?", reason(&error))),
        None => {
            wrong(format!("{}; name the folder that the application's config.ru lies in", reason(&error)))
        }
    })?;
    if !folder.is_dir() {
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

/// The interpreter as a full path: names without a slash are looked up as a shell would.
fn ruby(text: &str, path: PathBuf, env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, String> {
    if text.contains('/') {
        return is_program(&path)
            .then_some(path)
            .ok_or_else(|| format!("`{text}` is not a program that this user may run"));
    }
    let search = env("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).map(|folder| folder.join(text)).find(|path| is_program(path));
    found.ok_or_else(|| {
        format!("there is no `{text}` in PATH; install Ruby (apt-get install ruby), or name it with --ruby")
    })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn access_log(text: &str, path: PathBuf) -> Option<PathBuf> {
    match text {
        "none" => None,
        "-" => Some("-".into()),
        _ => Some(path),
    }
}

fn spool_dir(path: PathBuf) -> Result<PathBuf, String> {
    if is_writable_folder(&path) {
        return Ok(path);
    }
    Err(format!("{} is not a folder that this user may write to", path.display()))
}

fn default_spool_dir(env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let var_tmp = Some(PathBuf::from("/var/tmp"));
    let tmpdir = env("TMPDIR").map(PathBuf::from);
    [var_tmp, tmpdir]
        .into_iter()
        .flatten()
        .find(|path| is_writable_folder(path))
        .unwrap_or_else(|| "/tmp".into())
}

fn is_writable_folder(path: &Path) -> bool {
    path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
