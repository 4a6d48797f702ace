//! What the page shows: HTML that the server writes, for the first paint and for each update after that. Every text is escaped
//! here. First what has failed, then the requests that wait longest, then the applications.
//!
//! A page lists a limited number of applications, requests and workers, and says how many others there are. So it stays small.

use super::super::last_hour::{LastHour, Point};
use super::charts::{sparkline, values, Chart, Series};
use super::profiles::{Profile, Profiles};
use crate::status::overview::rates::History;
use crate::status::overview::report::{
    AppOverview, DiagnosisOverview, Overview, RequestOverview, WorkerOverview,
};
use crate::status::overview::words::{age, at_most, duration, mib, number, or_dash};
use highball_config::AppId;
use highball_front::refusals::page::Escaped;
use highball_link::{CompanionProcess, HubReport, KernelLimitsReport, SlowRequestReport, CPU_MAX};
use highball_text::counted;
use std::fmt::Write;

/// The most failures, requests, rows of applications and rows of workers on a page.
const FAILURES: usize = 10;
const REQUESTS: usize = 25;
const APPS: usize = 200;
const WORKERS: usize = 50;
/// Up to this number, the page of all applications has the charts and workers of each.
const WHOLE_APPS: usize = 3;
/// The age from which a request is listed, and that from which it is stuck.
const LISTED_MS: u64 = 1_000;
const STUCK_MS: u64 = 10_000;

/// The columns of the table of applications. Small screens leave out the class `extra`.
const APP_COLUMNS: [(&str, &str); 11] = [
    ("Application", ""),
    ("State", ""),
    ("Requests/s", ""),
    ("5xx/s", ""),
    ("p50", "extra"),
    ("p95", ""),
    ("Queue", "extra"),
    ("Busy", "extra"),
    ("Workers", "extra"),
    ("Memory", "extra"),
    ("Trend", "extra"),
];

/// What the page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::admin) enum View {
    /// All applications.
    All,
    App(AppId),
}

/// What the page is made of.
pub(super) struct Scene<'a> {
    pub(super) view: View,
    pub(super) now: &'a Overview,
    pub(super) history: &'a History,
    pub(super) last_hour: &'a LastHour,
    pub(super) profiles: &'a Profiles,
    pub(super) takes_orders: bool,
}

/// The page, where the front's event loop does not answer.
pub(super) const NO_ANSWER: &str = "<header><p class=\"app\"><strong>Highball</strong></p>\
<h1 class=\"bad\">The server's event loop does not answer</h1></header>";

/// Escaped text.
fn text(text: &str) -> Escaped<'_> {
    Escaped(text)
}

