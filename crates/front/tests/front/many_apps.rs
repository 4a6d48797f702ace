//! Several applications behind one front: whose a request is, and that what happens to one does not touch the others.
#![allow(clippy::disallowed_methods)] // the files are a test's own

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{app_of, eventually, set_apps, Answer, Client, FakeWorker, Front, Job};
use highball_config::AccessLog;
use highball_front::developer_key::DeveloperKey;
use highball_link::{AppCommand, Booted, FrontAppEvent, FrontCommand, FrontEvent};

/// A front with applications at these hosts, below these prefixes.
fn front_with(reached_at: &[(&[&str], &str)]) -> Front {
    Front::with(|settings| set_apps(settings, reached_at))
}

/// One application at the host `a`, another at `b`.
fn two() -> Front {
    front_with(&[(&["a"], ""), (&["b"], "")])
}

/// Answers with the number of the application, and how the path was split.
fn say_where(app: usize) -> impl Fn(Job) + Send + Sync {
    move |job| {
        let script_name = job.env.get("SCRIPT_NAME").map_or("", String::as_str);
        let text = format!("{app} {script_name}|{}", job.path());
        job.answer(&text);
    }
}

/// The event of this application that comes next, and is no other's.
fn event_of(front: &Front, app: usize) -> FrontAppEvent {
    match front.event() {
        FrontEvent::OfApp(id, event) if id == front.id(app) => event,
        other => panic!("not of application {app}: {other:?}"),
    }
}

/// Takes over the connection of a request: its client, and the application's end.
fn hijack(front: &Front, worker: &FakeWorker, host: &str) -> (Client, UnixStream) {
    let client = front.get_from(host, "/");
    let mut job = worker.claim();
    let application = job.hijack();
    job.end();
    front.until("it is hijacked", |report| report.server.hijacked == 1);
    (client, application)
}

#[test]
fn a_full_queue_in_one_sheds_nothing_of_another() {
    let front = Front::with(|settings| {
        set_apps(settings, &[(&["a"], ""), (&["b"], "")]);
        app_of(settings, 0).limits.queue = 2;
    });
    let worker = front.worker_for(0, 1);
    let _other = front.worker_for(1, 1).serve(1, say_where(1));
    let _stuck: Vec<Client> = (0..3)
        .map(|number| {
            let client = front.get_from("a", "/");
            front.until("it has arrived", |report| {
                report.apps[0].queue + report.apps[0].workers[0].placed + report.apps[0].workers[0].in_flight
                    > number
            });
            client
        })
        .collect();
    let _job = worker.claim();
    assert_eq!(front.get_from("a", "/").answer().status, 503);
    for _ in 0..20 {
        assert_eq!(front.get_from("b", "/").answer().text(), "1 |/");
    }
    assert_eq!(front.report().apps[1].queue, 0);
}

#[test]
fn a_misbehaving_worker_of_one_does_not_affect_another() {
    let front = two();
    let misbehaving = front.worker_for(0, 1);
    let _other = front.worker_for(1, 1).serve(1, say_where(1));
    let mut client = front.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let mut job = misbehaving.claim();
    let mut of_other = front.get_from("b", "/");
    job.raw(&[9, 0, 0, 0]);
    assert_eq!(client.answer().status, 502);
    assert_eq!(of_other.answer().text(), "1 |/");
    assert!(
        matches!(event_of(&front, 0), FrontAppEvent::WorkerBroken { worker, .. } if worker == misbehaving.number)
    );
    assert_eq!(front.get_from("b", "/").answer().text(), "1 |/");
}

#[test]
fn limits_are_those_of_the_application() {
    let front = Front::with(|settings| {
        set_apps(settings, &[(&["a"], ""), (&["b"], "")]);
        let limits = &mut app_of(settings, 0).limits;
        limits.body_bytes = Some(10);
        limits.request_timeout = Some(Duration::from_millis(100));
    });
    let workers = [front.worker_for(0, 1), front.worker_for(1, 1)];
    let post = |host: &str| {
        let mut client = front.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 11\r\n\r\n12345678901"));
        client
    };
    assert_eq!(post("a").answer().status, 413);
    let mut accepted = post("b");
    let mut slow = front.get_from("a", "/");
    let (job, _late) = (workers[1].claim(), workers[0].claim());
    assert_eq!(slow.answer().status, 504);
    job.answer("in time");
    assert_eq!(accepted.answer().text(), "in time");
}

