//! Facts about the content of a source file: its digest, and whether a pipeline gives it out as it is.
//!
//! The facts about large files are known until they change.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use highball_link::{AssetDigest, PlainAsset};
use highball_tenant::{about, About};

use super::assets::{allows, depends_on_content, Hasher};
use super::folder::SETTLED;
use super::FRESH_MS;

/// How much of a file is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Most files with known facts; beyond that all are forgotten.
const KNOWN_FILES: usize = 1024;

/// The facts about the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The digits that belong into its name.
    pub(super) digest: String,
    /// Whether it is given out as it is.
    pub(super) is_plain: bool,
}

impl Facts {
    pub(super) fn of(content: &[u8], digest: &AssetDigest, plain: &PlainAsset) -> Self {
        let mut hasher = Hasher::of(digest);
        hasher.take(content);
        Facts { digest: hasher.digits(digest), is_plain: allows(plain, content) }
    }

    /// The same of a large file.
    pub(super) fn by_reading(file: &File, known: &Known, digest: &AssetDigest) -> io::Result<Self> {
        let mut hasher = Hasher::of(digest);
        let mut text = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut offset = 0;
        while offset < known.file.bytes {
            let length = file.read_at(&mut chunk, offset)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            hasher.take(&chunk[..length]);
            if depends_on_content(&known.plain) {
                text.extend_from_slice(&chunk[..length]);
            }
            offset += length as u64;
        }
        Ok(Facts { digest: hasher.digits(digest), is_plain: allows(&known.plain, &text) })
    }
}

/// A file, for as long as it does not change, with the conditions under which it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Known {
    file: About,
    plain: PlainAsset,
}

impl Known {
    pub(super) fn of(file: &File, plain: &PlainAsset) -> io::Result<Self> {
        Ok(Known { file: about(file)?, plain: plain.clone() })
    }

    /// Whether a change after now must show.
    fn is_settled(&self) -> bool {
        self.file.changed_at().elapsed().is_ok_and(|age| age >= SETTLED)
    }
}

/// The facts about large files.
#[derive(Debug, Default)]
pub(super) struct KnownFacts(HashMap<Known, Remembered>);

#[derive(Debug)]
struct Remembered {
    facts: Facts,
    /// Until when that is believed, in milliseconds.
    until_ms: u64,
}

impl KnownFacts {
    pub(super) fn of(&self, known: &Known, now_ms: u64) -> Option<&Facts> {
        self.0
            .get(known)
            .filter(|remembered| now_ms < remembered.until_ms)
            .map(|remembered| &remembered.facts)
    }

    /// Remembers the facts about a file that was read up to `now_ms`.
    pub(super) fn remember(&mut self, known: Known, facts: Facts, now_ms: u64) {
        if self.0.len() >= KNOWN_FILES {
            self.0.clear();
        }
        let until_ms = if known.is_settled() { u64::MAX } else { now_ms + FRESH_MS };
        self.0.insert(known, Remembered { facts, until_ms });
    }
}
