//! Results as a run might bring them, always the same: for the tests of the reports, and to look at these.

use highball_bench::results::{
    Bound, BoundStep, Errors, Latency, Load, Machine, Memory, Method, Results, RubyWork, Sample, SchemeInfo,
    Skipped, WorkloadInfo, FORMAT,
};

/// A title in which every character means something to one of the forms.
pub(crate) const HOSTILE: &str = r#"<b>"Tom" & 'Jerry'</b> | *bold* _x_ [a](http://evil.example) `c`"#;

pub(crate) const ROUNDS: u32 = 3;

/// Servers and what a request costs each of them with hello world (CPU µs), and its private dirty memory (MiB).
const SERVERS: [(&str, f64, f64); 8] = [
    ("Highball", 10.6, 9.8),
    ("Iodine", 22.0, 17.0),
    ("Itsi", 45.0, 29.0),
    ("Puma", 75.0, 33.0),
    ("Unicorn", 140.0, 27.0),
    ("Thin", 165.0, 21.0),
    ("Passenger", 210.0, 38.0),
    ("FastCGI", 120.0, 30.0),
];

const FRONTS: [(&str, f64); 5] =
    [("nginx", 24.0), ("HAProxy", 27.0), ("lighttpd", 26.0), ("Apache", 88.0), ("pen", 60.0)];

/// A scheme of the sample, with what it costs.
struct Cost {
    info: SchemeInfo,
    cpu_us: f64,
    memory_mib: f64,
}

/// Thirty-odd schemes, three workloads, errors, skipped ones and bounds.
pub(crate) fn results() -> Results {
    let costs = costs();
    let workloads: Vec<WorkloadInfo> = [
        ("hello", "Hello world (Rack)"),
        ("rails", "Rails: a view with the time"),
        ("redmine", "Redmine: 300 pages of <issues> & \"wiki\""),
    ]
    .map(|(name, title)| WorkloadInfo { name: name.into(), title: title.into() })
    .into();
    let mut results = Results {
        format: FORMAT,
        title: "Ways to deploy a Ruby application".into(),
        command: "highball bench schemes --rounds 3 --app '<here>' && true".into(),
        started_unix: 1_795_253_149,
        took_seconds: 2210.0,
        machine: Machine {
            cpu: "AMD EPYC".into(),
            cores: 2,
            memory_mib: 7936,
            kernel: "6.18.44".into(),
            system: "Debian GNU/Linux 12 (bookworm)".into(),
            ruby: "ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]".into(),
        },
        method: Method {
            rounds: ROUNDS,
            warm_up_seconds: 1.0,
            seconds: 4.0,
            workers: 2,
            threads: 5,
            generators: vec!["wrk 4.1.0".into()],
        },
        schemes: costs.iter().map(|cost| cost.info.clone()).collect(),
        workloads,
        skipped: skipped(),
        samples: Vec::new(),
        bounds: Vec::new(),
        answer: Some("Highball alone needs the least CPU per request; <Iodine> comes second.".into()),
        interrupted: false,
    };
    for round in 1..=ROUNDS {
        for (workload, factor) in [("hello", 1.0), ("rails", 14.0), ("redmine", 160.0)] {
            for load in loads(workload) {
                let measured =
                    costs.iter().enumerate().filter(|(_, cost)| !cost.info.floor || workload == "hello");
                results
                    .samples
                    .extend(measured.map(|(place, cost)| sample(cost, place, workload, factor, load, round)));
            }
        }
    }
    results.bounds = costs.iter().filter(|cost| !cost.info.floor).map(bound).collect();
    results
}

/// As it came from the command line, with nothing measured.
#[allow(dead_code)] // the example has no use for it
pub(crate) fn empty() -> Results {
    Results {
        answer: None,
        schemes: Vec::new(),
        workloads: Vec::new(),
        skipped: Vec::new(),
        samples: Vec::new(),
        bounds: Vec::new(),
        machine: Machine::default(),
        method: Method::default(),
        ..results()
    }
}

