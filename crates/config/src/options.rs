//! The table of options. Everything a user can set is here once: the command line, the configuration
//! file, the environment variables and the manual are made from it.

use std::time::Duration;

use crate::fields::{Stored, Value};
use crate::form::{
    at_most, several, table, Count, Notation, OneOf, OrAuto, OrNone, OrOff, Size, Time, AFFINITY, CLASS,
    COLLECTOR, COMPANIONS, CPUS, DOMAIN, EMAIL, ENVIRONMENT, FLAG, HEADER, HEADER_RULE, HOST, LINE_FORMAT,
    LISTEN, LOG_FILE, MAINTENANCE_FILE, MEMORY, MEMORY_OR_AUTO, NETWORKS, ONE_HOST, PATH, PATH_PATTERN,
    PATH_TIMEOUT, PREFIX, PROCFILE, PROGRAM, QUOTABLE, RATE_LIMIT, REDIRECT, REFORK, SENT_FOLDER, SHARE,
    SWITCH, THREADS, URL_PATH, USER, VARIABLE, VARIABLE_NAME, WORD, WRITABLE_FOLDER,
};
use crate::rate_limit;
use crate::redirects;
use crate::response_headers;
use crate::settings::{Allocator, ClientAuth, Jit, LogFormat, ShowDiagnosis};
use crate::value::{PATHS, SENT_FOLDERS};
use OtherName::{Letter, Long, Variable};

/// One option of `highball serve`.
pub(crate) struct Opt {
    /// Its name: `head_timeout` in the file, `--head-timeout` on the command line, `HIGHBALL_HEAD_TIMEOUT`
    /// in the environment.
    pub(crate) name: &'static str,
    /// Whose option it is.
    pub(crate) scope: Scope,
    /// The form of its value, and the field that it is stored in.
    pub(crate) value: &'static dyn Stored,
    /// The default.
    pub(crate) default: Default,
    /// A value that is not the default, for the manual (and for the tests).
    pub(crate) example: &'static str,
    /// What it does: the first sentence is for the help, the rest for the manual alone.
    pub(crate) doc: &'static str,
}

/// A name of an option beside those made from its name.
enum OtherName {
    /// The letter for the command line.
    Letter(char),
    /// A variable that platforms and frameworks set for it.
    Variable(&'static str),
    /// The long name on the command line, where that is not the option's own.
    Long(&'static str),
}

/// The options that have other names. Of variables, the first counts.
const OTHER_NAMES: &[(&str, &[OtherName])] = &[
    ("port", &[Letter('p'), Variable("PORT")]),
    ("bind", &[Letter('b'), Variable("BINDING")]),
    ("environment", &[Letter('e'), Variable("RAILS_ENV"), Variable("RACK_ENV"), Variable("APP_ENV")]),
    (
        "threads",
        &[Letter('t'), Variable("RAILS_MAX_THREADS"), Variable("PUMA_MAX_THREADS"), Variable("MAX_THREADS")],
    ),
    ("workers", &[Letter('w'), Variable("WEB_CONCURRENCY")]),
    ("config", &[Letter('c')]),
    ("pidfile", &[Variable("PIDFILE")]),
    ("idle_timeout", &[Variable("PUMA_PERSISTENT_TIMEOUT")]),
    ("process", &[Long("with")]),
];

/// Whose option it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The server's, on the command line and in the environment alone: a configuration file cannot name itself.
    Start,
    /// The server's: there is one value, and another one takes effect with a new server.
    Server,
    /// Each application has its own. The server's value is their default.
    App(Applies),
    /// As `App`, but it decides what Highball does with its own rights: a file of another user may not give it.
    Privileged(Applies),
    /// The server's, and an application may have its own beside it. Privileged as well.
    ServerAndApp(Applies),
    /// Each application has its own, and it makes no sense for several.
    OneApp(Applies),
    /// As `OneApp`; it says where the application is reached. Where applications belong to several users, only the
    /// server's file may give it.
    Route(Applies),
}

impl Scope {
    /// Whether one value can hold for several applications.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Scope::App(_) | Scope::Privileged(_) | Scope::ServerAndApp(_))
    }

    /// Whether it decides what Highball does with its own rights.
    pub(crate) fn is_privileged(self) -> bool {
        matches!(self, Scope::Privileged(_) | Scope::ServerAndApp(_))
    }

    /// Whether it makes no sense for several applications.
    pub(crate) fn is_of_one(self) -> bool {
        matches!(self, Scope::OneApp(_) | Scope::Route(_))
    }

    /// When a changed value takes effect.
    pub(crate) fn applies(self) -> Applies {
        match self {
            Scope::Start => Applies::AtStart,
            Scope::Server => Applies::WithNewServer,
            Scope::App(applies)
            | Scope::Privileged(applies)
            | Scope::ServerAndApp(applies)
            | Scope::OneApp(applies)
            | Scope::Route(applies) => applies,
        }
    }
}

/// When a changed value takes effect. An application's own value of an option of the server's does so at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applies {
    /// When HUP has read the configuration again.
    AtOnce,
    /// The same; but a server that was started without any such limit has no cgroups, and makes them at its next start.
    AtOnceAfterFirst,
    /// As `AtOnce`, in new processes of the application, which HUP starts in the place of the others.
    WithNewProcesses,
    /// In a new process of the server.
    WithNewServer,
    /// When the server is started.
    AtStart,
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
    /// One value if `log_format` is `json`, another one otherwise.
    WithJsonLog {
        /// With `log_format = "json"`.
        yes: &'static str,
        /// With every other one.
        no: &'static str,
    },
    /// No value; the text says what that means.
    Without(&'static str),
}

impl Opt {
    /// Its long name on the command line, without the dashes before it: `head-timeout`.
    pub(crate) fn long(&self) -> String {
        let other = self.other_names().iter().find_map(|name| match name {
            Long(name) => Some((*name).to_owned()),
            Letter(_) | Variable(_) => None,
        });
        other.unwrap_or_else(|| self.name.replace('_', "-"))
    }

    /// Its own environment variable: `HIGHBALL_HEAD_TIMEOUT`.
    pub(crate) fn own_variable(&self) -> String {
        format!("HIGHBALL_{}", self.name.to_ascii_uppercase())
    }

    fn other_names(&self) -> &'static [OtherName] {
        OTHER_NAMES.iter().find(|(name, _)| *name == self.name).map_or(&[], |(_, names)| names)
    }

    /// All its environment variables; the first that is set counts.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> {
        let others = self.other_names().iter().filter_map(|name| match name {
            Variable(name) => Some((*name).to_owned()),
            Letter(_) | Long(_) => None,
        });
        std::iter::once(self.own_variable()).chain(others)
    }

    /// The letter for the command line.
    pub(crate) fn letter(&self) -> Option<char> {
        self.other_names().iter().find_map(|name| match name {
            Letter(letter) => Some(*letter),
            Variable(_) | Long(_) => None,
        })
    }

    /// Whether it may stand in a configuration file.
    pub(crate) fn in_file(&self) -> bool {
        self.scope != Scope::Start
    }

    /// Whether it names the user that an application runs as.
    pub(crate) fn is_user(&self) -> bool {
        self.name == "user"
    }

    /// Whether it is the environment of the application, on which defaults of other options depend.
    pub(crate) fn is_environment(&self) -> bool {
        self.name == "environment"
    }

    /// Whether it says if a Puma configuration counts.
    pub(crate) fn is_puma_config(&self) -> bool {
        self.name == "puma_config"
    }

    /// Whether it is a certificate, or its key.
    pub(crate) fn is_certificate(&self) -> bool {
        matches!(self.name, "tls_certificate" | "tls_key")
    }

    /// Whether it says how the lines of an access log are written, or which are.
    pub(crate) fn is_about_log_lines(&self) -> bool {
        matches!(self.name, "access_log_format" | "access_log_sample")
    }

    /// Whether it may be given several times.
    pub(crate) fn repeats(&self) -> bool {
        self.separator().is_some()
    }

    /// What separates several values in a variable, if there may be several.
    pub(crate) fn separator(&self) -> Option<char> {
        match self.value.form().notation() {
            Notation::List | Notation::Table => Some(','),
            Notation::Entries => Some('\n'), // a command may have commas
            Notation::Text | Notation::Number | Notation::Switch | Notation::Flag => None,
        }
    }

    /// The option with its value, as the help has it.
    pub(crate) fn synopsis(&self) -> String {
        let (long, metavar) = (self.long(), self.value.form().metavar());
        match self.value.form().notation() {
            Notation::Flag => format!("--{long}[={metavar}]"),
            _ => format!("--{long} {metavar}"),
        }
    }

    /// The option with this value, as arguments.
    pub(crate) fn arguments(&self, text: String) -> Vec<String> {
        let long = self.long();
        match self.value.form().notation() {
            Notation::Flag => vec![format!("--{long}={text}")],
            _ => vec![format!("--{long}"), text],
        }
    }

    /// The default in words.
    pub(crate) fn default_text(&self) -> String {
        match self.default {
            Default::Is(value) => value.into(),
            Default::InDevelopment { yes, no } => format!("{no}; in development {yes}"),
            Default::WithJsonLog { yes, no } => format!("{no}; with log_format = json {yes}"),
            Default::Without(text) => text.into(),
        }
    }
}

/// Times without a natural limit end here; a year is for ever, to a server.
const YEAR: Duration = Duration::from_secs(365 * 86400);
const TWO_YEARS: Duration = Duration::from_secs(2 * 365 * 86400);
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86400);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const PIB: u64 = 1 << 50;

