//! `highball config`: configurations of other programs for an application: of web servers in front of it, of systemd, and of
//! programs that run it on several machines ([`super::machines`]). Each is a file in
//! the folder `programs`: text with placeholders such as `{name}`. A line with a placeholder that has no value here is
//! left out; that is all there is of conditions.

use super::machines::{self, Machine};
use crate::output::{complain, print};
use crate::process::environment::variable;
use crate::process::started_path::{self, started_path};
use highball_config::BindProtocol::{self, FastCgi, Http};
use highball_config::{absolute, utf_8, App, Bind, BindAddress, ConfigError, Deployment};
use highball_text::is_hidden;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Component, Path};
use std::process::ExitCode;
use std::time::Duration;

/// A program, and what its configurations are made from.
struct Program {
    name: &'static str,
    /// For each protocol by which it reaches Highball. If several are possible, the first is used.
    templates: &'static [(BindProtocol, &'static str)],
    machines: Machines,
}

/// Whether a program knows the machines that Highball runs on.
enum Machines {
    /// It runs on the same machine, or chooses the machines itself.
    None,
    /// They are part of its configuration.
    Possible,
    /// With them, it has another template.
    Other(&'static str),
}

/// The programs. (systemd starts Highball, whatever it speaks.)
static PROGRAMS: [Program; 9] = [
    Program {
        name: "nginx",
        templates: &[
            (Http, include_str!("programs/nginx.conf")),
            (FastCgi, include_str!("programs/nginx-fastcgi.conf")),
        ],
        machines: Machines::None,
    },
    Program {
        name: "apache",
        templates: &[
            (Http, include_str!("programs/apache.conf")),
            (FastCgi, include_str!("programs/apache-fastcgi.conf")),
        ],
        machines: Machines::None,
    },
    Program {
        name: "caddy",
        templates: &[
            (Http, include_str!("programs/caddy.conf")),
            (FastCgi, include_str!("programs/caddy-fastcgi.conf")),
        ],
        machines: Machines::None,
    },
    Program {
        name: "haproxy",
        templates: &[
            (Http, include_str!("programs/haproxy.conf")),
            (FastCgi, include_str!("programs/haproxy-fastcgi.conf")),
        ],
        machines: Machines::Other(include_str!("programs/haproxy-machines.conf")),
    },
    Program {
        name: "lighttpd",
        templates: &[(FastCgi, include_str!("programs/lighttpd-fastcgi.conf"))],
        machines: Machines::None,
    },
    Program {
        name: "systemd",
        templates: &[(Http, include_str!("programs/systemd.conf"))],
        machines: Machines::None,
    },
    Program {
        name: "kubernetes",
        templates: &[(Http, include_str!("programs/kubernetes.yaml"))],
        machines: Machines::None,
    },
    Program {
        name: "kamal",
        templates: &[(Http, include_str!("programs/kamal.yaml"))],
        machines: Machines::Possible,
    },
    Program {
        name: "nomad",
        templates: &[(Http, include_str!("programs/nomad.hcl"))],
        machines: Machines::None,
    },
];

/// Where people look for the public folder.
const PUBLIC: &str = "public";
/// Connections are kept this much shorter by a web server than by Highball, so that it never uses a connection that is
/// just being closed.
const MARGIN: Duration = Duration::from_secs(5);
/// What ending takes beside draining, and starting beside booting.
const OWN_TIME: Duration = Duration::from_secs(10);
/// Who an application runs as whose folder belongs to root.
const FOR_ROOT: &str = "www-data";
/// Characters that mean something in one of the programs' files even between quotation marks.
const SPECIAL: &str = "\"'\\$%{}";

/// The longest name of an application, in letters: nginx has no room for much longer ones.
const NAME_LETTERS: usize = 32;

/// Prints the configuration that was asked for; the program is to start this one by the path that it was started by.
pub(crate) fn config(deployment: &Deployment) -> Result<ExitCode, Box<dyn Error>> {
    match ProgramConfig::of(deployment) {
        Ok(config) => {
            print(&config.text(&started_path().unwrap_or_else(|| "highball".into()))?)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            complain(&error);
            Ok(ExitCode::from(error.exit_code()))
        }
    }
}

/// The configuration of a program for an application.
#[derive(Debug)]
pub(crate) struct ProgramConfig<'a> {
    deployment: &'a Deployment,
    template: &'static str,
    /// Where the program reaches Highball.
    bind: &'a Bind,
    machines: Vec<Machine>,
    memory_bytes: Option<u64>,
    /// `PATH`, and `HIGHBALL_LIB` where the user has set it.
    path: Option<String>,
    lib: Option<String>,
}

