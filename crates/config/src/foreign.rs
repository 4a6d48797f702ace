//! Configurations of other servers and programs: known by what only they have, and refused with the page that says how to move.
//! Read as a Puma configuration, such a file would lose its addresses and limits.

use std::path::Path;

use crate::programs::{
    Program, AGOO, APACHE, CADDY, DOCKER, FALCON, HAPROXY, IODINE, ITSI, KAMAL, NGINX, PASSENGER, PITCHFORK,
    PROCFILE, RACK, SYSTEMD, THIN, UNICORN,
};

/// Names of files, in small letters, and what they are for.
static FILE_NAMES: [(&str, Program); 9] = [
    ("passengerfile.json", PASSENGER),
    ("nginx.conf", NGINX),
    ("caddyfile", CADDY),
    ("procfile", PROCFILE),
    ("dockerfile", DOCKER),
    ("containerfile", DOCKER),
    ("itsi.rb", ITSI),
    ("falcon.rb", FALCON),
    ("config.ru", RACK),
];

/// Statements of Ruby files that Puma does not have, but another server.
static STATEMENTS: [(Program, &[&str]); 4] = [
    (
        PITCHFORK,
        &[
            "refork_after",
            "after_mold_fork",
            "after_monitor_ready",
            "after_request_complete",
            "after_worker_hard_timeout",
            "after_worker_timeout",
            "before_service_worker_exit",
            "before_service_worker_ready",
            "before_worker_exit",
            "cleanup_timeout",
            "max_consecutive_spawn_errors",
            "refork_max_unavailable",
            "setpgid",
            "spawn_timeout",
        ],
    ),
    (
        UNICORN,
        &[
            "after_fork",
            "after_worker_exit",
            "after_worker_ready",
            "before_exec",
            "check_client_connection",
            "client_body_buffer_size",
            "default_middleware",
            "listen",
            "logger",
            "pid",
            "rewindable_input",
            "stderr_path",
            "stdout_path",
            "timeout",
            "user",
            "worker_exec",
            "worker_processes",
            "working_directory",
        ],
    ),
    (
        ITSI,
        &[
            "allow_list",
            "auth_api_key",
            "auth_basic",
            "auth_jwt",
            "auto_reload_config!",
            "deny_list",
            "endpoint",
            "fiber_scheduler",
            "location",
            "multithreaded_reactor",
            "oob_gc_responses_threshold",
            "preload",
            "rackup_file",
            "rate_limit",
            "shutdown_timeout",
            "static_assets",
            "worker_memory_limit",
        ],
    ),
    (FALCON, &["rack", "service", "host", "supervisor"]),
];

/// Statements that Puma alone has. A file with one is Puma's: what else is in it is reported statement by statement.
static OF_PUMA: [&str; 17] = [
    "activate_control_app",
    "before_worker_boot",
    "bind_to_activated_sockets",
    "fork_worker",
    "on_worker_boot",
    "persistent_timeout",
    "pidfile",
    "plugin",
    "port",
    "preload_app!",
    "prune_bundler",
    "rackup",
    "ssl_bind",
    "state_path",
    "stdout_redirect",
    "worker_shutdown_timeout",
    "worker_timeout",
];

/// What other program this file is for, by its name and its content; `None`: none that is known.
pub(crate) fn recognise(path: &Path, text: &str) -> Option<Program> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let is_variant = |known: &str| name == known || (!known.contains('.') && stem == known);
    if let Some((_, foreign)) = FILE_NAMES.iter().find(|(known, _)| is_variant(known)) {
        return Some(*foreign);
    }
    if name.ends_with(".ru") {
        return Some(RACK);
    }
    if name.ends_with(".rb") {
        return by_statements(text);
    }
    by_lines(text)
}

/// In words of an error.
pub(crate) fn refusal(Program { name, page }: Program) -> String {
    format!(
        "this is a file of {name}, and not of Highball or Puma, so Highball does not read it. Write a highball.toml, and name \
         that with `--config` (or name none, if it is in the application's folder); {page} lists what replaces each setting"
    )
}

