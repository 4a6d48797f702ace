//! Source files of a Rails application that its asset pipeline, in development, would give out as they are.
//!
//! The pipeline itself has reported which those are. Only what is beyond doubt is decided here: whatever the pipeline
//! might answer otherwise (a file that it would compile, another file by the same name, a digest that is not
//! the content's) is left to it.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use highball_link::{AssetDigest, AssetPipeline, PlainAsset};
use highball_tenant::About;
use highball_users::User;

use super::assets::depends_on_content;
use super::fingerprint::IMMUTABLE;
use super::folder::Folder;
use super::found_file::{Content, FoundFile, Representation, SMALL_BYTES};
use super::reading::{Facts, Known, KnownFacts};
use super::safe_path::first_component;
use crate::aside::PoolShare;
use crate::files::content_type;

/// Where the content decides, files up to this size are kept in memory, and of larger ones what they say.
const READ_BYTES: u64 = 1024 * 1024;

/// Text beyond this size is left to the pipeline, where it depends on it.
const TEXT_BYTES: u64 = 16 * 1024 * 1024;

/// What is larger is left to the pipeline wherever its content decides: a file that is all hole has no end.
const DIGESTED_BYTES: u64 = 1024 * 1024 * 1024;

/// A file without a digest in its name is revalidated at each request.
const REVALIDATED: &[u8] = b"cache-control: no-cache\r\n";

/// The pipeline, with its folders.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// The folder that paths begin with, with its slash.
    prefix: Vec<u8>,
    folders: Vec<Folder>,
    rules: AssetPipeline,
    known_facts: Mutex<KnownFacts>,
}

/// What a path asks a pipeline for: `folder/stem-digest.extension`.
#[derive(Debug, PartialEq, Eq)]
struct AskedAsset<'a> {
    /// With a slash at its end, or empty.
    folder: &'a [u8],
    stem: &'a [u8],
    digest: Option<&'a [u8]>,
    extension: &'a str,
}

impl Pipeline {
    pub(super) fn new(prefix: Vec<u8>, rules: AssetPipeline, follow_symlinks: bool) -> Self {
        let folders = rules.folders.iter().map(|root| Folder::new(root.clone(), follow_symlinks)).collect();
        Pipeline { prefix, folders, rules, known_facts: Mutex::default() }
    }

    /// The folder that paths begin with, with its slash.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Opens files with the rights of this user from now on.
    pub(super) fn open_as(&mut self, user: &User) {
        self.folders.iter_mut().for_each(|folder| folder.user = Some(user.clone()));
    }

    /// The file that the pipeline would answer with; `None`: it has to be asked. A large file is read, which may take some
    /// seconds.
    pub(super) fn find(&self, path: &[u8], now_ms: u64, reads: &PoolShare) -> Option<FoundFile> {
        let asked = AskedAsset::of(path.strip_prefix(self.prefix.as_slice())?)?;
        let plain = self.rules.plain.get(asked.extension)?;
        if asked.digest.is_none() && matches!(self.rules.digest, AssetDigest::Propshaft { .. }) {
            return None;
        }
        let file = open(&self.folders, &self.rules, &asked, now_ms)?;
        let content_decides = asked.digest.is_some() || depends_on_content(plain);
        let found = Representation::of(file, if content_decides { READ_BYTES } else { SMALL_BYTES }, reads);
        if content_decides {
            let facts = self.facts_of(&found, plain, now_ms)?;
            if !facts.is_plain || asked.digest.is_some_and(|digest| facts.digest.as_bytes() != digest) {
                return None;
            }
        }
        // A file in memory cannot change while it is sent, as another one can: only the former may be kept by clients.
        let never_changes = asked.digest.is_some() && matches!(found.content, Content::Bytes(_));
        let fields = if never_changes { IMMUTABLE } else { REVALIDATED };
        let known = self.rules.types.get(asked.extension).map(String::as_str);
        let content_type = known.unwrap_or_else(|| content_type::of_file_name(path));
        Some(FoundFile::alone(found, content_type, fields))
    }

