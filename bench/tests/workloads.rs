//! Every workload that the benchmark brings, asked of Highball: is the application there, and does it answer as the
//! file says? `HIGHBALL_BIN` names a built Highball; without one this passes and says so.

use highball_bench::deployment::{Deployment, Setting};
use highball_bench::scheme::Scheme;
use highball_bench::workload::{Request, Workload};
use std::collections::BTreeMap;
use std::env::var_os;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Redmine takes ten seconds to boot on a machine with nothing else to do.
const BOOT: Duration = Duration::from_secs(120);
const ANSWER: Duration = Duration::from_secs(30);
/// Of each workload, spread over all it has.
const MOST_REQUESTS: usize = 44;

type Tested = Result<(), Box<dyn std::error::Error>>;

#[test]
#[ignore = "serves every application: bin/test workloads"]
fn every_workload_is_answered_as_it_says() -> Tested {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no root")?;
    let scheme = Scheme::read(&root.join("bench/schemes/highball.toml"))?;
    if let (None, _) | (_, Some(_)) = (var_os("HIGHBALL_BIN"), scheme.missing()) {
        println!("not tested: HIGHBALL_BIN names no Highball");
        return Ok(());
    }
    let mut of_application: BTreeMap<_, Vec<Workload>> = BTreeMap::new();
    let is_full = var_os("HIGHBALL_TEST_LEVEL").is_some_and(|level| level == "full");
    for workload in Workload::read_all(&root.join("bench/workloads"))? {
        // Redmine's database takes a minute to make. The stores of sessions are served by their own end-to-end test.
        if !is_full && (workload.app.ends_with("redmine") || workload.name.starts_with("session-")) {
            println!("not tested without --full: {}", workload.name);
        } else if workload.packages.iter().all(|package| is_installed(package)) {
            workload.prepare(&|| false)?;
            of_application.entry((workload.app.clone(), workload.env.clone())).or_default().push(workload);
        } else {
            println!("not tested: {} needs the packages {}", workload.name, workload.packages.join(", "));
        }
    }
    for ((app, env), workloads) in of_application {
        let ready_path = workloads[0].requests[0].path.clone();
        let server =
            Deployment::start(&scheme, &Setting { env, ready_path, start_time: BOOT, ..Setting::new(app) })?;
        for workload in workloads {
            ask(&server, &workload)
                .map_err(|e| format!("{}: {e}; the server's log:\n{}", workload.name, server.log_tail()))?;
        }
        server.stop()?;
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    let query =
        Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Abbrev}", package]).output();
    query.is_ok_and(|output| output.stdout.starts_with(b"ii"))
}

fn ask(server: &Deployment, workload: &Workload) -> Tested {
    for request in workload.requests.iter().step_by(workload.requests.len().div_ceil(MOST_REQUESTS)) {
        let first = answer(server, request, "")?;
        let again = answer(server, request, first.cookie.as_deref().unwrap_or_default())?;
        for answer in [&first, &again] {
            let length = answer.body.len() as u64;
            if answer.status != request.status || request.bytes.is_some_and(|bytes| bytes != length) {
                return Err(format!(
                    "{} {}: status {}, {length} bytes",
                    request.method, request.path, answer.status
                )
                .into());
            }
        }
        let marker = request.marker.as_deref().unwrap_or_default();
        if !String::from_utf8_lossy(&first.body).contains(marker) {
            return Err(format!("{} does not contain {marker:?}", request.path).into());
        }
        if !request.dynamic && first.body != again.body {
            return Err(format!("{} is another page each time", request.path).into());
        }
        if workload.cookies && !String::from_utf8_lossy(&again.body).contains("2 visits") {
            return Err(format!("{} keeps no session", request.path).into());
        }
    }
    if let Some(slow) = &workload.slow_clients {
        let large = answer(server, &Request { path: slow.path.clone(), ..Request::default() }, "")?;
        assert_eq!((large.status, large.body.len()), (200, 8 * 1024 * 1024));
    }
    Ok(())
}

struct Answer {
    status: u16,
    /// What a browser would send from now on.
    cookie: Option<String>,
    body: Vec<u8>,
}

/// Asks in HTTP/1.0, whose answers end with their connection.
fn answer(
    server: &Deployment,
    request: &Request,
    cookie: &str,
) -> Result<Answer, Box<dyn std::error::Error>> {
    let mut socket = TcpStream::connect(server.address())?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.set_write_timeout(Some(ANSWER))?;
    let mut head = format!("{} {} HTTP/1.0\r\nhost: localhost\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\ncookie: {cookie}\r\n\r\n", request.body_bytes);
    socket.write_all(head.as_bytes())?;
    std::io::copy(&mut std::io::repeat(b'x').take(request.body_bytes), &mut socket)?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes)?;
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or("the answer has no head")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec())?;
    let status = head.split(' ').nth(1).ok_or("the answer has no status")?.parse()?;
    let cookie = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie")
            .then(|| value.split(';').next().unwrap_or_default().to_owned())
    });
    Ok(Answer { status, cookie, body: bytes[end..].to_vec() })
}
