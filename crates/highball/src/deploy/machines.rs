//! What configurations for several machines need to know: the machines themselves, the ports that all of them have in common,
//! and what a server takes of each.

use std::collections::BTreeMap;
use std::time::Duration;

use highball_config::{App, Bind, ConfigError, Settings, ADMIN_PORT, AGENT_PORT};

/// The most machines: each is a line of the configuration.
const MACHINES: usize = 1000;
/// The longest address of a machine.
const ADDRESS_LETTERS: usize = 255;
/// The port of a server that listens only on Unix sockets here.
const PORT: u16 = 3000;
/// The time after TERM in which balancers turn away, where `drain_grace` is shorter.
const GRACE: Duration = Duration::from_secs(10);
/// What ending takes beside draining.
const OWN_TIME: Duration = Duration::from_secs(10);
/// How often the balancers here look while an application boots.
const LOOK_SECONDS: u64 = 2;
/// Memory where it was not measured: of the server with the mold, and of each worker.
const SERVER_MIB: u64 = 192;
const WORKER_MIB: u64 = 128;

/// A machine behind a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Host name or IP address.
    host: String,
    /// Where it differs from the other machines'.
    port: Option<u16>,
}

impl Machine {
    fn read(text: &str) -> Option<Machine> {
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without a port.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, None),
            Some((host, port)) if !text.ends_with(']') => {
                (host, Some(port.parse().ok().filter(|port| *port > 0)?))
            }
            _ => (text, None),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':');
        let is_host = !host.is_empty() && host.len() <= ADDRESS_LETTERS && host.chars().all(is_name);
        let begins_well = host.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == ':');
        (is_host && begins_well).then(|| Machine { host: host.to_owned(), port })
    }

    fn values(&self, port: u16) -> BTreeMap<&'static str, Option<String>> {
        let Machine { host, .. } = self;
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let own_port = self.port.map(|port| format!("-{port}")).unwrap_or_default();
        BTreeMap::from([
            ("machine", Some(format!("{bracketed}:{}", self.port.unwrap_or(port)))),
            ("machine_host", Some(host.clone())),
            ("machine_name", Some(host.replace(':', "-") + &own_port)),
        ])
    }
}

/// Reads `a,b,c`.
pub(crate) fn read(text: &str) -> Result<Vec<Machine>, ConfigError> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.len() > MACHINES {
        return Err(ConfigError::Usage(format!("--machines: there can be {MACHINES} at most")));
    }
    let mut machines = Vec::new();
    for word in words {
        let machine = Machine::read(word).ok_or_else(|| {
            ConfigError::Usage(format!(
                "--machines: `{word}` is not a host name or an IP address; write them as in 10.0.0.5,10.0.0.6"
            ))
        })?;
        if machines.contains(&machine) {
            return Err(ConfigError::Usage(format!("--machines: {word} is there twice")));
        }
        machines.push(machine);
    }
    Ok(machines)
}

/// What placeholders stand for in a line for each of the machines.
pub(crate) fn of_each(
    machines: &[Machine],
    settings: &Settings,
) -> Vec<BTreeMap<&'static str, Option<String>>> {
    let port = port(&settings.binds, PORT);
    machines.iter().map(|machine| machine.values(port)).collect()
}

/// What the other placeholders stand for. `memory_bytes`: as it was measured.
pub(crate) fn values(
    machines: &[Machine],
    settings: &Settings,
    app: &App,
    memory_bytes: Option<u64>,
) -> BTreeMap<&'static str, Option<String>> {
    let grace = settings.drain_grace.max(GRACE);
    let stop = grace + settings.drain_timeout + OWN_TIME;
    let boot_seconds = (app.process.boot_timeout * 2 + app.process.probe_timeout).as_secs();
    let mib = memory_bytes
        .map_or(SERVER_MIB + WORKER_MIB * u64::from(app.workers), |bytes| bytes.div_ceil(1 << 20).max(1));
    let when = |holds: bool| holds.then(String::new);
    let text = |number: u64| Some(number.to_string());
    BTreeMap::from([
        ("machines", text(machines.len() as u64)),
        ("port", text(port(&settings.binds, PORT).into())),
        ("admin_port", text(port(&settings.admin.binds, ADMIN_PORT).into())),
        ("agent_port", text(port(&settings.admin.agent_binds, AGENT_PORT).into())),
        ("grace_seconds", text(whole_seconds(grace))),
        ("drain_seconds", text(whole_seconds(settings.drain_timeout))),
        ("kill_seconds", text(whole_seconds(stop))),
        ("boot_checks", text(boot_seconds.div_ceil(LOOK_SECONDS))),
        ("boot_seconds", text(boot_seconds)),
        ("workers", text(app.workers.into())),
        ("threads", text(app.threads.least.into())),
        ("cpu_mhz", text(1000 * u64::from(app.workers))),
        ("memory_mib", text(mib)),
        // Half as much again: for what grows after the measurement, and for a rolling restart's further processes.
        ("memory_limit_mib", text(mib + mib.div_ceil(2))),
        ("measured", when(memory_bytes.is_some())),
        ("estimated", when(memory_bytes.is_none())),
    ])
}

/// The port of the first TCP address; another program has to know it.
fn port(binds: &[Bind], default: u16) -> u16 {
    let mut ports = binds.iter().filter_map(Bind::tcp_address).map(|address| address.port());
    ports.find(|port| *port > 0).unwrap_or(default)
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_hosts_with_or_without_a_port() {
        let machines = read("10.0.0.5, web-2.internal:4000,::1,[2001:db8::5]:80,[::2]").unwrap();
        let found: Vec<_> = machines.iter().map(|machine| machine.values(3000)).collect();
        let expected = [
            ("10.0.0.5:3000", "10.0.0.5"),
            ("web-2.internal:4000", "web-2.internal-4000"),
            ("[::1]:3000", "--1"),
            ("[2001:db8::5]:80", "2001-db8--5-80"),
            ("[::2]:3000", "--2"),
        ];
        for (values, (address, name)) in found.iter().zip(expected) {
            assert_eq!(values["machine"].as_deref(), Some(address));
            assert_eq!(values["machine_name"].as_deref(), Some(name));
        }
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        for text in
            ["", "a,,b", "a b", "a:0", "a:70000", "a:b", "a\nserver evil", "a#b", "-a", "a\"", "é", "a,a"]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("--machines: "), "{text:?}: {error}");
        }
        assert!(read(&"a".repeat(300)).is_err());
        assert!(read(&vec!["a"; 2000].join(",")).unwrap_err().to_string().contains("1000 at most"));
    }
}
