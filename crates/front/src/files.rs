//! Files of the application's public folder, served before the application is asked.
//!
//! In the order of a request:
//!
//! - [`safe_path`]: from the target's path to a relative path that cannot leave the folder;
//! - [`folder`]: the public folder, opened, and a list of what is in it, so that a request that is not
//!   for a file costs no system call;
//! - [`finder`]: asking the file system;
//! - [`known_files`]: having that done on another thread, and answering from memory;
//! - [`found_file`]: a file with what is sent about it, and its compressed siblings;
//! - [`fingerprint`]: whether its name says that it will never change;
//! - [`pipeline`]: source files that a Rails application's asset pipeline would give out as they are;
//! - [`reading`]: what their content says about that;
//! - [`compressed`]: files without siblings, compressed once;
//! - [`site`]: what is different where there is no application.
//!
//! Whatever is not a plain, visible, regular file is "not mine": the application answers.

mod assets;
mod compressed;
pub mod content_type;
mod finder;
mod fingerprint;
mod folder;
mod found_file;
mod known_files;
mod pipeline;
mod reading;
mod safe_path;
mod site;

use std::rc::Rc;
use std::sync::Arc;

use highball_ring::frame::is_token;
use highball_users::User;

use crate::aside::file_reads::Ahead;
use crate::aside::PoolShare;
use crate::compression::accept_encoding::{AcceptEncoding, Coding};
use crate::compression::room::AppRoom;
use crate::message::answer::{AnswerEvent, AnswerEvents, FilePart};
use crate::message::conditions::{self, content_range, Verdict};
use crate::message::request_head::{known_key, Head, Method};
use crate::pending::Pending;
use compressed::{Compressed, CompressedFiles};
pub(crate) use finder::Finder;
use found_file::{Content, FoundFile, Representation};
use known_files::KnownFiles;
use safe_path::SafePath;

/// How long an answer of the file system is believed, in milliseconds.
const FRESH_MS: u64 = 200;

/// The static files of one application, for one thread.
#[derive(Debug)]
pub(crate) struct StaticFiles {
    known: Rc<KnownFiles>,
    /// Compressed files; none: files are not compressed.
    compressed: Option<Rc<CompressedFiles>>,
    /// Whether the files are all that there is.
    of_site: bool,
}

/// A request that may be for a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaticRequest<'a> {
    /// The request's head.
    pub(crate) head: Head<'a>,
    /// What of its path is below the prefix of the application; empty if that is asked for without a slash at its end.
    pub(crate) path: &'a [u8],
    /// The time, in milliseconds: a clock that only goes forward.
    pub(crate) now_ms: u64,
    /// Whether it may wait.
    pub(crate) may_wait: bool,
}

