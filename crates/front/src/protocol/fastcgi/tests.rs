use proptest::prelude::*;

use super::pairs::{write_pair, CutOff, Pairs};
use super::*;
use crate::message::refusal::Refusal;
use crate::message::request_head::BodyFraming;
use crate::protocol::cgi::{CgiReader, CgiWriter, Event, ReadError};
use crate::tests::limits::limits;
use crate::tests::readers::{self, Found};

fn read_in_pieces(input: &[u8], cuts: &[usize]) -> Vec<Found> {
    readers::read_in_pieces(Reader::default(), input, cuts)
}

fn read(input: &[u8]) -> Vec<Found> {
    read_in_pieces(input, &[])
}

fn record(kind: u8, id: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, id, high, low, 0, 0], content].concat()
}

fn begin(id: u8, role: u8, flags: u8) -> Vec<u8> {
    record(1, id, &[0, role, flags, 0, 0, 0, 0, 0])
}

fn params(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (name, value) in pairs {
        write_pair(name.as_bytes(), value.as_bytes(), &mut content);
    }
    content
}

fn get(more: &[(&str, &str)]) -> Vec<u8> {
    params(&[&[("REQUEST_METHOD", "GET"), ("REQUEST_URI", "/x"), ("HTTP_HOST", "a")], more].concat())
}

/// With these fields behind Host.
fn head(framing: BodyFraming, more: &[&str]) -> Found {
    let fields = [&["host=a"], more].concat();
    Found::Head("/x".into(), framing, fields.into_iter().map(String::from).collect())
}

const BREACH: fn(&'static str) -> Found = |why| Found::Error(ReadError::Breach(why));

/// A request, written by hand from the specification: id 1, padding after the variables and the body.
const POST: &[u8] = &[
    1, 1, 0, 1, 0, 8, 0, 0, // BEGIN_REQUEST
    0, 1, 1, 0, 0, 0, 0, 0, // responder, keep the connection
    1, 4, 0, 1, 0, 61, 3, 0, // PARAMS, 3 bytes of padding
    14, 4, b'R', b'E', b'Q', b'U', b'E', b'S', b'T', b'_', b'M', b'E', b'T', b'H', b'O', b'D', b'P', b'O',
    b'S', b'T', //
    11, 2, b'R', b'E', b'Q', b'U', b'E', b'S', b'T', b'_', b'U', b'R', b'I', b'/', b'x', //
    9, 1, b'H', b'T', b'T', b'P', b'_', b'H', b'O', b'S', b'T', b'a', //
    6, 0x80, 0, 0, 2, b'H', b'T', b'T', b'P', b'_', b'Q', // the rest of the pair is in the next record
    b'y', b'z', 0, // its value, and the begin of the next pair
    9, 9, 9, // padding
    1, 4, 0, 1, 0, 16, 0, 0, // PARAMS
    0, // a pair without name and value
    14, 1, b'C', b'O', b'N', b'T', b'E', b'N', b'T', b'_', b'L', b'E', b'N', b'G',
    b'T', // the name is cut
    1, 4, 0, 1, 0, 2, 0, 0, // PARAMS
    b'H', b'5', //
    1, 4, 0, 1, 0, 0, 0, 0, // the end of the variables
    1, 5, 0, 1, 0, 3, 5, 0, // STDIN
    b'h', b'e', b'l', 9, 9, 9, 9, 9, //
    1, 5, 0, 1, 0, 2, 0, 0, // STDIN
    b'l', b'o', //
    1, 5, 0, 1, 0, 0, 0, 0, // the end of the body
];

fn post_events() -> Vec<Found> {
    vec![
        Found::Begin(true),
        head(BodyFraming::Length(5), &["content-length=5", "Q=yz"]),
        Found::Body(b"hello".to_vec()),
        Found::BodyEnd,
    ]
}

#[test]
fn a_request_is_read_from_records_with_padding() {
    assert_eq!(read(POST), post_events());
}

#[test]
fn every_cut_gives_the_same_events() {
    let bytes = [POST, POST].concat();
    let expected = [post_events(), post_events()].concat();
    for cut in 0..bytes.len() {
        assert_eq!(read_in_pieces(&bytes, &[cut]), expected, "cut at {cut}");
    }
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read_in_pieces(&bytes, &every), expected);
}

