//! Static sites: folders that are served without Ruby.

use highball_link::Booted;
use highball_tenant::TenantFolder;
use highball_users::User;
use rustix::process::getpid;
use std::path::{Path, PathBuf};

/// Files by which a folder is an application, which has to be loaded.
const OF_APPLICATIONS: [&str; 6] =
    ["config.ru", "config/environment.rb", "config/app.rb", "config/apps.rb", "Gemfile", "gems.rb"];

/// Where this is, pages are built from what lies in the folder itself, which is not for visitors.
const OF_SOURCES: &str = "package.json";

/// A folder with more names than this is not searched for Ruby files, and counts as an application's.
const MOST_NAMES: usize = 20_000;

/// One kind of site.
struct Kind {
    name: &'static str,
    /// Where its pages lie, below the folder.
    pages: &'static str,
    /// The file that shows its generator, where it has one. The folder may be full of Ruby then.
    generator: Option<&'static str>,
}

/// The kinds that there are, in the order in which they are looked for.
static KINDS: [Kind; 6] = [
    Kind { name: "Jekyll site", pages: "_site", generator: Some("_config.yml") },
    Kind { name: "Nanoc site", pages: "output", generator: Some("nanoc.yaml") },
    Kind { name: "static site", pages: "public", generator: None },
    Kind { name: "static site", pages: "dist", generator: None },
    Kind { name: "static site", pages: "_site", generator: None },
    Kind { name: "static site", pages: "", generator: None },
];

/// A static site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// `static site`, `Jekyll site` or the like.
    pub kind: &'static str,
    /// The folder of its pages.
    pub root: PathBuf,
    /// Why it counts as one.
    pub because: String,
}

impl Site {
    /// The site in this folder; `None` where there is none, or where there is an application.
    pub fn in_folder(folder: &Path, user: Option<&User>) -> Option<Site> {
        let folder = TenantFolder::open(folder, user).ok()?;
        let has_app = has_application(&folder);
        KINDS.iter().find_map(|kind| kind.site_in(&folder, has_app))
    }

    /// What the supervisor knows of a loaded application.
    pub(crate) fn booted(self) -> Booted {
        Booted {
            pid: getpid().as_raw_nonzero().get(),
            framework: self.kind.into(),
            public: Some(self.root),
            restartable: true,
            ..Booted::default()
        }
    }
}

impl Kind {
    fn site_in(&self, folder: &TenantFolder, has_app: bool) -> Option<Site> {
        let is_its = match self.generator {
            Some(file) => folder.has_file(file) && !folder.has_file("config.ru"),
            None if self.pages.is_empty() => !has_app && !folder.has_file(OF_SOURCES),
            None => !has_app,
        };
        let page = Path::new(self.pages).join("index.html");
        if !is_its || !folder.has_file(&page) {
            return None;
        }
        let root: PathBuf = folder.path().join(self.pages).components().collect(); // without a slash at its end
        let because = match self.generator {
            Some(file) => format!("there are {file} and {}", page.display()),
            None => format!("there is {}, and no Ruby code beside it", page.display()),
        };
        Some(Site { kind: self.name, root, because })
    }
}

/// Whether there may be an application or a site in this folder, or sources of one. The boot reports what is wrong with
/// it.
pub fn may_be_served(path: &Path, user: Option<&User>) -> bool {
    let Ok(folder) = TenantFolder::open(path, user) else { return true }; // the boot reports why
    let generators = KINDS.iter().filter_map(|kind| kind.generator);
    has_application(&folder)
        || Site::in_folder(path, user).is_some()
        || generators.chain([OF_SOURCES]).any(|file| folder.has_file(file))
}

/// Whether there is anything to load. A folder that cannot be read counts as an application: loading it reports why.
fn has_application(folder: &TenantFolder) -> bool {
    let is_ruby = |name: &Path| name.extension().is_some_and(|end| end == "rb" || end == "ru");
    let Ok(entries) = folder.entries(MOST_NAMES) else { return true };
    OF_APPLICATIONS.iter().any(|name| folder.has_file(name))
        || entries.iter().any(|entry| is_ruby(Path::new(&entry.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What is found in a folder with these files: its kind, and where its pages lie.
    fn found(files: &[&str]) -> Option<(&'static str, PathBuf)> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let site = Site::in_folder(folder.path(), None)?;
        Some((site.kind, site.root.strip_prefix(folder.path()).unwrap().into()))
    }

    #[test]
    fn pages_are_found_where_generators_put_them() {
        assert_eq!(found(&["index.html"]), Some(("static site", "".into())));
        assert_eq!(found(&["public/index.html", "index.html"]), Some(("static site", "public".into())));
        assert_eq!(found(&["dist/index.html", "public/x.svg"]), Some(("static site", "dist".into())));
        assert_eq!(
            found(&["_config.yml", "_site/index.html", "index.html", "Gemfile"]),
            Some(("Jekyll site", "_site".into()))
        );
    }

    #[test]
    fn what_pages_are_built_from_is_no_static_site() {
        assert_eq!(found(&["index.html", "package.json"]), None);
        let built = found(&["index.html", "package.json", "dist/index.html"]);
        assert_eq!(built, Some(("static site", "dist".into())));
    }

    #[test]
    fn a_folder_with_nothing_of_an_application_is_recognized() {
        for (file, may) in
            [("README", false), ("public/style.css", false), ("my.rb", true), ("package.json", true)]
        {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("public")).unwrap();
            fs::write(folder.path().join(file), "").unwrap();
            assert_eq!(may_be_served(folder.path(), None), may, "{file}");
        }
    }

    #[test]
    fn an_application_is_no_static_site() {
        for file in ["config.ru", "app.rb", "Gemfile", "my.ru", "config/environment.rb"] {
            assert_eq!(found(&["public/index.html", "index.html", file]), None, "{file}");
        }
        assert_eq!(found(&["_config.yml", "_site/index.html", "config.ru"]), None);
        assert_eq!(found(&["README"]), None);
        assert_eq!(found(&["public/style.css"]), None);
    }
}