    /// The facts about the content of a file; `None`: that is left to the pipeline.
    fn facts_of(&self, found: &Representation, plain: &PlainAsset, now_ms: u64) -> Option<Facts> {
        let digest = &self.rules.digest;
        let file = match &found.content {
            Content::Bytes(bytes) => return Some(Facts::of(bytes, digest, plain)),
            Content::File(_) if depends_on_content(plain) && found.length > TEXT_BYTES => return None,
            Content::File(_) if found.length > DIGESTED_BYTES => return None,
            Content::File(file) => file,
        };
        let read = Known::of(file, plain).and_then(|known| {
            if let Some(facts) = self.known_facts().of(&known, now_ms) {
                return Ok(facts.clone());
            }
            let facts = Facts::by_reading(file, &known, digest)?;
            self.known_facts().remember(known, facts.clone(), now_ms);
            Ok(facts)
        });
        read.inspect_err(
            |error| tracing::debug!(%error, "an asset could not be read; the application is asked"),
        )
        .ok()
    }

    fn known_facts(&self) -> MutexGuard<'_, KnownFacts> {
        self.known_facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file in the first of the folders that has something for this name, if there is no doubt that it is the
/// right one.
fn open(
    folders: &[Folder],
    rules: &AssetPipeline,
    asked: &AskedAsset<'_>,
    now_ms: u64,
) -> Option<(File, About)> {
    let file_name = asked.file_name();
    for folder in folders {
        let Some(folder) = folder.by_now(now_ms) else { continue };
        if !asked.folder.is_empty() && !folder.may_hold(first_component(asked.folder)) {
            continue;
        }
        let (mut is_there, mut may_have_index) = (false, false);
        for entry in folder.names(asked.folder)? {
            let name = entry.name.as_bytes();
            if *name == *file_name {
                is_there = true;
            } else if *name == *asked.stem {
                may_have_index = true; // `stem/index.extension` is found after `stem.extension`
            } else if may_be_meant(name, asked, rules) {
                return None;
            }
        }
        if is_there {
            return folder.open_file(&[asked.folder, &file_name].concat());
        }
        if may_have_index {
            return None;
        }
    }
    None
}

/// Whether the pipeline might choose the file `name` for this request, too: `logo.png.erb` or `logo.jpeg` for
/// `logo.jpg`, but not `logo.svg`.
fn may_be_meant(name: &[u8], asked: &AskedAsset<'_>, rules: &AssetPipeline) -> bool {
    let Some(extension) = name.strip_prefix(asked.stem).and_then(|rest| rest.strip_prefix(b".")) else {
        return false;
    };
    let Ok(extension) = std::str::from_utf8(extension) else { return true };
    match rules.types.get(extension) {
        Some(known) => Some(known) == rules.types.get(asked.extension),
        // An extension without a type is part of the name, and means nothing to the pipeline.
        None => !rules.plain.contains_key(extension),
    }
}

impl<'a> AskedAsset<'a> {
    /// Takes a path below the pipeline's; `None` for names that pipelines read in their own way: a plus as a space, two
    /// dots as an attack, a word behind a hyphen as a digest.
    fn of(path: &'a [u8]) -> Option<Self> {
        if path.contains(&b'+') || memchr::memmem::find(path, b"..").is_some() {
            return None;
        }
        let (folder, name) = path.split_at(memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1));
        let dot = memchr::memrchr(b'.', name)?;
        let (stem, extension) = (&name[..dot], std::str::from_utf8(&name[dot + 1..]).ok()?);
        let (stem, digest) = match memchr::memrchr(b'-', stem).map(|hyphen| stem.split_at(hyphen)) {
            Some((stem, digest)) if is_like_digest(&digest[1..]) => (stem, Some(&digest[1..])),
            _ => (stem, None),
        };
        (!stem.is_empty()).then_some(AskedAsset { folder, stem, digest, extension })
    }

    fn file_name(&self) -> Vec<u8> {
        [self.stem, b".", self.extension.as_bytes()].concat()
    }
}

