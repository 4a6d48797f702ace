//! Bytes that processes print, as lines for the log.

use highball_text::visible_bytes;

/// The most bytes of a line that are logged.
pub(crate) const LINE_BYTES: usize = 8 * 1024;
/// What stands after a line that was longer.
const CUT: &str = " [cut after 8 KiB]";

/// Makes lines of what comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The line was cut already: the rest of it is left out.
    is_cut: bool,
}

impl Lines {
    /// Takes the next piece, and gives each line that ends with it to `each`. Returns the number of bytes that were
    /// left out.
    pub(crate) fn add(&mut self, bytes: &[u8], mut each: impl FnMut(String)) -> usize {
        let mut left_out = 0;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let ends = text.len() < piece.len();
            if self.is_cut {
                left_out += text.len();
            } else {
                let room = LINE_BYTES - self.partial.len();
                self.partial.extend_from_slice(&text[..text.len().min(room)]);
                self.is_cut = text.len() > room;
                if self.is_cut {
                    each(self.take() + CUT);
                } else if ends {
                    each(self.take());
                }
            }
            self.is_cut &= !ends;
        }
        left_out
    }

    /// What has come of a line whose end has not.
    pub(crate) fn rest(&mut self) -> Option<String> {
        self.has_partial().then(|| self.take())
    }

    pub(crate) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    fn take(&mut self) -> String {
        let line = std::mem::take(&mut self.partial);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        // A character that was cut in two is left out.
        let whole = match std::str::from_utf8(line) {
            Err(error) if line.len() == LINE_BYTES && error.error_len().is_none() => error.valid_up_to(),
            _ => line.len(),
        };
        visible_bytes(&line[..whole])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.add(piece, |line| out.push(line));
        }
        (out, lines.rest())
    }

    #[test]
    fn lines_end_where_they_end_however_they_come() {
        assert_eq!(
            lines(&[b"a\nb", b"c\r\n\nd"]),
            (vec!["a".into(), "bc".into(), String::new()], Some("d".into()))
        );
        assert_eq!(lines(&[]), (vec![], None));
    }

    #[test]
    fn what_is_not_utf_8_and_controls_are_shown() {
        assert_eq!(lines(&[b"\xff\x1b[2J\xc3", b"\xa4\n"]).0, ["\\xff\\x1b[2J\u{e4}"]);
    }

    #[test]
    fn a_long_line_is_cut_once_and_says_so() {
        let long = vec![b'x'; LINE_BYTES];
        let whole = String::from_utf8(long.clone()).unwrap();
        assert_eq!(lines(&[&long, b"\nb\n"]).0, [whole.clone(), "b".into()]);
        assert_eq!(lines(&[&long, b"y", b"yy", &long, b"y\nb\n"]).0, [whole + CUT, "b".into()]);
        let split = [&long[1..], "\u{e4}\n".as_bytes()].concat();
        let cut = lines(&[&split]).0.remove(0);
        assert!(cut.ends_with(&format!("x{CUT}")) && cut.len() == LINE_BYTES - 1 + CUT.len());
    }

    #[test]
    fn however_long_a_line_is_no_more_is_kept() {
        let mut lines = Lines::default();
        let (mut count, mut left_out) = (0, 0);
        for _ in 0..1000 {
            left_out += lines.add(&[b'x'; 1000], |_| count += 1);
        }
        assert_eq!((count, left_out, lines.partial.capacity() <= 4 * LINE_BYTES), (1, 991_000, true));
        lines.add(b"\nnext\n", |line| assert_eq!(line, "next"));
    }
}
