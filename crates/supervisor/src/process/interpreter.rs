//! Which Ruby runs the application: the named one, else what typing `ruby` in its folder starts.
//!
//! Version managers are not imitated but asked to start it (`rbenv exec ruby`): they replace themselves by the Ruby
//! that they choose, under the same process id.

use highball_tenant::{look_anywhere, open_anywhere, read_whole, Kind, OpenError};
use highball_users::User;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env::split_paths;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Most that is read of a file that names a version.
const VERSION_BYTES: u64 = 64 * 1024;

/// One version manager.
struct Manager {
    name: &'static str,
    /// Files that it reads a version from, in the application's folder or one above it.
    files: &'static [&'static str],
    /// Where it lies when it is not in PATH: a variable that names its folder, and that folder below `$HOME`.
    home: (&'static str, &'static str),
    /// How it starts Ruby.
    exec: &'static [&'static str],
}

/// All that are known, in the order in which they are looked for.
static MANAGERS: [Manager; 3] = [
    Manager {
        name: "rbenv",
        files: &[".ruby-version"],
        home: ("RBENV_ROOT", ".rbenv"),
        exec: &["exec", "ruby"],
    },
    Manager {
        name: "mise",
        files: &["mise.toml", ".mise.toml", ".tool-versions", ".ruby-version"],
        home: ("MISE_INSTALL_ROOT", ".local"),
        exec: &["exec", "--", "ruby"],
    },
    Manager {
        name: "asdf",
        files: &[".tool-versions"],
        home: ("ASDF_DIR", ".asdf"),
        exec: &["exec", "ruby"],
    },
];

/// How Ruby is started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub(crate) program: PathBuf,
    arguments: &'static [&'static str],
}

impl Interpreter {
    /// The named one; else the Ruby of a version manager that is installed and finds a version file; else
    /// the first `ruby` in PATH, which may be the shim of one.
    ///
    /// # Errors
    /// There is no Ruby.
    pub(crate) fn choose(
        named: Option<&Path>,
        folder: &Path,
        user: Option<&User>,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Interpreter, String> {
        if let Some(named) = named {
            return Ok(Interpreter { program: named.into(), arguments: &[] });
        }
        let files = VersionFiles { user, unread: RefCell::default() };
        let managed = MANAGERS.iter().find_map(|manager| manager.interpreter(folder, &files, env));
        for (file, error) in files.unread.into_inner() {
            warn!(
                name: "ruby_version_unreadable",
                file = %file.display(), %error, "cannot read the file that names the Ruby version"
            );
        }
        let usual = || in_path("ruby", user, env).map(|program| Interpreter { program, arguments: &[] });
        managed.or_else(usual).ok_or_else(|| "there is no `ruby` in PATH".into())
    }

    /// The program's arguments, before what Ruby is to run.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> {
        self.arguments.iter().map(OsString::from)
    }
}

impl Manager {
    fn interpreter(
        &self,
        folder: &Path,
        files: &VersionFiles<'_>,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<Interpreter> {
        let has_version = |folder: &Path| self.files.iter().any(|file| files.names_ruby(&folder.join(file)));
        folder.ancestors().find(|folder| has_version(folder))?;
        let program = in_path(self.name, files.user, env).or_else(|| self.at_home(files.user, env))?;
        Some(Interpreter { program, arguments: self.exec })
    }

    fn at_home(&self, user: Option<&User>, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (variable, below_home) = self.home;
        let home =
            env(variable).map(PathBuf::from).or_else(|| Some(Path::new(&env("HOME")?).join(below_home)));
        home.map(|home| home.join("bin").join(self.name)).filter(|path| is_program(path, user))
    }
}

/// The files that name versions.
struct VersionFiles<'a> {
    /// Whose rights they are read with, if not Highball's own.
    user: Option<&'a User>,
    /// The files that could not be read, with the reason.
    unread: RefCell<BTreeMap<PathBuf, OpenError>>,
}

impl VersionFiles<'_> {
    /// Whether the file names a version of Ruby: `.ruby-version` always does, files for several languages may not.
    fn names_ruby(&self, file: &Path) -> bool {
        let read = |(opened, about)| read_whole(opened, &about, VERSION_BYTES);
        match open_anywhere(file, self.user).and_then(read) {
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                file.ends_with(".ruby-version")
                    || text.lines().any(|line| line.trim_start().starts_with("ruby"))
            }
            Err(OpenError::NotFound) => false,
            Err(error) => {
                self.unread.borrow_mut().insert(file.into(), error);
                false
            }
        }
    }
}

fn in_path(name: &str, user: Option<&User>, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = env("PATH")?;
    split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path, user))
}

fn is_program(path: &Path, user: Option<&User>) -> bool {
    look_anywhere(path, user).is_ok_and(|about| about.kind == Kind::File && about.mode & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A home with an application in it, and `PATH` that leads to `$HOME/bin` alone.
    struct Home(tempfile::TempDir);

    impl Home {
        fn with(files: &[(&str, &str)]) -> Home {
            let home = Home(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = home.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            home
        }

        fn choice(&self) -> Result<(String, &'static [&'static str]), String> {
            let home = self.0.path().to_owned();
            let env = |name: &str| match name {
                "HOME" => Some(home.clone().into()),
                "PATH" => Some(home.join("bin").into()),
                _ => None,
            };
            let chosen = Interpreter::choose(None, &home.join("app"), None, &env)?;
            let program = chosen.program.strip_prefix(&home).unwrap().display().to_string();
            Ok((program, chosen.arguments))
        }
    }

    #[test]
    fn without_a_version_file_it_is_the_first_in_path() {
        let home = Home::with(&[("bin/ruby", ""), ("bin/rbenv", ""), ("bin/mise", "")]);
        assert_eq!(home.choice().unwrap(), ("bin/ruby".into(), &[][..]));
        assert!(Home::with(&[]).choice().unwrap_err().contains("no `ruby` in PATH"));
    }

    #[test]
    fn a_version_manager_is_asked_where_it_has_a_file_to_read() {
        let home = Home::with(&[("bin/ruby", ""), (".rbenv/bin/rbenv", ""), ("app/.ruby-version", "3.3")]);
        assert_eq!(home.choice().unwrap(), (".rbenv/bin/rbenv".into(), &["exec", "ruby"][..]));
        let home = Home::with(&[(".local/bin/mise", ""), (".tool-versions", "nodejs 20\nruby 3.3")]);
        assert_eq!(home.choice().unwrap(), (".local/bin/mise".into(), &["exec", "--", "ruby"][..]));
        let home = Home::with(&[("bin/asdf", ""), ("app/.tool-versions", "ruby 3.3")]);
        assert_eq!(home.choice().unwrap(), ("bin/asdf".into(), &["exec", "ruby"][..]));
    }

    #[test]
    fn files_that_say_nothing_of_ruby_and_managers_that_are_not_there_change_nothing() {
        let home = Home::with(&[("bin/ruby", ""), ("bin/asdf", ""), ("app/.tool-versions", "nodejs 20")]);
        assert_eq!(home.choice().unwrap().0, "bin/ruby");
        let home = Home::with(&[("bin/ruby", ""), ("app/.ruby-version", "3.3")]);
        assert_eq!(home.choice().unwrap().0, "bin/ruby");
    }

    #[test]
    fn one_that_was_named_goes_before_all() {
        let folder = Path::new("/");
        let chosen = Interpreter::choose(Some(Path::new("/opt/ruby")), folder, None, &|_| None).unwrap();
        assert_eq!(chosen, Interpreter { program: "/opt/ruby".into(), arguments: &[] });
    }
}
