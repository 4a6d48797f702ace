//! An answer as a list of events, which each protocol writes in its own way.
//!
//! What the front answers itself (files, refusals, pages) and what a worker answers are the same here: a head, bytes, and
//! parts of files, with an end. Nothing here knows a protocol. The events themselves hold no bytes: those lie one behind
//! the other in a buffer, in the order of the events, so that an answer costs no allocation.

mod spare;

use std::collections::{vec_deque, VecDeque};
use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use memchr::{memchr, memchr_iter};

use crate::aside::file_reads::{Ahead, ServedFile};
use crate::message::refusal::Refusal;

/// The next event of an answer.
#[derive(Debug)]
pub enum AnswerEvent {
    /// A head with a status below 200: another head follows.
    Interim(AnswerHead),
    /// The head.
    Head(AnswerHead),
    /// This number of the body's bytes.
    Bytes(usize),
    /// A part of a file, which belongs to the body.
    File(FilePart),
    /// The answer is complete.
    End,
    /// The application's answer is complete, and the response goes on with messages of the hub.
    Held,
    /// The answer cannot be completed: the client must notice.
    CutOff,
    /// No part of an answer was sent, and the client gets this instead.
    Refused(Refusal),
    /// No worker got the request, and it has to be routed again.
    GivenBack,
    /// From here on, the application has the connection: what it writes to this socket goes to the client.
    TakenOver(OwnedFd),
}

/// The head of an answer. Its fields are lines, `name: value` CR LF, as most protocols send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHead {
    /// The status code, 100 to 999.
    pub status: u16,
    /// How many bytes its lines have. They hold no field that says something about the connection or the body's length.
    pub field_bytes: usize,
    /// Where the body ends.
    pub body: AnswerBody,
    /// The length that the client gets to know, in bytes. There may be one without a body, in the answer to HEAD.
    pub content_length: Option<u64>,
    /// Which of the fields are there that an answer otherwise gets.
    pub has: AddedFields,
    /// Whether the application wants the connection to end after this answer.
    pub is_last: bool,
    /// Whether the application says that it changes protocols.
    pub is_upgrade: bool,
}

impl AnswerHead {
    /// A head of this status, without fields or a body.
    pub fn new(status: u16) -> Self {
        AnswerHead {
            status,
            field_bytes: 0,
            body: AnswerBody::None,
            content_length: None,
            has: AddedFields::default(),
            is_last: false,
            is_upgrade: false,
        }
    }

    /// Whether another head follows (1xx, but not 101).
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }
}

macro_rules! added_fields {
    ($($field:ident $name:literal),*) => {
        /// A field that the front adds to an answer, unless the answer has it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum AddedField {
            $(
                #[doc = concat!("The field `", $name, "`.")]
                $field
            ),*
        }

        impl AddedFields {
            const NAMES: &[(AddedField, &str)] = &[$((AddedField::$field, $name)),*];
        }
    };
}

added_fields! {
    Date "date",
    RequestId "x-request-id",
    Hsts "strict-transport-security"
}

/// Which of these fields an answer has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddedFields(u8);

impl AddedFields {
    /// Whether the answer has it.
    pub fn has(self, field: AddedField) -> bool {
        self.0 & (1 << field as u8) != 0
    }

    fn note(&mut self, name: &[u8]) {
        for (field, known) in AddedFields::NAMES {
            if name.eq_ignore_ascii_case(known.as_bytes()) {
                self.0 |= 1 << *field as u8;
            }
        }
    }
}

/// Where the body of an answer ends (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// There is none (HEAD; 1xx, 204, 205, 304).
    None,
    /// After this number of bytes.
    Length(u64),
    /// Where [`AnswerEvent::End`] says so.
    Unknown,
    /// Where the connection ends: the application has it, or speaks another protocol from here on.
    Connection,
}

/// A part of a file that is to be sent.
#[derive(Debug)]
pub struct FilePart {
    /// The open file; others may read it too, so it is read at positions.
    pub file: Arc<ServedFile>,
    /// The next byte to send.
    pub offset: u64,
    /// Bytes still to send.
    pub length: u64,
    /// The next piece of it.
    pub ahead: Ahead,
}

