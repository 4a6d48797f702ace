//! The figures of 2008: three applications under two clusters of ten processes behind Apache, and under Passenger with a pool of ten.
//! `ab -n 1000 -c 100` was discarded, then `ab -n 10000 -c 100` measured.

/// The servers.
pub(super) const SERVERS: [&str; 3] =
    ["Mongrel cluster of 10", "Thin cluster of 10", "Passenger, pool of 10"];

/// An application of 2008, and that which stands for it today.
pub(super) struct Application {
    /// The workload of today.
    pub(super) workload: &'static str,
    /// What it was then.
    pub(super) kind: &'static str,
    /// Requests per second, in the order of the servers.
    pub(super) requests_per_second: [f64; 3],
    /// Why today's is representative.
    pub(super) why: &'static str,
}

/// What failed then; the account does not tell in which applications.
pub(super) const FAILED: &str =
    "Thin failed 42 requests of one application and 5 of another, the others none";

pub(super) const APPLICATIONS: [Application; 3] = [
    Application {
        workload: "blog",
        kind: "blog",
        requests_per_second: [306.0, 388.0, 398.0],
        why: "An example of this repository, as small as most applications at their beginning. A third of the requests are for \
              uploaded files of 64 KiB (Active Storage), which the application sends.",
    },
    Application {
        workload: "shop",
        kind: "shop",
        requests_per_second: [91.0, 103.0, 96.0],
        why: "Another example of this repository: 22 models, pages of up to twenty partials, cached fragments, full-text search, \
              lists with filters and pages, JSON, and a menu and a footer from the database on every page, as shops have them.",
    },
    Application {
        workload: "redmine",
        kind: "forum",
        requests_per_second: [141.0, 140.0, 138.0],
        why: "Debian's package, unchanged. A Rails application that has grown for twenty years, with 76 model files, permissions, \
              issues, wikis and search. Like a forum, it shows long texts by many people. A request costs as much as in other large \
              applications.",
    },
];

/// Memory then: two versions of a framework, each after 3,000 requests and a garbage collection.
pub(super) const MEMORY: &str =
    "In 2008, two versions of a framework were compared in this way: 28.1 and 20.9 MB of private dirty memory \
    for a process, with heaps of 14.7 MB (7.8 free) and 8.1 MB (2.1 free).";
