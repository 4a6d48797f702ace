use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::tests::{answer, Answer};
use super::*;
use crate::clock::now_ms;
use crate::compression::encoder::tests::{decoded, ALL};
use crate::compression::room::Room;
use crate::tests::openers::DEADLINE;
use crate::tests::runtime;

/// Room for two encoders of any kind, and some files.
const MEMORY: u64 = 256 << 20;

/// A public folder with its files, compressed in that room.
struct Site {
    folder: tempfile::TempDir,
    files: StaticFiles,
    runtime: tokio::runtime::LocalRuntime,
}

impl Site {
    fn with(room: &AppRoom) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let finder = Finder::new(folder.path().to_owned(), &[], true);
        let files = StaticFiles::new(finder, None, &PoolShare::of(None)).compressed_in(Some(room));
        Site { folder, files, runtime: runtime() }
    }

    fn new() -> Self {
        Site::with(&Room::new(MEMORY, Rc::default()).of_app("site"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A change shows after a moment.
    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + DEADLINE;
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(5)).await });
        }
    }

    fn request(&self, method: &str, path: &str, fields: &str) -> Answer {
        self.runtime.block_on(answer(&self.files, 10, (method, path), fields)).expect("a file")
    }

    fn get(&self, path: &str, accepted: &str) -> Answer {
        self.request("GET", path, &format!("accept-encoding: {accepted}\r\n"))
    }
}

impl Answer {
    fn coding(&self) -> Option<&str> {
        self.field("content-encoding")
    }

    fn decoded(&self) -> Vec<u8> {
        let coding = ALL.iter().find(|coding| self.coding() == Some(coding.name()));
        coding.map_or_else(|| self.body.clone(), |coding| decoded(*coding, &self.body, true))
    }
}

fn script(length: usize) -> Vec<u8> {
    (0..).flat_map(|row: u64| format!("call({});\n", row * 7919 % 1013).into_bytes()).take(length).collect()
}

#[test]
fn files_without_a_sibling_are_compressed() {
    let site = Site::new();
    let files = [("small.js", 5000), ("large.js", 300_000)];
    files.iter().for_each(|(name, length)| site.write(name, &script(*length)));
    for (name, length) in files {
        let path = format!("/{name}");
        for (accepted, coding) in [
            ("gzip", "gzip"),
            ("zstd, gzip", "zstd"),
            ("gzip, deflate, br, zstd", "br"),
            ("br;q=0.1, gzip", "gzip"),
        ] {
            let body = site.get(&path, accepted).decoded_as(coding);
            assert_eq!(body, script(length), "{name} {accepted}");
        }
        let plain = site.get(&path, "identity");
        assert_eq!((plain.coding(), plain.body.len()), (None, length));
        assert_eq!(
            (plain.field("vary"), plain.field("accept-ranges")),
            (Some("accept-encoding"), Some("bytes"))
        );
    }
}

