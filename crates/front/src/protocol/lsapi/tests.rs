use proptest::prelude::*;

use super::packet::kind;
use super::*;
use crate::message::refusal::Refusal;
use crate::message::request_head::BodyFraming;
use crate::protocol::cgi::{CgiReader, CgiWriter, Event, ReadError};
use crate::tests::limits::limits;
use crate::tests::readers::{self, Found};

/// The connection is always kept.
fn read_in_pieces(input: &[u8], cuts: &[usize]) -> Vec<Found> {
    let found = readers::read_in_pieces(Reader::default(), input, cuts);
    assert!(!found.iter().any(|one| matches!(one, Found::Begin(false) | Found::Reply(_, true))));
    found
}

/// A request as a test wants it.
#[derive(Debug, Clone)]
struct Request {
    order: ByteOrder,
    body_bytes: i32,
    special: Vec<(&'static str, &'static str)>,
    variables: Vec<(&'static str, &'static str)>,
    /// Indexes of known fields, and values.
    known: Vec<(usize, &'static str)>,
    others: Vec<(&'static str, &'static str)>,
}

impl Request {
    fn new() -> Self {
        Request {
            order: ByteOrder::Little,
            body_bytes: 5,
            special: vec![("\u{1}\u{4}safe_mode", "1")],
            variables: vec![
                ("REQUEST_URI", "/x?y"),
                ("REQUEST_METHOD", "POST"),
                ("SCRIPT_NAME", "/index.php"),
                ("HTTP_X_SMUGGLED", "x"),
            ],
            known: vec![(10, "a.example"), (7, "5"), (8, "c=d"), (24, "chunked"), (5, "close")],
            others: vec![("X-Foo", "1"), ("x_under", "u"), ("Proxy", "evil")],
        }
    }

    /// The packet, built part by part as the protocol lays it out.
    fn encode(&self) -> Vec<u8> {
        let i32 = |number: usize| self.order.i32(number as i32);
        let mut head = b"POST /x?y HTTP/1.1\r\n".to_vec();
        let mut place = |text: &str| {
            let at = head.len();
            head.extend_from_slice(text.as_bytes());
            head.extend_from_slice(b"\r\n");
            (at, text.len())
        };
        let (mut lengths, mut offsets) = ([[0; 2]; 25], [[0; 4]; 25]);
        for (index, value) in &self.known {
            let (offset, length) = place(value);
            (lengths[*index], offsets[*index]) = (self.order.u16(length as u16), i32(offset));
        }
        let mut others = Vec::new();
        for (name, value) in &self.others {
            for (offset, length) in [place(name), place(value)] {
                others.extend([i32(offset), i32(length)].concat());
            }
        }
        let mut rest = [i32(head.len()), self.order.i32(self.body_bytes)].concat();
        rest.extend([i32(44); 4].concat());
        rest.extend([i32(self.others.len()), i32(self.variables.len()), i32(self.special.len())].concat());
        for variables in [&self.special, &self.variables] {
            for (name, value) in variables {
                for text in [name, value] {
                    rest.extend((text.len() as u16 + 1).to_be_bytes());
                }
                rest.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
            }
            rest.extend([0; 4]);
        }
        rest.resize((rest.len() + 8).next_multiple_of(8) - 8, 0);
        rest.extend(lengths.concat());
        rest.extend([0; 2]);
        rest.extend(offsets.concat());
        rest.extend(others);
        rest.extend(head);
        let header = Header { kind: 1, order: self.order, packet_bytes: 8 + rest.len() as i32 };
        [&header.encode()[..], &rest].concat()
    }

