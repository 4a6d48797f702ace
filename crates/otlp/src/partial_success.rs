//! What a collector answers that has refused some of the spans: an `ExportTraceServiceResponse`. Nothing in it is believed but a
//! number.

/// Returns the number of refused spans in this answer; 0 if it is malformed.
pub(crate) fn refused_spans(answer: &[u8]) -> u64 {
    let partial_success = field(answer, 1).and_then(|value| value.message());
    let refused = partial_success.and_then(|message| field(message, 1)?.number());
    refused.unwrap_or_default()
}

#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Message(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(self) -> Option<u64> {
        if let Value::Number(number) = self {
            Some(number)
        } else {
            None
        }
    }

    fn message(self) -> Option<&'a [u8]> {
        if let Value::Message(message) = self {
            Some(message)
        } else {
            None
        }
    }
}

/// The first field with this number.
fn field(mut message: &[u8], number: u64) -> Option<Value<'_>> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut message)?),
            1 => Value::Message(bytes(&mut message, 8)?),
            2 => {
                let length = varint(&mut message)?;
                Value::Message(bytes(&mut message, length)?)
            }
            5 => Value::Message(bytes(&mut message, 4)?),
            _ => return None,
        };
        if tag >> 3 == number {
            return Some(value);
        }
    }
    None
}

fn bytes<'a>(message: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (bytes, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
    *message = rest;
    Some(bytes)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes(message, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_spans_are_counted() {
        assert_eq!(refused_spans(b"\x0a\x02\x08\x05"), 5);
        assert_eq!(refused_spans(b"\x0a\x09\x12\x04full\x08\x96\x01"), 150, "behind its message");
        assert_eq!(refused_spans(b""), 0);
    }

    #[test]
    fn a_malformed_answer_refuses_nothing() {
        let endless = [0x80; 100];
        let answers: [&[u8]; 6] = [
            b"\x0a",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\x7f\x08",
            b"\x0f\x01",
            &endless,
            b"<html>",
        ];
        for answer in answers {
            assert_eq!(refused_spans(answer), 0, "{answer:?}");
        }
    }
}
