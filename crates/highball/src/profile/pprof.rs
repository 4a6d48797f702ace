//! The protocol buffer of `go tool pprof`, in gzip. These few messages (profile.proto) are written by hand: a library for protocol
//! buffers would be larger than this file, and generate code from a copy of their definition.

use crate::profile::calls::{Calls, Unit};
use crate::profile::About;
use flate2::write::GzEncoder;
use flate2::Compression;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::SystemTime;

/// # Errors
/// The compression fails.
pub(crate) fn pprof(calls: &Calls, about: &About) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&message(calls, about))?;
    out.finish()
}

/// Texts are named by their numbers; the first is empty.
struct Texts {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Self {
        Texts { list: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

fn message(calls: &Calls, about: &About) -> Vec<u8> {
    let mut texts = Texts::new();
    let (kind, unit) = match calls.unit {
        Unit::Microseconds => (about.mode.to_string(), "microseconds"),
        Unit::Objects => ("alloc_objects".into(), "count"),
    };
    let mut value_type = Message::default();
    value_type.number(1, texts.number(&kind)).number(2, texts.number(unit));
    let mut profile = Message::default();
    profile.message(1, &value_type);
    for (stack, weight) in &calls.stacks {
        let mut sample = Message::default();
        // The innermost first. Names, functions and locations have the same numbers, from 1.
        sample
            .numbers(1, stack.iter().rev().map(|name| u64::from(*name) + 1))
            .numbers(2, [*weight].into_iter());
        profile.message(2, &sample);
    }
    for (number, name) in (1..).zip(calls.names) {
        let (label, file, line) = (texts.number(&name.label), texts.number(&name.file), u64::from(name.line));
        let (mut function, mut location, mut place) =
            (Message::default(), Message::default(), Message::default());
        function.number(1, number).number(2, label).number(3, label).number(4, file).number(5, line);
        place.number(1, number).number(2, line);
        location.number(1, number).message(4, &place);
        profile.message(4, &location).message(5, &function);
    }
    let began = about.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    profile.number(9, began.as_nanos() as u64).number(10, about.time.as_nanos() as u64);
    texts.list.iter().for_each(|text| profile.bytes(6, text.as_bytes()));
    profile.0
}

/// An encoded message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0);
        self
    }

    fn numbers(&mut self, field: u64, numbers: impl Iterator<Item = u64>) -> &mut Self {
        let mut packed = Message::default();
        numbers.for_each(|number| packed.varint(number));
        self.message(field, &packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        let mut message = Message::default();
        message.number(1, 300);
        assert_eq!(message.0, [0x08, 0xac, 0x02]);
    }
}
