//! An answer as a list of events, which each protocol writes in its own way.
//!
//! What the front answers itself (files, refusals, pages) and what a worker answers are the same here: a head, bytes, and
//! parts of files, with an end. Nothing here knows a protocol. The events themselves hold no bytes: those lie one behind
//! the other in a buffer, in the order of the events, so that an answer costs no allocation.

mod spare;

use std::os::fd::OwnedFd;
use std::sync::Arc;

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
    /// Whether a Date is among the fields.
    pub has_date: bool,
    /// Whether an X-Request-Id is among the fields.
    pub has_request_id: bool,
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
            has_date: false,
            has_request_id: false,
            is_last: false,
            is_upgrade: false,
        }
    }

    /// Whether another head follows (1xx, but not 101).
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
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
pub struct AnswerEvents {
    events: Vec<AnswerEvent>,
    /// The first that was not taken.
    next: usize,
    bytes: Vec<u8>,
    /// The first byte of those that belong to the next event.
    at: usize,
}

impl AnswerEvents {
    /// Whether all that came was taken.
    pub fn is_empty(&self) -> bool {
        self.next == self.events.len()
    }

    /// Whether none has come since they were cleared.
    pub fn is_unused(&self) -> bool {
        self.events.capacity() == 0
    }

    /// Bytes of heads and bodies that wait here.
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The length of the body, where all of it waits here, in memory, and is next.
    pub fn whole_body_bytes(&self) -> Option<usize> {
        let (last, events) = self.events[self.next..].split_last()?;
        let lengths = events.iter().map(|event| match event {
            AnswerEvent::Bytes(length) => Some(*length),
            _ => None,
        });
        lengths.sum::<Option<usize>>().filter(|_| matches!(last, AnswerEvent::End))
    }

    /// Whether all that waits here are bytes of the body.
    pub fn has_only_bytes(&self) -> bool {
        self.events[self.next..].iter().all(|event| matches!(event, AnswerEvent::Bytes(_)))
    }

    /// Forgets all, and gives the memory back.
    pub fn clear(&mut self) {
        (self.next, self.at) = (0, 0);
        if !self.is_unused() {
            spare::give_back(std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        }
    }

    /// The status of the answer, and the bytes of its body, where the whole answer waits here.
    pub fn summary(&self) -> (u16, u64) {
        let (mut status, mut body_bytes) = (0, 0);
        for event in &self.events[self.next..] {
            match event {
                AnswerEvent::Head(head) => status = head.status,
                AnswerEvent::Bytes(length) => body_bytes += *length as u64,
                AnswerEvent::File(part) => body_bytes += part.length,
                _ => {}
            }
        }
        (status, body_bytes)
    }

    // --- Adding --------------------------------------------------------------------------------------

    /// Adds an event that has no bytes: not a head, nor [`AnswerEvent::Bytes`].
    pub fn push(&mut self, event: AnswerEvent) {
        self.take_memory();
        self.events.push(event);
    }

    fn take_memory(&mut self) {
        if self.is_unused() {
            (self.events, self.bytes) = spare::take();
        }
    }

    /// Adds a head; `write` appends its fields, and has the last word on it.
    ///
    /// # Errors
    /// Those of `write`; nothing is added then.
    pub fn push_head<E>(
        &mut self,
        write: impl FnOnce(&mut FieldLines<'_>) -> Result<AnswerHead, E>,
    ) -> Result<AnswerHead, E> {
        let begin = self.begin_head();
        match write(&mut FieldLines::at_end_of(&mut self.bytes)) {
            Ok(head) => Ok(self.add_head(head, begin)),
            Err(error) => {
                self.bytes.truncate(begin);
                Err(error)
            }
        }
    }

    /// Where the bytes of a head's fields begin.
    fn begin_head(&mut self) -> usize {
        self.take_memory();
        self.bytes.len()
    }

    /// Adds a head whose fields are the bytes from `begin` on.
    fn add_head(&mut self, mut head: AnswerHead, begin: usize) -> AnswerHead {
        head.field_bytes = self.bytes.len() - begin;
        self.push(if head.is_interim() { AnswerEvent::Interim(head) } else { AnswerEvent::Head(head) });
        head
    }

    /// Adds bytes of the body.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.take_memory();
        self.bytes.extend_from_slice(bytes);
        match self.events[self.next..].last_mut() {
            Some(AnswerEvent::Bytes(length)) => *length += bytes.len(),
            _ => self.push(AnswerEvent::Bytes(bytes.len())),
        }
    }

    /// Adds a part of a file.
    pub fn push_file(&mut self, part: FilePart) {
        match self.events[self.next..].last_mut() {
            Some(AnswerEvent::File(last))
                if Arc::ptr_eq(&last.file, &part.file) && last.offset + last.length == part.offset =>
            {
                last.length += part.length;
            }
            _ => self.push(AnswerEvent::File(part)),
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
        let begin = self.begin_head();
        write(&mut FieldLines::at_end_of(&mut self.bytes));
        self.add_head(AnswerHead { body, content_length, ..AnswerHead::new(status) }, begin);
    }

    /// Adds what waits in `other`, which is empty then.
    pub fn append(&mut self, other: &mut AnswerEvents) {
        self.take_memory();
        self.events.extend(other.events.drain(other.next..));
        self.bytes.extend_from_slice(&other.bytes[other.at..]);
        other.clear();
    }

    // --- Taking --------------------------------------------------------------------------------------

    /// Takes the next event, unless this is so of it.
    pub fn take_unless(&mut self, stays: impl FnOnce(&AnswerEvent) -> bool) -> Option<AnswerEvent> {
        let event = self.events.get_mut(self.next).filter(|event| !stays(event))?;
        // What stands in its place is not looked at.
        let event = std::mem::replace(event, AnswerEvent::End);
        self.next += 1;
        Some(event)
    }

    /// The next bytes: those of the head or body that was taken last.
    pub fn take_bytes(&mut self, length: usize) -> &[u8] {
        let begin = self.at;
        self.at += length;
        &self.bytes[begin..self.at]
    }
}

/// The fields of a head, while they are written.
#[derive(Debug)]
pub struct FieldLines<'a> {
    bytes: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> FieldLines<'a> {
    /// Those that are added to these bytes.
    pub(crate) fn at_end_of(bytes: &'a mut Vec<u8>) -> Self {
        let begin = bytes.len();
        FieldLines { bytes, begin }
    }

    /// What was written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Forgets what was written.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(self.begin);
    }

    /// Adds a field. Name and value must be such as RFC 9110 section 5 allows.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.reserve(name.len() + value.len() + 4);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Adds lines that were written before.
    pub fn add_lines(&mut self, lines: &[u8]) {
        self.bytes.extend_from_slice(lines);
    }
}
