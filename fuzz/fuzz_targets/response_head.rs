//! The head frames of a misbehaving worker: a breach, or a head that ends where it should.
#![no_main]

use highball_front::request_head::Version;
use highball_front::response_head::{encode, DateCache, HeadContext};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, payload)) = input.split_first() else { return };
    let [old, head_method, hijack, complete, upgrade] = [1, 2, 4, 8, 16].map(|flag| flags & flag != 0);
    let complete_body_length = complete.then_some(u64::from(flags));
    let request_version = if old { Version::Http10 } else { Version::Http11 };
    let context =
        HeadContext { request_version, head_method, keep_alive: true, complete_body_length, hijack, upgrade };
    let mut out = Vec::new();
    match encode(payload, &context, &DateCache::new(), &mut out) {
        Ok(head) if head.is_interim() && old => assert!(out.is_empty()),
        Ok(head) => {
            assert!((100..=999).contains(&head.status));
            let end = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
            assert_eq!(end + 4, out.len(), "one head and nothing more");
            for (index, &byte) in out.iter().enumerate() {
                assert_eq!(byte == b'\n', index > 0 && out[index - 1] == b'\r');
            }
        }
        Err(_) => assert!(out.is_empty()),
    }
});
