//! Files of the application's public folder, served before the application is asked.
//!
//! In the order of a request:
//!
//! - [`safe_path`]: from the target's path to a relative path that cannot leave the folder;
//! - [`folder`]: the public folder, opened, and a list of what is in it, so that a request that is not
//!   for a file costs no system call;
//! - [`found_file`]: a file with what is sent about it, and its compressed siblings;
//! - [`fingerprint`]: whether its name says that it will never change;
//! - [`pipeline`]: source files that a Rails application's asset pipeline would give out as they are;
//! - [`reading`]: what their content says about that;
//! - [`encodings`] and [`conditions`]: which of them, and how much of it, the client wants;
//! - [`site`]: what is different where there is no application.
//!
//! Whatever is not a plain, visible, regular file is "not mine": the application answers.

mod conditions;
mod encodings;
mod fingerprint;
mod folder;
mod found_file;
mod pipeline;
mod reading;
mod safe_path;
mod site;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use highball_config::User;
use highball_ring::frame::is_token_byte;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::clock::now_ms;
use crate::request_head::{known_key, Method, RequestHead};
use crate::response_head::{reason_phrase, write_connection, write_number, DateCache};
use conditions::Verdict;
use folder::Folder;
use found_file::{Content, FoundFile, Representation};
use pipeline::Pipeline;
pub use pipeline::{AssetDigest, AssetPipeline, Assets, PlainAsset};
pub use reading::Unread;
use safe_path::SafePath;

/// How long an answer of the file system is believed, in milliseconds.
const FRESH_MS: u64 = 200;

/// The same where another process opens the files.
const FRESH_BY_OPENER_MS: u64 = 1000;

/// Most files that are kept open (each with up to two compressed siblings).
const KEPT_FILES: usize = 64;

/// The static files of one application, for one thread.
#[derive(Debug)]
pub struct StaticFiles {
    folder: RefCell<Folder>,
    kept: RefCell<HashMap<Box<[u8]>, Rc<FoundFile>>>,
    /// Paths that are none of files, and until when that is believed, in milliseconds: where it costs to ask again.
    absent: RefCell<HashMap<Box<[u8]>, u64>>,
    /// Header fields for every file, encoded.
    extra_fields: Vec<u8>,
    /// Header fields for files that will never change, encoded.
    fields_of_immutable: Vec<u8>,
    /// Where the asset pipeline puts what it has built: a folder below the public one, with its slash.
    assets: Option<Vec<u8>>,
    /// What the asset pipeline answers with before anything is built.
    pipeline: Option<RefCell<Pipeline>>,
    /// Whose turn it is to read a large file.
    turn: Mutex<()>,
    /// Whether the files are all that there is.
    of_site: bool,
}

/// A request that may be for a file.
#[derive(Debug, Clone, Copy)]
pub struct StaticRequest<'a> {
    /// The request's head.
    pub head: &'a RequestHead,
    /// The buffer that it was parsed from.
    pub buffer: &'a [u8],
    /// What of its path is below the prefix of the application; empty if that is asked for without a slash at its end.
    pub path: &'a [u8],
    /// Whether the connection is kept after the answer.
    pub keep_alive: bool,
    /// The time, in milliseconds: a clock that only goes forward.
    pub now_ms: u64,
}

impl StaticRequest<'_> {
    fn accepted_encodings(&self) -> &[u8] {
        self.head.field(known_key::ACCEPT_ENCODING, self.buffer).unwrap_or(b"")
    }
}

/// What became of a request.
#[derive(Debug)]
pub enum StaticAnswer {
    /// The application is to be asked.
    NotMine,
    /// This file has to be read first (see [`StaticFiles::read`]); then the same is to be looked up again.
    Unread(Unread),
    /// The whole answer has been written.
    Written {
        /// Its status.
        status: u16,
        /// Bytes of its body.
        body_bytes: u64,
    },
    /// The head has been written; a part of a file is to follow.
    File {
        /// The status.
        status: u16,
        /// The file; others read it too, so read at positions.
        file: Arc<File>,
        /// Where the part begins, in bytes.
        offset: u64,
        /// How long it is, in bytes; never 0. If the file ends earlier, the connection must be closed.
        length: u64,
    },
}

impl StaticFiles {
    /// Serves the files in the folder `root`, which need not exist (yet), with these header fields added.
    pub fn new(root: PathBuf, headers: &[(String, String)], follow_symlinks: bool) -> Self {
        let extra_fields = encode_extra_fields(headers);
        let is_said = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        let immutable = if is_said { b"" } else { fingerprint::IMMUTABLE };
        StaticFiles {
            folder: RefCell::new(Folder::new(root, follow_symlinks)),
            kept: RefCell::default(),
            absent: RefCell::default(),
            fields_of_immutable: [&extra_fields, immutable].concat(),
            extra_fields,
            assets: None,
            pipeline: None,
            turn: Mutex::default(),
            of_site: false,
        }
    }

