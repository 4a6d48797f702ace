//! The way of an answer's events from the exchange to the protocol, where they may have to be compressed.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::mem::{replace, swap, take};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use tokio::time::{sleep, Sleep};

use super::accept_encoding::Coding;
use super::encoder::{Effort, EncoderFailed, Shape, Then};
use super::room::{AppRoom, Held};
use super::rules::{self, Asked, Verdict};
use crate::aside::file_reads::Next;
use crate::budget::{Holder, Permit};
use crate::message::answer::{AnswerBody, AnswerEvent, AnswerEvents, AnswerHead, FilePart};
use crate::message::request_head::Head;

/// Most bytes of a file that are compressed at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A body of a known length up to this is compressed as a whole: that takes a worker's ring two or three turns. The response
/// keeps a Content-Length, and gets shorter.
const HELD_BYTES: u64 = 128 * 1024;

/// If it has not come by then, it is sent as it comes.
const HELD_FOR: Duration = Duration::from_millis(30);

/// One answer on its way.
#[derive(Debug)]
pub(crate) struct Stage {
    asked: Asked,
    room: AppRoom,
    client: Holder,
    /// What has come, and is to be sent in this or another form.
    come: AnswerEvents,
    progress: Progress,
    /// The status and the bytes of the body that the client gets, where they are not the application's.
    sent: Option<(u16, u64)>,
}

#[derive(Default)]
enum Progress {
    /// The head has not come.
    #[default]
    Head,
    /// The rest of a body is waited for.
    Holding(HeldHead),
    /// Events are passed on as they are.
    Passing,
    /// The body is compressed as it comes; what is left of a file that belongs to it comes first.
    Compressing(Held, Option<FilePart>),
    /// The same, and a thread of the pool has the encoder.
    Working(Pin<Box<dyn Future<Output = Option<Compressed>>>>, Option<FilePart>),
    /// The client has the body already.
    Dropping,
}

/// The next piece of a body.
struct Piece {
    bytes: Vec<u8>,
    then: Then,
    /// The head, where this is the whole body.
    head: Option<UnsentHead>,
}

/// A head that was not passed on.
struct UnsentHead {
    head: AnswerHead,
    lines: Vec<u8>,
    coding: Coding,
}

/// A head that waits for its body, up to a deadline.
struct HeldHead {
    head: UnsentHead,
    deadline: Pin<Box<Sleep>>,
    /// Stands for the memory that the body takes.
    _permit: Permit,
}

/// What was made of a piece.
struct Compressed {
    held: Held,
    piece: Piece,
    made: Result<Vec<u8>, EncoderFailed>,
}

impl Stage {
    /// For the answer to this request of a client; `None`: it does not ask for compression.
    pub(crate) fn new(head: Head<'_>, room: &AppRoom, client: Holder) -> Option<Box<Self>> {
        let asked = Asked::of(head)?;
        let (room, come) = (room.clone(), AnswerEvents::default());
        Some(Box::new(Stage { asked, room, client, come, progress: Progress::Head, sent: None }))
    }

    /// The status and the bytes of the body that the client gets, where they are not those of the application's answer.
    pub(crate) fn sent(&self) -> Option<(u16, u64)> {
        self.sent
    }

    /// Takes in what has come.
    pub(crate) fn take_in(&mut self, events: &mut AnswerEvents) {
        if self.come.is_empty() {
            self.come.clear();
            swap(&mut self.come, events);
        } else {
            self.come.append(events);
        }
    }

