//! The request area: a head block of fixed part and fields, then the body if it is small.

/// Bytes of the fixed part of a head block.
pub const FIXED_BYTES: usize = 40;
/// Bytes before the name and value of each field.
pub const FIELD_BYTES: usize = 8;

/// Flag: the body follows the head block.
pub const BODY_INLINE: u32 = 1;
/// Flag: the body is an open file on the descriptor socket.
pub const BODY_SPOOLED: u32 = 2;
/// Flag: the client speaks TLS.
pub const HTTPS: u32 = 4;
/// Flag: the request is HTTP/1.0.
pub const HTTP_1_0: u32 = 8;
/// Flag: the method is HEAD.
pub const HEAD_METHOD: u32 = 16;
/// Flag: the application cannot take the connection over as it is, because it is a web server's (FastCGI, LSAPI).
pub const NO_TAKEOVER: u32 = 32;
/// Flag: the request runs on a fiber; the socket of its answer comes with it.
pub const ON_FIBER: u32 = 64;

/// The fixed part of a head block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fixed {
    /// Bytes of the head block, this part included.
    pub head_bytes: u32,
    /// Fields that follow.
    pub fields: u32,
    /// The flags above.
    pub flags: u32,
    /// Time for the answer to begin, from `received_us` on, in ms; 0: no limit.
    pub limit_ms: u32,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// When the request's first byte was read: µs, CLOCK_MONOTONIC.
    pub received_us: u64,
    /// When its wait for a worker began, on the same clock: after its body came, earlier by what proxies report.
    pub waiting_since_us: u64,
}

impl Fixed {
    /// The bytes of this part.
    pub fn encode(self) -> [u8; FIXED_BYTES] {
        let mut bytes = [0; FIXED_BYTES];
        bytes[0..4].copy_from_slice(&self.head_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.fields.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.flags.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.limit_ms.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.received_us.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.waiting_since_us.to_le_bytes());
        bytes
    }

    /// Reads the part back.
    pub fn decode(bytes: &[u8; FIXED_BYTES]) -> Self {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Fixed {
            head_bytes: u32_at(0),
            fields: u32_at(4),
            flags: u32_at(8),
            limit_ms: u32_at(12),
            body_bytes: u64_at(16),
            received_us: u64_at(24),
            waiting_since_us: u64_at(32),
        }
    }
}

/// A field of a head block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Index into [`crate::env_keys::KEYS`], or [`crate::env_keys::OTHER`].
    pub key: u16,
    /// The name, if `key` is `OTHER`.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// The fields of a head block, read one after the other. Ends early at a field that does not fit.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields in `block`: what follows the fixed part.
    pub fn new(block: &'a [u8]) -> Self {
        Fields(block)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let (fixed, rest) = self.0.split_first_chunk::<FIELD_BYTES>()?;
        let key = u16::from_le_bytes([fixed[0], fixed[1]]);
        let name_bytes = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
        let value_bytes = u32::from_le_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]) as usize;
        let (name, rest) = rest.split_at_checked(name_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.0 = rest;
        Some(Field { key, name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(block: &mut Vec<u8>, key: u16, name: &[u8], value: &[u8]) {
        block.extend(key.to_le_bytes());
        block.extend((name.len() as u16).to_le_bytes());
        block.extend((value.len() as u32).to_le_bytes());
        block.extend(name);
        block.extend(value);
    }

    #[test]
    fn the_fixed_part_is_encoded_without_loss() {
        let fixed = Fixed {
            head_bytes: 1,
            fields: 2,
            flags: BODY_SPOOLED | HTTPS,
            limit_ms: 60_000,
            body_bytes: u64::MAX,
            received_us: 1 << 40,
            waiting_since_us: 1 << 41,
        };
        assert_eq!(Fixed::decode(&fixed.encode()), fixed);
    }

    #[test]
    fn fields_are_read_in_order_and_a_cut_one_ends_them() {
        let mut block = Vec::new();
        push(&mut block, 3, b"", b"value");
        push(&mut block, 0xffff, b"HTTP_X", b"");
        let fields: Vec<_> = Fields::new(&block).collect();
        let expected = [
            Field { key: 3, name: b"", value: b"value" },
            Field { key: 0xffff, name: b"HTTP_X", value: b"" },
        ];
        assert_eq!(fields, expected);
        for cut in 0..block.len() {
            let count = Fields::new(&block[..cut]).count();
            assert_eq!(count, usize::from(cut >= FIELD_BYTES + 5));
        }
    }

    #[test]
    fn lengths_beyond_the_block_end_the_fields() {
        assert_eq!(Fields::new(&[0xff; 64]).count(), 0);
    }
}