impl Scene<'_> {
    /// The content of `<main>`.
    pub(super) fn html(&self) -> String {
        let mut html = String::with_capacity(16 * 1024);
        self.header(&mut html);
        let apps = self.apps();
        match self.view {
            View::App(_) if apps.is_empty() => {
                html.push_str("<p class=\"notice\">There is no such application any more. <a href=\"/\">All applications</a></p>");
            }
            view => {
                let failed: Vec<_> = apps.iter().filter(|app| app.has_failed()).collect();
                for app in failed.iter().take(FAILURES) {
                    self.failure(&mut html, app);
                }
                if failed.len() > FAILURES {
                    let _ = write!(
                        html,
                        "<p class=\"notice bad\">and {} more that fail</p>",
                        failed.len() - FAILURES
                    );
                }
                self.requests(&mut html, &apps);
                if view == View::All && apps.len() > 1 {
                    self.table_of_apps(&mut html, &apps);
                }
                if view != View::All || apps.len() <= WHOLE_APPS {
                    apps.iter().for_each(|app| self.app(&mut html, app));
                }
            }
        }
        html
    }

    /// The applications that the page is about, those first that have failed.
    fn apps(&self) -> Vec<&AppOverview> {
        let is_meant = |app: &&AppOverview| match self.view {
            View::All => true,
            View::App(id) => app.id == id.0,
        };
        self.now.failed_first().into_iter().filter(is_meant).collect()
    }

    /// The server, and whether something has failed.
    fn header(&self, html: &mut String) {
        let now = self.now;
        let (state, has_failed) = now.headline();
        let class = match (has_failed, &*now.phase) {
            (true, _) => "bad",
            (false, "serving") => "good",
            (false, _) => "busy",
        };
        let rate = now.apps.iter().filter_map(|app| self.rates(app).requests).reduce(|sum, rate| sum + rate);
        let queue: usize = now.apps.iter().map(|app| app.queue).sum();
        let _ = write!(
            html,
            "<header class=\"{class}\"><p class=\"app\"><strong>Highball</strong> {}, process {}, up {}</p>\
             <h1 class=\"{class}\" aria-live=\"polite\">{}</h1><p class=\"figures\">{} · {} requests a second · \
             {queue} waiting</p>",
            text(&now.version),
            now.pid,
            duration(now.uptime_seconds),
            text(&state),
            counted(now.connections as u64, "connection"),
            number(rate),
        );
        if self.view != View::All {
            html.push_str("<nav aria-label=\"Pages\"><a href=\"/\">All applications</a></nav>");
        }
        html.push_str("</header>");
    }

    /// What failed, and what to do.
    fn failure(&self, html: &mut String, app: &AppOverview) {
        let (id, name, phase) = (app.id, text(&app.name), text(&app.phase));
        let is_whole = self.view != View::All;
        let _ = write!(
            html,
            "<section class=\"failure\" data-key=\"failure-{id}\" aria-labelledby=\"failure-{id}\"><h2 id=\"failure-{id}\">{name} \
             <span class=\"badge bad\">{phase}</span></h2>"
        );
        if let Some(DiagnosisOverview { cause, summary, place, source, remedy, command }) = &app.diagnosis {
            let shown = if is_whole { summary } else { summary.lines().next().unwrap_or_default() };
            let _ = write!(html, "<p class=\"cause\">{}</p>", text(shown));
            if let Some(place) = place {
                let _ = write!(html, "<p>at <code>{}</code></p>", text(place));
            }
            if let Some(source) = source.as_ref().filter(|_| is_whole) {
                let _ = write!(
                    html,
                    "<pre tabindex=\"0\" role=\"region\" aria-label=\"Source\">{}</pre>",
                    text(source)
                );
            }
            if let Some(remedy) = remedy {
                let _ = write!(html, "<p><b>What to do:</b> {}</p>", text(remedy));
            }
            if let Some(command) = command {
                let _ = write!(html, "<pre>{}</pre>", text(command));
            }
            if is_whole {
                let cause = text(cause);
                let _ =
                    write!(html, "<p class=\"soft\">{cause} · more: <code>highball status {name}</code></p>");
            } else {
                let _ = write!(html, "<p><a href=\"/apps/{id}\">Diagnosis of {name}</a></p>");
            }
        } else if app.phase == "stuck" {
            html.push_str(
                "<p class=\"cause\">Its workers take no more requests: the requests below occupy all threads.</p>",
            );
        }
        html.push_str("</section>");
    }

    /// The requests that wait longest, oldest first.
    fn requests(&self, html: &mut String, apps: &[&AppOverview]) {
        let mut all: Vec<(&AppOverview, &RequestOverview)> =
            apps.iter().flat_map(|app| app.requests.iter().map(|request| (*app, request))).collect();
        all.sort_by_key(|(_, request)| std::cmp::Reverse(request.age_ms));
        let running = all.len() + apps.iter().map(|app| app.more_requests).sum::<usize>();
        let old = all.iter().take_while(|(_, request)| request.age_ms >= LISTED_MS).count();
        let listed = old.min(REQUESTS);
        let others = running - listed;
        html.push_str("<section id=\"requests\" aria-labelledby=\"requests-title\"><h2 id=\"requests-title\">Slow requests");
        if listed == 0 {
            let _ = write!(
                html,
                "</h2><p class=\"none\">None. {others} unanswered, all younger than a second.</p></section>"
            );
            return;
        }
        let _ = write!(
            html,
            " <small>{old} for more than a second, oldest first; {others} {}</small></h2><div class=\"table\" role=\"region\" \
             aria-label=\"Table of requests\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Age</th><th scope=\"col\">Request</th>\
             <th scope=\"col\">Worker</th></tr></thead><tbody>",
            if others == 1 { "other" } else { "others" }
        );
        all.iter().take(listed).for_each(|(app, request)| self.request(html, app, request));
        html.push_str("</tbody></table></div></section>");
    }

    fn request(&self, html: &mut String, app: &AppOverview, request: &RequestOverview) {
        let RequestOverview { worker, ticket, stage, method, path, age_ms, doing, .. } = request;
        let key = format!("{}/{}/{}", app.id, or_dash(*worker), ticket.as_deref().unwrap_or("-"));
        let class = if *age_ms >= STUCK_MS { " class=\"stuck\"" } else { "" };
        let doing = doing.as_deref().unwrap_or_default();
        let doing = match (&**stage, doing) {
            ("running", doing) => doing.to_owned(),
            (stage, "") => stage.to_owned(),
            (stage, doing) => format!("{stage}: {doing}"),
        };
        let _ = write!(
            html,
            "<tr data-key=\"{key}\"{class}><td class=\"age\">{}</td><td><code><b>{}</b> {}</code> <span class=\"doing\">{}</span>",
            age(*age_ms),
            text(method),
            text(path),
            text(&doing)
        );
        if let Some(worker) = worker.filter(|_| stage != "placed") {
            let _ = write!(
                html,
                "<span class=\"buttons\"><button type=\"button\" data-backtrace=\"{key}\" aria-expanded=\"false\">Backtrace</button>"
            );
            if self.takes_orders {
                let question = format!("Replace worker {worker}?");
                order(html, app.id, &format!("replace/{worker}"), "Replace worker", &question);
            }
            let _ = write!(html, "</span><pre data-keep data-of=\"{key}\" hidden></pre>");
        }
        let at = match (worker, self.now.apps.len()) {
            (Some(worker), 1) => worker.to_string(),
            (Some(worker), _) => format!("{} {worker}", app.name),
            (None, 1) => "none yet".into(),
            (None, _) => app.name.clone(),
        };
        let _ = write!(html, "</td><td>{}</td></tr>", text(&at));
    }

    /// One row for each application.
    fn table_of_apps(&self, html: &mut String, apps: &[&AppOverview]) {
        html.push_str(
            "<section aria-labelledby=\"apps-title\"><h2 id=\"apps-title\">Applications</h2><div class=\"table\" role=\"region\" \
             aria-label=\"Table of applications\" tabindex=\"0\"><table class=\"figures-table\"><thead><tr>",
        );
        for (title, class) in APP_COLUMNS {
            let _ = write!(html, "<th scope=\"col\" class=\"{class}\">{title}</th>");
        }
        html.push_str("</tr></thead><tbody>");
        for app in apps.iter().take(APPS) {
            let (rates, load) = (self.rates(app), Load::of(app));
            let id = app.id;
            let [requests, errors, p50, p95] = [rates.requests(), rates.errors(), rates.p50(), rates.p95()];
            let queue = app.queue.to_string();
            let cells = [requests, errors, p50, p95, queue, load.busy(), load.workers(app), load.memory()];
            let _ = write!(
                html,
                "<tr data-key=\"row-{id}\"><th scope=\"row\"><a href=\"/apps/{id}\">{}</a></th><td><span class=\"badge {}\">{}</span></td>",
                text(&app.name),
                class_of(app),
                text(&app.phase)
            );
            for (cell, (_, class)) in cells.iter().zip(&APP_COLUMNS[2..]) {
                let _ = write!(html, "<td class=\"{class}\">{}</td>", text(cell));
            }
            html.push_str("<td class=\"extra\">");
            let requests = self.points(app, |point| point.requests);
            sparkline(
                html,
                &format!("Requests a second of {} so far, at most of the last hour", app.name),
                &requests,
            );
            html.push_str("</td></tr>");
        }
        html.push_str("</tbody></table></div>");
        if apps.len() > APPS {
            let _ = write!(html, "<p class=\"none\">and {} more</p>", apps.len() - APPS);
        }
        html.push_str("</section>");
    }

    /// The charts and workers of an application.
    fn app(&self, html: &mut String, app: &AppOverview) {
        let (id, name, generation) = (app.id, text(&app.name), app.generation);
        let under_way = app.under_way.as_ref().map(|what| format!(", {what}")).unwrap_or_default();
        let _ = write!(
            html,
            "<section data-key=\"app-{id}\" aria-labelledby=\"app-{id}\"><div class=\"head\"><h2 id=\"app-{id}\">{name} \
             <span class=\"badge {}\">{}</span> <small>version {generation}{}</small></h2>",
            class_of(app),
            text(&app.phase),
            text(&under_way)
        );
        if self.takes_orders {
            html.push_str("<span class=\"buttons orders\">");
            order(html, id, "restart", "Restart", &format!("Restart {}?", app.name));
            order(html, id, "refork", "Refork", &format!("Refork {}?", app.name));
            order(html, id, "more-workers", "+ worker", "Add a worker?");
            order(html, id, "fewer-workers", "− worker", "Remove a worker?");
            order(html, id, "profile", "Profile", "Sample its workers now?");
            html.push_str("</span>");
        }
        html.push_str("</div>");
        if let Some(profile) = self.profiles.of(AppId(id)) {
            show_profile(html, id, &profile);
        }
        let has_points =
            self.last_hour.with(AppId(app.id), |points, last| !points.is_empty() || last.is_some());
        if has_points || !app.workers.is_empty() {
            self.charts(html, app);
        }
        self.facts(html, app);
        if let Some(KernelLimitsReport { not_kept, problem: Some(problem), .. }) = &app.kernel_limits {
            let what = format!("The kernel does not enforce {}: {problem}", not_kept.join(" and "));
            let _ = write!(html, "<p class=\"notice\">{}</p>", text(&what));
        }
        slow_requests(html, app);
        self.workers(html, app);
        companions(html, app);
        html.push_str("</section>");
    }

    fn charts(&self, html: &mut String, app: &AppOverview) {
        let (rates, load) = (self.rates(app), Load::of(app));
        let of = |figure| self.points(app, figure);
        let (requests, errors) = (of(|point| point.requests), of(|point| point.errors));
        let (p50, p95) = (of(|point| point.p50_ms), of(|point| point.p95_ms));
        let (queue, memory) = (of(|point| point.queue as f32), of(|point| point.memory_mib as f32));
        let rate = |value: f32| number(Some(value.into()));
        let mut chart = |title: &str, now: &[String], unit: fn(f32) -> String, series: &[Series<'_>]| {
            Chart { title, now, unit, series }.write(html);
        };
        let first = |values| [Series { class: "first", values }];
        chart("Requests a second", &[rates.requests()], rate, &first(&requests));
        chart("Status 5xx a second", &[rates.errors()], rate, &[Series { class: "bad", values: &errors }]);
        let times = [Series { class: "first", values: &p50 }, Series { class: "second", values: &p95 }];
        let now = [format!("p50 {}", rates.p50()), format!("p95 {}", rates.p95())];
        chart("Time to the first byte", &now, |ms| at_most(ms.into()), &times);
        chart("Queue", &[app.queue.to_string()], |value| format!("{value:.0}"), &first(&queue));
        chart("Memory", &[load.memory()], |mib| format!("{mib:.0} MiB"), &first(&memory));
    }

    /// What the charts do not show.
    fn facts(&self, html: &mut String, app: &AppOverview) {
        let load = Load::of(app);
        let mut facts = vec![("Threads busy", load.busy()), ("Workers", load.workers(app))];
        if let Some(limits) = &app.kernel_limits {
            if let Some(most) = limits.memory_max_bytes {
                let used = or_dash(limits.memory_bytes.map(|bytes| bytes >> 20));
                let killed = if limits.oom_kills > 0 {
                    format!(", {} killed", counted(limits.oom_kills, "process"))
                } else {
                    String::new()
                };
                facts.push((
                    "Memory with files (memory_max)",
                    format!("{used} of {} MiB{killed}", most >> 20),
                ));
            }
            if let Some(cpus) = limits.cpu_max {
                let share = self.history.throttled_percent(app).filter(|_| limits.keeps(CPU_MAX));
                let throttled =
                    share.map(|share| format!(", throttled {share:.0}% of the time")).unwrap_or_default();
                facts.push(("CPU (cpu_max)", format!("{cpus} cores{throttled}")));
            }
        }
        list(html, &facts);
        if let Some(HubReport { held, cable_clients, streams, slow_closed, .. }) = app.hub_in_use() {
            let facts = [
                ("WebSockets held", cable_clients.to_string()),
                ("Responses held", held.to_string()),
                ("Streams", streams.to_string()),
                ("Messages a second", number(self.history.rate(app, AppOverview::published))),
                ("Slow clients closed", slow_closed.to_string()),
            ];
            list(html, &facts);
        }
    }

    fn workers(&self, html: &mut String, app: &AppOverview) {
        if app.workers.is_empty() {
            html.push_str("<p class=\"none\">No workers.</p>");
            return;
        }
        let name = text(&app.name);
        let _ = write!(
            html,
            "<div class=\"table\" role=\"region\" aria-label=\"Workers of {name}\" tabindex=\"0\"><table class=\"figures-table\"><thead><tr>"
        );
        let columns = ["Worker", "State", "Requests", "Memory", "CPU", "Served", "Up", "Process"];
        for (place, title) in columns.iter().enumerate() {
            let _ = write!(
                html,
                "<th scope=\"col\"{}>{title}</th>",
                if place > 4 { " class=\"extra\"" } else { "" }
            );
        }
        html.push_str("</tr></thead><tbody>");
        for worker in app.workers.iter().take(WORKERS) {
            let WorkerOverview {
                worker: number, pid, state, replaced_for, threads, in_flight, served, ..
            } = worker;
            let replaced =
                replaced_for.as_ref().map(|why| format!(", is replaced ({why})")).unwrap_or_default();
            let cpu = self.history.cpu_percent(app, worker).map(|share| format!("{share:.0}%"));
            let _ = write!(
                html,
                "<tr data-key=\"{}-{number}\"><th scope=\"row\">{number}</th><td>{}{}</td><td>{in_flight} of {threads}</td><td>{}</td>\
                 <td>{}</td><td class=\"extra\">{served}</td><td class=\"extra\">{}</td><td class=\"extra\">{}</td></tr>",
                app.id,
                text(state),
                text(&replaced),
                mib(worker.memory_bytes),
                or_dash(cpu),
                duration(worker.uptime_seconds),
                or_dash(*pid)
            );
        }
        html.push_str("</tbody></table></div>");
        if app.workers.len() > WORKERS {
            let _ = write!(html, "<p class=\"none\">and {} more</p>", app.workers.len() - WORKERS);
        }
    }

    fn points(&self, app: &AppOverview, figure: fn(&Point) -> f32) -> Vec<f32> {
        self.last_hour.with(AppId(app.id), |points, last| values(points.iter().copied().chain(last), figure))
    }

    /// The rates of the last seconds: while somebody follows, those of what was sent; else those of the last hour's newest point.
    fn rates(&self, app: &AppOverview) -> Rates {
        if let Some(requests) = self.history.rate(app, |app| app.answered) {
            let [p50, p95] = [0.5, 0.95].map(|share| self.history.quantile_ms(app, share));
            return Rates {
                requests: Some(requests),
                errors: self.history.rate(app, |app| app.errors),
                p50,
                p95,
            };
        }
        self.last_hour.with(AppId(app.id), |_, last| {
            let of = |value: f32| Some(f64::from(value)).filter(|value| !value.is_nan());
            last.map_or_else(Rates::default, |Point { requests, errors, p50_ms, p95_ms, .. }| Rates {
                requests: of(requests),
                errors: of(errors),
                p50: of(p50_ms),
                p95: of(p95_ms),
            })
        })
    }
}