    /// Moves the next of what has come to `out`. `false`: there is no more.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>, out: &mut AnswerEvents) -> Poll<bool> {
        loop {
            match &mut self.progress {
                Progress::Passing => {
                    if !self.come.is_empty() {
                        out.append(&mut self.come);
                    }
                    return Poll::Ready(!out.is_empty());
                }
                Progress::Holding(HeldHead { deadline, .. }) => {
                    let goes_on = self.come.has_only_bytes();
                    if goes_on && deadline.as_mut().poll(context).is_pending() {
                        return Poll::Ready(!out.is_empty());
                    }
                    self.release(out);
                }
                Progress::Working(work, file) => {
                    let compressed = ready!(work.as_mut().poll(context));
                    let file = file.take();
                    self.push_compressed(compressed, file, out);
                }
                // A file goes piece by piece.
                Progress::Compressing(_, Some(_)) if !out.is_empty() => return Poll::Ready(true),
                Progress::Compressing(_, Some(part)) => {
                    let read = ready!(poll_read(context, part));
                    self.take_read(read, out);
                }
                Progress::Head | Progress::Compressing(_, None) | Progress::Dropping => {
                    let Some(event) = self.come.take_unless(|_| false) else {
                        return Poll::Ready(!out.is_empty());
                    };
                    self.take_event(event, out);
                }
            }
        }
    }

    fn take_event(&mut self, event: AnswerEvent, out: &mut AnswerEvents) {
        match (event, &mut self.progress) {
            (AnswerEvent::Interim(head), _) => {
                push_head(head, self.come.take_bytes(head.field_bytes), Verdict::AsItIs, out);
            }
            (AnswerEvent::Head(head), _) => self.take_head(head, out),
            (AnswerEvent::Bytes(length), Progress::Compressing(..)) => {
                let bytes = self.come.take_bytes(length).to_vec();
                let then = self.then();
                self.compress(Piece { bytes, then, head: None }, out);
            }
            (AnswerEvent::Bytes(length), _) => drop(self.come.take_bytes(length)),
            (AnswerEvent::File(part), Progress::Compressing(_, file)) => *file = Some(part),
            (AnswerEvent::File(_), _) => {}
            (AnswerEvent::End, Progress::Compressing(..)) => {
                self.compress(Piece { bytes: Vec::new(), then: Then::End, head: None }, out);
            }
            (other, _) => out.push(other),
        }
    }

    // --- Heads ---------------------------------------------------------------------------------------

    fn take_head(&mut self, head: AnswerHead, out: &mut AnswerEvents) {
        let lines = self.come.take_bytes(head.field_bytes).to_vec();
        let is_empty = head.body == AnswerBody::None;
        let whole = self.come.whole_body_bytes().filter(|_| !is_empty);
        let length = head.content_length.or(whole.map(|bytes| bytes as u64));
        let verdict = rules::judge(&self.asked, &head, &lines, length);
        self.progress = Progress::Passing;
        match verdict {
            // The answer to HEAD says what one to GET would.
            Verdict::Compressed(_) if is_empty => {
                push_head(AnswerHead { content_length: None, ..head }, &lines, verdict, out);
            }
            Verdict::Compressed(coding) => {
                let head = UnsentHead { head, lines, coding };
                let held =
                    if whole.is_none() && self.come.has_only_bytes() { self.hold(head) } else { Err(head) };
                if let Err(head) = held {
                    self.begin(head, whole, out);
                }
            }
            Verdict::NotModified => {
                self.progress = Progress::Dropping;
                self.sent = Some((304, 0));
                let (status, body, content_length) = (304, AnswerBody::None, None);
                push_head(AnswerHead { status, body, content_length, ..head }, &lines, verdict, out);
            }
            Verdict::AsItIs | Verdict::Varies | Verdict::StillNotModified => {
                push_head(head, &lines, verdict, out);
            }
        }
    }

    /// Keeps the beginning of a body for a moment, if the rest will come soon, and there is memory for it.
    fn hold(&mut self, head: UnsentHead) -> Result<(), UnsentHead> {
        let AnswerBody::Length(length @ 0..=HELD_BYTES) = head.head.body else { return Err(head) };
        let Some(_permit) = self.room.permit(length, self.client.clone()) else { return Err(head) };
        self.progress = Progress::Holding(HeldHead { head, deadline: Box::pin(sleep(HELD_FOR)), _permit });
        Ok(())
    }

    fn release(&mut self, out: &mut AnswerEvents) {
        let Progress::Holding(held) = replace(&mut self.progress, Progress::Passing) else { return };
        let whole = self.come.whole_body_bytes();
        self.begin(held.head, whole, out);
    }

    /// Begins a body that is to be compressed; `whole`: its length, if all of it has come.
    fn begin(&mut self, head: UnsentHead, whole: Option<usize>, out: &mut AnswerEvents) {
        let shape = if whole.is_some() { Shape::Whole } else { Shape::Stream };
        let Some(held) = self.room.encoder(head.coding, shape, self.client.clone()) else {
            return push_head(head.head, &head.lines, Verdict::Varies, out);
        };
        self.sent = Some((head.head.status, 0));
        self.progress = Progress::Compressing(held, None);
        if let Some(length) = whole {
            let bytes = self.come.take_bytes(length).to_vec();
            self.come.clear();
            return self.compress(Piece { bytes, then: Then::End, head: Some(head) }, out);
        }
        let (body, content_length) = (AnswerBody::Unknown, None);
        let verdict = Verdict::Compressed(head.coding);
        push_head(AnswerHead { body, content_length, ..head.head }, &head.lines, verdict, out);
    }

    // --- Bodies --------------------------------------------------------------------------------------

    /// What follows the bytes that were taken last. The end is taken, too.
    fn then(&mut self) -> Then {
        if self.come.is_empty() {
            return Then::Flush;
        }
        match self.come.take_unless(|event| !matches!(event, AnswerEvent::End)) {
            Some(_) => Then::End,
            None => Then::More,
        }
    }

    fn take_read(&mut self, read: io::Result<Vec<u8>>, out: &mut AnswerEvents) {
        let Progress::Compressing(_, Some(part)) = &self.progress else { return };
        let is_last = part.length == 0;
        match read {
            Ok(bytes) => {
                let then = if is_last { self.then() } else { Then::More };
                self.compress(Piece { bytes, then, head: None }, out);
            }
            Err(error) => {
                tracing::error!(
                    name: "response_file_unreadable", %error, "an answer is cut off: cannot read its file"
                );
                self.cut_off(out);
            }
        }
    }

    /// Compresses a piece: here, if that does not take long.
    fn compress(&mut self, piece: Piece, out: &mut AnswerEvents) {
        let Progress::Compressing(mut held, file) = take(&mut self.progress) else { return };
        let file = file.filter(|part| part.length > 0);
        let effort = held.encoder.effort(piece.bytes.len());
        let work = move || {
            let mut made = Vec::new();
            let made = held.encoder.write(&piece.bytes, piece.then, &mut made).map(|()| made);
            Compressed { held, piece, made }
        };
        let here = match effort {
            Effort::Little => Ok(work()),
            Effort::Medium => self.room.work_here(work),
            Effort::Much => Err(work),
        };
        match here {
            Ok(compressed) => self.push_compressed(Some(compressed), file, out),
            Err(work) => {
                self.progress = Progress::Working(Box::pin(self.room.clone().work(work)), file);
            }
        }
    }

    fn push_compressed(
        &mut self,
        compressed: Option<Compressed>,
        file: Option<FilePart>,
        out: &mut AnswerEvents,
    ) {
        let (held, piece, made) = match compressed {
            Some(Compressed { held, piece, made: Ok(made) }) => (held, piece, made),
            Some(Compressed { made: Err(error), .. }) => {
                tracing::error!(
                    name: "response_not_compressed", %error, "an answer is cut off: cannot compress it"
                );
                return self.cut_off(out);
            }
            None => return self.cut_off(out), // that is logged
        };
        let body_bytes = match piece.head {
            Some(head) if made.len() < piece.bytes.len() => head.push_with(&made, true, out),
            Some(head) => head.push_with(&piece.bytes, false, out),
            None => {
                out.push_bytes(&made);
                made.len()
            }
        };
        if let Some((_, sent)) = &mut self.sent {
            *sent += body_bytes as u64;
        }
        if piece.then == Then::End {
            held.encoder.give_back();
            out.push(AnswerEvent::End);
            self.progress = Progress::Passing;
        } else {
            self.progress = Progress::Compressing(held, file);
        }
    }

    fn cut_off(&mut self, out: &mut AnswerEvents) {
        self.come.clear();
        self.progress = Progress::Passing;
        out.push(AnswerEvent::CutOff);
    }
}