/// What placeholders stand for.
type Values = BTreeMap<&'static str, Option<String>>;

impl<'a> ProgramConfig<'a> {
    /// # Errors
    /// What was asked for does not fit the program, or where Highball listens.
    pub(crate) fn of(deployment: &'a Deployment) -> Result<ProgramConfig<'a>, ConfigError> {
        let asked = &deployment.asked;
        let via = asked.via.as_deref();
        let (mut template, bind) = choose(&asked.program, via, &deployment.settings.binds)?;
        let machines = asked.machines.as_deref().map(machines::read).transpose()?.unwrap_or_default();
        if !machines.is_empty() {
            template = template_of_machines(&asked.program, via, template)?;
        }
        let memory_bytes = deployment.memory_bytes()?;
        // A launcher sets it for the version that it runs.
        let lib = variable("HIGHBALL_LIB").filter(|_| started_path::launcher().is_none());
        Ok(ProgramConfig { deployment, template, bind, machines, memory_bytes, path: variable("PATH"), lib })
    }

    /// The configuration; `highball` is the path of this program.
    ///
    /// # Errors
    /// Something cannot be written in such a file, or cannot be reached; the words say what to do.
    pub(crate) fn text(&self, highball: &Path) -> Result<String, ConfigError> {
        let values = self.values(highball)?;
        let of_each = machines::of_each(&self.machines, &self.deployment.settings);
        let of_each: Vec<Values> = of_each.into_iter().map(|own| merged(&values, own)).collect();
        let filled = |line: &'static str| -> Vec<String> {
            match is_for_each_machine(line) {
                true => of_each.iter().filter_map(|values| fill(line, values)).collect(),
                false => fill(line, &values).into_iter().collect(),
            }
        };
        Ok(self.template.lines().flat_map(filled).map(|line| line + "\n").collect())
    }

    fn values(&self, highball: &Path) -> Result<Values, ConfigError> {
        let App { limits, process, static_files, hosts, prefix, .. } = &*self.deployment.app;
        let app = &self.deployment.app.link;
        let name = name_of(app);
        let host = self.deployment.asked.host.as_ref().or(hosts.first());
        let host = host.cloned().unwrap_or_else(|| format!("{name}.localhost"));
        let sends_files = static_files.enabled && prefix.is_empty();
        let public = Some(app.join(PUBLIC)).filter(|public| sends_files && public.is_dir());
        let keep =
            self.deployment.settings.limits.idle_timeout.saturating_sub(MARGIN).max(Duration::from_secs(1));
        let seconds =
            |time: Duration| Some((time.as_secs() + u64::from(time.subsec_nanos() > 0)).to_string());
        let mut values = self.address_values()?;
        values.extend(self.service_values(highball)?);
        values.extend(machines::values(
            &self.machines,
            &self.deployment.settings,
            &self.deployment.app,
            self.memory_bytes,
        ));
        values.extend([
            ("ident", Some(name.replace('-', "_"))),
            ("caddy_scheme", Some(if is_local(&host) { "http://" } else { "" }.into())),
            ("host", Some(plain(&host, "the host name")?)),
            ("app", Some(plain_path(app)?)),
            ("body_limit", Some(limits.body_bytes.unwrap_or(0).to_string())),
            ("body_limit_kib", Some(limits.body_bytes.unwrap_or(0).div_ceil(1024).to_string())),
            ("limited", when(limits.body_bytes.is_some())),
            ("keep_seconds", seconds(keep)),
            ("start_seconds", seconds(2 * process.boot_timeout + process.probe_timeout + OWN_TIME)),
            (
                "stop_seconds",
                seconds(
                    self.deployment.settings.drain_grace + self.deployment.settings.drain_timeout + OWN_TIME,
                ),
            ),
            ("files", when(public.is_some())),
            ("no_files", when(public.is_none())),
            ("no_links", when(public.is_some() && !static_files.follow_symlinks)),
            ("public", public.map(|public| plain_path(&public)).transpose()?),
            ("no_machines", when(self.machines.is_empty())),
            ("name", Some(name)),
        ]);
        Ok(values)
    }