/// The options by the sections of the help and of the manual.
pub(crate) static SECTIONS: &[(&str, &[Opt])] = &[
    ("Addresses and proxies", ADDRESSES),
    ("HTTPS and certificates", HTTPS),
    ("Application and Ruby", APPLICATION),
    ("Workers, threads and memory", WORKERS),
    ("Start, stop and restart", PROCESSES),
    ("Time limits", TIMES),
    ("Size and count limits", SIZES),
    ("Static files, compression and cache", FILES),
    ("Real-time hub", HUB),
    ("Health checks, metrics and dashboard", HEALTH),
    ("Logs and request timing", LOGS),
    ("Users and access", SECURITY),
    ("Several applications", APPS),
];

/// All options, in the order of the help.
pub(crate) fn options() -> impl Iterator<Item = &'static Opt> {
    SECTIONS.iter().flat_map(|(_, options)| *options)
}

/// Where clients reach the server, and what proxies report of them.
static ADDRESSES: &[Opt] = &[
    Opt {
        name: "port",
        scope: Scope::Server,
        value: &Value(Count(0..=65535), |f| &mut f.port),
        default: Default::Is("3000"),
        example: "8080",
        doc: "TCP port for HTTP addresses that name none. With 0, the system chooses a free port, which the first log lines \
              show.",
    },
    Opt {
        name: "bind",
        scope: Scope::Server,
        value: &Value(several(LISTEN), |f| &mut f.binds),
        default: Default::InDevelopment { yes: "127.0.0.1", no: "0.0.0.0" },
        example: "tls://0.0.0.0:443",
        doc: "Address to listen on. You can repeat it; in the file, use a list. Write an IP address or `localhost`, with or \
              without a port, such as `127.0.0.1`, `0.0.0.0:4000` or `[::1]:4000`, or `unix:/path` for a Unix socket. \
              `tls://0.0.0.0:443` serves HTTPS; see [https.md](https.md). `fastcgi://127.0.0.1:9000` and `fastcgi+unix:/path` \
              serve web servers over FastCGI, `lsapi://127.0.0.1:9001` and `lsapi+unix:/path` over LSAPI; see \
              [protocols.md](protocols.md). `0.0.0.0` accepts connections from every network: behind a web server on the same \
              machine, use `127.0.0.1` or a Unix socket.",
    },
    Opt {
        name: "proxy_protocol",
        scope: Scope::Server,
        value: &Value(
            OneOf(&[("off", (false, false)), ("v1", (true, false)), ("v2", (false, true)), ("v1,v2", (true, true))]),
            |f| &mut f.proxy_versions,
        ),
        default: Default::Is("off"),
        example: "v2",
        doc: "Versions of the PROXY protocol that load balancers send on HTTP connections. `REMOTE_ADDR` is then the client's \
              address. Each HTTP connection must begin with the header of the protocol; Highball closes others. Set it if your \
              load balancer forwards TCP connections, not HTTP requests. See [protocols.md](protocols.md).",
    },
    Opt {
        name: "proxy_protocol_from",
        scope: Scope::Server,
        value: &Value(several(NETWORKS), |f| &mut f.server.proxy_protocol.from),
        default: Default::Is("loopback"),
        example: "10.0.0.0/8",
        doc: "Load balancer that may use `proxy_protocol`: an address or a network. `loopback` is this machine, `private` all \
              private networks. You can repeat it; in the file, use a list. Highball closes connections from other addresses. \
              Unix sockets are always trusted, because their file permissions control who can connect.",
    },
    Opt {
        name: "trusted_proxies",
        scope: Scope::Server,
        value: &Value(several(NETWORKS), |f| &mut f.server.trusted_proxies),
        default: Default::Is("none"),
        example: "10.0.0.0/8",
        doc: "HTTP proxy in front of Highball whose headers are trusted: an address or a network. Set it if a web server or load \
              balancer forwards requests. `loopback` is this machine, `private` all private networks. You can repeat it; in the \
              file, use a list. For its requests, `REMOTE_ADDR` is the client in `X-Forwarded-For` or `Forwarded`, and \
              `rack.url_scheme` is the scheme in `X-Forwarded-Proto` or `Forwarded`. Requests from other addresses lose these \
              headers, and also `X-Forwarded-Host`, `X-Real-IP` and the like. Unix sockets are always trusted. With `none`, the \
              application gets these headers from every client, and any client can forge them. See \
              [deploying/behind-a-web-server.md](deploying/behind-a-web-server.md).",
    },
    Opt {
        name: "canonical_host",
        scope: Scope::OneApp(Applies::AtOnce),
        value: &Value(ONE_HOST, |f| &mut f.app.redirects.canonical_host),
        default: Default::Without("none; every host of the application serves it"),
        example: "blog.example.org",
        doc: "Host name that visitors should use. Requests for other hosts of the application are redirected to it (status 308), \
              with path and query, and over HTTPS at once if `redirect_https` is on. If the application has `hosts`, it must be one \
              of them. See [redirects.md](redirects.md).",
    },
    Opt {
        name: "redirects",
        scope: Scope::OneApp(Applies::AtOnce),
        value: &Value(at_most(redirects::MOST, "redirects", REDIRECT), |f| &mut f.app.redirects.list),
        default: Default::Without("none"),
        example: "/old/* /new/*",
        doc: "Path that has moved, its new path or URL, and optionally a status: 301 (the default), 302, 307 or 308. A `*` at its \
              end matches any rest of the path, and the rest takes the place of a `*` at the end of the target. The query is kept. \
              Both paths are below the application's `prefix`. You can repeat it; in the file, use a list. See \
              [redirects.md](redirects.md).",
    },
    Opt {
        name: "response_headers",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(at_most(response_headers::MOST, "changes to header fields", HEADER_RULE), |f| &mut f.app.response_headers),
        default: Default::Without("none"),
        example: "X-Frame-Options: DENY",
        doc: "Header field that responses get, for all paths or for a path: `X-Frame-Options: DENY`, `/fonts/* \
              Access-Control-Allow-Origin: *`. `NAME: VALUE` replaces the application's field, `+NAME: VALUE` adds \
              another, and `-NAME` removes it. You can repeat it; in the file, use a list. See \
              [response-headers.md](response-headers.md).",
    },
    Opt {
        name: "http2_cleartext",
        scope: Scope::Server,
        value: &Value(SWITCH, |f| &mut f.server.http2_cleartext),
        default: Default::Is("off"),
        example: "on",
        doc: "Serve HTTP/2 without TLS on HTTP addresses, to clients that begin with it (prior knowledge). HTTP/1 stays \
              available. Switch it on for load balancers and service meshes that speak HTTP/2. See [protocols.md](protocols.md).",
    },
];

