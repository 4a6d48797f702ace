//! Name-value pairs (FastCGI specification, section 3.4).

/// Pairs, read one after the other; an error ends them.
pub(super) struct Pairs<'a>(pub(super) &'a [u8]);

/// The pairs end within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutOff;

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), CutOff>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let pair = self.pair();
        if pair.is_none() {
            self.0 = &[];
        }
        Some(pair.ok_or(CutOff))
    }
}

impl<'a> Pairs<'a> {
    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let name_bytes = self.length()?;
        let value_bytes = self.length()?;
        let (name, rest) = self.0.split_at_checked(name_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.0 = rest;
        Some((name, value))
    }

    /// A length below 128 is one byte; any other has four, and the highest bit set.
    fn length(&mut self) -> Option<usize> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(usize::from(first));
        }
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some((u32::from_be_bytes(*bytes) & 0x7fff_ffff) as usize)
    }
}

/// Appends a pair.
pub(super) fn write_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for length in [name.len(), value.len()] {
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => out.push(short),
            _ => out.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes()),
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}
