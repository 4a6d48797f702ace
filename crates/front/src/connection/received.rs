//! What a client has sent and nothing has used yet.

/// Bytes in their order. Taking some off the beginning moves none of the others, however many requests a client sends ahead.
#[derive(Debug, Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    /// Those before are used up.
    begin: usize,
}

impl Received {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Received { bytes, begin: 0 }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begin == self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.begin
    }

    /// Appends bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        // Moved to the beginning once as many have been used up, so that each is moved at most once on average.
        if self.begin > 0 && self.begin >= self.len() {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes this number of bytes off the beginning.
    pub(super) fn take_off(&mut self, used: usize) {
        self.begin += used;
        if self.is_empty() {
            // The connection may be idle from here on.
            *self = Received::default();
        }
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut received = std::mem::take(self);
        received.bytes.drain(..received.begin);
        received.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_off_does_not_come_back() {
        let mut received = Received::default();
        for round in 0..100u8 {
            received.add(&[round; 10]);
            assert_eq!(received.as_slice()[0], round / 2);
            received.take_off(5);
        }
        assert_eq!((received.len(), received.as_slice()[0]), (500, 50));
        assert!(received.bytes.len() <= 1010, "what is used up does not pile up");
        received.take_off(5);
        assert_eq!(received.take().len(), 495);
        assert!(received.is_empty() && received.as_slice().is_empty());
    }
}
