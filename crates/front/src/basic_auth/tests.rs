use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::tests::heads::head_of;
use crate::tests::runtime;

fn is_open_for(request_line: &str, probe_path: &str, prefix: &str) -> bool {
    let bytes = format!("{request_line} HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = head_of(&bytes);
    is_open(head.with(bytes.as_bytes()), prefix.len(), probe_path)
}

#[test]
fn probes_and_challenges_need_no_password() {
    assert!(is_open_for("GET /up", "/up", ""));
    assert!(is_open_for("HEAD /up", "/up", ""));
    assert!(is_open_for("GET /shop/up", "/up", "/shop"));
    assert!(is_open_for("GET /up?deep=1", "/up?deep=1", ""));
    assert!(is_open_for("GET /.well-known/acme-challenge/aB3-_x", "/", ""));
}

#[test]
fn nothing_like_them_is_open() {
    for line in [
        "GET /",
        "GET /?x",
        "GET /up/",
        "GET /up/../admin",
        "GET /UP",
        "GET /%75p",
        "GET /up?x=1",
        "GET //up",
        "GET /up;x",
        "POST /up",
        "OPTIONS /up",
        "DELETE /.well-known/acme-challenge/a",
        "GET /.well-known/acme-challenge/",
        "GET /.well-known/acme-challenge/a/b",
        "GET /.well-known/acme-challenge/../x",
        "GET /.well-known/acme-challenge/..%2fx",
        "GET /.well-known/acme-challenge/a.b",
        "GET /.well-known/acme-challenge//a",
        "GET /x/.well-known/acme-challenge/a",
    ] {
        assert!(!is_open_for(line, "/up", ""), "{line}");
    }
    assert!(!is_open_for("GET /", "/", ""), "the page at the root is the application's");
    assert!(!is_open_for("GET /up", "/up?deep=1", ""));
    assert!(!is_open_for("GET /shop/up", "/shop/up", "/shop"));
}

/// "swordfish".
const ANN: &str = "ann:$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I.\n";

/// An application whose users are in this file.
fn auth(file: &Path) -> Rc<BasicAuth> {
    Rc::new(BasicAuth {
        settings: Settings { file: file.into(), realm: "Restricted".into() },
        app: "blog".into(),
        reader: None,
        file: Memory::of(1, Ages::LONG),
        reads: PoolShare::of(None),
        pool: PoolShare::of_threads(1),
        all: PoolShare::of_logins(),
        known: RefCell::new(KnownLogins::new().unwrap()),
        failures: RefCell::default(),
        waiting: Cell::new(0),
        has_looked: Cell::new(false),
    })
}

fn ask(auth: &Rc<BasicAuth>) -> Judged {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YW5uOnN3b3JkZmlzaA==\r\n\r\n";
    let head = head_of(bytes);
    auth.judge(head.with(bytes), Origin::of("192.0.2.7"))
}

fn question(auth: &Rc<BasicAuth>) -> Question {
    match ask(auth) {
        Judged::Later(question) => question,
        Judged::At(verdict) => panic!("{verdict:?} without a look at the password"),
    }
}

fn is_known(auth: &Rc<BasicAuth>) -> bool {
    matches!(ask(auth), Judged::At(Verdict::User(name)) if *name == *b"ann")
}

fn folder_with(users: &str) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("htpasswd");
    std::fs::write(&file, users).unwrap();
    (folder, file)
}

#[test]
fn few_wait_for_their_passwords_to_be_checked() {
    let (_folder, file) = folder_with(ANN);
    runtime().block_on(async {
        let auth = auth(&file);
        let held = auth.pool.take().await;
        let waiting: Vec<_> =
            (0..MOST_WAITING).map(|_| spawn_local(Rc::clone(&auth).find_out(question(&auth)))).collect();
        assert!(matches!(ask(&auth), Judged::At(Verdict::Refused(Refusal::LoginsBusy { .. }))));
        drop(held);
        for verdict in waiting {
            assert_eq!(verdict.await.unwrap(), Verdict::User(b"ann".as_slice().into()));
        }
        assert!(is_known(&auth));
        assert_eq!(auth.waiting.get(), 0);
    });
}

#[test]
fn a_file_that_is_read_again_ends_the_logins_whose_passwords_have_changed() {
    let (_folder, file) = folder_with(ANN);
    let read_again =
        |auth: &BasicAuth| auth.learn(UserFile::read(&file, None, None).unwrap(), auth.file.latest(&()));
    runtime().block_on(async {
        let auth = auth(&file);
        Rc::clone(&auth).find_out(question(&auth)).await;
        assert!(is_known(&auth));
        read_again(&auth);
        assert!(is_known(&auth), "the users are the same");
        let bob = "bob:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=";
        std::fs::write(&file, format!("# staging\n{bob}\n{ANN}")).unwrap();
        read_again(&auth);
        assert!(is_known(&auth), "another user was added");
        for (users, what) in
            [(bob, "the user was removed"), (&*format!("ann{}", &bob[3..]), "the password was changed")]
        {
            std::fs::write(&file, users).unwrap();
            read_again(&auth);
            assert!(!is_known(&auth), "{what}");
        }
        std::fs::write(&file, format!("{}\n{ANN}", &ANN.replace("xxxxxxxx", "yyyyyyyy").trim_end())).unwrap();
        read_again(&auth);
        assert!(!is_known(&auth), "the first line counts");
    });
}
