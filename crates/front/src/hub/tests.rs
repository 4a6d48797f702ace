use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::budget::{Budget, Kind};
use crate::succession::message::{FromOld, PassedLine, PassedMessage};

const EPOCH: u64 = 0xfeed;
const LIMITS: HubLimits = HubLimits {
    held: 3,
    held_streams: 2,
    message_bytes: 1000,
    history: 4,
    history_time: Duration::from_secs(60),
    heartbeat: Duration::from_secs(15),
    hold_cable: true,
    cable_clients: 2,
    cable_message_bytes: 1000,
    cable_streams: 3,
};

fn hub_with(limits: HubLimits, bytes: u64) -> Rc<Hub> {
    let share = Share::new(&Budget::new(bytes, Kind::Hub), "app", None);
    Hub::new(HubSequence { epoch: EPOCH, after: 0 }, &Rc::default(), limits, share)
}

fn hub() -> Rc<Hub> {
    hub_with(LIMITS, 1 << 20)
}

fn publish(hub: &Rc<Hub>, stream: &str, data: &str) -> Result<u64, Unpublishable> {
    let draft = Draft { stream: stream.as_bytes(), event: b"", data: data.as_bytes() };
    hub.publish(&draft).map(|id| id.number)
}

fn subscribe(hub: &Rc<Hub>, streams: &str, last_event_id: Option<&str>) -> Subscription {
    let mut subscription = hub.subscribe(streams.as_bytes(), hub.last()).unwrap();
    last_event_id.iter().for_each(|id| subscription.resume(id.as_bytes()));
    subscription
}

fn id(number: u64) -> String {
    EventId { epoch: EPOCH, number }.to_string()
}

/// What a client has got: the numbers of its messages, whether it knows of a gap, and whether it is closed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Got {
    numbers: Vec<u64>,
    gap: Option<String>,
    is_behind: bool,
}

fn take(subscription: &mut Subscription, most: usize) -> Got {
    let (mut text, mut got) = (Vec::new(), Got::default());
    loop {
        match subscription.take(most, |bytes| text.extend_from_slice(bytes)) {
            Taken::Bytes(bytes) => assert!(bytes > 0),
            Taken::Nothing => break,
            Taken::Behind => {
                got.is_behind = true;
                break;
            }
        }
    }
    for event in String::from_utf8(text).unwrap().split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        match (field("event: "), field("data: "), field("id: ")) {
            (Some("highball-gap"), Some(why), _) => got.gap = Some(why.into()),
            (_, Some(_), Some(id)) => got.numbers.push(EventId::parse(id.as_bytes()).unwrap().number),
            _ => {}
        }
    }
    got
}

fn numbers(numbers: &[u64]) -> Got {
    Got { numbers: numbers.to_vec(), ..Got::default() }
}

#[test]
fn a_client_gets_what_is_published_since_its_request() {
    let hub = hub();
    publish(&hub, "a", "before").unwrap();
    let after = hub.last();
    publish(&hub, "a", "while the application answers").unwrap();
    let mut client = hub.subscribe(b"a", after).unwrap();
    assert_eq!(take(&mut client, 1), numbers(&[2]));
    publish(&hub, "b", "of another stream").unwrap();
    publish(&hub, "a", "new").unwrap();
    assert_eq!(take(&mut client, 1), numbers(&[4]));
    assert_eq!(take(&mut client, 1), numbers(&[]));
}

#[test]
fn the_last_id_says_what_a_client_has_of_all_its_streams() {
    let hub = hub();
    for stream in ["a", "b", "a", "c", "b"] {
        publish(&hub, stream, "x").unwrap();
    }
    assert_eq!(take(&mut subscribe(&hub, "a, b", Some(&id(1))), 1 << 20), numbers(&[2, 3, 5]));
    assert_eq!(take(&mut subscribe(&hub, "b", Some(&id(2))), 1 << 20), numbers(&[5]));
    // An id that was not given out, or is another program's, is none.
    for foreign in [id(6), "42".into(), "x-y".into(), "-".into(), String::new()] {
        assert_eq!(take(&mut subscribe(&hub, "a", Some(&foreign)), 1), numbers(&[]), "{foreign}");
    }
}

#[test]
fn a_client_of_another_process_gets_all_that_is_kept() {
    let hub = hub();
    publish(&hub, "a", "x").unwrap();
    let other = EventId { epoch: 1, number: 99 }.to_string();
    let mut client = subscribe(&hub, "a", Some(&other));
    assert_eq!(take(&mut client, 1), Got { gap: Some("restarted".into()), ..numbers(&[1]) });
}

#[test]
fn a_client_learns_if_something_is_not_kept_any_more() {
    let hub = hub();
    for _ in 0..6 {
        publish(&hub, "a", "x").unwrap();
    }
    assert_eq!(take(&mut subscribe(&hub, "a", Some(&id(2))), 1), numbers(&[3, 4, 5, 6]));
    let mut late = subscribe(&hub, "a", Some(&id(1)));
    assert_eq!(take(&mut late, 1), Got { gap: Some("expired".into()), ..numbers(&[3, 4, 5, 6]) });
    hub.tick(u64::MAX);
    assert_eq!(take(&mut late, 1), numbers(&[]), "it had them");
    // The stream is remembered.
    drop(late);
    assert_eq!(take(&mut subscribe(&hub, "a", Some(&id(6))), 1), numbers(&[]));
    assert_eq!(take(&mut subscribe(&hub, "a", Some(&id(5))), 1).gap.as_deref(), Some("expired"));
    assert_eq!(
        take(&mut subscribe(&hub, "b", Some(&id(5))), 1),
        numbers(&[]),
        "another one has lost nothing"
    );
}

