//! Which processes of this machine belong to servers for Ruby, by their command lines and titles.

use crate::memory::processes::{Process, ProcessList};
use std::collections::BTreeSet;
use std::path::Path;

/// Servers by the word that their titles begin with, once they have named their process.
const TITLES: &[(&str, &str)] = &[
    ("puma", "Puma"),
    ("puma:", "Puma"),
    ("unicorn master", "Unicorn"),
    ("unicorn worker", "Unicorn"),
    ("unicorn_rails master", "Unicorn"),
    ("unicorn_rails worker", "Unicorn"),
    ("pitchfork", "Pitchfork"),
    ("thin server", "Thin"),
    ("Passenger", PASSENGER),
    ("falcon", "Falcon"),
    ("Falcon", "Falcon"),
    ("itsi", "Itsi"),
    ("Itsi", "Itsi"),
    ("highball mold", "Highball"),
    ("highball worker", "Highball"),
];

/// Servers by the name of the script that starts them.
const SCRIPTS: &[(&str, &str)] = &[
    ("puma", "Puma"),
    ("unicorn", "Unicorn"),
    ("unicorn_rails", "Unicorn"),
    ("pitchfork", "Pitchfork"),
    ("thin", "Thin"),
    ("passenger", PASSENGER),
    ("falcon", "Falcon"),
    ("falcon-host", "Falcon"),
    ("iodine", "Iodine"),
    ("itsi", "Itsi"),
    ("agoo", "Agoo"),
    ("webrick", "WEBrick"),
];

const PASSENGER: &str = "Passenger";

/// What `highball` can be asked to do besides serving.
const HIGHBALLS_OTHER_COMMANDS: &[&str] = &["status", "stop", "restart", "memory", "bench", "help"];

/// Options of `ruby` that stand apart from their values.
const RUBY_OPTIONS_WITH_VALUE: &[&str] = &["-C", "-E", "-I", "-r", "--encoding"];

/// A server: its first process and all that descend from it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RubyServer {
    pub(crate) name: &'static str,
    /// The first process of it comes first; then the others, by pid.
    pub(crate) members: Vec<Member>,
}

/// A process of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    /// `master` (`server` where it serves alone), `mold`, `worker`, `helper`, or `child` for what else descends
    /// from them.
    pub(crate) role: &'static str,
}

/// The servers among these processes; those without `excluded` ones.
pub(crate) fn ruby_servers(processes: &ProcessList, excluded: &BTreeSet<i32>) -> Vec<RubyServer> {
    let known = |process: &Process| match excluded.contains(&process.pid) {
        true => None,
        false => recognise(&process.arguments),
    };
    let is_root = |process: &&Process| {
        known(process).is_some()
            && !processes.ancestors(process.pid).any(|ancestor| known(ancestor).is_some())
    };
    let servers = processes.iter().filter(is_root).filter_map(|root| {
        let pids = processes.trees([root.pid]);
        let others = pids.iter().filter(|pid| **pid != root.pid && !excluded.contains(pid));
        let others: Vec<Member> = others
            .filter_map(|pid| processes.get(*pid))
            .map(|process| Member { pid: process.pid, role: role(process) })
            .collect();
        let alone = others.iter().all(|member| member.role == "child");
        let first = Member { pid: root.pid, role: if alone { "server" } else { "master" } };
        let members = std::iter::once(first).chain(others).collect();
        Some(RubyServer { name: known(root)?, members })
    });
    reunite_passenger(servers.collect(), processes)
}

/// Processes of Passenger's applications lose their parent when their preloader has been idle; where there is
/// one Passenger, they are its own.
fn reunite_passenger(servers: Vec<RubyServer>, processes: &ProcessList) -> Vec<RubyServer> {
    let is_app = |server: &RubyServer| {
        let first = server.members.first().and_then(|first| processes.get(first.pid));
        server.name == PASSENGER && first.is_some_and(|first| role(first) == "worker")
    };
    let (apps, mut servers): (Vec<_>, Vec<_>) = servers.into_iter().partition(is_app);
    let mut passengers: Vec<_> = servers.iter_mut().filter(|server| server.name == PASSENGER).collect();
    if let [passenger] = &mut passengers[..] {
        let members = apps.into_iter().flat_map(|app| app.members);
        passenger.members.extend(members.map(|member| match member.role {
            "master" | "server" => Member { role: "worker", ..member },
            _ => member,
        }));
    } else {
        servers.extend(apps);
    }
    servers
}

/// What a process is that has a server above it.
fn role(process: &Process) -> &'static str {
    let title = process.command();
    match recognise(&process.arguments) {
        None => "child",
        Some("Pitchfork") if title.contains(" mold") => "mold",
        Some("Highball") if title.starts_with("highball mold") => "mold",
        Some(PASSENGER) if !title.contains("RubyApp") => "helper",
        Some(_) => "worker",
    }
}