#[test]
fn one_that_is_removed_finishes_what_it_has_begun() {
    let front = two();
    let worker = front.worker_for(0, 1);
    let _other = front.worker_for(1, 1).serve(1, say_where(1));
    let mut client = front.get_from("a", "/begun");
    let job = worker.claim();
    let mut waiting = front.get_from("a", "/waiting");
    front.until("it waits", |report| report.apps[0].queue == 1);
    front.tell(FrontCommand::RemoveApp(front.id(0)));
    eventually("it is not reached any more", || front.get_from("a", "/").answer().status == 404);
    assert!(front.events().is_empty());
    job.answer("first");
    assert_eq!(client.answer().text(), "first");
    worker.answers(&mut waiting, "second");
    assert!(matches!(event_of(&front, 0), FrontAppEvent::Drained));
    assert_eq!(front.report().apps.len(), 1);
    // The connection is still good, for others.
    client.get_from("b", "/");
    assert_eq!(client.answer().text(), "1 |/");
    // Who has not heard of that yet is not left waiting.
    front.tell_of(0, AppCommand::RetireWorker { worker: worker.number });
    assert!(matches!(event_of(&front, 0), FrontAppEvent::WorkerIdle { .. }));
}

#[test]
fn one_that_is_removed_lets_go_of_connections_that_it_has_taken_over() {
    let front = Front::with(|settings| {
        set_apps(settings, &[(&["a"], ""), (&["b"], "")]);
        settings.hijacked_drain_timeout = Duration::from_millis(200);
    });
    let worker = front.worker_for(0, 1);
    let (mut client, mut application) = hijack(&front, &worker, "a");
    front.tell(FrontCommand::RemoveApp(front.id(0)));
    assert!(client.has_ended());
    assert_eq!(application.read(&mut [0; 1]).unwrap(), 0);
    assert!(matches!(event_of(&front, 0), FrontAppEvent::Drained));
}

#[test]
fn no_request_waits_for_a_removed_one_without_workers() {
    let front = two();
    let mut waiting = front.get_from("a", "/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    front.tell(FrontCommand::RemoveApp(front.id(0)));
    assert_eq!(waiting.answer().status, 404);
    assert!(matches!(event_of(&front, 0), FrontAppEvent::Drained));
}

#[test]
fn while_the_server_stops_no_request_waits_for_one_that_does_not_serve() {
    let front = two();
    let _other = front.worker_for(1, 1).serve(1, say_where(1));
    let mut waiting = front.get_from("a", "/");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let mut late = ["a", "b"].map(|host| {
        let mut client = front.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n"));
        client
    });
    front.until("they are there", |report| report.server.connections == 3);
    front.tell(FrontCommand::Drain);
    front.tell_of(0, AppCommand::Abandon);
    assert_eq!(waiting.answer().status, 503);
    let answers = late.each_mut().map(|client| {
        client.send("\r\n");
        client.answer()
    });
    assert_eq!(answers[0].text(), "503 Service Unavailable: the server is stopping\n");
    assert_eq!(answers[1].text(), "1 |/");
}

#[test]
fn a_request_whose_body_comes_later_does_not_wait_either() {
    let front = two();
    let upload = |host: &str| {
        let mut client = front.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        ));
        assert_eq!(client.answer().status, 100);
        client
    };
    let (mut of_removed, mut of_failed) = (upload("a"), upload("b"));
    front.tell(FrontCommand::RemoveApp(front.id(0)));
    front.tell_of(1, AppCommand::Failed(Arc::default()));
    eventually("it is not reached any more", || front.get_from("a", "/").answer().status == 404);
    of_removed.send("ab");
    of_failed.send("ab");
    assert_eq!((of_removed.answer().status, of_failed.answer().status), (404, 503));
}

#[test]
fn one_that_is_asleep_is_wanted_once_and_its_request_waits() {
    let front = Front::with(|settings| {
        set_apps(settings, &[(&["a"], ""), (&["b"], "")]);
        app_of(settings, 0).prestart = false;
    });
    let mut first = front.get_from("a", "/1");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let mut second = front.get_from("a", "/2");
    front.until("both wait", |report| report.apps[0].queue == 2);
    let wanted: Vec<_> = front.events();
    assert!(
        matches!(wanted[..], [FrontEvent::OfApp(id, FrontAppEvent::Wanted)] if id == front.id(0)),
        "sent once: {wanted:?}"
    );
    let worker = front.worker_for(0, 1);
    worker.claim().answer("first");
    worker.claim().answer("second");
    assert_eq!((first.answer().text(), second.answer().text()), ("first", "second"));

    // Once no worker serves any more, it is wanted again.
    front.remove_of(0, &worker);
    let _third = front.get_from("a", "/3");
    front.until("it waits", |report| report.apps[0].queue == 1);
    let wanted = front.events();
    assert!(matches!(wanted[..], [FrontEvent::OfApp(_, FrontAppEvent::Wanted)]), "{wanted:?}");
}

