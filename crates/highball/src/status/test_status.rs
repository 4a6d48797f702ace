//! A status for tests.

use highball_config::AppId;
use highball_link::{
    AppProcesses, AppReport, AppRequests, CacheReport, CrashLoopReport, KernelLimitsReport, MachineMemory,
    MemoryReport, MoldReport, OverrunReport, ReforkReport, RestartReport, RubyRuntime, ServerProcesses,
    ServerReport, ServerRequests, Tuning, WorkerProcess, WorkerReport, WorkerRequests,
};

pub(crate) fn a_status() -> ServerReport {
    ServerReport {
        pid: 42,
        version: "0.1.0".into(),
        uptime_seconds: 3700,
        binds: vec!["http://127.0.0.1:3000".into()],
        ports: vec![3000],
        requests: ServerRequests {
            connections: 10,
            hijacked: 1,
            spool_bytes: 3 << 20,
            max_spool_bytes: 1 << 30,
            max_buffer_bytes: 1 << 30,
            ..ServerRequests::default()
        },
        processes: ServerProcesses {
            phase: "serving".into(),
            memory: Some(MachineMemory { usable_bytes: 870 << 20, used_bytes: 200 << 20 }),
            ..ServerProcesses::default()
        },
        apps: vec![an_app()],
        ..ServerReport::default()
    }
}

fn a_restart() -> RestartReport {
    RestartReport {
        generation: 2,
        asked_by: "USR1".into(),
        state: "done".into(),
        seconds: 3.25,
        failure: None,
        mold: None,
        ended_seconds_ago: Some(65),
    }
}

fn a_refork() -> ReforkReport {
    ReforkReport {
        number: 4,
        asked_by: "100 requests".into(),
        worker: Some(7),
        state: "done".into(),
        seconds: 0.5,
        failure: None,
        mold: None,
    }
}

fn a_worker() -> WorkerReport {
    let process = WorkerProcess {
        worker: 1,
        generation: 2,
        pid: Some(44),
        state: "serving".into(),
        threads: 3,
        uptime_seconds: 59,
        memory_bytes: Some(70 << 20),
        ..WorkerProcess::default()
    };
    WorkerReport {
        process,
        requests: WorkerRequests { in_flight: 2, served: 1000, ..WorkerRequests::default() },
    }
}

fn some_limits() -> KernelLimitsReport {
    KernelLimitsReport {
        cpu_max: Some(1.5),
        periods: 100,
        throttled_periods: 25,
        throttled_ms: 2500,
        memory_max_bytes: Some(2 << 30),
        memory_bytes: Some(200 << 20),
        oom_kills: 1,
        ..KernelLimitsReport::default()
    }
}

pub(crate) fn an_app() -> AppReport {
    AppReport {
        name: "blog".into(),
        url: "http://127.0.0.1:3000/".into(),
        browser_link: Some("http://127.0.0.1:3000/?highball=4711".into()),
        link: "/srv/blog/current".into(),
        environment: "production".into(),
        user: "deploy".into(),
        requests: AppRequests {
            queue: 5,
            spool_bytes: 3 << 20,
            cache: Some(CacheReport {
                hits: 30,
                misses: 4,
                responses: 3,
                bytes: 1 << 20,
                max_bytes: 64 << 20,
            }),
            log_problem: Some("/srv/blog/log/access.log cannot be opened: it is a pipe".into()),
            ..AppRequests::default()
        },
        processes: the_processes(),
        workers: vec![a_worker()],
        kernel_limits: Some(some_limits()),
        ..AppReport::default()
    }
}

fn the_processes() -> AppProcesses {
    let jit = Tuning { name: Some("YJIT".into()), off: None, is_missing: false };
    AppProcesses {
        id: AppId(1),
        phase: "serving".into(),
        folder: "/srv/blog".into(),
        framework: Some("Rails 6.1.7".into()),
        runtime: RubyRuntime {
            ruby: Some("3.1.2".into()),
            jit: Some(Box::new(jit)),
            ..RubyRuntime::default()
        },
        generation: 2,
        restartable: Some(false),
        mold: Some(MoldReport { pid: Some(43), state: "booted".into(), promoted_from: Some(7) }),
        workers_wanted: 1,
        crash_loop: Some(CrashLoopReport {
            deaths: 32,
            seconds: 25,
            what: "32 workers died in 25 s; the last one, worker 33, exited with code 1".into(),
            remedy: "Fix it.".into(),
        }),
        restarts: vec![a_restart()],
        refork: Some(a_refork()),
        memory: MemoryReport {
            bytes: 150 << 20,
            worker_limit_bytes: Some(256 << 20),
            budget_bytes: None,
            problem: None,
            replaced: 3,
            oom_kills: 0,
        },
        overruns: vec![OverrunReport {
            worker: 3,
            request: "GET /report".into(),
            doing: "it sleeps".into(),
            backtrace: Some("app.rb:7:in `sleep'\napp.rb:7:in `call'".into()),
            seconds_ago: 5,
        }],
        ..AppProcesses::default()
    }
}
