//! Lines that wait to be written somewhere that may be slow or full: beyond a certain size they are dropped, and counted.

use std::io;
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

/// Appends whole lines: on a full disk, a write may end in the middle of one. The next line then begins below it.
#[derive(Debug, Default)]
pub struct LineEnds {
    /// The last line that was written has no end.
    is_cut_off: bool,
}

impl LineEnds {
    /// Writes all lines.
    ///
    /// # Errors
    /// Why `write` has failed, and the lines that are missing: of the first, a part may have been written.
    pub fn write<'a>(
        &mut self,
        lines: &'a [u8],
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> Result<(), (io::Error, &'a [u8])> {
        if self.is_cut_off && !lines.is_empty() {
            write_some(b"\n", &mut write).map_err(|error| (error, lines))?;
            self.is_cut_off = false;
        }
        let mut written = 0;
        while written < lines.len() {
            match write_some(&lines[written..], &mut write) {
                Ok(count) => written += count,
                Err(error) => {
                    let begin = memchr::memrchr(b'\n', &lines[..written]).map_or(0, |end| end + 1);
                    self.is_cut_off = begin < written;
                    return Err((error, &lines[begin..]));
                }
            }
        }
        Ok(())
    }
}

fn write_some(bytes: &[u8], write: &mut impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with this much room.
    fn write_to(disk: &mut Vec<u8>, room: usize, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(room - disk.len());
        disk.extend_from_slice(&bytes[..count]);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(count)
    }

    #[test]
    fn lines_stay_apart_whatever_room_the_disk_has() {
        let lines = b"one\ntwo\nthree\n";
        for room in 0..=lines.len() {
            let (mut disk, mut ends) = (Vec::new(), LineEnds::default());
            let first = ends.write(lines, |bytes| write_to(&mut disk, room, bytes));
            let missing = first.map_or_else(|(_, missing)| missing.to_vec(), |()| Vec::new());
            let whole = lines.len() - missing.len();
            assert_eq!(disk, lines[..room], "{room}");
            assert_eq!(whole, lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
            assert!(
                ends.write(&missing, |bytes| write_to(&mut disk, room, bytes)).is_err()
                    == (whole < lines.len())
            );
            ends.write(b"four\n", |bytes| write_to(&mut disk, 100, bytes)).unwrap();
            let end = if whole < room { &b"\nfour\n"[..] } else { b"four\n" };
            assert_eq!(disk, [&lines[..room], end].concat(), "{room}");
        }
    }

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
