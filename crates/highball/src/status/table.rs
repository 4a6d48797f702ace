//! What `highball status` shows people: which facts and tables of the reports, in which order.

use super::page::{Page, View};
use highball_link::{
    AppProcesses, AppReport, CompanionProcess, CrashLoopReport, KernelLimitsReport, ServerReport,
    SlowRequestReport, TlsReport, TracesReport, UpgradeReport, WorkerReport,
};
use highball_text::{duration, mib};

/// Before what went wrong in an application, below its row.
const INDENT: &str = "    ";

/// One instance, for people, and those of its applications that are meant: one with all its facts, several as a table, unless
/// details are wanted.
pub(crate) fn table(
    status: &ServerReport,
    user: &str,
    view: View,
    is_meant: impl Fn(&AppReport) -> bool,
) -> String {
    let mut page = Page::new(view);
    server_facts(&mut page, status, user);
    let meant: Vec<&AppReport> = status.apps.iter().filter(|app| is_meant(app)).collect();
    match &meant[..] {
        [_, _, ..] if !view.has_details => list(&mut page, &meant),
        _ => {
            for app in meant {
                if status.apps.len() > 1 {
                    page.line("");
                    page.fact(&app.name, &format!("{} at {}", app.processes.phase, app.url));
                }
                app_facts(&mut page, app);
            }
        }
    }
    page.into_text()
}

fn server_facts(page: &mut Page, status: &ServerReport, user: &str) {
    let (version, pid, up) = (&status.version, status.pid, duration(status.uptime_seconds));
    page.fact("highball", &format!("{version} (pid {pid}{user}), {}, up {up}", status.processes.phase));
    page.fact("listens on", &status.binds.join(" "));
    page.facts(status.requests.facts());
    page.facts(status.processes.facts());
    page.facts(status.requests.log_problem.clone().map(|problem| ("access log", problem)));
    page.facts(status.tls.iter().flat_map(TlsReport::facts));
    page.facts(status.traces.iter().flat_map(TracesReport::facts));
    if let Some(upgrade) = &status.processes.upgrade {
        upgrade_facts(page, upgrade, &status.apps);
    }
    if let Some(successor) = status.processes.successor {
        page.fact("succeeded", &format!("pid {successor} serves; this process finishes what it has"));
    }
}

/// The last hot restart. Once an application was restarted after it, a failure is history.
fn upgrade_facts(page: &mut Page, upgrade: &UpgradeReport, apps: &[AppReport]) {
    let is_history = apps.iter().any(|app| is_history(app, upgrade.ended_seconds_ago));
    let Some(failure) = upgrade.failure.as_deref() else {
        return page.fact("hot restart", &upgrade.words());
    };
    if !is_history {
        page.fact("hot restart", &upgrade.words());
        page.failure("", None, failure);
    } else if page.view.has_details {
        page.failure("hot restart", None, &format!("{}\n{failure}", upgrade.words()));
    }
}

/// Whether the application was restarted successfully after that.
fn is_history(app: &AppReport, seconds_ago: Option<u64>) -> bool {
    let done = app.processes.restarts.iter().rev().find(|restart| restart.state == "done");
    let done = done.and_then(|restart| restart.ended_seconds_ago);
    done.is_some_and(|done| seconds_ago.is_some_and(|failed| done < failed))
}

/// A line for each application, and one below it where something is wrong.
fn list(page: &mut Page, apps: &[&AppReport]) {
    let longest = apps.iter().map(|app| app.name.chars().count()).max().unwrap_or_default().clamp(3, 20);
    let row = |cells: [&str; 7]| {
        let [name, state, workers, busy, queue, memory, place] = cells;
        let name: String = name.chars().take(20).collect();
        format!("  {name:<longest$}  {state:<8}  {workers:>7}  {busy:>4}  {queue:>5}  {memory:>10}  {place}")
    };
    page.line("");
    page.line(&row(["app", "state", "workers", "busy", "queue", "memory", "at"]));
    for app in apps {
        let busy: usize = app.workers.iter().map(|worker| worker.requests.in_flight).sum();
        let place = app.url.split_once("://").map_or(&*app.url, |(_, place)| place);
        let (workers, busy) = (app.workers.len().to_string(), busy.to_string());
        let (queue, memory) = (app.requests.queue.to_string(), mib(app.processes.memory.bytes));
        page.line(&row([&app.name, &app.processes.phase, &workers, &busy, &queue, &memory, place]));
        let columns = page.view.columns.map(|columns| columns.saturating_sub(INDENT.len()));
        let mut failures = Page::new(View { columns, ..page.view });
        failure_facts(&mut failures, app);
        failures.into_text().lines().for_each(|line| page.line(&format!("{INDENT}{line}")));
    }
    page.line("");
    page.line("highball status NAME shows one application, --details everything.");
}

