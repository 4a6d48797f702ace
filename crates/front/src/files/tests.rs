use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::clock::now_ms;
use crate::tests::answers::{writer, written};
use crate::tests::heads::head_of;
use crate::tests::openers::DEADLINE;
use crate::tests::runtime;

/// A public folder, with a secret beside it.
struct Public {
    folder: tempfile::TempDir,
    files: StaticFiles,
    runtime: tokio::runtime::LocalRuntime,
}

/// An answer as the client would get it.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.head["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut values = lines.filter_map(|line| line.split_once(": ")).filter(|(known, _)| *known == name);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} twice");
        value
    }
}

/// What a client is sent that waits this often for what is not known; `None`: the application is asked.
pub(super) async fn answer(
    files: &StaticFiles,
    most_waits: u32,
    (method, path): (&str, &str),
    fields: &str,
) -> Option<Answer> {
    let buffer = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let head = head_of(&buffer);
    let head = head.with(buffer.as_bytes());
    for waits in 0.. {
        let request =
            StaticRequest { head, path: head.path(), now_ms: now_ms(), may_wait: waits < most_waits };
        let mut events = AnswerEvents::default();
        let answer = match files.lookup(&request, &mut events) {
            StaticAnswer::NotMine => files
                .not_found(&request, &mut events)
                .map_or(StaticAnswer::NotMine, |answer| answer.expect("not refused")),
            answer => answer,
        };
        match answer {
            StaticAnswer::Pending(pending) => pending.await,
            StaticAnswer::NotMine => {
                assert!(events.is_empty());
                return None;
            }
            StaticAnswer::Given => {
                let out = written(&mut events, &mut writer());
                let (head, body) = out.split_at(memchr::memmem::find(&out, b"\r\n\r\n").unwrap() + 4);
                return Some(Answer { head: String::from_utf8(head.to_vec()).unwrap(), body: body.to_vec() });
            }
        }
    }
    unreachable!()
}

fn files_in(root: PathBuf, headers: &[(String, String)]) -> StaticFiles {
    StaticFiles::new(Finder::new(root, headers, true), None, &PoolShare::of(None))
}

impl Public {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(headers: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().join("public");
        fs::create_dir_all(public.join("docs")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(public.join("hello.txt"), "hello").unwrap();
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Public { files: files_in(public, &headers), folder, runtime: runtime() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("public").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn request(&self, method: &str, path: &str, fields: &str) -> Option<Answer> {
        let answer = self.runtime.block_on(answer(&self.files, 2, (method, path), fields))?;
        let length = answer.field("content-length").map(|length| length.parse::<usize>().unwrap());
        let expected = if method == "GET" { length.unwrap_or(0) } else { 0 };
        assert_eq!(answer.body.len(), expected, "{}", answer.head);
        Some(answer)
    }

    fn get(&self, path: &str) -> Option<Answer> {
        self.request("GET", path, "")
    }

    fn body(&self, path: &str) -> Option<String> {
        self.get(path).map(|answer| String::from_utf8(answer.body).unwrap())
    }

    /// Until the file has this content; `None`: until there is none.
    fn wait_for(&self, path: &str, content: Option<&str>) {
        let until = Instant::now() + DEADLINE;
        while self.body(path).as_deref() != content {
            assert!(Instant::now() < until, "{path}: {:?} instead of {content:?}", self.body(path));
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(5)).await });
        }
    }
}

#[test]
fn a_file_is_sent_with_what_describes_it() {
    let public = Public::with(&[("Cache-Control", "public, max-age=60"), ("Etag", "no"), ("X", "a\nb")]);
    let answer = public.get("/hello.txt").unwrap();
    assert_eq!((answer.status(), &answer.body[..]), (200, &b"hello"[..]));
    assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.field("cache-control"), Some("public, max-age=60"));
    assert_eq!(answer.field("accept-ranges"), Some("bytes"));
    assert!(answer.field("etag").unwrap().starts_with('"'));
    assert!(answer.field("last-modified").is_some() && answer.field("date").is_some());
    assert_eq!((answer.field("x"), answer.field("vary"), answer.field("connection")), (None, None, None));
    let head = public.request("HEAD", "/hello.txt?query", "").unwrap();
    assert_eq!((head.status(), head.field("content-length")), (200, Some("5")));
}

