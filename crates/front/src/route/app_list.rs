//! What a developer is shown where no application is reached: which ones there are, how they are, and where to find
//! them. Other clients learn only that there is none.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use highball_link::Availability;
use highball_text::{visible_bytes, visible_path};

use crate::developer_key::DeveloperKey;
use crate::message::answer::AnswerEvents;
use crate::message::request_head::Head;
use crate::refusals::failure_pages::Form;
use crate::refusals::page::{Escaped, STYLE};
use crate::route::app_state::AppState;

/// An application in the list.
#[derive(Debug)]
struct Listed {
    name: String,
    folder: String,
    availability: Availability,
    /// Where it is reached, and whether that is this machine for every client; the likeliest first.
    links: Vec<(String, bool)>,
}

/// What the client has asked for, and no application has.
#[derive(Debug)]
struct Asked {
    host: String,
    /// With the colon before it.
    port: String,
    path: String,
}

/// The list as an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 200 for the front page, 404 elsewhere.
    status: u16,
    policy: String,
    content_type: &'static str,
    body: String,
}

impl Answer {
    /// The list of these applications, for a developer.
    pub(crate) fn new<'a>(
        apps: impl Iterator<Item = &'a AppState>,
        form: Form,
        key: &DeveloperKey,
        head: Head<'_>,
    ) -> Answer {
        let asked = Asked::of(head);
        let mut listed: Vec<Listed> = apps.map(|app| Listed::of(app, &asked)).collect();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let status = if asked.is_front_page() { 200 } else { 404 };
        if form == Form::Html {
            let nonce = format!("{:016x}", RandomState::new().hash_one(status));
            let body = html(&listed, &asked, key, &nonce);
            let policy = format!(
                "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; \
                 frame-ancestors 'none'"
            );
            return Answer { status, policy, content_type: "text/html; charset=utf-8", body };
        }
        let policy = "default-src 'none'".into();
        Answer { status, policy, content_type: "text/plain; charset=utf-8", body: text(&listed, &asked) }
    }

    /// The whole answer; its body is left out where the method is HEAD.
    pub(crate) fn push(&self, is_head_method: bool, events: &mut AnswerEvents) {
        events.push_whole(self.status, is_head_method, self.body.as_bytes(), |fields| {
            fields.add(b"content-type", self.content_type.as_bytes());
            fields.add(b"content-security-policy", self.policy.as_bytes());
            fields.add(b"cache-control", b"no-store");
            fields.add(b"x-content-type-options", b"nosniff");
            fields.add(b"referrer-policy", b"no-referrer");
        });
    }
}

impl Asked {
    fn of(head: Head<'_>) -> Asked {
        let port = head.host().and_then(|host| host.port);
        Asked {
            host: head.host_name().map(visible_bytes).unwrap_or_default(),
            port: port.map(|port| format!(":{port}")).unwrap_or_default(),
            path: visible_bytes(head.path()),
        }
    }

    /// Whether it is the first page of this machine, and not of any host that leads here.
    fn is_front_page(&self) -> bool {
        self.path == "/" && is_loopback(&self.host)
    }
}

/// `localhost`, or a loopback address.
fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost"),
    }
}

impl Listed {
    fn of(app: &AppState, asked: &Asked) -> Listed {
        let settings = app.settings();
        let link = |host: &str| {
            let is_address = host.contains(':') && !host.starts_with('[');
            let host = if is_address { format!("[{host}]") } else { host.to_owned() };
            format!("http://{host}{}{}/", asked.port, settings.prefix)
        };
        let mut hosts: Vec<&str> = settings.hosts.iter().map(String::as_str).collect();
        if hosts.is_empty() {
            hosts.push(&asked.host);
        }
        // Names that end so always lead to this machine (RFC 6761 section 6.3). With one of these, names without a dot
        // are not shown: they hardly ever resolve.
        let is_local = |host: &str| is_loopback(host) || host.ends_with(".localhost");
        if hosts.iter().any(|host| is_local(host)) {
            hosts.retain(|host| is_local(host) || host.contains(['.', ':']));
        }
        hosts.sort_by_key(|host| !is_local(host));
        Listed {
            name: settings.name.clone(),
            folder: visible_path(&settings.folder),
            availability: app.availability(),
            links: hosts.into_iter().map(|host| (link(host), is_local(host))).collect(),
        }
    }
}

fn word(availability: Availability) -> &'static str {
    match availability {
        Availability::Serving => "serving",
        Availability::Crashing => "crashing",
        Availability::Stuck => "stuck",
        Availability::Booting => "booting",
        Availability::Failed => "failed",
        Availability::Asleep => "asleep",
    }
}

