//! The table of options. Everything a user can set is here once: the command line, the configuration
//! file, the environment variables and the manual are made from it.

use std::time::Duration;

use crate::form::{fit, Choice, Form};
use crate::settings::{Allocator, Jit, LogFormat, ShowDiagnosis};

/// One option of `highball serve`.
pub(crate) struct Opt {
    /// Its name: `head_timeout` in the file, `--head-timeout` on the command line, `HIGHBALL_HEAD_TIMEOUT`
    /// in the environment.
    pub(crate) name: &'static str,
    /// Whose option it is.
    pub(crate) scope: Scope,
    /// The letter for the command line.
    pub(crate) short: Option<char>,
    /// Variables that platforms and frameworks set for it, after its own; the first that is set counts.
    pub(crate) env: &'static [&'static str],
    /// What its value looks like, how it is read, and in which field it is stored.
    pub(crate) form: Form,
    /// The default.
    pub(crate) default: Default,
    /// Its section in the help and in the manual.
    pub(crate) section: Section,
    /// A value that is not the default, for the manual (and for the tests).
    pub(crate) example: &'static str,
    /// What it does: the first sentence is for the help, the rest for the manual alone.
    pub(crate) doc: &'static str,
}

/// Whose option it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The server's, on the command line and in the environment alone: a configuration file cannot name itself.
    Start,
    /// The server's: there is one value.
    Server,
    /// Each application has its own. The server's value is their default.
    App,
    /// As `App`, but it decides what Highball does with its own rights: a file of another user may not give it.
    Privileged,
    /// The server's, and an application may have its own beside it. Privileged as well.
    ServerAndApp,
    /// Each application has its own, and it makes no sense for several.
    OneApp,
    /// As `OneApp`; it says where the application is reached. Where applications belong to several users, only the
    /// server's file may give it.
    Route,
}

impl Scope {
    /// Whether one value can hold for several applications.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Scope::App | Scope::Privileged | Scope::ServerAndApp)
    }

    /// Whether it decides what Highball does with its own rights.
    pub(crate) fn is_privileged(self) -> bool {
        matches!(self, Scope::Privileged | Scope::ServerAndApp)
    }

    /// Whether it makes no sense for several applications.
    pub(crate) fn is_of_one(self) -> bool {
        matches!(self, Scope::OneApp | Scope::Route)
    }
}

/// The value of an option that was not given.
pub(crate) enum Default {
    /// This value.
    Is(&'static str),
    /// One value in development, another one otherwise.
    InDevelopment {
        /// In the environment `development`.
        yes: &'static str,
        /// In every other one.
        no: &'static str,
    },
    /// No value; the text says what that means.
    Without(&'static str),
}

/// The sections of the help and of the manual.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// What runs, and where it can be reached.
    Server,
    /// One application among several.
    Apps,
    /// How much clients may send.
    Sizes,
    /// How long clients and the application may take.
    Times,
    /// Static files.
    Files,
    /// Starting and stopping.
    Processes,
    /// Logs.
    Logs,
}

impl Section {
    /// All of them, in the order of the manual.
    pub(crate) const ALL: [Section; 7] = [
        Section::Server,
        Section::Apps,
        Section::Sizes,
        Section::Times,
        Section::Files,
        Section::Processes,
        Section::Logs,
    ];

    /// The heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Section::Server => "Server",
            Section::Apps => "Applications",
            Section::Sizes => "Sizes and numbers",
            Section::Times => "Time limits",
            Section::Files => "Static files",
            Section::Processes => "Processes",
            Section::Logs => "Logs",
        }
    }
}

impl Opt {
    /// Its long name on the command line, without the dashes before it: `head-timeout`.
    pub(crate) fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its own environment variable: `HIGHBALL_HEAD_TIMEOUT`.
    pub(crate) fn own_variable(&self) -> String {
        format!("HIGHBALL_{}", self.name.to_ascii_uppercase())
    }

    /// Whether it may stand in a configuration file.
    pub(crate) fn in_file(&self) -> bool {
        self.scope != Scope::Start
    }

    /// Whether it names the user that an application runs as.
    pub(crate) fn is_user(&self) -> bool {
        matches!(self.form, Form::User(_))
    }

    /// Whether it says if a Puma configuration counts.
    pub(crate) fn is_puma_config(&self) -> bool {
        self.name == "puma_config"
    }

    /// The default in words.
    pub(crate) fn default_text(&self) -> String {
        match self.default {
            Default::Is(value) => value.into(),
            Default::InDevelopment { yes, no } => format!("{no}; in development {yes}"),
            Default::Without(text) => text.into(),
        }
    }
}

/// Times without a natural limit end here; a year is for ever, to a server.
const YEAR: Duration = Duration::from_secs(365 * 86400);
const TWO_YEARS: Duration = Duration::from_secs(2 * 365 * 86400);
const MILLISECOND: Duration = Duration::from_millis(1);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const PIB: u64 = 1 << 50;

