//! What each transaction of `Highball::PStore` asks the system, in one call and without Ruby's objects: whether a store is
//! still as its process knows it. `lib/highball/pstore/store_file.rb` does the same in Ruby where this is not loaded, and
//! whenever the answer here is no.
//!
//! All of it happens with the GVL held, so nothing here may wait: the file is on a disk of this machine (the caller knows
//! that), a lock that another process has is not waited for, and bytes that are not in memory are not read.
#![allow(unsafe_code)]

use std::io::IoSliceMut;
use std::os::fd::{BorrowedFd, RawFd};

use magnus::{function, prelude::*, Error, RModule, RString};
use rustix::fs::{flock, makedev, stat, statx, AtFlags, FlockOperation, Stat, StatxFlags, CWD};
use rustix::io::{preadv2, Errno, ReadWriteFlags};

/// What tells one file from another, and what this process may do with it.
const IDENTITY: StatxFlags = StatxFlags::INO
    .union(StatxFlags::TYPE)
    .union(StatxFlags::MODE)
    .union(StatxFlags::UID)
    .union(StatxFlags::SIZE);

/// Defines the functions.
pub(crate) fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("same_state?", function!(same_state, 2))?;
    native.define_singleton_method("lock_same", function!(lock_same, 4))
}

/// `Native.same_state?(path, stamp) -> bool`: whether the file at this path has this stamp: device, inode, size, and the
/// seconds and nanoseconds of the last write and change, as integers of 64 bits.
fn same_state(path: RString, stamp: RString) -> bool {
    // SAFETY: Ruby runs no code before they have been used, so nothing changes or frees these strings.
    let (path, stamp) = unsafe { (path.as_slice(), stamp.as_slice()) };
    stat(path).is_ok_and(|found| is_packed(&state(&found), stamp))
}

/// `Native.lock_same(fd, path, identity, bytes) -> true | false | nil`: locks an open file for this process alone, and
/// returns whether the path still names it and it has these bytes. False if that is not so, or cannot be known without
/// waiting; the file may be locked then. Nil if the system cannot tell at all.
///
/// identity: device, inode, mode and owner of the open file, as integers of 64 bits.
///
/// The system is asked for all attributes but the times. After a question for these, the next write gets an exact time, which
/// takes longer than the write.
fn lock_same(fd: RawFd, path: RString, identity: RString, bytes: RString) -> Option<bool> {
    // SAFETY: as in `same_state`.
    let (path, identity, bytes) = unsafe { (path.as_slice(), identity.as_slice(), bytes.as_slice()) };
    // SAFETY: the caller has just got the number from an open file, which no other thread can close before this one has
    // given the GVL away.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    match locked_same(file, path, identity, bytes) {
        Ok(same) => Some(same),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => None,
        Err(_) => Some(false), // (the caller finds out what is wrong)
    }
}

fn locked_same(file: BorrowedFd<'_>, path: &[u8], identity: &[u8], bytes: &[u8]) -> Result<bool, Errno> {
    flock(file, FlockOperation::NonBlockingLockExclusive)?;
    let found = statx(CWD, path, AtFlags::empty(), IDENTITY)?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    let known = [device, found.stx_ino, u64::from(found.stx_mode), u64::from(found.stx_uid)];
    if !is_packed(&known, identity) || found.stx_size != bytes.len() as u64 {
        return Ok(false);
    }
    let mut now = vec![0; bytes.len()];
    let length = preadv2(file, &mut [IoSliceMut::new(&mut now)], 0, ReadWriteFlags::NOWAIT)?;
    Ok(length == bytes.len() && now == bytes)
}

fn state(found: &Stat) -> [u64; 7] {
    [
        found.st_dev,
        found.st_ino,
        found.st_size as u64,
        found.st_mtime as u64,
        found.st_mtime_nsec,
        found.st_ctime as u64,
        found.st_ctime_nsec,
    ]
}

/// Whether these are the numbers, as Ruby's `pack("Q*")` writes them.
fn is_packed(numbers: &[u64], packed: &[u8]) -> bool {
    packed.len() == size_of_val(numbers)
        && packed
            .chunks_exact(size_of::<u64>())
            .zip(numbers)
            .all(|(bytes, number)| bytes == number.to_ne_bytes())
}
