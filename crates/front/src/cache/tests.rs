use super::*;
use crate::budget::{Budget, Kind};
use crate::message::answer::{AnswerBody, AnswerHead, FieldLines};
use crate::message::request_head::RequestHead;
use crate::tests::heads;

/// A head, and the buffer that it was read from.
pub(super) fn head_of(text: &str) -> (RequestHead, Vec<u8>) {
    (heads::head_of(text), text.as_bytes().to_vec())
}

const MINUTE: &str = "cache-control: public, max-age=60\r\n";

fn cache(bytes: u64) -> Rc<AppCache> {
    AppCache::new(Share::new(&Budget::new(bytes, Kind::Cache), "app", None))
}

fn look_up(cache: &Rc<AppCache>, text: &str, now_ms: u64) -> Lookup {
    let (head, buffer) = head_of(text);
    cache.look_up(&Asking { head: head.with(&buffer), is_tls: false, waits: 0, now_ms })
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

fn fill(lookup: Lookup) -> Box<Fill> {
    match lookup {
        Lookup::Forward(Watch::Fill(fill)) => fill,
        other => panic!("{other:?}"),
    }
}

fn hit(lookup: Lookup) -> Rc<StoredAnswer> {
    match lookup {
        Lookup::Hit(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// The application answers.
fn answer(fill: &mut Fill, lines: &str, body: &[u8]) {
    let mut bytes = Vec::new();
    let mut written = FieldLines::at_end_of(&mut bytes);
    written.add_lines(lines.as_bytes());
    let head = AnswerHead { body: AnswerBody::Unknown, ..AnswerHead::new(200) };
    assert!(fill.take_head(&head, None, &mut written).is_none());
    fill.take_body(body);
    fill.complete();
}

fn store(cache: &Rc<AppCache>, request: &str, lines: &str, body: &[u8]) {
    answer(&mut fill(look_up(cache, request, 0)), lines, body);
}

#[test]
fn an_answer_ages_and_becomes_stale() {
    let cache = cache(1 << 20);
    store(&cache, &get("/", ""), MINUTE, b"body");
    let at = |now_ms| look_up(&cache, &get("/", ""), now_ms);
    let found = hit(at(5_000));
    assert_eq!(
        (found.age_ms(5_000), found.fresh_ms(5_000), found.plain().piece(1, 2)),
        (5_000, 55_000, &b"od"[..])
    );
    assert_eq!(found.hit(5_000), "highball; hit; ttl=55");
    assert_eq!(found.hit(60_500), "highball; hit; ttl=-1");
    hit(at(59_999));
    assert_eq!(fill(at(60_000)).forwarded, "stale");
    assert_eq!(cache.report().hits, 2);
}

#[test]
fn only_the_release_that_serves_has_answers() {
    let cache = cache(1 << 20);
    cache.follow(1);
    let mut old = fill(look_up(&cache, &get("/old", ""), 0));
    old.answered_by(1);
    answer(&mut old, MINUTE, b"old");
    hit(look_up(&cache, &get("/old", ""), 0));
    let mut late = fill(look_up(&cache, &get("/late", ""), 0));
    late.answered_by(1);
    cache.follow(2);
    answer(&mut late, MINUTE, b"late");
    for path in ["/old", "/late"] {
        assert_eq!(fill(look_up(&cache, &get(path, ""), 0)).forwarded, "uri-miss", "{path}");
    }
    assert!(cache.report().bytes > 0, "it is dropped bit by bit");
    cache.tick();
    assert_eq!(cache.report().bytes, 0);
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let cache = cache(100_000);
    for number in 0..30 {
        store(&cache, &get(&format!("/{number}"), ""), MINUTE, &[0; 5_000]);
        hit(look_up(&cache, &get("/0", ""), 0));
    }
    let CacheReport { responses, bytes, .. } = cache.report();
    assert!(bytes <= 100_000 && responses > 10, "{responses} in {bytes} bytes");
    hit(look_up(&cache, &get("/29", ""), 0));
    fill(look_up(&cache, &get("/1", ""), 0));
    // An answer that is being sent holds its memory.
    let held = hit(look_up(&cache, &get("/29", ""), 0));
    cache.follow(9);
    (0..100).for_each(|_| cache.tick());
    assert!(cache.report().bytes >= 5_000);
    drop(held);
    assert_eq!((cache.report().bytes, cache.recorded.get()), (0, 0));
}

#[test]
fn what_is_too_large_or_too_much_is_not_recorded() {
    let cache = cache(100_000);
    store(&cache, &get("/large", ""), MINUTE, &[0; 12_501]);
    fill(look_up(&cache, &get("/large", ""), 0));
    store(&cache, &get("/fits", ""), MINUTE, &[0; 12_500]);
    hit(look_up(&cache, &get("/fits", ""), 0));
    let mut coming: Vec<_> =
        (0..20).map(|number| fill(look_up(&cache, &get(&format!("/{number}"), ""), 0))).collect();
    for fill in &mut coming {
        let mut bytes = Vec::new();
        let mut lines = FieldLines::at_end_of(&mut bytes);
        lines.add_lines(MINUTE.as_bytes());
        fill.take_head(&AnswerHead { body: AnswerBody::Unknown, ..AnswerHead::new(200) }, None, &mut lines);
        fill.take_body(&[0; 4_000]);
    }
    assert!((20_000..=25_000).contains(&cache.recorded.get()), "{}", cache.recorded.get());
    hit(look_up(&cache, &get("/fits", ""), 0));
    drop(coming);
    assert_eq!(cache.recorded.get(), 0);
}

#[test]
fn of_one_uri_the_most_used_stay() {
    let cache = cache(1 << 20);
    store(&cache, &get("/", ""), MINUTE, b"");
    for number in 0..200 {
        store(&cache, &get("/", &format!("X-A: {number}\r\n")), MINUTE, b"");
        hit(look_up(&cache, &get("/", ""), 0));
    }
    assert_eq!(cache.report().responses, 64);
}

/// A store does what a list does.
#[test]
fn a_store_forgets_in_the_order_of_use() {
    let cache = cache(1 << 20);
    let (mut model, mut random): (Vec<u64>, u64) = (Vec::new(), 1);
    for _ in 0..3_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (action, number) = (random >> 60, (random >> 40) % 25);
        let request = get(&format!("/{}", number / 5), &format!("X-A: {number}\r\n"));
        match action {
            0..=5 if !model.contains(&number) => {
                store(&cache, &request, MINUTE, b"");
                model.push(number);
            }
            0..=9 => {
                let is_there = matches!(look_up(&cache, &request, 0), Lookup::Hit(_));
                assert_eq!(is_there, model.contains(&number));
                if is_there {
                    model.retain(|other| *other != number);
                    model.push(number);
                }
            }
            10..=13 => {
                assert_eq!(cache.store.borrow_mut().remove_oldest(), !model.is_empty());
                model.drain(..1.min(model.len()));
            }
            _ => {
                let (head, buffer) = head_of(&request);
                cache.store.borrow_mut().remove_all(Key::of(head.with(&buffer), false).unwrap().base());
                model.retain(|other| other / 5 != number / 5);
            }
        }
        assert_eq!(cache.report().responses, model.len());
    }
}

#[test]
fn what_the_client_asks_for() {
    let cache = cache(1 << 20);
    store(&cache, &get("/", ""), &format!("{MINUTE}etag: \"1\"\r\n"), b"");
    let forwarded = |fields: &str| fill(look_up(&cache, &get("/", fields), 30_000)).forwarded;
    for forced in ["no-cache", "max-age=0", "max-age=29", "min-fresh=31", "max-age=x"] {
        assert_eq!(forwarded(&format!("Cache-Control: {forced}\r\n")), "request", "{forced}");
    }
    assert_eq!(forwarded("Pragma: no-cache\r\n"), "request");
    for accepted in ["max-age=30", "min-fresh=30", "max-stale", "only-if-cached", "x"] {
        hit(look_up(&cache, &get("/", &format!("Cache-Control: {accepted}\r\n")), 30_000));
    }
    hit(look_up(&cache, &get("/", "Pragma: no-cache\r\nCache-Control: x\r\n"), 30_000));
    let nothing = look_up(&cache, &get("/x", "Cache-Control: only-if-cached\r\n"), 0);
    assert!(matches!(nothing, Lookup::Unavailable), "{nothing:?}");
}

#[test]
fn whose_answers_are_not_for_the_cache() {
    let cache = cache(1 << 20);
    for fields in [
        "Authorization: Basic YTpi\r\n",
        "Range: bytes=0-1\r\n",
        "If-Range: \"x\"\r\n",
        "If-Match: \"x\"\r\n",
        "If-Unmodified-Since: x\r\n",
        "Cache-Control: no-store\r\n",
        "Content-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: upgrade\r\nUpgrade: x\r\n",
    ] {
        let lookup = look_up(&cache, &get("/", fields), 0);
        assert!(matches!(lookup, Lookup::Forward(Watch::Pass("bypass"))), "{fields}: {lookup:?}");
    }
    for method in ["OPTIONS", "TRACE"] {
        let lookup = look_up(&cache, &format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
        assert!(matches!(lookup, Lookup::Forward(Watch::Pass("method"))), "{method}: {lookup:?}");
    }
}
