use proptest::prelude::*;

use super::*;

/// Applications by hosts and prefix; each is known by its number.
fn router(apps: &[(&[&str], &str)]) -> Router<usize> {
    let mut router = Router::default();
    for (number, (hosts, prefix)) in apps.iter().enumerate() {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        router.add(&hosts, prefix, &number);
    }
    router
}

fn route(router: &Router<usize>, host: &str, path: &str) -> Option<(usize, usize)> {
    let host = (!host.is_empty()).then_some(host.as_bytes());
    router.route(host, path.as_bytes()).map(|route| (*route.to, route.prefix_bytes))
}

#[test]
fn one_application_is_reached_by_everything() {
    let router = router(&[(&[], "")]);
    for host in ["", "a", "[::1]", "%41", "a.", "."] {
        for path in ["/", "*", "/a/../b", "/%2e", "//", "/a%"] {
            assert_eq!(route(&router, host, path), Some((0, 0)), "{host} {path}");
        }
    }
}

#[test]
fn nothing_is_reached_where_there_is_nothing() {
    assert_eq!(route(&Router::default(), "a", "/"), None);
    assert_eq!(route(&router(&[(&["a"], "")]), "b", "/"), None);
    assert_eq!(route(&router(&[(&["a"], "")]), "", "/"), None, "HTTP/1.0 may name no host");
    assert_eq!(route(&router(&[(&["a"], "/x")]), "a", "/"), None);
}

#[test]
fn hosts_are_compared_as_names_and_addresses() {
    let hosts: &[&str] = &["Blog.Example.com", "127.0.0.1", "[::1]", "2001:db8::7", "xn--caf-dma.example."];
    let router = router(&[(hosts, "")]);
    for host in [
        "blog.example.com",
        "BLOG.EXAMPLE.COM",
        "blog.example.com.",
        "127.0.0.1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[2001:DB8:0::7]",
        "XN--CAF-DMA.EXAMPLE",
    ] {
        assert_eq!(route(&router, host, "/"), Some((0, 0)), "{host}");
    }
    let long = "a".repeat(HOST_BYTES + 1);
    let longest = format!("{}.", "a".repeat(HOST_BYTES));
    for host in [
        "example.com",
        "blog.example.com..",
        ".",
        "blog",
        "[::2]",
        "127.0.0.2",
        "%62log.example.com",
        &long,
        &longest,
    ] {
        assert_eq!(route(&router, host, "/"), None, "{host}");
    }
}

#[test]
fn the_longest_prefix_on_a_boundary_decides() {
    let router = router(&[(&[], ""), (&[], "/shop"), (&[], "/shop/admin"), (&[], "/shopping/")]);
    for (path, expected) in [
        ("/", (0, 0)),
        ("*", (0, 0)),
        ("/sho", (0, 0)),
        ("/shops", (0, 0)),
        ("/Shop", (0, 0)),
        ("//shop", (0, 0)),
        ("/shop", (1, 5)),
        ("/shop/", (1, 5)),
        ("/shop//x", (1, 5)),
        ("/shop/administration", (1, 5)),
        ("/shop/admin", (2, 11)),
        ("/shop/admin/x", (2, 11)),
        ("/shopping", (3, 9)),
        ("/shopping/x", (3, 9)),
    ] {
        assert_eq!(route(&router, "any", path), Some(expected), "{path}");
    }
}

#[test]
fn encoded_letters_are_the_letters_and_encoded_slashes_are_no_slashes() {
    let router = router(&[(&[], ""), (&[], "/a/b"), (&[], "/café")]);
    for (path, expected) in [
        ("/%61/b/x", (1, 6)),
        ("/%61/%62", (1, 8)),
        ("/a%2fb", (0, 0)),
        ("/a/b%2Fx", (0, 0)),
        ("%2fa/b", (0, 0)),
        ("/%2561/b", (0, 0)),
        ("/a/b%", (0, 0)),
        ("/caf%C3%A9/x", (2, 10)),
        ("/caf%c3%a9", (2, 10)),
    ] {
        assert_eq!(route(&router, "any", path), Some(expected), "{path}");
    }
}

#[test]
fn what_leads_elsewhere_is_below_no_prefix() {
    let router = router(&[(&[], ""), (&[], "/admin")]);
    for path in [
        "/admin/..",
        "/admin/../public",
        "/admin/%2e%2e/public",
        "/admin/.%2E/public",
        "/admin/./x",
        "/admin/x/%2e",
        "/./admin/x",
        "/public/../admin",
    ] {
        assert_eq!(route(&router, "any", path), Some((0, 0)), "{path}");
    }
    for path in ["/admin/...", "/admin/.x", "/admin/x..", "/admin/..x/y", "/admin/%2ex"] {
        assert_eq!(route(&router, "any", path), Some((1, 6)), "{path}");
    }
}