/// Certificates, and the way from HTTP to HTTPS.
static HTTPS: &[Opt] = &[
    Opt {
        name: "https",
        scope: Scope::Server,
        value: &Value(FLAG, |f| &mut f.server.tls.is_local),
        default: Default::Is("off"),
        example: "off",
        doc: "Serve HTTPS in development with certificates for `localhost` and names below it, such as `blog.localhost`. \
              Highball creates a local certificate authority on first start; trust it once in your browser. HTTP addresses \
              become HTTPS addresses, unless `bind` names one with `tls://`. Outside of development, and together with \
              `tls_certificate` or `domain`, it is an error. See [https.md](https.md).",
    },
    Opt {
        name: "tls_certificate",
        scope: Scope::ServerAndApp(Applies::AtOnce),
        value: &Value(several(PATH), |f| &mut f.tls_certificates),
        default: Default::Without("none; HTTPS addresses need one"),
        example: "/etc/highball/blog.example.com.pem",
        doc: "PEM file with a TLS certificate, followed by its intermediate certificates (certbot's `fullchain.pem`). You can \
              repeat it; in the file, use a list. Each client gets the certificate for the host name that it sends (SNI), or \
              else the first one. Certificates in an `[[app]]` apply to its `hosts` only. Highball reads the files again when \
              they change, and after HUP. See [https.md](https.md).",
    },
    Opt {
        name: "tls_key",
        scope: Scope::ServerAndApp(Applies::AtOnce),
        value: &Value(several(PATH), |f| &mut f.tls_keys),
        default: Default::Without("the certificate file"),
        example: "/etc/highball/blog.example.com.key",
        doc: "PEM file with the private key of `tls_certificate`, not encrypted. Leave it out if the certificate's file also \
              contains the key. With several certificates, give a key for each, in the same order.",
    },
    Opt {
        name: "tls_client_ca",
        scope: Scope::Privileged(Applies::WithNewProcesses),
        value: &Value(PATH, |f| &mut f.app.client_certificates.authorities),
        default: Default::Without("none; clients are asked for no certificate"),
        example: "/etc/highball/clients.pem",
        doc: "PEM file with the certificates of the authorities that issue certificates to clients. Only clients with a valid \
              certificate of these authorities reach the application, and only over HTTPS (see `tls_client_auth`). It applies \
              to the application's `hosts`. See [client-certificates.md](client-certificates.md).",
    },
    Opt {
        name: "tls_client_auth",
        scope: Scope::Privileged(Applies::AtOnce),
        value: &Value(
            OneOf(&[
                ("required", ClientAuth::Required),
                ("optional", ClientAuth::Optional),
                ("off", ClientAuth::Off),
            ]),
            |f| &mut f.app.client_certificates.auth,
        ),
        default: Default::Is("required"),
        example: "optional",
        doc: "Clients that reach an application with `tls_client_ca`. `required`: clients with a valid certificate. `optional`: \
              clients without a certificate, too; the application decides what they may do. `off`: no client is asked, for an \
              application beside others. See [client-certificates.md](client-certificates.md).",
    },
    Opt {
        name: "domain",
        scope: Scope::Server,
        value: &Value(several(DOMAIN), |f| &mut f.acme.domains),
        default: Default::Without("none; no authority is asked"),
        example: "blog.example.com",
        doc: "Domain name to get an automatic certificate for. Highball obtains it from Let's Encrypt, or from the ACME \
              authority in `acme_directory`, and renews it. You can repeat it; in the file, use a list. `hosts` means the \
              `hosts` of all applications. Unless you set `bind`, the server listens on ports 443 and 80 and redirects HTTP to \
              HTTPS. The authority must reach the name at port 80 or 443, unless you set `acme_dns_hook`. It is not available if \
              root starts Highball for applications of other users. See [https.md](https.md).",
    },
    Opt {
        name: "domain_on_demand",
        scope: Scope::Server,
        value: &Value(several(DOMAIN), |f| &mut f.acme.on_demand.listed),
        default: Default::Without("none"),
        example: "*.example.com",
        doc: "Domain name whose certificate is obtained when the first client asks for it. Otherwise it is like `domain`. \
              `*.example.com` matches one extra label; each name gets its own certificate. Use it only if each of these names \
              has its own DNS entry: with a wildcard entry, anyone can make you request certificates for random names, up to the \
              authority's rate limit. You can repeat it; in the file, use a list. See [https.md](https.md#names-on-demand).",
    },
    Opt {
        name: "domain_ask",
        scope: Scope::Server,
        value: &Value(URL_PATH, |f| &mut f.acme.on_demand.ask),
        default: Default::Without("none; the application is not asked"),
        example: "/certificates/allowed",
        doc: "Path at which the application decides whether a name gets a certificate. When a client asks for a name that no \
              option lists, Highball sends the application `GET PATH?domain=NAME`. Status 200 means yes; any other response, and \
              none within ten seconds, means no. Use it if customers bring their own domains. See \
              [https.md](https.md#names-on-demand).",
    },
    Opt {
        name: "acme_directory",
        scope: Scope::Server,
        value: &Value(WORD, |f| &mut f.acme.directory),
        default: Default::Is("https://acme-v02.api.letsencrypt.org/directory"),
        example: "https://acme-staging-v02.api.letsencrypt.org/directory",
        doc: "URL of the ACME directory of the authority that issues certificates for `domain`. It begins with `https://`. For \
              testing, use the staging directory, `https://acme-staging-v02.api.letsencrypt.org/directory`: its limits are high, \
              and browsers do not trust its certificates.",
    },
    Opt {
        name: "acme_contact",
        scope: Scope::Server,
        value: &Value(several(EMAIL), |f| &mut f.acme.contacts),
        default: Default::Without("none"),
        example: "admin@example.com",
        doc: "E-mail address for the ACME authority. Some authorities require one. You can repeat it; in the file, use a list.",
    },
    Opt {
        name: "acme_authorities",
        scope: Scope::Server,
        value: &Value(PATH, |f| &mut f.acme.authorities),
        default: Default::Without("the machine's certificate authorities"),
        example: "/etc/highball/authority.pem",
        doc: "PEM file with the CA certificate for the server of a private ACME authority. Set it if this machine does not trust \
              that server.",
    },
    Opt {
        name: "acme_eab_kid",
        scope: Scope::Server,
        value: &Value(WORD, |f| &mut f.acme_eab_kid),
        default: Default::Without("none"),
        example: "kid-1",
        doc: "Key identifier of your account with the ACME authority (external account binding). Set it, together with \
              `acme_eab_key_file`, if the authority requires an account that you create on its site, as ZeroSSL and Google Trust \
              Services do.",
    },
    Opt {
        name: "acme_eab_key_file",
        scope: Scope::Server,
        value: &Value(PATH, |f| &mut f.acme_eab_key_file),
        default: Default::Without("none"),
        example: "/etc/highball/eab.key",
        doc: "File with the HMAC key for `acme_eab_kid`, in Base64, as the authority shows it. Only Highball's user should be \
              able to read it. Highball reads it once, when it registers with the authority.",
    },
    Opt {
        name: "acme_dns_hook",
        scope: Scope::Server,
        value: &Value(PATH, |f| &mut f.acme.dns_hook),
        default: Default::Without("none; the authority asks this server"),
        example: "/usr/local/bin/acme-dns",
        doc: "Program that adds DNS entries, to prove that you control a `domain` (DNS-01). With it, a `domain` may be a \
              wildcard such as `*.example.com`, and no port has to be reachable from the internet. Highball calls `PROGRAM \
              present NAME VALUE`, and later `PROGRAM cleanup NAME VALUE`. A call that takes longer than 120 seconds has failed. \
              See [https.md](https.md#wildcard-names-and-the-dns).",
    },
    Opt {
        name: "state_dir",
        scope: Scope::Server,
        value: &Value(PATH, |f| &mut f.state_dir),
        default: Default::Without("`acme` in systemd's `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`"),
        example: "/var/lib/highball",
        doc: "Folder for the accounts, certificates and keys of `domain`. Highball creates it if it is missing; no other user \
              can read it. Back it up: if it is lost, Highball obtains new certificates. One server at a time writes to it: give each its own folder.",
    },
    Opt {
        name: "redirect_https",
        scope: Scope::Server,
        value: &Value(SWITCH, |f| &mut f.redirect_https),
        default: Default::Without("`off`; `on` with `domain` and without `bind`"),
        example: "on",
        doc: "Redirect HTTP clients to HTTPS (status 308). Clients that name no port are sent to port 443, others to the first \
              HTTPS address. Unix sockets, FastCGI and LSAPI are not redirected.",
    },
    Opt {
        name: "hsts",
        scope: Scope::Server,
        value: &Value(OrNone(Time(Duration::ZERO..=TWO_YEARS)), |f| &mut f.server.tls.hsts),
        default: Default::Is("none"),
        example: "365d",
        doc: "Time for which browsers use only HTTPS for a host (`Strict-Transport-Security`). The header of the application \
              takes precedence. Begin with `1h`, because browsers remember it; `0s` ends it in browsers that come back. It needs \
              an HTTPS address, and has no effect with `https`.",
    },
];

/// How an application is loaded and run.
static APPLICATION: &[Opt] = &[
    Opt {
        name: "environment",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(ENVIRONMENT, |f| &mut f.app.environment),
        default: Default::Is("development"),
        example: "production",
        doc: "Environment that the application runs in. Its processes get it as `RAILS_ENV`, `RACK_ENV` and `APP_ENV`. \
              `development` changes the defaults of other options: one worker, no request timeout, no compression, and access \
              from this machine only.",
    },
    Opt {
        name: "early_hints",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.early_hints),
        default: Default::Is("off"),
        example: "on",
        doc: "Let the application send early hints (status 103). Rails then sends one for each stylesheet and script of a page. \
              Some old clients and proxies do not understand them.",
    },
    Opt {
        name: "config",
        scope: Scope::Start,
        value: &Value(PATH, |f| &mut f.config),
        default: Default::Without("config/highball.toml, highball.toml or config/puma.rb in the application, if there is one"),
        example: "/etc/highball/blog.toml",
        doc: "Configuration file, instead of the files in the application's folder. A name that ends in `.rb` is a Puma \
              configuration; see [migrating/puma-statements.md](migrating/puma-statements.md).",
    },
    Opt {
        name: "puma_config",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.puma_config),
        default: Default::Is("on"),
        example: "off",
        doc: "Apply the application's `config/puma.rb`. It sets options that no other source sets, and its hooks run. Switch it \
              off to ignore the file. See [migrating/puma.md](migrating/puma.md#configpumarb).",
    },
    Opt {
        name: "ruby",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(PROGRAM, |f| &mut f.app.ruby),
        default: Default::Without("the version that the application's files and rbenv, mise or asdf choose, else `ruby` in PATH"),
        example: "/opt/ruby/bin/ruby",
        doc: "Ruby that runs the application: a path, or a name to look up in `PATH`. Set it if the version file and version \
              manager do not choose the right one.",
    },
    Opt {
        name: "preload",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.process.preload),
        default: Default::Is("on"),
        example: "on",
        doc: "Load the application once, before workers are forked, so that they share its memory. Switch it off if the \
              application is not fork-safe: each worker then loads the application, which takes more time and memory.",
    },
    Opt {
        name: "jit",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(
            OneOf(&[("auto", Jit::Auto), ("on", Jit::On), ("off", Jit::Off)]),
            |f| &mut f.app.process.jit,
        ),
        default: Default::Is("auto"),
        example: "off",
        doc: "Ruby's compiler, YJIT (Ruby 3.1 and later). With `auto`, it is on in production if each worker may have 128 MiB of \
              memory; `on` turns it on everywhere. `RUBY_YJIT_ENABLE`, and options for the compiler in `RUBYOPT`, take \
              precedence. See [ruby-speed.md](ruby-speed.md).",
    },
    Opt {
        name: "allocator",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(
            OneOf(&[("auto", Allocator::Auto), ("jemalloc", Allocator::Jemalloc), ("system", Allocator::System)]),
            |f| &mut f.app.process.allocator,
        ),
        default: Default::Is("auto"),
        example: "system",
        doc: "Memory allocator of the application's processes. With `auto`, it is jemalloc in production and the system's elsewhere. \
              `LD_PRELOAD`, `GLIBC_TUNABLES` and `MALLOC_*` variables take precedence over `auto`. Programs that the application \
              starts use the system's. See [ruby-speed.md](ruby-speed.md).",
    },
    Opt {
        name: "gc",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.process.gc),
        default: Default::Is("on"),
        example: "on",
        doc: "Tune Ruby's garbage collector in production. 45% of the heap is free if each worker may have 512 MiB of memory, \
              otherwise less, and workers collect garbage between requests. If a `RUBY_GC_*` variable is set, Highball leaves \
              the collector alone. See [ruby-speed.md](ruby-speed.md).",
    },
    Opt {
        name: "boot_cache",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.process.boot_cache),
        default: Default::Is("on"),
        example: "off",
        doc: "Keep the application's Ruby files in compiled form, in production, so that the next boot is faster. The folder is \
              `highball/boot` in `CACHE_DIRECTORY`, in `XDG_CACHE_HOME`, or in `~/.cache` of the application's user, and has at \
              most 256 MiB. If the application has Bootsnap, Highball leaves this to it. See [ruby-speed.md](ruby-speed.md).",
    },
    Opt {
        name: "process",
        scope: Scope::OneApp(Applies::AtOnce),
        value: &Value(COMPANIONS, |f| &mut f.app.companions),
        default: Default::Without("none"),
        example: "jobs=bin/jobs",
        doc: "Process that runs beside the application's workers, such as background jobs: a name, and a command for \
              the shell. You can repeat it. In a file, write a `[[process]]` for each, with `name` and `command`, and \
              if you like `count`, `fork`, `env`, `directory`, `restart`, `stop_timeout`, `start_after` and \
              `memory_limit`. Highball starts it when the application serves, restarts it with the application, and \
              ends it with TERM. In the environment variable, write one per line. See [jobs.md](jobs.md).",
    },
    Opt {
        name: "procfile",
        scope: Scope::OneApp(Applies::AtOnce),
        value: &Value(PROCFILE, |f| &mut f.procfile),
        default: Default::Without("none"),
        example: "web,worker",
        doc: "Processes of the application's `Procfile` that run beside its workers, as with `process`. `web` is Highball itself. See \
              [jobs.md](jobs.md#procfile).",
    },
];