/// One application.
fn app_facts(page: &mut Page, app: &AppReport) {
    let AppReport { requests, processes, workers, .. } = app;
    let user = if app.user.is_empty() { String::new() } else { format!(", as {}", app.user) };
    page.fact("app", &format!("{} ({}{user})", processes.folder.display(), app.environment));
    failure_facts(page, app);
    page.facts(requests.maintenance.iter().map(|maintenance| ("maintenance", maintenance.words())));
    page.facts(app.browser_link.clone().map(|link| ("browser", link)));
    ruby_facts(page, app);
    page.facts(processes.facts());
    let streams = workers.iter().map(|worker| worker.requests.streams).sum();
    page.fact("requests", &requests.load(streams));
    page.facts(processes.memory.facts());
    page.facts(app.kernel_limits.iter().flat_map(KernelLimitsReport::facts));
    page.facts(requests.facts());
    page.facts(requests.rollout.iter().flat_map(|rollout| rollout.facts(processes.generation)));
    page.facts(processes.changes());
    if processes.phase != "asleep" {
        page.table(&WorkerReport::COLUMNS, workers);
        if !processes.companions.is_empty() {
            page.table(&CompanionProcess::COLUMNS, &processes.companions);
        }
    }
}

/// Processes beside the workers that end soon after they were started, again and again.
fn companion_failures(page: &mut Page, companions: &[CompanionProcess]) {
    for one in companions {
        let Some(what) = one.failure() else { continue };
        let text = format!("{what}\n{}", CompanionProcess::REMEDY);
        page.failure("crash loop", one.last_end_seconds_ago, &text);
    }
}

/// What the application runs on; with details, how Highball has Ruby work.
fn ruby_facts(page: &mut Page, app: &AppReport) {
    let framework = app.processes.framework.as_deref().unwrap_or("not booted yet");
    let ruby = app.processes.runtime.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
    let jit =
        app.processes.runtime.jit.as_ref().map(|jit| format!(", {}", jit.of_compiler())).unwrap_or_default();
    page.fact("runs on", &format!("{framework}{ruby}{jit}"));
    if page.view.has_details {
        page.facts(app.processes.runtime.facts());
    }
}

/// What is wrong with the application. What was wrong before its last restart is history, for which details are needed.
fn failure_facts(page: &mut Page, app: &AppReport) {
    if let Some(problem) = &app.requests.log_problem {
        page.failure("access log", None, problem);
    }
    if let Some(CrashLoopReport { what, remedy, .. }) = &app.processes.crash_loop {
        page.fact("crash loop", &format!("{what}\n{remedy}"));
    }
    companion_failures(page, &app.processes.companions);
    let is_shown = |page: &Page, age| page.view.has_details || !is_history(app, age);
    let overruns = &app.processes.overruns;
    if let Some(last) = overruns.last().filter(|last| is_shown(page, Some(last.seconds_ago))) {
        if page.view.has_details {
            for overrun in overruns {
                page.failure("timed out", Some(overrun.seconds_ago), &overrun.lines());
            }
        } else {
            let more = if overruns.len() > 1 { ", and others before" } else { "" };
            page.failure("timed out", Some(last.seconds_ago), &(last.words() + more));
        }
    }
    if let Some(last) = app.processes.slow_requests.last().filter(|_| page.view.has_details) {
        let SlowRequestReport { worker, request, seconds, .. } = last;
        let what = format!("{request} {seconds:.1} s, worker {worker}{}", last.ending());
        let lines: String = last.lines().iter().map(|line| format!("\n  {line}")).collect();
        page.failure("slow", Some(last.seconds_ago), &(what + &lines));
    }
    boot_facts(page, app);
}

