//! What an application reports about itself when it has booted.

use crate::table::Fact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A way in which Highball tunes Ruby, as a mold reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// What is on: `YJIT`.
    #[serde(default)]
    pub name: Option<String>,
    /// Why it is off.
    #[serde(default)]
    pub off: Option<String>,
    /// Whether this Ruby does not have it.
    #[serde(default)]
    pub is_missing: bool,
}

impl Tuning {
    /// Of the compiler: `YJIT on`, `YJIT off: jit = off`.
    pub fn of_compiler(&self) -> String {
        let on = if self.name.is_some() { " on" } else { "" };
        self.words("YJIT off") + on
    }

    /// Of the collector: what Highball does, or `as Ruby has it: gc = off`.
    pub fn of_collector(&self) -> String {
        self.words("as Ruby has it")
    }

    /// Of the allocator: `jemalloc 5.3.1`, or `the system's: allocator = system`.
    pub fn of_allocator(&self) -> String {
        self.words("the system's")
    }

    /// Of the boot cache: `1340 of 1347 files`, or `off: boot_cache = off`.
    pub fn of_boot_cache(&self) -> String {
        self.words("off")
    }

    /// What is on, or `off` and why.
    fn words(&self, off: &str) -> String {
        match (&self.name, &self.off) {
            (Some(name), _) => name.clone(),
            (None, Some(why)) => format!("{off}: {why}"),
            (None, None) => off.into(),
        }
    }
}

/// The Ruby of an application, and how Highball tunes it. Without Ruby, nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RubyRuntime {
    /// The version: `3.1.2`.
    pub ruby: Option<String>,
    /// The compiler.
    #[serde(default)]
    pub jit: Option<Box<Tuning>>,
    /// The garbage collector.
    #[serde(default)]
    pub gc: Option<Box<Tuning>>,
    /// The library that serves its malloc.
    #[serde(default)]
    pub allocator: Option<Box<Tuning>>,
    /// The cache of compiled Ruby files.
    #[serde(default)]
    pub boot_cache: Option<Box<Tuning>>,
}

impl RubyRuntime {
    /// How Highball has Ruby work, for people.
    pub fn facts(&self) -> Vec<Fact> {
        let RubyRuntime { gc, allocator, boot_cache, .. } = self;
        let mut facts = Vec::new();
        facts.extend(gc.as_ref().map(|gc| ("collector", gc.of_collector())));
        facts.extend(allocator.as_ref().map(|allocator| ("allocator", allocator.of_allocator())));
        facts.extend(boot_cache.as_ref().map(|cache| ("boot cache", cache.of_boot_cache())));
        facts
    }
}

/// What a mold reports about the application it has loaded.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Booted {
    /// Process id of the mold.
    pub pid: i32,
    /// Its Ruby; empty for a static site.
    #[serde(flatten)]
    pub runtime: RubyRuntime,
    /// The Rack release, for example `2.2.6`; `None` for a static site.
    pub rack: Option<String>,
    /// The framework and its version, for example `Rails 6.1.7` or `Rack`.
    pub framework: String,
    /// The folder of static files, if the application has one.
    #[serde(default, with = "highball_text::exact")]
    pub public: Option<PathBuf>,
    /// Response headers that the application adds to its static files.
    #[serde(default)]
    pub public_headers: BTreeMap<String, String>,
    /// Where the assets of a Rails application are.
    #[serde(default)]
    pub assets: Option<Box<Assets>>,
    /// Whether the application can be booted again: not if it was given as an object.
    pub restartable: bool,
    /// What it does that will make trouble later.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What Highball could do for it, and has not been asked to.
    #[serde(default)]
    pub offers: Vec<Finding>,
}

/// What an application reports about its assets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Assets {
    /// The path that theirs begin with, for example `/assets`.
    pub prefix: String,
    /// What answers for source files there, in development.
    pub pipeline: Option<AssetPipeline>,
}

/// An asset pipeline, and which files it gives out as they are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AssetPipeline {
    /// How names get their digests.
    #[serde(flatten)]
    pub digest: AssetDigest,
    /// Where files are looked for, in this order.
    #[serde(with = "highball_text::exact")]
    pub folders: Vec<PathBuf>,
    /// The content types that it knows, by extension (without the dot).
    pub types: BTreeMap<String, String>,
    /// Files of which extensions it gives out as they are, and on which condition.
    pub plain: BTreeMap<String, PlainAsset>,
}

/// How a pipeline makes the digests in names. Both put them before the extension, behind a `-`, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "scheme", rename_all = "snake_case")]
pub enum AssetDigest {
    /// Sprockets: the SHA-256 of the content; or, if it has a version, of that and the former. Names may lack it.
    Sprockets {
        /// The environment's version; empty for none.
        version: String,
    },
    /// Propshaft: the first eight digits of the SHA-1 of the content and its version.
    Propshaft {
        /// The load path's version.
        version: String,
    },
}

/// When an asset pipeline gives a file out as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct PlainAsset {
    /// Only if it is UTF-8 without a byte order mark and without carriage returns.
    pub text: bool,
    /// Only if it contains none of these.
    pub unless: Vec<String>,
}

/// Something that did not keep the application from booting, and that somebody should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its short name, which never changes.
    pub cause: String,
    /// What was found.
    pub what: String,
    /// The file that it is about.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// The command that does it.
    pub command: Option<String>,
}

impl Finding {
    /// `path:line`, if it is about a place.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}
