//! A status for tests.

use crate::status::kernel_limits::KernelLimitsStatus;
use crate::status::report::{
    AppMemoryStatus, AppStatus, CacheStatus, CrashLoopStatus, MachineMemoryStatus, MoldStatus, OverrunStatus,
    ReforkStatus, RequestTimesStatus, RestartStatus, Status, WorkerStatus,
};

pub(crate) fn a_status() -> Status {
    Status {
        pid: 42,
        version: "0.1.0".into(),
        phase: "serving".into(),
        uptime_seconds: 3700,
        binds: vec!["http://127.0.0.1:3000".into()],
        ports: vec![3000],
        admin: Vec::new(),
        agent_check: Vec::new(),
        connections: 10,
        hijacked: 1,
        spool_bytes: 3 << 20,
        max_spool_bytes: 1 << 30,
        spool_problem: None,
        buffer_bytes: 0,
        max_buffer_bytes: 1 << 30,
        log_problem: None,
        tls: None,
        memory: Some(MachineMemoryStatus { usable_bytes: 870 << 20, used_bytes: 200 << 20 }),
        upgrade: None,
        predecessor: None,
        successor: None,
        apps: vec![an_app()],
    }
}

fn a_restart() -> RestartStatus {
    RestartStatus {
        generation: 2,
        asked_by: "USR1".into(),
        state: "done".into(),
        seconds: 3.25,
        failure: None,
        mold: None,
    }
}

fn a_refork() -> ReforkStatus {
    ReforkStatus {
        number: 4,
        asked_by: "100 requests".into(),
        worker: Some(7),
        state: "done".into(),
        seconds: 0.5,
        failure: None,
        mold: None,
    }
}

fn a_worker() -> WorkerStatus {
    WorkerStatus {
        worker: 1,
        generation: 2,
        pid: Some(44),
        state: "serving".into(),
        threads: 3,
        uptime_seconds: 59,
        in_flight: 2,
        served: 1000,
        memory_bytes: Some(70 << 20),
    }
}

fn some_limits() -> KernelLimitsStatus {
    KernelLimitsStatus {
        cpu_max: Some(1.5),
        periods: 100,
        throttled_periods: 25,
        throttled_ms: 2500,
        memory_max_bytes: Some(2 << 30),
        memory_bytes: Some(200 << 20),
        oom_kills: 1,
        ..KernelLimitsStatus::default()
    }
}

pub(crate) fn an_app() -> AppStatus {
    AppStatus {
        id: 1,
        name: "blog".into(),
        phase: "serving".into(),
        hosts: vec![],
        prefix: String::new(),
        url: "http://127.0.0.1:3000/".into(),
        browser_link: Some("http://127.0.0.1:3000/?highball=4711".into()),
        app: "/srv/blog".into(),
        link: "/srv/blog/current".into(),
        environment: "production".into(),
        user: "deploy".into(),
        framework: Some("Rails 6.1.7".into()),
        ruby: Some("3.1.2".into()),
        jit: Some(Box::new(highball_link::Tuning {
            name: Some("YJIT".into()),
            off: None,
            is_missing: false,
        })),
        gc: None,
        allocator: None,
        boot_cache: None,
        generation: 2,
        restartable: Some(false),
        mold: Some(MoldStatus { pid: Some(43), state: "booted".into(), promoted_from: Some(7) }),
        mold_rests: false,
        workers_wanted: 1,
        sizing: None,
        workers: vec![a_worker()],
        request_times: RequestTimesStatus::default(),
        crash_loop: Some(CrashLoopStatus {
            deaths: 32,
            seconds: 25,
            what: "32 workers died in 25 s; the last one, worker 33, exited with code 1".into(),
            remedy: "Fix it.".into(),
        }),
        queue: 5,
        spool_bytes: 3 << 20,
        cache: Some(CacheStatus { hits: 30, misses: 4, responses: 3, bytes: 1 << 20, max_bytes: 64 << 20 }),
        restarts: vec![a_restart()],
        refork: Some(a_refork()),
        no_refork: None,
        log_problem: Some("/srv/blog/log/access.log cannot be opened: it is a pipe".into()),
        memory: AppMemoryStatus {
            bytes: 150 << 20,
            worker_limit_bytes: Some(256 << 20),
            budget_bytes: None,
            problem: None,
            replaced: 3,
            oom_kills: 0,
        },
        kernel_limits: Some(some_limits()),
        overruns: vec![OverrunStatus {
            worker: 3,
            request: "GET /report".into(),
            doing: "it sleeps".into(),
            backtrace: Some("app.rb:7:in `sleep'\napp.rb:7:in `call'".into()),
            seconds_ago: 5,
        }],
        last_failure: None,
        diagnosis: None,
    }
}
