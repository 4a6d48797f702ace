//! The tables of `highball status`, for people.

use highball_link::{
    AppReport, CacheReport, CrashLoopReport, DomainReport, KernelLimitsReport, MemoryReport, MoldReport,
    OverrunReport, ReforkReport, RestartReport, ServerReport, SizingReport, TlsReport, UpgradeReport,
    WorkerReport,
};
use std::fmt::Write as _;
use std::time::SystemTime;

/// One instance, for people, and those of its applications that are meant.
pub(crate) fn table(status: &ServerReport, user: &str, is_meant: impl Fn(&AppReport) -> bool) -> String {
    let mut text = String::new();
    let (version, pid, up) = (&status.version, status.pid, duration(status.uptime_seconds));
    fact(&mut text, "highball", &format!("{version} (pid {pid}{user}), {}, up {up}", status.processes.phase));
    fact(&mut text, "listens on", &status.binds.join(" "));
    let connections =
        format!("{}, {} of them hijacked", status.requests.connections, status.requests.hijacked);
    fact(&mut text, "connections", &connections);
    if status.requests.spool_bytes > 0 {
        let (used, most) = (mib(status.requests.spool_bytes), mib(status.requests.max_spool_bytes));
        fact(&mut text, "spool files", &format!("{used} of at most {most}"));
    }
    if let Some(problem) = &status.requests.spool_problem {
        fact(&mut text, "spool folder", problem);
    }
    if status.requests.buffer_bytes > 1 << 20 {
        let (used, most) = (mib(status.requests.buffer_bytes), mib(status.requests.max_buffer_bytes));
        fact(&mut text, "buffers", &format!("{used} of at most {most}"));
    }
    if let Some(memory) = &status.processes.memory {
        let (used, usable) = (mib(memory.used_bytes), mib(memory.usable_bytes));
        fact(&mut text, "memory", &format!("{used} of {usable} that applications may have"));
    }
    if let Some(problem) = &status.requests.log_problem {
        fact(&mut text, "access log", problem);
    }
    if let Some(tls) = &status.tls {
        tls_facts(&mut text, tls);
    }
    if let Some(upgrade) = &status.processes.upgrade {
        fact(&mut text, "hot restart", &upgrade_line(upgrade));
        if let Some(failure) = &upgrade.failure {
            fact(&mut text, "", failure);
        }
    }
    if let Some(successor) = status.processes.successor {
        fact(&mut text, "succeeded", &format!("pid {successor} serves; this process finishes what it has"));
    }
    for app in status.apps.iter().filter(|app| is_meant(app)) {
        if status.apps.len() > 1 {
            text.push('\n');
            fact(&mut text, &app.name, &format!("{} at {}", app.processes.phase, app.url));
        }
        text.push_str(&app_table(app));
    }
    text
}

fn tls_facts(text: &mut String, tls: &TlsReport) {
    let TlsReport { handshakes, failed_handshakes, slow_handshakes, refused_handshakes, .. } = tls;
    let figures = format!(
        "{handshakes} handshakes; {failed_handshakes} failed, {slow_handshakes} timed out, {refused_handshakes} turned away"
    );
    fact(text, "TLS", &figures);
    for certificate in &tls.certificates {
        let hosts = if certificate.hosts.is_empty() { "no host".into() } else { certificate.hosts.join(" ") };
        let expiry = expiry(certificate.expires_at, SystemTime::now());
        fact(text, "certificate", &format!("{}, for {hosts}, {expiry}", certificate.file));
    }
    if let Some(problem) = &tls.problem {
        fact(text, "", &format!("newer files are not used: {problem}"));
    }
    for domain in &tls.domains {
        domain_facts(text, domain);
    }
}

