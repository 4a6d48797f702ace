use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::*;
use crate::clock::now_ms;
use crate::tests::answers::{writer, written};
use crate::tests::heads::head_of;
use crate::tests::openers::DEADLINE;
use crate::tests::runtime;

const BIG: usize = 100_000;

/// A public folder, with a secret beside it.
struct Public {
    folder: tempfile::TempDir,
    files: StaticFiles,
    runtime: tokio::runtime::LocalRuntime,
}

/// An answer as the client would get it.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut values = lines.filter_map(|line| line.split_once(": ")).filter(|(known, _)| *known == name);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} twice");
        value
    }
}

fn files_in(root: PathBuf, headers: &[(String, String)], follow_symlinks: bool) -> StaticFiles {
    StaticFiles::new(Finder::new(root, headers, follow_symlinks), None, &PoolShare::of(None))
}

impl Public {
    fn new() -> Self {
        Self::with(true, &[])
    }

    fn with(follow_symlinks: bool, headers: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().join("public");
        fs::create_dir_all(public.join("docs")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(public.join("hello.txt"), "hello").unwrap();
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Public { files: files_in(public, &headers, follow_symlinks), folder, runtime: runtime() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("public").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// Looks up what a head asks for. What is not known is waited for.
    fn answer(&self, head: Head<'_>) -> (AnswerEvents, StaticAnswer) {
        self.runtime.block_on(async {
            for waits in 0.. {
                let request =
                    StaticRequest { head, path: head.path(), now_ms: now_ms(), may_wait: waits < 2 };
                let mut events = AnswerEvents::default();
                let answer = match self.files.lookup(&request, &mut events) {
                    StaticAnswer::NotMine => self
                        .files
                        .not_found(&request, &mut events)
                        .map_or(StaticAnswer::NotMine, |answer| answer.expect("not refused")),
                    answer => answer,
                };
                match answer {
                    StaticAnswer::Pending(pending) => pending.await,
                    answer => return (events, answer),
                }
            }
            unreachable!()
        })
    }

    /// The answer to a request; `None`: the application is asked.
    fn request(&self, method: &str, path: &str, fields: &str) -> Option<Answer> {
        let buffer = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = head_of(&buffer);
        let (mut events, answer) = self.answer(head.with(buffer.as_bytes()));
        match answer {
            StaticAnswer::NotMine => {
                assert!(events.is_empty());
                return None;
            }
            StaticAnswer::Pending(_) => unreachable!("it was waited for"),
            StaticAnswer::Given => {}
        }
        let (status, _) = events.summary();
        let out = written(&mut events, &mut writer());
        let end = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(out[..end].to_vec()).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        let answer = Answer { status, head, body: out[end..].to_vec() };
        let length = answer.field("content-length").map(|length| length.parse::<usize>().unwrap());
        if method == "GET" {
            assert_eq!(length.unwrap_or(0), answer.body.len(), "{}", answer.head);
        } else {
            assert!(answer.body.is_empty());
        }
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
    let public =
        Public::with(true, &[("Cache-Control", "public, max-age=60"), ("Etag", "no"), ("X", "a\nb")]);
    let answer = public.get("/hello.txt").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
    assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.field("cache-control"), Some("public, max-age=60"));
    assert_eq!(answer.field("accept-ranges"), Some("bytes"));
    assert!(answer.field("etag").unwrap().starts_with('"'));
    assert!(answer.field("last-modified").is_some() && answer.field("date").is_some());
    assert_eq!((answer.field("x"), answer.field("vary"), answer.field("connection")), (None, None, None));
    let head = public.request("HEAD", "/hello.txt?query", "").unwrap();
    assert_eq!((head.status, head.field("content-length")), (200, Some("5")));
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
fn pages_and_folders_are_found() {
    let public = Public::new();
    assert_eq!(public.body("/"), None);
    public.write("about.html", "about");
    public.write("docs/index.html", "docs");
    public.write("docs/deep/a.html", "a");
    public.write("both", "plain");
    public.write("both.html", "page");
    public.write("index.html", "root");
    public.wait_for("/", Some("root"));
    let at = |path| public.body(path);
    assert_eq!(at("/about").as_deref(), Some("about"));
    assert_eq!(at("/about.html").as_deref(), Some("about"));
    assert_eq!(at("/docs").as_deref(), Some("docs"));
    assert_eq!(at("/docs/").as_deref(), Some("docs"));
    assert_eq!(at("/docs/deep/a").as_deref(), Some("a"));
    assert_eq!(at("/docs/deep"), None);
    assert_eq!(at("/both").as_deref(), Some("plain"));
    assert_eq!(at("/hello.txt/"), None);
    assert_eq!(at("/hello.txt/x"), None);
    assert_eq!(at("//"), None);
}

#[test]
fn nothing_outside_and_nothing_hidden_is_served() {
    let public = Public::new();
    public.write(".env", "hidden");
    public.write("docs/.htpasswd", "hidden");
    public.write(".well-known/security.txt", "contact");
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/docs/../../secret",
        "/docs/%2e%2e/%2e%2e/secret",
        "/..%2fsecret",
        "/..%5csecret",
        "/%c0%ae%c0%ae/secret",
        "/.env",
        "/%2eenv",
        "/docs/.htpasswd",
        "/hello.txt%00",
        "/hello.txt%00.html",
    ] {
        assert!(public.get(path).is_none(), "{path}");
    }
    let absolute = format!("/{}", public.folder.path().join("secret").display());
    assert!(public.get(&absolute).is_none());
    assert_eq!(public.body("/.well-known/security.txt").as_deref(), Some("contact"));
}

#[test]
fn only_regular_files_are_served_and_nothing_hangs() {
    let public = Public::new();
    let path = public.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(public.path("socket")).unwrap();
    symlink("/dev/zero", public.path("zero")).unwrap();
    for path in ["/pipe", "/socket", "/zero", "/docs"] {
        assert!(public.get(path).is_none(), "{path}");
    }
}

#[test]
fn symlinks_are_followed_unless_that_is_refused() {
    for (follow, within, outside) in [(true, Some("hello"), Some("secret")), (false, None, None)] {
        let public = Public::with(follow, &[]);
        symlink("hello.txt", public.path("within")).unwrap();
        symlink("../secret", public.path("outside")).unwrap();
        symlink("..", public.path("up")).unwrap();
        assert_eq!(public.body("/hello.txt").as_deref(), Some("hello"));
        assert_eq!(public.body("/within").as_deref(), within);
        assert_eq!(public.body("/outside").as_deref(), outside);
        assert_eq!(public.body("/up/secret").as_deref(), outside);
    }
}

#[test]
fn a_missing_public_folder_serves_nothing_until_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("public");
    let public = Public { files: files_in(root.clone(), &[], true), folder, runtime: runtime() };
    assert!(public.get("/hello.txt").is_none());
    fs::create_dir(&root).unwrap();
    fs::write(root.join("hello.txt"), "hello").unwrap();
    public.wait_for("/hello.txt", Some("hello"));
}

#[test]
fn files_that_come_change_and_go_are_noticed() {
    let public = Public::new();
    for path in ["/new.txt", "/docs/new.txt"] {
        assert_eq!(public.body(path), None);
        for content in ["one", "three", "four"] {
            // Written in place and replaced, in turn.
            if content == "three" {
                fs::write(public.path("temporary"), content).unwrap();
                fs::rename(public.path("temporary"), public.path(&path[1..])).unwrap();
            } else {
                public.write(&path[1..], content);
            }
            public.wait_for(path, Some(content));
        }
        fs::remove_file(public.path(&path[1..])).unwrap();
        public.wait_for(path, None);
    }
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

#[test]
fn large_files_go_out_in_parts() {
    let public = Public::new();
    let content: Vec<u8> = (0..BIG).map(|index| (index % 251) as u8).collect();
    public.write("big.bin", &content);
    public.write("empty", "");
    let answer = public.get("/big.bin").unwrap();
    assert_eq!(answer.field("content-type"), Some("application/octet-stream"));
    assert!(answer.body == content);
    assert_eq!(public.body("/empty").as_deref(), Some(""));
    for name in ["/big.bin", "/hello.txt"] {
        let whole = public.get(name).unwrap().body;
        let answer = public.request("GET", name, "Range: bytes=1-3\r\n").unwrap();
        assert_eq!((answer.status, &answer.body[..]), (206, &whole[1..4]));
        let expected = format!("bytes 1-3/{}", whole.len());
        assert_eq!(answer.field("content-range"), Some(expected.as_str()));
        assert!(answer.field("content-type").is_some());
        let answer = public.request("GET", name, "Range: bytes=999999-\r\n").unwrap();
        let expected = format!("bytes */{}", whole.len());
        assert_eq!((answer.status, answer.field("content-range")), (416, Some(expected.as_str())));
        let answer = public.request("GET", name, "Range: bytes=0-1,3-4\r\n").unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, whole.len()));
        assert_eq!(public.request("HEAD", name, "Range: bytes=1-3\r\n").unwrap().status, 200);
    }
}

#[test]
fn conditions_are_weighed() {
    let public = Public::new();
    let modified = SystemTime::now() - Duration::from_secs(1000);
    File::options().write(true).open(public.path("hello.txt")).unwrap().set_modified(modified).unwrap();
    let answer = public.get("/hello.txt").unwrap();
    let etag = answer.field("etag").unwrap();
    let same = answer.field("last-modified").unwrap();
    let date = |time| httpdate::fmt_http_date(time);
    let earlier = date(modified - Duration::from_secs(10));
    let later = date(modified + Duration::from_secs(10));
    for (fields, status) in [
        (format!("If-None-Match: {etag}\r\n"), 304),
        (format!("If-None-Match: \"x\", W/{etag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"x\"\r\n".into(), 200),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {same}\r\n"), 200),
        (format!("If-Modified-Since: {same}\r\n"), 304),
        (format!("If-Modified-Since: {later}\r\n"), 304),
        (format!("If-Modified-Since: {earlier}\r\n"), 200),
        ("If-Modified-Since: yesterday\r\n".into(), 200),
        (format!("If-Match: {etag}\r\n"), 200),
        ("If-Match: *\r\n".into(), 200),
        ("If-Match: \"x\"\r\n".into(), 412),
        (format!("If-Match: W/{etag}\r\n"), 412),
        (format!("If-Unmodified-Since: {same}\r\n"), 200),
        (format!("If-Unmodified-Since: {earlier}\r\n"), 412),
        (format!("If-Match: {etag}\r\nIf-Unmodified-Since: {earlier}\r\n"), 200),
        (format!("If-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"), 412),
        (format!("Range: bytes=0-1\r\nIf-Range: {etag}\r\n"), 206),
        (format!("Range: bytes=0-1\r\nIf-Range: {same}\r\n"), 206),
        (format!("Range: bytes=0-1\r\nIf-Range: {later}\r\n"), 200),
        ("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n".into(), 200),
        (format!("Range: bytes=0-1\r\nIf-Range: W/{etag}\r\n"), 200),
        (format!("Range: bytes=0-1\r\nIf-None-Match: {etag}\r\n"), 304),
    ] {
        let answer = public.request("GET", "/hello.txt", &fields).unwrap();
        assert_eq!(answer.status, status, "{fields}");
        assert_eq!(answer.field("etag"), Some(etag), "{fields}");
        if status == 304 {
            assert_eq!((answer.field("content-length"), answer.field("content-type")), (None, None));
        }
    }
}

#[test]
fn compressed_siblings_are_sent_to_those_who_take_them() {
    let public = Public::new();
    public.write("app.js", "plain");
    public.write("app.js.gz", "gzipped");
    public.write("app.js.br", "brotli!");
    public.write("one.css", "plain");
    public.write("one.css.gz", "gzipped");
    let get = |path: &str, accept: &str| {
        public.request("GET", path, &format!("Accept-Encoding: {accept}\r\n")).unwrap()
    };
    let mut tags = Vec::new();
    for (path, accept, body, coding) in [
        ("/app.js", "gzip, br", "brotli!", Some("br")),
        ("/app.js", "gzip", "gzipped", Some("gzip")),
        ("/app.js", "deflate", "plain", None),
        ("/one.css", "br, gzip", "gzipped", Some("gzip")),
        ("/one.css", "br", "plain", None),
    ] {
        let answer = get(path, accept);
        assert_eq!(answer.body, body.as_bytes(), "{path} {accept}");
        assert_eq!(answer.field("content-encoding"), coding);
        assert_eq!(answer.field("vary"), Some("accept-encoding"));
        assert_ne!(answer.field("content-type"), Some("application/gzip"));
        tags.push(answer.field("etag").unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 5, "each has its own tag");
    let direct = get("/app.js.gz", "gzip");
    assert_eq!(
        (direct.field("content-type"), direct.field("content-encoding")),
        (Some("application/gzip"), None)
    );
    assert_eq!(get("/hello.txt", "gzip").field("vary"), None);
}

fn site() -> Public {
    let mut site = Public::new();
    site.files = files_in(site.path(""), &[], true).of_site();
    site
}

#[test]
fn a_site_answers_for_what_is_not_there() {
    let site = site();
    let answer = site.get("/nothing").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (404, &b"404 Not Found: nothing is served here\n"[..]));
    assert_eq!(site.request("HEAD", "/../x", "").unwrap().status, 404);
    site.write("404.html", "<h1>Lost</h1>");
    site.wait_for("/404.html", Some("<h1>Lost</h1>"));
    let answer = site.request("GET", "/nothing", "If-None-Match: *\r\nRange: bytes=0-1\r\n").unwrap();
    assert_eq!((answer.status, &answer.body[..]), (404, &b"<h1>Lost</h1>"[..]));
    assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
}

#[test]
fn the_path_of_a_folder_of_a_site_ends_in_a_slash() {
    let site = site();
    site.write("docs/index.html", "docs");
    site.write("page.html", "page");
    let answer = site.get("/docs?a=//b").unwrap();
    assert_eq!((answer.status, answer.field("location")), (301, Some("/docs/?a=//b")));
    assert_eq!(site.get("/docs/").unwrap().body, b"docs");
    assert_eq!(site.get("/docs/index.html").unwrap().status, 200);
    assert_eq!(site.get("/page").unwrap().body, b"page");
    assert_eq!(site.get("//docs").unwrap().status, 404, "no way to another host");
}

#[test]
fn an_application_is_asked_for_what_is_not_there() {
    let public = Public::new();
    public.write("docs/index.html", "docs");
    public.write("404.html", "lost");
    assert_eq!(public.get("/docs").unwrap().status, 200);
    assert!(public.get("/nothing").is_none());
}
