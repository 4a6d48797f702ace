//! What a Ruby process of an application is started with, as plain data: the program, its folder, its user, its
//! environment, and where its output goes.

mod environment;
mod tuning;

use crate::process::interpreter::Interpreter;
use environment::Environment;
use highball_config::{App, Companion, CompanionCommand, User};
use highball_spawner::exec::{enters, inherits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names a mold the Puma configuration whose hooks it runs.
const PUMA_FILE: &str = "HIGHBALL_PUMA_FILE";

/// Tells a companion its name and the number of its copy: `jobs.1`.
const COMPANION: &str = "HIGHBALL_COMPANION";
/// What a line may begin with that is no program.
const OF_SHELL: [&str; 14] = [
    ".", "case", "cd", "eval", "exec", "export", "for", "if", "set", "trap", "ulimit", "umask", "until",
    "while",
];
/// What runs a command that is a line.
const SHELL: &str = "/bin/sh";

/// The description of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Who it runs as, if another user than Highball.
    pub(crate) user: Option<User>,
    /// All its variables, but for the number of its control socket.
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// Whether it can get no more rights by what it runs.
    pub(crate) no_new_privs: bool,
}

/// What a mold is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Its workers will serve; nothing serves the application yet.
    Serve,
    /// Its workers will serve, and other workers serve meanwhile: it boots with a lower priority.
    ServeNext,
    /// The application is looked at, once.
    Examine,
}

/// Where standard output and standard error of a process go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Output {
    /// To Highball's own output, with Highball's standard input: a debugger has the terminal.
    Inherited,
    /// The same, but both to Highball's standard error.
    StandardError,
    /// Into a pipe that Highball reads; the process has no standard input. A process that shares an open file with
    /// Highball could empty it, make it non-blocking, or write into it what looks like Highball's.
    Pipe,
}

impl Child {
    /// A mold for this application. If it only examines the application, it prints to standard error, as standard output
    /// is for the findings.
    pub(crate) fn mold(
        app: &App,
        folder: &Path,
        (ruby, boot_file): (&Interpreter, &Path),
        errand: Errand,
    ) -> Child {
        let user = app.runs_as.another();
        let mut environment = environment::of_app(app, folder, own_environment());
        let on_or_off = |is_on| if is_on { "on".into() } else { "off".into() };
        environment.insert("HIGHBALL_PRELOAD".into(), on_or_off(app.process.preload));
        environment.insert("HIGHBALL_MAY_REFORK".into(), on_or_off(app.process.may_refork_by_itself()));
        environment.insert("HIGHBALL_BOOTS_BESIDE".into(), on_or_off(errand == Errand::ServeNext));
        // An application that is examined has one worker, whatever it has when it serves.
        let shares_cable = app.process.shares_cable && (errand == Errand::Examine || app.most_workers() > 1);
        environment.insert("HIGHBALL_SHARES_CABLE".into(), on_or_off(shares_cable));
        environment.remove(OsStr::new(PUMA_FILE));
        if let Some(file) = &app.puma_file {
            environment.insert(PUMA_FILE.into(), file.into());
        }
        let library = boot_file.parent().unwrap_or(Path::new(""));
        let options = tuning::tune(&mut environment, app, library, errand);
        let examine = errand == Errand::Examine;
        if examine {
            environment.insert("HIGHBALL_EXAMINE".into(), app.threads.least.to_string().into());
        }
        let file = app.file.iter().map(OsString::from);
        Child {
            arguments: ruby
                .arguments()
                .chain(options.iter().map(OsString::from))
                .chain([boot_file.into()])
                .chain(file)
                .collect(),
            program: ruby.program.clone(),
            user: user.cloned(),
            environment,
            output: match (user, examine) {
                (Some(_), _) => Output::Pipe,
                (None, true) => Output::StandardError,
                (None, false) => Output::Inherited,
            },
            no_new_privs: app.process.no_new_privs,
        }
    }

    /// A companion; `copy` is the number of its copy.
    pub(crate) fn companion(app: &App, folder: &Path, companion: &Companion, copy: u16) -> Child {
        let mut environment = environment::of_app(app, folder, own_environment());
        environment::prefer_ruby(&mut environment, app);
        environment.insert(COMPANION.into(), format!("{}.{copy}", companion.name).into());
        environment.extend(companion.env.iter().map(|(name, value)| (name.into(), value.into())));
        let (program, arguments) = match &companion.command {
            CompanionCommand::Shell(line) => (SHELL, vec!["-c".into(), shell_line(line).into()]),
            CompanionCommand::Program(words) => {
                let (program, arguments) = words.split_first().map_or(("", &[][..]), |(one, all)| (one, all));
                (program, arguments.iter().map(OsString::from).collect())
            }
        };
        Child {
            program: program.into(),
            arguments,
            user: app.runs_as.another().cloned(),
            environment,
            output: Output::Pipe,
            no_new_privs: app.process.no_new_privs,
        }
    }

