//! Files of other servers and platforms in an application's folder, which Highball does not read: what they say has no
//! effect, or starts another server. `highball doctor` and `highball init` name them, each once.

use std::borrow::Cow;

use highball_config::programs::{
    Program, AGOO, APACHE, BEHIND_A_WEB_SERVER, CADDY, FALCON, IODINE, ITSI, NGINX, PASSENGER, PITCHFORK,
    THIN, UNICORN,
};
use highball_tenant::{Links, TenantFolder};

/// The most that is read of a file, in bytes.
const READ_BYTES: u64 = 256 * 1024;

/// A file that Highball does not read.
pub(crate) struct UnreadFile {
    pub(crate) file: &'static str,
    /// What it is or does, after its name: "is Passenger's, and …".
    pub(crate) what: String,
    pub(crate) remedy: Cow<'static, str>,
    /// Whether it does harm: its settings do not count, or it starts another server.
    pub(crate) matters: bool,
}

/// What kind of file it is.
enum Kind {
    /// The configuration of this server.
    Server(Program),
    /// It has commands, in lines with one of these words; they may start another server than Highball. What to do then.
    Commands(&'static [&'static str], &'static str),
    /// It sets this variable, which has an effect only if the Puma configuration asks for it; what to do.
    Variable(&'static str, &'static str),
    /// The configuration of this program, which goes on in front of Highball.
    InFront(Program),
}

struct Known {
    file: &'static str,
    kind: Kind,
}

const fn known(file: &'static str, kind: Kind) -> Known {
    Known { file, kind }
}

const PROCFILE: &str = "Write: web: bundle exec highball";
const DOCKER: &str =
    "End it with CMD [\"./bin/rails\", \"server\"], or [\"bundle\", \"exec\", \"highball\"]: \
                      docs/deploying/docker.md.";
const KAMAL: &str = "Leave out `cmd`, so that the image's command starts Highball: docs/deploying/kamal.md.";
const JOBS: &str = "Run the jobs by config/highball.toml: docs/jobs.md.";
/// The Puma configuration that Highball reads.
const PUMA_FILE: &str = "config/puma.rb";

const COMPOSE: Kind = Kind::Commands(&["command", "entrypoint"], DOCKER);

static KNOWN: &[Known] = &[
    known("Passengerfile.json", Kind::Server(PASSENGER)),
    known("config/unicorn.rb", Kind::Server(UNICORN)),
    known("unicorn.rb", Kind::Server(UNICORN)),
    known("config/pitchfork.rb", Kind::Server(PITCHFORK)),
    known("config/pitchfork.conf.rb", Kind::Server(PITCHFORK)),
    known("pitchfork.conf.rb", Kind::Server(PITCHFORK)),
    known("config/thin.yml", Kind::Server(THIN)),
    known("thin.yml", Kind::Server(THIN)),
    known("config/falcon.rb", Kind::Server(FALCON)),
    known("falcon.rb", Kind::Server(FALCON)),
    known("config/Itsi.rb", Kind::Server(ITSI)),
    known("Itsi.rb", Kind::Server(ITSI)),
    known("config/iodine.rb", Kind::Server(IODINE)),
    known("config/agoo.rb", Kind::Server(AGOO)),
    known("Procfile", Kind::Commands(&["web:"], PROCFILE)),
    known(
        "Procfile.dev",
        Kind::Commands(&["web:"], "Write: web: bin/rails server (or bundle exec highball)"),
    ),
    known("Dockerfile", Kind::Commands(&["CMD", "ENTRYPOINT"], DOCKER)),
    known("compose.yaml", COMPOSE),
    known("compose.yml", COMPOSE),
    known("docker-compose.yml", COMPOSE),
    known("docker-compose.yaml", COMPOSE),
    known("config/deploy.yml", Kind::Commands(&["cmd:"], KAMAL)),
    known("config/deploy.yml", Kind::Variable("SOLID_QUEUE_IN_PUMA", JOBS)),
    known(
        "render.yaml",
        Kind::Commands(&["startCommand:"], "docs/deploying/render.md has the line that starts Highball."),
    ),
    known("fly.toml", Kind::Commands(&["="], "docs/deploying/fly.md has the lines for Highball.")),
    known("app.json", Kind::Commands(&[":"], "Name `bundle exec highball` in it: docs/deploying/heroku.md.")),
    known("nginx.conf", Kind::InFront(NGINX)),
    known("config/nginx.conf", Kind::InFront(NGINX)),
    known("config/nginx.conf.erb", Kind::InFront(NGINX)),
    known("Caddyfile", Kind::InFront(CADDY)),
    known(".htaccess", Kind::InFront(APACHE)),
    known("public/.htaccess", Kind::InFront(APACHE)),
];

const THRUSTER: &str = "Thruster";

/// Programs that a command may start in the place of Highball, and what they are called.
const PROGRAMS: [(&str, &str); 14] = [
    ("puma", "Puma"),
    ("pumactl", "Puma"),
    ("unicorn", UNICORN.name),
    ("unicorn_rails", UNICORN.name),
    ("rainbows", "Rainbows"),
    ("pitchfork", PITCHFORK.name),
    ("passenger", PASSENGER.name),
    ("thin", THIN.name),
    ("falcon", FALCON.name),
    ("itsi", ITSI.name),
    ("iodine", IODINE.name),
    ("agoo", AGOO.name),
    ("webrick", "WEBrick"),
    ("thrust", THRUSTER),
];

/// The files in this folder that Highball does not read.
pub(crate) fn in_folder(folder: &TenantFolder) -> Vec<UnreadFile> {
    KNOWN.iter().filter_map(|known| known.found(folder)).collect()
}

