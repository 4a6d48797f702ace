//! A file that is there, with everything that is sent about it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_tenant::About;

use super::folder::OpenFolder;
use crate::aside::file_reads::ServedFile;
use crate::aside::PoolShare;
use crate::compression::accept_encoding::{AcceptEncoding, Coding};
use crate::compression::content::is_compressible;
use crate::compression::rules::LEAST_BYTES;
use crate::files::content_type;
use crate::http_syntax::http_date;
use crate::message::answer::FieldLines;
use crate::message::conditions::{seconds, Validators};

/// Files up to this size are kept in memory, and sent together with the head.
pub(super) const SMALL_BYTES: u64 = 16 * 1024;

/// Of a representation that parts can be had of.
const ACCEPT_RANGES: &[u8] = b"accept-ranges: bytes\r\n";

/// A file and its compressed siblings.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// The path leads to a folder, and this is the page in it.
    pub(super) is_page_of_folder: bool,
    plain: Representation,
    /// In the order of preference.
    siblings: Vec<(Coding, Representation)>,
}

/// The siblings that a file may have, and the ends of their names: the smallest first.
const SIBLINGS: [(Coding, &[u8]); 3] =
    [(Coding::Brotli, b".br"), (Coding::Zstd, b".zst"), (Coding::Gzip, b".gz")];

/// A larger file is not compressed: the build can do that.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The codings for a file without siblings.
const CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// One of the forms in which a file can be sent.
#[derive(Debug)]
pub(super) struct Representation {
    pub(super) about: About,
    pub(super) content: Content,
    /// Bytes of the content.
    pub(super) length: u64,
    /// A strong entity tag, with its quotes.
    pub(super) etag: Vec<u8>,
    /// When it was last modified, in whole seconds.
    pub(super) last_modified: SystemTime,
    /// Encoded fields for every answer: validators, Vary, the application's own.
    pub(super) validators: Vec<u8>,
    /// Encoded fields for answers with content: its type and coding.
    pub(super) description: Vec<u8>,
    /// Whether its content may become shorter.
    is_compressible: bool,
}

/// Where the bytes are.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Box<[u8]>),
    File(Arc<ServedFile>),
}

impl FoundFile {
    /// Opens the file at `path` below the folder, and its siblings.
    pub(super) fn open(
        folder: &OpenFolder,
        path: &[u8],
        extra_fields: &[u8],
        reads: &PoolShare,
    ) -> Option<Self> {
        let content_type = content_type::of_file_name(path);
        let of = |opened| Representation::of(opened, SMALL_BYTES, reads);
        let mut plain = of(folder.open_file(path)?);
        let sibling =
            |(coding, end): &(Coding, &[u8])| Some((*coding, of(folder.open_file(&[path, end].concat())?)));
        let mut siblings: Vec<_> = SIBLINGS.iter().filter_map(sibling).collect();
        let varies = !siblings.is_empty();
        plain.describe(content_type, None, varies, extra_fields);
        for (coding, sibling) in &mut siblings {
            sibling.describe(content_type, Some(*coding), varies, extra_fields);
        }
        Some(FoundFile { is_page_of_folder: false, plain, siblings })
    }

    /// A file that has no siblings.
    pub(super) fn alone(mut plain: Representation, content_type: &str, extra_fields: &[u8]) -> Self {
        plain.describe(content_type, None, false, extra_fields);
        FoundFile { is_page_of_folder: false, plain, siblings: Vec::new() }
    }

    /// The form to send to a client that accepts this.
    pub(super) fn choose(&self, accepted: &AcceptEncoding) -> &Representation {
        let codings: Vec<_> = self.siblings.iter().map(|(coding, _)| *coding).collect();
        let chosen = accepted.choose(&codings);
        let sibling = self.siblings.iter().find(|(coding, _)| Some(*coding) == chosen);
        sibling.map_or(&self.plain, |(_, sibling)| sibling)
    }