#[test]
fn a_client_that_falls_behind_is_closed() {
    let hub = hub();
    let (mut slow, mut quick) = (subscribe(&hub, "a", None), subscribe(&hub, "a,b", None));
    for number in 1..=6 {
        publish(&hub, "a", "x").unwrap();
        assert_eq!(take(&mut quick, 1), numbers(&[number]));
    }
    assert!(take(&mut slow, 1).is_behind);
    hub.note_slow();
    drop((slow, quick));
    let report = hub.report().unwrap();
    assert_eq!((report.held, report.slow_closed, report.published, report.kept), (0, 1, 6, 4));
}

#[test]
fn limits_hold() {
    let hub = hub();
    let subscribed = |names: &str| hub.subscribe(names.as_bytes(), 0);
    for wrong in ["", " , ", "a,b,c", "a\u{1}"] {
        assert!(matches!(subscribed(wrong), Err(Unsubscribable::Field(_))), "{wrong:?}");
    }
    assert!(matches!(subscribed(&"x".repeat(1 << 20)), Err(Unsubscribable::Field(_))));
    let three: Vec<_> = ["a, b", "a,a ,a", "\u{e9}"].map(subscribed).into_iter().collect();
    assert!(three.iter().all(Result::is_ok));
    assert!(matches!(subscribed("a"), Err(Unsubscribable::Full)));
    drop(three);
    assert_eq!(hub.streams.borrow().bytes(), 0);
    hub.close();
    assert!(matches!(subscribed("a"), Err(Unsubscribable::Full)));
    assert_eq!(publish(&hub, "a", ""), Err(Unpublishable::Closed));
}

#[test]
fn memory_is_bounded_and_the_oldest_message_goes_first() {
    let hub = hub_with(HubLimits { history: 1000, ..LIMITS }, 10_000);
    for number in 0..100 {
        publish(&hub, ["a", "b", "c"][number % 3], &"x".repeat(500)).unwrap();
        assert!(hub.streams.borrow().bytes() <= 10_000);
    }
    let mut client = subscribe(&hub, "a,b", Some(&id(0)));
    let got = take(&mut client, 1);
    assert_eq!(got.gap.as_deref(), Some("expired"));
    assert_eq!(got.numbers.last(), Some(&100));
    assert!(got.numbers.len() > 5);
    let hub = hub_with(LIMITS, 100);
    assert_eq!(publish(&hub, "a", "x"), Err(Unpublishable::Full));
    assert!(matches!(hub.subscribe(b"a", 0), Err(Unsubscribable::Full)));
}

#[test]
fn many_streams_that_come_and_go_are_forgotten() {
    let hub = hub_with(LIMITS, 1 << 30);
    for number in 0..10_000 {
        publish(&hub, &number.to_string(), "x").unwrap();
    }
    hub.tick(u64::MAX);
    assert_eq!(hub.report().unwrap().streams, 0);
    assert!(hub.streams.borrow().bytes() < 2 << 20);
    // A forgotten stream may have lost something.
    assert_eq!(take(&mut subscribe(&hub, "17", Some(&id(3))), 1).gap.as_deref(), Some("expired"));
    assert_eq!(take(&mut subscribe(&hub, "17", Some(&id(9_999))), 1), numbers(&[]));
}

/// What a process gets that listens: names of streams, and numbers of messages.
fn heard(listener: &mut Listener) -> Vec<(String, u64)> {
    let mut heard = Vec::new();
    while !listener.has_all() {
        listener.take(1, |name, text| {
            let id = text.strip_prefix(b"id: ").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
            let id = EventId::parse(id.unwrap()).unwrap();
            heard.push((String::from_utf8(name.to_vec()).unwrap(), id.number));
        });
    }
    heard
}

#[test]
fn a_process_hears_all_streams_with_its_prefix_in_order() {
    let hub = hub();
    publish(&hub, "x:a", "before").unwrap();
    let mut listener = hub.listen(b"x:", b"").unwrap();
    assert_eq!(listener.position().to_string(), id(1));
    for stream in ["x:b", "y", "x:a", "x:b"] {
        publish(&hub, stream, "x").unwrap();
    }
    let all = [("x:b", 2), ("x:a", 4), ("x:b", 5)].map(|(name, number)| (name.to_owned(), number));
    assert_eq!(heard(&mut listener), all);
    assert!(!listener.may_have_missed);
    // It connects again, to this process of the server or to another.
    assert_eq!(heard(&mut hub.listen(b"x:", id(2).as_bytes()).unwrap()), all[1..]);
    let other = EventId { epoch: 1, number: 99 }.to_string();
    assert_eq!(heard(&mut hub.listen(b"x:", other.as_bytes()).unwrap()).len(), 4);
    assert_eq!(heard(&mut hub.listen(b"x:", id(77).as_bytes()).unwrap()), []);
}