impl Known {
    fn found(&self, folder: &TenantFolder) -> Option<UnreadFile> {
        let file = self.file;
        if !folder.has_file(file) {
            return None;
        }
        // A file that cannot be read, or is no text, has no commands to find.
        let text = || folder.read_text(file, Links::Anywhere, READ_BYTES).unwrap_or_default();
        let not_read = |name| format!("is {name}'s, and Highball does not read it");
        let (what, remedy, matters): (_, Cow<'static, str>, _) = match self.kind {
            Kind::Server(Program { name, page }) => {
                let remedy =
                    format!("Write its settings into config/highball.toml: {page} lists what replaces each.");
                (not_read(name), remedy.into(), true)
            }
            Kind::Commands(words, remedy) => {
                let name = started(&text(), words)?;
                let remedy =
                    if name == THRUSTER { "Leave it out: docs/migrating/thruster.md." } else { remedy };
                (format!("starts {name}, and not Highball"), remedy.into(), true)
            }
            Kind::Variable(name, remedy) => {
                lines(&text()).find(|line| line.contains(name))?;
                let puma = folder.read_text(PUMA_FILE, Links::Anywhere, READ_BYTES).unwrap_or_default();
                if lines(&puma).any(|line| line.contains(name)) {
                    return None;
                }
                let what = format!("sets {name}, which has no effect: no config/puma.rb reads it");
                (what, remedy.into(), true)
            }
            Kind::InFront(Program { name, .. }) => {
                (not_read(name), format!("It may stay in front: {BEHIND_A_WEB_SERVER}.").into(), false)
            }
        };
        Some(UnreadFile { file, what, remedy, matters })
    }
}

/// Lines that are no comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'))
}

/// The server that a line with one of these words starts.
fn started(text: &str, words: &[&str]) -> Option<&'static str> {
    let has_command = |line: &&str| words.iter().any(|word| line.contains(word));
    lines(text).filter(has_command).find_map(|line| {
        let words = line.split(|letter: char| letter.is_whitespace() || "\"'[],;=&|()".contains(letter));
        let names: Vec<&str> = words.map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let program = |name: &&str| PROGRAMS.iter().find(|(program, _)| program == name);
        (!names.contains(&"highball"))
            .then(|| names.iter().find_map(program))
            .flatten()
            .map(|(_, name)| *name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, text).unwrap();
        }
        let folder = TenantFolder::open(folder.path(), None).unwrap();
        let text = |unread: UnreadFile| format!("{} {}", unread.file, unread.what);
        in_folder(&folder).into_iter().map(text).collect()
    }

    #[test]
    fn commands_that_start_another_server_are_found() {
        for (name, text, server) in [
            ("Procfile", "worker: bin/jobs\nweb: bundle exec puma -C config/puma.rb\n", "Puma"),
            ("Procfile", "web: bin/rails server -u puma\n", "Puma"),
            ("Procfile", "web: bin/thrust bin/rails server\n", "Thruster"),
            ("Dockerfile", "EXPOSE 80\nCMD [\"./bin/thrust\", \"./bin/rails\", \"server\"]\n", "Thruster"),
            ("Dockerfile", "ENTRYPOINT bundle exec unicorn -c config/unicorn.rb\n", "Unicorn"),
            ("compose.yaml", "services:\n  web:\n    command: bundle exec puma\n", "Puma"),
            ("render.yaml", "    startCommand: bundle exec puma -t 5\n", "Puma"),
            ("fly.toml", "[processes]\napp = \"bundle exec passenger start\"\n", "Passenger"),
            ("config/deploy.yml", "    cmd: bundle exec falcon serve\n", "Falcon"),
        ] {
            assert_eq!(
                found(&[(name, text)]),
                [format!("{name} starts {server}, and not Highball")],
                "{text}"
            );
        }
    }

    #[test]
    fn files_that_start_highball_or_nothing_are_not_named() {
        for (name, text) in [
            ("Procfile", "web: bundle exec highball -C config/puma.rb\nrelease: bin/puma-check\n"),
            ("Procfile", "web: bin/rails server\n#web: bundle exec puma\n"),
            ("Dockerfile", "RUN gem uninstall puma\nCMD [\"./bin/rails\", \"server\"]\n"),
            ("render.yaml", "  - name: puma\n    startCommand: bundle exec highball\n"),
            ("fly.toml", "app = \"my-puma-app\"\n"),
            ("config/deploy.yml", "env:\n  clear:\n    # SOLID_QUEUE_IN_PUMA: true\n    X: 1\n"),
            ("Procfile", "\u{0}"),
        ] {
            assert!(found(&[(name, text)]).is_empty(), "{text}");
        }
    }

    #[test]
    fn configurations_of_other_servers_are_named() {
        let files = ["Passengerfile.json", "config/unicorn.rb", "thin.yml", "Caddyfile", "public/.htaccess"];
        let files: Vec<(&str, &str)> = files.iter().map(|name| (*name, "")).collect();
        assert_eq!(
            found(&files),
            [
                "Passengerfile.json is Passenger's, and Highball does not read it",
                "config/unicorn.rb is Unicorn's, and Highball does not read it",
                "thin.yml is Thin's, and Highball does not read it",
                "Caddyfile is Caddy's, and Highball does not read it",
                "public/.htaccess is Apache's, and Highball does not read it",
            ]
        );
        let deploy = ("config/deploy.yml", "  SOLID_QUEUE_IN_PUMA: true\n");
        assert!(found(&[deploy])[0].contains("no effect"));
        let puma = ("config/puma.rb", "plugin :solid_queue if ENV[\"SOLID_QUEUE_IN_PUMA\"]\n");
        assert!(found(&[deploy, puma]).is_empty());
    }
}