/// All options, in the order of the help.
pub(crate) static OPTIONS: &[Opt] = &[
    Opt {
        name: "port",
        scope: Scope::Server,
        short: Some('p'),
        env: &["PORT"],
        form: Form::Count(0..=65535, |f, count| fit(count, &mut f.server.port)),
        default: Default::Is("3000"),
        section: Section::Server,
        example: "8080",
        doc: "TCP port for every address that does not name one. 0 takes a free port, and the first log lines say which.",
    },
    Opt {
        name: "bind",
        scope: Scope::Server,
        short: Some('b'),
        env: &["BINDING"],
        form: Form::Addresses(|f, binds| f.server.binds = binds),
        default: Default::InDevelopment { yes: "127.0.0.1", no: "0.0.0.0" },
        section: Section::Server,
        example: "tls://0.0.0.0:443",
        doc: "Address to listen on. May be given several times (in the file: a list). An IP address with or without \
              a port, such as `127.0.0.1`, `0.0.0.0:4000` or `[::1]:4000`, or `unix:/path` for a Unix socket. With \
              `fastcgi://127.0.0.1:9000` or `fastcgi+unix:/path` before it, web servers are served over FastCGI there, with \
              `lsapi://127.0.0.1:9001` or `lsapi+unix:/path` over LSAPI; see [protocols.md](protocols.md). \
              `tls://0.0.0.0:443` is an address for HTTPS; see [https.md](https.md).",
    },
    Opt {
        name: "https",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Flag(|f, on| f.server.https = on),
        default: Default::Is("off"),
        section: Section::Server,
        example: "off",
        doc: "Serves HTTPS in development, with certificates for `localhost` and all names below it, such as `blog.localhost`. They \
              are issued by an authority that Highball makes for you at the first start, and that you have your browser trust. \
              Addresses for HTTP become addresses for HTTPS, unless one for HTTPS is given. See [https.md](https.md#tls-in-development).",
    },
    Opt {
        name: "tls_certificate",
        scope: Scope::ServerAndApp,
        short: None,
        env: &[],
        form: Form::Paths(|f, paths| f.tls_certificates = paths),
        default: Default::Without("none; an address for HTTPS needs one"),
        section: Section::Server,
        example: "/etc/highball/blog.example.com.pem",
        doc: "File with a TLS certificate (PEM), and behind it those that lead to its authority: what certbot calls \
              `fullchain.pem`. May be given several times (in the file: a list). Clients get the certificate for the host that they \
              name, or else the first. Those of one application count for its `hosts` alone. Read again after HUP, and when it changes. \
              See [https.md](https.md).",
    },
    Opt {
        name: "tls_key",
        scope: Scope::ServerAndApp,
        short: None,
        env: &[],
        form: Form::Paths(|f, paths| f.tls_keys = paths),
        default: Default::Without("the file of the certificate"),
        section: Section::Server,
        example: "/etc/highball/blog.example.com.key",
        doc: "File with the private key of the certificate (PEM, not encrypted). With several certificates, a key for each, in the \
              same order.",
    },
    Opt {
        name: "domain",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Domains(|f, domains| f.server.domains = domains),
        default: Default::Without("none; no authority is asked"),
        section: Section::Server,
        example: "blog.example.com",
        doc: "Name for which a certificate is obtained, and renewed, from an authority that speaks ACME, Let's Encrypt by default. May \
              be given several times (in the file: a list). `hosts` stands for the `hosts` of all applications. Unless `bind` says \
              something else, the server then listens on the ports 443 and 80, and sends clients of port 80 to HTTPS. See [https.md](https.md#certificates-by-themselves).",
    },
    Opt {
        name: "domain_on_demand",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Domains(|f, domains| f.server.domains_on_demand = domains),
        default: Default::Without("none"),
        section: Section::Server,
        example: "*.example.com",
        doc: "Name for which a certificate is obtained as with `domain`, but not before a client asks for it. `*.example.com` stands for \
              all names with one label more, each of which gets a certificate for itself: name a domain so whose DNS entries you \
              make one by one. May be given several times (in the file: a list). See [https.md](https.md#names-on-demand).",
    },
    Opt {
        name: "domain_ask",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::UrlPath(|f, path| f.server.domain_ask = Some(path)),
        default: Default::Without("none; the application is not asked"),
        section: Section::Server,
        example: "/certificates/allowed",
        doc: "Path by which the application says whether a certificate is to be obtained for a name that a client asks for, and that no \
              option names: it is sent `GET PATH?domain=NAME`, and says yes with status 200. See [https.md](https.md#names-on-demand).",
    },
    Opt {
        name: "acme_directory",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Word(|f, url| f.server.acme_directory = url),
        default: Default::Is("https://acme-v02.api.letsencrypt.org/directory"),
        section: Section::Server,
        example: "https://acme-staging-v02.api.letsencrypt.org/directory",
        doc: "The authority for the certificates of `domain`: the URL of its ACME directory. That of the example is for tries: its \
              certificates are worth nothing, and its limits are high.",
    },
    Opt {
        name: "acme_contact",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Emails(|f, addresses| f.server.acme_contacts = addresses),
        default: Default::Without("none"),
        section: Section::Server,
        example: "admin@example.com",
        doc: "E-mail address for the authority, which some require. May be given several times (in the file: a list).",
    },
    Opt {
        name: "acme_authorities",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Path(|f, path| f.server.acme_authorities = Some(path)),
        default: Default::Without("the certificate authorities of this machine"),
        section: Section::Server,
        example: "/etc/highball/authority.pem",
        doc: "File with the certificate (PEM) that vouches for the server of a private ACME authority.",
    },
    Opt {
        name: "acme_eab_kid",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Word(|f, id| f.server.acme_eab_kid = Some(id)),
        default: Default::Without("none"),
        section: Section::Server,
        example: "kid-1",
        doc: "What the authority calls the account that you have made with it on its site (external account binding), if it requires \
              one. Goes with `acme_eab_key_file`.",
    },
    Opt {
        name: "acme_eab_key_file",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Path(|f, path| f.server.acme_eab_key_file = Some(path)),
        default: Default::Without("none"),
        section: Section::Server,
        example: "/etc/highball/eab.key",
        doc: "File with the HMAC key of that account, in Base64, as the authority shows it. It is read once, when the account of \
              Highball is made.",
    },
    Opt {
        name: "acme_dns_hook",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Path(|f, path| f.server.acme_dns_hook = Some(path)),
        default: Default::Without("none; the authority looks at this server"),
        section: Section::Server,
        example: "/usr/local/bin/acme-dns",
        doc: "Program that makes entries in the DNS, by which the authority sees that a `domain` is yours (DNS-01). With it, a \
              `domain` may be `*.example.com`, and no port has to be reachable from the internet. It is called as `PROGRAM present NAME \
              VALUE`, and later as `PROGRAM cleanup NAME VALUE`. See [https.md](https.md#wildcard-names-and-the-dns).",
    },
    Opt {
        name: "state_dir",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Path(|f, path| f.server.state_dir = Some(path)),
        default: Default::Without("`acme` in systemd's `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`"),
        section: Section::Server,
        example: "/var/lib/highball",
        doc: "Folder for what `domain` obtains: accounts, certificates and keys. It is made if it is missing, and no other user may look \
              into it. Two servers cannot share it.",
    },
    Opt {
        name: "redirect_https",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.server.redirect_https = Some(on)),
        default: Default::Without("`off`; `on` with `domain` and without `bind`"),
        section: Section::Server,
        example: "on",
        doc: "Whether clients of HTTP addresses are sent to HTTPS (status 308). A client that names no port is sent to port 443, another \
              to the first address for HTTPS. Unix sockets, FastCGI and LSAPI are served as before.",
    },
    Opt {
        name: "hsts",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::DurationOrNone(Duration::ZERO..=TWO_YEARS, |f, time| f.server.hsts = time),
        default: Default::Is("none"),
        section: Section::Server,
        example: "365d",
        doc: "Time for which browsers use HTTPS alone for a host that they have reached over HTTPS (`Strict-Transport-Security`). An \
              answer of the application that has this header keeps its own. `0s` ends it in browsers that know of it.",
    },
    Opt {
        name: "proxy_protocol",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::OneOf(&[
            Choice { word: "off", set: |_| {} },
            Choice { word: "v1", set: |f| f.server.proxy_protocol.v1 = true },
            Choice { word: "v2", set: |f| f.server.proxy_protocol.v2 = true },
            Choice {
                word: "v1,v2",
                set: |f| (f.server.proxy_protocol.v1, f.server.proxy_protocol.v2) = (true, true),
            },
        ]),
        default: Default::Is("off"),
        section: Section::Server,
        example: "v2",
        doc: "Versions of the PROXY protocol in which proxies report the client of each HTTP connection. Every such \
              connection then has to begin with this header, and `REMOTE_ADDR` is the client's address. See \
              [protocols.md](protocols.md).",
    },
    Opt {
        name: "proxy_protocol_from",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Networks(|f, networks| f.server.proxy_protocol.from = networks),
        default: Default::Is("loopback"),
        section: Section::Server,
        example: "10.0.0.0/8",
        doc: "Proxy that is trusted with `proxy_protocol`: an address or a network. May be given several times (in the file: \
              a list). `loopback` is this machine, `private` all private networks. Connections from other addresses are \
              closed; those to a Unix socket are trusted, as its file permissions decide who can connect.",
    },
    Opt {
        name: "trusted_proxies",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Networks(|f, networks| f.server.trusted_proxies = networks),
        default: Default::Is("none"),
        section: Section::Server,
        example: "10.0.0.0/8",
        doc: "Proxy in front, by HTTP, that is believed what it reports of each request: an address or a network. May be given \
              several times (in the file: a list). `REMOTE_ADDR` is then the client in `X-Forwarded-For` or `Forwarded`, and \
              `rack.url_scheme` the scheme in `X-Forwarded-Proto` or `Forwarded`. Of requests from other addresses, applications \
              get none of these fields, nor `X-Forwarded-Host`, `X-Real-IP` and the like. Connections to a Unix socket are \
              trusted. With `none`, applications get these fields from everybody, and judge for themselves. See \
              [behind a web server](deploying/behind-a-web-server.md).",
    },
    Opt {
        name: "http2_cleartext",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.server.http2_cleartext = on),
        default: Default::Is("off"),
        section: Section::Server,
        example: "on",
        doc: "Whether HTTP addresses without TLS also serve HTTP/2 to clients that begin with it (prior knowledge), for example \
              load balancers and service meshes. See [protocols.md](protocols.md).",
    },
    Opt {
        name: "environment",
        scope: Scope::App,
        short: Some('e'),
        env: &["RAILS_ENV", "RACK_ENV", "APP_ENV"],
        form: Form::Environment(|f, name| f.app.environment = name),
        default: Default::Is("development"),
        section: Section::Server,
        example: "production",
        doc: "Environment that the application runs in. In `development` there is one worker, no limit on the time of \
              a request, and the server can only be reached from this machine, unless options say otherwise.",
    },
    Opt {
        name: "workers",
        scope: Scope::App,
        short: Some('w'),
        env: &["WEB_CONCURRENCY"],
        form: Form::CountOrAuto(0..=512, |f, count| {
            f.app.workers = None;
            count.map_or(Ok(()), |count| fit(count.max(1), f.app.workers.insert(0)))
        }),
        default: Default::InDevelopment { yes: "1", no: "auto" },
        section: Section::Server,
        example: "4",
        doc: "Worker processes. With `auto`, their number follows the load, between `min_workers` and `max_workers`. It begins with \
              one for each CPU that this process may use, by its affinity and by the quota of its cgroup (a container's CPU limit), \
              rounded up. 0 is one worker, as for Puma. See [tuning.md](tuning.md#workers).",
    },
    Opt {
        name: "min_workers",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Count(1..=512, |f, count| fit(count, &mut f.app.min_workers)),
        default: Default::Is("1"),
        section: Section::Server,
        example: "2",
        doc: "The least workers with `workers = auto`: their number when no requests arrive.",
    },
    Opt {
        name: "max_workers",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::CountOrAuto(1..=512, |f, count| {
            f.app.max_workers = None;
            count.map_or(Ok(()), |count| fit(count, f.app.max_workers.insert(0)))
        }),
        default: Default::Is("auto"),
        section: Section::Server,
        example: "8",
        doc: "The most workers with `workers = auto`. `auto` is two for each CPU that this process may use, rounded up: those beyond \
              one for each CPU serve requests that wait for something else. There are never more than the memory suffices for \
              (`memory_budget`).",
    },
    Opt {
        name: "threads",
        scope: Scope::App,
        short: Some('t'),
        env: &["RAILS_MAX_THREADS", "PUMA_MAX_THREADS", "MAX_THREADS"],
        form: Form::CountOrRange(1..=256, |f, count| fit(count, &mut f.app.threads)),
        default: Default::Is("3"),
        section: Section::Server,
        example: "5",
        doc: "Threads in each worker. The database pool of the application has to be at least as large. Of a range as Puma \
              has it (`1:5`) the larger number counts: all threads are started at once.",
    },
    Opt {
        name: "early_hints",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.early_hints = on),
        default: Default::Is("off"),
        section: Section::Server,
        example: "on",
        doc: "Whether the application may send early hints (status 103). Rails then sends one for every stylesheet and script that a page names; some old clients and proxies do not understand them.",
    },
    Opt {
        name: "config",
        scope: Scope::Start,
        short: Some('c'),
        env: &[],
        form: Form::Path(|f, path| f.server.config = Some(path)),
        default: Default::Without("config/highball.toml, highball.toml or config/puma.rb in the application, where there is one"),
        section: Section::Server,
        example: "/etc/highball/blog.toml",
        doc: "Configuration file, in the place of those in the application. One whose name ends in `.rb` is a Puma configuration; see \
              [migrating/puma-statements.md](migrating/puma-statements.md).",
    },
    Opt {
        name: "puma_config",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.puma_config = on),
        default: Default::Is("on"),
        section: Section::Server,
        example: "off",
        doc: "Whether the application's `config/puma.rb` counts for what nothing else sets, and its hooks run. See \
              [migrating/puma.md](migrating/puma.md#configpumarb).",
    },
    Opt {
        name: "ruby",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Program(|f, path| f.app.ruby = Some(path)),
        default: Default::Without("the one that the application's version file and rbenv, mise or asdf choose, else `ruby` in PATH"),
        section: Section::Server,
        example: "/opt/ruby/bin/ruby",
        doc: "Ruby to run the application with. A name without a slash is looked up in `PATH`.",
    },
    Opt {
        name: "server_user",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Word(|f, user| f.server.server_user = Some(user)),
        default: Default::Without("`highball` if there is such a user, else the number 65534 (nobody)"),
        section: Section::Server,
        example: "highball",
        doc: "User that the server itself runs as where root starts it: the processes that read what clients send. Give \
              it its own user (adduser --system --group highball). With `root` it stays root, which is not recommended. \
              See [security.md](security.md).",
    },
    Opt {
        name: "pidfile",
        scope: Scope::Server,
        short: None,
        env: &["PIDFILE"],
        form: Form::Path(|f, path| f.server.pidfile = Some(path)),
        default: Default::Without("none is written"),
        section: Section::Server,
        example: "tmp/pids/server.pid",
        doc: "File to write the process id to. It is removed when the server ends.",
    },
    Opt {
        name: "admin",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Addresses(|f, addresses| f.server.admin = addresses),
        default: Default::Without("there is none"),
        section: Section::Server,
        example: "127.0.0.1:9394",
        doc: "Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and a dashboard (`/`), apart from the addresses \
              of the applications: an IP address with or without a port (9394), or `unix:/path`. May be given several times. It \
              shows the names and the load of all applications, and the paths of running requests, to everybody who reaches it: \
              use an address that only you and your monitoring reach. See [observability.md](observability.md#health-checks).",
    },
    Opt {
        name: "admin_host",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Hosts(|f, hosts| f.server.admin_hosts = hosts),
        default: Default::Without("IP addresses, and `localhost` with its subdomains"),
        section: Section::Server,
        example: "blog.monitoring.internal",
        doc: "Host name by which the addresses of `admin` are reached, beside IP addresses and `localhost`. May be given several \
              times. Requests for other names are refused, so that no website can have a browser in your network read \
              them (DNS rebinding). `*` allows every name.",
    },
    Opt {
        name: "admin_actions",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Flag(|f, on| f.server.admin_actions = on),
        default: Default::Is("off"),
        section: Section::Server,
        example: "on",
        doc: "Whether the dashboard at the addresses of `admin` has buttons: restart, refork, more and fewer workers, replace the \
              worker of a request. They ask for a token, which `highball top --token` prints to the server's user and root, and which \
              is another one after each start. See [top.md](top.md#buttons).",
    },
    Opt {
        name: "agent_check",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Addresses(|f, addresses| f.server.agent_check = addresses),
        default: Default::Without("there is none"),
        section: Section::Server,
        example: "10.0.0.5:9395",
        doc: "Address at which a load balancer asks how busy this server is, by HAProxy's agent check: an IP address with or \
              without a port (9395). May be given several times. It tells everybody who reaches it how busy the server is: \
              use an address that only your load balancers reach. See \
              [deploying/several-machines.md](deploying/several-machines.md).",
    },
    Opt {
        name: "stuck_after",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::DurationOrNone(MILLISECOND..=YEAR, |f, time| f.server.stuck_after = time),
        default: Default::Is("15s"),
        section: Section::Server,
        example: "30s",
        doc: "Time without a free thread, and without an answer to any request, after which an application counts as stuck: \
              `/readyz` then answers 503, so that load balancers send requests elsewhere. Make it longer than your \
              longest requests. With `none`, no application counts as stuck.",
    },
    Opt {
        name: "health_path",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::UrlPath(|f, path| f.app.health_path = Some(path)),
        default: Default::Without("there is none"),
        section: Section::Server,
        example: "/up",
        doc: "Path at which Highball answers a health check of the application by itself, at the addresses for clients, as `/readyz/NAME` \
              does at those of `admin`: 200 or 503 with a word, also while all its threads are busy. It is a path below the \
              application's `prefix`. The application does not get GET and HEAD requests for it. See \
              [observability.md](observability.md#health-checks).",
    },
    Opt {
        name: "show_diagnosis",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::OneOf(&[
            Choice { word: "link", set: |f| f.app.show_diagnosis = ShowDiagnosis::Link },
            Choice { word: "local", set: |f| f.app.show_diagnosis = ShowDiagnosis::Local },
            Choice { word: "off", set: |f| f.app.show_diagnosis = ShowDiagnosis::Off },
        ]),
        default: Default::Is("link"),
        section: Section::Server,
        example: "local",
        doc: "Which clients get the details of errors in development. `link`: a browser on this machine that has opened \
              the link which the terminal shows. `local`: every client on this machine that names no proxy; not where a \
              web server or tunnel on this machine passes requests on. `off`: no client. See \
              [diagnosis.md](diagnosis.md).",
    },
    Opt {
        name: "name",
        scope: Scope::Route,
        short: None,
        env: &[],
        form: Form::Word(|f, name| f.app.name = Some(name)),
        default: Default::Without("the name of its folder; where that is `current`, of the folder around it"),
        section: Section::Apps,
        example: "blog",
        doc: "Name of the application in the log and in commands. No two applications of a server have the same name.",
    },
    Opt {
        name: "hosts",
        scope: Scope::Route,
        short: None,
        env: &[],
        form: Form::Hosts(|f, hosts| f.app.hosts = Some(hosts)),
        default: Default::Without("every one; with several applications NAME and NAME.localhost, or with a `prefix` every one"),
        section: Section::Apps,
        example: "blog.example.org",
        doc: "Host name that the application is reached by. May be given several times (in the file: a list). `*` is every \
              name that no other application has.",
    },
    Opt {
        name: "prefix",
        scope: Scope::Route,
        short: None,
        env: &[],
        form: Form::Prefix(|f, prefix| f.app.prefix = Some(prefix)),
        default: Default::Without("none"),
        section: Section::Apps,
        example: "/blog",
        doc: "Path that the application is reached below. It gets it as `SCRIPT_NAME`, and Rails also as its \
              `relative_url_root`.",
    },
    Opt {
        name: "variables",
        scope: Scope::OneApp,
        short: None,
        env: &[],
        form: Form::Variables(|f, variables| f.app.env = variables),
        default: Default::Without("none"),
        section: Section::Apps,
        example: "DATABASE_URL=sqlite3:db/blog.sqlite3",
        doc: "Variable in the environment of the application's processes, beside those that Highball was started with. \
              May be given several times (in the file: a table, or a list). Other applications do not see it.",
    },
    Opt {
        name: "pass_variables",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::VariableNames(|f, names| f.app.pass_variables = names),
        default: Default::Without("only those that `docs/users.md` lists"),
        section: Section::Apps,
        example: "AWS_*",
        doc: "Variable of Highball's own environment that an application of another user gets as well. May be given several \
              times (in the file: a list). `AWS_*` is every variable whose name begins with `AWS_`, `*` is every one. Where \
              Highball and the application run as the same user, the application gets all of them anyway.",
    },
    Opt {
        name: "max_output",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::SizeOrNone(KIB..=GIB, |f, bytes| f.app.max_output_bytes = bytes),
        default: Default::Is("1M"),
        section: Section::Logs,
        example: "4M",
        doc: "Most output per second of an application of another user. The log takes four times as much at once; what \
              is beyond that is dropped, and the log says how much. Where Highball and the application run as the same \
              user, the application writes to Highball's standard output and error itself.",
    },
    Opt {
        name: "user",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::User(|f, user| f.app.user = Some(user)),
        default: Default::Without("who started Highball; where that is root, the owner of the application's files"),
        section: Section::Apps,
        example: "blog",
        doc: "User that the application runs as, by name or number. Only root can start it as another one; and as root, \
              Highball runs it as root only where its files belong to root, or `root` is asked for here. See \
              [users.md](users.md).",
    },
    Opt {
        name: "prestart",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.prestart = Some(on)),
        default: Default::Without("on; with several applications in development off"),
        section: Section::Apps,
        example: "off",
        doc: "Whether the application boots when the server starts, instead of at its first request. That request waits \
              until it has booted.",
    },
    Opt {
        name: "sleep_after",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::DurationOrNone(MILLISECOND..=YEAR, |f, time| f.app.sleep_after = time),
        default: Default::Is("none"),
        section: Section::Apps,
        example: "30m",
        doc: "Stop an idle application after this time. The next request boots it again, and waits for it.",
    },
    Opt {
        name: "max_target",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(256..=MIB, |f, bytes| f.server.limits.target_bytes = bytes),
        default: Default::Is("16k"),
        section: Section::Sizes,
        example: "8k",
        doc: "Longest request target (path and query). A longer one is answered 414.",
    },
    Opt {
        name: "max_head",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(KIB..=MIB, |f, bytes| f.server.limits.head_bytes = bytes),
        default: Default::Is("64k"),
        section: Section::Sizes,
        example: "32k",
        doc: "Largest request head (request line and header fields). A larger one is answered 431.",
    },
    Opt {
        name: "max_fields",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Count(8..=1024, |f, count| fit(count, &mut f.server.limits.header_fields)),
        default: Default::Is("128"),
        section: Section::Sizes,
        example: "64",
        doc: "Most header fields in a request. More are answered 431.",
    },
    Opt {
        name: "max_body",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::SizeOrNone(0..=PIB, |f, bytes| f.app.limits.body_bytes = bytes),
        default: Default::Is("1g"),
        section: Section::Sizes,
        example: "100m",
        doc: "Largest request body. A larger one is answered 413, before any of it is stored where the request gives its length. \
              `none`: uploads are bounded by `max_spool` and `app_max_spool` alone.",
    },
    Opt {
        name: "body_memory",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(0..=16 * MIB, |f, bytes| f.server.limits.body_memory_bytes = bytes),
        default: Default::Is("64k"),
        section: Section::Sizes,
        example: "16k",
        doc: "How much of a request body fits beside the request in a worker's ring. A larger one goes to a spool file: up to \
              1 MiB in memory (it counts for `max_buffers`), beyond that in `spool_dir`.",
    },
    Opt {
        name: "response_buffer",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(4 * KIB..=64 * MIB, |f, bytes| f.server.limits.response_buffer_bytes = bytes),
        default: Default::Is("256k"),
        section: Section::Sizes,
        example: "1m",
        doc: "How much of a response is held in memory for a client, before its worker has to wait.",
    },
    Opt {
        name: "response_spool",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(0..=1024 * GIB, |f, bytes| f.server.limits.response_spool_bytes = bytes),
        default: Default::Is("1g"),
        section: Section::Sizes,
        example: "100m",
        doc: "How much of a response goes to a spool file when a slow client would keep its worker waiting for longer than \
              a quarter of a second. 0: the worker waits.",
    },
    Opt {
        name: "max_buffers",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(MIB..=PIB, |f, bytes| f.server.buffer_bytes = Some(bytes as u64)),
        default: Default::Without("an eighth of the memory of the machine or the container, at least 16 MiB"),
        section: Section::Sizes,
        example: "500m",
        doc: "How much memory request bodies and the responses for slow clients may hold in all. Beyond it, they go to spool \
              files at once. One of several applications gets at most half of it, and one client half of what its application \
              gets. The same holds for `max_spool`. Clients on this machine, which may be proxies, count as many; another \
              machine counts as one client, a proxy too, unless it reports its clients (`proxy_protocol`).",
    },
    Opt {
        name: "max_connections",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Count(1..=1_000_000, |f, count| fit(count, &mut f.server.limits.connections)),
        default: Default::Is("10000"),
        section: Section::Sizes,
        example: "2000",
        doc: "Most open client connections. Beyond it, a new connection takes the place of the one that has been idle for \
              the longest time; where none is idle, it waits in the kernel. The limit on open files is raised \
              for them, as far as the hard limit (`ulimit -Hn`) allows; where files run out all the same, idle connections \
              are closed for new ones.",
    },
    Opt {
        name: "max_tls_handshakes",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Count(1..=1_000_000, |f, count| fit(count, &mut f.server.max_tls_handshakes)),
        default: Default::Is("1000"),
        section: Section::Sizes,
        example: "200",
        doc: "TLS handshakes that are computed or wait for a processor at a time. Clients beyond it are turned away at once. Those \
              that have begun a handshake and send nothing do not count: others take their places, as those of idle connections.",
    },
    Opt {
        name: "http2_streams",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Count(1..=100_000, |f, count| fit(count, &mut f.server.limits.http2_streams)),
        default: Default::Is("100"),
        section: Section::Sizes,
        example: "250",
        doc: "Most requests that an HTTP/2 connection may have open at a time. Clients learn of it and wait; a request beyond it \
              is refused unread, so that the client may repeat it. Each one counts for the request queue, and for what one \
              client may hold of buffers and spool files, as one on a separate connection does.",
    },
    Opt {
        name: "max_queue",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Count(1..=1_000_000, |f, count| fit(count, &mut f.app.limits.queue)),
        default: Default::Is("1000"),
        section: Section::Sizes,
        example: "100",
        doc: "Most requests that wait for a worker. Further ones are answered 503 with Retry-After.",
    },
    Opt {
        name: "spool_dir",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::WritableFolder(|f, path| f.server.spool_dir = Some(path)),
        default: Default::Without("/var/tmp where it can be written to, else $TMPDIR, else /tmp"),
        section: Section::Sizes,
        example: "/tmp",
        doc: "Folder for large request bodies while they arrive. A folder in memory (tmpfs) makes uploads count as memory. While \
              no file can be created in it (in a read-only container, for example), bodies are kept in memory, at most 64 MiB in \
              all. The log, `highball status` and `highball doctor` say so, and warn of little room.",
    },
    Opt {
        name: "max_spool",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(0..=PIB, |f, bytes| f.server.limits.spool_bytes = Some(bytes as u64)),
        default: Default::Without("half of the room in `spool_dir`; a quarter, if that lies in memory"),
        section: Section::Sizes,
        example: "20g",
        doc: "How much all spool files together may hold. Beyond it, a request body that has no room is answered 503 (one \
              larger than the limit set here, 413), and workers wait for slow clients. Without the option, the room is measured \
              again while uploads come.",
    },
    Opt {
        name: "app_max_spool",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::Size(0..=PIB, |f, bytes| f.app.limits.spool_bytes = Some(bytes as u64)),
        default: Default::Without("all of `max_spool`; with several applications half of it"),
        section: Section::Sizes,
        example: "2g",
        doc: "How much the spool files of one application may hold. With several applications, it is never more than half of \
              `max_spool`, so that one with slow clients leaves room to the others.",
    },
    Opt {
        name: "max_cache",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(0..=PIB, |f, bytes| f.server.limits.cache_bytes = bytes as u64),
        default: Default::Is("256m"),
        section: Section::Sizes,
        example: "1g",
        doc: "How much memory the stored responses of all applications may take (`cache`). One of several applications gets at most \
              half of it.",
    },
    Opt {
        name: "head_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.server.limits.head_timeout = time),
        default: Default::Is("15s"),
        section: Section::Times,
        example: "5s",
        doc: "Time for a request head to arrive whole, from its first byte. A slower one is answered 408.",
    },
    Opt {
        name: "tls_handshake_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.server.tls_handshake_timeout = time),
        default: Default::Is("10s"),
        section: Section::Times,
        example: "5s",
        doc: "Time for the TLS handshake of a connection. One that takes longer is closed.",
    },
    Opt {
        name: "body_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.server.limits.body_timeout = time),
        default: Default::Is("30s"),
        section: Section::Times,
        example: "10s",
        doc: "Longest pause between two pieces of a request body. After a longer one the answer is 408.",
    },
    Opt {
        name: "min_body_rate",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Size(0..=GIB, |f, bytes| f.server.limits.body_bytes_per_second = bytes as u64),
        default: Default::Is("500"),
        section: Section::Times,
        example: "2k",
        doc: "Bytes of a request body that have to come in a second, on average, once `body_timeout` has passed. Slower ones are \
              answered 408. 0: pauses alone are limited.",
    },
    Opt {
        name: "idle_timeout",
        scope: Scope::Server,
        short: None,
        env: &["PUMA_PERSISTENT_TIMEOUT"],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.server.limits.idle_timeout = time),
        default: Default::Is("65s"),
        section: Section::Times,
        example: "20s",
        doc: "How long a connection without a request is kept. Longer than the 60 seconds that most load balancers keep \
              theirs, so that they do not send a request down a connection that is just being closed.",
    },
    Opt {
        name: "send_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.server.limits.send_timeout = time),
        default: Default::Is("60s"),
        section: Section::Times,
        example: "30s",
        doc: "Longest pause in which a client takes nothing of its response. After a longer one the connection is closed.",
    },
    Opt {
        name: "request_timeout",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::DurationOrNone(MILLISECOND..=YEAR, |f, time| f.app.limits.request_timeout = time),
        default: Default::InDevelopment { yes: "none", no: "60s" },
        section: Section::Times,
        example: "20s",
        doc: "Time for the application to begin its answer. After that the answer is 504, and the log says what the thread does. If it \
              does not come back within two seconds, its worker is replaced: another one starts first, and the worker's other requests \
              finish. The application finds the end of the time in `env[\"highball.deadline\"]`: seconds of `CLOCK_MONOTONIC`, a Float.",
    },
    Opt {
        name: "request_timeouts",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::PathTimeouts(|f, times| f.app.limits.request_timeouts = times),
        default: Default::Without("none"),
        section: Section::Times,
        example: "/reports/*=5m",
        doc: "Other times than `request_timeout` for some paths (in the file: a table, such as `{ \"/reports/*\" = \"5m\" }`, or a list). A \
              path that ends with `*` stands for all that begin like it; the longest one counts, and a whole path before that. It is \
              compared with the path as the client has sent it. May be given several times.",
    },
    Opt {
        name: "request_timeout_header",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::HeaderOrNone(|f, key| f.app.timeout_header = key),
        default: Default::Is("none"),
        section: Section::Times,
        example: "X-Request-Timeout",
        doc: "Header field by which the application gets the seconds that are left of its time when a thread begins the request: \
              `12.345`. What a client sends in this field is removed.",
    },
    Opt {
        name: "timeout_interrupts",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.limits.timeout_interrupts = on),
        default: Default::Is("off"),
        section: Section::Times,
        example: "on",
        doc: "Whether the thread of a request that exceeds its time gets the exception `Highball::RequestTimeout`. Its worker is replaced only \
              if that does not end the request. The exception can be raised at any place, also in the middle of an `ensure`, and may \
              leave the application's data in disorder, as with Ruby's `Timeout`.",
    },
    Opt {
        name: "static_files",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.static_files.enabled = on),
        default: Default::Is("on"),
        section: Section::Files,
        example: "off",
        doc: "Whether files in the application's `public` folder, and plain ones of its asset pipeline, are served \
              without the application.",
    },
    Opt {
        name: "follow_symlinks",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.static_files.follow_symlinks = on),
        default: Default::Is("on"),
        section: Section::Files,
        example: "off",
        doc: "Whether symbolic links in the `public` folder are followed.",
    },
    Opt {
        name: "compress",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.compress = on),
        default: Default::InDevelopment { yes: "off", no: "on" },
        section: Section::Files,
        example: "off",
        doc: "Whether responses and static files are compressed for clients that accept it (zstd, Brotli, gzip). See \
              `docs/compression.md`.",
    },
    Opt {
        name: "cache",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Size(0..=PIB, |f, bytes| f.app.limits.cache_bytes = bytes as u64),
        default: Default::Is("0"),
        section: Section::Files,
        example: "64m",
        doc: "How much memory stored responses of the application may take; 0 stores none. Stored are responses that it declares to \
              be for all clients, with `Cache-Control: public, max-age=60` for example. See `docs/response-cache.md`.",
    },
    Opt {
        name: "sendfile",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::SentFolders(|f, folders| f.app.sendfile = folders),
        default: Default::Without("none: these header fields are passed on, for a web server in front"),
        section: Section::Files,
        example: "/protected=storage",
        doc: "Folders of files that the application may name in `X-Sendfile` (a path) or `X-Accel-Redirect` (a path, or a URI \
              that begins with the prefix of a folder): Highball sends the file. Relative ones are below the application's \
              folder. Files elsewhere are refused with 404. See `docs/sending-files.md`.",
    },
    Opt {
        name: "basic_auth",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::PathOrNone(|f, file| f.app.basic_auth = file),
        default: Default::Is("none"),
        section: Section::Files,
        example: "config/htpasswd",
        doc: "File with users and hashes of their passwords, as `htpasswd -B` writes it: without the right ones (HTTP basic \
              authentication), neither files nor the application answer. It is read again when it changes. See \
              `docs/basic-auth.md`.",
    },
    Opt {
        name: "basic_auth_realm",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Phrase(|f, text| f.app.basic_auth_realm = text),
        default: Default::Is("Restricted"),
        section: Section::Files,
        example: "Staging of the blog",
        doc: "What browsers may show when they ask for the password of `basic_auth`. For one host, they send a password to all pages \
              with the same text.",
    },
    Opt {
        name: "boot_timeout",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.app.process.boot_timeout = time),
        default: Default::InDevelopment { yes: "300s", no: "60s" },
        section: Section::Processes,
        example: "30s",
        doc: "Time that the application has to boot. After that the boot has failed.",
    },
    Opt {
        name: "drain_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(Duration::ZERO..=YEAR, |f, time| f.server.drain_timeout = time),
        default: Default::Is("30s"),
        section: Section::Processes,
        example: "10s",
        doc: "Time that requests in flight have to end when the server is stopped. After that they are cut off. As long, idle \
              connections wait for one more answer when the server is replaced (hot restart).",
    },
    Opt {
        name: "drain_grace",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(Duration::ZERO..=YEAR, |f, time| f.server.drain_grace = time),
        default: Default::Is("0s"),
        section: Section::Processes,
        example: "10s",
        doc: "Time between the signal to stop and the moment when no new connections are accepted. Meanwhile requests are \
              served as before, `/readyz` answers 503, and responses close their connections, so that load balancers \
              turn away before the server stops. Make it longer than they take to notice. A second signal ends it. See \
              [observability.md](observability.md#health-checks).",
    },
    Opt {
        name: "hijacked_drain_timeout",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Duration(Duration::ZERO..=YEAR, |f, time| f.server.hijacked_drain_timeout = time),
        default: Default::Is("5s"),
        section: Section::Processes,
        example: "1m",
        doc: "Time that connections which the application has taken over (WebSockets and the like) have to end when their \
              worker is replaced, or the server is stopped or replaced. WebSockets are closed one by one in this time, others at \
              its end. It is never more than `drain_timeout`. See [restarts.md](restarts.md#websockets).",
    },
    Opt {
        name: "probe_path",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::UrlPath(|f, path| f.app.process.probe_path = path),
        default: Default::Is("/"),
        section: Section::Processes,
        example: "/up",
        doc: "Path of the request that a new version of the application has to answer during a restart, before clients' \
              requests go to it: at its first host (localhost, where it has no `hosts`), and below its `prefix`. If the \
              answer is a status of 500 or more, the old version stays.",
    },
    Opt {
        name: "warm_up",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::UrlPaths(|f, paths| f.app.process.warm_up = paths),
        default: Default::Without("only the `probe_path`"),
        section: Section::Processes,
        example: "/posts",
        doc: "Path that Highball requests from each new worker in a restart or refork, before clients' requests go to it. May be given \
              several times (in the file: a list). Name the pages that most visitors request: the first request of a worker takes \
              longer, as templates are compiled and connections are opened. The answers are not looked at. See \
              [restarts.md](restarts.md#warm-up).",
    },
    Opt {
        name: "probe_timeout",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Duration(MILLISECOND..=YEAR, |f, time| f.app.process.probe_timeout = time),
        default: Default::Is("30s"),
        section: Section::Processes,
        example: "10s",
        doc: "Time that a new version of the application has to answer that request. Without an answer, the old version stays.",
    },
    Opt {
        name: "preload",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.process.preload = on),
        default: Default::Is("on"),
        section: Section::Processes,
        example: "on",
        doc: "Whether the application is loaded once, before workers are forked, which then share its memory. `off` is \
              for applications that are not fork-safe: each worker loads the application itself.",
    },
    Opt {
        name: "jit",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::OneOf(&[
            Choice { word: "auto", set: |f| f.app.process.jit = Jit::Auto },
            Choice { word: "on", set: |f| f.app.process.jit = Jit::On },
            Choice { word: "off", set: |f| f.app.process.jit = Jit::Off },
        ]),
        default: Default::Is("auto"),
        section: Section::Processes,
        example: "off",
        doc: "Whether Ruby compiles what runs often (YJIT, from Ruby 3.1 on). `auto`: in production, if there is memory for the code, \
              128 MiB for each worker. `RUBY_YJIT_ENABLE` and options for it in `RUBYOPT` count before this option.",
    },
    Opt {
        name: "allocator",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::OneOf(&[
            Choice { word: "auto", set: |f| f.app.process.allocator = Allocator::Auto },
            Choice { word: "jemalloc", set: |f| f.app.process.allocator = Allocator::Jemalloc },
            Choice { word: "system", set: |f| f.app.process.allocator = Allocator::System },
        ]),
        default: Default::Is("auto"),
        section: Section::Processes,
        example: "system",
        doc: "Which allocator serves the application's `malloc`. `auto`: jemalloc in production, the system's elsewhere. \
              `LD_PRELOAD`, `GLIBC_TUNABLES` and variables `MALLOC_*` in the environment count before `auto`. Programs that the \
              application starts have the system's.",
    },
    Opt {
        name: "gc",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.process.gc = on),
        default: Default::Is("on"),
        section: Section::Processes,
        example: "on",
        doc: "Whether Highball tunes Ruby's garbage collector in production: half of the heap is free, if there is memory for it \
              (512 MiB for each worker), and workers collect garbage between requests. If a variable `RUBY_GC_*` is set, \
              Highball leaves the collector alone.",
    },
    Opt {
        name: "boot_cache",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.process.boot_cache = on),
        default: Default::Is("on"),
        section: Section::Processes,
        example: "off",
        doc: "Whether Highball keeps the Ruby files that the application loads in compiled form, in production, so that the next \
              boot takes less time. The folder is `highball/boot` in `CACHE_DIRECTORY`, in `XDG_CACHE_HOME`, or in `~/.cache` of \
              the application's user. Bootsnap goes before, if the application has it.",
    },
    Opt {
        name: "no_new_privs",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.process.no_new_privs = on),
        default: Default::Is("off"),
        section: Section::Processes,
        example: "on",
        doc: "Whether the application's processes, and all that they start, can never get more rights than their user \
              (`no_new_privs` of Linux). `sudo`, `sendmail` and other setuid programs then run as the application's user, and \
              mostly fail. An application that `rackup` or `rails server` has loaded is not affected.",
    },
    Opt {
        name: "refork_after",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Refork(1..=1_000_000_000, |f, after, origin| {
            f.app.process.refork_after = after;
            f.app.refork_origin = Some(origin.clone());
        }),
        default: Default::InDevelopment { yes: "off", no: "auto" },
        section: Section::Processes,
        example: "50,100,1000",
        doc: "Re-fork all workers from a warm one after it has served this many requests, so that they share the memory \
              that it has filled by then. With several numbers, the first counts for the first time, and so on; the last \
              one is repeated. With `auto`, Highball measures the memory of the workers, and reforks where that saves some \
              and nothing shows that the application cannot be forked while it serves. See `docs/restarts.md`.",
    },
    Opt {
        name: "rest_mold_after",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::DurationOrNone(MILLISECOND..=YEAR, |f, time| f.app.process.rest_mold_after = time),
        default: Default::InDevelopment { yes: "none", no: "10s" },
        section: Section::Processes,
        example: "1m",
        doc: "End the mold, the process from which workers are forked, when the only worker has served for this time. A single \
              worker shares memory with nothing else. The application boots again when another worker is needed. After \
              that, it stays until the next restart. It always stays with several workers, with `workers = auto` up to several, and \
              with `memory_limit`. See `docs/tuning.md`.",
    },
    Opt {
        name: "memory_limit",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Memory(false, |f, bound| f.app.memory.worker = bound),
        default: Default::Is("none"),
        section: Section::Processes,
        example: "512m",
        doc: "Memory that one worker may have before another one takes its place: a size, or a share of the memory of the machine or \
              container. Counted is what the worker and processes that it has started do not share with others, and their part \
              of what they share, also in swap. The worker's requests finish. See `docs/tuning.md`.",
    },
    Opt {
        name: "memory_budget",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::Memory(true, |f, bound| f.app.memory.app = bound),
        default: Default::Is("auto"),
        section: Section::Processes,
        example: "2g",
        doc: "Memory that all processes of the application may have together before the worker is replaced that has grown the most. \
              With `auto`, all applications share 85% of the memory of the machine or container. An application with its own budget \
              is not affected by what others take. See `docs/tuning.md`.",
    },
    Opt {
        name: "memory_max",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::SizeOrNone(16 * MIB..=PIB, |f, bytes| f.app.memory.max = bytes),
        default: Default::Is("none"),
        section: Section::Processes,
        example: "2g",
        doc: "Memory that the kernel lets all processes of the application have together, by a separate cgroup (memory.max); beyond \
              it, the kernel kills one of them. Workers are replaced before that, at 85% of it. Counted are also files that the kernel \
              keeps in memory for them. Highball has to be root, or its cgroup delegated to it. See `docs/tuning.md`.",
    },
    Opt {
        name: "cpu_max",
        scope: Scope::Privileged,
        short: None,
        env: &[],
        form: Form::CpusOrNone(|f, cpus| f.app.cpu_max = cpus),
        default: Default::Is("none"),
        section: Section::Processes,
        example: "1.5",
        doc: "CPUs that all processes of the application may use at a time, by a separate cgroup (cpu.max). With `workers = auto`, \
              the number of workers follows it. Highball has to be root, or its cgroup delegated to it. See `docs/tuning.md`.",
    },
    Opt {
        name: "max_boot_failures",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Count(1..=1000, |f, count| fit(count, &mut f.app.process.max_boot_failures)),
        default: Default::Is("5"),
        section: Section::Processes,
        example: "2",
        doc: "Give up after this many workers in a row die before serving.",
    },
    Opt {
        name: "log_format",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::OneOf(&[
            Choice { word: "human", set: |f| f.server.log_format = LogFormat::Human },
            Choice { word: "json", set: |f| f.server.log_format = LogFormat::Json },
        ]),
        default: Default::Is("human"),
        section: Section::Logs,
        example: "json",
        doc: "Form of the log on standard error: `human` or `json`.",
    },
    Opt {
        name: "access_log",
        scope: Scope::ServerAndApp,
        short: None,
        env: &[],
        form: Form::LogFile(|f, log| f.access_log = Some(log)),
        default: Default::InDevelopment { yes: "-", no: "none" },
        section: Section::Logs,
        example: "log/access.log",
        doc: "File for a line about each request. `-` is standard output, `none` is no access log. Status 499 means that the client \
              left before it had its answer. Started by root, Highball \
              writes the log of an application in a folder of its user as that user; see `docs/users.md`.",
    },
    Opt {
        name: "access_log_format",
        scope: Scope::ServerAndApp,
        short: None,
        env: &[],
        form: Form::LineFormat(|f, format| f.access_log_format = Some(format)),
        default: Default::Is("combined"),
        section: Section::Logs,
        example: "{time} {status} {seconds} {method} {target}",
        doc: "Form of the lines of the access log: `combined`, `json`, or a text with names of fields in braces. An application may have \
              another one in its own `access_log`. The fields are listed in \
              [observability.md](observability.md#form-of-the-access-log).",
    },
    Opt {
        name: "access_log_sample",
        scope: Scope::ServerAndApp,
        short: None,
        env: &[],
        form: Form::Share(|f, share| f.access_log_sample = Some(share)),
        default: Default::Is("100%"),
        section: Section::Logs,
        example: "10%",
        doc: "Share of the requests that get a line in the access log, chosen at random. Requests with a status from 400 on, and those \
              that take a second or longer, always get one.",
    },
    Opt {
        name: "request_start",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.request_start = on),
        default: Default::Is("off"),
        section: Section::Logs,
        example: "on",
        doc: "Whether the application gets the time at which a request began to wait for a worker in `X-Request-Start`, if no proxy \
              has sent that field or `X-Queue-Start`: milliseconds since 1970. APM gems and autoscalers compute the queue time \
              from it. `env[\"highball.queue_time\"]` is there without this option. See `docs/observability.md`.",
    },
    Opt {
        name: "server_timing",
        scope: Scope::App,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.app.server_timing = on),
        default: Default::Is("off"),
        section: Section::Logs,
        example: "on",
        doc: "Whether the application's responses have a `Server-Timing` field, which browsers show in their developer tools: how many \
              milliseconds the request waited for a worker (`queue`), and how long the application took to begin its answer (`app`). \
              Everybody sees these times.",
    },
    Opt {
        name: "request_id",
        scope: Scope::Server,
        short: None,
        env: &[],
        form: Form::Switch(|f, on| f.server.request_id = on),
        default: Default::Is("off"),
        section: Section::Logs,
        example: "on",
        doc: "Whether each request has an id, in `X-Request-Id`: for the application, in the response, and at the end of its line in \
              the access log. One that came with the request is kept if it has only letters, digits, `_`, `-` and `@`; with \
              `trusted_proxies`, only if such a proxy has sent it. Other requests get a random UUID. With `off`, the field is passed \
              on as it came. See `docs/observability.md`.",
    },
];