#[test]
fn a_slow_process_learns_that_it_may_have_missed_messages() {
    let hub = hub();
    let mut listener = hub.listen(b"", b"").unwrap();
    for _ in 0..6 {
        publish(&hub, "a", "x").unwrap();
    }
    assert_eq!(heard(&mut listener).len(), 4);
    assert!(listener.may_have_missed);
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_is_woken_for_messages_and_at_the_end() {
    let hub = hub();
    let fan_out = Rc::clone(&hub.fan_out);
    let mut listener = hub.listen(b"a", b"").unwrap();
    let woken = async {
        for number in 1..=3 {
            let (news, published) = tokio::join!(listener.news(), async {
                tokio::task::yield_now().await;
                publish(&hub, "a", "x")
            });
            assert_eq!((news, published, heard(&mut listener).len()), ((), Ok(number), 1));
        }
        tokio::join!(listener.news(), async { hub.close() });
        assert!(listener.is_over());
    };
    tokio::select! {
        () = fan_out.run() => unreachable!(),
        () = woken => {}
    }
    drop(listener);
    assert!(!hub.everything.has_subscribers());
}

#[tokio::test(flavor = "current_thread")]
async fn publishers_wait_until_subscribers_were_woken() {
    let hub = hub_with(HubLimits { history: 1000, ..LIMITS }, 1 << 20);
    let _client = subscribe(&hub, "a", None);
    for _ in 0..MOST_AHEAD {
        hub.room().await;
        publish(&hub, "a", "x").unwrap();
    }
    let waits = tokio::time::timeout(Duration::from_millis(20), hub.room());
    assert!(waits.await.is_err(), "there is no fan-out");
    let fan_out = Rc::clone(&hub.fan_out);
    tokio::select! {
        () = fan_out.run() => unreachable!(),
        () = hub.room() => {}
    }
    assert_eq!(hub.ahead.get(), (0, 0));
}

/// Something that happens to a hub.
#[derive(Debug, Clone)]
enum Step {
    Publish(usize, usize),
    Come(usize, Vec<usize>),
    Return(usize),
    Take(usize, usize),
    Leave(usize),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..3_usize;
    prop_oneof![
        8 => (0..4_usize, 0..400_usize).prop_map(|(stream, bytes)| Step::Publish(stream, bytes)),
        2 => (client.clone(), prop::collection::vec(0..4_usize, 1..=2)).prop_map(|(at, of)| Step::Come(at, of)),
        2 => client.clone().prop_map(Step::Return),
        6 => (client.clone(), 1..1000_usize).prop_map(|(at, most)| Step::Take(at, most)),
        1 => client.prop_map(Step::Leave),
        1 => Just(Step::Expire),
    ]
}

const STREAMS: [&str; 4] = ["a", "b", "c", "d"];

/// A client, and what it knows.
struct Known {
    streams: Vec<usize>,
    /// The last number that it has, or knows that it has missed.
    last: u64,
    open: Option<Subscription>,
}

proptest! {
    /// Each client gets every message of its streams once and in order, over any number of reconnects, but for those of which
    /// it learns that they are missing.
    #[test]
    fn nothing_is_lost_doubled_or_reordered(steps in prop::collection::vec(step(), 1..200)) {
        let hub = hub_with(HubLimits { history: 5, ..LIMITS }, 5_000);
        let mut published: Vec<(u64, usize)> = Vec::new();
        let mut clients: BTreeMap<usize, Known> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Publish(stream, bytes) => {
                    let number = publish(&hub, STREAMS[stream], &"x".repeat(bytes)).unwrap();
                    prop_assert_eq!(number, published.len() as u64 + 1);
                    published.push((number, stream));
                }
                Step::Come(at, streams) => {
                    clients.remove(&at);
                    let names: Vec<&str> = streams.iter().map(|stream| STREAMS[*stream]).collect();
                    let open = Some(subscribe(&hub, &names.join(","), None));
                    clients.insert(at, Known { streams, last: published.len() as u64, open });
                }
                Step::Return(at) => if let Some(client) = clients.get_mut(&at) {
                    client.open = None;
                    let names: Vec<&str> = client.streams.iter().map(|stream| STREAMS[*stream]).collect();
                    client.open = Some(subscribe(&hub, &names.join(","), Some(&id(client.last))));
                },
                Step::Take(at, most) => if let Some(client) = clients.get_mut(&at) {
                    let Some(open) = &mut client.open else { continue };
                    let got = take(open, most);
                    let of_client = |(_, stream): &&(u64, usize)| client.streams.contains(stream);
                    let due: Vec<u64> = published.iter().filter(of_client)
                        .map(|(number, _)| *number).filter(|number| *number > client.last).collect();
                    if got.is_behind {
                        client.open = None;
                    } else if got.gap.is_none() {
                        prop_assert_eq!(&got.numbers, &due);
                    }
                    prop_assert!(got.numbers.is_sorted_by(|one, next| one < next));
                    prop_assert!(got.numbers.iter().all(|number| due.contains(number)));
                    client.last = match got.is_behind {
                        true => got.numbers.last().copied().unwrap_or(client.last),
                        false => got.numbers.last().copied().unwrap_or(client.last).max(if got.gap.is_some() { published.len() as u64 } else { 0 }),
                    };
                },
                Step::Leave(at) => if let Some(client) = clients.get_mut(&at) {
                    client.open = None;
                },
                Step::Expire => hub.tick(u64::MAX),
            }
            let streams = hub.streams.borrow();
            prop_assert!(streams.bytes() <= 5_000);
        }
        clients.clear();
        hub.tick(u64::MAX);
        prop_assert_eq!(hub.report().map_or(0, |report| report.kept + report.streams + report.held), 0);
    }
}

