//! `/`: a page that shows what the server does, and by which operators act on it. The page is one answer without anything
//! from elsewhere; what it shows comes from [`super::streams`]. Its script writes everything as text, never as HTML.
//!
//! Who reaches the address sees the page. Orders are taken where the option `admin_actions` is on, and from those who send
//! the token in a header field: a browser sends that of no other website's accord.

use super::request::{Request, Response};
use super::token::random_digits;
use super::Sources;
use crate::control::actions::AppAction;
use crate::status::overview::report::{Overview, RequestOverview};
use crate::status::overview::{Detail, Key};
use highball_config::AppId;
use highball_front::refusals::page;
use highball_text::json;
use serde::Serialize;
use std::time::Duration;
use tokio::time::sleep;
use tracing::info;

const JSON: &str = "application/json";
/// What a wrong token costs.
const WRONG_TOKEN_TIME: Duration = Duration::from_millis(300);

/// What the page is sent.
#[derive(Serialize)]
struct DashboardReport {
    /// Whether there are buttons for those who have the token.
    takes_orders: bool,
    /// `None`: the front's event loop does not answer.
    overview: Option<Overview>,
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

/// The answer to a `GET`, if it is for the dashboard.
pub(super) async fn respond(sources: &Sources, path: &str) -> Option<Response> {
    match path {
        "/" => Some(page()),
        "/overview" => Some(Response::new(200, JSON, report(sources).await)),
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

/// The report, as JSON in one line.
pub(super) async fn report(sources: &Sources) -> String {
    let takes_orders = sources.configuration.now().admin.takes_orders;
    let detail = Detail { states: true, backtraces: false, clients: false };
    let overview = sources.observer.overview(detail).await;
    json::compact(&DashboardReport { takes_orders, overview })
}

fn as_json(status: u16, content: &impl Serialize) -> Response {
    Response::new(status, JSON, json::compact(content))
}

fn page() -> Response {
    let Ok(nonce) = random_digits() else { return Response::text(503, "the system has no random bytes\n") };
    let page = include_str!("dashboard.html")
        .replace("NONCE", &nonce)
        .replace("/* STYLE */", &[page::STYLE, include_str!("dashboard.css")].concat())
        .replace("/* SCRIPT */", include_str!("dashboard.js"));
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Response::new(200, "text/html; charset=utf-8", page).with("content-security-policy", policy)
}

/// The answer to a `POST`: an order.
pub(super) async fn obey(sources: &Sources, request: &Request) -> Response {
    let Some(order) = request.path.strip_prefix("/actions/") else {
        return Response::text(405, "only GET and HEAD\n").with("allow", "GET, HEAD");
    };
    if !sources.configuration.now().admin.takes_orders {
        return Response::text(404, "this server takes no orders here; the option admin_actions is off\n");
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
    let outcome = action.perform(app, &supervisor).await;
    info!(app = app.0, order, "the dashboard sent an order");
    match outcome {
        None => Response::text(503, "the server is about to end\n"),
        Some(Ok(done)) => as_json(200, &Outcome { done: Some(done), why_not: None }),
        Some(Err(why_not)) => as_json(409, &Outcome { done: None, why_not: Some(why_not) }),
    }
}

/// `APP/restart`, `APP/replace/WORKER`.
fn parse(order: &str) -> Option<(AppId, AppAction)> {
    let (app, action) = order.split_once('/')?;
    let action = match action {
        "restart" => AppAction::Restart,
        "refork" => AppAction::Refork,
        "more-workers" => AppAction::MoreWorkers,
        "fewer-workers" => AppAction::FewerWorkers,
        _ => AppAction::ReplaceWorker { worker: action.strip_prefix("replace/")?.parse().ok()? },
    };
    Some((AppId(app.parse().ok()?), action))
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
        let page = page().body;
        for outside in ["http://", "https://", "@import", "url(", "src=", "innerHTML", "NONCE", "onclick="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn orders_are_read() {
        assert_eq!(parse("7/restart"), Some((AppId(7), AppAction::Restart)));
        assert_eq!(parse("7/replace/3"), Some((AppId(7), AppAction::ReplaceWorker { worker: 3 })));
        for wrong in ["", "7", "x/restart", "7/replace/", "7/replace/-1", "7/stop"] {
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