    /// What the environment of a companion has more than that of the application's mold. (The configuration is text, and so is all
    /// that this is about.)
    pub(crate) fn beyond_mold(
        app: &App,
        folder: &Path,
        companion: &Companion,
        copy: u16,
    ) -> BTreeMap<String, String> {
        let of_mold = environment::of_app(app, folder, own_environment());
        let all = Child::companion(app, folder, companion, copy).environment;
        let more = all.into_iter().filter(|(name, value)| of_mold.get(name) != Some(value));
        more.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
    }

    /// Starts it in its folder, which is entered by this path, with the other end of its control socket, and of the
    /// pipe for its [`Output`], if it is to have one; in this cgroup, if there is one.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn start(
        &self,
        folder: &Path,
        control: OwnedFd,
        pipe: Option<OwnedFd>,
        cgroup: Option<OwnedFd>,
    ) -> io::Result<std::process::Child> {
        let mut command = self.command(Some(folder), Some(control), pipe)?;
        if let Some(cgroup) = cgroup {
            enters(&mut command, cgroup);
        }
        command.spawn()
    }

    /// The command that starts it, or that this process becomes, in this folder, if it is not there already. It runs as the
    /// user of this process.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn command(
        &self,
        folder: Option<&Path>,
        control: Option<OwnedFd>,
        pipe: Option<OwnedFd>,
    ) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        folder.map(|folder| command.current_dir(folder));
        command.env_clear().envs(&self.environment);
        if let Some(control) = control {
            inherits(&mut command, "HIGHBALL_CONTROL_FD", control);
        }
        if self.no_new_privs {
            highball_users::without_new_privileges(&mut command);
        }
        match self.output {
            Output::Inherited => {}
            Output::StandardError => {
                command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
            }
            Output::Pipe => {
                let pipe = pipe.ok_or_else(|| io::Error::other("the process has no pipe for its output"))?;
                command.stdin(Stdio::null()).stdout(pipe.try_clone()?).stderr(pipe);
            }
        }
        Ok(command)
    }
}

/// The line for the shell. Where it is one program, the shell becomes that: signals are for the program then.
fn shell_line(line: &str) -> String {
    let first = line.split_whitespace().next().unwrap_or_default();
    let is_program = first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte));
    let is_one = !line.contains([';', '&', '|', '(', ')', '{', '}', '!', '\n']);
    if is_one && is_program && !OF_SHELL.contains(&first) {
        format!("exec {line}")
    } else {
        line.into()
    }
}

/// The command that runs a script of Highball's own Ruby code for an application of which there is no process yet: by the
/// application's Ruby, in its folder, with its environment, and as the user of this process.
///
/// # Errors
/// There is no Ruby.
pub fn ruby_command(app: &App, script: &Path) -> Result<Command, String> {
    let environment = environment::of_app(app, &app.folder, own_environment());
    let env = |name: &str| environment.get(OsStr::new(name)).cloned();
    let ruby = Interpreter::choose(app.ruby.as_deref(), &app.folder, None, &env)?;
    let mut command = Command::new(&ruby.program);
    command.args(ruby.arguments()).arg(script).current_dir(&app.folder).env_clear().envs(&environment);
    Ok(command)
}

/// What this application inherits of Highball's environment and of its user's login: Ruby is looked for by this.
pub(crate) fn inherited(app: &App, folder: &Path) -> Environment {
    environment::inherited(app, folder, own_environment())
}

/// The variables that this application has, as text.
pub(crate) fn variables(app: &App, folder: &Path) -> BTreeMap<String, String> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let all = environment::of_app(app, folder, own_environment());
    all.into_iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// The names of the variables in Highball's environment that this application does not get, because it is another user's
/// and nothing says that it is to have them (`pass_variables`).
pub fn withheld_variables(app: &App) -> Vec<String> {
    environment::withheld(app, &own_environment())
}

fn own_environment() -> Environment {
    std::env::vars_os().collect()
}

#[cfg(test)]
mod tests {
    use super::shell_line;

    #[test]
    fn the_shell_becomes_a_program_that_stands_alone() {
        for alone in ["bin/jobs", "bundle exec sidekiq -c $N > 'log file'"] {
            assert_eq!(shell_line(alone), format!("exec {alone}"));
        }
        for other in ["A=1 bin/jobs", "cd jobs && ./run", "bin/a; bin/b", "cd x", "exec bin/jobs"] {
            assert_eq!(shell_line(other), other);
        }
    }
}