/// The name of the server that has this command line or title.
fn recognise(arguments: &[String]) -> Option<&'static str> {
    if let [title] = arguments {
        if let Some(name) = by_title(title) {
            return Some(name);
        }
    }
    let words: Vec<&str> = match arguments {
        // `bundle exec` makes a title of the script that it runs, with its arguments.
        [title] if title.starts_with('/') => std::iter::once("ruby").chain(title.split(' ')).collect(),
        _ => arguments.iter().map(String::as_str).collect(),
    };
    by_command(&words)
}

fn by_title(title: &str) -> Option<&'static str> {
    let begins = |word: &str| match title.strip_prefix(word) {
        // A name ends where no letter follows: `pitchfork (gen:0)`, `unicorn worker[0]`, but not `pumactl`.
        Some(rest) => !rest.starts_with(|next: char| next.is_alphanumeric() || "-_/.".contains(next)),
        None => false,
    };
    TITLES.iter().find(|(word, _)| begins(word)).map(|(_, name)| *name)
}

fn by_command(words: &[&str]) -> Option<&'static str> {
    let (program, rest) = words.split_first()?;
    if file_name(program) == "highball" {
        let serves = !rest.first().is_some_and(|command| HIGHBALLS_OTHER_COMMANDS.contains(command));
        return serves.then_some("Highball");
    }
    if !is_ruby(program) {
        return None; // there are other programs with the names of these scripts
    }
    let (script, rest) = script_of(rest)?;
    match (file_name(script), rest) {
        ("bundle" | "bundler", ["exec", words @ ..]) => by_command_of_bundle(words),
        ("rackup", options) => Some(chosen_server(options, "rackup")),
        ("rails", ["server" | "s", options @ ..]) => Some(chosen_server(options, "Rails server")),
        (script, _) => SCRIPTS.iter().find(|(name, _)| *name == script).map(|(_, name)| *name),
    }
}

/// `bundle exec puma …`, `bundle exec ruby bin/rails server …`.
fn by_command_of_bundle(words: &[&str]) -> Option<&'static str> {
    let program = words.first()?;
    if is_ruby(program) || file_name(program) == "highball" {
        return by_command(words);
    }
    by_command(&[&["ruby"], words].concat())
}

/// The script that Ruby was given, and what stands after it.
fn script_of<'a, 'b>(words: &'a [&'b str]) -> Option<(&'b str, &'a [&'b str])> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        match *word {
            "-e" => return None,
            option if RUBY_OPTIONS_WITH_VALUE.contains(&option) => index += 2,
            option if option.starts_with('-') => index += 1,
            script => return Some((script, &words[index + 1..])),
        }
    }
    None
}

