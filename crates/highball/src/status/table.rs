//! The tables of `highball status`, for people.

use super::page::{duration, Page, View};
use highball_link::{
    AppProcesses, AppReport, CacheReport, CompanionProcess, CrashLoopReport, DomainReport, HubReport,
    KernelLimitsReport, MaintenanceReport, MemoryReport, MoldReport, OverrunReport, ReforkReport,
    RestartReport, RolloutReport, ServerReport, ServerRequests, SessionsReport, SizingReport,
    SlowRequestReport, TlsReport, TracesReport, UpgradeReport, VersionReport, WorkerReport, WorkerRequests,
};
use highball_text::counted;
use std::fmt::Write as _;
use std::time::SystemTime;

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
    let ServerRequests { connections, hijacked, .. } = status.requests;
    page.fact("connections", &format!("{connections}, {hijacked} of them hijacked"));
    if status.requests.spool_bytes > 0 {
        let (used, most) = (mib(status.requests.spool_bytes), mib(status.requests.max_spool_bytes));
        page.fact("spool files", &format!("{used} of at most {most}"));
    }
    if let Some(problem) = &status.requests.spool_problem {
        page.fact("spool folder", problem);
    }
    if status.requests.buffer_bytes > 1 << 20 {
        let (used, most) = (mib(status.requests.buffer_bytes), mib(status.requests.max_buffer_bytes));
        page.fact("buffers", &format!("{used} of at most {most}"));
    }
    if let Some(memory) = &status.processes.memory {
        let (used, usable) = (mib(memory.used_bytes), mib(memory.usable_bytes));
        page.fact("memory", &format!("{used} of {usable} that applications may have"));
    }
    if let Some(problem) = &status.requests.log_problem {
        page.fact("access log", problem);
    }
    if let Some(tls) = &status.tls {
        tls_facts(page, tls);
    }
    if let Some(traces) = &status.traces {
        trace_facts(page, traces);
    }
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
        return page.fact("hot restart", &upgrade_line(upgrade));
    };
    if !is_history {
        page.fact("hot restart", &upgrade_line(upgrade));
        page.failure("", None, failure);
    } else if page.view.has_details {
        page.failure("hot restart", None, &format!("{}\n{failure}", upgrade_line(upgrade)));
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

fn tls_facts(page: &mut Page, tls: &TlsReport) {
    let TlsReport { handshakes, failed_handshakes, slow_handshakes, refused_handshakes, .. } = tls;
    let figures = format!(
        "{handshakes} handshakes; {failed_handshakes} failed, {slow_handshakes} timed out, {refused_handshakes} turned away"
    );
    page.fact("TLS", &figures);
    for certificate in &tls.certificates {
        let hosts = if certificate.hosts.is_empty() { "no host".into() } else { certificate.hosts.join(" ") };
        let expiry = expiry(certificate.expires_at, SystemTime::now());
        page.fact("certificate", &format!("{}, for {hosts}, {expiry}", certificate.file));
    }
    if let Some(problem) = &tls.problem {
        page.fact("", &format!("newer files are not used: {problem}"));
    }
    for domain in &tls.domains {
        domain_facts(page, domain);
    }
}

fn trace_facts(page: &mut Page, traces: &TracesReport) {
    let TracesReport { exported, dropped, waiting, problem } = traces;
    page.fact("traces", &format!("{exported} spans exported, {dropped} dropped, {waiting} waiting"));
    if let Some(problem) = problem {
        page.fact("", &format!("the collector does not take them: {problem}"));
    }
}

fn domain_facts(page: &mut Page, domain: &DomainReport) {
    let DomainReport { name, expires_at, failures, problem, remedy, .. } = domain;
    let has = if expires_at.is_some() { "has a certificate" } else { "has no certificate" };
    match problem {
        None => page.fact("domain", &format!("{name}: {has}")),
        Some(problem) => {
            page.fact("domain", &format!("{name}: {has}; {problem} (failures in a row: {failures})"));
            page.fact("", remedy.as_deref().unwrap_or_default());
        }
    }
}

/// When a certificate expires, for people.
fn expiry(at: u64, now: SystemTime) -> String {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    match at.checked_sub(now) {
        Some(left) if left >= 2 * 86400 => format!("expires in {} days", left / 86400),
        Some(left) => format!("expires in {} h", left / 3600),
        None => "has expired: renew it".into(),
    }
}

/// One application.
fn app_facts(page: &mut Page, app: &AppReport) {
    let restarts = match app.processes.restartable {
        Some(false) => "not available: the application was given as an object",
        _ => "available",
    };
    let user = if app.user.is_empty() { String::new() } else { format!(", as {}", app.user) };
    page.fact("app", &format!("{} ({}{user})", app.processes.folder.display(), app.environment));
    failure_facts(page, app);
    if let Some(maintenance) = &app.requests.maintenance {
        page.fact("maintenance", &maintenance_line(maintenance));
    }
    if let Some(link) = &app.browser_link {
        page.fact("browser", link);
    }
    ruby_facts(page, app);
    page.fact("version", &format!("generation {}; restarts {restarts}", app.processes.generation));
    let no_mold =
        if app.processes.mold_rests { "none: it boots when another worker is needed" } else { "none" };
    page.fact("mold", &app.processes.mold.as_ref().map_or(no_mold.into(), mold_line));
    workers_facts(page, app);
    let spooled = if app.requests.spool_bytes > 0 {
        format!(", {} in spool files", mib(app.requests.spool_bytes))
    } else {
        String::new()
    };
    let streams = match app.workers.iter().map(|worker| worker.requests.streams).sum::<usize>() {
        0 => String::new(),
        streams => format!(", {streams} streaming"),
    };
    page.fact("requests", &format!("{} in the queue{streams}{spooled}", app.requests.queue));
    memory_facts(page, &app.processes.memory);
    if let Some(limits) = &app.kernel_limits {
        limits_facts(page, limits);
    }
    if let Some(cache) = &app.requests.cache {
        page.fact("cache", &cache_line(cache));
    }
    if let Some(SessionsReport { kept, moved, begun }) = app.requests.sessions {
        let kept = counted(kept, "request");
        page.fact("sessions", &format!("{kept} at the worker of its session, {moved} moved, {begun} new"));
    }
    if let Some(hub) = &app.requests.hub {
        page.fact("hub", &hub_line(hub));
    }
    change_facts(page, app);
    if app.processes.phase == "asleep" {
        return;
    }
    page.line(&format!(
        "\n  {:>6}  {:>3}  {:>7}  {:<9}  {:>8}  {:>4}  {:>9}  {:>9}  {:>7}",
        "worker", "gen", "pid", "state", "threads", "busy", "served", "memory", "up"
    ));
    app.workers.iter().for_each(|worker| page.line(&row(worker)));
    companion_rows(page, &app.processes.companions);
}

/// The processes that run beside the workers.
fn companion_rows(page: &mut Page, companions: &[CompanionProcess]) {
    if companions.is_empty() {
        return;
    }
    page.line(&format!(
        "\n  {:<16}  {:>3}  {:>7}  {:<9}  {:>8}  {:>9}  {:>7}",
        "process", "gen", "pid", "state", "restarts", "memory", "up"
    ));
    for one in companions {
        let number = |number: Option<String>| number.unwrap_or("-".into());
        page.line(&format!(
            "  {:<16}  {:>3}  {:>7}  {:<9}  {:>8}  {:>9}  {:>7}",
            one.name,
            number(one.generation.map(|generation| generation.to_string())),
            number(one.pid.map(|pid| pid.to_string())),
            one.state,
            one.restarts,
            number(one.memory_bytes.map(mib)),
            number(one.uptime_seconds.map(duration)),
        ));
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

fn maintenance_line(maintenance: &MaintenanceReport) -> String {
    let MaintenanceReport { message, allow, problem, .. } = maintenance;
    let message = message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
    let allowed = if allow.is_empty() { String::new() } else { format!("; {} pass", allow.join(", ")) };
    let problem =
        problem.as_ref().map(|problem| format!("\nits file is malformed: {problem}")).unwrap_or_default();
    format!("visitors get 503{message}{allowed}; highball maintenance off ends it{problem}")
}

/// What the application runs on; with details, how Highball has Ruby work.
fn ruby_facts(page: &mut Page, app: &AppReport) {
    let framework = app.processes.framework.as_deref().unwrap_or("not booted yet");
    let ruby = app.processes.runtime.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
    let jit =
        app.processes.runtime.jit.as_ref().map(|jit| format!(", {}", jit.of_compiler())).unwrap_or_default();
    page.fact("runs on", &format!("{framework}{ruby}{jit}"));
    if !page.view.has_details {
        return;
    }
    if let Some(gc) = &app.processes.runtime.gc {
        page.fact("collector", &gc.of_collector());
    }
    if let Some(allocator) = &app.processes.runtime.allocator {
        page.fact("allocator", &allocator.of_allocator());
    }
    if let Some(cache) = &app.processes.runtime.boot_cache {
        page.fact("boot cache", &cache.of_boot_cache());
    }
}

/// The last restart and refork.
fn change_facts(page: &mut Page, app: &AppReport) {
    if let Some(rollout) = &app.requests.rollout {
        page.fact("rollout", &rollout_line(rollout));
        page.fact("old version", &version_line(app.processes.generation, &rollout.old));
        page.fact("new version", &version_line(rollout.generation, &rollout.new));
    }
    if let Some(restart) = app.processes.restarts.last() {
        page.fact("restart", &restart_line(restart));
    }
    if let Some(refork) = &app.processes.refork {
        page.fact("refork", &refork_line(refork));
    }
    if let Some(why) = &app.processes.no_refork {
        page.fact("reforks", &format!("none of this version: {why}"));
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
                page.failure("timed out", Some(overrun.seconds_ago), &overrun_lines(overrun));
            }
        } else {
            let more = if overruns.len() > 1 { ", and others before" } else { "" };
            page.failure("timed out", Some(last.seconds_ago), &(overrun_line(last) + more));
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

/// A request that exceeded its time limit, and what its worker did.
fn overrun_line(overrun: &OverrunReport) -> String {
    let OverrunReport { worker, request, doing, .. } = overrun;
    format!("{request}, worker {worker}: {doing}")
}

/// The same, with the backtrace if it is known.
fn overrun_lines(overrun: &OverrunReport) -> String {
    let mut text = overrun_line(overrun);
    for line in overrun.backtrace.iter().flat_map(|backtrace| backtrace.lines()) {
        let _ = write!(text, "\n  {line}");
    }
    text
}

/// How many workers there should be, and why.
fn workers_facts(page: &mut Page, app: &AppReport) {
    let wanted = app.processes.workers_wanted;
    let Some(sizing) = &app.processes.sizing else {
        return page.fact("workers", &format!("{wanted} wanted"));
    };
    let SizingReport { min, max, cpus, memory_bytes, decided, decided_seconds_ago, hindered } = sizing;
    let memory = memory_bytes.map(|bytes| format!(", {}", gib(bytes))).unwrap_or_default();
    page.fact("workers", &format!("{wanted} of {min}..{max}: {cpus}{memory}"));
    if let Some(decided) = decided {
        page.fact("", &format!("{decided} ({} ago)", duration(decided_seconds_ago.unwrap_or(0))));
    }
    if let Some(hindered) = hindered {
        page.fact("", &format!("no more workers: {hindered}"));
    }
}

/// `4 GiB`, `3.8 GiB`, `512 MiB`.
fn gib(bytes: u64) -> String {
    let (mib, gib) = (bytes >> 20, bytes as f64 / f64::from(1 << 30));
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ if mib % 1024 == 0 => format!("{} GiB", mib / 1024),
        _ => format!("{gib:.1} GiB"),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn memory_facts(page: &mut Page, memory: &MemoryReport) {
    let MemoryReport { bytes, worker_limit_bytes, budget_bytes, problem, replaced, oom_kills } = memory;
    let mut line = mib(*bytes);
    if let Some(budget) = budget_bytes {
        let _ = write!(line, " of {}", mib(*budget));
    }
    if let Some(limit) = worker_limit_bytes {
        let _ = write!(line, "; each worker at most {}", mib(*limit));
    }
    if *replaced > 0 {
        let _ = write!(line, "; {} replaced for their memory", counted(*replaced, "worker"));
    }
    if *oom_kills > 0 {
        let _ = write!(line, "; {} killed by the kernel, out of memory", counted(*oom_kills, "worker"));
    }
    page.fact("memory", &line);
    if let Some(problem) = problem {
        page.fact("", problem);
    }
}

/// The application's hard limits.
fn limits_facts(page: &mut Page, limits: &KernelLimitsReport) {
    let KernelLimitsReport {
        cpu_max, throttled_ms, memory_max_bytes, memory_bytes, oom_kills, problem, ..
    } = limits;
    let mut parts = Vec::new();
    if let Some(cpus) = cpu_max {
        let share = limits.throttled_percent(&KernelLimitsReport::default());
        let share = share.map(|share| format!(" ({share:.0}% of the time)")).unwrap_or_default();
        parts.push(format!("cpu_max {cpus}, waited for it {:.1} s{share}", *throttled_ms as f64 / 1000.0));
    }
    if let Some(bytes) = memory_max_bytes {
        let used =
            memory_bytes.map(|bytes| format!(", {} in use with files", mib(bytes))).unwrap_or_default();
        parts.push(format!("memory_max {}{used}, {} killed", gib(*bytes), counted(*oom_kills, "process")));
    }
    page.fact("limits", &parts.join("; "));
    if let Some(problem) = problem {
        page.fact("", &format!("not enforced: {problem}"));
    }
}

fn cache_line(cache: &CacheReport) -> String {
    let CacheReport { hits, misses, responses, bytes, max_bytes } = cache;
    let (used, most) = (mib(*bytes), mib(*max_bytes));
    let [hits, misses, responses] = [(*hits, "hit"), (*misses, "miss"), (*responses as u64, "response")]
        .map(|(number, noun)| counted(number, noun));
    format!("{hits}, {misses}; {responses} stored, {used} of {most}")
}

fn hub_line(hub: &HubReport) -> String {
    let HubReport { held, cable_clients, streams, published, kept, bytes, max_bytes, slow_closed, .. } = hub;
    let (used, most) = (mib(*bytes), mib(*max_bytes));
    let held = counted(*held as u64, "response");
    let cables = counted(*cable_clients as u64, "WebSocket");
    let streams = counted(*streams as u64, "stream");
    let published = counted(*published, "message");
    let slow = counted(*slow_closed, "slow client");
    format!(
        "{held} and {cables} held, {streams}; {published} published, {kept} kept, {used} of {most}; {slow} disconnected"
    )
}

fn mold_line(mold: &MoldReport) -> String {
    let pid = mold.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let origin =
        mold.promoted_from.map(|worker| format!(", promoted from worker {worker}")).unwrap_or_default();
    format!("{}{pid}{origin}", mold.state)
}

fn refork_line(refork: &ReforkReport) -> String {
    let ReforkReport { number, asked_by, state, seconds, .. } = refork;
    format!("number {number}, by {asked_by}: {state}, {seconds:.1} s")
}

fn restart_line(restart: &RestartReport) -> String {
    let RestartReport { generation, asked_by, state, seconds, ended_seconds_ago, .. } = restart;
    format!("to generation {generation} by {asked_by}: {state}, {seconds:.1} s{}", ago(*ended_seconds_ago))
}

fn rollout_line(rollout: &RolloutReport) -> String {
    let RolloutReport { generation, share_percent, holds, .. } = rollout;
    let goes_on = if *holds { "" } else { "; it is replacing the old version" };
    format!("generation {generation} serves {share_percent}% of the visitors{goes_on}")
}

fn version_line(generation: u32, version: &VersionReport) -> String {
    let VersionReport { requests, errors, p50_ms, p99_ms, .. } = version;
    let times = p50_ms.zip(*p99_ms).map(|(p50, p99)| format!("; p50 {p50:.1} ms, p99 {p99:.1} ms"));
    let (requests, errors) = (counted(*requests, "request"), counted(*errors, "error"));
    format!("generation {generation}: {requests}, {errors}{}", times.unwrap_or_default())
}

fn upgrade_line(upgrade: &UpgradeReport) -> String {
    let UpgradeReport { asked_by, state, seconds, pid, ended_seconds_ago, .. } = upgrade;
    let new = pid.map(|pid| format!(" (new process: pid {pid})")).unwrap_or_default();
    format!("by {asked_by}: {state}, {seconds:.1} s{new}{}", ago(*ended_seconds_ago))
}

/// `, 5m 12s ago`
fn ago(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(", {} ago", duration(seconds))).unwrap_or_default()
}

/// Its serving threads, and between which numbers that follows the requests.
fn threads(worker: &WorkerReport) -> String {
    let WorkerRequests { threads_least, threads_most, .. } = worker.requests;
    match threads_least < threads_most {
        true => format!("{}/{threads_least}..{threads_most}", worker.process.threads),
        false => worker.process.threads.to_string(),
    }
}

fn row(worker: &WorkerReport) -> String {
    let pid = worker.process.pid.map_or("-".into(), |pid| pid.to_string());
    format!(
        "  {:>6}  {:>3}  {:>7}  {:<9}  {:>8}  {:>4}  {:>9}  {:>9}  {:>7}",
        worker.process.worker,
        worker.process.generation,
        pid,
        worker.process.state,
        threads(worker),
        worker.requests.in_flight,
        worker.requests.served,
        worker.process.memory_bytes.map_or("-".into(), mib),
        duration(worker.process.uptime_seconds)
    )
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