#[test]
fn only_plain_reads_are_for_files() {
    let public = Public::new();
    for (method, fields) in [
        ("POST", ""),
        ("get", ""),
        ("OPTIONS", ""),
        ("GET", "Content-Length: 1\r\n"),
        ("GET", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
    ] {
        assert!(public.request(method, "/hello.txt", fields).is_none(), "{method} {fields}");
    }
    assert!(public.request("OPTIONS", "*", "").is_none());
}

#[test]
fn a_missing_public_folder_serves_nothing_until_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("public");
    let public = Public { files: files_in(root.clone(), &[]), folder, runtime: runtime() };
    assert!(public.get("/hello.txt").is_none());
    fs::create_dir(&root).unwrap();
    fs::write(root.join("hello.txt"), "hello").unwrap();
    public.wait_for("/hello.txt", Some("hello"));
}

/// A developer who has changed a file loads the page again.
#[test]
fn a_file_that_was_not_requested_lately_is_looked_at_before_the_answer() {
    let public = Public::new();
    assert_eq!(public.body("/hello.txt").as_deref(), Some("hello"));
    let until_ms = now_ms() + FRESH_MS;
    public.write("hello.txt", "changed");
    while now_ms() < until_ms {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(public.body("/hello.txt").as_deref(), Some("changed"), "at once");
}

#[test]
fn few_files_are_kept_and_none_for_long() {
    let public = Public::new();
    for number in 0..known_files::KEPT_FILES + 10 {
        public.write(&format!("docs/{number}"), "x");
        assert!(public.get(&format!("/docs/{number}")).is_some());
    }
    assert_eq!(public.files.known.files.len(), known_files::KEPT_FILES);
    public.files.close_idle(now_ms() + FRESH_MS);
    assert_eq!(public.files.known.files.len(), 0);
}

fn site() -> Public {
    let mut site = Public::new();
    site.files = files_in(site.path(""), &[]).of_site();
    site
}

#[test]
fn a_site_answers_for_what_is_not_there() {
    let site = site();
    let answer = site.get("/nothing").unwrap();
    assert_eq!((answer.status(), &answer.body[..]), (404, &b"404 Not Found: nothing is served here\n"[..]));
    assert_eq!(site.request("HEAD", "/../x", "").unwrap().status(), 404);
    site.write("404.html", "<h1>Lost</h1>");
    site.wait_for("/404.html", Some("<h1>Lost</h1>"));
    let answer = site.request("GET", "/nothing", "If-None-Match: *\r\nRange: bytes=0-1\r\n").unwrap();
    assert_eq!((answer.status(), &answer.body[..]), (404, &b"<h1>Lost</h1>"[..]));
    assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
}

#[test]
fn the_path_of_a_folder_of_a_site_ends_in_a_slash() {
    let site = site();
    site.write("docs/index.html", "docs");
    site.write("page.html", "page");
    let answer = site.get("/docs?a=//b").unwrap();
    assert_eq!((answer.status(), answer.field("location")), (301, Some("/docs/?a=//b")));
    assert_eq!(site.get("/docs/").unwrap().body, b"docs");
    assert_eq!(site.get("/docs/index.html").unwrap().status(), 200);
    assert_eq!(site.get("/page").unwrap().body, b"page");
    assert_eq!(site.get("//docs").unwrap().status(), 404, "no way to another host");
}

#[test]
fn an_application_is_asked_for_what_is_not_there() {
    let public = Public::new();
    public.write("docs/index.html", "docs");
    public.write("404.html", "lost");
    assert_eq!(public.get("/docs").unwrap().status(), 200);
    assert!(public.get("/nothing").is_none());
}
