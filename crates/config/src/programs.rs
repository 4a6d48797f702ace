//! Other servers and programs whose files an application may have: what each is called, and the page that says how to move.

#![allow(missing_docs)] // the constants are named for the programs

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The page that says what to write instead.
    pub page: &'static str,
}

const fn program(name: &'static str, page: &'static str) -> Program {
    Program { name, page }
}

/// How Highball works behind a web server.
pub const BEHIND_A_WEB_SERVER: &str = "docs/deploying/behind-a-web-server.md";
const UNICORN_PITCHFORK: &str = "docs/migrating/unicorn-pitchfork.md";
const OTHERS: &str = "docs/migrating/other-servers.md";

pub const UNICORN: Program = program("Unicorn", UNICORN_PITCHFORK);
pub const PITCHFORK: Program = program("Pitchfork", UNICORN_PITCHFORK);
pub const THIN: Program = program("Thin", OTHERS);
pub const FALCON: Program = program("Falcon", OTHERS);
pub const ITSI: Program = program("Itsi", OTHERS);
pub const IODINE: Program = program("Iodine", OTHERS);
pub const AGOO: Program = program("Agoo", OTHERS);
pub const PASSENGER: Program = program("Passenger", "docs/migrating/passenger.md");
pub const NGINX: Program = program("nginx", "docs/migrating/nginx.md");
pub const CADDY: Program = program("Caddy", BEHIND_A_WEB_SERVER);
pub const APACHE: Program = program("Apache", BEHIND_A_WEB_SERVER);
pub const HAPROXY: Program = program("HAProxy", BEHIND_A_WEB_SERVER);
pub const SYSTEMD: Program = program("systemd", "docs/deploying/systemd.md");
pub const PROCFILE: Program = program("Foreman or Heroku (a Procfile)", "docs/deploying/heroku.md");
pub const KAMAL: Program = program("Kamal", "docs/deploying/kamal.md");
pub const DOCKER: Program = program("Docker", "docs/deploying/docker.md");
pub const RACK: Program = program("Rack (a rackup file)", "docs/getting-started.md");