    /// Where Highball can be reached.
    fn address_values(&self) -> Result<Values, ConfigError> {
        let binds = &self.deployment.settings.binds;
        let bind = self.bind;
        let scheme = if bind.protocol == FastCgi { "fcgi" } else { "http" };
        let by_program = match &bind.address {
            BindAddress::Unix(path) => {
                let path = plain_path(path)?;
                [
                    format!("unix:{path}"),
                    format!("unix:{path}|{scheme}://localhost/"),
                    format!("unix/{path}"),
                    format!("unix@{path}"),
                    format!("\"socket\" => \"{path}\""),
                ]
            }
            BindAddress::Tcp(address) if address.port() == 0 => {
                return Err(ConfigError::Usage(
                    "with --port 0 Highball takes another port each time, which no other program would know; name one".into(),
                ));
            }
            BindAddress::Tcp(address) => {
                let mut address = *address;
                if address.ip().is_unspecified() {
                    address.set_ip(if address.is_ipv4() {
                        [127, 0, 0, 1].into()
                    } else {
                        [0, 0, 0, 0, 0, 0, 0, 1].into()
                    });
                }
                let text = address.to_string();
                let (ip, port) = (address.ip(), address.port());
                let lighttpd = format!("\"host\" => \"{ip}\", \"port\" => {port}");
                [text.clone(), format!("{scheme}://{text}/"), text.clone(), text, lighttpd]
            }
        };
        let [nginx, apache, caddy, haproxy, lighttpd] = by_program.map(Some);
        let low = binds.iter().filter_map(Bind::tcp_address).any(|address| address.port() < 1024);
        Ok(Values::from([
            ("address", Some(bind.to_string())),
            ("over_unix", when(bind.unix_path().is_some())),
            ("low_port", when(low)),
            ("nginx_address", nginx),
            ("apache_address", apache),
            ("caddy_address", caddy),
            ("haproxy_address", haproxy),
            ("lighttpd_address", lighttpd),
        ]))
    }

    /// Whether the kernel is to keep the application within limits.
    fn is_limited(&self) -> bool {
        self.deployment.settings.apps.iter().any(|app| app.kernel_limits().any())
    }

    /// What only systemd needs to know.
    fn service_values(&self, highball: &Path) -> Result<Values, ConfigError> {
        let (app, highball) = (&self.deployment.app.link, absolute(Path::new(""), highball));
        let file = self.deployment.app.file.as_ref().map_or_else(|| app.clone(), |file| app.join(file));
        let mut command = vec![plain_path(&highball)?, "serve".into()];
        for argument in &self.deployment.arguments {
            command.push(plain(argument, "an option")?);
        }
        command.push(plain_path(&file)?);
        let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        let in_tmp = |path: &Path| ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp));
        let sockets = self.deployment.settings.binds.iter().filter_map(Bind::unix_path);
        let seen_by_others = sockets.chain([app.as_path()]).any(in_tmp);
        let of_system = ["/usr", "/boot", "/etc"].iter().any(|folder| app.starts_with(folder));
        let set = |text: &Option<String>| text.clone().filter(|text| plain(text, "").is_ok());
        Ok(Values::from([
            ("highball", Some(plain_path(&highball)?)),
            ("command", Some(command.join(" "))),
            ("state", when(self.deployment.settings.tls.acme.is_some())),
            ("of_root", when(self.deployment.user.is_none())),
            ("user", Some(plain(self.deployment.user.as_deref().unwrap_or(FOR_ROOT), "the user")?)),
            ("path", set(&self.path)),
            ("lib", set(&self.lib)),
            ("private_tmp", when(!seen_by_others)),
            ("system", when(!of_system)),
            ("has_cgroup", when(self.is_limited())),
            ("no_cgroup", when(!self.is_limited())),
        ]))
    }
}

