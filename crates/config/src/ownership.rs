//! The user that an application runs as, and the user who answers for its configuration file.

use std::fs::{symlink_metadata, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use highball_users::{may_change_users, User};
use rustix::process::geteuid;

use crate::error::ConfigError;
use crate::settings::RunsAs;
use crate::spelling::guess;
use highball_users::trust::{stranger_to, stranger_to_root, trail, Author, Outside};

/// Reads files for an application of root's in a folder that others may write to.
const NOBODY: u32 = 65534;

/// Who runs Highball.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Starter {
    uid: u32,
    /// Whether applications can be started as others.
    changes_users: bool,
}

impl Starter {
    /// Of this process.
    pub(crate) fn now() -> Starter {
        Starter { uid: geteuid().as_raw(), changes_users: may_change_users() }
    }

    /// The user that an application of this owner runs as, if none is configured.
    pub(crate) fn runs_unasked(self, owner: Option<User>) -> RunsAs {
        match owner.filter(|_| self.changes_users) {
            Some(owner) => RunsAs::User(owner),
            None if self.uid == 0 => RunsAs::RootUnasked,
            None => RunsAs::Starter,
        }
    }

    /// The user that an application runs as for which this one is configured, by name or number.
    ///
    /// # Errors
    /// There is no such user, or the starter cannot start anything as another; what to do.
    pub(crate) fn runs_as(self, text: &str) -> Result<RunsAs, String> {
        let user = User::of(text).ok_or_else(|| no_such_user(text))?;
        if user.uid == self.uid {
            Ok(RunsAs::Starter)
        } else if self.changes_users {
            Ok(RunsAs::User(user))
        } else {
            Err(self.cannot_change(&user))
        }
    }

    fn cannot_change(self, user: &User) -> String {
        if self.uid == 0 {
            return format!(
                "the application cannot run as {user}, as this root lacks the capabilities CAP_SETUID and CAP_SETGID, which \
                 its container has taken away: start Highball as {user}, or grant them"
            );
        }
        let own = User::with_uid(self.uid, 0);
        format!(
            "only root can run an application as another user, and this is {own}: start Highball as {user} (sudo -u {user} \
             highball …), or leave this out"
        )
    }

    /// Whose word the file in the application's folder is.
    pub(crate) fn author(self, folder: &Path, file: &Path) -> Author {
        let stranger =
            if self.uid == 0 { stranger_to_root(file) } else { stranger_to(self.uid, folder, file) };
        stranger.map_or(Author::Server, Author::App)
    }

    /// Checks a file that the user who starts Highball has named: root's must not be writable by others.
    ///
    /// # Errors
    /// So it is.
    pub(crate) fn believes_named(self, file: &Path) -> Result<(), ConfigError> {
        let Some(stranger) = Some(file).filter(|_| self.uid == 0).and_then(stranger_to_root) else {
            return Ok(());
        };
        let problem = format!(
            "Highball runs as root, which does what this file gives, and {}: take it out of their reach ({}), or start \
             Highball as another user",
            stranger.reason(file),
            stranger.remedy()
        );
        Err(ConfigError::File { path: file.to_owned(), line: None, problem })
    }

    /// Who reads a file of an application that runs as `runs_as`, where that is known already, and belongs to `owner`;
    /// `None`: this process, with its own rights.
    pub(crate) fn reader(
        self,
        runs_as: Option<&RunsAs>,
        owner: Option<&User>,
        author: &Author,
    ) -> Option<User> {
        let Author::App(stranger) = author else { return None };
        match runs_as {
            _ if !self.changes_users => None,
            Some(runs_as) => runs_as.another().cloned(),
            None => {
                let user = owner.or(stranger.owner.as_ref()).cloned();
                Some(user.unwrap_or_else(|| User::with_uid(NOBODY, NOBODY)))
            }
        }
    }

    /// Whether the file is another user's, or cannot be looked at.
    pub(crate) fn is_of_another(self, file: &Path) -> bool {
        symlink_metadata(file).map_or(true, |about| about.uid() != self.uid)
    }

    /// Whether this is root, and applications of others are to be kept apart.
    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Whether it depends on the owner of an application who that runs as.
    pub(crate) fn changes_users(self) -> bool {
        self.changes_users
    }
}

/// Whom an application belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owner {
    /// `None`: all of it is root's.
    pub(crate) user: Option<User>,
    /// What is wrong where the owner of a symbolic link, who is `user` then, leads to files of another user; and what
    /// to do.
    pub(crate) stray_link: Option<String>,
}

