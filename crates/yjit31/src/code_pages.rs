//! The memory that Ruby 3.1 sets aside for compiled code.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;

use rustix::mm::{madvise, Advice};
use rustix::param::page_size;

/// What Ruby 3.1 fills this memory with at the start: an instruction that is invalid in 64-bit mode.
const FILLER: u8 = 0x1e;

/// Gives the pages back on which no code has been written. Returns the bytes. The caller is a thread with the GVL of a Ruby
/// 3.1 that was started with its compiler, which writes to these pages without reading them before.
pub fn free_unused() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(of_code).map(free_unused_of).sum()
}

/// The addresses of memory that may be executed, and is no file's.
fn of_code(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_whitespace();
    let (range, may, _offset, _device, inode) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let is_code = may.starts_with('r') && may.contains('x') && inode == "0" && words.next().is_none();
    let (from, to) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    is_code.then_some(address(from)?..address(to)?)
}

fn free_unused_of(code: Range<usize>) -> usize {
    let filled = vec![FILLER; page_size()];
    let mut freed = 0;
    let mut unused = code.start..code.start;
    for page in code.clone().step_by(page_size()) {
        // SAFETY: the kernel has reported these addresses as readable a moment ago. They are those of the compiler, which keeps
        // its memory as long as the process lives, and changes it with the GVL alone, which this thread has.
        let bytes = unsafe { std::slice::from_raw_parts(page as *const u8, page_size()) };
        if bytes == filled {
            unused.end = page + page_size();
        } else {
            freed += give_back(&unused);
            unused = page + page_size()..page + page_size();
        }
    }
    freed + give_back(&unused)
}

fn give_back(unused: &Range<usize>) -> usize {
    if unused.is_empty() {
        return 0;
    }
    // SAFETY: the pages are private, hold the filler alone, and are not executed. They are zero when they are used next.
    let given = unsafe { madvise(unused.start as *mut c_void, unused.len(), Advice::LinuxDontNeed) };
    given.map_or(0, |()| unused.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_without_a_file_is_code() {
        assert_eq!(of_code("7f00-7f10 r-xp 00000000 00:00 0 "), Some(0x7f00..0x7f10));
        assert_eq!(of_code("7f00-7f10 rwxp 00000000 00:00 0 "), Some(0x7f00..0x7f10));
        for other in [
            "7f00-7f10 rw-p 00000000 00:00 0 ",
            "7f00-7f10 r-xp 00000000 fe:00 1634 /usr/lib/libc.so.6",
            "7f00-7f10 r-xp 00000000 00:00 0 [vdso]",
            "7f00-7f10 --xp 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(of_code(other), None, "{other}");
        }
    }

    #[test]
    fn pages_with_code_stay() {
        use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
        let (page, pages) = (page_size(), 8);
        // SAFETY: a mapping of this test's own, which nothing else knows.
        let memory = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                page * pages,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let memory = memory.unwrap().cast::<u8>();
        // SAFETY: the same.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory, page * pages) };
        bytes.fill(FILLER);
        bytes[2 * page + 5] = 0x90;
        bytes[3 * page] = 0;
        let code = memory as usize..memory as usize + page * pages;
        assert_eq!(free_unused_of(code), 6 * page);
        let firsts: Vec<_> = (0..pages).map(|number| bytes[number * page]).collect();
        assert_eq!(firsts, [0, 0, FILLER, 0, 0, 0, 0, 0]);
        assert_eq!((bytes[2 * page + 5], bytes[3 * page + 1]), (0x90, FILLER));
        // SAFETY: the same; nothing uses it after this.
        unsafe { munmap(memory.cast(), page * pages) }.unwrap();
    }
}