/// How many processes and threads there are, and what they may take.
static WORKERS: &[Opt] = &[
    Opt {
        name: "workers",
        // The memory of a worker decides how its Ruby is tuned.
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrAuto(Count(0..=512)), |f| &mut f.workers),
        default: Default::InDevelopment { yes: "1", no: "auto" },
        example: "4",
        doc: "Number of worker processes. With `auto`, it follows the load, between `min_workers` and `max_workers`, and begins \
              with one worker per CPU, rounded up. CPU affinity, the CPU quota of the container and `cpu_max` count. 0 means one \
              worker, as in Puma. Set a number if you want a fixed one, or if the platform shares CPUs without a quota. See \
              [tuning.md](tuning.md#workers).",
    },
    Opt {
        name: "min_workers",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=512), |f| &mut f.min_workers),
        default: Default::Is("1"),
        example: "2",
        doc: "Smallest number of workers with `workers = auto`. Without requests, the number shrinks to it. Raise it if the first \
              requests after a quiet period must not wait.",
    },
    Opt {
        name: "max_workers",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrAuto(Count(1..=512)), |f| &mut f.max_workers),
        default: Default::Is("auto"),
        example: "8",
        doc: "Largest number of workers with `workers = auto`. `auto` means two per CPU, rounded up. If memory is short \
              (`memory_budget`), the number stops growing earlier. Raise it if requests mostly wait for a database or for other \
              services. See [tuning.md](tuning.md#workers).",
    },
    Opt {
        name: "threads",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrAuto(THREADS), |f| &mut f.threads),
        default: Default::Is("auto"),
        example: "3..32",
        doc: "Threads in each worker. A thread handles one request at a time. With a range such as `3..32`, a worker begins with \
              the smaller number. It gets another thread when requests queue while all of its threads wait for something else, \
              such as a database or another service, and ends idle ones later. A single number is fixed. `auto` means 3 in \
              development, else `3..32`, or less where memory is scarce. Use 1 if the application is not thread-safe. With a \
              range, Highball sets RAILS_MAX_THREADS for the application's database pool, unless it is set. See \
              [waiting.md](waiting.md).",
    },
    Opt {
        name: "refork_after",
        // A worker learns when it starts whether it may become the mold.
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(REFORK, |f| &mut f.app.process.refork_after),
        default: Default::InDevelopment { yes: "off", no: "auto" },
        example: "50,100,1000",
        doc: "Number of requests after which all workers are forked again, from a warm worker. The new workers share the memory \
              that requests have filled, such as compiled templates. Of several numbers, the first counts for the first refork, \
              and so on; the last one is repeated. With `auto`, Highball measures the memory of the workers, and reforks if that \
              saves memory and nothing shows that the application cannot be forked while it serves. See \
              [restarts.md](restarts.md#refork).",
    },
    Opt {
        name: "rest_mold_after",
        // A mold that has ended comes back with the others.
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrNone(Time(MILLISECOND..=YEAR)), |f| &mut f.app.process.rest_mold_after),
        default: Default::InDevelopment { yes: "none", no: "10s" },
        example: "1m",
        doc: "Time after which the mold ends if there is only one worker. The mold is the process that workers are forked from; \
              a single worker shares memory with nothing else, so the end of the mold saves memory. The application boots again \
              when another worker is needed, and the mold then stays until the next restart. It always stays with several \
              workers, with `workers = auto` if `max_workers` is more than 1, and with `memory_limit`. Use `none` if a worker \
              that dies must be replaced at once. See [tuning.md](tuning.md#memory).",
    },
    Opt {
        name: "memory_limit",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(MEMORY, |f| &mut f.app.memory.worker),
        default: Default::Is("none"),
        example: "512m",
        doc: "Memory of a worker above which Highball replaces it. Write a size, or a share of the memory of the machine or \
              container. The worker's private memory counts, with its part of shared memory, its swap, and the processes that it \
              has started. Another worker starts first, and the requests of the old one finish. Set it for an application that \
              leaks memory. See [tuning.md](tuning.md#memory-limits).",
    },
    Opt {
        name: "memory_budget",
        scope: Scope::Privileged(Applies::AtOnce),
        value: &Value(MEMORY_OR_AUTO, |f| &mut f.app.memory.app),
        default: Default::Is("auto"),
        example: "2g",
        doc: "Memory of all processes of the application, above which its largest worker is replaced. With `auto`, all \
              applications share 85% of the memory of the machine or container, and the worker that has grown most is replaced. \
              An application with its own budget is not affected by the others. Set it if other programs on the machine need \
              memory. See [memory-limits.md](memory-limits.md).",
    },
    Opt {
        name: "memory_max",
        scope: Scope::Privileged(Applies::AtOnceAfterFirst),
        value: &Value(OrNone(Size(16 * MIB..=PIB)), |f| &mut f.app.memory.max),
        default: Default::Is("none"),
        example: "2g",
        doc: "Memory that all processes of the application may have. The kernel enforces it with a cgroup (`memory.max`), and \
              kills a process that needs more. Highball replaces workers earlier, at 85% of it. Files that the kernel caches for \
              them count. Highball needs root, or a delegated cgroup. Set it to protect other applications from this one. See \
              [hard-limits.md](hard-limits.md).",
    },
    Opt {
        name: "cpu_max",
        scope: Scope::Privileged(Applies::AtOnceAfterFirst),
        value: &Value(OrNone(CPUS), |f| &mut f.app.cpu_max),
        default: Default::Is("none"),
        example: "1.5",
        doc: "CPUs that all processes of the application may use at a time. The kernel enforces it with a cgroup (`cpu.max`): \
              processes that have used their share wait. With `workers = auto`, the number of workers follows it. Highball needs \
              root, or a delegated cgroup. Set it to protect other applications from this one. See \
              [hard-limits.md](hard-limits.md).",
    },
];

/// Boots, stops and restarts.
static PROCESSES: &[Opt] = &[
    Opt {
        name: "pidfile",
        scope: Scope::Server,
        value: &Value(PATH, |f| &mut f.server.pidfile),
        default: Default::Without("none"),
        example: "tmp/pids/server.pid",
        doc: "File for the process id of the server. Highball removes it when it ends. Set it for programs that send signals to \
              the server.",
    },
    Opt {
        name: "boot_timeout",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.app.process.boot_timeout),
        default: Default::InDevelopment { yes: "300s", no: "60s" },
        example: "30s",
        doc: "Time for the application to boot, and for a worker to start. After that, the boot or start has failed. Raise it \
              for an application that boots slowly. While a boot waits for a CPU that others use, its time does not run (up to \
              nine times this limit).",
    },
    Opt {
        name: "drain_timeout",
        scope: Scope::Server,
        value: &Value(Time(Duration::ZERO..=YEAR), |f| &mut f.server.drain_timeout),
        default: Default::Is("30s"),
        example: "10s",
        doc: "Time for running requests to finish when the server stops or a worker is replaced. After that, they are cut off. \
              In a hot restart, idle connections stay open for the same time, for one more request. Set it longer than your \
              longest requests, and shorter than the time after which your process manager kills the server.",
    },
    Opt {
        name: "drain_grace",
        scope: Scope::Server,
        value: &Value(Time(Duration::ZERO..=YEAR), |f| &mut f.server.drain_grace),
        default: Default::Is("0s"),
        example: "10s",
        doc: "Time between the signal to stop and the moment when Highball accepts no new connections. Until then, it serves \
              requests as before, `/readyz` answers 503, and responses close their connections, so that load balancers stop sending requests \
              before the server stops. Set it longer than their health checks take to fail. A second signal ends it. See \
              [observability.md](observability.md#stop-behind-a-load-balancer).",
    },
    Opt {
        name: "hijacked_drain_timeout",
        scope: Scope::Server,
        value: &Value(Time(Duration::ZERO..=YEAR), |f| &mut f.server.hijacked_drain_timeout),
        default: Default::Is("5s"),
        example: "1m",
        doc: "Time for WebSockets and other hijacked connections to end. It begins when their worker is replaced, or when the \
              server stops or is replaced. Highball closes WebSockets one by one during this time, and other connections at its \
              end. It is never more than `drain_timeout`. Raise both if thousands of clients would reconnect at once. See \
              [restarts.md](restarts.md#websockets).",
    },
    Opt {
        name: "probe_path",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(URL_PATH, |f| &mut f.app.process.probe_path),
        default: Default::Is("/"),
        example: "/up",
        doc: "Path that a new version must answer in a restart before it gets clients' requests. With a status of 500 or more, \
              the old version stays. Highball sends the request to the first of the application's `hosts` (or `localhost`), \
              below its `prefix`. Set it if another path, such as `/up`, shows better whether the application works.",
    },
    Opt {
        name: "warm_up",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(several(URL_PATH), |f| &mut f.app.process.warm_up),
        default: Default::Without("only the `probe_path`"),
        example: "/posts",
        doc: "Path that Highball requests from each new worker in a restart or refork, before clients' requests. You can repeat \
              it; in the file, use a list. Name the pages that visitors request most: the first request of a worker takes \
              longer, because templates are compiled and connections are opened. Highball ignores the responses. See \
              [restarts.md](restarts.md#warm-up).",
    },
    Opt {
        name: "probe_timeout",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.app.process.probe_timeout),
        default: Default::Is("30s"),
        example: "10s",
        doc: "Time for a new version to answer the request for `probe_path`. Without an answer, the old version stays. Raise it \
              if the first request takes longer.",
    },
    Opt {
        name: "max_boot_failures",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=1000), |f| &mut f.app.process.max_boot_failures),
        default: Default::Is("5"),
        example: "2",
        doc: "Number of boots or workers that may fail in a row before they serve. If nothing else serves, Highball then exits. \
              Of several applications, only the affected one fails.",
    },
];

