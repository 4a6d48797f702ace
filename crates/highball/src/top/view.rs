//! What the user of `top` has chosen: a request, an application, a panel, and an action that waits for `y`.

use crate::control::actions::AppAction;
use crate::status::overview::report::{AppOverview, Overview, RequestOverview};
use std::time::Instant;

/// The identity of a request, by which the next report has it again.
type RequestId = (u32, Option<u32>, Option<String>);

/// The visible panel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Panel {
    /// Applications, workers and requests.
    #[default]
    Lists,
    /// The chosen request, with its backtrace.
    Request,
    /// Why the chosen application failed.
    Diagnosis,
    /// The keys.
    Help,
}

/// The choices of the user.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The chosen request.
    pub(super) selected: Option<RequestId>,
    pub(super) panel: Panel,
    /// Number of lines of the panel above the visible part.
    pub(super) scrolled: usize,
    /// The application for `r`, `f`, `d`, `+` and `-`; `None` for the first.
    pub(super) app: Option<u32>,
    pub(super) confirmation: Option<Confirmation>,
    /// The outcome of an action, and the time until which it is shown.
    pub(super) notice: Option<(String, Instant)>,
    /// Why there is no newer report.
    pub(super) problem: Option<String>,
}

/// An action that waits for `y`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confirmation {
    pub(super) app: u32,
    pub(super) action: AppAction,
    pub(super) question: String,
}

impl View {
    /// Chooses the request this many rows below the chosen one.
    pub(super) fn select(&mut self, now: &Overview, rows: isize) {
        let all: Vec<RequestId> = requests(now).into_iter().map(|(app, request)| id(app, request)).collect();
        let place = self.selected.as_ref().and_then(|selected| all.iter().position(|id| id == selected));
        let next =
            place.map_or(0, |place| place.saturating_add_signed(rows)).min(all.len().saturating_sub(1));
        self.selected = all.into_iter().nth(next);
    }

    pub(super) fn choose_next_app(&mut self, now: &Overview) {
        let apps = now.failed_first();
        let place = self.app(now).and_then(|app| apps.iter().position(|one| one.id == app.id)).unwrap_or(0);
        self.app = apps.get((place + 1) % apps.len().max(1)).map(|app| app.id);
    }

    /// Returns the chosen application.
    pub(super) fn app<'a>(&self, now: &'a Overview) -> Option<&'a AppOverview> {
        let apps = now.failed_first();
        apps.iter().find(|app| Some(app.id) == self.app).or(apps.first()).copied()
    }

    /// Shows a panel, or the lists again if the panel is already shown.
    pub(super) fn toggle(&mut self, panel: Panel) {
        self.panel = if self.panel == panel { Panel::Lists } else { panel };
        self.scrolled = 0;
    }

    /// Forgets what has ended.
    pub(super) fn settle(&mut self, now: &Overview) {
        self.notice.take_if(|(_, until)| *until <= Instant::now());
        if self.request(now).is_none() {
            self.selected = None;
            self.panel = if self.panel == Panel::Request { Panel::Lists } else { self.panel };
            self.select(now, 0);
        }
        if self.panel == Panel::Diagnosis && self.app(now).is_none_or(|app| app.diagnosis.is_none()) {
            self.panel = Panel::Lists;
        }
    }

    /// Returns the chosen request and its application.
    pub(super) fn request<'a>(&self, now: &'a Overview) -> Option<(&'a AppOverview, &'a RequestOverview)> {
        let selected = self.selected.as_ref()?;
        requests(now).into_iter().find(|(app, request)| id(app, request) == *selected)
    }
}

/// Returns the action of a key, as a question.
pub(super) fn confirmation(letter: char, now: &Overview, view: &View) -> Option<Confirmation> {
    let app = view.app(now)?;
    let of_app = |action, question: String| Some(Confirmation { app: app.id, action, question });
    match letter {
        'r' => of_app(AppAction::Restart, format!("Restart {}?", app.name)),
        'f' => of_app(AppAction::Refork, format!("Refork {}?", app.name)),
        '+' | '=' => of_app(AppAction::MoreWorkers, format!("One worker more for {}?", app.name)),
        '-' => of_app(AppAction::FewerWorkers, format!("One worker fewer for {}?", app.name)),
        'k' => {
            let (app, request) = view.request(now)?;
            let worker = request.worker?;
            let question = format!(
                "Replace the worker of {} {}? (worker {worker} of {}; its other requests finish)",
                request.method, request.path, app.name
            );
            Some(Confirmation { app: app.id, action: AppAction::ReplaceWorker { worker }, question })
        }
        _ => None,
    }
}

pub(super) fn id(app: &AppOverview, request: &RequestOverview) -> RequestId {
    (app.id, request.worker, request.ticket.clone())
}

/// Returns the requests of all applications, oldest first.
pub(super) fn requests(now: &Overview) -> Vec<(&AppOverview, &RequestOverview)> {
    let mut all: Vec<_> =
        now.apps.iter().flat_map(|app| app.requests.iter().map(move |request| (app, request))).collect();
    all.sort_by_key(|(_, request)| std::cmp::Reverse(request.age_ms));
    all
}
