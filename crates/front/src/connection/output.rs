//! What is written to the client's socket: the events of an answer, as the client's protocol has them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use super::answer::Answered;
use super::{Connection, End, Stalled};
use crate::aside::file_reads::FileProgress;
use crate::https::Https;
use crate::message::answer::{AddedField, AnswerEvent, AnswerHead, FilePart};
use crate::message::refusal::Refusal;
use crate::message::request_id::RequestId;
use crate::request::timing;

/// The largest part of a file whose first bytes share a segment with those before it. Loopback, 25 connections: that saves a
/// sixth to a third of the CPU time up to 90 KB; 100 KiB take a tenth more without it where Reno or CUBIC control congestion, and
/// a third less where BBR does, which has the second half of a write wait for its timer.
const MOST_BYTES_BEHIND: u64 = 90 * 1024;

/// The largest memory that goes from one connection to the next.
const MOST_SPARE_BYTES: usize = 128 * 1024;

/// How long a client may take nothing before what it does not take goes to a spool file, while no other request waits
/// for the worker. When one does, it goes there at once.
const PATIENCE: Duration = Duration::from_millis(250);

/// Bytes to be written, from `written` on, and what is behind them. Only while there are some, they hold memory.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    written: usize,
    behind: Behind,
    pub(super) stalled: Stalled,
}

/// What is to be sent behind the bytes.
#[derive(Debug, Default)]
enum Behind {
    /// What the next events say.
    #[default]
    Events,
    /// This part of a file. Behind it the protocol has something to write, and another beginning for what is left.
    File { part: FilePart, rest: Option<FilePart> },
    /// Nothing: the answer ends with the bytes.
    Nothing,
}

impl Output {
    pub(super) fn is_sent(&self) -> bool {
        self.written == self.bytes.len() && self.unsent_file().is_none()
    }

    /// Whether there was nothing to be sent since everything was.
    fn is_unused(&self) -> bool {
        self.bytes.capacity() == 0 && matches!(self.behind, Behind::Events)
    }

    /// Whether everything was sent, and no part of a body is unfinished.
    pub(super) fn is_between_parts(&self) -> bool {
        self.is_sent() && !matches!(self.behind, Behind::File { rest: Some(_), .. })
    }

    fn unsent_file(&self) -> Option<&FilePart> {
        match &self.behind {
            Behind::File { part, .. } => Some(part).filter(|part| part.length > 0),
            Behind::Events | Behind::Nothing => None,
        }
    }

    /// Empty, with the memory that is spare. Returns what was to follow.
    fn begin(&mut self, spare: &RefCell<Vec<u8>>) -> Behind {
        if self.bytes.capacity() == 0 {
            self.bytes = spare.take();
        }
        self.bytes.clear();
        self.written = 0;
        std::mem::take(&mut self.behind)
    }

    /// Gives the memory back: everything was sent, and nothing follows at the moment.
    fn give_back(&mut self, spare: &RefCell<Vec<u8>>) {
        self.written = 0;
        self.behind = Behind::Events;
        let mut bytes = std::mem::take(&mut self.bytes);
        if (1..=MOST_SPARE_BYTES).contains(&bytes.capacity()) {
            bytes.clear();
            spare.replace(bytes);
        }
    }
}

/// What became of the next events.
enum Encoded {
    /// They are in the output.
    Written,
    /// There are none.
    Nothing,
    /// The answer ends in another way than by being sent.
    Ended(Answered),
}

impl Connection {
    /// Sends an answer of the front's own, all of which is there.
    pub(super) async fn send_events(&mut self) -> Result<(), End> {
        poll_fn(|context| self.poll_events(context)).await.map(drop)
    }