// --- WebSockets of Action Cable --------------------------------------------------------------------------

/// What a WebSocket has got, frame by frame; it reads `most` bytes at a time.
fn fed(feed: &mut Feed, most: usize) -> (Vec<String>, Option<Fed>) {
    let mut bytes = Vec::new();
    let end = loop {
        match feed.take(most, |piece| bytes.extend_from_slice(piece)) {
            Fed::Bytes(length) => assert!(length > 0),
            Fed::Nothing => break None,
            end => break Some(end),
        }
    };
    (texts(&bytes), end)
}

/// The texts of whole frames.
fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while let [0x81, short, rest @ ..] = bytes {
        let (length, rest) = match short {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            short => (usize::from(*short), rest),
        };
        if rest.len() < length {
            break;
        }
        texts.push(String::from_utf8(rest[..length].to_vec()).unwrap());
        bytes = &rest[length..];
    }
    texts
}

fn wrap(name: &str) -> Rc<str> {
    format!("{{\"identifier\":\"{name}\",\"message\":").into()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_web_socket_gets_messages_of_its_channels_in_the_order_of_publishing() {
    let hub = hub();
    let (one, two) = (wrap("1"), wrap("2"));
    let mut feed = hub.feed();
    publish(&hub, "a", "0").unwrap();
    let after = hub.last();
    publish(&hub, "a", "1").unwrap();
    feed.set(&one, &names(&["a", "b"]), after).unwrap();
    feed.set(&two, &names(&["a"]), hub.last()).unwrap();
    for (stream, data) in [("b", "2"), ("a", "3"), ("c", "4")] {
        publish(&hub, stream, data).unwrap();
    }
    let of = |name: &str, data: &str| format!("{{\"identifier\":\"{name}\",\"message\":{data}}}");
    let expected = vec![of("1", "1"), of("1", "2"), of("1", "3"), of("2", "3")];
    assert_eq!(fed(&mut feed, 1), (expected, None));
    // A stream that goes on is not begun again. A stream that is not named any more ends.
    feed.set(&one, &names(&["a"]), 0).unwrap();
    feed.stop(&two);
    publish(&hub, "b", "5").unwrap();
    publish(&hub, "a", "6").unwrap();
    assert_eq!(fed(&mut feed, 1000), (vec![of("1", "6")], None));
    assert_eq!(hub.report().unwrap().cable_clients, 1);
    drop(feed);
    assert_eq!(hub.report().unwrap().cable_clients, 0);
}

#[test]
fn two_channels_share_the_place_in_a_stream() {
    let hub = hub();
    let (one, two) = (wrap("1"), wrap("2"));
    let mut feed = hub.feed();
    feed.set(&one, &names(&["a"]), 0).unwrap();
    feed.set(&two, &names(&["a"]), 0).unwrap();
    feed.stop(&one);
    publish(&hub, "a", "1").unwrap();
    assert_eq!(fed(&mut feed, 1000).0.len(), 1);
    let stream = hub.streams.borrow_mut().open(b"a");
    assert!(stream.has_subscribers(), "it is woken for the other channel");
    feed.stop(&two);
    assert!(!stream.has_subscribers());
}

#[test]
fn a_message_for_the_client_itself_goes_to_a_worker_in_its_turn() {
    let hub = hub();
    let (one, internal) = (wrap("1"), Rc::from(""));
    let mut feed = hub.feed();
    feed.set(&one, &names(&["a"]), 0).unwrap();
    feed.set(&internal, &names(&["me"]), 0).unwrap();
    for (stream, data) in [("a", "1"), ("me", "x\ny"), ("a", "2")] {
        publish(&hub, stream, data).unwrap();
    }
    let (texts, end) = fed(&mut feed, 1000);
    assert_eq!((texts.len(), end), (1, Some(Fed::ForWorker(b"x\ny".to_vec()))));
    let (texts, end) = fed(&mut feed, 1000);
    assert_eq!((texts.len(), end), (1, None));
}

#[test]
fn a_web_socket_that_misses_a_message_is_behind_and_never_gets_half_a_frame_more() {
    let hub = hub();
    let one = wrap("1");
    let mut feed = hub.feed();
    feed.set(&one, &names(&["a"]), 0).unwrap();
    publish(&hub, "a", &"x".repeat(500)).unwrap();
    assert_eq!(feed.take(100, |_| {}), Fed::Bytes(100));
    assert!(!feed.is_between_frames());
    for _ in 0..4 {
        publish(&hub, "a", "y").unwrap();
    }
    assert_eq!(feed.take(100, |_| panic!()), Fed::Behind);
    // A channel that comes later knows nothing of what was dropped before.
    let mut feed = hub.feed();
    feed.set(&one, &names(&["a"]), 0).unwrap();
    assert_eq!(fed(&mut feed, 1000).0.len(), 4);
}

#[test]
fn the_streams_of_a_web_socket_have_a_limit_and_names() {
    let hub = hub();
    let one = wrap("1");
    let mut feed = hub.feed();
    assert_eq!(feed.set(&one, &names(&["a", "b", "c", "d"]), 0), Err(Unsubscribable::Full));
    for stream in ["a", "b", "c", "d"] {
        publish(&hub, stream, "1").unwrap();
    }
    assert_eq!(fed(&mut feed, 1000).0.len(), 3);
    let mut feed = hub.feed();
    assert!(matches!(feed.set(&one, &names(&["a,b"]), 0), Err(Unsubscribable::Field(_))));
    assert_eq!(hub.cable_offer(1), Some(CableOffer::Full));
    drop(feed);
    assert_eq!(hub.cable_offer(1), Some(CableOffer::Held));
    hub.relay_cables(1, "app", "it has a block");
    assert_eq!((hub.cable_offer(1), hub.cable_offer(2)), (None, Some(CableOffer::Held)));
}

proptest! {
    #[test]
    fn a_web_socket_gets_each_message_whole_and_once_whatever_it_reads_at_a_time(
        sizes in prop::collection::vec((0usize..2, 0usize..300), 0..20),
        most in 1usize..200,
    ) {
        let hub = hub_with(HubLimits { history: 1000, ..LIMITS }, 1 << 20);
        let one = wrap("1");
        let mut feed = hub.feed();
        feed.set(&one, &names(&["0", "1"]), 0).unwrap();
        let mut expected = Vec::new();
        for (stream, size) in sizes {
            let data = format!("\"{}\n\"", "x".repeat(size));
            publish(&hub, &stream.to_string(), &data).unwrap();
            expected.push(format!("{one}{data}}}"));
        }
        prop_assert_eq!(fed(&mut feed, most), (expected, None));
    }
}

// --- What clients of WebSockets have missed --------------------------------------------------------------

/// A WebSocket that says where its messages are, and has these streams from now on.
fn feed_with_positions(hub: &Rc<Hub>, wrap: &Rc<str>, streams: &[&str]) -> Feed {
    let mut feed = hub.feed();
    feed.show_positions();
    feed.set(wrap, &names(streams), hub.last()).unwrap();
    feed
}

fn missed(after: &[(&str, u64)]) -> Missed {
    let id = |number| Some(EventId { epoch: EPOCH, number });
    let after = after.iter().map(|(stream, number)| ((*stream).to_owned(), id(*number)));
    Missed { after: after.collect(), since_ms: None }
}

/// The numbers of messages; 0: what follows behind a replay.
fn offsets(texts: &[String]) -> Vec<u64> {
    let offset = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap()["offset"].as_u64();
    texts.iter().map(|text| offset(text).unwrap_or(0)).collect()
}

/// Whether a client has got everything, and what it has got.
fn replayed(feed: &mut Feed, wrap: &Rc<str>, missed: &Missed) -> (bool, Vec<u64>) {
    let is_whole = feed.replay(wrap, missed);
    feed.add_behind_replay(b"\x81\x02{}");
    (is_whole, offsets(&fed(feed, 1).0))
}

#[test]
fn a_web_socket_says_where_each_message_is_in_its_stream() {
    let hub = hub();
    let one = wrap("1");
    let mut feed = feed_with_positions(&hub, &one, &["a \"b\""]);
    publish(&hub, "a \"b\"", "[1,\n2]").unwrap();
    let expected = "{\"identifier\":\"1\",\"message\":[1,\n2],\"stream_id\":\"a \\\"b\\\"\",\"epoch\":\"000000000000feed\",\"offset\":1}";
    assert_eq!(fed(&mut feed, 1), (vec![expected.into()], None));
}

#[test]
fn a_client_that_comes_back_gets_what_it_has_missed_in_order_and_once() {
    let hub = hub();
    let (one, two) = (wrap("1"), wrap("2"));
    for stream in ["a", "b", "a"] {
        publish(&hub, stream, "0").unwrap();
    }
    let mut feed = feed_with_positions(&hub, &one, &["a", "b"]);
    feed.set(&two, &names(&["a"]), hub.last()).unwrap();
    publish(&hub, "a", "4").unwrap(); // before the client asks
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 1), ("b", 0)])), (true, vec![2, 3, 0, 4, 4]));
    for again in [&[("a", 1)][..], &[("a", 4), ("b", 2)], &[("a", 2), ("b", 0)]] {
        assert_eq!(replayed(&mut feed, &one, &missed(again)), (true, vec![0]));
    }
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 0)])), (true, vec![1, 0]), "that it had not got");
    // It has got a newer message of the other channel.
    assert_eq!(replayed(&mut feed, &two, &missed(&[("a", 1)])), (true, vec![3, 0]));
    publish(&hub, "a", "5").unwrap();
    assert_eq!(offsets(&fed(&mut feed, 1000).0), [5, 5]);
}

