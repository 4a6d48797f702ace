//! Profiles that operators take in the dashboard: `POST /actions/ID/profile`, and then a page at `/profiles/ID`.
//!
//! The last one of each application is kept, as the page that shows it, and only a few in all. It says nothing that the dashboard
//! does not show of stuck requests: names of methods, files and paths.

use super::super::request::Response;
use super::Outcome;
use crate::profile::{page_of, taking, About};
use crate::random::random_digits;
use highball_config::{AppId, ProfileMode, ProfileOptions};
use highball_supervisor::{Order, ProfileOrder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tracing::info;

/// Applications of which a profile is kept, or taken at a time.
const APPS: usize = 8;
/// All busy threads: who looks at the dashboard wants to know what requests wait for, too.
const MODE: ProfileMode = ProfileMode::Wall;

/// The last profile of an application.
#[derive(Debug, Clone)]
pub(super) enum Profile {
    /// It is being taken.
    UnderWay,
    Taken {
        at: Instant,
        page: Arc<Page>,
    },
    /// There is none.
    Failed {
        at: Instant,
        why: String,
    },
}

/// A page with a flame graph.
#[derive(Debug)]
pub(super) struct Page {
    html: String,
    /// Of its style and its script.
    nonce: String,
}

/// The last profiles that operators took in the dashboard.
#[derive(Debug, Default)]
pub(crate) struct Profiles(Mutex<BTreeMap<AppId, Profile>>);

impl Profiles {
    /// The last one of an application.
    pub(super) fn of(&self, app: AppId) -> Option<Profile> {
        self.lock().get(&app).cloned()
    }

    /// Takes one, while this goes on.
    pub(super) fn begin(
        self: &Arc<Self>,
        supervisor: mpsc::Sender<Order>,
        app: AppId,
        name: String,
    ) -> Outcome {
        let seconds = ProfileOptions::TIME.as_secs();
        let mut profiles = self.lock();
        if matches!(profiles.get(&app), Some(Profile::UnderWay)) {
            return Outcome::refused("a profile of this application is under way");
        }
        if profiles.values().filter(|profile| matches!(profile, Profile::UnderWay)).count() >= APPS {
            return Outcome::refused(format!("{APPS} profiles are under way"));
        }
        profiles.insert(app, Profile::UnderWay);
        make_room(&mut profiles);
        drop(profiles);
        let kept = Arc::clone(self);
        tokio::spawn(async move {
            // `None`: the run is ending.
            if let Some(profile) = take(&supervisor, app, name).await {
                kept.lock().insert(app, profile);
            }
        });
        Outcome::done(format!(
            "the workers are sampled for {seconds} seconds; a link to the flame graph appears then"
        ))
    }

    /// The page of the last one, if there is one.
    pub(super) fn respond(&self, app: AppId) -> Option<Response> {
        let Some(Profile::Taken { page, .. }) = self.of(app) else { return None };
        let Page { html, nonce } = &*page;
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        let response = Response::new(200, "text/html; charset=utf-8", html.clone());
        Some(response.with("content-security-policy", policy))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AppId, Profile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest page, if there are too many.
fn make_room(profiles: &mut BTreeMap<AppId, Profile>) {
    let ended = |(app, profile): (&AppId, &Profile)| match profile {
        Profile::Taken { at, .. } | Profile::Failed { at, .. } => Some((*at, *app)),
        Profile::UnderWay => None,
    };
    while profiles.len() > APPS {
        let Some((_, oldest)) = profiles.iter().filter_map(ended).min() else { return };
        profiles.remove(&oldest);
    }
}

async fn take(supervisor: &mpsc::Sender<Order>, app: AppId, name: String) -> Option<Profile> {
    let about = About { app: name, mode: MODE, time: ProfileOptions::TIME, began: SystemTime::now() };
    let order = ProfileOrder { mode: MODE, milliseconds: about.time.as_millis() as u64, by_path: true };
    let report = match taking::take(supervisor, app, None, order).await? {
        Ok(report) => report,
        Err(why) => {
            info!(name: "profile_failed", app = app.0, why, "no profile for the dashboard");
            return Some(Profile::Failed { at: Instant::now(), why });
        }
    };
    let made = spawn_blocking(move || {
        let nonce = random_digits().ok()?;
        Some(Page { html: page_of(&report, &about, &nonce), nonce })
    });
    Some(match made.await.ok().flatten() {
        Some(page) => Profile::Taken { at: Instant::now(), page: Arc::new(page) },
        None => Profile::Failed { at: Instant::now(), why: "the system has no random bytes".into() },
    })
}
