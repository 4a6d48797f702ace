//! `docs/configuration.md`, made from the table of options.

use std::fmt::Write;

use crate::form::Notation;
use crate::help::{first_sentence, FIRST};
use crate::options::{named, Applies, Opt, Scope, SECTIONS};

const INTRODUCTION: &str = "\
<!-- Made from crates/config/src/options.rs by `just docs`; changes belong there. -->

# Configuration

Highball needs no configuration. You can set every option in three places, under one name:

| place | example |
| --- | --- |
| command line | `highball --idle-timeout 20s` |
| environment | `HIGHBALL_IDLE_TIMEOUT=20s` |
| configuration file | `idle_timeout = \"20s\"` |

The command line overrides the environment, and the environment overrides the file.

## Options to set first

These depend on your machine and application. The other defaults suit most deployments.

| option | what it sets | default |
| --- | --- | --- |
";

const RULES: &str = "
## Values

| value | written as |
| --- | --- |
| size | bytes, or a number with `k`, `m`, `g` or `t` (powers of 1024): `65536`, `64k`, `1GiB` |
| time | seconds, or a number with `ms`, `s`, `m`, `h` or `d`: `30`, `30s`, `1.5s`, `5m` |
| switch | `on` or `off` (in the file also `true` or `false`) |
| no limit | `none`, if the option allows it |
| several values | the option several times; in a variable, with commas between them; in the file, a list |

## Which value counts

The command line overrides the environment. The environment overrides the configuration file, the file overrides
`config/puma.rb`, and that overrides the default.

- Variables of platforms and frameworks, such as `PORT`, count as well. A variable that begins with `HIGHBALL_` overrides them,
  and so does `config/puma.rb`.
- A blank variable counts as unset. If the option restricts something (`basic_auth`, `bind`), it is an error: see
  [security.md](security.md#when-a-restriction-cannot-be-enforced).
- An existing `config/puma.rb` applies, and its hooks run. The log and `highball doctor` say which options come from which file,
  and name each statement that has no counterpart; a statement that restricts something is then an error.
  `puma_config = false` turns the file off. See [migrating/puma.md](migrating/puma.md#configpumarb).

## Configuration file

The file is [TOML](https://toml.io). Highball reads the file that `--config` names, else the one in `HIGHBALL_CONFIG`, else
`config/highball.toml` or `highball.toml` in the application's folder.

- An option that does not exist is an error.
- Relative paths in the file begin at the application's folder, all others at the current folder.
- If you name a file for a single application, Highball reads no other, neither `config/highball.toml` nor `config/puma.rb`.

With [several applications](many-apps.md), the file is the server's:

- Options at its top are for the server, and are the defaults of all applications. Each application has an `[[app]]`.
- Relative paths at its top, and the `path` of an `[[app]]`, begin at the folder of the file (for `config/highball.toml`, at the
  folder around it). Other relative paths in an `[[app]]` begin at the folder of its application.
- An application's own file sets only options of that application.

## When a change takes effect

HUP has Highball read the file again; see [signals.md](signals.md). Each option below says when a changed value takes effect:

| takes effect | what happens |
| --- | --- |
| after HUP | the value counts at once; processes and connections stay |
| after HUP, in new processes | HUP also restarts the application, without dropping requests ([restarts.md](restarts.md)) |
| after a hot restart | `highball upgrade` applies the value; HUP does not |
| at the next start | stop the server, and start it with the new value |

A running server keeps its command line and its environment. To change an option there, stop the server and start it again.

## Variables without an option

| variable | meaning |
| --- | --- |
| `HIGHBALL_CONTROL` | path of the control socket, or of a folder for control sockets; set it for the server and for commands ([signals.md](signals.md#how-commands-find-the-server)) |
| `HIGHBALL_EDITOR` | the editor that [error pages](diagnosis.md#links-that-open-your-editor) open, such as `code`; otherwise `VISUAL` or `EDITOR` |
| `HIGHBALL_LOG` | level of the log: `error`, `warn`, `info` (the default), `debug` or `trace` |
";

/// The text of `docs/configuration.md`.
pub fn manual() -> String {
    let mut text = INTRODUCTION.to_owned();
    for option in FIRST.into_iter().filter_map(named) {
        text.push_str(&row(option));
    }
    text.push_str(RULES);
    for (title, options) in SECTIONS {
        let _ = write!(text, "\n## {title}\n");
        for option in *options {
            text.push_str(&entry(option));
        }
    }
    text.push_str(&example_file());
    text
}

/// A line of the first table.
fn row(option: &Opt) -> String {
    let (name, what, default) = (option.name, first_sentence(option), option.default_text());
    format!("| [`{name}`](#{name}) | {what} | {default} |\n")
}

fn entry(option: &Opt) -> String {
    let short = option.letter().map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    let variables: Vec<String> = option.variables().map(|name| format!("`{name}`")).collect();
    let mut text = format!("\n### {}\n\n{}\n\n", option.name, option.doc);
    let _ = writeln!(text, "- command line: {short}`{}`", option.synopsis());
    let _ = writeln!(text, "- environment: {}", variables.join(", "));
    if let Some(range) = option.value.form().range() {
        let _ = writeln!(text, "- range: {range}");
    }
    let _ = writeln!(text, "- default: {}", option.default_text());
    let _ = writeln!(text, "- takes effect: {}", taking_effect(option));
    match option.scope {
        Scope::Start | Scope::Server => {}
        scope if scope.is_shared() => text.push_str("- each application may have its own\n"),
        _ => {
            text.push_str("- each application has its own: with several, in its `[[app]]` or its own file\n")
        }
    }
    text
}

/// When a changed value takes effect.
fn taking_effect(option: &Opt) -> &'static str {
    match option.scope.applies() {
        Applies::AtOnce => "after HUP",
        Applies::AtOnceAfterFirst => "after HUP; the first limit of a server at the next start",
        Applies::WithNewProcesses => "after HUP, in new processes",
        Applies::WithNewServer if matches!(option.scope, Scope::ServerAndApp(_)) => {
            "after a hot restart; an application's own value after HUP"
        }
        Applies::WithNewServer => "after a hot restart",
        Applies::AtStart => "at the next start",
    }
}

/// A file with every option: each line is the default, or an example where the default is no value.
fn example_file() -> String {
    let mut text =
        "\n## Example file\n\nThis file has every option. The values are examples.\n\n```toml\n".to_owned();
    for (title, options) in SECTIONS {
        let _ = writeln!(text, "# {title}");
        for option in options.iter().filter(|option| option.in_file()) {
            let _ = writeln!(text, "{} = {}", option.name, toml_value(option));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n```\n"
}

/// The example of an option, as a file has it.
pub(crate) fn toml_value(option: &Opt) -> String {
    match option.value.form().notation() {
        Notation::Number => option.example.to_owned(),
        Notation::List | Notation::Table | Notation::Entries => format!("[\"{}\"]", option.example),
        Notation::Switch | Notation::Flag => (option.example == "on").to_string(),
        Notation::Text => format!("\"{}\"", option.example),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_options_are_in_the_table() {
        assert!(FIRST.into_iter().all(|name| named(name).is_some()));
    }
}