#[test]
fn a_client_can_name_a_time() {
    let hub = hub();
    let one = wrap("1");
    publish(&hub, "a", "1").unwrap();
    publish(&hub, "b", "2").unwrap();
    let mut feed = feed_with_positions(&hub, &one, &["a", "b"]);
    let since = |since_ms| Missed { since_ms: Some(since_ms), ..missed(&[("b", 2)]) };
    assert_eq!(replayed(&mut feed, &one, &since(u64::MAX)), (true, vec![0]));
    assert_eq!(replayed(&mut feed, &one, &since(0)), (true, vec![1, 0]), "of b it has everything");
    assert_eq!(replayed(&mut feed, &one, &since(0)), (true, vec![0]));
}

#[test]
fn a_client_learns_that_it_cannot_get_everything() {
    let hub = hub();
    let one = wrap("1");
    for _ in 0..6 {
        publish(&hub, "a", "0").unwrap();
    }
    publish(&hub, "b", "0").unwrap();
    let mut feed = feed_with_positions(&hub, &one, &["a", "b"]);
    let of = |id| Missed { after: [("a".to_owned(), id)].into(), since_ms: None };
    let nothing = (false, vec![0]);
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 1)])), nothing, "the second is lost");
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 8)])), nothing, "there is no such message yet");
    assert_eq!(replayed(&mut feed, &one, &of(Some(EventId { epoch: 1, number: 5 }))), nothing);
    assert_eq!(replayed(&mut feed, &one, &of(None)), nothing);
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", u64::MAX)])), nothing);
    assert_eq!(replayed(&mut feed, &one, &missed(&[("c", 0)])), nothing, "it has no such stream");
    assert_eq!(replayed(&mut feed, &wrap("1"), &missed(&[("a", 5)])), nothing, "that is another channel");
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 1), ("b", 6)])), (false, vec![7, 0]));
    assert_eq!(replayed(&mut feed, &one, &missed(&[("a", 2)])), (true, vec![3, 4, 5, 6, 0]));
}

