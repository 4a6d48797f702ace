//! The body of a stored answer, and what it is in the codings that clients prefer: it is compressed once for each, on a thread
//! of the pool, when it is first sent to such a client. That one gets it as any other answer of the application.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::task::spawn_local;

use super::AppCache;
use crate::budget::{Holder, Permit};
use crate::compression::accept_encoding::Coding;
use crate::compression::encoder::{Encoder, Shape, Then};
use crate::compression::room::AppRoom;

/// The content of an answer.
#[derive(Debug)]
pub(crate) struct Body {
    pub(super) plain: Rc<Bytes>,
    pub(super) codings: Codings,
}

/// The codings of a body.
#[derive(Debug, Default)]
pub(super) struct Codings(RefCell<Vec<(Coding, Encoded)>>);

#[derive(Debug)]
enum Encoded {
    /// A thread is at it, or it becomes no shorter.
    Not,
    Kept(Rc<Bytes>),
}

/// Bytes of a body that are sent, in memory that is counted until they are sent no more.
#[derive(Debug)]
pub(crate) struct Bytes {
    pub(super) bytes: Vec<u8>,
    pub(super) _permit: Permit,
}

impl Bytes {
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes from `begin` on, as many as there are.
    pub(crate) fn piece(&self, begin: usize, most: usize) -> &[u8] {
        let rest = &self.bytes[begin.min(self.bytes.len())..];
        &rest[..rest.len().min(most)]
    }
}

impl Body {
    /// The body in this coding, if it was compressed before. If not, a thread does it.
    pub(super) fn in_coding(
        self: &Rc<Self>,
        coding: Coding,
        cache: &Rc<AppCache>,
        room: &AppRoom,
    ) -> Option<Rc<Bytes>> {
        let mut codings = self.codings.0.borrow_mut();
        if let Some((_, encoded)) = codings.iter().find(|(other, _)| *other == coding) {
            return match encoded {
                Encoded::Not => None,
                Encoded::Kept(bytes) => Some(Rc::clone(bytes)),
            };
        }
        let length = self.plain.length() as u64;
        let needed = Encoder::most_bytes(coding, Shape::Kept) + 2 * length;
        let permit = room.has(needed).then(|| room.permit(needed, Holder::default())).flatten()?;
        codings.push((coding, Encoded::Not));
        let (body, cache, room) = (Rc::clone(self), Rc::clone(cache), room.clone());
        let plain = self.plain.bytes.clone();
        spawn_local(async move {
            let made = room.work(move || compressed(coding, &plain)).await;
            drop(permit);
            let kept = made.flatten().and_then(|bytes| cache.keep(bytes));
            let mut codings = body.codings.0.borrow_mut();
            let place = codings.iter_mut().find(|(other, _)| *other == coding);
            if let Some(((_, encoded), kept)) = place.zip(kept) {
                *encoded = Encoded::Kept(Rc::new(kept));
            }
        });
        None
    }
}

/// `None`: it becomes no shorter.
fn compressed(coding: Coding, plain: &[u8]) -> Option<Vec<u8>> {
    let mut made = Vec::new();
    Encoder::new(coding, Shape::Kept).write(plain, Then::End, &mut made).ok()?;
    made.shrink_to_fit();
    Some(made).filter(|made| made.len() < plain.len())
}