/// Facts in a row.
fn list(html: &mut String, facts: &[(&str, String)]) {
    html.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", text(value));
    }
    html.push_str("</dl>");
}

/// The last profile that was taken here.
fn show_profile(html: &mut String, app: u32, profile: &Profile) {
    let _ = match profile {
        Profile::UnderWay => write!(html, "<p class=\"notice\">Its workers are being sampled…</p>"),
        Profile::Failed { why, .. } => write!(html, "<p class=\"notice\">No profile: {}</p>", text(why)),
        Profile::Taken { at, .. } => write!(
            html,
            "<p class=\"notice\"><a href=\"/profiles/{app}\">Flame graph</a> of {} ago</p>",
            duration(at.elapsed().as_secs())
        ),
    };
}

/// The newest slow requests, and where their time went.
fn slow_requests(html: &mut String, app: &AppOverview) {
    if app.slow_requests.is_empty() {
        return;
    }
    let _ = write!(
        html,
        "<div class=\"table\" role=\"region\" aria-label=\"Slow requests of {}\" tabindex=\"0\"><table><thead><tr>\
         <th scope=\"col\">Took</th><th scope=\"col\">Slow request</th><th scope=\"col\">Worker</th></tr></thead><tbody>",
        text(&app.name)
    );
    for (number, request) in app.slow_requests.iter().rev().enumerate() {
        let SlowRequestReport { worker, request: of, seconds, seconds_ago, .. } = request;
        let _ = write!(
            html,
            "<tr data-key=\"slow-{}-{number}\"><td class=\"age\">{seconds:.1} s</td><td><code>{}</code> \
             <span class=\"doing\">{} ago{}</span>",
            app.id,
            text(of),
            duration(*seconds_ago),
            request.ending()
        );
        for line in request.lines() {
            let _ = write!(html, "<br><span class=\"doing\">{}</span>", text(&line));
        }
        let _ = write!(html, "</td><td>{worker}</td></tr>");
    }
    html.push_str("</tbody></table></div>");
}

