//! The holes in malloc's heap: what is free between what is in use.
//!
//! A process that was forked shares the heap page by page, until it writes there. What it allocates lies in the holes first,
//! and a page is copied for each of them, even for a few bytes. Filled, they are left alone: what such a process allocates
//! lies close together, on new pages. The fillers cost nothing but the addresses, since the pages around them are there
//! anyway; a process that was forked shares them as well, and gives them back before it becomes a mold itself.
//!
//! glibc's malloc (malloc(3), mallopt(3)) keeps a heap for each of a few threads, an arena; a hole is taken by a thread of
//! its arena only, and the smallest that is large enough is taken first.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::{mpsc, Mutex, MutexGuard, PoisonError};

use libc::{free, malloc};

/// Holes that are several times larger are whole pages, as good as new ones. Beyond twice this size memory might be
/// mapped.
const LARGEST: usize = 64 * 1024;
/// The smallest piece of memory that malloc deals in, less the word that it needs for itself.
const SMALLEST: usize = 24;
/// Up to this size malloc keeps a list of holes for each size, in steps of [`STEP`].
const SMALL: usize = SMALLEST + 62 * STEP;
const STEP: usize = 16;
/// Pieces side by side that show that there are no more holes of their size.
const SIDE_BY_SIDE: usize = 4;
/// What a thread may keep for itself of freed pieces, which malloc counts as used: seven of each small size.
const KEPT_BY_THREAD: usize = 256 * 1024;
/// What a thread that fills needs to stand on.
const STACK_BYTES: usize = 64 * 1024;

/// A piece of memory that fills a hole; it holds the address of the one that was made before it.
struct Filler {
    before: *mut Filler,
}

/// The fillers of all arenas.
struct Fillers {
    last: *mut Filler,
    /// Bytes that may be filled yet, which are free.
    room: usize,
}

// SAFETY: the pieces belong to the list alone, and any thread may free what another has allocated.
unsafe impl Send for Fillers {}

static FILLERS: Mutex<Fillers> = Mutex::new(Fillers { last: ptr::null_mut(), room: 0 });

/// `Native.fill_malloc_holes(threads) -> nil`: fills the holes in this thread's arena, and in those that this number of
/// other threads have left. Unused memory is given back to the system first.
pub(crate) fn fill(threads: usize) {
    fillers().room = free_bytes();
    fill_arena();
    // None ends before all have filled: a thread that begins gets an arena that no other has.
    let (filled, done) = mpsc::sync_channel(1);
    let waiting = Mutex::new(());
    let held = waiting.lock();
    std::thread::scope(|scope| {
        let fill_another = |filled: mpsc::SyncSender<()>| {
            fill_arena();
            drop(filled);
            drop(waiting.lock());
        };
        for _ in 0..threads {
            let filled = filled.clone();
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            if thread.spawn_scoped(scope, move || fill_another(filled)).is_err() {
                break; // an arena that is not filled costs memory, nothing else
            }
        }
        drop(filled);
        let _ = done.recv(); // an error, as soon as all senders are gone
        drop(held);
    });
}

/// Unused bytes that malloc holds after it has given back as much as possible to the system. 0 where another malloc
/// replaces glibc's (`LD_PRELOAD`): it has other holes, and hands them out in other ways.
#[cfg(target_env = "gnu")]
fn free_bytes() -> usize {
    // SAFETY: both take malloc's own locks and touch only what is free; any number may be given (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
        // Of all arenas. From 4 GiB on it begins again at 0 (mallinfo(3)); what takes its place is not in every glibc.
        match libc::mallinfo().fordblks as u32 as usize {
            0 => 0,
            bytes => bytes + KEPT_BY_THREAD,
        }
    }
}

/// `Native.trim_malloc -> nil`: gives unused memory back to the system, while other Ruby threads run. Another malloc than
/// glibc's does that by itself.
pub(crate) fn trim() {
    #[cfg(target_env = "gnu")]
    crate::nogvl::step_aside(&|| {
        // SAFETY: it takes malloc's own locks, and touches only what is free (malloc_trim(3)).
        unsafe { libc::malloc_trim(0) };
    });
}

#[cfg(not(target_env = "gnu"))]
fn free_bytes() -> usize {
    0
}

fn fillers() -> MutexGuard<'static, Fillers> {
    FILLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest ones first: then a hole is filled by one piece, and smaller ones.
fn fill_arena() {
    let mut pieces = Vec::with_capacity(SIDE_BY_SIDE);
    for size in sizes() {
        while pieces.len() < SIDE_BY_SIDE {
            // SAFETY: any size may be asked for.
            let piece = unsafe { malloc(size) }.cast::<Filler>();
            if piece.is_null() {
                break;
            }
            let is_beside = pieces.last().is_some_and(|last| is_beside(*last, piece, size));
            let is_full = !is_beside && !keep(&mut pieces, size);
            pieces.push(piece);
            if is_full {
                break;
            }
        }
        // SAFETY: ours, from malloc, and nowhere else.
        pieces.drain(..).for_each(|piece| unsafe { free(piece.cast()) });
    }
}

/// The sizes that are tried: every one of the small ones, of which there are the most holes.
fn sizes() -> impl Iterator<Item = usize> {
    let large = std::iter::successors(Some(LARGEST), |size| Some(size * 3 / 4));
    let small = (SMALLEST..=SMALL).rev().step_by(STEP);
    large.take_while(|size| *size > SMALL).chain(small)
}

/// Whether a piece lies right behind the one of the same size that was made before it.
fn is_beside(last: *mut Filler, piece: *mut Filler, size: usize) -> bool {
    let with_its_word = (size + size_of::<usize>()).next_multiple_of(STEP);
    piece as usize == last as usize + with_its_word
}

/// Keeps these pieces of this size, which fill holes, unless more would be filled then than there is.
fn keep(pieces: &mut Vec<*mut Filler>, size: usize) -> bool {
    let mut fillers = fillers();
    let Some(room) = fillers.room.checked_sub(pieces.len() * size) else { return false };
    fillers.room = room;
    for piece in pieces.drain(..) {
        // SAFETY: at least SMALLEST bytes, aligned for anything, and ours alone.
        unsafe { piece.write(Filler { before: fillers.last }) };
        fillers.last = piece;
    }
    true
}

/// `Native.free_malloc_holes -> nil`: gives all fillers back.
pub(crate) fn give_back() {
    let mut next = std::mem::replace(&mut fillers().last, ptr::null_mut());
    while !next.is_null() {
        // SAFETY: `keep` has put it here, in this process or in the one that it was forked from; it is freed once.
        unsafe {
            let before = (*next).before;
            free(next.cast());
            next = before;
        }
    }
}
