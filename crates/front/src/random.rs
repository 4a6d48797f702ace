//! Random bytes of the kernel, for ids.

use rustix::io::Errno;
use rustix::rand::{getrandom, GetRandomFlags};

/// Bytes that are read at a time: few requests need a system call, and none takes long.
const READ_BYTES: usize = 2048;

/// Random bytes.
#[derive(Debug)]
pub(crate) struct RandomBytes {
    bytes: Box<[u8; READ_BYTES]>,
    /// The bytes that were used.
    used: usize,
}

impl Default for RandomBytes {
    fn default() -> Self {
        RandomBytes { bytes: Box::new([0; READ_BYTES]), used: READ_BYTES }
    }
}

impl RandomBytes {
    /// Takes some bytes, no more than are read at a time.
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= READ_BYTES) };
        if self.used + N > READ_BYTES {
            self.fill();
            self.used = 0;
        }
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[self.used..self.used + N]);
        self.used += N;
        taken
    }

    fn fill(&mut self) {
        let mut filled = 0;
        while filled < READ_BYTES {
            match getrandom(&mut self.bytes[filled..], GetRandomFlags::empty()) {
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR) => {}
                Err(error) => panic!("the kernel has no random bytes: {error}"), // as of `HashMap`
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_bytes_are_taken_twice() {
        let mut random = RandomBytes::default();
        let taken: HashSet<[u8; 24]> = (0..1000).map(|_| random.take()).collect();
        assert_eq!(taken.len(), 1000);
    }
}