/// The processes beside an application's workers, if it has some.
fn companions(html: &mut String, app: &AppOverview) {
    if app.companions.is_empty() {
        return;
    }
    let name = text(&app.name);
    let _ = write!(
        html,
        "<div class=\"table\" role=\"region\" aria-label=\"Processes of {name}\" tabindex=\"0\"><table class=\"figures-table\">\
         <thead><tr><th scope=\"col\">Process</th><th scope=\"col\">State</th><th scope=\"col\">Restarts</th>\
         <th scope=\"col\">Memory</th><th scope=\"col\" class=\"extra\">Up</th><th scope=\"col\" class=\"extra\">PID</th></tr></thead><tbody>"
    );
    for companion in &app.companions {
        let CompanionProcess { name, state, restarts, memory_bytes, uptime_seconds, pid, .. } = companion;
        let ends = companion.crash_loop.map(|ends| format!(", ended {ends} times")).unwrap_or_default();
        let _ = write!(
            html,
            "<tr data-key=\"{}-{name}\"><th scope=\"row\">{name}</th><td>{}{ends}</td><td>{restarts}</td><td>{}</td>\
             <td class=\"extra\">{}</td><td class=\"extra\">{}</td></tr>",
            app.id,
            text(state),
            mib(*memory_bytes),
            or_dash(uptime_seconds.map(duration)),
            or_dash(*pid),
            name = text(name),
        );
    }
    html.push_str("</tbody></table></div>");
}