fn domain_facts(text: &mut String, domain: &DomainReport) {
    let DomainReport { name, expires_at, failures, problem, remedy, .. } = domain;
    let has = if expires_at.is_some() { "its certificate is kept" } else { "it has no certificate" };
    match problem {
        None => fact(text, "domain", &format!("{name}: {has}")),
        Some(problem) => {
            fact(text, "domain", &format!("{name}: {has}, and {problem} (failures in a row: {failures})"));
            fact(text, "", remedy.as_deref().unwrap_or_default());
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
fn app_table(app: &AppReport) -> String {
    let mut text = String::new();
    let restarts = match app.processes.restartable {
        Some(false) => "not available: the application was given as an object",
        _ => "available",
    };
    let user = if app.user.is_empty() { String::new() } else { format!(", as {}", app.user) };
    fact(&mut text, "app", &format!("{} ({}{user})", app.processes.folder.display(), app.environment));
    if let Some(link) = &app.browser_link {
        fact(&mut text, "browser", link);
    }
    ruby_facts(&mut text, app);
    fact(&mut text, "version", &format!("generation {}; restarts {restarts}", app.processes.generation));
    let no_mold =
        if app.processes.mold_rests { "none: it boots when another worker is needed" } else { "none" };
    fact(&mut text, "mold", &app.processes.mold.as_ref().map_or(no_mold.into(), mold_line));
    workers_facts(&mut text, app);
    let spooled = if app.requests.spool_bytes > 0 {
        format!(", {} in spool files", mib(app.requests.spool_bytes))
    } else {
        String::new()
    };
    fact(&mut text, "requests", &format!("{} in the queue{spooled}", app.requests.queue));
    memory_facts(&mut text, &app.processes.memory);
    if let Some(limits) = &app.kernel_limits {
        limits_facts(&mut text, limits);
    }
    if let Some(cache) = &app.requests.cache {
        fact(&mut text, "cache", &cache_line(cache));
    }
    change_facts(&mut text, app);
    failure_facts(&mut text, app);
    if app.processes.phase == "asleep" {
        return text;
    }
    let _ = writeln!(
        text,
        "\n  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>10}  {:>8}",
        "worker", "generation", "pid", "state", "threads", "in flight", "served", "memory", "up"
    );
    for worker in &app.workers {
        let _ = writeln!(text, "{}", row(worker));
    }
    text
}

/// What the application runs on, and how Highball has it work.
fn ruby_facts(text: &mut String, app: &AppReport) {
    let framework = app.processes.framework.as_deref().unwrap_or("not booted yet");
    let ruby = app.processes.runtime.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
    let jit =
        app.processes.runtime.jit.as_ref().map(|jit| format!(", {}", jit.of_compiler())).unwrap_or_default();
    fact(text, "runs on", &format!("{framework}{ruby}{jit}"));
    if let Some(gc) = &app.processes.runtime.gc {
        fact(text, "collector", &gc.of_collector());
    }
    if let Some(allocator) = &app.processes.runtime.allocator {
        fact(text, "allocator", &allocator.of_allocator());
    }
    if let Some(cache) = &app.processes.runtime.boot_cache {
        fact(text, "boot cache", &cache.of_boot_cache());
    }
}

/// The last restart and refork.
fn change_facts(text: &mut String, app: &AppReport) {
    if let Some(restart) = app.processes.restarts.last() {
        fact(text, "restart", &restart_line(restart));
    }
    if let Some(refork) = &app.processes.refork {
        fact(text, "refork", &refork_line(refork));
    }
    if let Some(why) = &app.processes.no_refork {
        fact(text, "reforks", &format!("none of this version: {why}"));
    }
}

/// What is wrong with the application, and what was.
fn failure_facts(text: &mut String, app: &AppReport) {
    if let Some(problem) = &app.requests.log_problem {
        fact(text, "access log", problem);
    }
    if let Some(CrashLoopReport { what, remedy, .. }) = &app.processes.crash_loop {
        fact(text, "crash loop", &format!("{what}\n{remedy}"));
    }
    for overrun in &app.processes.overruns {
        fact(text, "timed out", &overrun_lines(overrun));
    }
    if let Some(failure) = &app.processes.last_failure {
        fact(text, "last failure", failure);
    }
    if let Some(diagnosis) = app.processes.diagnosis.as_ref().filter(|_| app.processes.phase != "serving") {
        let _ = writeln!(text, "\n{diagnosis}");
    }
}

/// A request that exceeded its time limit: where it was, as far as that is known.
fn overrun_lines(overrun: &OverrunReport) -> String {
    let OverrunReport { worker, request, doing, backtrace, seconds_ago } = overrun;
    let mut text = format!("{request}, {seconds_ago} s ago, worker {worker}: {doing}");
    for line in backtrace.iter().flat_map(|backtrace| backtrace.lines()) {
        let _ = write!(text, "\n  {line}");
    }
    text
}

fn fact(text: &mut String, name: &str, fact: &str) {
    let _ = writeln!(text, "{name:<12} {}", fact.replace('\n', "\n             "));
}

/// How many workers there should be, and why.
fn workers_facts(text: &mut String, app: &AppReport) {
    let wanted = app.processes.workers_wanted;
    let Some(sizing) = &app.processes.sizing else {
        return fact(text, "workers", &format!("{wanted} wanted"));
    };
    let SizingReport { min, max, cpus, memory_bytes, decided, decided_seconds_ago, hindered } = sizing;
    let memory = memory_bytes.map(|bytes| format!(", {}", gib(bytes))).unwrap_or_default();
    fact(text, "workers", &format!("{wanted} of {min}..{max}: {cpus}{memory}"));
    if let Some(decided) = decided {
        fact(text, "", &format!("{decided} ({} ago)", duration(decided_seconds_ago.unwrap_or(0))));
    }
    if let Some(hindered) = hindered {
        fact(text, "", &format!("no more, as {hindered}"));
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

fn memory_facts(text: &mut String, memory: &MemoryReport) {
    let MemoryReport { bytes, worker_limit_bytes, budget_bytes, problem, replaced, oom_kills } = memory;
    let mut line = mib(*bytes);
    if let Some(budget) = budget_bytes {
        let _ = write!(line, " of {}", mib(*budget));
    }
    if let Some(limit) = worker_limit_bytes {
        let _ = write!(line, "; each worker at most {}", mib(*limit));
    }
    if *replaced > 0 {
        let _ = write!(line, "; {replaced} workers replaced for their memory");
    }
    if *oom_kills > 0 {
        let _ = write!(line, "; {oom_kills} workers killed by the kernel, out of memory");
    }
    fact(text, "memory", &line);
    if let Some(problem) = problem {
        fact(text, "", problem);
    }
}

/// What the kernel keeps the application within.
fn limits_facts(text: &mut String, limits: &KernelLimitsReport) {
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
        parts.push(format!("memory_max {}{used}, {oom_kills} processes killed", gib(*bytes)));
    }
    fact(text, "limits", &parts.join("; "));
    if let Some(problem) = problem {
        fact(text, "", &format!("not all are kept: {problem}"));
    }
}

fn cache_line(cache: &CacheReport) -> String {
    let CacheReport { hits, misses, responses, bytes, max_bytes } = cache;
    let (used, most) = (mib(*bytes), mib(*max_bytes));
    format!("{hits} hits, {misses} misses; {responses} responses stored, {used} of {most}")
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
    let RestartReport { generation, asked_by, state, seconds, .. } = restart;
    format!("to generation {generation} by {asked_by}: {state}, {seconds:.1} s")
}

fn upgrade_line(upgrade: &UpgradeReport) -> String {
    let UpgradeReport { asked_by, state, seconds, pid, .. } = upgrade;
    let new = pid.map(|pid| format!(" (new process: pid {pid})")).unwrap_or_default();
    format!("by {asked_by}: {state}, {seconds:.1} s{new}")
}

fn row(worker: &WorkerReport) -> String {
    let pid = worker.process.pid.map_or("-".into(), |pid| pid.to_string());
    format!(
        "  {:>6}  {:>10}  {:>8}  {:<9}  {:>7}  {:>9}  {:>10}  {:>10}  {:>8}",
        worker.process.worker,
        worker.process.generation,
        pid,
        worker.process.state,
        worker.process.threads,
        worker.requests.in_flight,
        worker.requests.served,
        worker.process.memory_bytes.map_or("-".into(), mib),
        duration(worker.process.uptime_seconds)
    )
}

/// `42s`, `5m 12s`, `3h 20m`, `2d 4h`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status::{a_status, an_app};

    #[test]
    fn the_table_says_what_matters() {
        let text = table(&a_status(), ", user deploy", |_| true);
        for part in [
            "(pid 42, user deploy)",
            "up 1h 1m",
            "/srv/blog (production, as deploy)",
            "Rails 6.1.7, Ruby 3.1.2",
            "GET /report, 5 s ago, worker 3: it sleeps",
            "app.rb:7:in `sleep'",
            "http://127.0.0.1:3000",
            "http://127.0.0.1:3000/?highball=4711",
            "given as an object",
            "to generation 2 by USR1: done, 3.2 s",
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
    fn each_of_several_applications_has_its_table() {
        let mut shop = AppReport { name: "shop".into(), ..an_app() };
        shop.processes.phase = "asleep".into();
        let status = ServerReport { apps: vec![an_app(), shop], ..a_status() };
        let text = table(&status, "", |_| true);
        assert!(text.contains("blog         serving at http://127.0.0.1:3000/\n"), "{text}");
        assert!(text.contains("shop         asleep at "), "{text}");
        assert!(!table(&status, "", |app| app.name == "shop").contains("blog         serving"));
    }
}
