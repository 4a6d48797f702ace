//! What `highball doctor` finds about a `domain`: whether a certificate could be obtained for it, and what has failed last.

use super::check::{Check, CheckState};
use highball_acme::{inspect, Inspected};
use highball_config::{AcmeSettings, BindAddress, BindProtocol, Settings};
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

const NAME: &str = "domain";
/// The longest that the DNS may take.
const PATIENCE: Duration = Duration::from_secs(5);
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// The checks of all domains.
pub(crate) fn check_all(settings: &Settings) -> Vec<Check> {
    let Some(acme) = &settings.tls.acme else { return Vec::new() };
    let of_names = acme.domains.iter().flat_map(|host| check(acme, host));
    port(settings, acme).into_iter().chain(of_names).collect()
}

fn warning(what: String, remedy: String) -> Check {
    Check { state: CheckState::Warning, remedy: Some(remedy), ..Check::ok(NAME, what) }
}

fn check(acme: &AcmeSettings, host: &str) -> Vec<Check> {
    let kept = match inspect(acme, host) {
        Ok(inspected) => of_kept(host, &inspected),
        Err(error) => {
            let what = format!(
                "{host}: cannot store the certificates: {error}. Give {} to Highball's user alone (mode 0700), or name another \
                 folder with `state_dir`",
                acme.state_dir.display()
            );
            return vec![Check { state: CheckState::Failed, ..Check::ok(NAME, what) }];
        }
    };
    // With entries in the DNS, the authority does not look at this machine.
    let looked_at = acme.dns_hook.is_none().then(|| of_addresses(host, &addresses(host), is_local));
    kept.into_iter().chain(looked_at).collect()
}

fn of_kept(host: &str, kept: &Inspected) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some((what, remedy)) = &kept.problem {
        let left = kept.next.and_then(|next| next.duration_since(SystemTime::now()).ok()).unwrap_or_default();
        let minutes = left.as_secs().div_ceil(60);
        let remedy = format!(
            "{remedy}. Highball tries again in {minutes} min; to make it try at once, remove {} and restart it",
            kept.attempts_file.display()
        );
        checks.push(warning(format!("{host}: no certificate was obtained: {what}"), remedy));
    } else if kept.is_due {
        let what = format!("{host}: its certificate should have been renewed already");
        let remedy = "Check that Highball runs with this configuration, and see its log".into();
        checks.push(warning(what, remedy));
    }
    match kept.expires.map(|expires| expires.duration_since(SystemTime::now())) {
        None => checks.push(Check::ok(NAME, format!("{host}: there is no certificate yet"))),
        Some(Ok(left)) => {
            let days = left.as_secs() / 86_400;
            checks.push(Check::ok(NAME, format!("{host}: the certificate is valid for {days} more days")));
        }
        Some(Err(_)) => {
            let remedy = "The log says why it could not be renewed".into();
            checks.push(warning(format!("{host}: its certificate has expired"), remedy));
        }
    }
    checks
}

/// Where the name leads, as the DNS has it.
fn addresses(host: &str) -> Result<Vec<IpAddr>, String> {
    let (found, answer) = mpsc::channel();
    let asked = host.to_owned();
    let ask = move || {
        let answer = (asked.as_str(), HTTP_PORT).to_socket_addrs();
        let answer = answer.map(|addresses| addresses.map(|address| address.ip()).collect());
        drop(found.send(answer.map_err(|error| error.to_string()))); // it was not waited for any longer
    };
    thread::Builder::new().spawn(ask).map_err(|error| error.to_string())?;
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Err("no answer in time".into()))
}

/// Whether this machine has the address: then a socket can have it.
fn is_local(address: &IpAddr) -> bool {
    UdpSocket::bind((*address, 0)).is_ok()
}

fn of_addresses(
    host: &str,
    addresses: &Result<Vec<IpAddr>, String>,
    is_local: impl Fn(&IpAddr) -> bool,
) -> Check {
    let addresses = match addresses {
        Ok(addresses) => addresses,
        Err(error) => {
            let remedy =
                format!("Let a DNS entry (A or AAAA) of {host} name the public address of this machine");
            return warning(format!("{host}: the DNS names no address for it: {error}"), remedy);
        }
    };
    let elsewhere: Vec<String> =
        addresses.iter().filter(|address| !is_local(address)).map(ToString::to_string).collect();
    if elsewhere.is_empty() {
        return Check::ok(NAME, format!("{host} points to this machine"));
    }
    warning(
        format!("{host} points to {}, and this machine has no such address", elsewhere.join(" and ")),
        "If a router or load balancer has that address, forward ports 80 and 443 from it to this machine; otherwise correct the DNS entry"
            .into(),
    )
}

/// Whether the server listens where the authority looks.
fn port(settings: &Settings, acme: &AcmeSettings) -> Option<Check> {
    let (protocol, port) = match acme.has_http {
        true => (BindProtocol::Http, HTTP_PORT),
        false => (BindProtocol::Https, HTTPS_PORT),
    };
    let is_there = settings.binds.iter().any(|bind| {
        bind.protocol == protocol
            && matches!(&bind.address, BindAddress::Tcp(address) if address.port() == port)
    });
    (acme.dns_hook.is_none() && !is_there).then(|| {
        warning(
            format!("the authority connects to port {port}, but no address in `bind` uses it"),
            format!(
                "Forward port {port} of the name to this server, or add an address with that port to `bind`"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_here_or_elsewhere_or_nowhere() {
        let of = |answer: Result<&[&str], &str>| {
            let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("an address")).collect();
            let answer = answer.map(parse).map_err(ToOwned::to_owned);
            of_addresses("a.test", &answer, |address| address.to_string().starts_with("192.0.2"))
        };
        assert_eq!(of(Ok(&["192.0.2.1"])).state, CheckState::Ok);
        let elsewhere = of(Ok(&["192.0.2.1", "2001:db8::1"]));
        assert_eq!(elsewhere.state, CheckState::Warning);
        assert!(elsewhere.what.contains("points to 2001:db8::1, and"), "{}", elsewhere.what);
        assert!(of(Err("no such name")).what.contains("no such name"));
    }

    #[test]
    fn this_machine_has_its_own_addresses() {
        assert!(is_local(&IpAddr::from([127, 0, 0, 1])));
        assert!(!is_local(&IpAddr::from([192, 0, 2, 1])), "one for documentation (RFC 5737)");
    }

    #[test]
    fn failures_expiry_and_a_missed_renewal_are_reported() {
        let soon = SystemTime::now() + Duration::from_secs(90);
        let kept = Inspected {
            expires: Some(SystemTime::UNIX_EPOCH),
            is_due: true,
            problem: Some(("what".into(), "Do it".into())),
            next: Some(soon),
            attempts_file: "/state/a.json".into(),
        };
        let [failure, expired] = &of_kept("a.test", &kept)[..] else { panic!("two checks") };
        assert!(failure.what.ends_with("no certificate was obtained: what"));
        let remedy = failure.remedy.as_deref().unwrap_or_default();
        assert!(
            remedy.starts_with("Do it. ") && remedy.contains("2 min") && remedy.contains("/state/a.json")
        );
        assert_eq!((expired.state, failure.state), (CheckState::Warning, CheckState::Warning));
        let missed = Inspected { problem: None, expires: Some(soon), ..kept };
        assert!(of_kept("a.test", &missed)[0].what.contains("should have been renewed"));
    }
}