    /// Sends the events that were taken. `None`: the answer goes on.
    pub(super) fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Answered>, End>> {
        if self.output.is_unused() && self.request.answer.is_unused() && !self.protocol.has_replies() {
            return Poll::Ready(Ok(None));
        }
        loop {
            ready!(self.poll_send(context))?;
            let encoded = match self.output.behind {
                Behind::Nothing => Encoded::Ended(Answered::Whole),
                Behind::Events | Behind::File { .. } => self.encode(),
            };
            let answered = match encoded {
                Encoded::Written => continue,
                Encoded::Nothing => None,
                Encoded::Ended(answered) => Some(answered),
            };
            self.output.give_back(&self.shared.spare_output);
            self.request.answer.clear();
            return Poll::Ready(Ok(answered));
        }
    }

    /// Writes the next events to the output, which is empty: up to a part of a file, or the end.
    fn encode(&mut self) -> Encoded {
        let behind = self.output.begin(&self.shared.spare_output);
        let rest = match behind {
            Behind::File { rest, .. } => {
                self.protocol.end_part(&mut self.output.bytes);
                rest
            }
            Behind::Events | Behind::Nothing => None,
        };
        self.protocol.write_replies(&mut self.output.bytes);
        if let Some(rest) = rest {
            self.begin_file(rest);
            return Encoded::Written;
        }
        while let Some(event) =
            self.request.answer.take_unless(|event| ends(event) && !self.output.bytes.is_empty())
        {
            match event {
                AnswerEvent::Interim(head) | AnswerEvent::Head(head) => {
                    if let Err(refusal) = self.encode_head(&head) {
                        return Encoded::Ended(Answered::unsendable(refusal));
                    }
                }
                AnswerEvent::Bytes(length) => {
                    self.protocol.write_bytes(self.request.answer.take_bytes(length), &mut self.output.bytes);
                }
                AnswerEvent::File(part) => {
                    self.begin_file(part);
                    return Encoded::Written;
                }
                AnswerEvent::End => {
                    self.protocol.end(&mut self.output.bytes);
                    self.output.behind = Behind::Nothing;
                    return Encoded::Written;
                }
                AnswerEvent::Held => return Encoded::Ended(Answered::Held),
                AnswerEvent::CutOff => return Encoded::Ended(Answered::CutOff),
                AnswerEvent::Refused(refusal) => return Encoded::Ended(Answered::Refused(refusal)),
                AnswerEvent::GivenBack => return Encoded::Ended(Answered::GivenBack),
                AnswerEvent::TakenOver(socket) => return Encoded::Ended(Answered::Hijacked(socket)),
            }
        }
        if self.output.bytes.is_empty() {
            Encoded::Nothing
        } else {
            Encoded::Written
        }
    }

    /// Writes a head, with the fields that every answer gets: each slice that the protocol is given holds whole lines.
    fn encode_head(&mut self, head: &AnswerHead) -> Result<(), Refusal> {
        if self.shared.ends_connections() {
            self.protocol.end_connection();
        }
        let cookie = match self.request.has_session {
            true => self.request.session_cookie(self.client.peer.is_tls),
            false => None,
        };
        let Connection { shared, client, request, output, .. } = self;
        let lines = request.answer.take_bytes(head.field_bytes);
        if head.is_interim() {
            return self.protocol.write_head(head, &[lines], &shared.date, &mut output.bytes);
        }
        let https = shared.https.as_ref().filter(|_| client.peer.is_tls && !head.has.has(AddedField::Hsts));
        let hsts = https.and_then(Https::hsts);
        let id = request.request_id.as_ref().filter(|_| !head.has.has(AddedField::RequestId));
        let timing = match request.reports_timing {
            true => timing::server_timing(request.exchange.borrow().moments),
            false => Vec::new(),
        };
        let visitor = request.visitor.and_then(|visitor| {
            let app = request.visit.as_ref().filter(|_| request.exchange.borrow().moments.worker > 0)?;
            visitor.cookie_line(lines, &app.settings().prefix, client.peer.is_tls)
        });
        let lines = &[
            lines,
            hsts.unwrap_or_default(),
            id.map_or(&[], RequestId::line),
            request.quota_fields.as_deref().unwrap_or_default().as_bytes(),
            &timing,
            cookie.as_deref().unwrap_or_default(),
            visitor.as_deref().unwrap_or_default(),
        ];
        match &request.header_changes {
            None => self.protocol.write_head(head, lines, &shared.date, &mut output.bytes),
            Some(changes) => {
                let lines = changes.made_to(lines);
                self.protocol.write_head(head, &[&lines], &shared.date, &mut output.bytes)
            }
        }
    }