impl StaticRequest<'_> {
    fn accepted_encodings(&self) -> AcceptEncoding {
        AcceptEncoding::of(self.head.values_of(known_key::ACCEPT_ENCODING))
    }

    fn has_range(&self) -> bool {
        self.head.field(known_key::RANGE).is_some()
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum StaticAnswer {
    /// The application is to be asked.
    NotMine,
    /// Something has to be found out first; then the same is to be looked up again.
    Pending(Pending),
    /// The whole answer was added to the events.
    Given,
}

impl StaticFiles {
    /// Serves the files that are found so, as this user; the threads of that `pool` look for them.
    pub(crate) fn new(finder: Finder, user: Option<&User>, pool: &PoolShare) -> Self {
        let known = KnownFiles::new(finder.opened_as(user), pool.clone());
        StaticFiles { known, compressed: None, of_site: false }
    }

    /// The same, and compresses them; within that room.
    #[must_use]
    pub(crate) fn compressed_in(self, room: Option<&AppRoom>) -> Self {
        StaticFiles { compressed: room.cloned().map(CompressedFiles::new), ..self }
    }

    /// Answers a request if it is for a file.
    pub(crate) fn lookup(&self, request: &StaticRequest<'_>, events: &mut AnswerEvents) -> StaticAnswer {
        if !request.head.may_be_for_file() {
            return StaticAnswer::NotMine;
        }
        let Some(path) = SafePath::of_target(request.path) else {
            return StaticAnswer::NotMine;
        };
        match self.find(&path, request) {
            Ok(Some(found)) if self.of_site && path.lacks_slash(&found) => site::add_slash(request, events),
            Ok(Some(found)) => self.answer(&found, request, events),
            Ok(None) => StaticAnswer::NotMine,
            Err(pending) => StaticAnswer::Pending(pending),
        }
    }

    /// Whether the files are all that there is.
    pub(crate) fn is_site(&self) -> bool {
        self.of_site
    }

    /// Closes files that have not been asked for lately.
    pub(crate) fn close_idle(&self, now_ms: u64) {
        self.known.forget_old(now_ms);
        self.compressed.iter().for_each(|compressed| compressed.forget_old(now_ms));
    }

    fn find(
        &self,
        path: &SafePath<'_>,
        request: &StaticRequest<'_>,
    ) -> Result<Option<Rc<FoundFile>>, Pending> {
        let found = self.known.find(path, request.now_ms);
        // A machine that is very busy finds out less in time than it forgets.
        found.or_else(|pending| if request.may_wait { Err(pending) } else { Ok(self.known.latest(path)) })
    }
}

impl StaticFiles {
    /// The answer to a request for a file that is there.
    fn answer(
        &self,
        found: &FoundFile,
        request: &StaticRequest<'_>,
        events: &mut AnswerEvents,
    ) -> StaticAnswer {
        let accepted = request.accepted_encodings();
        let representation = found.choose(&accepted);
        let verdict = conditions::judge(&request.head, representation.known_by());
        let to_compress = self.compressed.as_ref().zip(found.to_compress());
        if let Some((compressed, plain)) = to_compress {
            let coding =
                FoundFile::coding_for(&accepted).filter(|coding| !compressed.is_useless(plain, *coding));
            match (coding, verdict) {
                (Some(coding), Verdict::Whole) if !request.has_range() => {
                    match compressed.find(plain, coding, request.now_ms, request.may_wait) {
                        Compressed::Kept(bytes) => {
                            return push_compressed(plain, coding, &bytes, request, events)
                        }
                        Compressed::Pending(pending) => return StaticAnswer::Pending(pending),
                        Compressed::Not => {}
                    }
                }
                (Some(_), Verdict::NotModified) => return push_not_modified(plain, events),
                _ => {}
            }
        }
        let (status, offset, length) = verdict.part_of(representation.length);
        let varies = to_compress.is_some();
        push_answer(representation, Part { status, offset, length, varies }, request, events)
    }
}

/// The whole of a file, in a coding.
fn push_compressed(
    plain: &Representation,
    coding: Coding,
    bytes: &[u8],
    request: &StaticRequest<'_>,
    events: &mut AnswerEvents,
) -> StaticAnswer {
    let is_head_method = request.head.method == Method::Head;
    events.push_whole(200, is_head_method, bytes, |fields| plain.add_fields_of_coding(Some(coding), fields));
    StaticAnswer::Given
}

/// The client has a file that it would get in a coding.
fn push_not_modified(plain: &Representation, events: &mut AnswerEvents) -> StaticAnswer {
    events.push_front_head(304, true, None, |fields| plain.add_fields_of_coding(None, fields));
    events.push(AnswerEvent::End);
    StaticAnswer::Given
}

/// What is sent of a file, and with which status; offset and length in bytes.
struct Part {
    status: u16,
    offset: u64,
    length: u64,
    /// Whether another client would get it compressed.
    varies: bool,
}

fn push_answer(
    representation: &Representation,
    part: Part,
    request: &StaticRequest<'_>,
    events: &mut AnswerEvents,
) -> StaticAnswer {
    let Part { status, offset, length, varies } = part;
    let whole = representation.length;
    let is_head_method = request.head.method == Method::Head;
    let content_length = (status != 304).then_some(length);
    events.push_front_head(status, is_head_method, content_length, |fields| {
        fields.add_lines(&representation.validators);
        if varies {
            fields.add(b"vary", b"accept-encoding");
        }
        if matches!(status, 200 | 206 | 404) {
            fields.add_lines(&representation.description);
        }
        match status {
            206 => fields.add(b"content-range", &content_range(Some((offset, length)), whole)),
            416 => fields.add(b"content-range", &content_range(None, whole)),
            _ => {}
        }
    });
    if !is_head_method && length > 0 {
        match &representation.content {
            Content::File(file) => {
                let (file, ahead) = (Arc::clone(file), Ahead::default());
                events.push_file(FilePart { file, offset, length, ahead });
            }
            // Both fit: they lie within the content, which is in memory.
            Content::Bytes(bytes) => events.push_bytes(&bytes[offset as usize..(offset + length) as usize]),
        }
    }
    events.push(AnswerEvent::End);
    StaticAnswer::Given
}

/// The application's own fields, without the server's fields and without invalid ones.
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
        let good_name = is_token(name.as_bytes());
        let good_value = !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        if !good_name || !good_value {
            tracing::warn!(
                name: "static_header_invalid", field = name, "header field for static files left out: it cannot be sent"
            );
        } else if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            tracing::warn!(
                name: "static_header_reserved",
                field = name, "header field for static files left out: the server sets it itself"
            );
        } else {
            encoded.extend_from_slice(format!("{}: {value}\r\n", name.to_ascii_lowercase()).as_bytes());
        }
    }
    encoded
}

#[cfg(test)]
mod compressed_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting_tests;