/// Whether one of the pipelines would take this for a digest.
fn is_like_digest(word: &[u8]) -> bool {
    (7..=128).contains(&word.len()) && word.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::accept_encoding::AcceptEncoding;
    use crate::files::FRESH_MS;
    use std::fs;

    const OTHER_DIGEST: &str = "11d3b0a8f4c45a01a8e4c1f9e3a4b5c6";

    fn digest_of(digest: &AssetDigest, content: &[u8]) -> String {
        Facts::of(content, digest, &PlainAsset::default()).digest
    }

    /// Two folders of assets, and a pipeline over them.
    struct Sources {
        folder: tempfile::TempDir,
        rules: AssetPipeline,
    }

    impl Sources {
        fn new(digest: AssetDigest, files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, content) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            let types =
                [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("css", "text/css")];
            let condition = |text, unless: &[&str]| PlainAsset {
                text,
                unless: unless.iter().map(ToString::to_string).collect(),
            };
            let plain = [
                ("png", condition(false, &[])),
                ("jpg", condition(false, &[])),
                ("json", condition(true, &[])),
                ("css", condition(false, &["url("])),
            ];
            let rules = AssetPipeline {
                digest,
                folders: ["first", "second"].map(|name| folder.path().join(name)).into(),
                types: types.map(|(extension, kind)| (extension.into(), kind.into())).into(),
                plain: plain.map(|(extension, plain)| (extension.into(), plain)).into(),
            };
            Sources { folder, rules }
        }

        fn sprockets(files: &[(&str, &str)]) -> Self {
            Self::new(AssetDigest::Sprockets { version: String::new() }, files)
        }

        /// The content that is found for this path; `None`: the pipeline is asked.
        fn body(&self, path: &str) -> Option<String> {
            let pipeline = Pipeline::new(b"assets/".to_vec(), self.rules.clone(), true);
            let found = pipeline.find(path.as_bytes(), 0, &PoolShare::of_reads())?;
            let Content::Bytes(bytes) = &found.choose(&AcceptEncoding::default()).content else {
                panic!("a small file")
            };
            Some(String::from_utf8(bytes.to_vec()).unwrap())
        }
    }

    #[test]
    fn names_are_taken_apart() {
        let asked = |folder, stem, digest, extension| Some(AskedAsset { folder, stem, digest, extension });
        for (path, expected) in [
            ("logo.png", asked(&b""[..], &b"logo"[..], None, "png")),
            ("a/b/logo.min.png", asked(b"a/b/", b"logo.min", None, "png")),
            ("logo-0123abcd.png", asked(b"", b"logo", Some(&b"0123abcd"[..]), "png")),
            ("logo-original.png", asked(b"", b"logo", Some(b"original"), "png")),
            ("logo-small.png", asked(b"", b"logo-small", None, "png")),
            ("a-0123abcd/logo.png", asked(b"a-0123abcd/", b"logo", None, "png")),
            ("-0123abcd.png", None),
            ("logo", None),
            ("a+b.png", None),
            ("a..png", None),
        ] {
            assert_eq!(AskedAsset::of(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn digests_are_those_of_the_pipelines() {
        let of = |digest| digest_of(&digest, b"abc");
        assert_eq!(
            of(AssetDigest::Sprockets { version: String::new() }),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            of(AssetDigest::Sprockets { version: "1.0".into() }),
            "bb4f468174ef9e720c1850aa70981ecf4028e5bc09c7f4eed2921a3ff36c9fb3"
        );
        assert_eq!(of(AssetDigest::Propshaft { version: String::new() }), "a9993e36");
    }

    #[test]
    fn a_plain_file_is_found_by_its_name_and_by_its_digest_alone() {
        let sources = Sources::sprockets(&[("first/a/logo.png", "abc")]);
        let digest = digest_of(&sources.rules.digest, b"abc");
        assert_eq!(sources.body("assets/a/logo.png").unwrap(), "abc");
        assert_eq!(sources.body(&format!("assets/a/logo-{digest}.png")).unwrap(), "abc");
        for path in [
            &*format!("assets/a/logo-{OTHER_DIGEST}.png"),
            "a/logo.png",
            "assets/logo.png",
            "assets/a/logo.css",
        ] {
            assert_eq!(sources.body(path), None, "{path}");
        }
        let propshaft = AssetDigest::Propshaft { version: "1".into() };
        let digest = digest_of(&propshaft, b"abc");
        let sources = Sources::new(propshaft, &[("first/logo.png", "abc")]);
        assert_eq!(sources.body("assets/logo.png"), None);
        assert_eq!(sources.body(&format!("assets/logo-{digest}.png")).unwrap(), "abc");
    }

    #[test]
    fn the_first_folder_wins() {
        let sources = Sources::sprockets(&[("first/logo.png", "first"), ("second/logo.png", "second")]);
        assert_eq!(sources.body("assets/logo.png").unwrap(), "first");
    }

    #[test]
    fn what_may_be_something_else_is_left_to_the_pipeline() {
        for other in ["first/logo.png.erb", "first/logo.erb", "first/logo/index.png", "first/logo"] {
            let sources = Sources::sprockets(&[(other, ""), ("second/logo.png", "second")]);
            assert_eq!(sources.body("assets/logo.png"), None, "{other}");
        }
        for other in [
            "first/logo.jpg",
            "first/logo-1.png",
            "first/logo.json",
            "first/logo/index.png",
            "second/logo.png.erb",
        ] {
            let sources = Sources::sprockets(&[(other, ""), ("first/logo.png", "first")]);
            assert_eq!(sources.body("assets/logo.png").unwrap(), "first", "{other}");
        }
        let sources = Sources::sprockets(&[("first/one.jpg", ""), ("first/one.jpeg", "")]);
        assert_eq!(sources.body("assets/one.jpg"), None);
    }

    #[test]
    fn contents_can_forbid_it() {
        let files = [
            ("first/a.css", "p {}"),
            ("first/b.css", "p { background: url(a.png) }"),
            ("first/c.json", "{}\n"),
            ("first/d.json", "{}\r\n"),
            ("first/e.json", "\u{feff}{}"),
        ];
        let sources = Sources::sprockets(&files);
        let found = files.map(|(name, _)| sources.body(&name.replace("first", "assets")).is_some());
        assert_eq!(found, [true, false, true, false, false]);
        fs::write(sources.folder.path().join("first/c.json"), b"\xff").unwrap();
        assert_eq!(sources.body("assets/c.json"), None);
    }

    #[test]
    fn a_large_file_is_read_and_is_known_until_it_changes() {
        let content = "0123456789abcde\n".repeat(READ_BYTES as usize / 16 + 1);
        let files = [("first/a.png", &*content), ("first/b.css", &content), ("first/c.json", &content)];
        let sources = Sources::sprockets(&files);
        let digest = digest_of(&sources.rules.digest, content.as_bytes());
        let pipeline = Pipeline::new(b"assets/".to_vec(), sources.rules.clone(), true);
        let knows = |name: &str, now_ms| {
            let file = File::open(sources.folder.path().join("first").join(name)).unwrap();
            let extension = name.rsplit('.').next().unwrap();
            let known = Known::of(&file, &sources.rules.plain[extension]).unwrap();
            pipeline.known_facts().of(&known, now_ms).is_some()
        };
        for name in ["a.png", "b.css"] {
            let (stem, extension) = name.split_once('.').unwrap();
            let path = format!("assets/{stem}-{digest}.{extension}");
            assert!(!knows(name, 0));
            let found = pipeline.find(path.as_bytes(), 0, &PoolShare::of_reads()).expect("served");
            assert!(knows(name, 0));
            assert!(!knows(name, FRESH_MS), "it may have changed within the same time stamp");
            let representation = found.choose(&AcceptEncoding::default());
            assert!(matches!(representation.content, Content::File(_)));
            assert_eq!(representation.length, content.len() as u64);
            assert!(representation.validators.ends_with(REVALIDATED), "it may change while it is sent");
        }
        let find = |path: String| pipeline.find(path.as_bytes(), 0, &PoolShare::of_reads());
        assert!(find(format!("assets/a-{OTHER_DIGEST}.png")).is_none());
        assert!(find("assets/c.json".into()).is_some());

        fs::write(sources.folder.path().join("first/a.png"), content.to_uppercase()).unwrap();
        assert!(find(format!("assets/a-{digest}.png")).is_none());
        let css = content.replacen("0123456789", "url(b.png)", 1);
        fs::write(sources.folder.path().join("first/b.css"), css).unwrap();
        assert!(find("assets/b.css".into()).is_none());
        fs::write(sources.folder.path().join("first/c.json"), vec![b' '; TEXT_BYTES as usize + 1]).unwrap();
        assert!(find("assets/c.json".into()).is_none());
    }
}