#[test]
fn a_client_that_is_too_slow_for_its_replay_is_behind() {
    let hub = hub();
    let one = wrap("1");
    for _ in 0..4 {
        publish(&hub, "a", "0").unwrap();
    }
    let mut feed = feed_with_positions(&hub, &one, &["a"]);
    assert!(feed.replay(&one, &missed(&[("a", 0)])));
    feed.add_behind_replay(b"\x81\x02{}");
    assert!(matches!(feed.take(1, |_| {}), Fed::Bytes(_)));
    publish(&hub, "a", "0").unwrap();
    assert!(!feed.is_behind(), "the first was begun");
    publish(&hub, "a", "0").unwrap();
    assert_eq!(feed.take(1, |_| panic!()), Fed::Behind);
}

#[test]
fn a_new_process_knows_what_a_client_has_got() {
    let (old, new) = (hub(), hub_of_new_process());
    let one = wrap("1");
    publish(&old, "a", "1").unwrap();
    let mut feed = feed_with_positions(&old, &one, &["a"]);
    publish(&old, "a", "2").unwrap();
    fed(&mut feed, 1000);
    inherit(&old, &new);
    let mut next = new.feed();
    next.show_positions();
    feed.positions(&one).iter().for_each(|position| next.go_on_at(&one, position).unwrap());
    assert_eq!(replayed(&mut next, &one, &missed(&[("a", 0)])), (true, vec![1, 0]));
    publish(&new, "a", "3").unwrap();
    assert_eq!(offsets(&fed(&mut next, 1000).0), [NEXT + 1]);
}

/// Something that happens to a client whose network fails.
#[derive(Debug, Clone)]
enum Luck {
    Publish(usize),
    Take(usize),
    Cut,
    Ask,
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Luck::Publish),
        6 => (1..300_usize).prop_map(Luck::Take),
        1 => Just(Luck::Cut),
        1 => Just(Luck::Ask),
    ]
}

/// A client of the first two streams: its positions, and the numbers of its messages.
struct Returning {
    feed: Feed,
    bytes: Vec<u8>,
    positions: BTreeMap<&'static str, u64>,
    numbers: Vec<u64>,
}

impl Returning {
    fn ask(&mut self, wrap: &Rc<str>) {
        let after: Vec<(&str, u64)> =
            self.positions.iter().map(|(stream, number)| (*stream, *number)).collect();
        assert!(self.feed.replay(wrap, &missed(&after)));
        self.feed.add_behind_replay(b"\x81\x02{}");
    }

    /// Reads, and notes what is new.
    fn take(&mut self, most: usize, so_far: &mut usize) -> Fed {
        let Returning { feed, bytes, .. } = self;
        let end = feed.take(most, |piece| bytes.extend_from_slice(piece));
        let texts = texts(&self.bytes);
        for text in &texts[*so_far..] {
            let read: serde_json::Value = serde_json::from_str(text).unwrap();
            if let Some(number) = read["offset"].as_u64() {
                let stream = STREAMS.into_iter().find(|name| read["stream_id"] == **name).unwrap();
                self.positions.insert(stream, number);
                self.numbers.push(number);
            }
        }
        *so_far = texts.len();
        end
    }
}

