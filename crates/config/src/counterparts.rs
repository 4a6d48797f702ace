//! Commands and options of other servers, and what is called so here: for people whose hands know Puma.

use std::path::Path;

use crate::spelling::did_you_mean;

/// The names of all commands.
pub const COMMANDS: [&str; 15] = [
    "serve",
    "doctor",
    "config",
    "init",
    "status",
    "top",
    "profile",
    "restart",
    "rollout",
    "refork",
    "upgrade",
    "maintenance",
    "stop",
    "memory",
    "bench",
];

/// Commands of `pumactl` and `puma`, and the command that does it here.
static COMMANDS_OF_PUMA: [(&str, &str); 13] = [
    ("phased-restart", "restart"),
    ("rolling-restart", "restart"),
    ("hot-restart", "upgrade"),
    ("reload", "restart"),
    ("halt", "stop"),
    ("stats", "status --json"),
    ("gc", "memory --gc"),
    ("gc-stats", "memory"),
    ("info", "status"),
    ("thread-backtraces", "top --backtraces"),
    ("init-config", "config"),
    ("check", "doctor"),
    ("version", "--version"),
];

/// Options of `puma`, and what to do instead.
static OPTIONS_OF_PUMA: [(&str, &str); 22] = [
    ("-v", "`highball --version` prints the version; Puma's -v, a line per request, is `--access-log -`"),
    ("-d", "the server stays in the foreground: let systemd start it (`highball config systemd`)"),
    ("--daemon", "the server stays in the foreground: let systemd start it (`highball config systemd`)"),
    ("--dir", "name the application's folder: `highball /srv/blog`"),
    ("-q", "leave it out, or write `--access-log none`"),
    ("--quiet", "leave it out, or write `--access-log none`"),
    ("-s", "leave it out: redirect standard error, where the log goes"),
    ("--silent", "leave it out: redirect standard error, where the log goes"),
    ("--log-requests", "write `--access-log -`"),
    ("--preload", "leave it out: the application is preloaded unless you write `--preload off`"),
    ("--fork-worker", "write `--refork-after 1000`"),
    ("-f", "write `--refork-after 1000`"),
    ("--control-url", "leave it out: `highball status`, `restart` and `stop` find the server"),
    ("--control-token", "leave it out: `highball status`, `restart` and `stop` find the server"),
    ("--state", "leave it out: `highball status --json` says what a state file would"),
    ("-S", "leave it out: `highball status --json` says what a state file would"),
    ("--tag", "leave it out: processes have the name of the application's folder"),
    ("--prune-bundler", "leave it out: Highball loads no other gem"),
    ("--redirect-stdout", "redirect it in the shell or the systemd unit"),
    ("--redirect-stderr", "redirect it in the shell or the systemd unit"),
    ("--restart-cmd", "leave it out: `highball upgrade` starts the program that the server was started from"),
    ("--plugin", "leave it out: see the plugins in docs/migrating/puma-statements.md"),
];

/// The command that does here what `word` does elsewhere.
fn command(word: &str) -> Option<&'static str> {
    COMMANDS_OF_PUMA.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours)
}

/// The command that a path which is not there may have been meant to be.
pub(crate) fn misspelt_command(path: &Path) -> Option<&'static str> {
    let word = path.to_str()?;
    command(word).or_else(|| did_you_mean(word, COMMANDS.into_iter().chain(["help"])))
}

/// What to do in the place of an option of another server, by how an error names it: `--dir`, or `--preload <on|off>`.
pub(crate) fn option(written: &str) -> Option<&'static str> {
    let name = written.split(['=', ' ']).next().unwrap_or(written);
    OPTIONS_OF_PUMA.iter().find(|(theirs, _)| *theirs == name).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_puma_have_counterparts() {
        assert_eq!(command("phased-restart"), Some("restart"));
        assert!(option("--preload <on|off>").unwrap().contains("leave it out"));
        assert_eq!((command("serve"), option("--port")), (None, None));
    }

    #[test]
    fn what_is_named_instead_is_there() {
        let mut known = crate::command_line::command();
        known.build();
        for (_, ours) in COMMANDS_OF_PUMA {
            let name = ours.split(' ').next().unwrap_or_default();
            let is_command = known.get_subcommands().any(|command| command.get_name() == name);
            let is_option = known
                .get_arguments()
                .any(|argument| Some(argument.get_long().unwrap_or_default()) == name.strip_prefix("--"));
            assert!(is_command || is_option, "{ours}");
        }
    }
}
