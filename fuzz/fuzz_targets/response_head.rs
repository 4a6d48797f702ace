//! The head frames of a misbehaving worker: a breach, or a head that ends where it should.
#![no_main]

use highball_front::exchange::response_head::{read, BadHead, HeadContext};
use highball_front::http_syntax::DateCache;
use highball_front::message::answer::{AnswerEvent, AnswerEvents};
use highball_front::message::request_head::Version;
use highball_front::protocol::http1::writer::Writer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, payload)) = input.split_first() else { return };
    let [old, head_method, hijack, complete, upgrade] = [1, 2, 4, 8, 16].map(|flag| flags & flag != 0);
    let complete_body_length = complete.then_some(u64::from(flags));
    let context =
        HeadContext { head_method, upgrade, complete_body_length, hijack, ..HeadContext::default() };
    let mut events = AnswerEvents::default();
    let pushed = events.push_head(|lines| Ok::<_, BadHead>(read(payload, &context, lines)?.head));
    let Some(event) = events.take_unless(|_| false) else {
        assert!(pushed.is_err() && events.waiting_bytes() == 0);
        return;
    };
    let (AnswerEvent::Head(head) | AnswerEvent::Interim(head)) = event else { panic!("{event:?}") };
    assert!((100..=999).contains(&head.status));
    let mut out = Vec::new();
    let mut writer = Writer::default();
    writer.begin(if old { Version::Http10 } else { Version::Http11 }, true);
    writer.head(&head, &[events.take_bytes(head.field_bytes)], &DateCache::new(), &mut out);
    if head.is_interim() && old {
        return assert!(out.is_empty());
    }
    let end = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    assert_eq!(end + 4, out.len(), "one head and nothing more");
    for (index, &byte) in out.iter().enumerate() {
        assert_eq!(byte == b'\n', index > 0 && out[index - 1] == b'\r');
    }
});