/// The template of a program, and the address where the program reaches Highball: by a protocol that both have, which is
/// `via` if that is given; a Unix socket rather than a TCP address. For systemd any will do.
fn choose<'a>(
    program: &str,
    via: Option<&str>,
    binds: &'a [Bind],
) -> Result<(&'static str, &'a Bind), ConfigError> {
    let templates =
        PROGRAMS.iter().find(|known| known.name == program).map_or(&[][..], |known| known.templates);
    let has_protocol = |protocol: BindProtocol| via.is_none_or(|via| via == protocol.scheme());
    let possible = || templates.iter().filter(|(protocol, _)| has_protocol(*protocol));
    let best = |spoken: &dyn Fn(&&Bind) -> bool| {
        let mut unix = binds.iter().filter(spoken).filter(|bind| bind.unix_path().is_some());
        unix.next().or_else(|| binds.iter().find(spoken))
    };
    let address = |protocol: BindProtocol| match program {
        "systemd" => best(&|_| true),
        _ => best(&|bind| bind.protocol == protocol),
    };
    let found = possible().find_map(|(protocol, template)| Some((*template, address(*protocol)?)));
    found.ok_or_else(|| match possible().next() {
        Some((protocol, _)) => ConfigError::Usage(not_listening(program, *protocol)),
        None => ConfigError::Usage(format!(
            "there is no configuration of {program} for the protocol {}; leave out --via",
            via.unwrap_or_default()
        )),
    })
}

/// The template of a program that knows the machines.
fn template_of_machines(
    program: &str,
    via: Option<&str>,
    usual: &'static str,
) -> Result<&'static str, ConfigError> {
    match PROGRAMS.iter().find(|known| known.name == program).map(|known| &known.machines) {
        Some(Machines::Possible) => Ok(usual),
        Some(Machines::Other(template)) if via.is_none_or(|via| via == Http.scheme()) => Ok(template),
        Some(Machines::Other(_)) => Err(ConfigError::Usage(format!(
            "--machines: {program} reaches several machines by HTTP; leave out --via"
        ))),
        _ => Err(ConfigError::Usage(format!(
            "--machines is for haproxy and kamal; the configuration of {program} names no machines"
        ))),
    }
}

fn not_listening(program: &str, protocol: BindProtocol) -> String {
    let addresses = match protocol {
        Http => "--bind 127.0.0.1:3000 or --bind unix:/path".to_owned(),
        _ => format!("--bind {0}://127.0.0.1:9000 or --bind {0}+unix:/path", protocol.scheme()),
    };
    format!(
        "Highball does not listen for {}, by which {program} would reach it; give {addresses}, here and where the \
         application is served",
        protocol.name()
    )
}

/// A placeholder that stands for nothing, and keeps its line if this holds.
fn when(holds: bool) -> Option<String> {
    holds.then(String::new)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// All values, with those of one machine.
fn merged(values: &Values, own: Values) -> Values {
    let mut values = values.clone();
    values.extend(own);
    values
}

/// Whether a line stands for each machine.
fn is_for_each_machine(line: &str) -> bool {
    ["{machine}", "{machine_name}", "{machine_host}"].iter().any(|placeholder| line.contains(placeholder))
}

/// A line with its placeholders replaced; `None` where one has no value. Braces around anything else than a word of small
/// letters and `_` are just text.
fn fill(line: &str, values: &Values) -> Option<String> {
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, name, after)) = first_placeholder(rest) {
        filled.push_str(before);
        filled.push_str(values.get(name)?.as_ref()?);
        rest = after;
    }
    Some(filled + rest)
}