/// Whom an application belongs to: the owner of the file that it is loaded from, else of its folder, else of a symbolic
/// link that leads there, else of a folder around it; the first who is not root.
///
/// The users who may change one of these decide what is run; none of them may become root by that. A link counts for
/// itself: any user may make one to a file of root's, or of another user's, and must not decide which of these are
/// served.
pub(crate) fn owner(link: &Path, folder: &Path, file: Option<&Path>) -> Owner {
    let outside = Outside::of_namespace();
    let is_other = |about: &Metadata| about.uid() != 0 && !outside.owns(about);
    let user = |about: &Metadata| User::with_uid(about.uid(), about.gid());
    let file = folder.join(file.unwrap_or(Path::new("config.ru")));
    let mut own = [file.as_path(), folder].into_iter().filter_map(|path| symlink_metadata(path).ok());
    let way: Vec<(PathBuf, Metadata)> =
        trail(link).map_while(Result::ok).filter(|(_, about)| is_other(about)).collect();
    let links = || way.iter().filter(|(_, about)| about.is_symlink());
    let of_way = links().next().or(way.last()).map(|(_, about)| about.clone());
    let Some(owner) = own.find(is_other).or(of_way).map(|about| user(&about)) else {
        return Owner::default();
    };
    let Some((link, about)) = links().find(|(_, about)| about.uid() != owner.uid) else {
        return Owner { user: Some(owner), stray_link: None };
    };
    let (link, maker) = (link.display(), user(about));
    let problem = format!(
        "the symbolic link {link} belongs to {maker}, and leads to files of {owner}; let it belong to {owner} \
         (chown -h {owner} {link}), or name the `user` of the application in the server's configuration file"
    );
    Owner { user: Some(maker), stray_link: Some(problem) }
}

/// Who has made the first symbolic link on the way, if that is not root: where it leads is looked up with the rights of this
/// user, who else could find out what there is in folders that are closed to it.
pub(crate) fn maker_of_link(path: &Path) -> Option<User> {
    let mut way = trail(path).map_while(Result::ok);
    let (_, about) = way.find(|(_, about)| about.is_symlink() && about.uid() != 0)?;
    Some(User::with_uid(about.uid(), about.gid()))
}

/// What is wrong with the name of a user whom this machine does not have, and what to do.
pub fn no_such_user(name: &str) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let names = known.lines().filter_map(|line| line.split(':').next());
    let guess = guess(name, names);
    format!(
        "there is no user `{name}` on this machine; name an existing user, or create it: sudo adduser --system --group {name}{guess}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    const ROOT: Starter = Starter { uid: 0, changes_users: true };
    const ROOT_OF_CONTAINER: Starter = Starter { uid: 0, changes_users: false };

    fn user(name: &str) -> User {
        User::of(name).unwrap()
    }

    #[test]
    fn root_runs_an_application_as_its_owner_by_default() {
        assert_eq!(ROOT.runs_unasked(Some(user("daemon"))), RunsAs::User(user("daemon")));
        assert_eq!(ROOT.runs_unasked(None), RunsAs::RootUnasked);
        assert_eq!(ROOT.runs_as("root").unwrap(), RunsAs::Starter);
        assert_eq!(ROOT.runs_as("games").unwrap(), RunsAs::User(user("games")));
        assert_eq!(ROOT.runs_as(&user("games").uid.to_string()).unwrap(), RunsAs::User(user("games")));
    }

    #[test]
    fn others_run_it_as_themselves() {
        let daemon = user("daemon");
        let starter = Starter { uid: daemon.uid, changes_users: false };
        assert_eq!(starter.runs_unasked(Some(user("games"))), RunsAs::Starter);
        assert_eq!(starter.runs_as("daemon").unwrap(), RunsAs::Starter);
        let problem = starter.runs_as("games").unwrap_err();
        assert!(problem.contains("this is daemon") && problem.contains("sudo -u games"), "{problem}");
    }

    #[test]
    fn root_without_the_capabilities_stays_root_and_says_so_where_another_is_asked_for() {
        assert_eq!(ROOT_OF_CONTAINER.runs_unasked(Some(user("daemon"))), RunsAs::RootUnasked);
        assert!(ROOT_OF_CONTAINER.runs_as("games").unwrap_err().contains("CAP_SETUID"));
    }

    #[test]
    fn a_user_who_does_not_exist_is_an_error() {
        let problem = ROOT.runs_as("nobody-at-all").unwrap_err();
        assert!(problem.contains("no user `nobody-at-all`") && problem.contains("adduser"), "{problem}");
    }

    #[test]
    fn the_user_who_can_change_the_code_is_its_owner() {
        if !may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let place = tempfile::tempdir().unwrap();
        let (folder, link) = (place.path().join("release"), place.path().join("current"));
        let file = folder.join("config.ru");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(place.path().join("of-root.ru"), "").unwrap();
        symlink(place.path().join("of-root.ru"), &file).unwrap();
        symlink(&folder, &link).unwrap();
        let found = || owner(&link, &folder, None).user.map(|user| user.name);
        assert_eq!(found(), None);
        chown(place.path(), Some(user("www-data").uid), None).unwrap();
        assert_eq!(found().unwrap(), "www-data", "who could put another folder in its place");
        lchown(&link, Some(user("games").uid), None).unwrap();
        assert_eq!(found().unwrap(), "games");
        lchown(&link, Some(user("daemon").uid), None).unwrap();
        chown(&folder, Some(user("daemon").uid), None).unwrap();
        assert_eq!(found().unwrap(), "daemon");
        lchown(&link, Some(0), None).unwrap();
        lchown(&file, Some(user("nobody").uid), None).unwrap();
        assert_eq!(found().unwrap(), "nobody");
        lchown(&link, Some(user("games").uid), None).unwrap();
        let problem = owner(&link, &folder, None).stray_link.unwrap();
        assert!(problem.contains("belongs to games, and leads to files of nobody"), "{problem}");
    }
}