fn title(listed: &[Listed], asked: &Asked) -> String {
    match (asked.is_front_page(), listed.len()) {
        (true, 0) => "No applications".into(),
        (true, 1) => "1 application".into(),
        (true, count) => format!("{count} applications"),
        (false, _) => {
            let Asked { host, port, path } = asked;
            format!("There is no application at http://{host}{port}{path}")
        }
    }
}

fn html(listed: &[Listed], asked: &Asked, key: &DeveloperKey, nonce: &str) -> String {
    let boots = listed.iter().any(|app| app.availability == Availability::Booting);
    let refresh = if boots { "<meta http-equiv=\"refresh\" content=\"2\">\n" } else { "" };
    let sleeps = listed.iter().any(|app| app.availability == Availability::Asleep);
    let hint =
        if sleeps { "<p class=\"app\">A sleeping application boots at its next request.</p>\n" } else { "" };
    let title = title(listed, asked);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{refresh}\
         <title>{0}</title>\n<style nonce=\"{nonce}\">\n{STYLE}{1}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"app\"><strong>Highball</strong> serves</p>\n<h1>{0}</h1>\n{hint}</header>\n\
         <section>\n<ul>\n",
        Escaped(&title),
        include_str!("app_list.css"),
    );
    for app in listed {
        page += &item(app, key);
    }
    page += "</ul>\n</section>\n</main>\n<footer>Highball shows this page only in development, and only on this machine. \
             The same in a terminal: <code>highball status</code></footer>\n</body>\n</html>\n";
    page
}

/// Its links are those by which a developer opens an application. (They are only shown to one who has opened one.)
fn item(app: &Listed, key: &DeveloperKey) -> String {
    let state = word(app.availability);
    let opening = |(url, is_local): &(String, bool)| if *is_local { key.link(url) } else { url.clone() };
    let first = app.links.first().map(opening).unwrap_or_default();
    let mut text = format!(
        "<li><a href=\"{0}\">{1}</a> <span class=\"state {state}\">{state}</span>\n<p class=\"where\">",
        Escaped(&first),
        Escaped(&app.name)
    );
    for link in &app.links {
        let _ = writeln!(text, "<a href=\"{}\">{}</a>", Escaped(&opening(link)), Escaped(&link.0));
    }
    let _ = writeln!(text, "<code>{}</code></p></li>", Escaped(&app.folder));
    text
}

fn text(listed: &[Listed], asked: &Asked) -> String {
    let mut text = format!("{}\n", title(listed, asked));
    let width = listed.iter().map(|app| app.name.len()).max().unwrap_or_default();
    for app in listed {
        let links: Vec<&str> = app.links.iter().map(|(url, _)| url.as_str()).collect();
        let (state, links) = (word(app.availability), links.join(" "));
        let _ = writeln!(text, "  {:width$}  {state:7}  {links}", app.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, availability: Availability) -> Listed {
        Listed { name: name.into(), folder: name.into(), availability, links: vec![(name.into(), false)] }
    }

    fn asked(host: &str, path: &str) -> Asked {
        Asked { host: host.into(), port: ":3000".into(), path: path.into() }
    }

    #[test]
    fn the_front_page_is_that_of_this_machine() {
        for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.1.2.3", "[::1]"] {
            assert!(asked(host, "/").is_front_page(), "{host}");
            assert!(!asked(host, "/x").is_front_page(), "{host}");
        }
        for host in ["", "a.localhost", "example.com", "[::2]", "10.0.0.1", "localhost.example.com"] {
            assert!(!asked(host, "/").is_front_page(), "{host}");
        }
    }

    #[test]
    fn everything_is_escaped() {
        let key = DeveloperKey::new([7; 32]);
        for evil in ["<script>x()</script>", "\"><img src=x>", "'onload='x()"] {
            let with = html(&[listed(evil, Availability::Failed)], &asked(evil, evil), &key, "nonce");
            let without =
                html(&[listed("plain", Availability::Failed)], &asked("plain", "plain"), &key, "nonce");
            assert!(!with.contains(evil), "{evil}");
            assert_eq!(with.matches('<').count(), without.matches('<').count(), "{evil}");
        }
    }

    #[test]
    fn the_page_is_looked_at_again_while_something_boots() {
        let key = DeveloperKey::new([7; 32]);
        let page = |availability| html(&[listed("a", availability)], &asked("localhost", "/"), &key, "nonce");
        assert!(page(Availability::Booting).contains("http-equiv=\"refresh\""));
        assert!(!page(Availability::Serving).contains("http-equiv=\"refresh\""));
    }
}