    /// The same with the assets of a Rails application.
    #[must_use]
    pub fn with_assets(mut self, assets: Assets, follow_symlinks: bool) -> Self {
        let prefix = assets.prefix.trim_matches('/');
        if !prefix.is_empty() {
            let prefix = [prefix.as_bytes(), b"/"].concat();
            let pipeline = assets.pipeline;
            self.pipeline =
                pipeline.map(|rules| RefCell::new(Pipeline::new(prefix.clone(), rules, follow_symlinks)));
            self.assets = Some(prefix);
        }
        self
    }

    /// The same, but with files opened by the rights of this user: an application has a say in which they are, by links
    /// and by what it says of itself, and is to give out none that it could not read.
    #[must_use]
    pub fn opened_as(mut self, user: Option<&User>) -> Self {
        if let Some(user) = user {
            self.folder.get_mut().user = Some(user.clone());
            if let Some(pipeline) = &mut self.pipeline {
                pipeline.get_mut().open_as(user);
            }
        }
        self
    }

    /// Answers a request if it is for a file: appends the head, and the body if it is small, to `out`.
    pub fn lookup(&self, request: &StaticRequest<'_>, date: &DateCache, out: &mut Vec<u8>) -> StaticAnswer {
        if !request.head.may_be_for_file() {
            return StaticAnswer::NotMine;
        }
        let Some(path) = SafePath::of_target(request.path) else {
            return StaticAnswer::NotMine;
        };
        match self.find(&path, request.now_ms) {
            Ok(Some(found)) if self.of_site && path.lacks_slash(&found) => {
                site::add_slash(request, date, out)
            }
            Ok(Some(found)) => answer(&found, request, date, out),
            Ok(None) => StaticAnswer::NotMine,
            Err(unread) => StaticAnswer::Unread(unread),
        }
    }

    /// Reads a large file on a thread of its own, one at a time. If that does not lead anywhere, because the file is being
    /// written for example, it is still unread when it is looked up again.
    pub async fn read(&self, unread: Unread) {
        let Some(pipeline) = &self.pipeline else { return };
        let _turn = self.turn.lock().await;
        if pipeline.borrow().knows(&unread, now_ms()) {
            return; // it has been read for somebody else
        }
        match spawn_blocking(move || unread.read()).await {
            Ok(Ok((known, said))) => pipeline.borrow_mut().learn(known, said, now_ms()),
            Ok(Err(error)) => tracing::debug!(%error, "an asset could not be read; the application is asked"),
            Err(error) => tracing::error!(%error, "reading an asset failed; the application is asked"),
        }
    }

    /// Whether the files are all that there is.
    pub fn is_site(&self) -> bool {
        self.of_site
    }

    /// Closes files that have not been asked for lately.
    pub fn close_idle(&self, now_ms: u64) {
        self.kept.borrow_mut().retain(|_, found| found.is_fresh(now_ms));
        self.absent.borrow_mut().retain(|_, until_ms| now_ms < *until_ms);
    }

    fn find(&self, path: &SafePath<'_>, now_ms: u64) -> Result<Option<Rc<FoundFile>>, Unread> {
        if let Some(found) = self.kept.borrow().get(path.as_bytes()) {
            if found.is_fresh(now_ms) {
                return Ok(Some(Rc::clone(found)));
            }
        }
        let found = match self.find_in_public(path, now_ms) {
            Some(found) => Some(found),
            None => self.find_in_pipeline(path, now_ms).transpose()?,
        };
        let Some(found) = found.map(Rc::new) else {
            self.kept.borrow_mut().remove(path.as_bytes());
            return Ok(None);
        };
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= KEPT_FILES {
            kept.retain(|_, found| found.is_fresh(now_ms));
        }
        if kept.len() < KEPT_FILES {
            kept.insert(path.as_bytes().into(), Rc::clone(&found));
        }
        Ok(Some(found))
    }

    fn find_in_public(&self, path: &SafePath<'_>, now_ms: u64) -> Option<FoundFile> {
        let mut folder = self.folder.borrow_mut();
        if !folder.may_hold(path.first_component(), now_ms) {
            return None;
        }
        let mut absent = self.absent.borrow_mut();
        if absent.get(path.as_bytes()).is_some_and(|until_ms| now_ms < *until_ms) {
            return None;
        }
        let found = path.candidates().find_map(|candidate| {
            let never_changes = fingerprint::is_in(&candidate, self.assets.as_deref());
            let fields = if never_changes { &self.fields_of_immutable } else { &self.extra_fields };
            let mut found = FoundFile::open(&folder, &candidate, fields, now_ms)?;
            found.is_page_of_folder = candidate[path.name().len()..] == *b"/index.html";
            Some(found)
        });
        let is_costly = folder.fresh_ms() > FRESH_MS;
        if found.is_none() && is_costly && absent.len() < KEPT_FILES {
            absent.insert(path.as_bytes().into(), now_ms + FRESH_MS);
        }
        found
    }

