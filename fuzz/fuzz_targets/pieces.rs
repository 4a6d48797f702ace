//! How inputs say in which pieces they arrive.

/// Splits an input in lengths of pieces (each less by one; up to 15 of them) and the bytes that are cut so.
pub fn split_input(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((count, rest)) = input.split_first() else { return (&[], &[]) };
    rest.split_at(rest.len().min(usize::from(count % 16)))
}