/// The first placeholder's name, with what stands before and behind it.
fn first_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let (name, after) = text[at + 1..].split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some((&text[..at], name, after))
    })
}

/// The application's name, of letters, digits and `-`: its folder's; or of that around it, if it is Capistrano's link.
fn name_of(app: &Path) -> String {
    let mut names = app.components().rev().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let name = names.find(|name| *name != "current").unwrap_or("app");
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String =
        name.chars().map(letter).skip_while(|letter| *letter == '-').take(NAME_LETTERS).collect();
    let name = name.trim_end_matches('-');
    match name.as_bytes().first() {
        None => "app".into(),
        Some(first) if first.is_ascii_digit() => format!("app-{name}"),
        Some(_) => name.into(),
    }
}

fn plain_path(path: &Path) -> Result<String, ConfigError> {
    plain(&utf_8(path).map_err(ConfigError::Usage)?, "the path")
}

/// The text, if it means itself in every program's configuration.
fn plain(text: &str, what: &str) -> Result<String, ConfigError> {
    match text.chars().find(|letter| SPECIAL.contains(*letter) || is_hidden(*letter)) {
        None => Ok(text.to_owned()),
        Some(letter) => Err(ConfigError::Usage(format!(
            "{what} `{text}` has the character {letter:?}, which configurations of other programs would misread: choose \
             another name"
        ))),
    }
}