proptest! {
    /// Over any number of connections that break anywhere, in the middle of frames, of replays and of questions.
    #[test]
    fn no_message_is_lost_doubled_or_reordered_over_connections_that_break(steps in prop::collection::vec(luck(), 1..150)) {
        let hub = hub_with(HubLimits { history: 1000, ..LIMITS }, 1 << 20);
        let one = wrap("1");
        let feed = |hub: &Rc<Hub>| feed_with_positions(hub, &one, &["a", "b"]);
        let mut expected = Vec::new();
        let (positions, numbers) = ([("a", 0), ("b", 0)].into(), Vec::new());
        let mut client = Returning { feed: feed(&hub), bytes: Vec::new(), positions, numbers };
        let mut so_far = 0;
        for step in steps {
            match step {
                Luck::Publish(stream) => {
                    let number = publish(&hub, STREAMS[stream], "\"x\"").unwrap();
                    if stream < 2 {
                        expected.push(number);
                    }
                }
                Luck::Take(most) => {
                    client.take(most, &mut so_far);
                }
                Luck::Cut => {
                    client.feed = feed(&hub);
                    client.bytes.clear();
                    so_far = 0;
                    client.ask(&one);
                }
                Luck::Ask => client.ask(&one),
            }
        }
        while client.take(100, &mut so_far) != Fed::Nothing {}
        prop_assert_eq!(client.numbers, expected);
    }
}

// --- Hot restarts ---------------------------------------------------------------------------------------

/// Number before the first message of a new process.
const NEXT: u64 = 1 << 40;

fn hub_of_new_process() -> Rc<Hub> {
    let share = Share::new(&Budget::new(1 << 23, Kind::Hub), "app", None);
    Hub::new(HubSequence { epoch: EPOCH, after: NEXT }, &Rc::default(), LIMITS, share)
}