fn costs() -> Vec<Cost> {
    let mut costs = Vec::new();
    for (server, cpu_us, memory_mib) in SERVERS {
        if server != "FastCGI" {
            let stands_for = (server == "Thin").then_some("one mongrel");
            costs.push(cost(server, None, "", stands_for, cpu_us, memory_mib));
        }
        for (front, more) in FRONTS {
            let cpu_us = cpu_us + more;
            let stands_for = match (server, front) {
                ("Puma", "nginx" | "HAProxy" | "lighttpd" | "pen") => Some(format!("{front} → 4 mongrels")),
                ("FastCGI", "nginx" | "lighttpd" | "Apache") => Some(format!("{front} → 4 FastCGI")),
                _ => None,
            };
            match server {
                "Highball" | "Puma" => {
                    costs.push(cost(server, Some(front), "TCP", stands_for.as_deref(), cpu_us, memory_mib));
                    costs.push(cost(server, Some(front), "Unix socket", None, cpu_us - 6.0, memory_mib));
                }
                "FastCGI" if front == "pen" || front == "HAProxy" => (),
                "Thin" | "FastCGI" => {
                    costs.push(cost(
                        server,
                        Some(front),
                        "Unix socket",
                        stands_for.as_deref(),
                        cpu_us,
                        memory_mib,
                    ));
                }
                _ => (),
            }
        }
    }
    costs.push(cost("WEBrick", None, "", Some("WEBrick"), 540.0, 25.0));
    costs.push(cost(HOSTILE, None, "", None, 300.0, 25.0));
    for (title, cpu_us) in [("bare epoll, constant answer", 5.9), ("nginx return 200", 12.4)] {
        let mut floor = cost(title, None, "", None, cpu_us, 0.9);
        floor.info.floor = true;
        costs.push(floor);
    }
    costs
}

fn cost(
    server: &str,
    front: Option<&str>,
    over: &str,
    stands_for: Option<&str>,
    cpu_us: f64,
    memory_mib: f64,
) -> Cost {
    let title = match front {
        Some(front) => format!("{server} × 2 behind {front}, {over}"),
        None => server.to_string(),
    };
    let version = match front {
        Some(front) => format!("{server} 1.2.3, {front} 2.4"),
        None => format!("{server} 1.2.3"),
    };
    Cost {
        info: SchemeInfo {
            name: title.to_lowercase().replace(' ', "-"),
            title,
            server: server.into(),
            front: front.map(String::from),
            stands_for: stands_for.map(String::from),
            version,
            floor: false,
            release: None,
        },
        cpu_us,
        memory_mib: memory_mib + if front.is_some() { 4.0 } else { 0.0 },
    }
}

fn loads(workload: &str) -> Vec<Load> {
    let saturated = |connections, keep_alive| Load { connections, rate: None, keep_alive };
    match workload {
        "hello" => vec![
            saturated(1, true),
            saturated(25, true),
            saturated(100, true),
            saturated(25, false),
            Load { connections: 50, rate: Some(1000.0), keep_alive: true },
        ],
        _ => vec![saturated(25, true), saturated(100, true)],
    }
}

/// A figure that moves around 1 from round to round, always in the same way.
fn wave(seed: usize) -> f64 {
    1.0 + 0.06 * ((seed * 7919 % 101) as f64 / 50.0 - 1.0)
}

