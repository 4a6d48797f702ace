//! Whether a configuration file is the server's, or an application's.
//!
//! That depends on who could have put the file there: every user who may write to the file itself or to a folder on the
//! way to it, or who made a symbolic link on that way. The owner of the file alone proves nothing: any user may link to
//! a file of root's.

use std::fs::{symlink_metadata, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::User;

/// Most symbolic links on the way to a file, as in the kernel (path_resolution(7)).
const LINKS: usize = 40;
/// Writable by the group, or by all users.
const BY_OTHERS: u32 = 0o022;
/// In such a folder only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Whose a configuration file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// Of the user who starts Highball: it may give every option.
    Server,
    /// Of the application that it lies in: it gives options of that application, and nothing else.
    App(Stranger),
}

/// A user other than the one who starts Highball can change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// What can be changed: the file, a folder, or a symbolic link.
    pub path: PathBuf,
    /// Its owner; `None`: its permissions let others write to it.
    pub owner: Option<User>,
}

impl Stranger {
    /// For error messages: how the file can be changed.
    pub fn reason(&self, file: &Path) -> String {
        let subject = if self.path == file { "this file".into() } else { self.path.display().to_string() };
        match &self.owner {
            Some(owner) => format!("{subject} belongs to {owner}"),
            None => format!("{subject} can be written to by others"),
        }
    }

    /// The command that takes the file out of others' reach.
    pub fn remedy(&self) -> String {
        let path = self.path.display();
        match self.owner {
            Some(_) => format!("chown root {path}"),
            None => format!("chmod go-w {path}"),
        }
    }
}

/// Everything on the way to a path, from `/` on, the path's own last component included; symbolic links are followed, and
/// listed before what they lead to. It ends with an error, where something cannot be looked at.
pub fn trail(path: &Path) -> Trail {
    let mut ahead: Vec<PathBuf> = Vec::new();
    push_reversed(&mut ahead, path);
    Trail { place: PathBuf::from("/"), ahead, links: 0, has_begun: false }
}

/// See [`trail`].
pub struct Trail {
    place: PathBuf,
    /// Components that are still to come, the next one last.
    ahead: Vec<PathBuf>,
    links: usize,
    has_begun: bool,
}

fn push_reversed(ahead: &mut Vec<PathBuf>, path: &Path) {
    let steps = path.components().rev().filter(|step| !matches!(step, Component::CurDir));
    ahead.extend(steps.map(|step| PathBuf::from(step.as_os_str())));
}

impl Trail {
    /// Looks at one component that has a name.
    fn enter(&mut self, name: &Path) -> io::Result<(PathBuf, Metadata)> {
        let path = self.place.join(name);
        let about = symlink_metadata(&path)?;
        if about.is_symlink() {
            self.links += 1;
            if self.links > LINKS {
                return Err(io::Error::other("too many levels of symbolic links"));
            }
            push_reversed(&mut self.ahead, &std::fs::read_link(&path)?);
        } else {
            self.place.clone_from(&path);
        }
        Ok((path, about))
    }
}

impl Iterator for Trail {
    type Item = io::Result<(PathBuf, Metadata)>;

    fn next(&mut self) -> Option<Self::Item> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(symlink_metadata("/").map(|about| (PathBuf::from("/"), about)));
        }
        loop {
            let step = self.ahead.pop()?;
            match step.components().next() {
                Some(Component::RootDir) => self.place = PathBuf::from("/"),
                Some(Component::ParentDir) => drop(self.place.pop()),
                Some(Component::Normal(_)) => {
                    let found = self.enter(&step);
                    if found.is_err() {
                        self.ahead.clear();
                    }
                    return Some(found);
                }
                _ => {}
            }
        }
    }
}

/// The first on the way to `file` by whom root could be led: nothing that is not root's is followed any further, as it could
/// lead anywhere.
pub fn stranger_to_root(file: &Path) -> Option<Stranger> {
    let outside = Outside::of_namespace();
    trail(file).map_while(Result::ok).find_map(|(path, about)| {
        if about.uid() != 0 && !outside.owns(&about) {
            let owner = Some(User::with_uid(about.uid(), about.gid()));
            return Some(Stranger { path, owner });
        }
        let is_kept = about.is_symlink() || (about.is_dir() && about.mode() & STICKY != 0);
        let is_open = about.mode() & BY_OTHERS != 0 && !is_kept;
        is_open.then_some(Stranger { path, owner: None })
    })
}

/// How others than root could change a file of root's: the file itself, or where its path leads.
pub fn why_not_roots(file: &Path) -> Option<String> {
    stranger_to_root(file).map(|stranger| stranger.reason(file))
}

/// The user with whose rights root reads a file of the server's: another user who can change it, or where its path leads, can
/// have no more read than that user's own files. `None`: root's rights, as root alone could have put it there.
///
/// # Errors
/// All or some others may write to it; how to change that.
pub fn reader_of(file: &Path) -> Result<Option<User>, String> {
    match stranger_to_root(file) {
        None => Ok(None),
        Some(Stranger { owner: Some(owner), .. }) => Ok(Some(owner)),
        Some(stranger) => Err(format!(
            "cannot read {}: {}, and Highball runs as root: take it out of their reach ({})",
            file.display(),
            stranger.reason(file),
            stranger.remedy()
        )),
    }
}