/// A word of a command of systemd.
fn quoted(word: &str) -> String {
    match word.contains(char::is_whitespace) || word.contains(';') {
        true => format!("\"{word}\""),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::{parse, Invocation, PROGRAM_PROTOCOLS};
    use std::ffi::OsString;

    fn folder() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("My.Blog-").tempdir().unwrap()
    }

    fn deployment(program: &str, folder: &Path, options: &[&str]) -> Result<Deployment, ConfigError> {
        let mut words: Vec<OsString> = vec!["highball".into(), "config".into(), program.into()];
        words.extend(options.iter().map(OsString::from));
        words.push(folder.into());
        match parse(words, &|_| None)? {
            Invocation::Config(deployment) => Ok(*deployment),
            other => panic!("{other:?}"),
        }
    }

    fn text(program: &str, folder: &Path, options: &[&str]) -> Result<String, ConfigError> {
        ProgramConfig::of(&deployment(program, folder, options)?)?.text(Path::new("/opt/high ball"))
    }

    fn all_templates() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let of = |program: &'static Program| {
            let of_machines = match program.machines {
                Machines::Other(template) => Some((program.name, "http", template)),
                _ => None,
            };
            let usual =
                program.templates.iter().map(|(via, template)| (program.name, via.scheme(), *template));
            usual.chain(of_machines)
        };
        PROGRAMS.iter().flat_map(of)
    }

    #[test]
    fn every_protocol_of_a_template_can_be_named() {
        assert!(all_templates().all(|(_, via, _)| PROGRAM_PROTOCOLS.contains(&via)));
    }

    #[test]
    fn the_command_line_knows_every_program() {
        assert!(PROGRAMS.iter().map(|program| program.name).eq(highball_config::PROGRAMS));
    }

    #[test]
    fn the_protocol_is_one_that_both_speak() {
        let folder = folder();
        let of = |program: &str, options: &[&str]| text(program, folder.path(), options);
        let both = ["-b", "127.0.0.1:4000", "-b", "fastcgi://[::]:9000"];
        assert!(of("nginx", &both).unwrap().contains("server \"127.0.0.1:4000\""));
        let fastcgi = [&both[..], &["--via", "fastcgi"]].concat();
        assert!(of("nginx", &fastcgi).unwrap().contains("server \"[::1]:9000\""));
        assert!(of("nginx", &both[2..]).unwrap().contains("fastcgi_pass"));
        assert!(of("apache", &fastcgi).unwrap().contains("ProxyPass / \"fcgi://[::1]:9000/\""));
        assert!(of("lighttpd", &both).unwrap().contains("\"host\" => \"::1\", \"port\" => 9000,"));
        let unix = ["-b", "fastcgi://127.0.0.1:9000", "-b", "fastcgi+unix:/run/x"];
        assert!(of("lighttpd", &unix).unwrap().contains("\"socket\" => \"/run/x\","));
        assert!(of("apache", &unix).unwrap().contains("\"unix:/run/x|fcgi://localhost/\""));
        let error = |program: &str, options: &[&str]| of(program, options).unwrap_err().to_string();
        for (program, options) in [("nginx", &["--via", "fastcgi"][..]), ("lighttpd", &[])] {
            let error = error(program, options);
            assert!(error.contains("does not listen for FastCGI"), "{error}");
            assert!(error.contains("--bind fastcgi://127.0.0.1:9000"), "{error}");
        }
        assert!(error("nginx", &["-b", "lsapi://127.0.0.1:1"]).contains("does not listen for HTTP"));
        assert!(error("lighttpd", &["--via", "http"])
            .contains("no configuration of lighttpd for the protocol http"));
        assert!(of("systemd", &["-b", "fastcgi://127.0.0.1:9000"])
            .unwrap()
            .contains("--bind fastcgi://127.0.0.1:9000"));
    }

    #[test]
    fn every_placeholder_of_every_program_is_known() {
        let folder = folder();
        let binds = ["-b", "127.0.0.1", "-b", "fastcgi://127.0.0.1:9000"];
        for (program, via, template) in all_templates() {
            let options = [&binds[..], &["--via", via]].concat();
            let deployment = deployment(program, folder.path(), &options).unwrap();
            let config = ProgramConfig::of(&deployment).unwrap();
            let own = machines::of_each(&machines::read("a").unwrap(), &deployment.settings).remove(0);
            let values = merged(&config.values(Path::new("/x")).unwrap(), own);
            for line in template.lines() {
                let mut rest = line;
                while let Some((_, name, after)) = first_placeholder(rest) {
                    assert!(values.contains_key(name), "{program} has {{{name}}}");
                    rest = after;
                }
            }
        }
    }

    #[test]
    fn each_machine_is_a_line() {
        let folder = folder();
        let of = |program: &str, options: &[&str]| text(program, folder.path(), options);
        let machines = ["--machines", "10.0.0.5,web-2:4000", "-b", "0.0.0.0:3000"];
        let haproxy = of("haproxy", &machines).unwrap();
        for line in
            ["    server 10.0.0.5 10.0.0.5:3000 tcp-ut 5s\n", "    server web-2-4000 web-2:4000 tcp-ut 5s\n"]
        {
            assert!(haproxy.contains(line), "{line} is missing in\n{haproxy}");
        }
        let kamal = of("kamal", &machines).unwrap();
        assert!(kamal.contains("      - \"10.0.0.5\"\n      - \"web-2\"\n"), "{kamal}");
        assert!(of("kamal", &[]).unwrap().contains("      - \"192.0.2.10\"\n"));
        let ports = ["--admin", "10.0.0.5:81", "--agent-check", "10.0.0.5:82", "--drain-grace", "20s"];
        let haproxy = of("haproxy", &[&machines[..], &ports].concat()).unwrap();
        assert!(
            haproxy.contains("check port 81 inter 1s fall 2 rise 1 agent-check agent-port 82"),
            "{haproxy}"
        );
        assert!(haproxy.contains("drain_grace = \"20s\""));
        let error = |program: &str, options: &[&str]| of(program, options).unwrap_err().to_string();
        assert!(error("nginx", &machines).contains("--machines is for haproxy and kamal"));
        let fastcgi = ["--machines", "a", "-b", "fastcgi://127.0.0.1:9000", "--via", "fastcgi"];
        assert!(error("haproxy", &fastcgi).contains("leave out --via"));
    }

    #[test]
    fn resources_come_from_what_was_measured() {
        let folder = folder();
        let of = |options: &[&str]| text("kubernetes", folder.path(), &[&["-w", "3"], options].concat());
        let estimated = of(&[]).unwrap();
        assert!(estimated.contains("cpu: \"3\", memory: 576Mi"), "{estimated}");
        assert!(estimated.contains("An estimate for 3 workers"));
        let measured = of(&["--memory", "401m"]).unwrap();
        assert!(measured.contains("memory: 401Mi") && measured.contains("memory: 602Mi"), "{measured}");
        assert!(!measured.contains("estimate"), "{measured}");
        assert!(of(&["--memory", "much"]).unwrap_err().to_string().starts_with("--memory: "));
        // drain_grace is ten seconds at least here, drain_timeout 30 by default.
        assert!(measured.contains("terminationGracePeriodSeconds: 50"), "{measured}");
    }

    #[test]
    fn an_application_is_called_like_its_folder() {
        for (path, name) in [
            ("/srv/blog", "blog"),
            ("/srv/My.Shop_2", "my-shop-2"),
            ("/srv/blog/current", "blog"),
            ("/", "app"),
            ("/srv/2048", "app-2048"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
        }
    }

    #[test]
    fn the_service_has_the_options_for_serving() {
        let folder = folder();
        let options = ["-p", "80", "-b", "127.0.0.1", "-w", "4", "--drain-timeout", "90s"];
        let unit = text("systemd", folder.path(), &options).unwrap();
        let start =
            "ExecStart=\"/opt/high ball\" serve --port 80 --bind 127.0.0.1:80 --environment production \
                     --workers 4 --drain-timeout 90s /";
        for line in [start, "TimeoutStopSec=100", "AmbientCapabilities=CAP_NET_BIND_SERVICE", "Type=notify"] {
            assert!(unit.contains(line), "{line} is missing in\n{unit}");
        }
        assert!(!unit.contains("Group=") && !unit.contains("StateDirectory"), "{unit}");
        let unit =
            text("systemd", folder.path(), &["--domain", "blog.example.com", "--state-dir", "/var/lib/blog"])
                .unwrap();
        for line in ["--domain blog.example.com", "AmbientCapabilities=", "StateDirectory="] {
            assert!(unit.contains(line), "{line} is missing in\n{unit}");
        }
        assert!(unit.contains("\nProtectControlGroups=yes") && !unit.contains("Delegate="), "{unit}");
        let unit = text("systemd", folder.path(), &["--cpu-max", "1.5"]).unwrap();
        assert!(unit.contains("\nDelegate=cpu memory") && !unit.contains("ProtectControlGroups="), "{unit}");
        assert!(!unit.contains("\nPrivateTmp"), "an application in /tmp is not found with it:\n{unit}");
    }

    #[test]
    fn the_socket_outweighs_the_port_and_any_address_is_this_machine() {
        let folder = folder();
        let of = |options: &[&str]| text("nginx", folder.path(), options).unwrap();
        assert!(of(&["-b", "127.0.0.1", "-b", "unix:/run/x.sock"]).contains("server \"unix:/run/x.sock\""));
        assert!(of(&["-b", "0.0.0.0:4000"]).contains("server \"127.0.0.1:4000\""));
        assert!(of(&["-b", "[::]:4000"]).contains("server \"[::1]:4000\""));
    }

    #[test]
    fn what_cannot_be_configured_is_refused() {
        let folder = folder();
        let error =
            |program: &str, options: &[&str]| text(program, folder.path(), options).unwrap_err().to_string();
        assert!(error("iis", &[]).contains(
            "[possible values: nginx, apache, caddy, haproxy, lighttpd, systemd, kubernetes, kamal, nomad]"
        ));
        assert!(error("nginx", &["-p", "0"]).contains("takes another port each time"));
        assert!(error("nginx", &["--host", "a;$b"]).contains("has the character '$'"));
        let other = tempfile::tempdir().unwrap();
        assert!(error("nginx", &[other.path().to_str().unwrap()]).contains("there are several: "));
    }
}
