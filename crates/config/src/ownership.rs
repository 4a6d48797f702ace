//! Who an application runs as, and what Highball believes of files that belong to others, where it is root.

use std::fs::symlink_metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use highball_users::{may_change_users, User};
use rustix::process::geteuid;

use crate::error::ConfigError;
use crate::given::{Given, Origin};
use crate::settings::RunsAs;

/// Options by which root would write where a file says, or start what it says as anybody.
const OF_ROOT: [&str; 4] = ["user", "access_log", "pidfile", "spool_dir"];

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

    /// Who an application of this owner runs as, where nobody is asked for.
    pub(crate) fn runs_unasked(self, owner: Option<User>) -> RunsAs {
        match owner.filter(|_| self.changes_users) {
            Some(owner) => RunsAs::User(owner),
            None if self.uid == 0 => RunsAs::RootUnasked,
            None => RunsAs::Starter,
        }
    }

    /// Who an application runs as for which this user is asked for, by name or number.
    ///
    /// # Errors
    /// There is no such user, or the starter cannot start anything as another; what to do.
    pub(crate) fn runs_as(self, text: &str) -> Result<RunsAs, String> {
        let user = User::of(text).ok_or_else(|| {
            format!(
                "there is no user `{text}` on this machine; name one that there is, or make it: sudo adduser --system \
                 --group {text}"
            )
        })?;
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

    /// Root believes a file of somebody else's only what that user could do without it.
    ///
    /// # Errors
    /// One says more; where that can be said.
    pub(crate) fn believes(self, given: &Given) -> Result<(), ConfigError> {
        if self.uid != 0 {
            return Ok(());
        }
        for raw in given.raws() {
            let Origin::File { name, owner, .. } = raw.origin else { continue };
            let is_own_name = || name == "user" && User::of(&raw.text).is_some_and(|user| user.uid == owner);
            if owner != 0 && OF_ROOT.contains(&name) && !is_own_name() {
                let owner = User::with_uid(owner, 0);
                return Err(raw.wrong(format!(
                    "this file belongs to {owner}, and Highball runs as root, which {owner} could have write anywhere, or \
                     become, by this: say it on the command line or in a file of root's, or start Highball as {owner}"
                )));
            }
        }
        Ok(())
    }
}

/// Whom an application belongs to: the owner of the file that it is loaded from, else that of its folder, else that of
/// the link that leads there; the first who is not root. `None`: all of it is root's.
///
/// Whoever may change one of the three decides what is run; none of them may become root by that. A link counts
/// for itself: anybody may make one to a file of root's.
pub(crate) fn owner(link: &Path, folder: &Path, file: Option<&Path>) -> Option<User> {
    let file = folder.join(file.unwrap_or(Path::new("config.ru")));
    let owners = [file.as_path(), folder, link].into_iter().filter_map(|path| symlink_metadata(path).ok());
    let not_root = owners.map(|about| (about.uid(), about.gid())).find(|(uid, _)| *uid != 0);
    not_root.map(|(uid, gid)| User::with_uid(uid, gid))
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
    fn root_runs_an_application_as_its_owner_unless_it_is_told_otherwise() {
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
    fn whoever_can_change_what_is_run_is_its_owner() {
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
        let found = || owner(&link, &folder, None).map(|user| user.name);
        assert_eq!(found(), None);
        lchown(&link, Some(user("games").uid), None).unwrap();
        assert_eq!(found().unwrap(), "games");
        chown(&folder, Some(user("daemon").uid), None).unwrap();
        assert_eq!(found().unwrap(), "daemon");
        lchown(&file, Some(user("nobody").uid), None).unwrap();
        assert_eq!(found().unwrap(), "nobody");
    }

    #[test]
    fn root_does_not_write_where_others_say() {
        if !may_change_users() {
            return println!("skipped: only root can give files away");
        }
        let app = tempfile::tempdir().unwrap();
        let path = app.path().join("highball.toml");
        let judged = |text: &str, owner: &str| {
            std::fs::write(&path, text).unwrap();
            chown(&path, Some(user(owner).uid), None).unwrap();
            ROOT.believes(&crate::file::read(&path, app.path()).unwrap().top)
        };
        for text in
            ["access_log = 'x'", "pidfile = 'x'", "spool_dir = 'x'", "user = 'root'", "user = 'games'"]
        {
            let problem = judged(text, "daemon").unwrap_err().to_string();
            assert!(problem.contains("line 1") && problem.contains("belongs to daemon"), "{problem}");
            assert!(judged(text, "root").is_ok());
        }
        assert!(judged("user = 'daemon'\nworkers = 2", "daemon").is_ok());
    }
}