impl Answer {
    /// The body, sent in this coding and with what belongs to it.
    fn decoded_as(&self, coding: &str) -> Vec<u8> {
        assert_eq!(
            (self.coding(), self.field("vary")),
            (Some(coding), Some("accept-encoding")),
            "{}",
            self.head
        );
        assert!(self.head.starts_with("HTTP/1.1 200 "));
        assert!(self.field("etag").unwrap().starts_with("W/\""));
        assert_eq!(self.field("content-length"), Some(&*self.body.len().to_string()));
        assert_eq!(self.field("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(self.field("accept-ranges"), None);
        self.decoded()
    }
}

#[test]
fn others_are_sent_as_they_are() {
    let site = Site::new();
    let noise: Vec<u8> = (1..3000_u64)
        .scan(1_u64, |state, _| {
            *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1_442_695_040_888_963_407);
            Some((*state >> 40) as u8)
        })
        .collect();
    let files = [
        ("noise.js", noise),
        ("short.js", script(500)),
        ("picture.png", script(5000)),
        ("with.js", script(5000)),
    ];
    files.iter().for_each(|(name, content)| site.write(name, content));
    site.write("with.js.gz", b"a sibling");
    for (name, content) in files {
        let answer = site.get(&format!("/{name}"), "zstd");
        assert_eq!((answer.coding(), &answer.body), (None, &content), "{name}");
        assert!(answer.field("etag").unwrap().starts_with('"'), "{name}");
    }
    assert_eq!(site.get("/with.js", "gzip, br").body, b"a sibling");
}

#[test]
fn siblings_in_zstd_are_sent() {
    let site = Site::new();
    site.write("app.js", &script(5000));
    let siblings = [("zst", "zstd"), ("br", "zstd, br"), ("gz", "gzip")];
    siblings.iter().for_each(|(end, _)| site.write(&format!("app.js.{end}"), end.as_bytes()));
    for (end, accepted) in siblings {
        assert_eq!(site.get("/app.js", accepted).body, end.as_bytes());
    }
    assert_eq!(site.get("/app.js", "zstd").coding(), Some("zstd"));
}

#[test]
fn conditions_and_ranges_hold_for_the_file() {
    let site = Site::new();
    site.write("app.js", &script(5000));
    let answer = site.get("/app.js", "zstd");
    let weak = answer.field("etag").unwrap().to_owned();
    let strong = weak.strip_prefix("W/").unwrap();
    let ask =
        |fields: &str| site.request("GET", "/app.js", &format!("accept-encoding: zstd\r\n{fields}\r\n"));
    for tag in [&*weak, strong, "*"] {
        let again = ask(&format!("if-none-match: {tag}"));
        assert!(again.head.starts_with("HTTP/1.1 304 "), "{}", again.head);
        assert_eq!(
            (again.field("etag"), again.field("vary"), again.body.len()),
            (Some(&*weak), Some("accept-encoding"), 0)
        );
        assert_eq!((again.coding(), again.field("content-length")), (None, None));
    }
    assert!(ask(&format!("if-match: {weak}")).head.starts_with("HTTP/1.1 412 "), "it is compared strongly");
    assert_eq!(ask(&format!("if-match: {strong}")).coding(), Some("zstd"));
    let part = ask("range: bytes=10-19");
    assert!(part.head.starts_with("HTTP/1.1 206 "));
    assert_eq!(
        (part.coding(), &part.body[..], part.field("etag")),
        (None, &script(5000)[10..20], Some(strong))
    );
    let whole = ask(&format!("range: bytes=10-19\r\nif-range: {weak}"));
    assert_eq!((whole.coding(), whole.body.len()), (None, 5000), "the client cannot join the parts");
    let head = site.request("HEAD", "/app.js", "accept-encoding: zstd\r\n");
    assert_eq!(head, Answer { body: Vec::new(), ..answer });
}

#[test]
fn a_file_that_changes_is_compressed_again() {
    let site = Site::new();
    site.write("app.js", &script(5000));
    assert_eq!(site.get("/app.js", "zstd").decoded_as("zstd"), script(5000));
    for length in [6000, 7000, 7000] {
        let content = script(length).to_ascii_uppercase();
        site.write("app.js", &content);
        site.wait_for("the new content", || site.get("/app.js", "zstd").decoded() == content);
    }
}

#[test]
fn it_is_compressed_once_and_forgotten_when_it_is_not_requested() {
    let room = Room::new(MEMORY, Rc::default()).of_app("site");
    let site = Site::with(&room);
    let free = |room: &AppRoom| (0..MEMORY).step_by(1 << 10).take_while(|bytes| room.has(*bytes)).count();
    let before = free(&room);
    site.write("app.js", &script(500_000));
    let answer = site.get("/app.js", "gzip");
    assert_eq!(answer.decoded_as("gzip"), script(500_000));
    let held = (before - free(&room)) * 1024;
    assert!(
        (answer.body.len()..answer.body.len() + 2048).contains(&held),
        "{held}: the encoder's is given back"
    );
    site.files.close_idle(now_ms() + 3_600_000);
    assert_eq!(free(&room), before);
}

#[test]
fn without_memory_files_are_sent_as_they_are() {
    let room = Room::new(1 << 20, Rc::default()).of_app("site");
    let site = Site::with(&room);
    site.write("app.js", &script(5000));
    let answer = site.get("/app.js", "gzip");
    assert_eq!((answer.coding(), &answer.body), (None, &script(5000)));
}

#[test]
fn the_file_that_was_not_requested_for_longest_makes_room() {
    // For one encoder of gzip with a large file, and little more.
    let room = Room::new(4 * 1500 * 1024, Rc::default()).of_app("site");
    let site = Site::with(&room);
    let noisy = |seed: u64| -> Vec<u8> {
        let bytes = (0..300_000_u64).scan(seed, |state, _| {
            *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1_442_695_040_888_963_407);
            Some(b'a' + ((*state >> 40) as u8) % 20)
        });
        bytes.collect()
    };
    let names = ["1.js", "2.js", "3.js", "4.js", "5.js"];
    (1..).zip(names).for_each(|(seed, name)| site.write(name, &noisy(seed)));
    for name in names {
        assert_eq!(site.get(&format!("/{name}"), "gzip").coding(), Some("gzip"), "{name}");
    }
}
