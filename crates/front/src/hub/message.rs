//! A message, as an application publishes it and as clients get it: a server-sent event (WHATWG HTML, "Server-sent events").

use std::fmt::{self, Display};

use memchr::memchr2;

use crate::hub::Unpublishable;

/// Longest name of a stream or an event, in bytes.
const NAME_BYTES: usize = 256;

/// What each line of the data begins with.
const DATA: &[u8] = b"data: ";

/// Memory of a kept message beside its text, in bytes: 40 in its stream, 33 to find it by its number, and what the allocator adds.
const MESSAGE_BYTES: u64 = 96;

/// A message before it is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'a> {
    /// Name of its stream.
    pub(crate) stream: &'a [u8],
    /// Type of the event; empty if it has none.
    pub(crate) event: &'a [u8],
    pub(crate) data: &'a [u8],
}

impl Draft<'_> {
    /// Checks that it can be sent as an event.
    ///
    /// # Errors
    /// It cannot, or is larger than `most_bytes`.
    pub(super) fn check(&self, most_bytes: u64) -> Result<(), Unpublishable> {
        if self.data.len() as u64 > most_bytes {
            return Err(Unpublishable::TooLarge { bytes: self.data.len() as u64, most_bytes });
        }
        if !is_stream_name(self.stream) {
            return Err(Unpublishable::StreamName);
        }
        let is_event = |byte: &u8| *byte >= b' ' && *byte != 0x7f;
        if self.event.len() > NAME_BYTES || !self.event.iter().all(is_event) {
            return Err(Unpublishable::EventName);
        }
        if [self.event, self.data].iter().any(|text| std::str::from_utf8(text).is_err()) {
            return Err(Unpublishable::NotUtf8);
        }
        Ok(())
    }
}

/// Returns whether a stream may have this name: it must fit into a list in a header field.
pub(super) fn is_stream_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| *byte >= b' ' && *byte != 0x7f && *byte != b',';
    (1..=NAME_BYTES).contains(&name.len()) && name.iter().all(is_allowed) && name.trim_ascii() == name
}

/// The id of a message, unique over all processes of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    /// Random number of the server process.
    pub(crate) epoch: u64,
    /// Number of the message in its application; 0 before the first.
    pub(crate) number: u64,
}

impl EventId {
    /// Reads a `Last-Event-ID`. Returns `None` if it is not from a hub.
    pub(super) fn parse(text: &[u8]) -> Option<EventId> {
        let (epoch, number) = std::str::from_utf8(text.trim_ascii()).ok()?.split_once('-')?;
        let is_written_here = number.bytes().all(|byte| byte.is_ascii_digit());
        EventId::of(epoch, number.parse().ok()?).filter(|_| is_written_here)
    }

    /// Returns the id of a message in the epoch with this text. `None`: that is of no hub.
    pub(crate) fn of(epoch: &str, number: u64) -> Option<EventId> {
        let is_written_here = epoch.len() == 16;
        let epoch = u64::from_str_radix(epoch, 16).ok().filter(|_| is_written_here)?;
        Some(EventId { epoch, number })
    }

    pub(super) fn epoch_text(self) -> String {
        format!("{:016x}", self.epoch)
    }
}

impl Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.epoch, self.number)
    }
}

/// A published message, encoded once for all clients.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) number: u64,
    /// Time of publishing, in milliseconds.
    pub(super) at_ms: u64,
    pub(super) text: Box<[u8]>,
    /// Where its data begins in the text, and whether that has several lines.
    data_at: u32,
    has_lines: bool,
}

impl Message {
    pub(super) fn encode(id: EventId, at_ms: u64, draft: &Draft<'_>) -> Message {
        let mut text = format!("id: {id}\n").into_bytes();
        if !draft.event.is_empty() {
            text.extend_from_slice(b"event: ");
            text.extend_from_slice(draft.event);
            text.push(b'\n');
        }
        let data_at = (text.len() + DATA.len()) as u32;
        let mut rest = Some(draft.data);
        while let Some(data) = rest {
            let end = memchr2(b'\n', b'\r', data);
            text.extend_from_slice(DATA);
            text.extend_from_slice(&data[..end.unwrap_or(data.len())]);
            text.push(b'\n');
            rest = end.map(|end| &data[end + if data[end..].starts_with(b"\r\n") { 2 } else { 1 }..]);
        }
        text.push(b'\n');
        let has_lines = memchr2(b'\n', b'\r', draft.data).is_some();
        Message { number: id.number, at_ms, text: text.into_boxed_slice(), data_at, has_lines }
    }

    /// The type of the event; empty if it has none.
    pub(super) fn event(&self) -> &[u8] {
        let fields = self.text[..self.data_at as usize - DATA.len()].split(|byte| *byte == b'\n');
        fields.filter_map(|field| field.strip_prefix(b"event: ")).next().unwrap_or_default()
    }

