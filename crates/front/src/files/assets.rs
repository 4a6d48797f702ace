//! What an application says about its assets.

use std::collections::HashMap;
use std::path::PathBuf;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// What the application says about its assets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assets {
    /// The path that theirs begin with, for example `/assets`.
    pub prefix: String,
    /// What answers for source files below it, if something does.
    pub pipeline: Option<AssetPipeline>,
}

/// An asset pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetPipeline {
    /// How it makes digests.
    pub digest: AssetDigest,
    /// Where it looks for files, in this order.
    pub folders: Vec<PathBuf>,
    /// The content types that it knows, by extension (without the dot).
    pub types: HashMap<String, String>,
    /// The extensions of files that it gives out as they are, with the conditions for that.
    pub plain: HashMap<String, PlainAsset>,
}

/// How a pipeline makes the digests in names. Both put them before the extension, behind a `-`, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// When a file is given out as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PlainAsset {
    /// Only if it is UTF-8 without byte order mark and carriage returns.
    pub text: bool,
    /// Only if it contains none of these.
    pub unless: Vec<String>,
}

impl AssetDigest {
    /// What is to be given the content.
    pub(super) fn begin(&self) -> Hasher {
        match self {
            AssetDigest::Sprockets { .. } => Hasher::Sha256(Sha256::new()),
            AssetDigest::Propshaft { .. } => Hasher::Sha1(Sha1::new()),
        }
    }

    /// The digits for a file whose content `hasher` was given.
    pub(super) fn end(&self, hasher: Hasher) -> String {
        let (AssetDigest::Sprockets { version } | AssetDigest::Propshaft { version }) = self;
        match hasher {
            Hasher::Sha256(content) if version.is_empty() => hexadecimal(&content.finalize()),
            Hasher::Sha256(content) => {
                let versioned = Sha256::new().chain_update(version).chain_update(content.finalize());
                hexadecimal(&versioned.finalize())
            }
            Hasher::Sha1(content) => hexadecimal(&content.chain_update(version).finalize()[..4]),
        }
    }
}

impl PlainAsset {
    /// Whether some contents are given out as they are, and others are not.
    pub(super) fn depends_on_content(&self) -> bool {
        self.text || !self.unless.is_empty()
    }

    pub(super) fn allows(&self, content: &[u8]) -> bool {
        let is_plain_text = || {
            std::str::from_utf8(content).is_ok()
                && !content.starts_with("\u{feff}".as_bytes())
                && !content.contains(&b'\r')
        };
        let contains = |mark: &String| memchr::memmem::find(content, mark.as_bytes()).is_some();
        (!self.text || is_plain_text()) && !self.unless.iter().any(contains)
    }
}

/// Takes the content of a file, piece by piece.
pub(super) enum Hasher {
    Sha256(Sha256),
    Sha1(Sha1),
}

impl Hasher {
    pub(super) fn take(&mut self, piece: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(piece),
            Hasher::Sha1(hasher) => hasher.update(piece),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