/// The class of an application's state.
fn class_of(app: &AppOverview) -> &'static str {
    match &*app.phase {
        _ if app.has_failed() => "bad",
        "serving" => "good",
        _ => "busy",
    }
}

/// A button. It acts at the second click.
fn order(html: &mut String, app: u32, action: &str, label: &str, question: &str) {
    let _ = write!(
        html,
        "<button type=\"button\" class=\"order\" data-order=\"/actions/{app}/{action}\" data-sure=\"{}\">{label}</button>",
        text(question)
    );
}

/// Figures of the last seconds.
#[derive(Default)]
struct Rates {
    requests: Option<f64>,
    errors: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
}

impl Rates {
    fn requests(&self) -> String {
        number(self.requests)
    }

    fn errors(&self) -> String {
        number(self.errors)
    }

    fn p50(&self) -> String {
        or_dash(self.p50.map(at_most))
    }

    fn p95(&self) -> String {
        or_dash(self.p95.map(at_most))
    }
}

/// What the workers of an application have to do.
struct Load {
    serving: usize,
    threads: usize,
    busy: usize,
    memory: u64,
}

impl Load {
    fn of(app: &AppOverview) -> Load {
        let serving = app.workers.iter().filter(|worker| worker.state == "serving");
        Load {
            serving: serving.clone().count(),
            threads: serving.map(|worker| usize::from(worker.threads)).sum(),
            busy: app.workers.iter().map(|worker| worker.in_flight).sum(),
            memory: app.workers.iter().filter_map(|worker| worker.memory_bytes).sum(),
        }
    }

    fn busy(&self) -> String {
        format!("{} of {}", self.busy, self.threads)
    }

    fn workers(&self, app: &AppOverview) -> String {
        format!("{} of {}", self.serving, app.workers_wanted)
    }

    fn memory(&self) -> String {
        mib((self.memory > 0).then_some(self.memory))
    }
}
