//! `/`: a page that shows what the server does, and by which operators act on it; `/apps/ID`: the same of one application. The page
//! is one answer without anything from elsewhere. The server writes what it shows ([`content`], with [`charts`]), also for each
//! update ([`super::streams`]), and escapes every text. A script in a text would not run even so: the policy allows the page's own.
//!
//! Who reaches the address sees the page. Orders are taken where the option `admin_actions` is on, and from those who send
//! the token in a header field, which another website cannot make a browser send.

mod charts;
mod content;
mod profiles;

use super::request::{Request, Response};
use super::Sources;
use crate::control::actions::AppAction;
use crate::random::random_digits;
use crate::status::overview::rates::History;
use crate::status::overview::report::{Overview, RequestOverview};
use crate::status::overview::{Detail, Key};
use content::Scene;
pub(super) use content::View;
use highball_config::AppId;
use highball_front::refusals::page;
use highball_text::json;
pub(crate) use profiles::Profiles;
use serde::Serialize;
use std::time::Duration;
use tokio::time::sleep;
use tracing::info;

const JSON: &str = "application/json";
/// What a wrong token costs.
const WRONG_TOKEN_TIME: Duration = Duration::from_millis(300);

/// What programs get.
#[derive(Serialize)]
struct DashboardReport {
    /// Whether there are buttons for those who have the token.
    takes_orders: bool,
    /// `None`: the front's event loop does not answer.
    overview: Option<Overview>,
}

/// What the page is sent once a second.
#[derive(Serialize)]
struct Update {
    html: String,
}

/// What the page is sent about a request.
#[derive(Serialize)]
struct AboutRequest {
    /// `None`: it has ended.
    request: Option<RequestOverview>,
}

/// What came of an order.
#[derive(Serialize)]
struct Outcome {
    done: Option<String>,
    why_not: Option<String>,
}

impl Outcome {
    fn done(what: String) -> Outcome {
        Outcome { done: Some(what), why_not: None }
    }

    fn refused(why: impl Into<String>) -> Outcome {
        Outcome { done: None, why_not: Some(why.into()) }
    }

    fn response(&self) -> Response {
        as_json(if self.done.is_some() { 200 } else { 409 }, self)
    }
}

/// The answer to a `GET`, if it is for the dashboard.
pub(super) async fn respond(sources: &Sources, path: &str) -> Option<Response> {
    if let Some(view) = view(path) {
        return Some(page(sources, view).await);
    }
    match path {
        "/overview" => Some(Response::new(200, JSON, report(sources).await)),
        path if path.starts_with("/profiles/") => {
            let app = AppId(path.strip_prefix("/profiles/")?.parse().ok()?);
            sources.profiles.respond(app)
        }
        path => {
            let mut parts = path.strip_prefix("/requests/")?.split('/');
            let key = Key {
                app: AppId(parts.next()?.parse().ok()?),
                worker: parts.next()?.parse().ok()?,
                ticket: parts.next()?.parse().ok()?,
            };
            let request = sources.observer.request(key).await;
            Some(as_json(if request.is_some() { 200 } else { 404 }, &AboutRequest { request }))
        }
    }
}

/// `/`, `/apps/ID`
fn view(path: &str) -> Option<View> {
    match path {
        "/" => Some(View::All),
        path => Some(View::App(AppId(path.strip_prefix("/apps/")?.parse().ok()?))),
    }
}

/// The page for which a stream is: `/events`, `/events/ID`.
pub(super) fn followed(path: &str) -> Option<View> {
    match path.strip_prefix("/events")? {
        "" => Some(View::All),
        rest => Some(View::App(AppId(rest.strip_prefix('/')?.parse().ok()?))),
    }
}

/// What is shown now.
pub(super) async fn overview(sources: &Sources) -> Option<Overview> {
    let detail = Detail { states: true, backtraces: false, clients: false };
    sources.observer.overview(detail).await
}

/// The report, as JSON in one line.
async fn report(sources: &Sources) -> String {
    let takes_orders = sources.configuration.now().admin.takes_orders;
    json::compact(&DashboardReport { takes_orders, overview: overview(sources).await })
}

/// What a page shows from now on, as JSON in one line.
pub(super) fn update(sources: &Sources, history: Option<&History>, view: View) -> String {
    json::compact(&Update { html: html(sources, history, view) })
}

fn html(sources: &Sources, history: Option<&History>, view: View) -> String {
    let Some((history, now)) = history.and_then(|history| Some((history, history.now()?))) else {
        return content::NO_ANSWER.into();
    };
    let takes_orders = sources.configuration.now().admin.takes_orders;
    let (last_hour, profiles) = (&sources.last_hour, &sources.profiles);
    Scene { view, now, history, last_hour, profiles, takes_orders }.html()
}

fn as_json(status: u16, content: &impl Serialize) -> Response {
    Response::new(status, JSON, json::compact(content))
}

/// A page with what there is to see now.
async fn page(sources: &Sources, view: View) -> Response {
    let history = overview(sources).await.map(|now| {
        let mut history = History::default();
        history.add(now);
        history
    });
    let takes_orders = sources.configuration.now().admin.takes_orders;
    let events = match view {
        View::All => "/events".into(),
        View::App(app) => format!("/events/{}", app.0),
    };
    let Ok(nonce) = random_digits() else { return Response::text(503, "the system has no random bytes\n") };
    let page = template(&nonce)
        .replace("EVENTS", &events)
        .replace("UNLOCK", if takes_orders { include_str!("dashboard/unlock.html") } else { "" })
        // The last: texts of others are in it.
        .replacen("CONTENT", &html(sources, history.as_ref(), view), 1);
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Response::new(200, "text/html; charset=utf-8", page).with("content-security-policy", policy)
}