impl FilePart {
    /// Takes off what is beyond the first `length` bytes, if there is any.
    pub fn split_off(&mut self, length: u64) -> Option<FilePart> {
        let beyond = self.length.checked_sub(length).filter(|beyond| *beyond > 0)?;
        self.length = length;
        let offset = self.offset + length;
        let file = Arc::clone(&self.file);
        Some(FilePart { file, offset, length: beyond, ahead: Ahead::default() })
    }
}

/// The events of an answer that have come and were not taken yet. Only while there are some, they hold memory: see [`spare`].
#[derive(Debug, Default)]
pub struct AnswerEvents(Option<Box<Waiting>>);

/// Events, and the bytes that belong to them.
#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<AnswerEvent>,
    bytes: Vec<u8>,
    /// The first byte of the next event.
    at: usize,
}

impl AnswerEvents {
    /// Whether all that came was taken.
    pub fn is_empty(&self) -> bool {
        self.events().next().is_none()
    }

    /// Whether none has come since they were cleared.
    pub fn is_unused(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of heads and bodies that wait here.
    pub fn waiting_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.bytes.len() - waiting.at)
    }

    /// The length of the body, where all of it waits here, in memory, and is next.
    pub fn whole_body_bytes(&self) -> Option<usize> {
        let (last, mut events) = {
            let mut events = self.events();
            (events.next_back()?, events)
        };
        let length = events.try_fold(0, |sum, event| match event {
            AnswerEvent::Bytes(length) => Some(sum + length),
            _ => None,
        });
        length.filter(|_| matches!(last, AnswerEvent::End))
    }

    /// Whether all that waits here are bytes of the body.
    pub fn has_only_bytes(&self) -> bool {
        self.events().all(|event| matches!(event, AnswerEvent::Bytes(_)))
    }

    /// Forgets all, and gives the memory back.
    pub fn clear(&mut self) {
        if let Some(waiting) = self.0.take() {
            spare::give_back(waiting);
        }
    }

    /// The status of the answer, and the bytes of its body, where the whole answer waits here.
    pub fn summary(&self) -> (u16, u64) {
        let (mut status, mut body_bytes) = (0, 0);
        for event in self.events() {
            match event {
                AnswerEvent::Head(head) => status = head.status,
                AnswerEvent::Bytes(length) => body_bytes += *length as u64,
                AnswerEvent::File(part) => body_bytes += part.length,
                _ => {}
            }
        }
        (status, body_bytes)
    }

    fn events(&self) -> vec_deque::Iter<'_, AnswerEvent> {
        self.0.as_ref().map(|waiting| waiting.events.iter()).unwrap_or_default()
    }

    // --- Adding --------------------------------------------------------------------------------------

    /// Adds an event that has no bytes: not a head, nor [`AnswerEvent::Bytes`].
    pub fn push(&mut self, event: AnswerEvent) {
        self.waiting().events.push_back(event);
    }

    fn waiting(&mut self) -> &mut Waiting {
        self.0.get_or_insert_with(spare::take)
    }

    /// Adds a head; `write` appends its fields, and has the last word on it.
    ///
    /// # Errors
    /// Errors of `write`; nothing is added then.
    pub fn push_head<E>(
        &mut self,
        write: impl FnOnce(&mut FieldLines<'_>) -> Result<AnswerHead, E>,
    ) -> Result<AnswerHead, E> {
        let waiting = self.waiting();
        let begin = waiting.bytes.len();
        let mut lines = FieldLines::at_end_of(&mut waiting.bytes);
        match write(&mut lines) {
            Ok(mut head) => {
                head.has = lines.given;
                head.field_bytes = waiting.bytes.len() - begin;
                let is_interim = head.is_interim();
                let event = if is_interim { AnswerEvent::Interim(head) } else { AnswerEvent::Head(head) };
                waiting.events.push_back(event);
                Ok(head)
            }
            Err(error) => {
                waiting.bytes.truncate(begin);
                Err(error)
            }
        }
    }

    /// Adds bytes of the body.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let waiting = self.waiting();
        waiting.bytes.extend_from_slice(bytes);
        match waiting.events.back_mut() {
            Some(AnswerEvent::Bytes(length)) => *length += bytes.len(),
            _ => waiting.events.push_back(AnswerEvent::Bytes(bytes.len())),
        }
    }

    /// Adds a part of a file.
    pub fn push_file(&mut self, part: FilePart) {
        let waiting = self.waiting();
        match waiting.events.back_mut() {
            Some(AnswerEvent::File(last))
                if Arc::ptr_eq(&last.file, &part.file) && last.offset + last.length == part.offset =>
            {
                last.length += part.length;
            }
            _ => waiting.events.push_back(AnswerEvent::File(part)),
        }
    }

    /// Adds a whole answer that the front gives itself. The fields are what `write` appends; the body is left out where
    /// the method is HEAD.
    pub fn push_whole(
        &mut self,
        status: u16,
        is_head_method: bool,
        body: &[u8],
        write: impl FnOnce(&mut FieldLines<'_>),
    ) {
        self.push_front_head(status, is_head_method, Some(body.len() as u64), write);
        if !is_head_method {
            self.push_bytes(body);
        }
        self.push(AnswerEvent::End);
    }

    /// Adds the head of an answer that the front gives itself. A body of `content_length` bytes is to follow, but not where
    /// the method is HEAD or the length is none.
    pub fn push_front_head(
        &mut self,
        status: u16,
        is_head_method: bool,
        content_length: Option<u64>,
        write: impl FnOnce(&mut FieldLines<'_>),
    ) {
        let body = match content_length {
            Some(length) if !is_head_method => AnswerBody::Length(length),
            _ => AnswerBody::None,
        };
        let Ok(_) = self.push_head::<Infallible>(|fields| {
            write(fields);
            Ok(AnswerHead { body, content_length, ..AnswerHead::new(status) })
        });
    }

    /// Adds what waits in `other`, which is empty then.
    pub fn append(&mut self, other: &mut AnswerEvents) {
        let Some(mut other) = other.0.take() else { return };
        let waiting = self.waiting();
        waiting.events.append(&mut other.events);
        waiting.bytes.extend_from_slice(&other.bytes[other.at..]);
        spare::give_back(other);
    }

    // --- Taking --------------------------------------------------------------------------------------

    /// Takes the next event, unless this is so of it.
    pub fn take_unless(&mut self, stays: impl FnOnce(&AnswerEvent) -> bool) -> Option<AnswerEvent> {
        let events = &mut self.0.as_mut()?.events;
        if events.front().is_none_or(stays) {
            return None;
        }
        events.pop_front()
    }

    /// The next bytes of the head or body that was taken last.
    pub fn take_bytes(&mut self, length: usize) -> &[u8] {
        let waiting = self.waiting();
        let begin = waiting.at;
        waiting.at += length;
        &waiting.bytes[begin..waiting.at]
    }
}

/// The fields of a head, while they are written.
#[derive(Debug)]
pub struct FieldLines<'a> {
    bytes: &'a mut Vec<u8>,
    begin: usize,
    given: AddedFields,
}

impl<'a> FieldLines<'a> {
    /// Lines that are added to these bytes.
    pub(crate) fn at_end_of(bytes: &'a mut Vec<u8>) -> Self {
        let begin = bytes.len();
        FieldLines { bytes, begin, given: AddedFields::default() }
    }

    /// What was written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Forgets what was written.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(self.begin);
        self.given = AddedFields::default();
    }

    /// Adds a field. Name and value must be such as RFC 9110 section 5 allows.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.given.note(name);
        self.bytes.reserve(name.len() + value.len() + 4);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Adds lines that were written before.
    pub fn add_lines(&mut self, lines: &[u8]) {
        let mut begin = 0;
        for end in memchr_iter(b'\n', lines) {
            let line = &lines[begin..end];
            self.given.note(&line[..memchr(b':', line).unwrap_or(0)]);
            begin = end + 1;
        }
        self.bytes.extend_from_slice(lines);
    }
}
