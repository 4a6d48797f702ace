//! How inputs say in which pieces they arrive.

/// The pieces in which an input arrives, and all of its bytes. An input begins with the lengths of pieces (each less by
/// one; up to 15 of them); the rest is one more.
pub fn split_input(input: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let Some((count, rest)) = input.split_first() else { return (vec![&[]], &[]) };
    let (cuts, bytes) = rest.split_at(rest.len().min(usize::from(count % 16)));
    let mut pieces = Vec::new();
    let mut left = bytes;
    for cut in cuts {
        let (piece, rest) = left.split_at(left.len().min(usize::from(*cut) + 1));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    (pieces, bytes)
}