/// How long clients and the application may take.
static TIMES: &[Opt] = &[
    Opt {
        name: "head_timeout",
        scope: Scope::Server,
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.server.limits.head_timeout),
        default: Default::Is("15s"),
        example: "5s",
        doc: "Time for a request head to arrive, from its first byte. Slower ones get 408; over HTTP/2, Highball closes the \
              connection.",
    },
    Opt {
        name: "tls_handshake_timeout",
        scope: Scope::Server,
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.server.tls.handshake_timeout),
        default: Default::Is("10s"),
        example: "5s",
        doc: "Time for the TLS handshake of a connection. Highball closes connections that take longer.",
    },
    Opt {
        name: "body_timeout",
        scope: Scope::Server,
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.server.limits.body_timeout),
        default: Default::Is("30s"),
        example: "10s",
        doc: "Longest pause between two pieces of a request body. After a longer one, the request gets 408. Raise it for clients \
              with unreliable connections.",
    },
    Opt {
        name: "min_body_rate",
        scope: Scope::Server,
        value: &Value(Size(0..=GIB), |f| &mut f.server.limits.body_bytes_per_second),
        default: Default::Is("500"),
        example: "2k",
        doc: "Lowest average rate of a request body, in bytes per second. It counts once `body_timeout` has passed; slower \
              requests get 408. 0 limits only pauses. Lower it for clients with very slow connections.",
    },
    Opt {
        name: "idle_timeout",
        scope: Scope::Server,
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.server.limits.idle_timeout),
        default: Default::Is("65s"),
        example: "20s",
        doc: "Time for which a connection without a request stays open. Keep it longer than your load balancer does (60 seconds \
              for most), or the load balancer may send a request while Highball closes the connection.",
    },
    Opt {
        name: "send_timeout",
        scope: Scope::Server,
        value: &Value(Time(MILLISECOND..=YEAR), |f| &mut f.server.limits.send_timeout),
        default: Default::Is("60s"),
        example: "30s",
        doc: "Longest pause in which a client takes nothing of its response. After a longer one, Highball closes the connection.",
    },
    Opt {
        name: "stream_idle_timeout",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(Time(MILLISECOND..=YEAR)), |f| &mut f.app.limits.stream_idle_timeout),
        default: Default::Is("none"),
        example: "2m",
        doc: "Longest pause in which the application writes nothing to a streaming response. After a longer one, Highball cuts the \
              response off. Set it longer than the interval of the application's heartbeats. See [streaming.md](streaming.md).",
    },
    Opt {
        name: "request_timeout",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(Time(MILLISECOND..=YEAR)), |f| &mut f.app.limits.request_timeout),
        default: Default::InDevelopment { yes: "none", no: "60s" },
        example: "20s",
        doc: "Time for the application to begin its response. After that, the client gets 504, and the log says what the thread \
              is doing. If the request does not end within two more seconds, its worker is replaced: another one starts first, \
              and the worker's other requests finish. The application finds the deadline in `env[\"highball.deadline\"]`, in \
              seconds of `CLOCK_MONOTONIC` (a Float). Set it to the longest time that clients wait, and make exceptions with \
              `request_timeouts`.",
    },
    Opt {
        name: "request_timeouts",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(table(PATHS, "paths", PATH_TIMEOUT), |f| &mut f.app.limits.request_timeouts),
        default: Default::Without("none"),
        example: "/reports/*=5m",
        doc: "A different `request_timeout` for some paths. A path that ends with `*` matches all paths that begin with the \
              rest. A path without `*` takes precedence, then the longest match. Highball compares the path as the client has \
              sent it. You can repeat it; in the file, use a table such as `{ \"/reports/*\" = \"5m\" }`, or a list.",
    },
    Opt {
        name: "request_timeout_header",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrNone(HEADER), |f| &mut f.app.timeout_header),
        default: Default::Is("none"),
        example: "X-Request-Timeout",
        doc: "Header field that tells the application how much time is left for a request. The value is in seconds, such as \
              `12.345`, as of the moment when a thread begins the request. Highball removes the field from clients' requests.",
    },
    Opt {
        name: "timeout_interrupts",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(SWITCH, |f| &mut f.app.limits.timeout_interrupts),
        default: Default::Is("off"),
        example: "on",
        doc: "Raise `Highball::RequestTimeout` in the thread of a request that exceeds its time. Highball then replaces the \
              worker only if the exception does not end the request. As with Ruby's `Timeout`, the exception can occur anywhere, \
              even in an `ensure` block, and may leave the application's data inconsistent.",
    },
    Opt {
        name: "slow_request",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrOff(Time(Duration::from_millis(200)..=YEAR)), |f| &mut f.app.slow_request),
        default: Default::Is("2s"),
        example: "5s",
        doc: "Time from which on a request is slow. Highball logs where the time of slow requests went, and `highball status \
              --slow` shows the last ones. Lower it if your application should answer sooner; `off` samples no request. See \
              [slow-requests.md](slow-requests.md).",
    },
];

