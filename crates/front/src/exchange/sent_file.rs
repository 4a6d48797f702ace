//! An answer of status 200 whose body is one whole file, which the worker has opened. The front treats it as a static
//! file: the client gets what it asks for of the file, by its conditions and its range.

use crate::message::answer::FieldLines;
use crate::message::conditions::{self, content_range, Conditions, Validators, Verdict};

/// What the client gets of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentFile {
    verdict: Verdict,
    /// The length of the whole file, in bytes.
    whole: u64,
}

impl SentFile {
    /// What these conditions leave of a file that is known by this.
    pub(crate) fn judged(asked: Option<&Conditions>, known_by: Validators<'_>) -> Self {
        let verdict = asked.map_or(Verdict::Whole, |asked| conditions::judge(asked, known_by));
        SentFile { verdict, whole: known_by.length }
    }

    /// The status of the answer.
    pub(crate) fn status(self) -> u16 {
        self.verdict.part_of(self.whole).0
    }

    /// The offset and the length of what is sent, in bytes.
    pub(crate) fn part(self) -> (u64, u64) {
        let (_, offset, length) = self.verdict.part_of(self.whole);
        (offset, length)
    }

    /// Whether an answer that sends this has a field that the application has given it: without content, none that describes
    /// the content.
    pub(crate) fn keeps(self, name: &[u8]) -> bool {
        let begins_with = |text: &str| {
            name.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
        };
        matches!(self.verdict, Verdict::Whole | Verdict::Part { .. })
            || !begins_with("content-")
            || begins_with("content-security-policy")
    }

    /// Adds the fields that say which part it is.
    pub(crate) fn add_fields(self, has_accept_ranges: bool, lines: &mut FieldLines<'_>) {
        match self.verdict {
            Verdict::Part { offset, length } => {
                lines.add(b"content-range", &content_range(Some((offset, length)), self.whole));
            }
            Verdict::RangeNotSatisfiable => lines.add(b"content-range", &content_range(None, self.whole)),
            Verdict::Whole | Verdict::NotModified | Verdict::PreconditionFailed => {}
        }
        if !has_accept_ranges && matches!(self.verdict, Verdict::Whole | Verdict::Part { .. }) {
            lines.add(b"accept-ranges", b"bytes");
        }
    }
}