#[test]
fn what_a_worker_leaves_behind_that_is_sent_to_sleep_wakes_the_application() {
    let front = two();
    let worker = front.worker_for(0, 1);
    let mut client = front.get_from("a", "/");
    front.until("it is placed", |report| report.apps[0].workers[0].placed == 1);
    front.tell_of(0, AppCommand::RetireWorker { worker: worker.number });
    eventually("it is wanted", || {
        front.events().iter().any(|event| matches!(event, FrontEvent::OfApp(_, FrontAppEvent::Wanted)))
    });
    front.worker_for(0, 1).answers(&mut client, "awake");
}

#[test]
fn an_idle_one_may_sleep() {
    let front = Front::with(|settings| {
        set_apps(settings, &[(&["a"], ""), (&["b"], "")]);
        app_of(settings, 0).sleep_after = Some(Duration::from_millis(300));
    });
    let worker = front.worker_for(0, 1);
    let _other = front.worker_for(1, 1).serve(1, say_where(1));
    let client = front.get_from("a", "/slow");
    let job = worker.claim();
    client.stays_quiet(Duration::from_millis(600));
    assert!(front.events().is_empty(), "it is at a request");
    job.answer("");
    assert!(matches!(event_of(&front, 0), FrontAppEvent::Idle));
    // The event is sent again as long as it still serves.
    assert!(matches!(event_of(&front, 0), FrontAppEvent::Idle));
}

