//! Places in a text that are masked together.

use crate::MASK;
use std::ops::Range;

/// The text with a mask instead of each span; `None`: nothing changes. A mask that is there already joins the spans
/// that it touches, so that masking a text twice gives the same as masking it once. Line ends stay, so that numbered
/// lines keep their numbers.
pub(crate) fn masked(text: &str, mut spans: Vec<Range<usize>>) -> Option<String> {
    if spans.is_empty() {
        return None;
    }
    spans.extend(text.match_indices(MASK).map(|(start, mask)| start..start + mask.len()));
    spans.sort_by_key(|span| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut written = 0;
    let mut spans = spans.into_iter().filter(|span| span.start < span.end).peekable();
    while let Some(mut span) = spans.next() {
        while let Some(next) = spans.next_if(|next| next.start <= span.end) {
            span.end = span.end.max(next.end);
        }
        while !text.is_char_boundary(span.start) {
            span.start -= 1;
        }
        while !text.is_char_boundary(span.end) {
            span.end += 1;
        }
        masked.push_str(&text[written..span.start]);
        push_masks(&mut masked, &text[span.clone()]);
        written = span.end;
    }
    masked.push_str(&text[written..]);
    (masked != text).then_some(masked)
}

/// A mask for each line of a secret, behind what it is indented by.
fn push_masks(masked: &mut String, secret: &str) {
    for (number, line) in secret.split('\n').enumerate() {
        if number > 0 {
            masked.push('\n');
        }
        let content = line.trim();
        if content.is_empty() {
            masked.push_str(line);
        } else {
            masked.push_str(&line[..line.len() - line.trim_start().len()]);
            masked.push_str(MASK);
            masked.push_str(&line[line.trim_end().len()..]);
        }
    }
}

#[cfg(test)]
mod tests {
    fn masked(text: &str, spans: &[(usize, usize)]) -> Option<String> {
        super::masked(text, spans.iter().map(|(start, end)| *start..*end).collect())
    }

    #[test]
    fn spans_that_touch_become_one_mask() {
        assert_eq!(masked("abcdef", &[(3, 5), (1, 3)]).unwrap(), "a[masked]f");
        assert_eq!(masked("ab[masked]cd", &[(1, 4)]).unwrap(), "a[masked]cd");
        assert_eq!(masked("[masked] a", &[(0, 8)]), None);
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(masked("x\n  ab\n\ncd\ny", &[(2, 11)]).unwrap(), "x\n  [masked]\n\n[masked]\ny");
    }
}