fn by_statements(text: &str) -> Option<Program> {
    for (mark, foreign) in [
        ("falcon/environment", FALCON),
        ("falcon-host", FALCON),
        ("Falcon::", FALCON),
        ("Iodine.", IODINE),
        ("Agoo::", AGOO),
        ("Thin::", THIN),
        ("Unicorn::", UNICORN),
        ("Pitchfork::", PITCHFORK),
    ] {
        if code(text).any(|line| line.starts_with(mark) || (mark.contains('/') && line.contains(mark))) {
            return Some(foreign);
        }
    }
    let statements: Vec<&str> = code(text).filter_map(statement).collect();
    let defines = |name: &str| {
        code(text).any(|line| line.strip_prefix("def ").is_some_and(|def| def.starts_with(name)))
    };
    let is_of = |known: &[&str]| statements.iter().any(|name| known.contains(name) && !defines(name));
    if is_of(&OF_PUMA) {
        return None;
    }
    // Unicorn's hooks have two parameters.
    let has_hook =
        code(text).any(|line| line.starts_with("before_fork") && line.contains('|') && line.contains(','));
    let found = STATEMENTS.iter().find(|(_, known)| is_of(known)).map(|(foreign, _)| *foreign);
    found.or(has_hook.then_some(UNICORN))
}

/// Its lines of code, without blanks before them, comments and what comes after `__END__`.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start).take_while(|line| *line != "__END__");
    let mut is_comment = false;
    lines.filter(move |line| {
        let was_comment = is_comment;
        is_comment = (is_comment || line.starts_with("=begin")) && !line.starts_with("=end");
        !(was_comment || is_comment || line.starts_with('#') && !line.starts_with("#!"))
    })
}

/// The name that a line begins with, if that is called, and not assigned to.
pub(crate) fn statement(line: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = line.find(|c| !is_part(c)).unwrap_or(line.len());
    let end = if line[end..].starts_with('!') { end + 1 } else { end };
    let (name, rest) = line.split_at(end);
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_command =
        rest.starts_with(' ') && rest.trim_start().starts_with(|c: char| !"=.,)]}+-*/&|?<>%!".contains(c));
    let is_symbol = !rest.trim_start().starts_with(": ");
    let is_call = rest.starts_with('(') || (is_command && is_symbol) || name.ends_with('!');
    (is_name && is_call).then_some(name)
}

/// The first line of code with one of these statements that `counts`: its number, from 1.
pub(crate) fn line_of(text: &str, counts: impl Fn(&str, &str) -> bool) -> Option<usize> {
    let lines = text.lines().map(str::trim_start).enumerate();
    let mut calls = lines.filter_map(|(index, line)| Some((index, statement(line)?, line)));
    calls.find(|(_, name, line)| counts(name, line)).map(|(index, ..)| index + 1)
}

fn by_lines(text: &str) -> Option<Program> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let begins = |words: &[&str]| lines().any(|line| words.iter().any(|word| line.starts_with(word)));
    let first = lines().next().unwrap_or_default();
    if begins(&["passenger_", "PassengerRoot", "PassengerRuby"]) {
        return Some(PASSENGER);
    }
    if first.starts_with('{')
        && ["app_type", "envvars", "passenger", "environment"].iter().any(|key| text.contains(key))
    {
        return Some(PASSENGER);
    }
    let is_block = |word: &str| {
        lines().any(|line| line.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with('{')))
    };
    if begins(&["reverse_proxy ", "php_fastcgi ", "file_server"]) {
        return Some(CADDY);
    }
    if ["server", "http", "events"].into_iter().any(is_block) || begins(&["upstream ", "proxy_pass "]) {
        return Some(NGINX);
    }
    if begins(&["<VirtualHost", "<Directory", "<Location", "ProxyPass "]) {
        return Some(APACHE);
    }
    if lines().any(|line| matches!(line, "[Service]" | "[Unit]" | "[Socket]")) {
        return Some(SYSTEMD);
    }
    if first.starts_with("FROM ") || (first.starts_with("ARG ") && begins(&["FROM "])) {
        return Some(DOCKER);
    }
    if begins(&["frontend ", "backend "]) && begins(&["bind ", "server ", "mode "]) {
        return Some(HAPROXY);
    }
    by_keys(text)
}

