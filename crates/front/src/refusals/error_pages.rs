//! An application's own pages for visitors who get an error instead of an answer: `503.html` and the like in its folder
//! of static files.
//!
//! They are kept in memory for a while: of an application that fails, every request may need one.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use highball_tenant::{Links, TenantFolder};
use highball_users::User;
use tokio::task::spawn_local;

use crate::aside::{patiently, Ages, Memory, PoolShare, Recalled};
use crate::clock::now_ms;
use crate::refusals::failure_pages::Page;

/// The largest page, in bytes.
const PAGE_BYTES: u64 = 256 * 1024;

/// Most pages that are kept.
const KEPT_PAGES: usize = 8;

/// Which page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PageName {
    /// For this status: `503.html`.
    Status(u16),
    /// `maintenance.html`.
    Maintenance,
}

impl PageName {
    fn file(self) -> String {
        match self {
            PageName::Status(status) => format!("{status}.html"),
            PageName::Maintenance => "maintenance.html".into(),
        }
    }
}

/// The pages in one folder.
#[derive(Debug)]
pub(crate) struct ErrorPages {
    public: PathBuf,
    /// Whose rights they are read with: as with static files, the application decides what they are.
    user: Option<User>,
    pages: Memory<PageName, Option<Rc<Page>>>,
    pool: PoolShare,
}

impl ErrorPages {
    pub(crate) fn new(public: PathBuf, user: Option<&User>, pool: &PoolShare) -> Rc<Self> {
        let pages = Memory::of(KEPT_PAGES, Ages::LONG);
        Rc::new(ErrorPages { public, user: user.cloned(), pages, pool: pool.clone() })
    }

    /// The page of this name, if there is one and it can be read in time.
    pub(crate) async fn page(self: Rc<Self>, name: PageName) -> Option<Rc<Page>> {
        match self.pages.recall(&name, now_ms()) {
            Recalled::Fresh(page) => page,
            Recalled::Aging(page) => {
                spawn_local(self.look(name));
                page
            }
            Recalled::Nothing => {
                if !patiently(Rc::clone(&self).look(name)).await {
                    self.pages.put_off_until_learned(name, None, now_ms());
                }
                self.pages.latest(&name).flatten()
            }
        }
    }

    pub(crate) fn forget_old(&self, now_ms: u64) {
        self.pages.forget_old(now_ms);
    }

    async fn look(self: Rc<Self>, name: PageName) {
        let Some(held) = self.pool.take_soon().await else {
            return self.pages.put_off(name, None, now_ms());
        };
        if self.pages.is_fresh(&name, now_ms()) == Some(true) {
            return; // it was read for another request
        }
        let (public, user) = (self.public.clone(), self.user.clone());
        let (page, _held) = held.spend(move || read(&public, name, user.as_ref())).await.unzip();
        self.learn(name, page.flatten());
    }

    fn learn(&self, name: PageName, page: Option<Page>) {
        self.pages.learn(name, page.map(Rc::new), now_ms());
    }
}

fn read(public: &Path, name: PageName, user: Option<&User>) -> Option<Page> {
    let name = name.file();
    let page =
        TenantFolder::open(public, user).and_then(|folder| folder.read(&name, Links::Anywhere, PAGE_BYTES));
    match page {
        Ok(body) => Some(Page::of_the_application(body)),
        Err(error) if error.is_not_found() => None,
        Err(error) => {
            let path = public.join(name);
            // No warning: the application decides how many there would be.
            tracing::debug!(path = %path.display(), %error, "the application's page for errors is not shown");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::openers::{on_the_fronts_thread, wait_for, Mood, Opener};

    async fn body(pages: &Rc<ErrorPages>, status: u16) -> Option<String> {
        let page = Rc::clone(pages).page(PageName::Status(status)).await?;
        Some(String::from_utf8(page.content().body.to_vec()).unwrap())
    }

    #[test]
    fn a_page_is_read_seldom_and_used_while_its_opener_hangs() {
        on_the_fronts_thread(async {
            let opener = Opener::with(&[("500.html", "one")]);
            let pages =
                ErrorPages::new(opener.public(), Some(&opener.user), &PoolShare::of(Some(&opener.user)));
            opener.be(Mood::Hangs);
            assert_eq!(body(&pages, 500).await, None, "the request does not wait for long");
            opener.be(Mood::Answers);
            wait_for("the page", async || body(&pages, 500).await.as_deref() == Some("one")).await;
            assert_eq!(body(&pages, 503).await, None);
            let asked = opener.asked();
            opener.be(Mood::Hangs);
            opener.write("500.html", "two");
            wait_for("another question", async || {
                assert_eq!(body(&pages, 500).await.as_deref(), Some("one"));
                opener.asked() > asked
            })
            .await;
            assert_eq!(opener.asked(), asked + 1, "one is at it");
            opener.be(Mood::Answers);
            wait_for("the new page", async || body(&pages, 500).await.as_deref() == Some("two")).await;
        });
    }

    #[test]
    fn a_page_that_this_process_may_read_is_found() {
        on_the_fronts_thread(async {
            let folder = tempfile::tempdir().unwrap();
            let pages = ErrorPages::new(folder.path().to_owned(), None, &PoolShare::of(None));
            assert_eq!(body(&pages, 500).await, None);
            std::fs::write(folder.path().join("500.html"), "own").unwrap();
            wait_for("the page", async || body(&pages, 500).await.as_deref() == Some("own")).await;
        });
    }
}
