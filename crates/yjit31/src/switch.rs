//! The switch of Ruby 3.1's compiler. `RubyVM::YJIT.enable` came with Ruby 3.3; in 3.1, the option `--yjit` turns the compiler on
//! for the whole life of the process, so it also compiles what runs only while an application boots.
//!
//! But Ruby 3.1 reads its compiler's options at every call of a method, from one structure (`rb_yjit_opts` in its `yjit.h`). While
//! `yjit_enabled` is false there, it neither counts calls nor compiles. The structure has no symbol that can be looked up, so it is
//! recognized by its content: Highball starts Ruby with a threshold that occurs nowhere else in its memory.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use libc::{dl_iterate_phdr, dl_phdr_info, PF_W, PT_LOAD};

/// The places of `struct rb_yjit_options`, in words of 32 bits: whether it is enabled, its memory, the number of calls after which
/// it compiles, two choices, and the number of versions of a block.
const ENABLED: usize = 0;
const CODE_MIB: usize = 1;
const THRESHOLD: usize = 2;
const CHOICES: usize = 3;
const VERSIONS: usize = 4;
const WORDS: usize = 5;
/// The default of `--yjit-max-versions`.
const USUAL_VERSIONS: u32 = 4;
/// The bits that a boolean has, and two of them beside each other.
const BOOLEAN: u32 = 0xff;
const BOOLEANS: u32 = 0xffff;

/// The options of the compiler in this process.
#[derive(Debug)]
pub struct Switch {
    enabled: &'static AtomicBool,
    threshold: &'static AtomicU32,
}

impl Switch {
    /// Finds the options. `None`: they are not there, or not in one place only.
    ///
    /// - `code_mib`, `threshold`: the values of `--yjit-exec-mem-size` and `--yjit-call-threshold` that Ruby was started with.
    ///
    /// # Safety
    /// `function` is a function of Ruby 3.1, and the process has no other thread that runs code of Ruby.
    pub unsafe fn find(function: *const (), code_mib: u32, threshold: u32) -> Option<Switch> {
        let options_in = |words: &'static [AtomicU32]| {
            places_of(words, code_mib, threshold).map(|place| &words[place..place + WORDS])
        };
        let mut places = writable_memory(function).into_iter().flat_map(options_in);
        let options = places.next().filter(|_| places.next().is_none())?;
        let enabled = options[ENABLED].as_ptr().cast::<bool>();
        // SAFETY: the first byte of the structure is a C boolean, and has been found to be 1. The memory belongs to a library that
        // stays loaded. Ruby reads and writes it with the GVL.
        let enabled = unsafe { AtomicBool::from_ptr(enabled) };
        Some(Switch { enabled, threshold: &options[THRESHOLD] })
    }

    /// Turns the compiler off before it has compiled anything.
    pub fn hold(&self) {
        self.enabled.store(false, Relaxed);
    }

    /// Turns it on. It compiles methods that are called this number of times from now on.
    pub fn release(&self, calls: u32) {
        self.threshold.store(calls, Relaxed);
        self.enabled.store(true, Relaxed);
    }
}

/// Where in this memory there are options of a compiler that is enabled, with these values.
fn places_of(words: &[AtomicU32], code_mib: u32, threshold: u32) -> impl Iterator<Item = usize> + '_ {
    let matches = move |part: &[AtomicU32]| {
        let word = |at: usize| part[at].load(Relaxed);
        word(THRESHOLD) == threshold
            && word(CODE_MIB) == code_mib
            && word(VERSIONS) == USUAL_VERSIONS
            && word(ENABLED) & BOOLEAN == 1
            && word(CHOICES) & BOOLEANS == 0
    };
    words.windows(WORDS).enumerate().filter(move |(_, part)| matches(part)).map(|(place, _)| place)
}