    fn find_in_pipeline(&self, path: &SafePath<'_>, now_ms: u64) -> Option<Result<FoundFile, Unread>> {
        let pipeline = self.pipeline.as_ref().filter(|_| !path.is_of_folder())?;
        pipeline.borrow_mut().find(path.name(), now_ms)
    }
}

/// Writes the answer to a request for a file that is there.
fn answer(
    found: &FoundFile,
    request: &StaticRequest<'_>,
    date: &DateCache,
    out: &mut Vec<u8>,
) -> StaticAnswer {
    let field = |key| request.head.field(key, request.buffer);
    let representation = found.choose(request.accepted_encodings());
    let get = request.head.method == Method::Get;
    let (status, offset, length) = match conditions::judge(&field, get, representation) {
        Verdict::Whole => (200, 0, representation.length),
        Verdict::Part { offset, length } => (206, offset, length),
        Verdict::NotModified => (304, 0, 0),
        Verdict::PreconditionFailed => (412, 0, 0),
        Verdict::RangeNotSatisfiable => (416, 0, 0),
    };
    write_answer(representation, Part { status, offset, length }, request, date, out)
}

/// What is sent of a file, and with which status; offset and length in bytes.
struct Part {
    status: u16,
    offset: u64,
    length: u64,
}

fn write_answer(
    representation: &Representation,
    part: Part,
    request: &StaticRequest<'_>,
    date: &DateCache,
    out: &mut Vec<u8>,
) -> StaticAnswer {
    let Part { status, offset, length } = part;
    let whole = representation.length;
    write_status_line(status, out);
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(&date.now());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&representation.validators);
    if matches!(status, 200 | 206 | 404) {
        out.extend_from_slice(&representation.description);
    }
    match status {
        206 => write_content_range(Some((offset, length)), whole, out),
        416 => write_content_range(None, whole, out),
        _ => {}
    }
    if status != 304 {
        out.extend_from_slice(b"content-length: ");
        write_number(length, out);
        out.extend_from_slice(b"\r\n");
    }
    write_connection(request.keep_alive, request.head.version, out);
    out.extend_from_slice(b"\r\n");
    let length = if request.head.method == Method::Get { length } else { 0 };
    body(representation, status, offset, length, out)
}

fn body(
    representation: &Representation,
    status: u16,
    offset: u64,
    length: u64,
    out: &mut Vec<u8>,
) -> StaticAnswer {
    match &representation.content {
        Content::File(file) if length > 0 => {
            StaticAnswer::File { status, file: Arc::clone(file), offset, length }
        }
        Content::File(_) => StaticAnswer::Written { status, body_bytes: 0 },
        Content::Bytes(bytes) => {
            // Both fit: they lie within the content, which is in memory.
            out.extend_from_slice(&bytes[offset as usize..(offset + length) as usize]);
            StaticAnswer::Written { status, body_bytes: length }
        }
    }
}

fn write_status_line(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(reason_phrase(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// `part`: offset and length; without one, none can be had (RFC 9110 section 14.4).
fn write_content_range(part: Option<(u64, u64)>, whole: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-range: bytes ");
    match part {
        Some((offset, length)) => {
            write_number(offset, out);
            out.push(b'-');
            write_number(offset + length - 1, out);
        }
        None => out.push(b'*'),
    }
    out.push(b'/');
    write_number(whole, out);
    out.extend_from_slice(b"\r\n");
}

/// The application's own fields, without those that are ours to say and those that could not be sent.
fn encode_extra_fields(headers: &[(String, String)]) -> Vec<u8> {
    const OURS: [&str; 12] = [
        "accept-ranges",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "date",
        "etag",
        "keep-alive",
        "last-modified",
        "transfer-encoding",
        "vary",
    ];
    let mut encoded = Vec::new();
    for (name, value) in headers {
        let good_name = !name.is_empty() && name.bytes().all(is_token_byte);
        let good_value = !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        if !good_name || !good_value {
            tracing::warn!(field = name, "header field for static files left out: it cannot be sent");
        } else if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            tracing::warn!(field = name, "header field for static files left out: the server sets it itself");
        } else {
            encoded.extend_from_slice(format!("{}: {value}\r\n", name.to_ascii_lowercase()).as_bytes());
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
