//! A static site: the front serves its files alone. There is no mold and no worker, and a restart only looks anew
//! where the given path leads to.

use super::Supervisor;
use crate::boot_plan::{NotStarted, Start};
use crate::mold::MoldSource;
use crate::restart::{Failure, Generation, Wish};
use crate::site::Site;
use crate::AppNotice;
use std::path::Path;
use std::time::Duration;
use tracing::{error, info};

pub(super) const REMEDY: &str =
    "Build the site, so that its folder holds an index.html. If it has become an application, stop \
                      Highball and start it again.";

impl Supervisor {
    pub(super) fn is_site(&self) -> bool {
        matches!(self.source, MoldSource::Site)
    }

    /// Serves what the given path leads to now.
    pub(super) async fn reopen_site(&mut self, folder: &Path, start: Result<Start, NotStarted>) {
        let Some(restart) = self.restart.take() else { return };
        let wish = Wish { generation: restart.next.number, asked: restart.asked };
        let Ok(Start::Site(site)) = start else {
            let failure = Failure::new(no_site(folder), REMEDY);
            let (generation, error) = (wish.generation, &failure.what);
            error!(generation, error, remedy = REMEDY, "the restart failed; the site before is served on");
            self.last_failure = Some(format!("the restart to generation {generation} failed: {error}"));
            return self.past_restarts.add(wish, Duration::ZERO, Some(&failure));
        };
        self.serve_site(wish.generation, site, folder).await;
        self.past_restarts.add(wish, Duration::ZERO, None);
    }

    pub(super) async fn serve_site(&mut self, number: u32, site: Site, folder: &Path) {
        info!(app = site.kind, because = site.because, root = %site.root.display(), "found");
        let root = site.root.clone();
        self.current = Generation {
            number,
            folder: folder.into(),
            line: self.current.line,
            app: Some(site.booted()),
            mold: None,
        };
        self.notify(AppNotice::SiteOpened { root }).await;
    }
}

pub(super) fn no_site(folder: &Path) -> String {
    format!("there is no static site in {} any more", folder.display())
}
