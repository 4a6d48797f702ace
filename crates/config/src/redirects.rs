//! Redirects of an application: how to read one ([`redirect`]), and whether a browser would go in a circle ([`check`]).

use crate::settings::{Redirect, Redirects};
use crate::value;

/// Largest number of redirects of an application: each is compared with the path of each request.
pub(crate) const MOST: usize = 256;

const STATUSES: [u16; 4] = [301, 302, 307, 308];

/// `/old /new`, `/docs/* https://docs.example.org/* 308`: a path or the beginning of paths, where it leads, and the status.
pub(crate) fn redirect(text: &str) -> Result<Redirect, String> {
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let (from, to, status) = match parts[..] {
        [from, to] => (from, to, Some(STATUSES[0])),
        [from, to, status] => (from, to, status.parse().ok().filter(|status| STATUSES.contains(status))),
        _ => return Err(format!("`{text}` is not a redirect; write FROM TO, such as /old/* /new/*")),
    };
    let status =
        status.ok_or_else(|| format!("`{text}` ends in none of the statuses 301, 302, 307 and 308"))?;
    let from = value::path_pattern(from)?;
    let (site, to) = target(to)?;
    if to.ends_with('*') && !from.0.ends_with('*') {
        return Err(format!("`{text}` has a * in its target, and none in the path that it stands for"));
    }
    Ok(Redirect { from, site, to, status })
}

/// The other site of a target, if it names one, and the path there.
fn target(text: &str) -> Result<(Option<String>, String), String> {
    let wrong = || {
        format!("`{text}` is not a target; write a path such as /new/*, or a URL such as https://docs.example.org/*")
    };
    let (site, to) = match text.split_once("://") {
        None => (None, text),
        Some((scheme, rest)) => {
            let scheme =
                Some(scheme.to_ascii_lowercase()).filter(|scheme| ["http", "https"].contains(&&**scheme));
            let (authority, to) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host_and_port(authority).ok_or_else(wrong)?;
            (Some(format!("{}://{host}", scheme.ok_or_else(wrong)?)), if to.is_empty() { "/" } else { to })
        }
    };
    let fixed = to.strip_suffix('*').unwrap_or(to);
    let is_text = fixed.bytes().all(|byte| byte.is_ascii_graphic() && !b"*#\\".contains(&byte));
    // Two slashes would lead to a host, which is only meant where a scheme stands before them.
    if !to.starts_with('/') || (site.is_none() && to.starts_with("//")) || !is_text {
        return Err(wrong());
    }
    Ok((site, to.to_owned()))
}