/// The page without its content.
fn template(nonce: &str) -> String {
    include_str!("dashboard.html")
        .replace("NONCE", nonce)
        .replace("/* STYLE */", &[page::STYLE, include_str!("dashboard.css")].concat())
        .replace("/* SCRIPT */", include_str!("dashboard.js"))
}

/// The answer to a `POST`: an order.
pub(super) async fn obey(sources: &Sources, request: &Request) -> Response {
    let Some(order) = request.path.strip_prefix("/actions/") else {
        return Response::text(405, "only GET and HEAD\n").with("allow", "GET, HEAD");
    };
    if !sources.configuration.now().admin.takes_orders {
        return Response::text(404, "this server accepts no actions here; the option admin_actions is off\n");
    }
    if !is_of_this_page(request) {
        return Response::text(403, "the request comes from another website\n");
    }
    if !request.authorization.as_ref().is_some_and(|given| sources.token.is_in(given)) {
        sleep(WRONG_TOKEN_TIME).await;
        return Response::text(403, "the token is missing or wrong; `highball top --token` prints it\n");
    }
    if order == "verify" {
        return Response::text(200, "this is the token\n");
    }
    let Some((app, action)) = parse(order) else { return Response::text(404, "there is no such action\n") };
    let Some(supervisor) = sources.supervisor.upgrade() else {
        return Response::text(503, "the server is about to end\n");
    };
    let outcome = match action {
        Action::Profile => Some(match name_of(sources, app) {
            Some(name) => sources.profiles.begin(supervisor, app, name),
            None => Outcome::refused("there is no such application any more"),
        }),
        Action::Of(action) => action.perform(app, &supervisor).await.map(|outcome| match outcome {
            Ok(done) => Outcome::done(done),
            Err(why) => Outcome::refused(why),
        }),
    };
    info!(name: "dashboard_order", app = app.0, order, "the dashboard sent an order");
    outcome.map_or_else(|| Response::text(503, "the server is about to end\n"), |outcome| outcome.response())
}

fn name_of(sources: &Sources, app: AppId) -> Option<String> {
    let settings = sources.configuration.now();
    settings.app(app).map(|app| app.name.clone())
}

/// What the dashboard does for operators.
#[derive(Debug, PartialEq)]
enum Action {
    Of(AppAction),
    /// Show where the time of the application goes.
    Profile,
}

/// `APP/restart`, `APP/replace/WORKER`.
fn parse(order: &str) -> Option<(AppId, Action)> {
    let (app, action) = order.split_once('/')?;
    let action = match action {
        "profile" => return Some((AppId(app.parse().ok()?), Action::Profile)),
        "restart" => AppAction::Restart,
        "refork" => AppAction::Refork,
        "more-workers" => AppAction::MoreWorkers,
        "fewer-workers" => AppAction::FewerWorkers,
        _ => AppAction::ReplaceWorker { worker: action.strip_prefix("replace/")?.parse().ok()? },
    };
    Some((AppId(app.parse().ok()?), Action::Of(action)))
}

/// Whether it is of the page that this server has sent, or of a program, as far as a browser says. (No other page knows the
/// token anyway.)
fn is_of_this_page(request: &Request) -> bool {
    let is_own_site = request.fetch_site.as_deref().is_none_or(|site| matches!(site, "same-origin" | "none"));
    let is_own_origin = request.origin.as_deref().is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some() && authority == request.host.as_deref()
    });
    is_own_site && is_own_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = template("4711");
        for outside in ["http://", "https://", "@import", "url(", "src=", "innerHTML", "NONCE", "onclick="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn pages_and_their_streams_have_paths() {
        assert_eq!(
            [view("/"), view("/apps/7"), view("/apps/x"), view("/livez")],
            [Some(View::All), Some(View::App(AppId(7))), None, None]
        );
        let streams =
            [followed("/events"), followed("/events/7"), followed("/events/"), followed("/eventsx")];
        assert_eq!(streams, [Some(View::All), Some(View::App(AppId(7))), None, None]);
    }

    #[test]
    fn orders_are_read() {
        assert_eq!(parse("7/restart"), Some((AppId(7), Action::Of(AppAction::Restart))));
        assert_eq!(
            parse("7/replace/3"),
            Some((AppId(7), Action::Of(AppAction::ReplaceWorker { worker: 3 })))
        );
        assert_eq!(parse("7/profile"), Some((AppId(7), Action::Profile)));
        for wrong in ["", "7", "x/restart", "x/profile", "7/replace/", "7/replace/-1", "7/stop"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn pages_of_other_websites_give_no_orders() {
        let of = |origin: Option<&str>, site: Option<&str>| {
            let [host, origin, fetch_site] =
                [Some("127.0.0.1:9394"), origin, site].map(|value| value.map(str::to_owned));
            is_of_this_page(&Request { host, origin, fetch_site, ..Request::default() })
        };
        assert!(of(None, None) && of(Some("http://127.0.0.1:9394"), Some("same-origin")));
        for origin in ["http://evil.example", "http://127.0.0.1:3000", "null", "127.0.0.1:9394"] {
            assert!(!of(Some(origin), None), "{origin}");
        }
        assert!(!of(None, Some("cross-site")) && !of(None, Some("same-site")));
    }
}