impl UnsentHead {
    /// Adds the head, with the whole body.
    fn push_with(self, body: &[u8], is_compressed: bool, out: &mut AnswerEvents) -> usize {
        let length = body.len() as u64;
        let verdict = if is_compressed { Verdict::Compressed(self.coding) } else { Verdict::Varies };
        let (framing, content_length) = (AnswerBody::Length(length), Some(length));
        push_head(AnswerHead { body: framing, content_length, ..self.head }, &self.lines, verdict, out);
        out.push_bytes(body);
        body.len()
    }
}

fn push_head(head: AnswerHead, lines: &[u8], verdict: Verdict, out: &mut AnswerEvents) {
    let Ok(_) = out.push_head::<Infallible>(|fields| {
        rules::write_fields(lines, verdict, fields);
        Ok(head)
    });
}

/// Reads the next piece of a file.
fn poll_read(context: &mut Context<'_>, part: &mut FilePart) -> Poll<io::Result<Vec<u8>>> {
    let FilePart { file, offset, length, ahead } = part;
    let most = (*length).min(PIECE_BYTES as u64) as usize;
    let read = ready!(ahead.poll_next(context, file, *offset, most as u64));
    let read = read.and_then(|next| match next {
        Next::FromCache(ready) => {
            let mut bytes = vec![0; ready.min(most)];
            let read = file.read_at(&mut bytes, *offset)?;
            bytes.truncate(read);
            Ok(bytes)
        }
        Next::Bytes(bytes) => Ok(bytes[..bytes.len().min(most)].to_vec()),
    });
    Poll::Ready(read.and_then(|bytes| {
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into()); // the file has become shorter
        }
        ahead.advance(bytes.len());
        *offset += bytes.len() as u64;
        *length -= bytes.len() as u64;
        Ok(bytes)
    }))
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Progress::Head => "Head",
            Progress::Holding(_) => "Holding",
            Progress::Passing => "Passing",
            Progress::Compressing(..) => "Compressing",
            Progress::Working(..) => "Working",
            Progress::Dropping => "Dropping",
        })
    }
}

#[cfg(test)]
mod tests;
