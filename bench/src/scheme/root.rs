//! Other releases of Debian, each in a folder (a root): schemes can take programs from there that this machine's own
//! release does not have, or has older.
//!
//! A process that is started with a root's programs has its own mount namespace, in which the root's `/usr` and `/etc`
//! lie over this machine's. So it finds that release's programs and libraries, and all other folders and ports as they
//! are; and the mounts are gone when the last process of it is.

use super::programs;
use crate::Failure;
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names a folder that holds roots, by the names of their releases.
const ROOTS: &str = "HIGHBALL_BENCH_ROOTS";
/// What lies over this machine's folders.
const LAID_OVER: [&str; 2] = ["/etc", "/usr"];
/// Where a root's programs are found, in this order.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// What tells this machine's Ruby where its libraries are.
const HIDDEN: [&str; 3] = ["GEM_HOME", "GEM_PATH", "RUBYLIB"];
/// Enters the root that is `$0`, and becomes the program that the other arguments are.
const ENTER: &str = r#"mount --bind "$0/etc" /etc && mount --bind "$0/usr" /usr && exec "$@""#;

/// A release of Debian in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Root {
    /// Its name, such as "trixie".
    pub(crate) release: String,
    /// Where it is, or would be.
    pub(crate) folder: PathBuf,
}

impl Root {
    /// The root of this release: in the folder that `HIGHBALL_BENCH_ROOTS` names, else in the cache folder. An absolute
    /// path stands for itself.
    pub(crate) fn of(release: &str) -> Root {
        let folder = match env::var_os(ROOTS) {
            _ if release.starts_with('/') => PathBuf::from(release),
            Some(roots) => PathBuf::from(roots).join(release),
            None => cache().join(format!("bench-{release}")),
        };
        Root { release: release.into(), folder }
    }

    /// Why its programs cannot be run; `None`: the present ones can.
    pub(crate) fn missing(&self) -> Option<String> {
        let Root { release, folder } = self;
        if !self.is_made() {
            let remedy =
                format!("--install makes it with debootstrap, or {ROOTS} names a folder that holds it");
            return Some(format!("there is no Debian {release} in {} ({remedy})", folder.display()));
        }
        let not_root = "only root can run programs of another Debian";
        (!geteuid().is_root()).then(|| format!("{not_root} ({release} in {})", folder.display()))
    }

    /// Whether the folder is there.
    pub(crate) fn is_made(&self) -> bool {
        self.folder.join("usr/bin").is_dir()
    }

    /// Whether it has this program, a name or an absolute path.
    pub(super) fn has_program(&self, program: &str) -> bool {
        if program.contains('/') {
            let is_laid_over = LAID_OVER.iter().any(|folder| Path::new(program).starts_with(folder));
            return if is_laid_over {
                self.has(Path::new(program))
            } else {
                programs::find(program).is_some()
            };
        }
        env::split_paths(PATH).any(|folder| self.has(&folder.join(program)))
    }

    /// Whether it has this file. Where a link leads to cannot be seen from outside.
    pub(super) fn has(&self, file: &Path) -> bool {
        let inside = file.strip_prefix("/").unwrap_or(file);
        fs::symlink_metadata(self.folder.join(inside)).is_ok()
    }

    /// The words that come before a command for it to be this root's. It finds programs and libraries as that
    /// release does, not as the shell is set up for this machine's.
    pub(crate) fn enter(&self) -> Vec<String> {
        let mut words = vec!["env".to_owned()];
        words.extend(HIDDEN.iter().map(|name| format!("--unset={name}")));
        words.extend([format!("PATH={PATH}"), "LC_ALL=C.UTF-8".into()]);
        words.extend(["unshare", "--mount", "sh", "-c", ENTER].map(String::from));
        words.push(self.folder.to_string_lossy().into_owned());
        words
    }

    /// Refuses an application that would be hidden by the root.
    pub(crate) fn shows(&self, app: &Path) -> Result<(), Failure> {
        match LAID_OVER.iter().find(|folder| app.starts_with(folder)) {
            None => Ok(()),
            Some(folder) => Err(Failure(format!(
                "{} cannot be served by programs of Debian {}, whose {folder} lies over this machine's",
                app.display(),
                self.release
            ))),
        }
    }
}

/// Where things are kept that take long to make: as `bin/test` keeps them.
fn cache() -> PathBuf {
    if geteuid().is_root() {
        return "/var/cache/highball".into();
    }
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let of_user = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    named.unwrap_or_else(of_user).join("highball")
}