/// How much clients may send and hold.
static SIZES: &[Opt] = &[
    Opt {
        name: "max_target",
        scope: Scope::Server,
        value: &Value(Size(256..=MIB), |f| &mut f.server.limits.target_bytes),
        default: Default::Is("16k"),
        example: "8k",
        doc: "Longest request target (path and query). Longer ones get 414. Raise it if the application has longer URLs.",
    },
    Opt {
        name: "max_head",
        scope: Scope::Server,
        value: &Value(Size(KIB..=MIB), |f| &mut f.server.limits.head_bytes),
        default: Default::Is("64k"),
        example: "32k",
        doc: "Largest request head (request line and header fields). Larger ones get 431. Raise it if clients send large cookies \
              or tokens.",
    },
    Opt {
        name: "max_fields",
        scope: Scope::Server,
        value: &Value(Count(8..=1024_usize), |f| &mut f.server.limits.header_fields),
        default: Default::Is("128"),
        example: "64",
        doc: "Largest number of header fields in a request. More get 431. Raise it if proxies in front add many.",
    },
    Opt {
        name: "max_body",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(Size(0..=PIB)), |f| &mut f.app.limits.body_bytes),
        default: Default::Is("1g"),
        example: "100m",
        doc: "Largest request body. Larger ones get 413, before Highball stores anything if the request gives its length. Raise \
              it if the application accepts larger uploads. With `none`, only `max_spool` and `app_max_spool` limit uploads.",
    },
    Opt {
        name: "body_memory",
        scope: Scope::Server,
        value: &Value(Size(0..=16 * MIB), |f| &mut f.server.limits.body_memory_bytes),
        default: Default::Is("64k"),
        example: "16k",
        doc: "Largest request body that fits into a worker's ring beside the request. Larger ones go to a spool file: in memory \
              up to 1 MiB (counted in `max_buffers`), beyond that in `spool_dir`. The rings grow with this value.",
    },
    Opt {
        name: "response_buffer",
        scope: Scope::Server,
        value: &Value(Size(4 * KIB..=64 * MIB), |f| &mut f.server.limits.response_buffer_bytes),
        default: Default::Is("256k"),
        example: "1m",
        doc: "Memory for the part of a response that the client has not taken. When it is full, the worker waits, or the \
              response goes to a spool file (`response_spool`). A larger value frees workers earlier, and takes more memory.",
    },
    Opt {
        name: "response_spool",
        scope: Scope::Server,
        value: &Value(Size(0..=1024 * GIB), |f| &mut f.server.limits.response_spool_bytes),
        default: Default::Is("1g"),
        example: "100m",
        doc: "Largest part of a response in a spool file. Highball uses one if a slow client would make a worker wait for more \
              than a quarter of a second. Beyond this size, the worker waits. With 0, it always waits. Raise it if slow clients \
              download larger responses.",
    },
    Opt {
        name: "max_buffers",
        scope: Scope::Server,
        value: &Value(Size(MIB..=PIB), |f| &mut f.buffer_bytes),
        default: Default::Without("an eighth of the memory of the machine or the container, at least 16 MiB"),
        example: "500m",
        doc: "Memory for all request bodies and for responses to slow clients. Beyond it, they go to spool files at once. One of \
              several applications gets at most half of it, and one client at most half of what its application gets; \
              `max_spool` is shared in the same way. A client on this machine has no individual limit, because it may be a proxy. A \
              proxy on another machine counts as one client, unless it reports its clients (`trusted_proxies`, \
              `proxy_protocol`).",
    },
    Opt {
        name: "max_connections",
        scope: Scope::Server,
        value: &Value(Count(1..=1_000_000_usize), |f| &mut f.server.limits.connections),
        default: Default::Is("10000"),
        example: "2000",
        doc: "Largest number of open client connections. Beyond it, a new connection replaces the connection that has been idle \
              longest; if none is idle, it waits in the kernel. Highball raises its limit on open files accordingly, up to the \
              hard limit (`ulimit -Hn`). If files run out earlier, idle connections are closed for new ones. Raise it for many \
              WebSockets or idle clients.",
    },
    Opt {
        name: "max_tls_handshakes",
        scope: Scope::Server,
        value: &Value(Count(1..=1_000_000_usize), |f| &mut f.server.tls.max_handshakes),
        default: Default::Is("1000"),
        example: "200",
        doc: "Largest number of TLS handshakes that are computed or wait for a CPU. Highball disconnects further clients at \
              once. Clients that begin a handshake and send nothing more do not count; like idle connections, they lose their \
              places to others.",
    },
    Opt {
        name: "http2_streams",
        scope: Scope::Server,
        value: &Value(Count(1..=100_000), |f| &mut f.server.limits.http2_streams),
        default: Default::Is("100"),
        example: "250",
        doc: "Largest number of open requests on an HTTP/2 connection. Clients learn the limit, and wait. Highball refuses a \
              request beyond it unread, so that the client can repeat it. Each request counts for the queue, buffers and spool \
              files, like a request on a separate connection.",
    },
    Opt {
        name: "max_queue",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=1_000_000_usize), |f| &mut f.app.limits.queue),
        default: Default::Is("1000"),
        example: "100",
        doc: "Largest number of requests that wait for a worker. Further ones get 503 with `Retry-After`. Lower it if clients \
              give up before their requests are handled. See [tuning.md](tuning.md#queue-and-timeouts).",
    },
    Opt {
        name: "max_streams",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(0..=10_000_u32), |f| &mut f.app.limits.streams),
        default: Default::Is("1000"),
        example: "200",
        doc: "Largest number of streaming responses per worker. Each has a thread outside of `threads`. With 0, or \
              with `threads = 1`, they take one of its `threads` until they end. At the limit, a Rack 3 `call(stream)` body gets 503 with `Retry-After`; \
              other bodies keep their thread, and end at their next write once requests wait for it. See [streaming.md](streaming.md).",
    },
    Opt {
        name: "affinity",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(AFFINITY), |f| &mut f.app.affinity),
        default: Default::Is("none"),
        example: "cookie",
        doc: "Send the requests of a session to the same worker while it lives, for applications that keep sessions in memory, such \
              as MCP servers. With `cookie`, Highball gives each client a cookie. With `header:Mcp-Session-Id`, the application \
              sends this header field when it begins a session, and clients send it back. See [affinity.md](affinity.md).",
    },
    Opt {
        name: "fibers",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(at_most(PATHS, "paths", PATH_PATTERN), |f| &mut f.app.fibers),
        default: Default::Without("none"),
        example: "/chat/*",
        doc: "Paths whose requests run on fibers: while one waits for a socket, a database or a timer, the others of its worker \
              go on, and it takes no thread. With `/*`, all requests do. `max_fibers` limits their number. The \
              application and its libraries must be made for fibers. You can repeat it. See [streaming.md](streaming.md#fibers).",
    },
    Opt {
        name: "max_fibers",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=100_000_u32), |f| &mut f.app.limits.fibers),
        default: Default::Is("5000"),
        example: "20000",
        doc: "Largest number of requests on `fibers` per worker. Further ones get 503 with `Retry-After`.",
    },
    Opt {
        name: "fiber_scheduler",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OrNone(CLASS), |f| &mut f.app.fiber_scheduler),
        default: Default::Is("none"),
        example: "Async::Scheduler",
        doc: "Ruby class that schedules the fibers of `fibers`, instead of Highball's scheduler. The application must have loaded \
              it. Its `new` gets no arguments.",
    },
    Opt {
        name: "spool_dir",
        scope: Scope::Server,
        value: &Value(WRITABLE_FOLDER, |f| &mut f.spool_dir),
        default: Default::Without("/var/tmp if it is writable, else $TMPDIR, else /tmp"),
        example: "/tmp",
        doc: "Folder for large request bodies, and for responses to slow clients. Choose a folder on a disk: in a tmpfs, these \
              files use memory. While Highball cannot create files there, for example in a read-only container, it keeps them in \
              memory, at most 64 MiB in total. The log, `highball status` and `highball doctor` report this, and low disk space.",
    },
    Opt {
        name: "max_spool",
        scope: Scope::Server,
        value: &Value(Size(0..=PIB), |f| &mut f.server.limits.spool_bytes),
        default: Default::Without("half of the free space in `spool_dir`; a quarter if it is in memory"),
        example: "20g",
        doc: "Total size of all spool files. If there is no room for a request body, the request gets 503; a body larger than \
              the limit gets 413. Responses to slow clients then make workers wait. Without this option, Highball measures the \
              free space again while uploads arrive. Set it if other programs need the disk.",
    },
    Opt {
        name: "app_max_spool",
        scope: Scope::Privileged(Applies::AtOnce),
        value: &Value(Size(0..=PIB), |f| &mut f.app.limits.spool_bytes),
        default: Default::Without("`max_spool`; half of it with several applications"),
        example: "2g",
        doc: "Total size of the spool files of an application. With several applications, it is at most half of `max_spool`, so \
              that an application with slow clients leaves room for the others.",
    },
];

/// Responses without Ruby.
static FILES: &[Opt] = &[
    Opt {
        name: "max_cache",
        scope: Scope::Server,
        value: &Value(Size(0..=PIB), |f| &mut f.server.limits.cache_bytes),
        default: Default::Is("256m"),
        example: "1g",
        doc: "Memory for the stored responses of all applications together (`cache` is for each). One of several applications \
              gets at most half of it. When it is full, Highball removes the responses that were not used for longest.",
    },
    Opt {
        name: "static_files",
        // The front asks for the folder when the application has booted.
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.static_files.enabled),
        default: Default::Is("on"),
        example: "off",
        doc: "Serve the application's `public` folder, and assets that need no processing, without Ruby. Switch it off if these \
              requests must pass the application's middleware. See [static-files.md](static-files.md).",
    },
    Opt {
        name: "follow_symlinks",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.static_files.follow_symlinks),
        default: Default::Is("on"),
        example: "off",
        doc: "Follow symbolic links in the `public` folder. A link may lead to any file that the application's user can read; \
              switch it off to keep to the folder. See [static-files.md](static-files.md).",
    },
    Opt {
        name: "compress",
        // Files are compressed as was decided when the application booted.
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.compress),
        default: Default::InDevelopment { yes: "off", no: "on" },
        example: "off",
        doc: "Compress responses and static files for clients that accept it (zstd, Brotli, gzip). To exempt a response, send it \
              with `Cache-Control: no-transform`. See [compression.md](compression.md).",
    },
    Opt {
        name: "cache",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Size(0..=PIB), |f| &mut f.app.limits.cache_bytes),
        default: Default::Is("0"),
        example: "64m",
        doc: "Memory for stored responses of the application; 0 turns the cache off. Highball stores responses that the \
              application declares public, for example with `Cache-Control: public, max-age=60`. See \
              [response-cache.md](response-cache.md).",
    },
    Opt {
        name: "sendfile",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(at_most(SENT_FOLDERS, "folders", SENT_FOLDER), |f| &mut f.app.sendfile),
        default: Default::Without("none: these headers are passed on to a web server in front"),
        example: "/protected=storage",
        doc: "Folder of files that the application may name in `X-Sendfile` or `X-Accel-Redirect`. Highball then sends the file. \
              You can repeat it; in the file, use a list. `X-Sendfile` has a path, `X-Accel-Redirect` a path or a URI that \
              begins with the prefix of a folder. Relative folders are below the application's folder. Files elsewhere get 404. \
              See [sending-files.md](sending-files.md).",
    },
];

/// Messages to clients whose responses are held.
static HUB: &[Opt] = &[
    Opt {
        name: "max_held",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(0..=1_000_000_u32), |f| &mut f.app.limits.hub.held),
        default: Default::Is("10000"),
        example: "50000",
        doc: "Largest number of [held responses](server-sent-events.md). Further ones get 503 with `Retry-After`. Each takes a \
              connection, or a stream of an HTTP/2 connection.",
    },
    Opt {
        name: "max_held_streams",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=1000_u32), |f| &mut f.app.limits.hub.held_streams),
        default: Default::Is("32"),
        example: "100",
        doc: "Largest number of streams that a held response may name. With more, the client gets 502.",
    },
    Opt {
        name: "max_message",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Size(1..=16 * MIB), |f| &mut f.app.limits.hub.message_bytes),
        default: Default::Is("256k"),
        example: "1m",
        doc: "Largest message. `Highball.publish` raises an exception for a larger one.",
    },
    Opt {
        name: "hub_history",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=100_000_u32), |f| &mut f.app.limits.hub.history),
        default: Default::Is("1000"),
        example: "100",
        doc: "Number of messages that each stream keeps for clients that reconnect. Highball disconnects a client that falls further \
              behind.",
    },
    Opt {
        name: "hub_history_time",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Time(SECOND..=DAY), |f| &mut f.app.limits.hub.history_time),
        default: Default::Is("5m"),
        example: "1h",
        doc: "Time for which a stream keeps a message for clients that reconnect.",
    },
    Opt {
        name: "hub_heartbeat",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Time(SECOND..=HOUR), |f| &mut f.app.limits.hub.heartbeat),
        default: Default::Is("15s"),
        example: "30s",
        doc: "Interval at which a held response without messages gets a comment, so that proxies do not close it, and Highball notices \
              when the client has left.",
    },
    Opt {
        name: "hold_cable",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(SWITCH, |f| &mut f.app.limits.hub.hold_cable),
        default: Default::Is("on"),
        example: "off",
        doc: "Hold the WebSockets of [Action Cable](action-cable.md) in the server, so that they stay open while workers restart. This needs \
              `adapter: highball` in `config/cable.yml`. Switch it off to give each WebSocket to a worker.",
    },
    Opt {
        name: "cable",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(OneOf(&[("auto", true), ("off", false)]), |f| &mut f.app.process.shares_cable),
        default: Default::Is("auto"),
        example: "off",
        doc: "Adapter of [Action Cable](action-cable.md) where `config/cable.yml` has `async` or `inline`, whose broadcasts reach the clients \
              of one worker alone. With `auto`, Highball's adapter takes its place if there can be several workers and the application has \
              channels; the log says so. `off` keeps it. Other adapters, such as `redis`, always stay.",
    },
    Opt {
        name: "max_cable_clients",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(0..=1_000_000_u32), |f| &mut f.app.limits.hub.cable_clients),
        default: Default::Is("10000"),
        example: "50000",
        doc: "Largest number of Action Cable WebSockets that the server holds for the application. Further clients get 503 with \
              `Retry-After`.",
    },
    Opt {
        name: "max_cable_message",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Size(KIB..=512 * KIB), |f| &mut f.app.limits.hub.cable_message_bytes),
        default: Default::Is("64k"),
        example: "256k",
        doc: "Largest message that a client of Action Cable can send. A larger one closes its WebSocket with 1009.",
    },
    Opt {
        name: "max_cable_streams",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(Count(1..=1000_u32), |f| &mut f.app.limits.hub.cable_streams),
        default: Default::Is("100"),
        example: "20",
        doc: "Largest number of subscriptions of an Action Cable client, and of streams of all its subscriptions. Further subscriptions are \
              rejected.",
    },
    Opt {
        name: "max_hub",
        scope: Scope::Server,
        value: &Value(Size(0..=PIB), |f| &mut f.server.limits.hub_bytes),
        default: Default::Is("64m"),
        example: "256m",
        doc: "Memory for the messages that streams keep, of all applications together. One of several applications gets at most half \
              of it. When it is full, Highball drops the oldest messages of the application that publishes.",
    },
];