    /// The data as it was published, in pieces; but each end of a line is `\n`.
    pub(super) fn data(&self) -> impl Iterator<Item = &[u8]> {
        let text = &self.text[self.data_at as usize..self.text.len() - 2];
        let most = if self.has_lines { usize::MAX } else { 1 };
        let lines = text.splitn(most, |byte| *byte == b'\n').enumerate();
        lines.flat_map(|(index, line)| match index {
            0 => [&b""[..], line],
            _ => [&b"\n"[..], &line[DATA.len()..]],
        })
    }

    /// The type of the event, and the data.
    pub(super) fn texts(&self) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(self.event()), text(&self.data().collect::<Vec<_>>().concat()))
    }

    /// Returns the memory that it takes, in bytes.
    pub(super) fn cost(&self) -> u64 {
        self.text.len() as u64 + MESSAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(event: &str, data: &str) -> String {
        let id = EventId { epoch: 0xab, number: 7 };
        let draft = Draft { stream: b"s", event: event.as_bytes(), data: data.as_bytes() };
        String::from_utf8(Message::encode(id, 0, &draft).text.into_vec()).unwrap()
    }

    #[test]
    fn an_event_has_an_id_and_a_line_for_each_of_its_data() {
        assert_eq!(text("", "one"), "id: 00000000000000ab-7\ndata: one\n\n");
        assert_eq!(text("x", ""), "id: 00000000000000ab-7\nevent: x\ndata: \n\n");
        let lines = "id: 00000000000000ab-7\ndata: a\ndata: b\ndata: \ndata: c\ndata: \n\n";
        assert_eq!(text("", "a\nb\r\n\rc\n"), lines);
    }

    #[test]
    fn the_data_comes_back_as_it_was_published() {
        for (data, expected) in
            [("", ""), ("one", "one"), ("a\r\nb\rdata: c\n", "a\nb\ndata: c\n"), ("\n", "\n")]
        {
            for event in ["", "x"] {
                let draft = Draft { stream: b"s", event: event.as_bytes(), data: data.as_bytes() };
                let message = Message::encode(EventId { epoch: 1, number: 7 }, 0, &draft);
                let pieces: Vec<&[u8]> = message.data().collect();
                assert_eq!(String::from_utf8(pieces.concat()).unwrap(), expected);
                assert_eq!(message.event(), event.as_bytes());
            }
        }
    }

    #[test]
    fn names_are_such_as_a_header_field_can_list() {
        let long = vec![b'x'; NAME_BYTES];
        for good in [&b"a"[..], b"chat:1", b"a b", "caf\u{e9}".as_bytes(), b"\xff", &long] {
            assert!(is_stream_name(good));
        }
        let too_long = vec![b'x'; NAME_BYTES + 1];
        for bad in [&b""[..], b" a", b"a ", b"a,b", b"a\nb", b"\0", b"\x7f", &too_long, &[b'x'; 1 << 20]] {
            assert!(!is_stream_name(bad));
        }
    }

    #[test]
    fn what_cannot_be_an_event_is_refused() {
        let check = |event: &[u8], data: &[u8]| Draft { stream: b"s", event, data }.check(10);
        assert_eq!(check(b"e", b"0123456789"), Ok(()));
        assert_eq!(check(b"", b"0123456789x"), Err(Unpublishable::TooLarge { bytes: 11, most_bytes: 10 }));
        assert_eq!(check(b"a\nid: 1", b""), Err(Unpublishable::EventName));
        assert_eq!(check(b"", b"\xff"), Err(Unpublishable::NotUtf8));
        assert_eq!(Draft { stream: b"a,b", event: b"", data: b"" }.check(10), Err(Unpublishable::StreamName));
    }

    proptest! {
        #[test]
        fn ids_are_read_as_they_are_written(epoch: u64, number: u64) {
            let id = EventId { epoch, number };
            prop_assert_eq!(EventId::parse(id.to_string().as_bytes()), Some(id));
        }

        #[test]
        fn any_bytes_are_an_id_or_none(bytes: Vec<u8>) {
            if let Some(id) = EventId::parse(&bytes) {
                prop_assert_eq!(id.to_string().len() <= 37, true);
            }
        }

        #[test]
        fn no_data_ends_its_event_or_adds_a_field(data: String) {
            let text = text("e", &data);
            let (body, end) = text.split_at(text.len() - 1);
            prop_assert_eq!(end, "\n");
            let lines: Vec<&str> = body.strip_suffix('\n').unwrap().split('\n').collect();
            prop_assert!(lines[2..].iter().all(|line| line.starts_with("data: ") && !line.contains('\r')));
            let sent: Vec<&str> = lines[2..].iter().map(|line| &line[6..]).collect();
            prop_assert_eq!(sent.join("\n"), data.replace("\r\n", "\n").replace('\r', "\n"));
        }
    }
}