/// The server that the options of `rackup` or `rails server` name, else `otherwise`.
fn chosen_server(options: &[&str], otherwise: &'static str) -> &'static str {
    let named = options.iter().enumerate().find_map(|(index, option)| match *option {
        "-s" | "--server" | "-u" | "--using" => options.get(index + 1).copied(),
        option => option.strip_prefix("--server=").or_else(|| option.strip_prefix("--using=")),
    });
    let server = named.and_then(|named| SCRIPTS.iter().find(|(name, _)| *name == named.to_lowercase()));
    server.map_or(otherwise, |(_, name)| name)
}

fn is_ruby(program: &str) -> bool {
    let name = file_name(program);
    let version = name.strip_prefix("jruby").or_else(|| name.strip_prefix("truffleruby"));
    let version = version.or_else(|| name.strip_prefix("ruby"));
    version.is_some_and(|version| {
        version.chars().all(|char| char.is_ascii_digit() || char == '.' || char == '-')
    })
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(text: &str) -> Option<&'static str> {
        recognise(&[text.to_owned()])
    }

    fn command(text: &str) -> Option<&'static str> {
        recognise(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn servers_are_known_by_their_titles() {
        for (text, name) in [
            ("puma 5.6.5 (tcp://127.0.0.1:9292) [hello]", "Puma"),
            ("puma: cluster worker 0: 10098 [hello]", "Puma"),
            ("unicorn master -l 127.0.0.1:8080", "Unicorn"),
            ("unicorn worker[0] -l 127.0.0.1:8080", "Unicorn"),
            ("unicorn_rails worker[3] -c config/unicorn.rb", "Unicorn"),
            ("pitchfork (gen:0) worker[1] - requests: 3, waiting", "Pitchfork"),
            ("thin server (127.0.0.1:3000)", "Thin"),
            ("Passenger core", "Passenger"),
            ("Passenger RubyApp: /srv/blog (production)", "Passenger"),
            ("highball worker 1: blog", "Highball"),
            ("/usr/bin/rackup -s webrick", "WEBrick"),
        ] {
            assert_eq!(title(text), Some(name), "{text}");
        }
    }

    #[test]
    fn servers_are_known_by_their_commands() {
        for (text, name) in [
            ("/usr/bin/ruby /usr/bin/thin start -p 3000", "Thin"),
            ("ruby3.1 -W0 -I lib /usr/local/bin/iodine -t 1", "Iodine"),
            ("/usr/bin/ruby -rbundler/setup /usr/bin/itsi", "Itsi"),
            ("ruby /usr/bin/falcon serve", "Falcon"),
            ("ruby /usr/bin/rackup -s webrick -p 80", "WEBrick"),
            ("ruby /usr/bin/rackup --server=thin", "Thin"),
            ("ruby /usr/bin/rackup", "rackup"),
            ("ruby bin/rails server -p 3000", "Rails server"),
            ("ruby bin/rails s -u webrick", "WEBrick"),
            ("/usr/bin/ruby /usr/bin/bundle exec puma -p 3000", "Puma"),
            ("/usr/bin/ruby /usr/bin/bundle exec ruby bin/rails s", "Rails server"),
            ("/usr/local/bin/highball serve -p 80 /srv/blog", "Highball"),
            ("highball", "Highball"),
        ] {
            assert_eq!(command(text), Some(name), "{text}");
        }
    }

    #[test]
    fn others_are_not_taken_for_servers() {
        for text in [
            "ruby -Itest test/puma_test.rb",
            "ruby -e sleep puma",
            "/usr/bin/ruby bin/rails console",
            "/usr/bin/ruby /usr/bin/bundle install puma",
            "vim puma.rb",
            "grep puma",
            "/usr/sbin/thin_check /dev/sda",
            "/usr/sbin/iodine -f 10.0.0.1",
            "rubocop puma",
            "highball memory --json",
            "highball status",
            "bash",
            "ruby",
        ] {
            assert_eq!(command(text), None, "{text}");
        }
        for text in ["pumactl status", "puma-dev", "thinking", "passenger", "unicorns", ""] {
            assert_eq!(title(text), None, "{text}");
        }
    }

    fn processes(all: &[(i32, i32, &str)]) -> ProcessList {
        let process = |(pid, parent, title): &(i32, i32, &str)| Process {
            pid: *pid,
            parent: *parent,
            uid: 0,
            arguments: vec![(*title).into()],
        };
        all.iter().map(process).collect()
    }

    /// `Puma: 10 master, 11 worker`.
    fn shown(servers: &[RubyServer]) -> Vec<String> {
        let member = |member: &Member| format!("{} {}", member.pid, member.role);
        let members = |server: &RubyServer| server.members.iter().map(member).collect::<Vec<_>>().join(", ");
        servers.iter().map(|server| format!("{}: {}", server.name, members(server))).collect()
    }

    #[test]
    fn a_master_its_workers_and_their_children_are_one_server() {
        let all = processes(&[
            (1, 0, "init"),
            (12, 10, "puma: cluster worker 0: 10"),
            (10, 1, "puma 5.6.5 (tcp://127.0.0.1:1)"),
            (11, 12, "convert"),
            (20, 1, "puma 5.6.5 (tcp://127.0.0.1:2)"),
            (30, 1, "bash"),
        ]);
        assert_eq!(
            shown(&ruby_servers(&all, &BTreeSet::new())),
            ["Puma: 10 master, 11 child, 12 worker", "Puma: 20 server"]
        );
    }

    #[test]
    fn what_is_excluded_is_neither_a_server_nor_a_member() {
        let all = processes(&[
            (2, 1, "highball mold: a"),
            (3, 1, "highball worker 1: a"),
            (5, 1, "thin server (a)"),
            (6, 5, "x"),
        ]);
        assert_eq!(shown(&ruby_servers(&all, &BTreeSet::from([2, 3, 6]))), ["Thin: 5 server"]);
    }

    #[test]
    fn orphaned_applications_of_passenger_are_its_own() {
        let app = (40, 1, "Passenger RubyApp: /srv/blog (production)");
        let all = processes(&[(10, 1, "Passenger watchdog"), (11, 10, "Passenger core"), app]);
        assert_eq!(
            shown(&ruby_servers(&all, &BTreeSet::new())),
            ["Passenger: 10 master, 11 helper, 40 worker"]
        );
        assert_eq!(shown(&ruby_servers(&processes(&[app]), &BTreeSet::new())), ["Passenger: 40 server"]);
    }
}
