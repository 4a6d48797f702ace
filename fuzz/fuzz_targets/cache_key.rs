//! The response cache: two requests have the same key only if they are equal by its rules, which stand here in another way; and
//! of Cache-Control, more fields never make an answer more cacheable.
#![no_main]

mod limits;

use highball_front::cache::directives::Directives;
use highball_front::cache::key::{is_harmless, Key};
use highball_front::message::request_head::RequestHead;
use highball_front::protocol::http1::reader::{Parsed, Reader};
use libfuzzer_sys::fuzz_target;
use limits::limits;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = input.split_first().unwrap_or((&0, &[]));
    let split = input.windows(4).position(|end| end == b"\r\n\r\n").map_or(input.len(), |at| at + 4);
    let (one, other) = input.split_at(split);
    if let (Some(one), Some(other)) = (read(one), read(other)) {
        compare(&one, &other, [flags & 1 != 0, flags & 2 != 0]);
    }
    check_directives(one, other);
});

/// A request, with the bytes that its head was read from.
type Request<'a> = (RequestHead, &'a [u8]);

fn read(bytes: &[u8]) -> Option<Request<'_>> {
    let (mut reader, mut head) = (Reader::default(), RequestHead::new());
    let parsed = reader.parse(bytes, &limits(), &mut head);
    matches!(parsed, Ok(Parsed::Complete { .. })).then_some((head, bytes))
}

fn compare(one: &Request<'_>, other: &Request<'_>, tls: [bool; 2]) {
    let keys =
        [(one, tls[0]), (other, tls[1])].map(|((head, text), is_tls)| Key::of(head.with(text), is_tls));
    for ((head, bytes), key) in [one, other].into_iter().zip(&keys) {
        let has_key = head.host().is_some() && head.with(bytes).target().starts_with(b"/");
        assert_eq!(key.is_some(), has_key, "a host and a path make a key");
        assert!(key.as_ref().is_none_or(|key| key.whole().starts_with(key.base())));
    }
    if let [Some(one_key), Some(other_key)] = &keys {
        let is_same = tls[0] == tls[1] && same(one) == same(other);
        assert_eq!(one_key == other_key, is_same);
        assert_eq!(one_key.whole() == other_key.whole(), is_same);
        assert!(one_key.base() == other_key.base() || !is_same);
    }
}

/// The values of fields, by their names.
type Fields = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

/// All that counts of a request: its host, its target, and for each field that counts its values.
fn same((head, bytes): &Request<'_>) -> (Option<Vec<u8>>, Vec<u8>, Fields) {
    let host = head.host().map(|host| host.whole(bytes).to_ascii_lowercase());
    let mut fields = Fields::new();
    for (name, value) in head.with(bytes).passed_fields().filter(|(name, _)| !is_harmless(name)) {
        let name = name.to_ascii_lowercase();
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value.to_vec()),
            None => fields.push((name, vec![value.to_vec()])),
        }
    }
    fields.sort();
    (host, head.with(bytes).target().to_vec(), fields)
}

fn check_directives(one: &[u8], other: &[u8]) {
    let (before, after) = (Directives::of([one]), Directives::of([one, other]));
    assert!(after.no_store >= before.no_store && after.private >= before.private);
    assert!(after.no_cache >= before.no_cache && after.must_revalidate >= before.must_revalidate);
    for (before, after) in [(before.max_age, after.max_age), (before.s_maxage, after.s_maxage)] {
        assert!(
            before.is_none_or(|before| after.is_some_and(|after| after <= before)),
            "times get no longer"
        );
    }
    let strict = Directives::of([one, b"no-store, private, max-age=0"]);
    assert!(strict.no_store && strict.private && strict.max_age == Some(0));
}