/// By the keys of YAML, or the names of processes, at the beginnings of lines.
fn by_keys(text: &str) -> Option<Program> {
    let keys: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let has = |name: &str| keys.iter().any(|(key, _)| *key == name);
    if has("service") && has("image") {
        return Some(KAMAL);
    }
    if has("services") && keys.iter().any(|(key, _)| ["image", "build"].contains(&key.trim())) {
        return Some(DOCKER);
    }
    let of_thin = [
        "chdir",
        "rackup",
        "servers",
        "address",
        "daemonize",
        "max_conns",
        "max_persistent_conns",
        "pid",
        "socket",
    ];
    if of_thin.into_iter().filter(|name| has(name)).count() >= 2 {
        return Some(THIN);
    }
    keys.iter().any(|(key, value)| *key == "web" && !value.trim().is_empty()).then_some(PROCFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(file: &str, text: &str) -> Option<&'static str> {
        recognise(Path::new(file), text).map(|foreign| foreign.name)
    }

    #[test]
    fn files_are_known_by_what_only_they_have() {
        for (file, text, name) in [
            ("unicorn.rb", "worker_processes 4\nlisten '127.0.0.1:8080'\ntimeout 30\n", "Unicorn"),
            (
                "config/puma.rb",
                "# Unicorn\npreload_app true\nbefore_fork do |server, worker|\nend\n",
                "Unicorn",
            ),
            ("x.rb", "@dir = '/srv'\nstderr_path \"#{@dir}/log\"\n", "Unicorn"),
            ("pitchfork.conf.rb", "worker_processes 4\nrefork_after [50, 100]\n", "Pitchfork"),
            ("falcon.rb", "", "Falcon"),
            (
                "host.rb",
                "#!/usr/bin/env falcon-host\nservice 'x' do\n  include Falcon::Environment::Rack\nend\n",
                "Falcon",
            ),
            ("x.rb", "load :rack\nrack 'hello.localhost' do\nend\n", "Falcon"),
            ("Itsi.rb", "workers 2\nbind 'http://127.0.0.1'\n", "Itsi"),
            ("x.rb", "workers 2\nlocation '/admin' do\n  auth_basic realm: 'x'\nend\n", "Itsi"),
            ("x.rb", "Iodine.threads = 4\nIodine.listen service: :http\n", "Iodine"),
            ("x.rb", "Agoo::Server.init(3000, 'root')\n", "Agoo"),
            ("thin.yml", "---\nchdir: /srv/blog\naddress: 127.0.0.1\nport: 3000\n", "Thin"),
            ("Passengerfile.json", "{}", "Passenger"),
            ("x.json", "{\n  \"app_type\": \"rack\", \"address\": \"127.0.0.1\"}", "Passenger"),
            ("site.conf", "server {\n  listen 80;\n  passenger_enabled on;\n}\n", "Passenger"),
            ("site.conf", "upstream app {\n}\nserver {\n  listen 80;\n}\n", "nginx"),
            ("Caddyfile", "", "Caddy"),
            ("site.caddy", "example.org {\n  reverse_proxy localhost:3000\n}\n", "Caddy"),
            ("Procfile", "web: x\n", "Foreman or Heroku (a Procfile)"),
            ("Procfile.dev", "web: x\n", "Foreman or Heroku (a Procfile)"),
            ("deploy.yml", "service: blog\nimage: me/blog\n", "Kamal"),
            ("Dockerfile", "FROM ruby\n", "Docker"),
            ("compose.yaml", "services:\n  web:\n    build: .\n", "Docker"),
            ("site.conf", "<VirtualHost *:80>\n", "Apache"),
            ("haproxy.cfg", "frontend web\n  bind :80\n", "HAProxy"),
            ("blog.service", "[Unit]\n[Service]\nExecStart=/bin/true\n", "systemd"),
            ("config.ru", "run App\n", "Rack (a rackup file)"),
        ] {
            assert_eq!(name_of(file, text), Some(name), "{file}: {text}");
        }
    }

    #[test]
    fn files_of_puma_and_highball_are_none() {
        for (file, text) in [
            ("config/puma.rb", "threads 1, 5\nport 3000\nplugin :tmp_restart\n"),
            ("config/puma.rb", "timeout = 30\nworkers 2\nworker_timeout timeout\n"),
            ("config/puma.rb", "# worker_processes 4\nworkers 2\n=begin\nlisten 80\n=end\n"),
            ("config/puma.rb", "def listen(port)\n  bind port\nend\nlisten 3\n"),
            ("config/puma.rb", "pidfile 'x'\ntimeout 30\n"),
            ("config/puma.rb", "before_fork do\n  x { |a, b| }\nend\n"),
            ("config/puma.rb", ""),
            ("highball.toml", "bind = '127.0.0.1'\n[[app]]\npath = '/srv/blog'\n"),
            ("highball.toml", "# web: x\nworkers = 3\n"),
        ] {
            assert_eq!(name_of(file, text), None, "{file}: {text}");
        }
    }

    #[test]
    fn names_that_are_called() {
        for (line, name) in [
            ("bind 'x'", Some("bind")),
            ("port(3)", Some("port")),
            ("preload_app!", Some("preload_app!")),
            ("timeout = 3", None),
            ("timeout ||= 3", None),
            ("pid.x", None),
            ("user", None),
            ("Unicorn::X", None),
            ("größe 3", None),
        ] {
            assert_eq!(statement(line), name, "{line}");
        }
    }
}