/// The variables of the program or library that has this function.
fn writable_memory(function: *const ()) -> Vec<&'static [AtomicU32]> {
    let mut search = Search { function: function as usize, found: Vec::new() };
    // SAFETY: `look` gets the pointer to `search` that is passed here, and is called only during this call.
    unsafe { dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

struct Search {
    function: usize,
    found: Vec<&'static [AtomicU32]>,
}

/// Called for the program and each library, until one has the function. See dl_iterate_phdr(3).
unsafe extern "C" fn look(object: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: dl_iterate_phdr(3) passes a valid object with this number of headers, and what it was given itself.
    let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
    // SAFETY: the same.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let loaded = headers.iter().filter(|header| header.p_type == PT_LOAD).map(|header| {
        let from = (object.dlpi_addr + header.p_vaddr) as usize;
        (header.p_flags, from..from + header.p_memsz as usize)
    });
    if !loaded.clone().any(|(_, range)| range.contains(&search.function)) {
        return 0;
    }
    for (_, range) in loaded.filter(|(flags, _)| flags & PF_W != 0) {
        let from = range.start.next_multiple_of(size_of::<u32>());
        let length = range.end.saturating_sub(from) / size_of::<u32>();
        // SAFETY: the loader has mapped this range for the variables of a library that stays loaded. They are read and written
        // as atomics here, and by no other thread meanwhile, as the caller of `find` promises.
        search.found.push(unsafe { std::slice::from_raw_parts(from as *const AtomicU32, length) });
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 32;
    const CALLS: u32 = 0x6666_6667;

    fn memory(words: &[u32]) -> Vec<AtomicU32> {
        words.iter().map(|word| AtomicU32::new(*word)).collect()
    }

    fn places(words: &[u32]) -> Vec<usize> {
        places_of(&memory(words), MIB, CALLS).collect()
    }

    #[test]
    fn options_are_recognized_by_all_their_values() {
        assert_eq!(places(&[7, 1, MIB, CALLS, 0, 4, 0, 9]), [1]);
        assert_eq!(places(&[257, MIB, CALLS, 1 << 16, 4]), [0], "padding may be anything");
        for others in [
            &[1, MIB, CALLS, 0][..],
            &[0, MIB, CALLS, 0, 4],
            &[256, MIB, CALLS, 0, 4],
            &[1, MIB + 1, CALLS, 0, 4],
            &[1, MIB, CALLS - 1, 0, 4],
            &[1, MIB, CALLS, 1, 4],
            &[1, MIB, CALLS, 0, 5],
            &[],
        ] {
            assert_eq!(places(others), [0; 0], "{others:?}");
        }
    }

    // As Ruby has them: a variable of this program.
    static OPTIONS: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];
    static COPY: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];

    fn set(options: &[AtomicU32; 6]) {
        [1, MIB, CALLS, 0, 4, 0].iter().zip(options).for_each(|(value, word)| word.store(*value, Relaxed));
    }

    fn values() -> Vec<u32> {
        OPTIONS.iter().map(|word| word.load(Relaxed)).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "it has no loader")]
    fn the_compiler_is_held_and_released() {
        // SAFETY: what looks like options in this program are those of this test.
        let find = |threshold| unsafe { Switch::find(set as *const (), MIB, threshold) };
        assert!(find(CALLS).is_none());
        set(&OPTIONS);
        assert!(find(CALLS + 1).is_none());
        let switch = find(CALLS).unwrap();
        assert_eq!(values(), [1, MIB, CALLS, 0, 4, 0]);
        switch.hold();
        assert_eq!(values(), [0, MIB, CALLS, 0, 4, 0]);
        switch.release(30);
        assert_eq!(values(), [1, MIB, 30, 0, 4, 0]);
        set(&OPTIONS);
        set(&COPY);
        assert!(find(CALLS).is_none(), "two places match");
        // SAFETY: the same, with an address at which there is no function.
        assert!(unsafe { Switch::find(std::ptr::dangling(), MIB, CALLS) }.is_none());
    }
}