    #[inline(never)]
    fn begin_file(&mut self, mut part: FilePart) {
        let covered = self.protocol.begin_part(part.length, &mut self.output.bytes);
        let rest = part.split_off(covered);
        self.output.behind = Behind::File { part, rest };
    }

    /// Sends the output.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        while !self.output.is_sent() {
            let Output { bytes, written, behind, .. } = &mut self.output;
            let rest = &bytes[*written..];
            let is_at_file = rest.is_empty();
            let polled = match behind {
                // What is missing of a file is missing of the answer.
                Behind::File { part, .. } if is_at_file => match self.stream.poll_send_file(context, part) {
                    // It is not the client that makes it wait.
                    Poll::Ready(Ok(FileProgress::Reading)) => return Poll::Pending,
                    sent => sent.map_ok(drop).map_err(|_| End::CutOff),
                },
                behind => {
                    let polled = match behind {
                        Behind::File { part, .. } if part.length <= MOST_BYTES_BEHIND => {
                            self.stream.poll_write_ahead(context, rest)
                        }
                        _ => self.stream.poll_write_some(context, rest),
                    };
                    polled.map_ok(|length| *written += length).map_err(|_| End::Gone)
                }
            };
            let Poll::Ready(sent) = polled else { return self.poll_stalled(context) };
            sent?;
            self.resume();
            if is_at_file && !self.output.is_sent() {
                // Others get their turn between two pieces of a file.
                self.shared.turn.step();
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The client has taken something.
    fn resume(&mut self) {
        match std::mem::replace(&mut self.output.stalled, Stalled::No) {
            Stalled::No => {}
            Stalled::Patient { before_ms } | Stalled::Spooling { before_ms } => {
                self.counted.deadline.put_back(before_ms);
            }
        }
    }

    /// The client takes nothing at the moment. It has `send_timeout` from the last byte that it took; long before
    /// that, its worker is spared the wait.
    #[cold]
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        let limits = &self.shared.settings.limits;
        let deadline = &self.counted.deadline;
        if self.output.stalled == Stalled::No {
            self.output.stalled = Stalled::Patient { before_ms: deadline.at_ms() };
            let others_wait =
                self.request.visit.as_ref().is_some_and(|app| app.dispatcher.borrow().queue_length() > 0);
            let is_urgent = others_wait || self.request.exchange.borrow().response.is_out_of_memory();
            let patience = if is_urgent { Duration::ZERO } else { PATIENCE };
            deadline.set(Some(patience.min(limits.send_timeout)));
        }
        if !deadline.has_passed(context) {
            return Poll::Pending;
        }
        let Stalled::Patient { before_ms } = self.output.stalled else {
            return Poll::Ready(Err(End::CutOff));
        };
        self.output.stalled = Stalled::Spooling { before_ms };
        deadline.set(Some(limits.send_timeout.saturating_sub(PATIENCE)));
        if limits.response_spool_bytes > 0 {
            if let Some(app) = &self.request.visit {
                let account = self.client.spool(&app.spool);
                self.request.exchange.borrow().response.spool_in(&limits.spool_dir, &account, context);
                app.dispatcher.borrow_mut().pull(&self.request.exchange);
            }
        }
        Poll::Pending
    }
}

/// Whether an answer ends with this event in another way than by being sent: all that came before is sent first.
fn ends(event: &AnswerEvent) -> bool {
    use AnswerEvent::{CutOff, GivenBack, Held, Refused, TakenOver};
    matches!(event, CutOff | Held | GivenBack | Refused(_) | TakenOver(_))
}