/// What operators and load balancers ask the server.
static HEALTH: &[Opt] = &[
    Opt {
        name: "admin",
        scope: Scope::Server,
        value: &Value(several(LISTEN), |f| &mut f.admin),
        default: Default::Without("none"),
        example: "127.0.0.1:9394",
        doc: "Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and the dashboard (`/`). Write an IP address \
              with or without a port (default 9394), or `unix:/path`. You can repeat it; in the file, use a list. Everyone who \
              reaches it sees the names and the load of all applications, and the paths of running requests: use an address that \
              only you and your monitoring can reach. See [observability.md](observability.md#health-checks).",
    },
    Opt {
        name: "admin_host",
        scope: Scope::Server,
        value: &Value(several(HOST), |f| &mut f.server.admin.hosts),
        default: Default::Without("IP addresses, and `localhost` with its subdomains"),
        example: "blog.monitoring.internal",
        doc: "Host name for requests to the `admin` address, besides IP addresses and `localhost`. You can repeat it; in the \
              file, use a list. Highball refuses requests for other names, so that no website can read the address through a \
              browser in your network (DNS rebinding). `*` allows every name.",
    },
    Opt {
        name: "admin_actions",
        scope: Scope::Server,
        value: &Value(FLAG, |f| &mut f.server.admin.takes_orders),
        default: Default::Is("off"),
        example: "on",
        doc: "Show buttons on the dashboard: restart, refork, add or remove a worker, replace the worker of a request. They ask \
              for a token, which `highball top --token` prints for root and the server's user. Each start creates a new token. \
              See [dashboard.md](dashboard.md#buttons).",
    },
    Opt {
        name: "agent_check",
        scope: Scope::Server,
        value: &Value(several(LISTEN), |f| &mut f.agent_check),
        default: Default::Without("none"),
        example: "10.0.0.5:9395",
        doc: "Address at which load balancers ask how busy the server is, with HAProxy's agent check. Write an IP address with \
              or without a port (default 9395). You can repeat it; in the file, use a list. Everyone who reaches it sees how \
              busy the server is: use an address that only your load balancers can reach. See \
              [deploying/several-machines.md](deploying/several-machines.md).",
    },
    Opt {
        name: "stuck_after",
        scope: Scope::Server,
        value: &Value(OrNone(Time(MILLISECOND..=YEAR)), |f| &mut f.server.admin.stuck_after),
        default: Default::Is("15s"),
        example: "30s",
        doc: "Time without a free thread and without a response after which an application is stuck. `/readyz` then answers 503, \
              so that load balancers send requests elsewhere. Set it longer than your longest requests. `none` turns the check \
              off. See [observability.md](observability.md#health-checks).",
    },
    Opt {
        name: "maintenance_file",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(MAINTENANCE_FILE, |f| &mut f.app.maintenance_file),
        default: Default::Is("tmp/maintenance.json"),
        example: "../../shared/maintenance.json",
        doc: "File that `highball maintenance on` writes and `off` removes. While it exists, visitors get a page with status 503 \
              instead of the application. A relative path is below the application's folder. With release folders, choose a file \
              outside of them, so that a deploy does not end the maintenance. Its name begins with `maintenance` and ends with `.json`. \
              See [maintenance-page.md](maintenance-page.md).",
    },
    Opt {
        name: "health_path",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(URL_PATH, |f| &mut f.app.health_path),
        default: Default::Without("none"),
        example: "/up",
        doc: "Path at which Highball answers health checks of the application, at the addresses for clients. It answers GET and \
              HEAD with 200 or 503 and a word, also while all threads are busy; the application does not get these requests. The \
              path is below the application's `prefix`. Use it for load balancers that cannot reach `admin`. See \
              [observability.md](observability.md#health-checks).",
    },
];

/// Logs, and what requests carry for them.
static LOGS: &[Opt] = &[
    Opt {
        name: "max_output",
        scope: Scope::Privileged(Applies::AtOnce),
        value: &Value(OrNone(Size(KIB..=GIB)), |f| &mut f.app.max_output_bytes),
        default: Default::Is("1m"),
        example: "4M",
        doc: "Output per second of an application of another user, in bytes. A burst may have four times as much. Highball drops \
              the rest, and the log says how much. If Highball and the application run as the same user, there is no limit: the \
              application writes directly to Highball's standard output and error.",
    },
    Opt {
        name: "log_format",
        scope: Scope::Server,
        value: &Value(
            OneOf(&[("human", LogFormat::Human), ("json", LogFormat::Json)]),
            |f| &mut f.server.log.format,
        ),
        default: Default::Is("human"),
        example: "json",
        doc: "Format of the log on standard error: `human` or `json`. Use `json` for a log collector. It then also is the default of \
              `access_log_format`. On a terminal, `human` shows a banner, colors and no times; set `NO_COLOR` for no colors.",
    },
    Opt {
        name: "access_log",
        scope: Scope::ServerAndApp(Applies::WithNewServer),
        value: &Value(LOG_FILE, |f| &mut f.access_log),
        default: Default::InDevelopment { yes: "-", no: "none" },
        example: "log/access.log",
        doc: "File for a line about each request. `-` is standard output, and `none` turns the access log off. Status 499 means \
              that the client left before it had its response. If root starts Highball, it writes the log of an application in a \
              folder of its user as that user; see [users.md](users.md).",
    },
    Opt {
        name: "access_log_format",
        scope: Scope::ServerAndApp(Applies::WithNewServer),
        value: &Value(LINE_FORMAT, |f| &mut f.access_log_rules.format),
        default: Default::WithJsonLog { yes: "json", no: "combined" },
        example: "{time} {status} {seconds} {method} {target}",
        doc: "Format of the lines of the access log: `combined`, `json`, or a text with names of fields in braces. An \
              application may have another format for its own `access_log`. \
              [logs.md](logs.md#format-of-the-access-log) lists the fields.",
    },
    Opt {
        name: "access_log_sample",
        scope: Scope::ServerAndApp(Applies::WithNewServer),
        value: &Value(SHARE, |f| &mut f.access_log_rules.sample),
        default: Default::Is("100%"),
        example: "10%",
        doc: "Share of the requests that get a line in the access log, chosen at random. Requests with a status of 400 or more, \
              and requests that take a second or longer, always get one. Lower it if the log gets too large.",
    },
    Opt {
        name: "request_start",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(SWITCH, |f| &mut f.app.request_start),
        default: Default::Is("off"),
        example: "on",
        doc: "Add `X-Request-Start` to the application's requests, if no proxy has sent it or `X-Queue-Start`. It is the time at \
              which the request began to wait for a worker, in milliseconds since 1970. APM gems and autoscalers compute the \
              queue time from it. `env[\"highball.queue_time\"]` is there without this option. See \
              [observability.md](observability.md).",
    },
    Opt {
        name: "server_timing",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(SWITCH, |f| &mut f.app.server_timing),
        default: Default::Is("off"),
        example: "on",
        doc: "Add a `Server-Timing` field to the application's responses. Browsers show it in their developer tools: the \
              milliseconds that the request waited for a worker (`queue`), and the milliseconds until the application began its \
              response (`app`). Everyone can see these times. See [observability.md](observability.md).",
    },
    Opt {
        name: "request_id",
        scope: Scope::Server,
        value: &Value(SWITCH, |f| &mut f.server.request_id),
        default: Default::Is("off"),
        example: "on",
        doc: "Give each request an id, in the field `X-Request-Id`. The application gets it, the response has it, and the line \
              in the access log ends with it. Highball keeps an id that comes with the request if it has only letters, digits, \
              `_`, `-` and `@`; with `trusted_proxies`, only if such a proxy has sent it. Other requests get a random UUID. If \
              it is off, the field passes unchanged. See [observability.md](observability.md).",
    },
    Opt {
        name: "otlp_endpoint",
        scope: Scope::Server,
        value: &Value(OrNone(COLLECTOR), |f| &mut f.otlp_endpoint),
        default: Default::Without(
            "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment; else `none`",
        ),
        example: "http://127.0.0.1:4318",
        doc: "URL of an OpenTelemetry collector, to which Highball sends spans of requests by OTLP over HTTP; it adds \
              `/v1/traces`. `none` sends no spans, whatever the environment says. Sampling, headers and the name of the service \
              are set by the standard variables of OpenTelemetry. It is not available if root starts Highball for applications of \
              other users. See [tracing.md](tracing.md).",
    },
];