#[test]
fn a_body_without_length_ends_with_an_empty_record() {
    let open = [begin(1, 1, 0), record(4, 1, &get(&[])), record(4, 1, b"")].concat();
    let none = [Found::Begin(false), head(BodyFraming::None, &[]), Found::BodyEnd];
    assert_eq!(read(&[&open[..], &record(5, 1, b"")].concat()), none);
    let body = [&open[..], &record(5, 1, b"ab"), &record(5, 1, b"c"), &record(5, 1, b"")].concat();
    let expected =
        [Found::Begin(false), head(BodyFraming::Unknown, &[]), Found::Body(b"abc".to_vec()), Found::BodyEnd];
    assert_eq!(read(&body), expected);
    assert_eq!(read(&open), [Found::Begin(false)], "waits for the first record of the body");
}

#[test]
fn a_body_is_as_long_as_its_length() {
    let open = |length| {
        [begin(1, 1, 0), record(4, 1, &get(&[("CONTENT_LENGTH", length)])), record(4, 1, b"")].concat()
    };
    let last = |more: &[&[u8]]| read(&[open("3").as_slice(), &more.concat()].concat()).pop().unwrap();
    assert_eq!(last(&[&record(5, 1, b"abc")]), Found::BodyEnd, "also before the empty record");
    assert_eq!(last(&[&record(5, 1, b"abcd")]), BREACH("sends a body beyond its length"));
    assert_eq!(last(&[&record(5, 1, b"ab"), &record(5, 1, b"cd")]), BREACH("sends a body beyond its length"));
    assert_eq!(last(&[&record(5, 1, b"ab"), &record(5, 1, b"")]), BREACH("ends a body before its length"));
    assert_eq!(
        read(&open("0")),
        [Found::Begin(false), head(BodyFraming::None, &["content-length=0"]), Found::BodyEnd]
    );
    let refused = Found::Error(ReadError::Refused(Refusal::BadContentLength));
    assert_eq!(read(&open("3x")).pop(), Some(refused));
}