fn sample(cost: &Cost, place: usize, workload: &str, factor: f64, load: Load, round: u32) -> Sample {
    let seed = place * 31 + round as usize * 17 + load.connections as usize;
    // What the server itself adds counts less where the application does the work.
    let work = cost.cpu_us + (factor - 1.0) * (60.0 + 0.1 * cost.cpu_us);
    let cpu_us = work * wave(seed);
    let requests_per_second = load.rate.unwrap_or(1_100_000.0 / cpu_us).min(1_100_000.0 / cpu_us);
    let p50 = 1000.0 * f64::from(load.connections) / (1_100_000.0 / cpu_us) * wave(seed + 5);
    let slow = if cost.info.server == "Puma" { 9.0 } else { 2.2 };
    let rings = if cost.info.server == "Highball" { 0.27 } else { 0.0 };
    Sample {
        scheme: cost.info.name.clone(),
        workload: workload.into(),
        load,
        round,
        requests: (requests_per_second * 4.0) as u64,
        requests_per_second,
        cpu_user_us: 0.6 * cpu_us,
        cpu_system_us: 0.4 * cpu_us,
        latency: Latency {
            mean: p50 * 1.1,
            deviation: p50 * 0.3,
            p50,
            p90: p50 * slow * 0.6,
            p99: p50 * slow,
            p999: p50 * slow * 1.8,
            max: p50 * slow * 4.0,
        },
        errors: errors(cost, workload, load, round),
        memory: Memory {
            private_dirty_mib: cost.memory_mib * wave(seed + 9) + factor.ln() * 20.0,
            pss_mib: cost.memory_mib * 1.4 + factor.ln() * 25.0,
            ring_mib: rings,
            processes: 3,
        },
        context_switches_per_request: 0.8 * wave(seed + 2),
        system_calls_per_request: (cost.info.server != "Itsi").then_some(5.0),
        // The one figure by which Highball is beaten: it starts its own front.
        cold_start_ms: if cost.info.server == "Highball" { 400.0 } else { 300.0 }
            + f64::from(round)
            + factor * 4.0,
        stolen: 0.01 * wave(seed),
        others: 0.002,
        ruby: (cost.info.server == "Puma")
            .then_some(RubyWork { objects_per_request: 22.0, gc_us_per_request: 1.2 }),
    }
}

/// Thin loses connections under many; the one with the strange name sends wrong bytes in one round.
fn errors(cost: &Cost, workload: &str, load: Load, round: u32) -> Errors {
    let mut errors = Errors::default();
    if cost.info.title == "Thin" && load.connections == 100 {
        errors.reset = 39;
        errors.connect = 1;
    }
    if cost.info.server == HOSTILE && workload == "rails" && round == 2 {
        errors.content = 3;
    }
    errors
}

fn bound(cost: &Cost) -> Bound {
    let most = 1_000_000.0 / (cost.cpu_us + 1000.0);
    let step = |share: f64| BoundStep {
        load: Load { connections: 50, rate: Some(most * share), keep_alive: true },
        requests_per_second: most * share.min(1.0),
        p99_ms: 2.0 + 3.0 / (1.03 - share.min(1.0)) + if share > 1.0 { 900.0 * (share - 1.0) } else { 0.0 },
        errors: if share > 1.1 { 12 } else { 0 },
    };
    Bound {
        scheme: cost.info.name.clone(),
        workload: "rails".into(),
        p99_ms: 25.0,
        requests_per_second: (cost.info.server != "WEBrick").then_some(most * 0.88),
        steps: [0.1, 0.2, 0.4, 0.8, 0.9, 0.95, 1.05, 1.2].map(step).into(),
    }
}

fn skipped() -> Vec<Skipped> {
    let skipped = |scheme: &str, workload: Option<&str>, why: &str, packages: &[&str]| Skipped {
        scheme: scheme.into(),
        workload: workload.map(String::from),
        why: why.into(),
        packages: packages.iter().map(ToString::to_string).collect(),
    };
    vec![
        skipped("pound-puma", None, "pound is not there", &["pound"]),
        skipped("falcon", None, "the gem falcon is not there, and no package has it", &[]),
        skipped(
            "webrick",
            Some("redmine"),
            "Redmine needs <files> & \"more\"",
            &["redmine", "redmine-sqlite"],
        ),
    ]
}