#[test]
fn a_connection_that_has_met_a_new_generation_of_one_may_meet_the_old_one_of_another() {
    let front = two();
    let old = front.worker_for(0, 1);
    let mut busy = front.get_from("a", "/busy");
    let job = old.claim();
    let (new, other) = (front.worker_of(2, 1), front.worker_for(1, 1));
    let mut client = front.get_from("a", "/");
    new.answers(&mut client, "new");
    job.answer("");
    busy.answer();
    for _ in 0..2 {
        client.get_from("b", "/");
        other.answers(&mut client, "other");
        client.get_from("a", "/");
        new.answers(&mut client, "new");
    }
    assert!(old.try_claim().is_none());
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn files_lie_below_the_prefix() {
    let front = front_with(&[(&[], "/shop"), (&[], "/site")]);
    let _ruby = front.worker_for(0, 1).serve(1, say_where(0));
    let (public, site) = (front.folder().join("public"), front.folder().join("site"));
    write(&public.join("a.txt"), "a file");
    write(&public.join("shop/b.txt"), "not meant");
    write(&site.join("index.html"), "the page");
    write(&site.join("sub/index.html"), "another");
    front.tell_of(0, AppCommand::Booted(Arc::new(Booted { public: Some(public), ..Booted::default() })));
    front.tell_of(1, AppCommand::OpenSite { root: site });
    for (path, expected) in [
        ("/shop/a.txt", "a file"),
        ("/shop/b.txt", "0 /shop|/b.txt"),
        ("/shop/../a.txt", "404 Not Found: no application is served at this host and path\n"),
        ("/shop//a.txt", "0 /shop|//a.txt"),
        ("/shop", "0 /shop|"),
        ("/site/", "the page"),
        ("/site/sub/", "another"),
    ] {
        assert_eq!(front.get(path).answer().text(), expected, "{path}");
    }
    for path in ["/site", "/site/sub"] {
        let answer = front.get(&format!("{path}?x")).answer();
        assert_eq!(answer.status, 301);
        assert_eq!(answer.field("location"), Some(format!("{path}/?x").as_str()));
    }
}

#[test]
fn each_may_have_an_access_log_of_its_own() {
    let front = Front::with(|settings| {
        let folder = settings.limits.spool_dir.clone();
        set_apps(settings, &[(&["a"], ""), (&["b"], ""), (&["c"], "")]);
        settings.log.access = Some(folder.join("server.log"));
        app_of(settings, 1).access_log = AccessLog::Own(folder.join("own.log"));
        app_of(settings, 2).access_log = AccessLog::Off;
    });
    let _serving: Vec<_> = (0..3).map(|app| front.worker_for(app, 1).serve(1, say_where(app))).collect();
    for host in ["a", "b", "c", "d"] {
        front.get_from(host, &format!("/of-{host}")).answer();
    }
    let lines = |log: &str| std::fs::read_to_string(front.folder().join(log)).unwrap_or_default();
    eventually("they are written", || {
        lines("server.log").lines().count() == 2 && !lines("own.log").is_empty()
    });
    assert!(lines("server.log").contains("GET /of-a") && lines("server.log").contains("GET /of-d"));
    assert!(lines("own.log").contains("GET /of-b"));
    assert_eq!(lines("own.log").lines().count(), 1);
}

#[test]
fn what_came_before_it_booted_is_looked_up_among_its_files() {
    let front = Front::with(|settings| set_apps(settings, &[(&[], "/shop"), (&[], "/site")]));
    let (public, site) = (front.folder().join("public"), front.folder().join("site"));
    write(&public.join("a.txt"), "a file");
    write(&site.join("index.html"), "the page");
    let mut early = ["/shop/a.txt", "/shop/b", "/site/"].map(|path| front.get(path));
    let mut posted = front.connect();
    posted.send("POST /shop/a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    let queued = |app: usize| front.report().apps[app].queue;
    eventually("they wait", || (queued(0), queued(1)) == (3, 1));
    front.tell_of(0, AppCommand::Booted(Arc::new(Booted { public: Some(public), ..Booted::default() })));
    front.tell_of(1, AppCommand::OpenSite { root: site });
    assert_eq!(early[0].answer().text(), "a file");
    assert_eq!(early[2].answer().text(), "the page");
    eventually("the others wait on", || queued(0) == 2);
    let _ruby = front.worker_for(0, 1).serve(1, say_where(0));
    assert_eq!(early[1].answer().text(), "0 /shop|/b");
    assert_eq!(posted.answer().text(), "0 /shop|/a.txt");
}

/// Three applications in development: one serves, one has failed, one is asleep.
fn in_development() -> (Front, impl Drop) {
    let front = Front::with(|settings| {
        set_apps(
            settings,
            &[(&["a", "a.example.org", "a.localhost"], ""), (&["b.localhost"], "/x"), (&[], "/c")],
        );
        for app in 0..3 {
            app_of(settings, app).environment = "development".into();
        }
        app_of(settings, 2).prestart = false;
    });
    let serving = front.worker_for(0, 1).serve(1, say_where(0));
    front.tell_of(1, AppCommand::Failed(Arc::default()));
    (front, serving)
}

/// What a browser gets that has opened the developer's link at this host.
fn as_developer(front: &Front, host: &str, path: &str, fields: &str) -> Answer {
    let host = format!("{host}:{}", front.port);
    let link = DeveloperKey::new([7; 32]).link("/");
    let answer = front.get_from(&host, &link).answer();
    assert_eq!((answer.status, answer.field("location")), (303, Some("/")));
    let cookie = answer.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut client = front.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{fields}\r\n"));
    client.answer()
}

#[test]
fn in_development_the_front_page_lists_the_applications() {
    let (front, _serving) = in_development();
    let port = front.port;
    let answer = as_developer(&front, "localhost", "/", "");
    assert_eq!(answer.status, 200);
    let expected = format!(
        "3 applications\n  \
         0  serving  http://a.localhost:{port}/ http://a.example.org:{port}/\n  \
         1  failed   http://b.localhost:{port}/x/\n  \
         2  asleep   http://localhost:{port}/c/\n"
    );
    assert_eq!(answer.text(), expected);

    let answer = as_developer(&front, "127.0.0.1", "/", "Accept: text/html,*/*\r\n");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(answer
        .field("content-security-policy")
        .unwrap()
        .starts_with("default-src 'none'; style-src 'nonce-"));
    // By links that let the browser in there, but not at a name that may lead elsewhere.
    let link = DeveloperKey::new([7; 32]).link(&format!("http://a.localhost:{port}/"));
    assert!(answer.text().contains(&format!("<a href=\"{link}\">0</a>")), "{}", answer.text());
    assert!(answer.text().contains(&format!("<a href=\"http://a.example.org:{port}/\">")));
    assert!(answer.text().contains("<span class=\"state failed\">failed</span>"));
}

#[test]
fn in_development_an_unknown_path_lists_the_applications() {
    let (front, _serving) = in_development();
    let port = front.port;
    let hint = front.get_from(&format!("typo.localhost:{port}"), "/y").answer();
    assert_eq!(hint.status, 404);
    assert!(hint.text().contains("Open the link") && !hint.text().contains("a.localhost"), "{}", hint.text());
    let answer = as_developer(&front, "typo.localhost", "/y", "");
    assert_eq!(answer.status, 404);
    let first = format!("There is no application at http://typo.localhost:{port}/y\n");
    assert!(answer.text().starts_with(&first), "{}", answer.text());
    assert!(answer.text().contains(&format!("http://a.localhost:{port}/")));
    // Not by a name that a stranger may have pointed here, and not through a proxy.
    for head in ["Host: example.com", "Host: localhost\r\nX-Forwarded-For: 192.0.2.1"] {
        let mut client = front.connect();
        client.send(format!("GET / HTTP/1.1\r\n{head}\r\n\r\n"));
        assert_eq!(client.answer().text(), "404 Not Found: no application is served at this host and path\n");
    }
}