    /// The file, where it has no sibling and may be compressed.
    pub(super) fn to_compress(&self) -> Option<&Representation> {
        let plain = &self.plain;
        let is_worth_it = plain.is_compressible && (LEAST_BYTES..=MOST_BYTES).contains(&plain.length);
        Some(plain).filter(|_| self.siblings.is_empty() && is_worth_it)
    }

    /// The coding in which a file without siblings is sent to a client that accepts this.
    pub(super) fn coding_for(accepted: &AcceptEncoding) -> Option<Coding> {
        accepted.choose(&CODINGS)
    }
}

impl Representation {
    /// Takes a file as it is now, with its content if that is of at most `kept_bytes`; otherwise those threads read it.
    pub(super) fn of((file, about): (File, About), kept_bytes: u64, reads: &PoolShare) -> Self {
        let (seconds, nanoseconds) = about.modified;
        let modified = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let content = read_small(&file, about.bytes, kept_bytes);
        Representation {
            length: content.as_ref().map_or(about.bytes, |bytes| bytes.len() as u64),
            etag: format!("\"{seconds:x}-{nanoseconds:x}-{:x}-{:x}\"", about.bytes, about.id.1).into_bytes(),
            // Never later than now (RFC 9110 section 8.8.2.1).
            last_modified: (SystemTime::UNIX_EPOCH + modified).min(SystemTime::now()),
            content: content
                .map_or_else(|| Content::File(Arc::new(ServedFile::opened(file, reads))), Content::Bytes),
            validators: Vec::new(),
            description: Vec::new(),
            is_compressible: false,
            about,
        }
    }

    /// What conditions are compared with.
    pub(super) fn known_by(&self) -> Validators<'_> {
        let last_modified = Some(seconds(self.last_modified));
        Validators { etag: Some(&self.etag), last_modified, length: self.length }
    }

    /// The fields of an answer with these bytes in this coding. Its entity tag is a weak one: the bytes may be others when they
    /// are made again.
    pub(super) fn add_fields_of_coding(&self, coding: Option<Coding>, fields: &mut FieldLines<'_>) {
        fields.add_lines(b"etag: W/");
        fields.add_lines(self.validators.strip_prefix(b"etag: ").unwrap_or(&self.validators));
        fields.add_lines(b"vary: accept-encoding\r\n");
        let Some(coding) = coding else { return };
        fields.add_lines(self.description.strip_prefix(ACCEPT_RANGES).unwrap_or(&self.description));
        fields.add(b"content-encoding", coding.name().as_bytes());
    }

    /// Encodes the fields.
    fn describe(&mut self, content_type: &str, coding: Option<Coding>, varies: bool, extra_fields: &[u8]) {
        self.is_compressible = is_compressible(content_type.as_bytes());
        let fields = &mut self.validators;
        fields.extend_from_slice(b"etag: ");
        fields.extend_from_slice(&self.etag);
        fields.extend_from_slice(b"\r\nlast-modified: ");
        fields.extend_from_slice(&http_date(self.last_modified));
        fields.extend_from_slice(b"\r\n");
        if varies {
            fields.extend_from_slice(b"vary: accept-encoding\r\n");
        }
        fields.extend_from_slice(extra_fields);
        let fields = &mut self.description;
        fields.extend_from_slice(ACCEPT_RANGES);
        fields.extend_from_slice(b"content-type: ");
        fields.extend_from_slice(content_type.as_bytes());
        fields.extend_from_slice(b"\r\n");
        if let Some(coding) = coding {
            fields.extend_from_slice(b"content-encoding: ");
            fields.extend_from_slice(coding.name().as_bytes());
            fields.extend_from_slice(b"\r\n");
        }
    }
}

/// The content of a file of at most `most` bytes; `None` for others, and for a file that cannot be read as a whole.
fn read_small(file: &File, size: u64, most: u64) -> Option<Box<[u8]>> {
    if size > most {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes.into())
}