/// The option of this name.
pub(crate) fn named(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// The name in `known` that `unknown` was most likely meant to be: a third of its letters may differ. One that only begins
/// in the same way is another word.
pub fn did_you_mean<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_ascii_lowercase().replace('-', "_");
    let most = (unknown.chars().count() / 3).max(1);
    known
        .filter(|name| strsim::damerau_levenshtein(&unknown, name) <= most)
        .map(|name| (strsim::jaro_winkler(&unknown, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ConfigError;
    use crate::fields::Fields;
    use crate::form::Place;
    use crate::given::{Origin, Raw};

    #[test]
    fn names_are_unique_and_docs_are_sentences() {
        for (index, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..index].iter().all(|other| other.name != option.name), "{} twice", option.name);
            assert!(
                option.doc.ends_with('.') && !option.doc.contains("  "),
                "{}: {}",
                option.name,
                option.doc
            );
        }
    }

    /// What is stored of this text.
    fn stored(option: &Opt, text: &str) -> Result<Fields, ConfigError> {
        let env = |name: &str| (name == "PATH").then(|| "/bin".into());
        let place = Place { current: "/".into(), env: &env };
        let raw = Raw { text: text.into(), origin: Origin::Default { name: option.name } };
        let mut fields = Fields::default();
        option.form.store(&[raw], &mut fields, &place).map(|()| fields)
    }

    #[test]
    fn each_option_is_stored_in_a_field_that_no_other_has() {
        for option in OPTIONS {
            let example = match option.form {
                Form::Program(_) => "/bin/sh",
                Form::User(_) => "root",
                Form::Switch(_) | Form::Flag(_) => "on",
                _ => option.example,
            };
            let fields = stored(option, example).unwrap_or_else(|error| panic!("{}: {error}", option.name));
            assert_ne!(fields, Fields::default(), "{} is not stored", option.name);
            for other in OPTIONS.iter().filter(|other| other.name != option.name) {
                let its = stored(other, example).ok();
                assert_ne!(Some(&fields), its.as_ref(), "{} and {} share a field", option.name, other.name);
            }
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_option() {
        for option in OPTIONS {
            let texts = match option.default {
                Default::Is(text) => vec![text],
                Default::InDevelopment { yes, no } => vec![yes, no],
                Default::Without(_) => vec![],
            };
            for text in texts {
                assert!(stored(option, text).is_ok(), "{}: {text}", option.name);
            }
        }
    }

    #[test]
    fn the_ends_of_each_range_fit_its_field() {
        for option in OPTIONS {
            if let Form::Count(range, _) | Form::CountOrAuto(range, _) | Form::CountOrRange(range, _) =
                &option.form
            {
                for end in [range.start(), range.end()] {
                    assert!(stored(option, &end.to_string()).is_ok(), "{}: {end}", option.name);
                }
            }
        }
    }

    #[test]
    fn misspelt_names_are_recognised() {
        let guess = |name| did_you_mean(name, OPTIONS.iter().map(|option| option.name));
        assert_eq!(guess("wokers"), Some("workers"));
        assert_eq!(guess("idle-timeout"), Some("idle_timeout"));
        assert_eq!(guess("Port"), Some("port"));
        assert_eq!(guess("ssl_certificate"), Some("tls_certificate"));
        for other in ["xyzzy", "server", "app", "log", "tls", "timeout", "max", "pool"] {
            assert_eq!(guess(other), None, "{other}");
        }
    }
}
