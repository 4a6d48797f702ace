//! A static site: the front serves its files alone. There is no mold and no worker, and a restart only looks anew
//! where the given path leads to.

use super::Supervisor;
use crate::message::BootFailure;
use crate::mold::MoldSource;
use crate::restart::{Failure, Generation, Wish};
use crate::site::Site;
use crate::spawn_journey::Step;
use crate::AppNotice;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{error, info};

const REMEDY: &str =
    "Build the site, so that its folder holds an index.html. If it has become an application, stop \
                      Highball and start it again.";

impl Supervisor {
    pub(super) fn is_site(&self) -> bool {
        matches!(self.source, MoldSource::Site)
    }

    /// Serves the site. It was there when Highball started.
    pub(super) async fn open_site(&mut self, now: Instant) {
        let folder = self.current.folder.clone();
        if let Some(site) = Site::in_folder(&folder) {
            return self.serve_site(self.current.number, site, &folder).await;
        }
        self.boot_failed(
            BootFailure::of_ours(Step::FindApp, "no_site", no_site(&folder), REMEDY.into()),
            now,
        )
        .await;
    }

    /// Serves what the given path leads to now.
    pub(super) async fn reopen_site(&mut self, wish: Wish) {
        let link = self.app.link.clone();
        let folder = link.canonicalize().unwrap_or(link);
        let Some(site) = Site::in_folder(&folder) else {
            let failure = Failure::new(no_site(&folder), REMEDY);
            let (generation, error) = (wish.generation, &failure.what);
            error!(generation, error, remedy = REMEDY, "the restart failed; the site before is served on");
            self.last_failure = Some(format!("the restart to generation {generation} failed: {error}"));
            return self.past_restarts.add(wish, Duration::ZERO, Some(&failure));
        };
        self.serve_site(wish.generation, site, &folder).await;
        self.past_restarts.add(wish, Duration::ZERO, None);
    }

    async fn serve_site(&mut self, number: u32, site: Site, folder: &Path) {
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

fn no_site(folder: &Path) -> String {
    format!("there is no static site in {} any more", folder.display())
}
