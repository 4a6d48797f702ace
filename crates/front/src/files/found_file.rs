//! A file that is there, with everything that is sent about it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_tenant::About;

use super::encodings::{self, Coding};
use super::folder::OpenFolder;
use crate::aside::file_reads::ServedFile;
use crate::aside::Turn;
use crate::files::content_type;
use crate::http_syntax::http_date;

/// Files up to this size are kept in memory, and sent together with the head.
pub(super) const SMALL_BYTES: u64 = 16 * 1024;

/// A file and its compressed siblings.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// The path that was asked for is that of a folder, and this is the page in it.
    pub(super) is_page_of_folder: bool,
    plain: Representation,
    brotli: Option<Representation>,
    gzip: Option<Representation>,
}

/// One of the forms in which a file can be sent.
#[derive(Debug)]
pub(super) struct Representation {
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
}

/// Where the bytes are.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Box<[u8]>),
    File(Arc<ServedFile>),
}

impl FoundFile {
    /// Opens the file at `path` below the folder, and its siblings.
    pub(super) fn open(folder: &OpenFolder, path: &[u8], extra_fields: &[u8], reads: &Turn) -> Option<Self> {
        let content_type = content_type::of_file_name(path);
        let of = |opened| Representation::of(opened, SMALL_BYTES, reads);
        let plain = of(folder.open_file(path)?);
        let sibling = |suffix: &[u8]| Some(of(folder.open_file(&[path, suffix].concat())?));
        let mut found =
            FoundFile { is_page_of_folder: false, plain, brotli: sibling(b".br"), gzip: sibling(b".gz") };
        let varies = found.brotli.is_some() || found.gzip.is_some();
        found.plain.describe(content_type, None, varies, extra_fields);
        for (sibling, coding) in [(&mut found.brotli, Coding::Brotli), (&mut found.gzip, Coding::Gzip)] {
            if let Some(sibling) = sibling {
                sibling.describe(content_type, Some(coding), varies, extra_fields);
            }
        }
        Some(found)
    }

    /// A file that has no siblings.
    pub(super) fn alone(mut plain: Representation, content_type: &str, extra_fields: &[u8]) -> Self {
        plain.describe(content_type, None, false, extra_fields);
        FoundFile { is_page_of_folder: false, plain, brotli: None, gzip: None }
    }

    /// The form to send to a client with this Accept-Encoding.
    pub(super) fn choose(&self, accept_encoding: &[u8]) -> &Representation {
        let has = |coding| match coding {
            Coding::Brotli => self.brotli.is_some(),
            Coding::Gzip => self.gzip.is_some(),
        };
        let sibling = match encodings::choose(accept_encoding, has) {
            Some(Coding::Brotli) => self.brotli.as_ref(),
            Some(Coding::Gzip) => self.gzip.as_ref(),
            None => None,
        };
        sibling.unwrap_or(&self.plain)
    }
}

impl Representation {
    /// Takes a file as it is now, with its content if that is of at most `kept_bytes`; otherwise it is read in that turn.
    pub(super) fn of((file, about): (File, About), kept_bytes: u64, reads: &Turn) -> Self {
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
        }
    }

    /// Encodes the fields.
    fn describe(&mut self, content_type: &str, coding: Option<Coding>, varies: bool, extra_fields: &[u8]) {
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
        fields.extend_from_slice(b"accept-ranges: bytes\r\ncontent-type: ");
        fields.extend_from_slice(content_type.as_bytes());
        fields.extend_from_slice(b"\r\n");
        if let Some(coding) = coding {
            fields.extend_from_slice(b"content-encoding: ");
            fields.extend_from_slice(coding.name().as_bytes());
            fields.extend_from_slice(b"\r\n");
        }
    }
}

/// The content of a file of at most `most` bytes; `None` for others, and for one that cannot be read as a whole.
fn read_small(file: &File, size: u64, most: u64) -> Option<Box<[u8]>> {
    if size > most {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes.into())
}
