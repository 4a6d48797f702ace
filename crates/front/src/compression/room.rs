//! The memory and the threads for compression: in all, and for one application.
//!
//! An encoder holds some hundred KiB as long as its answer lasts. Where there is no memory for another, answers are sent
//! without compression. The event loop compresses small pieces, and others as far as its share of time for such work goes.
//! What takes longer is done on threads of the pool: no more than there are CPUs, of which one application gets half.

use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

use crate::aside::loop_share::LoopShare;
use crate::aside::PoolShare;
use crate::budget::{Account, Budget, Holder, Kind, Permit, Share};
use crate::compression::accept_encoding::Coding;
use crate::compression::encoder::{Encoder, Shape};

/// The part of the memory for buffers that compression may have beside it.
const PART: u64 = 4;

/// What all applications share.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Arc<Budget>,
    loop_share: Rc<LoopShare>,
    threads: PoolShare,
    cpus: usize,
}

/// What one application may have of it.
#[derive(Debug, Clone)]
pub(crate) struct AppRoom {
    memory: Arc<Share>,
    loop_share: Rc<LoopShare>,
    pool: PoolShare,
    threads: PoolShare,
}

/// An encoder, with the memory that it holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) encoder: Encoder,
    _permit: Permit,
}

impl Room {
    /// Beside this many bytes for buffers.
    pub(crate) fn new(buffer_bytes: u64, loop_share: Rc<LoopShare>) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
        Room {
            memory: Budget::new(buffer_bytes / PART, Kind::Compression),
            loop_share,
            threads: PoolShare::of_threads(cpus),
            cpus,
        }
    }

    pub(crate) fn of_app(&self, name: &str) -> AppRoom {
        AppRoom {
            memory: Share::new(&self.memory, name, None),
            loop_share: Rc::clone(&self.loop_share),
            pool: PoolShare::of_threads((self.cpus / 2).max(1)),
            threads: self.threads.clone(),
        }
    }
}

impl AppRoom {
    /// An encoder for this client, if there is memory for it.
    pub(crate) fn encoder(&self, coding: Coding, shape: Shape, client: Holder) -> Option<Held> {
        let permit = self.permit(Encoder::most_bytes(coding, shape), client)?;
        Some(Held { encoder: Encoder::new(coding, shape), _permit: permit })
    }

    /// Whether there is memory for this.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        self.memory.free() >= bytes
    }

    /// Memory for something else that is kept.
    pub(crate) fn permit(&self, bytes: u64, client: Holder) -> Option<Permit> {
        let permit = Permit::new(Account::new(&self.memory, client));
        match permit.grow(bytes) {
            Ok(()) => Some(permit),
            Err(_) => {
                permit.account().note_full();
                None
            }
        }
    }

    /// Does this here, if the event loop has time left for that. Else it is given back.
    pub(crate) fn work_here<T, W: FnOnce() -> T>(&self, work: W) -> Result<T, W> {
        self.loop_share.spend(work)
    }

    /// Has this done on another thread, when the application may have one more. `None`: it has panicked.
    pub(crate) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _thread = self.pool.take().await;
        self.threads.take().await.spend(work).await.map(|(done, _held)| done)
    }
}