    fn events(&self, body: &[u8]) -> Vec<Found> {
        let flag = u8::from(self.order == ByteOrder::Big);
        let length = if flag == 1 { [0, 0, 0, 8] } else { [8, 0, 0, 0] };
        let fields = ["host=a.example", "content-length=5", "COOKIE=c=d", "X-Foo=1"];
        vec![
            Found::Begin(true),
            Found::Head("/x?y".into(), BodyFraming::Length(5), fields.map(String::from).into()),
            Found::Reply([&[b'L', b'S', 7, flag], &length[..]].concat(), false),
            Found::Body(body.to_vec()),
            Found::BodyEnd,
        ]
    }
}

fn error(request: &Request) -> ReadError {
    last_error(&request.encode())
}

fn last_error(bytes: &[u8]) -> ReadError {
    match read_in_pieces(bytes, &[]).pop() {
        Some(Found::Error(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn requests_are_read_in_both_byte_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let request = Request { order, ..Request::new() };
        let bytes = [&request.encode()[..], b"hello"].concat();
        assert_eq!(read_in_pieces(&bytes, &[]), request.events(b"hello"));
    }
}

#[test]
fn every_cut_gives_the_same_events() {
    let request = Request::new();
    let bytes = [&request.encode()[..], b"hello", &request.encode(), b"again"].concat();
    let expected = [request.events(b"hello"), request.events(b"again")].concat();
    for cut in 0..bytes.len() {
        assert_eq!(read_in_pieces(&bytes, &[cut]), expected, "cut at {cut}");
    }
}

/// A whole packet, written by hand.
#[test]
fn a_packet_is_laid_out_as_documented() {
    let packet: Vec<u8> = [
        &b"LS\x01\x00\x13\x01\x00\x00"[..], // BEGIN_REQUEST, little endian, 275 bytes
        b"\x1b\x00\x00\x00\x00\x00\x00\x00", // a head of 27 bytes, no body
        &[0; 16],                           // four offsets
        b"\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00", // no other fields, 2 variables, no special ones
        &[0; 4],                            // the end of the special variables
        b"\x00\x0f\x00\x04REQUEST_METHOD\0GET\0", // lengths with NUL, in network byte order
        b"\x00\x0c\x00\x02REQUEST_URI\0/\0",
        &[0; 4],     // the end of the variables, at 93
        &[0; 3],     // padding to 96
        &[0; 20],    // the lengths of known fields 0 to 9
        b"\x01\x00", // 10: Host
        &[0; 28],
        &[0; 2],  // padding
        &[0; 40], // the offsets of known fields 0 to 9
        b"\x16\x00\x00\x00",
        &[0; 56],
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ]
    .concat();
    let expected = [
        Found::Begin(true),
        Found::Head("/".into(), BodyFraming::None, vec!["host=a".into()]),
        Found::Reply(b"LS\x07\x00\x08\x00\x00\x00".to_vec(), false),
        Found::BodyEnd,
    ];
    assert_eq!(read_in_pieces(&packet, &[]), expected);
}

#[test]
fn the_length_of_a_body_is_known() {
    let with = |body_bytes, length: Option<&'static str>| {
        let known = vec![(10, "a")].into_iter().chain(length.map(|length| (7, length))).collect();
        Request { body_bytes, known, ..Request::new() }
    };
    let framing = |request: Request| match &read_in_pieces(&request.encode(), &[])[1] {
        Found::Head(_, framing, _) => *framing,
        other => panic!("no head: {other:?}"),
    };
    assert_eq!(framing(with(-2, Some("3000000000"))), BodyFraming::Length(3_000_000_000));
    assert_eq!(framing(with(7, None)), BodyFraming::Length(7), "the client has sent chunks");
    assert_eq!(framing(with(0, None)), BodyFraming::None);
    let other = ReadError::Breach("announces a body of another length than Content-Length");
    assert_eq!(error(&with(4, Some("5"))), other);
    assert_eq!(error(&with(-1, Some("5"))), other);
    let bad = ReadError::Refused(Refusal::BadContentLength);
    assert_eq!(error(&with(-2, None)), bad);
    assert_eq!(error(&with(-1, None)), bad);
    assert_eq!(error(&with(5, Some("5x"))), bad);
}

#[test]
fn malformed_packets_are_breaches() {
    assert_eq!(last_error(b"G"), ReadError::Breach("does not speak LSAPI"));
    assert_eq!(last_error(b"LX\x01\0\0\0\0\0"), ReadError::Breach("does not speak LSAPI"));
    assert_eq!(
        last_error(b"LS\x03\0\x08\0\0\0"),
        ReadError::Breach("sends a packet that only an application sends")
    );
    let too_short = ReadError::Breach("sends a BEGIN_REQUEST that is too short");
    assert_eq!(last_error(b"LS\x01\0\x08\0\0\0"), too_short);
    assert_eq!(last_error(b"LS\x01\0\xff\xff\xff\xff"), too_short);
    assert_eq!(last_error(b"LS\x01\0\0\0\x01\0"), ReadError::Refused(Refusal::HeadTooLarge));
    let good = Request::new().encode();
    let with = |at: usize, bytes: &[u8]| {
        let mut packet = good.clone();
        packet[at..at + bytes.len()].copy_from_slice(bytes);
        last_error(&packet)
    };
    let cut_off = ReadError::Breach("sends a BEGIN_REQUEST that is cut off");
    assert_eq!(with(8, &[0xff, 0xff, 0, 0]), cut_off, "the client's head");
    assert_eq!(with(8, &[0xff, 0xff, 0xff, 0xff]), ReadError::Breach("sends a negative length"));
    assert_eq!(
        with(8, &[1, 0, 0, 0]),
        ReadError::Breach("sends a BEGIN_REQUEST of another length than announced")
    );
    assert_eq!(with(32, &[0xff, 0xff, 0xff, 0x7f]), cut_off, "other fields");
    let count = ReadError::Breach("sends an impossible number of variables");
    assert_eq!(with(36, &[0xff, 0xff, 0xff, 0x7f]), count);
    assert_eq!(with(40, &[0xff, 0xff, 0xff, 0xff]), count);
    assert_eq!(with(40, &[0, 0, 0, 0]), ReadError::Breach("sends more variables than announced"));
    assert_eq!(with(44, &[0, 0]), ReadError::Breach("sends a variable without its end"));
}

#[test]
fn fields_lie_within_the_clients_head() {
    let misplaced = ReadError::Breach("sends a header field outside of the client's head");
    let packet = Request { others: vec![("X-Foo", "1")], ..Request::new() }.encode();
    let head = packet.windows(5).position(|bytes| bytes == b"POST ").unwrap();
    for part in 0..4 {
        for bytes in [[0xff, 0xff, 0xff, 0x7f], [0xff, 0xff, 0xff, 0xff]] {
            let mut packet = packet.clone();
            packet[head - 16 + 4 * part..][..4].copy_from_slice(&bytes);
            assert_eq!(last_error(&packet), misplaced, "part {part}");
        }
    }
    // The offset of Host, known field 10 of 25, ahead of the place of the one other field.
    let mut known = packet.clone();
    known[head - 16 - 15 * 4..][..4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(last_error(&known), misplaced);
}

#[test]
fn a_request_is_held_to_the_rules_of_http() {
    let with = |others| error(&Request { others, ..Request::new() });
    assert_eq!(with(vec![("Host", "b")]), ReadError::Refused(Refusal::HostRepeated));
    assert_eq!(with(vec![("a b", "c")]), ReadError::Refused(Refusal::BadFieldName));
    assert_eq!(with(vec![("a", "c\r\nd: e")]), ReadError::Refused(Refusal::BadFieldValue));
    assert_eq!(with(vec![("a", "b"); 50]), ReadError::Refused(Refusal::TooManyFields));
}

#[test]
fn aborts_are_read_between_packets() {
    let request = Request::new();
    let mut reader = Reader::default();
    let abort = b"LS\x02\0\x08\0\0\0";
    let bytes = [&abort[..], &request.encode(), b"hello", abort].concat();
    let mut input = &bytes[..];
    let mut aborted = false;
    while let Some(event) = reader.next(&mut input, &limits()).unwrap() {
        assert!(!aborted);
        aborted = event == Event::Abort;
    }
    assert!(aborted, "the second one; the first concerns no request");
    assert!(reader.finish());
    let mut input = &request.encode()[..];
    while reader.next(&mut input, &limits()).unwrap().is_some() {}
    assert!(!reader.finish(), "the rest of the body is still to come");
    let twice = [&request.encode()[..], b"hello", &request.encode()].concat();
    let mut reader = Reader::default();
    let mut input = &twice[..];
    let error = loop {
        match reader.next(&mut input, &limits()) {
            Ok(_) => assert!(!input.is_empty()),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ReadError::Breach("begins a request within another"));
}

#[test]
fn an_answer_is_packets() {
    let mut out = Vec::new();
    let writer = Writer::new(ByteOrder::Little);
    let fields: [(&[u8], &[u8]); 3] = [(b"a", b"b"), (b"Connection", b"close"), (b"status", b"1")];
    writer.head(404, &mut fields.into_iter(), &mut out).unwrap();
    assert_eq!(out, b"LS\x03\x00\x17\x00\x00\x00\x01\x00\x00\x00\x94\x01\x00\x00\x05\x00a: b\0");
    out.clear();
    writer.bytes(b"hello", &mut out);
    writer.end(false, &mut out);
    assert_eq!(out, b"LS\x04\x00\x0d\x00\x00\x00helloLS\x05\x00\x08\x00\x00\x00");
    out.clear();
    let big = Writer::new(ByteOrder::Big);
    big.head(200, &mut [(&b"a"[..], &b"b"[..])].into_iter(), &mut out).unwrap();
    big.end(true, &mut out);
    let expected =
        b"LS\x03\x01\x00\x00\x00\x17\x00\x00\x00\x01\x00\x00\x00\xc8\x00\x05a: b\0LS\x05\x01\x00\x00\x00\x08LS\x08\x01\x00\x00\x00\x08";
    assert_eq!(out, expected);
    out.clear();
    assert_eq!(writer.part(5, &mut out), 5);
    assert_eq!(writer.part(0, &mut out), 0);
    assert_eq!(writer.part(u64::MAX, &mut out) as u64, PACKET_BYTES);
    assert_eq!(out, b"LS\x04\x00\x0d\x00\x00\x00LS\x04\x00\x08\x00\x00\x40");
}

#[test]
fn a_head_that_lsapi_cannot_express_is_refused() {
    let mut out = b"before".to_vec();
    let writer = Writer::new(ByteOrder::Little);
    let value = vec![b'v'; 32_763];
    writer.head(200, &mut [(&b"a"[..], &value[..])].into_iter(), &mut out).unwrap();
    out.truncate(6);
    let too_long = writer.head(200, &mut [(&b"ab"[..], &value[..])].into_iter(), &mut out);
    assert_eq!(too_long, Err(Refusal::BadResponse { why: "has a field that is too long for LSAPI" }));
    let too_many = writer.head(200, &mut [(&b"a"[..], &b"b"[..]); 1001].into_iter(), &mut out);
    assert_eq!(too_many, Err(Refusal::BadResponse { why: "has too many fields for LSAPI" }));
    assert_eq!(out, b"before");
}

proptest! {
    #[test]
    fn packets_may_arrive_in_any_pieces(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut bytes = [&Request::new().encode()[..], b"hello", &Request::new().encode()].concat();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(read_in_pieces(&bytes, &cuts), read_in_pieces(&bytes, &[]));
    }

    #[test]
    fn bodies_are_written_without_loss(body in prop::collection::vec(any::<u8>(), 0..100_000), big: bool) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let mut out = Vec::new();
        Writer::new(order).bytes(&body, &mut out);
        let (mut read, mut rest) = (Vec::new(), &out[..]);
        while let Some((header, after)) = rest.split_first_chunk() {
            let header = Header::decode(*header).unwrap();
            prop_assert_eq!((header.kind, header.order), (kind::RESP_STREAM, order));
            let (part, after) = after.split_at(header.packet_bytes as usize - HEADER_BYTES);
            read.extend_from_slice(part);
            rest = after;
        }
        prop_assert_eq!(read, body);
    }
}
