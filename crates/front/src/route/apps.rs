//! The applications of the server, and which of them a request is for.

use std::rc::Rc;

use highball_config::AppId;

use crate::route::app_state::AppState;
use crate::route::router::{Route, Router};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Apps {
    /// Including removed applications that have not finished yet.
    all: Vec<Rc<AppState>>,
    router: Router<Rc<AppState>>,
}

impl Apps {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<AppState>> {
        self.all.iter()
    }

    /// Applications that requests can reach.
    pub(crate) fn reached(&self) -> impl Iterator<Item = &Rc<AppState>> {
        self.all.iter().filter(|app| !app.is_leaving())
    }

    /// Whether there is one alone.
    pub(crate) fn is_one(&self) -> bool {
        self.all.len() == 1
    }

    pub(crate) fn get(&self, id: AppId) -> Option<Rc<AppState>> {
        self.all.iter().find(|app| app.id == id).map(Rc::clone)
    }

    /// The application as another server process knows it: by its name.
    pub(crate) fn named(&self, name: &str) -> Option<Rc<AppState>> {
        self.all.iter().find(|app| app.settings().name == name).map(Rc::clone)
    }

    /// Whose a request is for this host and path, and how many bytes at the beginning of its path are that
    /// application's prefix.
    pub(crate) fn route(&self, host: Option<&[u8]>, path: &[u8]) -> Option<(&Rc<AppState>, usize)> {
        let Route { to, prefix_bytes } = self.router.route(host, path)?;
        Some((to, prefix_bytes))
    }

    pub(crate) fn add(&mut self, app: AppState) {
        self.all.push(Rc::new(app));
        self.rebuild_router();
    }

    /// Some are reached elsewhere now, or not any more.
    pub(crate) fn rebuild_router(&mut self) {
        let mut router = Router::default();
        for app in self.reached() {
            let settings = app.settings();
            router.add(&settings.hosts, &settings.prefix, app);
        }
        self.router = router;
    }

    /// Forgets removed applications that have finished by now.
    pub(crate) fn forget_drained(&mut self) {
        self.all.retain(|app| !app.is_drained());
    }
}