/// The first owner from the application's folder on who is neither root nor the one who starts Highball. (Who may write
/// where is that user's own affair: it is that user's application.)
pub fn stranger_to(uid: u32, folder: &Path, file: &Path) -> Option<Stranger> {
    let outside = Outside::of_namespace();
    let mut is_within = false;
    trail(file).map_while(Result::ok).find_map(|(path, about)| {
        is_within = is_within || path == folder;
        let is_strange = is_within && ![0, uid].contains(&about.uid()) && !outside.owns(&about);
        is_strange.then(|| Stranger { path, owner: Some(User::with_uid(about.uid(), about.gid())) })
    })
}

/// In a user namespace, files of users outside of it show one number (user_namespaces(7)). No process in the namespace
/// can become such a user.
pub struct Outside(Option<u32>);

impl Outside {
    /// Of the namespace that this process is in.
    pub fn of_namespace() -> Outside {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let number: Option<u32> = read("/proc/sys/kernel/overflowuid").trim().parse().ok();
        let map = read("/proc/self/uid_map");
        Outside(number.filter(|number| !map.is_empty() && !is_mapped(&map, *number)))
    }

    /// Whether this belongs to a user outside.
    pub fn owns(&self, about: &Metadata) -> bool {
        self.0 == Some(about.uid())
    }
}

/// Whether a map of user numbers (`inside outside length` in each line) has this number inside.
fn is_mapped(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        matches!(fields[..], [first, _, length] if (first..first + length).contains(&u64::from(number)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};

    fn paths(path: &Path) -> Vec<PathBuf> {
        trail(path).map_while(Result::ok).map(|(path, _)| path).collect()
    }

    /// A folder that only root may write to, with `app/config/highball.toml`.
    fn place() -> Option<tempfile::TempDir> {
        if !crate::may_change_users() {
            println!("skipped: only root can give files away");
            return None;
        }
        let place = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::create_dir_all(place.path().join("app/config")).unwrap();
        std::fs::write(place.path().join("app/config/highball.toml"), "").unwrap();
        Some(place)
    }

    fn allow(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_are_followed_and_listed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        std::fs::write(folder.join("a/file"), "").unwrap();
        symlink("a/b", folder.join("link")).unwrap();
        symlink(folder.join("link/../file"), folder.join("a/b/other")).unwrap();
        let found = paths(&folder.join("link/other"));
        let below: Vec<&Path> = found.iter().filter_map(|path| path.strip_prefix(&folder).ok()).collect();
        let expected = ["", "link", "a", "a/b", "a/b/other", "", "link", "a", "a/b", "a/file"];
        assert_eq!(below, expected.map(Path::new));
        assert_eq!(found[0], Path::new("/"));
    }

    #[test]
    fn circles_and_missing_files_end() {
        let place = tempfile::tempdir().unwrap();
        symlink("circle", place.path().join("circle")).unwrap();
        assert!(trail(&place.path().join("circle")).any(|step| step.is_err()));
        assert!(trail(&place.path().join("none/of/these")).last().unwrap().is_err());
    }

    #[test]
    fn a_file_is_roots_where_only_root_could_have_put_it_there() {
        let Some(place) = place() else { return };
        let file = place.path().join("app/config/highball.toml");
        assert_eq!(stranger_to_root(&file), None);
        for changed in ["app", "app/config", "app/config/highball.toml"] {
            let path = place.path().join(changed);
            chown(&path, Some(1), None).unwrap();
            let stranger = stranger_to_root(&file).unwrap();
            assert_eq!((&stranger.path, stranger.owner.map(|owner| owner.uid)), (&path, Some(1)));
            chown(&path, Some(0), None).unwrap();
            let before = path.metadata().unwrap().permissions().mode();
            for mode in [0o020, 0o002] {
                allow(&path, before | mode);
                assert_eq!(stranger_to_root(&file), Some(Stranger { path: path.clone(), owner: None }));
            }
            allow(&path, before);
        }
        assert_eq!(stranger_to_root(&file), None);
    }

    #[test]
    fn who_makes_a_link_to_a_file_of_roots_is_its_author() {
        let Some(place) = place() else { return };
        let (link, target) = (place.path().join("link.toml"), place.path().join("app/config/highball.toml"));
        symlink(&target, &link).unwrap();
        assert_eq!(stranger_to_root(&link), None);
        lchown(&link, Some(1), None).unwrap();
        assert_eq!(stranger_to_root(&link).unwrap().path, link);
        lchown(&link, Some(0), None).unwrap();
        chown(&target, Some(1), None).unwrap();
        assert_eq!(stranger_to_root(&link).unwrap().path, target);
    }

    #[test]
    fn others_believe_root_and_themselves_from_the_folder_on() {
        let Some(place) = place() else { return };
        let (folder, file) = (place.path().join("app"), place.path().join("app/config/highball.toml"));
        assert_eq!(stranger_to(1, &folder, &file), None);
        chown(&folder, Some(1), None).unwrap();
        chown(place.path(), Some(2), None).unwrap();
        allow(&folder, 0o777);
        assert_eq!(stranger_to(1, &folder, &file), None);
        assert_eq!(stranger_to(2, &folder, &file).unwrap().path, folder);
        chown(&file, Some(2), None).unwrap();
        assert_eq!(stranger_to(1, &folder, &file).unwrap().path, file);
    }

    #[test]
    fn numbers_of_a_namespace() {
        assert!(is_mapped("         0          0 4294967295\n", 65534));
        assert!(!is_mapped("0 1000 1\n", 65534));
        assert!(is_mapped("0 1000 1\n1 100000 65536\n", 65534));
    }
}