#[test]
fn a_second_request_and_other_roles_are_refused() {
    let first = [begin(1, 1, 1), record(4, 1, &get(&[]))].concat();
    // The second request, with all that belongs to it, leaves the first as it is.
    let second = [begin(2, 1, 1), record(4, 2, b"xx"), record(4, 2, b""), record(5, 2, b"")].concat();
    let rest = [record(4, 1, b""), record(5, 1, b"")].concat();
    let cant_multiplex = vec![1, 3, 0, 2, 0, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(
        read(&[first, second, rest].concat()),
        [
            Found::Begin(true),
            Found::Reply(cant_multiplex, false),
            head(BodyFraming::None, &[]),
            Found::BodyEnd
        ]
    );
    let unknown_role = vec![1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
    for (flags, close) in [(0, true), (1, false)] {
        let authorizer = [begin(1, 2, flags), record(4, 1, b"xx"), POST.to_vec()].concat();
        let mut expected = vec![Found::Reply(unknown_role.clone(), close)];
        expected.extend(post_events());
        assert_eq!(read(&authorizer), expected);
    }
}

#[test]
fn management_records_are_answered_at_any_time() {
    let names = params(&[("FCGI_MPXS_CONNS", ""), ("FCGI_OTHER", ""), ("FCGI_MAX_REQS", "")]);
    let values = [record(9, 0, &names), begin(1, 1, 1), record(9, 0, b""), record(77, 0, b"xyz")].concat();
    let result = record(10, 0, &params(&[("FCGI_MAX_REQS", "10"), ("FCGI_MPXS_CONNS", "0")]));
    assert_eq!(
        read(&values),
        [
            Found::Reply(result, false),
            Found::Begin(true),
            Found::Reply(record(10, 0, b""), false),
            Found::Reply(record(11, 0, &[77, 0, 0, 0, 0, 0, 0, 0]), false)
        ]
    );
    assert_eq!(read(&record(9, 0, &[0; 1025])), [BREACH("asks for too many values")]);
    assert_eq!(read(&record(9, 0, &[5])), [BREACH("asks for a value that is cut off")]);
}

#[test]
fn a_request_can_be_aborted() {
    let open = [begin(1, 1, 1), record(4, 1, &get(&[]))].concat();
    let abort = record(2, 1, b"");
    assert_eq!(read(&[&open[..], &abort].concat()), [Found::Begin(true), Found::Abort]);
    // Late, and for another request.
    assert_eq!(read(&[POST, &abort].concat()), post_events());
    assert_eq!(read(&[&open[..], &record(2, 7, b"")].concat()), [Found::Begin(true)]);
    // The connection goes on.
    let after = [&open[..], &abort, POST].concat();
    assert_eq!(read(&after)[2..], post_events());
}

#[test]
fn what_follows_an_answer_that_came_early_is_ignored() {
    let mut reader = Reader::default();
    let open = [begin(1, 1, 1), record(4, 1, &get(&[("CONTENT_LENGTH", "9")])), record(4, 1, b"")].concat();
    let body = record(5, 1, b"123456789");
    let bytes = [&open[..], &body[..12]].concat();
    let mut input = &bytes[..];
    while reader.next(&mut input, &limits()).unwrap().is_some() {}
    reader.finish();
    assert!(!reader.has_begun());
    let bytes = [&body[12..], &record(5, 1, b""), &begin(1, 1, 0)].concat();
    let mut input = &bytes[..];
    assert_eq!(reader.next(&mut input, &limits()), Ok(Some(Event::Begin { keep_connection: false })));
    assert!(input.is_empty());
}

#[test]
fn what_is_not_fastcgi_is_a_breach() {
    let open = begin(1, 1, 1);
    let after = |more: &[u8]| read(&[&open[..], more].concat()).pop().unwrap();
    assert_eq!(read(b"G"), [BREACH("does not speak FastCGI 1.0")]);
    assert_eq!(read(&[2]), [BREACH("does not speak FastCGI 1.0")]);
    assert_eq!(read(&record(1, 1, b"short")), [BREACH("sends a malformed BEGIN_REQUEST")]);
    assert_eq!(after(&begin(1, 1, 1)), BREACH("begins a request twice"));
    assert_eq!(after(&record(5, 1, b"x")), BREACH("sends a body before the end of the variables"));
    let outward = BREACH("sends a record that only an application sends");
    assert_eq!(after(&record(6, 1, b"x")), outward);
    assert_eq!(after(&record(99, 1, b"x")), outward);
    let cut = [record(4, 1, &[14, 4, b'R']), record(4, 1, b""), record(5, 1, b"")].concat();
    assert_eq!(after(&cut), BREACH("sends a variable that is cut off"));
    let two_ends = [record(4, 1, &get(&[])), record(4, 1, b""), record(4, 1, b"")].concat();
    assert_eq!(after(&two_ends), BREACH("sends variables after their end"));
    // Without an id, it is for no request.
    assert_eq!(read(&record(4, 1, b"xx")), []);
}

#[test]
fn variables_are_bounded() {
    let record = record(4, 1, &[0; 60_000]);
    let too_large = Found::Error(ReadError::Refused(Refusal::HeadTooLarge));
    assert_eq!(read(&[begin(1, 1, 1), record].concat()), [Found::Begin(true), too_large]);
}

#[test]
fn an_answer_is_cgi_text_in_records() {
    let writer = Writer::new(258);
    let mut out = Vec::new();
    let fields: [(&[u8], &[u8]); 5] = [
        (b"content-type", b"text/plain"),
        (b"Status", b"500"),
        (b"Connection", b"close"),
        (b"Transfer-Encoding", b"chunked"),
        (b"rack.hijack", b"x"),
    ];
    writer.head(404, &mut fields.into_iter(), &mut out).unwrap();
    let text = b"content-type: text/plain\r\nStatus: 404 Not Found\r\n\r\n";
    assert_eq!(out, [&[1, 6, 1, 2, 0, text.len() as u8, 0, 0], &text[..]].concat());
    out.clear();
    writer.bytes(b"hello", &mut out);
    assert_eq!(out, b"\x01\x06\x01\x02\x00\x05\x00\x00hello");
    out.clear();
    writer.end(false, &mut out);
    let end = [1, 6, 1, 2, 0, 0, 0, 0, 1, 3, 1, 2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(out, end);
    out.clear();
    assert_eq!(writer.part(70_000, &mut out), RECORD_BYTES);
    assert_eq!(writer.part(70_000 - RECORD_BYTES as u64, &mut out), 70_000 - RECORD_BYTES);
    assert_eq!(writer.part(0, &mut out), 0);
    assert_eq!(out, [1, 6, 1, 2, 0xf0, 0, 0, 0, 1, 6, 1, 2, 0x21, 0x70, 0, 0]);
    out.clear();
    writer.abort(&mut out);
    assert_eq!(Record::decode(out.try_into().unwrap()), None);
}

/// The content of `STDOUT` records.
fn stdout(mut bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let record = Record::decode(*header).unwrap();
        assert_eq!((record.kind, record.padding_bytes), (6, 0));
        let (part, rest) = rest.split_at(usize::from(record.content_bytes));
        content.extend_from_slice(part);
        bytes = rest;
    }
    content
}

#[test]
fn a_head_beyond_a_record_takes_several() {
    let value = vec![b'v'; 100_000];
    let mut out = b"before".to_vec();
    Writer::new(1).head(200, &mut [(&b"x"[..], &value[..])].into_iter(), &mut out).unwrap();
    assert!(out.starts_with(b"before\x01\x06"));
    let expected = [b"x: ", &value[..], b"\r\nStatus: 200 OK\r\n\r\n"].concat();
    assert_eq!(stdout(&out[6..]), expected);
}

#[test]
fn pairs_that_are_cut_off_end() {
    for bytes in [&[1][..], &[0x80, 0, 0], &[1, 1, b'a'], &[0xff, 0xff, 0xff, 0xff, 0], &[3, 0, b'a', b'b']] {
        assert_eq!(Pairs(bytes).collect::<Vec<_>>(), [Err(CutOff)], "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn pairs_are_written_without_loss(pairs in prop::collection::vec((any::<Vec<u8>>(), 0..400usize), 0..20)) {
        let mut bytes = Vec::new();
        for (name, length) in &pairs {
            write_pair(name, &vec![b'v'; *length], &mut bytes);
        }
        let read: Vec<_> = Pairs(&bytes).map(|pair| pair.map(|(name, value)| (name.to_vec(), value.len())))
            .collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read, pairs);
    }

    #[test]
    fn bodies_are_written_without_loss(body in prop::collection::vec(any::<u8>(), 0..200_000)) {
        let mut out = Vec::new();
        Writer::new(1).bytes(&body, &mut out);
        prop_assert_eq!(stdout(&out), body);
    }

    #[test]
    fn records_may_arrive_in_any_pieces(
        records in prop::collection::vec((0..13u8, 0..3u8, prop::collection::vec(0..6u8, 0..9)), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let tail: Vec<u8> = records.iter().flat_map(|(kind, id, content)| record(*kind, *id, content)).collect();
        for bytes in [tail.clone(), [begin(1, 1, 1), tail.clone()].concat(), [POST, &tail].concat()] {
            prop_assert_eq!(read_in_pieces(&bytes, &cuts), read(&bytes));
        }
    }

    #[test]
    fn headers_are_encoded_without_loss(kind: u8, request_id: u16, content_bytes: u16, padding_bytes: u8) {
        let record = Record { kind, request_id, content_bytes, padding_bytes };
        prop_assert_eq!(Record::decode(record.encode()), Some(record));
    }
}
