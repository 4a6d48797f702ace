//! Lines that wait to be written somewhere that may be slow: beyond a certain size they are dropped, and counted.

use std::mem::take;

/// Bytes that may wait.
const MOST_BYTES: usize = 4 << 20;

/// The lines.
#[derive(Debug, Default)]
pub struct LineBuffer {
    lines: Vec<u8>,
    /// Dropped lines that were not reported yet.
    dropped: u64,
}

impl LineBuffer {
    /// Adds a line, with its end. Returns the number of bytes that wait.
    pub fn add(&mut self, line: &[u8]) -> usize {
        if self.lines.len() + line.len() > MOST_BYTES {
            self.dropped += 1;
            return 0;
        }
        self.lines.extend_from_slice(line);
        self.lines.len()
    }

    /// These lines could not be written.
    pub fn drop_lines(&mut self, lines: &[u8]) {
        self.dropped += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes what waits.
    pub fn take(&mut self) -> Vec<u8> {
        take(&mut self.lines)
    }

    /// How many lines were dropped since this was asked last.
    pub fn take_dropped(&mut self) -> u64 {
        take(&mut self.dropped)
    }

    /// Whether lines were dropped since.
    pub fn has_dropped(&self) -> bool {
        self.dropped > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let mut buffer = LineBuffer::default();
        let line = [&[b'x'; 99][..], b"\n"].concat();
        let added = (0..MOST_BYTES / 100 + 5).filter(|_| buffer.add(&line) > 0).count();
        assert_eq!((added, buffer.has_dropped()), (MOST_BYTES / 100, true));
        assert_eq!((buffer.take().len(), buffer.take_dropped()), (added * 100, 5));
        assert!(buffer.is_empty() && !buffer.has_dropped());
        buffer.drop_lines(b"a\nb\n");
        assert_eq!((buffer.add(b"c\n"), buffer.take_dropped()), (2, 2));
    }
}