fn inherit(from: &Hub, to: &Rc<Hub>) {
    let mut inheritance = None;
    for message in from.estate("app") {
        let text = serde_json::to_string(&message).unwrap();
        match serde_json::from_str(&text).unwrap() {
            FromOld::Hub { app, forgotten, dropped, bus } => {
                assert_eq!(app, "app");
                inheritance = Some(to.inherit(forgotten, dropped, &bus));
            }
            FromOld::Stream { name, lost } => inheritance.as_mut().unwrap().begin_stream(name.0, lost),
            FromOld::Message { number, at_ms, event, data } => {
                inheritance.as_mut().unwrap().add(number, at_ms, &event, &data);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn clients_of_the_process_before_go_on_behind_their_last_message() {
    let (old, new) = (hub(), hub_of_new_process());
    for _ in 0..5 {
        publish(&old, "a", "x").unwrap();
    }
    publish(&old, "b", "x").unwrap();
    publish(&new, "b", "while it boots").unwrap();
    inherit(&old, &new);
    publish(&new, "a", "new").unwrap();
    assert_eq!(take(&mut subscribe(&new, "a, b", Some(&id(4))), 1), numbers(&[5, 6, NEXT + 1, NEXT + 2]));
    assert_eq!(take(&mut subscribe(&new, "b", Some(&id(1))), 1), numbers(&[6, NEXT + 1]));
    // The new process has dropped the second message for its own.
    let mut late = subscribe(&new, "a", Some(&id(1)));
    assert_eq!(take(&mut late, 1), Got { gap: Some("expired".into()), ..numbers(&[3, 4, 5, NEXT + 2]) });
    assert_eq!(take(&mut new.subscribe(b"a", new.last()).unwrap(), 1), numbers(&[]));
    assert_eq!(new.report().unwrap().published, 2);
    assert_eq!(new.report().unwrap().kept, 6);
}

#[test]
fn without_an_inheritance_clients_learn_that_messages_are_missing() {
    let new = hub_of_new_process();
    publish(&new, "a", "new").unwrap();
    let mut client = subscribe(&new, "a", Some(&id(4)));
    assert_eq!(take(&mut client, 1), Got { gap: Some("expired".into()), ..numbers(&[NEXT + 1]) });
    let mut feed = new.feed();
    let position = PassedLine { stream: b"a"[..].into(), first: None, next: 5, lost: 0 };
    feed.go_on_at(&wrap("1"), &position).unwrap();
    assert_eq!(fed(&mut feed, 1000), (vec![], Some(Fed::Behind)));
}

#[test]
fn events_are_the_same_in_the_new_process() {
    let (old, new) = (hub(), hub_of_new_process());
    old.publish(&Draft { stream: b"caf\xe9", event: b"moved", data: b"one\ntwo" }).unwrap();
    inherit(&old, &new);
    let text = |hub: &Rc<Hub>| {
        let mut text = Vec::new();
        let mut client = hub.subscribe(b"caf\xe9", 0).unwrap();
        while client.take(1000, |bytes| text.extend_from_slice(bytes)) != Taken::Nothing {}
        text
    };
    assert_eq!(text(&old), text(&new));
}

#[test]
fn what_streams_have_lost_is_inherited() {
    let (old, new) = (hub(), hub_of_new_process());
    publish(&old, "a", "x").unwrap();
    publish(&old, "a", "x").unwrap();
    old.tick(u64::MAX);
    publish(&old, "b", "x").unwrap();
    inherit(&old, &new);
    assert_eq!(take(&mut subscribe(&new, "a, b", Some(&id(2))), 1), numbers(&[3]));
    let mut late = subscribe(&new, "a", Some(&id(1)));
    assert_eq!(take(&mut late, 1), Got { gap: Some("expired".into()), ..Got::default() });
}

#[test]
fn a_web_socket_goes_on_at_its_position() {
    let share = Share::new(&Budget::new(1 << 23, Kind::Hub), "app", None);
    let old = Hub::new(HubSequence { epoch: EPOCH, after: 0 }, &Rc::default(), LIMITS, share);
    let new = hub_of_new_process();
    let one = wrap("1");
    let mut feed = old.feed();
    feed.set(&one, &names(&["a", "quiet"]), 0).unwrap();
    // Most of these streams are forgotten, some with larger numbers than the client's.
    for number in 0..5000 {
        publish(&old, &number.to_string(), "x").unwrap();
        old.tick(u64::MAX);
    }
    publish(&old, "a", "1").unwrap();
    publish(&old, "a", "2").unwrap();
    assert_eq!(feed.take(1, |_| {}), Fed::Bytes(one.len() + 2));
    assert_eq!(fed(&mut feed, 1000).1, None);
    publish(&old, "a", "3").unwrap();
    inherit(&old, &new);
    let mut next = new.feed();
    feed.positions(&one).iter().for_each(|position| next.go_on_at(&one, position).unwrap());
    drop(feed);
    publish(&new, "quiet", "4").unwrap();
    let of = |data: &str| format!("{one}{data}}}");
    assert_eq!(fed(&mut next, 1000), (vec![of("3"), of("4")], None));
}

/// Gives the old process the new one's next messages. Returns whether the new one had dropped some of them before.
async fn forward(listener: &mut Listener, to: &Rc<Hub>) -> Result<bool, Unpublishable> {
    let fan_out = Rc::clone(&to.fan_out);
    let forwarding = async {
        while !listener.has_all() {
            for message in listener.take_to_forward(1) {
                let text = serde_json::to_string(&message).unwrap();
                to.publish_forwarded(&serde_json::from_str(&text).unwrap()).await?;
            }
        }
        Ok(listener.may_have_missed)
    };
    tokio::select! {
        () = fan_out.run() => unreachable!(),
        forwarded = forwarding => forwarded,
    }
}

#[tokio::test]
async fn clients_of_the_old_process_get_what_the_new_one_publishes() {
    let (old, new) = (hub(), hub_of_new_process());
    publish(&old, "a", "x").unwrap();
    let mut client = subscribe(&old, "a, b", Some(&id(0)));
    publish(&new, "b", "while it boots").unwrap();
    inherit(&old, &new);
    let mut listener = new.listen_to_own().unwrap();
    publish(&new, "a", "one\ntwo").unwrap();
    assert_eq!(forward(&mut listener, &old).await, Ok(false));
    assert_eq!(take(&mut client, 1), numbers(&[1, NEXT + 1, NEXT + 2]));
    new.publish(&Draft { stream: b"a", event: b"moved", data: b"" }).unwrap();
    assert_eq!(forward(&mut listener, &old).await, Ok(false));
    assert_eq!(take(&mut client, 1), numbers(&[NEXT + 3]));
    // It goes to the new process, which has no message that it has not got.
    assert_eq!(take(&mut subscribe(&new, "a, b", Some(&id(NEXT + 3))), 1), numbers(&[]));
    assert_eq!([&old, &new].map(|hub| hub.report().unwrap().published), [1, 3]);
}

#[tokio::test]
async fn a_new_process_that_drops_messages_first_says_so() {
    let (old, new) = (hub(), hub_of_new_process());
    inherit(&old, &new);
    let mut listener = new.listen_to_own().unwrap();
    for _ in 0..=LIMITS.history {
        publish(&new, "a", "x").unwrap();
    }
    assert_eq!(forward(&mut listener, &old).await, Ok(true));
}

#[tokio::test]
async fn what_is_not_the_next_message_is_not_published() {
    let old = hub_with(LIMITS, 2000);
    let passed = |stream: &[u8], number, length| PassedMessage {
        stream: stream.into(),
        number,
        data: "x".repeat(length),
        ..PassedMessage::default()
    };
    publish(&old, "a", "x").unwrap();
    assert_eq!(old.publish_forwarded(&passed(b"a", 1, 1)).await, Err(Unpublishable::Closed));
    assert_eq!(old.publish_forwarded(&passed(b"a,b", NEXT, 1)).await, Err(Unpublishable::StreamName));
    assert_eq!(old.publish_forwarded(&passed(b"a", NEXT, 3000)).await, Err(Unpublishable::Full));
    assert_eq!(
        old.publish_forwarded(&passed(b"a", NEXT, 1001)).await,
        Ok(()),
        "the new process may take larger ones"
    );
    assert_eq!(take(&mut subscribe(&old, "a", Some(&id(1))), 1), numbers(&[NEXT]));
    old.close();
    assert_eq!(old.publish_forwarded(&passed(b"a", NEXT + 1, 1)).await, Err(Unpublishable::Closed));
}
