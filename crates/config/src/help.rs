//! What `highball --help` prints: a screen of the most common options and examples. The help of each command has all of its
//! options.

use std::fmt::Write;

use crate::options::{named, Default, Opt};

/// The help of the command as a whole; its options are in [`ending`].
pub(crate) const TEMPLATE: &str = "{about}\n\nUsage: {usage}\n\nCommands:\n{subcommands}{after-help}\n";

/// The options that most people need.
const COMMON: [&str; 6] = ["port", "bind", "environment", "workers", "threads", "config"];

/// The options that no default fits everywhere.
pub(crate) const FIRST: [&str; 10] = [
    "environment",
    "port",
    "bind",
    "domain",
    "trusted_proxies",
    "workers",
    "threads",
    "request_timeout",
    "admin",
    "access_log",
];

/// Where the texts of options and examples begin.
const COLUMN: usize = 26;

const EXAMPLES: [(&str, &str); 4] = [
    ("highball", "serve the app in this folder at http://127.0.0.1:3000"),
    ("highball -e production -p 8080 /srv/blog", "serve it in production, on all addresses"),
    ("highball doctor", "boot the app once and list its problems"),
    ("highball config systemd /srv/blog", "print a unit for systemd"),
];

/// The common options, some examples, and where to find the rest.
pub(crate) fn ending() -> String {
    let mut text = String::from("Options:\n");
    for option in COMMON.into_iter().filter_map(named) {
        let _ = writeln!(text, "  {:<COLUMN$}{}", synopsis(option), brief(option));
    }
    let _ = writeln!(text, "  {:<COLUMN$}This text; after a command, all of its options", "-h, --help");
    let _ = writeln!(text, "  {:<COLUMN$}The version", "-V, --version");
    text.push_str("\nExamples:\n");
    for (command, what) in EXAMPLES {
        let _ = writeln!(text, "  {command:<42}{what}");
    }
    text + "\nAll options: highball serve --help, man highball-serve, or docs/configuration.md."
}

/// How `man highball` begins, in roff: what to type, examples, and the options that people set first.
#[must_use]
pub fn man_beginning() -> String {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let mut text = String::from(
        ".SH SYNOPSIS\n\\fBhighball\\fR [OPTIONS] [\\fIPATH\\fR...]\n.br\n\\fBhighball\\fR \\fICOMMAND\\fR [OPTIONS] ...\n.SH EXAMPLES\n",
    );
    for (command, what) in EXAMPLES {
        let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{}", escaped(command), escaped(what));
    }
    text.push_str(".SH \"OPTIONS TO SET FIRST\"\n");
    for option in FIRST.into_iter().filter_map(named) {
        let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{}", escaped(&synopsis(option)), escaped(&brief(option)));
    }
    text
}

fn synopsis(option: &Opt) -> String {
    let short = option.letter().map(|letter| format!("-{letter}, ")).unwrap_or_default();
    format!("{short}{}", option.synopsis())
}

/// What it does, and its default where that is a value.
fn brief(option: &Opt) -> String {
    let what = first_sentence(option);
    match option.default {
        Default::Without(_) => what.into(),
        _ => format!("{what} [default: {}]", option.default_text()),
    }
}

/// The first sentence of an option's documentation, without its period.
pub(crate) fn first_sentence(option: &Opt) -> &'static str {
    option.doc.split_inclusive(". ").next().unwrap_or(option.doc).trim_end_matches(['.', ' '])
}

/// Where the pages are, from the folder that Highball comes in.
const PAGES: &str = "docs/";

/// The documentation of an option as plain text. A link becomes the path of its page, or its words if it is within the page.
pub(crate) fn plain_doc(option: &Opt) -> String {
    let mut text = String::new();
    let mut rest = option.doc;
    while let Some((before, behind)) = rest.split_once("](") {
        let (before, words) = before.rsplit_once('[').unwrap_or((before, ""));
        let (target, behind) = behind.split_once(')').unwrap_or((behind, ""));
        let page = target.split('#').next().unwrap_or_default();
        text.push_str(before);
        text.extend(if page.is_empty() { [words, ""] } else { [PAGES, page] });
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::command;
    use crate::options::options;

    #[test]
    fn the_overview_fits_a_screen_and_names_all_commands() {
        let text = command().render_help().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!((24..=40).contains(&lines.len()), "{} lines:\n{text}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        for command in command().get_subcommands() {
            assert!(
                text.contains(&format!("\n  {} ", command.get_name())),
                "{}:\n{text}",
                command.get_name()
            );
        }
    }

    #[test]
    fn the_help_of_a_command_has_all_options() {
        let mut command = command();
        let serve = command.find_subcommand_mut("serve").unwrap();
        let (short, long) = (serve.render_help().to_string(), serve.render_long_help().to_string());
        for option in options() {
            assert!(short.contains(&format!("--{}", option.long())), "{}:\n{short}", option.name);
            assert!(long.contains(&option.own_variable()), "{}:\n{long}", option.name);
        }
    }

    #[test]
    fn links_become_text() {
        let user = named("server_user").unwrap();
        assert!(plain_doc(user).ends_with("See docs/security.md."), "{}", plain_doc(user));
        assert!(plain_doc(named("bind").unwrap()).contains("`[::1]:4000`"));
    }
}