/// Who may do and see what.
static SECURITY: &[Opt] = &[
    Opt {
        name: "server_user",
        scope: Scope::Server,
        value: &Value(WORD, |f| &mut f.server.server_user),
        default: Default::Without("`highball` if that user exists, else 65534 (`nobody`)"),
        example: "highball",
        doc: "User that the server runs as if root starts Highball. The server is the part that reads what clients send. Create \
              a separate user for it: `adduser --system --group highball`. With `root`, the server stays root, which is not \
              recommended. See [security.md](security.md).",
    },
    Opt {
        name: "show_diagnosis",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(
            OneOf(&[("link", ShowDiagnosis::Link), ("local", ShowDiagnosis::Local), ("off", ShowDiagnosis::Off)]),
            |f| &mut f.app.show_diagnosis,
        ),
        default: Default::Is("link"),
        example: "local",
        doc: "Clients that see the details of errors in development. `link`: a browser on this machine that has opened the link \
              in the terminal. `local`: every client on this machine that names no proxy; do not use it if a web server or \
              tunnel on this machine forwards requests. `off`: no client. See [diagnosis.md](diagnosis.md).",
    },
    Opt {
        name: "user",
        scope: Scope::Privileged(Applies::WithNewProcesses),
        value: &Value(USER, |f| &mut f.user),
        default: Default::Without("the user who starts Highball; under root, the owner of the application's files"),
        example: "blog",
        doc: "User that the application runs as, by name or number. Only root can run it as another user. If root starts \
              Highball, the application runs as root only if its files belong to root, or if you write `root` here. See \
              [users.md](users.md).",
    },
    Opt {
        name: "rate_limit",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(at_most(rate_limit::MOST, "rate limits", RATE_LIMIT), |f| &mut f.app.limits.rates),
        default: Default::Without("none"),
        example: "/login 5/min",
        doc: "Number of requests that each client may send, for all paths or for a path: `10/s`, `/login 5/min`, `/api/* 100/min \
              burst 20`. Further requests get 429 with `Retry-After`, and do not reach the application. A client is an IPv4 \
              address or an IPv6 network (/64). `burst` is the number of requests at once; without it, the number before the slash \
              counts. All limits that match apply. You can repeat it; in the file, use a list. See [rate-limits.md](rate-limits.md).",
    },
    Opt {
        name: "rate_limit_exempt",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(several(NETWORKS), |f| &mut f.app.limits.rates_exempt),
        default: Default::Is("loopback"),
        example: "203.0.113.0/24",
        doc: "Client without a `rate_limit`: an address or a network. `loopback` is this machine, `private` all private networks. \
              You can repeat it; in the file, use a list. Behind a proxy on this machine, set `trusted_proxies`: otherwise all \
              visitors have the proxy's address, and no limit. See [rate-limits.md](rate-limits.md).",
    },
    Opt {
        name: "basic_auth",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(PATH), |f| &mut f.basic_auth),
        default: Default::Is("none"),
        example: "config/htpasswd",
        doc: "File with users and password hashes for HTTP basic authentication, as `htpasswd -B` writes it. Without a valid \
              password, clients reach neither the application nor its static files. Highball reads the file again when it \
              changes. See [basic-auth.md](basic-auth.md).",
    },
    Opt {
        name: "basic_auth_realm",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(QUOTABLE, |f| &mut f.basic_auth_realm),
        default: Default::Is("Restricted"),
        example: "Staging of the blog",
        doc: "Text that browsers may show when they ask for the password of `basic_auth`. Browsers send a password to all pages \
              of a host that have the same text.",
    },
    Opt {
        name: "no_new_privs",
        scope: Scope::App(Applies::WithNewProcesses),
        value: &Value(SWITCH, |f| &mut f.app.process.no_new_privs),
        default: Default::Is("off"),
        example: "on",
        doc: "Deny the application's processes more rights than their user has (`no_new_privs` of Linux). This includes all \
              processes that they start. `sudo`, `sendmail` and other setuid programs then run as the application's user, and \
              mostly fail. An application that `rackup` or `rails server` has loaded is not affected.",
    },
];

/// One application among several.
static APPS: &[Opt] = &[
    Opt {
        name: "name",
        // One of another name is another application.
        scope: Scope::Route(Applies::WithNewProcesses),
        value: &Value(WORD, |f| &mut f.name),
        default: Default::Without("the name of its folder; if that is `current`, of the folder above it"),
        example: "blog",
        doc: "Name of the application in the log and in commands. Each application of a server needs a different one.",
    },
    Opt {
        name: "hosts",
        scope: Scope::Route(Applies::AtOnce),
        value: &Value(several(HOST), |f| &mut f.hosts),
        default: Default::Without("all hosts; with several applications NAME and NAME.localhost, or all hosts with a `prefix`"),
        example: "blog.example.org",
        doc: "Host name of the application. You can repeat it; in the file, use a list. `*` matches every name that no other \
              application has.",
    },
    Opt {
        name: "prefix",
        scope: Scope::Route(Applies::WithNewProcesses),
        value: &Value(PREFIX, |f| &mut f.app.prefix),
        default: Default::Without("none"),
        example: "/blog",
        doc: "URL path that the application is served below. The application gets it as `SCRIPT_NAME`, and Rails also as \
              `relative_url_root`.",
    },
    Opt {
        name: "variables",
        scope: Scope::OneApp(Applies::WithNewProcesses),
        value: &Value(table(usize::MAX, "variables", VARIABLE), |f| &mut f.app.env),
        default: Default::Without("none"),
        example: "DATABASE_URL=sqlite3:db/blog.sqlite3",
        doc: "Environment variable for the application's processes, in addition to the variables that Highball passes on. You \
              can repeat it; in the file, use a table or a list. Other applications do not see it.",
    },
    Opt {
        name: "pass_variables",
        scope: Scope::Privileged(Applies::WithNewProcesses),
        value: &Value(several(VARIABLE_NAME), |f| &mut f.app.pass_variables),
        default: Default::Without("only the variables that `docs/users.md` lists"),
        example: "AWS_*",
        doc: "Variable of Highball's environment to pass on to an application of another user. You can repeat it; in the file, \
              use a list. `AWS_*` matches every name that begins with `AWS_`, and `*` every name; `HOME`, `USER` and other \
              variables of a login are passed on only by their full names. An application of the same user gets all variables \
              anyway. See [users.md](users.md).",
    },
    Opt {
        name: "prestart",
        // It is decided when the application is begun.
        scope: Scope::App(Applies::WithNewServer),
        value: &Value(SWITCH, |f| &mut f.prestart),
        default: Default::Without("on; off in development with several applications"),
        example: "off",
        doc: "Boot the application when the server starts. If it is off, the application boots at its first request, which \
              waits. Switch it off for applications that are rarely used.",
    },
    Opt {
        name: "sleep_after",
        scope: Scope::App(Applies::AtOnce),
        value: &Value(OrNone(Time(MILLISECOND..=YEAR)), |f| &mut f.app.sleep_after),
        default: Default::Is("none"),
        example: "30m",
        doc: "Idle time after which the application's processes end, to save memory. The next request boots it again, and waits. \
              Set it for applications that are rarely used.",
    },
];

/// The option of this name.
pub(crate) fn named(name: &str) -> Option<&'static Opt> {
    options().find(|option| option.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ConfigError, Origin};
    use crate::fields::Fields;
    use crate::form::{Place, Raw};

    #[test]
    fn names_are_unique_and_docs_are_sentences() {
        for (index, option) in options().enumerate() {
            assert!(options().take(index).all(|other| other.name != option.name), "{} twice", option.name);
            assert!(
                option.doc.ends_with('.') && !option.doc.contains("  "),
                "{}: {}",
                option.name,
                option.doc
            );
        }
    }

    #[test]
    fn other_names_are_of_options() {
        for (name, _) in OTHER_NAMES {
            assert!(options().any(|option| option.name == *name), "{name}");
        }
    }

    /// What is stored of this text.
    fn stored(option: &Opt, text: &str) -> Result<Fields, ConfigError> {
        let env = |name: &str| (name == "PATH").then(|| "/bin".into());
        let place = Place { current: "/".into(), env: &env };
        let raw = Raw { text: text.into(), origin: Origin::Default { name: option.name } };
        let mut fields = Fields::default();
        option.value.store(&[raw], &mut fields, &place).map(|()| fields)
    }

    #[test]
    fn each_option_is_stored_in_a_field_that_no_other_has() {
        for option in options() {
            let example = match (option.name, option.value.form().notation()) {
                ("ruby", _) => "/bin/sh",
                ("user", _) => "root",
                ("cable", _) => "auto",
                (_, Notation::Switch | Notation::Flag) => "on",
                _ => option.example,
            };
            let fields = stored(option, example).unwrap_or_else(|error| panic!("{}: {error}", option.name));
            assert_ne!(fields, Fields::default(), "{} is not stored", option.name);
            for other in options().filter(|other| other.name != option.name) {
                let its = stored(other, example).ok();
                assert_ne!(Some(&fields), its.as_ref(), "{} and {} share a field", option.name, other.name);
            }
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_option() {
        for option in options() {
            let texts = match option.default {
                Default::Is(text) => vec![text],
                Default::InDevelopment { yes, no } | Default::WithJsonLog { yes, no } => vec![yes, no],
                Default::Without(_) => vec![],
            };
            for text in texts {
                assert!(stored(option, text).is_ok(), "{}: {text}", option.name);
            }
        }
    }
}