fn host_and_port(authority: &str) -> Option<String> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let (name, port) = match authority.rsplit_once(':').filter(|(_, port)| is_port(port)) {
        Some((name, port)) => (name, Some(port)),
        None => (authority, None),
    };
    let host = value::one_host(name).ok()?;
    Some(port.map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

/// Checks that no browser is sent in a circle within this application.
///
/// # Errors
/// The redirects that form a circle.
pub(crate) fn check(redirects: &Redirects, hosts: &[String]) -> Result<(), String> {
    for (index, redirect) in redirects.list.iter().enumerate() {
        if redirects.list[..index].iter().any(|other| other.from == redirect.from) {
            return Err(format!("there are two redirects from {}; remove one", redirect.from.0));
        }
    }
    for redirect in &redirects.list {
        for path in samples(redirect, &redirects.list) {
            if let Some(circle) = circle_from(path, redirects, hosts) {
                let named: Vec<String> = circle.iter().map(|redirect| format!("`{redirect}`")).collect();
                return Err(format!(
                    "browsers would go in a circle by {}; change or remove one",
                    named.join(" and ")
                ));
            }
        }
    }
    Ok(())
}

/// Returns paths that match: the rest behind the beginning matters only if another redirect is about it.
fn samples(redirect: &Redirect, all: &[Redirect]) -> Vec<String> {
    let Some(beginning) = redirect.from.0.strip_suffix('*') else { return vec![redirect.from.0.clone()] };
    let to = redirect.to.strip_suffix('*').unwrap_or(&redirect.to);
    let behind = all.iter().filter_map(|other| other.from.0.strip_prefix(to));
    let rests = ["", "a"].into_iter().chain(behind.map(|rest| rest.strip_suffix('*').unwrap_or(rest)));
    rests.map(|rest| format!("{beginning}{rest}")).collect()
}

/// Returns the redirects that are followed from this path again and again.
fn circle_from<'a>(path: String, redirects: &'a Redirects, hosts: &[String]) -> Option<Vec<&'a Redirect>> {
    let canonical = redirects.canonical_host.as_deref();
    let is_ours = |host: &str| canonical == Some(host) || hosts.iter().any(|other| other == host);
    let (mut host, mut path) = (None, path.into_bytes());
    let mut followed: Vec<&Redirect> = Vec::new();
    for _ in 0..=2 * redirects.list.len() {
        let redirect = redirects.of(&path)?;
        let mut next = redirect.target(&path);
        next.truncate(next.iter().position(|byte| *byte == b'?').unwrap_or(next.len()));
        match redirect.host() {
            Some(other) if !is_ours(other) => return None,
            // It leads to where the browser is, so it does not count.
            Some(other) if host == Some(other) && next == path => {
                host = Some(canonical.filter(|canonical| *canonical != other)?);
                continue;
            }
            other => host = other.or(canonical).or(host),
        }
        path = next;
        followed.push(redirect);
    }
    followed.sort_by_key(|redirect| &redirect.from.0);
    followed.dedup();
    Some(followed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str], canonical: Option<&str>) -> Redirects {
        let list = texts.iter().map(|text| redirect(text).unwrap()).collect();
        Redirects { canonical_host: canonical.map(str::to_owned), list }
    }

    fn checked(texts: &[&str], canonical: Option<&str>) -> Result<(), String> {
        check(&all(texts, canonical), &["a.example".into(), "b.example".into()])
    }

    #[test]
    fn redirects_are_read() {
        for (text, site, to, status) in [
            ("/a /b", None, "/b", 301),
            ("/a/*  /b/* 308", None, "/b/*", 308),
            ("/a/* /b?from=a 302", None, "/b?from=a", 302),
            ("/* HTTPS://Docs.example.org 307", Some("https://docs.example.org"), "/", 307),
            ("/a* http://[::1]:8080/b*", Some("http://[::1]:8080"), "/b*", 301),
        ] {
            let read = redirect(text).unwrap();
            assert_eq!((read.site.as_deref(), &*read.to, read.status), (site, to, status), "{text}");
        }
    }

    #[test]
    fn what_may_lead_elsewhere_is_refused() {
        for text in [
            "/a",
            "/a /b /c",
            "/a /b 200",
            "a /b",
            "/a b",
            "/a /b*",
            "/a* /b*c",
            "/a //evil.example",
            "/a* //*",
            "/a /\\evil.example",
            "/a* https://a.example*",
            "/a https://user@a.example/",
            "/a https://a.example:x/",
            "/a https:///b",
            "/a javascript://a.example/b",
            "/a /b#c",
            "/a /\u{e9}",
        ] {
            assert!(redirect(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_most_exact_counts_and_the_rest_is_kept() {
        let redirects = all(&["/* /all", "/a/* /b/*", "/a/c /d", "/q* /s?q=*"], None);
        for (path, to) in [("/a/c", "/d"), ("/a/x/y", "/b/x/y"), ("/a", "/all"), ("/q1", "/s?q=1")] {
            let found = redirects.of(path.as_bytes()).unwrap();
            assert_eq!(found.target(path.as_bytes()), to.as_bytes(), "{path}");
        }
        assert!(redirects.of(b"*").is_none());
    }

    #[test]
    fn circles_are_found() {
        for circle in [
            &["/a /a"][..],
            &["/a /b", "/b /a"],
            &["/a /b?c=d", "/b /a"],
            &["/a/* /a/b/*"],
            &["/* /new/*"],
            &["/a/* /b/*", "/b/* /a/*"],
            &["/a/* /b/*", "/b/c/* /d/*", "/d/e /a/c/e"],
            &["/a https://b.example/c", "/c https://a.example/a"],
        ] {
            let found = checked(circle, None).unwrap_err();
            assert!(
                circle.iter().any(|text| found.contains(&format!("`{text} 301`"))),
                "{circle:?}: {found}"
            );
        }
        assert!(checked(&["/a /b", "/a /c"], None).unwrap_err().contains("two redirects from /a"));
    }

    #[test]
    fn chains_and_ways_out_are_no_circles() {
        for chain in [
            &["/a /b", "/b /c", "/c /d"][..],
            &["/a/* /b/*", "/b/c /a/d"],
            &["/* https://c.example/*"],
            &["/* https://a.example/*"],
            &["/a https://c.example/a", "/b /a"],
        ] {
            assert_eq!(checked(chain, None), Ok(()), "{chain:?}");
        }
    }

    /// The redirect leads to another host of the application, and that to the canonical one again.
    #[test]
    fn the_canonical_host_leads_back() {
        let circle = ["/a https://b.example/a"];
        assert_eq!(checked(&circle, None), Ok(()));
        assert!(checked(&circle, Some("a.example")).is_err());
        assert_eq!(checked(&circle, Some("b.example")), Ok(()));
    }
}