/// The boot that failed, or what failed last.
fn boot_facts(page: &mut Page, app: &AppReport) {
    let AppProcesses { last_failure, last_failure_seconds_ago: age, diagnosis, phase, .. } = &app.processes;
    if let Some(diagnosis) = diagnosis.as_ref().filter(|_| phase != "serving") {
        page.failure("failed", *age, &diagnosis.summary());
        if page.view.has_details {
            page.line(&format!("\n{diagnosis}"));
        } else if let Some(remedy) = &diagnosis.remedy {
            page.fact("", remedy);
        }
        return;
    }
    let Some(failure) = last_failure else { return };
    let was_boot = diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.summary() == *failure);
    if page.view.has_details || !(was_boot || is_history(app, *age)) {
        page.failure("last failure", *age, failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status::{a_status, an_app};
    use highball_link::ServerProcesses;

    fn shown(status: &ServerReport, view: View) -> String {
        table(status, ", user deploy", view, |_| true)
    }

    const DETAILS: View = View { columns: None, has_details: true };

    #[test]
    fn the_table_says_what_matters() {
        let text = shown(&a_status(), DETAILS);
        for part in [
            "(pid 42, user deploy)",
            "up 1h 1m",
            "/srv/blog (production, as deploy)",
            "Rails 6.1.7, Ruby 3.1.2",
            "5s ago: GET /report, worker 3: it sleeps",
            "app.rb:7:in `sleep'",
            "http://127.0.0.1:3000",
            "http://127.0.0.1:3000/?highball=4711",
            "given as an object",
            "to generation 2 by USR1: done, 3.2 s, 1m 5s ago",
            "promoted from worker 7",
            "access log   /srv/blog/log/access.log cannot be opened: it is a pipe",
            "number 4, by 100 requests: done, 0.5 s",
            "5 in the queue, 3.0 MiB in spool files",
            "200.0 MiB of 870.0 MiB that applications may have",
            "150.0 MiB; each worker at most 256.0 MiB; 3 workers replaced for their memory",
            "70.0 MiB",
            "30 hits, 4 misses; 3 responses stored, 1.0 MiB of 64.0 MiB",
            "1000",
            "59s",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn each_line_has_room_in_80_columns() {
        let text = shown(&a_status(), View { columns: Some(80), has_details: false });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains("app.rb:7"), "no backtrace, unless it is wanted:\n{text}");
    }

    #[test]
    fn failures_before_the_last_successful_restart_are_history() {
        let failure = |app: &mut AppReport, seconds_ago| {
            app.processes.last_failure = Some("worker 3 died: killed by SIGKILL".into());
            app.processes.last_failure_seconds_ago = Some(seconds_ago);
        };
        let upgrade = |ended| {
            let failure = Some("the new process died\nbacktrace: a.rb:1".into());
            let processes = ServerProcesses {
                upgrade: Some(UpgradeReport {
                    number: 1,
                    asked_by: "USR2".into(),
                    state: "failed".into(),
                    seconds: 1.0,
                    pid: None,
                    version: None,
                    failure,
                    ended_seconds_ago: Some(ended),
                }),
                ..ServerProcesses::default()
            };
            ServerReport { processes, ..a_status() }
        };
        let (mut late, mut early) = (upgrade(10), upgrade(3000)); // the restart ended 65 s ago
        failure(&mut late.apps[0], 10);
        failure(&mut early.apps[0], 3000);
        let late = shown(&late, View::default());
        assert!(
            late.contains(
                "hot restart  by USR2: failed, 1.0 s, 10s ago\n             the new process died\n"
            ),
            "{late}"
        );
        assert!(
            late.contains("last failure 10s ago: worker 3 died") && !late.contains("backtrace"),
            "{late}"
        );
        let history = shown(&early, View::default());
        assert!(!history.contains("hot restart") && !history.contains("last failure"), "{history}");
        let details = shown(&early, DETAILS);
        assert!(
            details.contains("backtrace: a.rb:1") && details.contains("50m 0s ago: worker 3"),
            "{details}"
        );
    }

    #[test]
    fn several_applications_are_a_table_and_one_of_them_has_its_facts() {
        let mut shop = AppReport { name: "shop".into(), ..an_app() };
        shop.processes.phase = "asleep".into();
        let status = ServerReport { apps: vec![an_app(), shop], ..a_status() };
        let text = shown(&status, View { columns: Some(80), has_details: false });
        let columns = "  app   state     workers  busy  queue      memory  at\n";
        let row = "  blog  serving         1     2      5   150.0 MiB  127.0.0.1:3000/\n";
        assert!(text.contains(&format!("{columns}{row}")) && text.contains("\n  shop  asleep  "), "{text}");
        let only = table(&status, "", View::default(), |app| app.name == "shop");
        assert!(only.contains("shop         asleep at ") && !only.contains("\n  blog "), "{only}");
        let all = shown(&status, DETAILS);
        assert!(all.contains("blog         serving at http://127.0.0.1:3000/\n"), "{all}");
    }
}