#[test]
fn a_host_comes_before_a_prefix() {
    let router = router(&[(&["a"], ""), (&[], "/x"), (&["b"], "/x/y"), (&["a", "b"], "/z"), (&[], "")]);
    for (host, path, expected) in [
        ("a", "/x", (0, 0)),
        ("a", "/z", (3, 2)),
        ("b", "/z/1", (3, 2)),
        ("b", "/x/y", (2, 4)),
        ("b", "/x/z", (1, 2)),
        ("b", "/", (4, 0)),
        ("c", "/x", (1, 2)),
        ("", "/z", (4, 0)),
    ] {
        assert_eq!(route(&router, host, path), Some(expected), "{host} {path}");
    }
}

#[test]
fn of_two_that_are_reached_in_the_same_way_the_first_is() {
    assert_eq!(route(&router(&[(&[], "/x"), (&[], "/x")]), "", "/x"), Some((0, 2)));
    assert_eq!(route(&router(&[(&["a"], ""), (&["b", "A."], "")]), "a", "/"), Some((0, 0)));
}

/// The same in other words: prefixes and paths as lists of decoded segments, everything looked at.
fn expected(apps: &[(Vec<String>, Vec<String>)], host: Option<&str>, segments: &[String]) -> Option<usize> {
    let resolves = segments.iter().any(|segment| segment == "." || segment == "..");
    let lies_below = |prefix: &[String]| prefix.is_empty() || (!resolves && segments.starts_with(prefix));
    let mut best: Option<(bool, usize, usize)> = None;
    for (number, (hosts, prefix)) in apps.iter().enumerate() {
        let is_named = host.is_some_and(|host| hosts.iter().any(|one| one.eq_ignore_ascii_case(host)));
        if !lies_below(prefix) || !(is_named || hosts.is_empty()) {
            continue;
        }
        let rank = (is_named, prefix.len());
        if best.is_none_or(|(named, length, _)| rank > (named, length)) {
            best = Some((rank.0, rank.1, number));
        }
    }
    best.map(|(_, _, number)| number)
}

fn encode(segments: &[String], encoded: &[bool]) -> String {
    let mut encoded = encoded.iter().cycle();
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        for byte in segment.bytes() {
            if *encoded.next().unwrap() {
                path.push_str(&format!("%{byte:02x}"));
            } else {
                path.push(byte.into());
            }
        }
    }
    path
}

fn host() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "B", "a.b", "127.0.0.1"]).prop_map(str::to_owned)
}

fn segments() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab]{1,2}|\\.{1,3}|", 0..4)
}

proptest! {
    #[test]
    fn it_finds_what_a_look_at_everything_finds(
        apps in prop::collection::vec(
            (prop::collection::vec(host(), 0..3), prop::collection::vec("[ab]{1,2}", 0..3)), 0..6),
        host in prop::option::of(host()),
        path in segments(),
        encoded in prop::collection::vec(any::<bool>(), 1..8),
    ) {
        let mut router = Router::default();
        for (number, (hosts, prefix)) in apps.iter().enumerate() {
            router.add(hosts, &encode(prefix, &[false]), &number);
        }
        // The path of a target is never empty.
        let sent = if path.is_empty() { "/".to_owned() } else { encode(&path, &encoded) };
        let found = router.route(host.as_ref().map(|host| host.as_bytes()), sent.as_bytes());
        prop_assert_eq!(found.as_ref().map(|found| *found.to), expected(&apps, host.as_deref(), &path));
        if let Some(found) = found {
            let rest = &sent[found.prefix_bytes..];
            prop_assert!(rest.is_empty() || rest.starts_with('/'));
            let prefix = &apps[*found.to].1;
            prop_assert_eq!(sent[..found.prefix_bytes].matches('/').count(), prefix.len());
        }
    }

    #[test]
    fn whatever_is_asked_for_it_answers(
        host in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        path in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let router = router(&[(&["a"], "/x"), (&[], "/%"), (&["::1"], "/y")]);
        if let Some(found) = router.route(host.as_deref(), &path) {
            prop_assert!(found.prefix_bytes <= path.len());
        }
    }
}
