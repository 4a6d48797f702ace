use super::tests::answer;
use super::*;
use crate::clock::now_ms;
use crate::tests::openers::{on_the_fronts_thread, wait_for, Mood, Opener};

fn files_of(opener: &Opener) -> StaticFiles {
    let finder = Finder::new(opener.public(), &[], true);
    StaticFiles::new(finder, Some(&opener.user), &PoolShare::of(Some(&opener.user)))
}

/// The body that a client is sent; `None`: the application is asked.
async fn get(files: &StaticFiles, path: &str) -> Option<String> {
    let answer = answer(files, 2, ("GET", path), "").await?;
    Some(String::from_utf8(answer.body).unwrap())
}

/// The same, of what is known: nothing is waited for.
async fn get_known(files: &StaticFiles, path: &str) -> Option<String> {
    tokio::select! {
        biased;
        answer = get(files, path) => answer,
        () = std::future::ready(()) => panic!("{path} has to wait"),
    }
}

#[test]
fn what_is_known_is_answered_without_asking() {
    on_the_fronts_thread(async {
        let opener = Opener::with(&[("hello.txt", "hello"), ("page.html", "page")]);
        let files = files_of(&opener);
        assert_eq!(get(&files, "/hello.txt").await.as_deref(), Some("hello"));
        assert_eq!(get(&files, "/page").await.as_deref(), Some("page"));
        let (asked, begun_ms) = (opener.asked(), now_ms());
        for _ in 0..100 {
            assert_eq!(get_known(&files, "/hello.txt").await.as_deref(), Some("hello"));
            assert_eq!(get_known(&files, "/page").await.as_deref(), Some("page"));
            assert_eq!(get_known(&files, "/of/the/application").await, None);
        }
        let rounds = (now_ms() - begun_ms) as usize / 1000 + 1; // on a machine that is very busy
        assert!(opener.asked() < asked + 20 * rounds, "{} questions", opener.asked() - asked);
    });
}

#[test]
fn an_opener_that_hangs_holds_up_its_own_user_alone() {
    on_the_fronts_thread(async {
        let [attacker, victim] = [(); 2].map(|()| Opener::with(&[("hello.txt", "hello")]));
        let [attackers, victims] = [&attacker, &victim].map(|opener| files_of(opener));
        attacker.be(Mood::Hangs);
        tokio::select! {
            biased;
            answer = get(&attackers, "/hello.txt") => panic!("{answer:?}"),
            answer = get(&victims, "/hello.txt") => assert_eq!(answer.as_deref(), Some("hello")),
        }
        // In the end the application is asked, and whatever comes later asks it at once.
        assert_eq!(get(&attackers, "/hello.txt").await, None);
        attacker.be(Mood::Answers);
        wait_for("the file", async || get(&attackers, "/hello.txt").await.is_some()).await;
    });
}

#[test]
fn an_opener_that_hangs_has_one_thread_however_many_requests_there_are() {
    on_the_fronts_thread(async {
        let names: Vec<String> = (0..100).map(|number| format!("{number}.txt")).collect();
        let opener = Opener::with(&names.iter().map(|name| (&**name, "text")).collect::<Vec<_>>());
        let files = Rc::new(files_of(&opener));
        opener.be(Mood::Hangs);
        let done = Rc::new(std::cell::Cell::new(0));
        for name in names {
            let (files, done) = (Rc::clone(&files), Rc::clone(&done));
            tokio::task::spawn_local(async move {
                assert_eq!(get(&files, &format!("/{name}")).await.as_deref(), Some("text"));
                done.set(done.get() + 1);
            });
        }
        wait_for("a question", async || opener.asked() > 0).await;
        opener.be(Mood::Answers);
        wait_for("all answers", async || done.get() == 100).await;
        assert_eq!(opener.most_asking(), 1);
    });
}

#[test]
fn what_is_known_is_used_until_a_late_answer_comes() {
    on_the_fronts_thread(async {
        let opener = Opener::with(&[("hello.txt", "one")]);
        let files = files_of(&opener);
        assert_eq!(get(&files, "/hello.txt").await.as_deref(), Some("one"));
        let asked = opener.asked();
        opener.be(Mood::Hangs);
        opener.write("hello.txt", "two");
        wait_for("another question", async || {
            assert_eq!(get(&files, "/hello.txt").await.as_deref(), Some("one"));
            opener.asked() > asked
        })
        .await;
        files.close_idle(now_ms() + 10_000);
        assert_eq!(get_known(&files, "/hello.txt").await.as_deref(), Some("one"));
        opener.be(Mood::Answers);
        wait_for("the new file", async || get(&files, "/hello.txt").await.as_deref() == Some("two")).await;
        std::fs::remove_file(opener.public().join("hello.txt")).unwrap();
        wait_for("its end", async || get(&files, "/hello.txt").await.is_none()).await;
    });
}

#[test]
fn without_an_opener_the_application_is_asked_until_there_is_one() {
    on_the_fronts_thread(async {
        let opener = Opener::with(&[("hello.txt", "hello")]);
        let files = files_of(&opener);
        opener.be(Mood::IsDead);
        assert_eq!(get(&files, "/hello.txt").await, None);
        opener.be(Mood::Answers);
        wait_for("the file", async || get(&files, "/hello.txt").await.is_some()).await;
        opener.be(Mood::IsDead);
        wait_for("its end", async || get(&files, "/hello.txt").await.is_none()).await;
    });
}

#[test]
fn a_site_waits_for_its_page_for_what_is_not_there() {
    on_the_fronts_thread(async {
        let opener = Opener::with(&[("404.html", "lost"), ("docs.txt", "docs")]);
        let site = files_of(&opener).of_site();
        assert_eq!(get(&site, "/nothing").await.as_deref(), Some("lost"));
        assert_eq!(get(&site, "/docs.txt").await.as_deref(), Some("docs"));
        let other = files_of(&opener).of_site();
        opener.be(Mood::Hangs);
        let answer = get(&other, "/nothing").await.unwrap();
        assert_eq!(answer, "404 Not Found: nothing is served here\n");
        opener.be(Mood::Answers);
    });
}

#[test]
fn few_files_are_kept() {
    on_the_fronts_thread(async {
        let opener = Opener::with(&[]);
        std::fs::create_dir(opener.public().join("docs")).unwrap();
        let files = files_of(&opener);
        for number in 0..known_files::KEPT_FILES + 10 {
            assert_eq!(get(&files, &format!("/docs/{number}")).await, None);
        }
        opener.write("docs/text", "text");
        assert_eq!(get(&files, "/docs/text").await.as_deref(), Some("text"));
        assert_eq!(files.known.files.len(), known_files::KEPT_FILES);
        files.close_idle(now_ms() + 10_000);
        assert_eq!(files.known.files.len(), 0);
    });
}
