//! Companions: processes that belong to an application and run beside its workers, such as background jobs. `[[process]]` in a
//! file, `--with` on the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use crate::settings::{Companion, CompanionCommand as Command, MemoryBound, RestartRule};
use crate::spelling::{did_you_mean, guess};
use crate::value;

/// The most processes of an application, counted with their copies.
const MOST: usize = 64;
/// What Procfiles call the server.
const WEB: &str = "web";
const NAME_BYTES: usize = 32;
const COMMAND_BYTES: usize = 4096;
const MOST_VARIABLES: usize = 256;
const STOP_TIMES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(86400);
const USUAL_STOP_TIME: Duration = Duration::from_secs(30);
const KEYS: [&str; 10] = [
    "name",
    "command",
    "count",
    "fork",
    "env",
    "directory",
    "restart",
    "stop_timeout",
    "start_after",
    "memory_limit",
];
const RESTARTS: [(&str, RestartRule); 3] =
    [("always", RestartRule::Always), ("on-failure", RestartRule::OnFailure), ("never", RestartRule::Never)];

/// An entry of a file as a text, which [`companion`] reads.
pub(crate) fn entry(table: &DeTable<'_>) -> String {
    json_of_table(table).to_string()
}

fn json_of_table(table: &DeTable<'_>) -> Json {
    let fields = table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
    Json::Object(fields.collect::<Map<_, _>>())
}

fn json(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => number.to_string().into(),
        DeValue::Float(number) => number.to_string().into(),
        DeValue::Boolean(switch) => (*switch).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => json_of_table(table),
    }
}

/// Reads `NAME=COMMAND`, or an [`entry`]: no name begins like one.
pub(crate) fn companion(text: &str) -> Result<Companion, String> {
    if text.starts_with('{') {
        let fields: Map<String, Json> =
            serde_json::from_str(text).map_err(|error| format!("the entry cannot be read: {error}"))?;
        return of_entry(&fields);
    }
    let example = "write NAME=COMMAND, such as jobs=\"bin/jobs\"";
    let (name_text, line) =
        text.split_once('=').ok_or_else(|| format!("this names no command; {example}"))?;
    Ok(Companion {
        name: name(name_text)?,
        command: Command::Shell(command_text(line)?),
        count: 1,
        fork: false,
        env: BTreeMap::new(),
        directory: None,
        restart: RestartRule::Always,
        stop_timeout: USUAL_STOP_TIME,
        start_after: Vec::new(),
        memory_limit: MemoryBound::None,
    })
}

/// Which processes of a Procfile run, such as `web,worker`. `web` is Highball itself.
pub(crate) fn procfile_names(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|text| *text != WEB);
    names.map(name).collect()
}

/// The companions with these names in a Procfile.
pub(crate) fn of_procfile(text: &str, names: &[String]) -> Result<Vec<Companion>, String> {
    let lines = || text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let named = |name: &String| {
        let Some((_, command)) = lines().find(|(other, _)| other.trim_end() == name) else {
            let names = lines().map(|(name, _)| name.trim_end()).filter(|other| self::name(other).is_ok());
            let known: Vec<&str> = names.collect();
            let hint = match did_you_mean(name, known.iter().copied()) {
                Some(guess) => format!("did you mean `{guess}`?"),
                None => format!("it has {}", or_none(&known)),
            };
            return Err(format!("the Procfile has no `{name}`; {hint}"));
        };
        companion(&format!("{name}={command}"))
    };
    names.iter().map(named).collect()
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "no other processes than web".into()
    } else {
        names.join(", ")
    }
}

/// # Errors
/// There are too many, or two have the same name.
pub(crate) fn check(companions: &[Companion]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    if let Some(twice) = companions.iter().find(|companion| !names.insert(&companion.name)) {
        return Err(format!("there are two processes with the name `{}`", twice.name));
    }
    if companions.iter().map(|companion| usize::from(companion.count)).sum::<usize>() > MOST {
        return Err(format!("there are more than {MOST} processes, counted with their copies"));
    }
    Ok(())
}

/// # Errors
/// There is no order in which they can start.
pub(crate) fn check_order(companions: &[Companion]) -> Result<(), String> {
    let all = || companions.iter().map(|companion| companion.name.as_str());
    for Companion { name, start_after, .. } in companions {
        if let Some(unknown) = start_after.iter().find(|other| !all().any(|known| known == other.as_str())) {
            let hint = guess(unknown, all());
            return Err(format!(
                "`start_after` of the process `{name}`: there is no process `{unknown}`{hint}"
            ));
        }
    }
    let mut waiting: Vec<&Companion> = companions.iter().collect();
    while !waiting.is_empty() {
        let names: BTreeSet<&str> = waiting.iter().map(|companion| companion.name.as_str()).collect();
        waiting.retain(|companion| companion.start_after.iter().any(|name| names.contains(name.as_str())));
        if waiting.len() == names.len() {
            let names = Vec::from_iter(names).join(", ");
            return Err(format!("`start_after`: these processes wait for one another: {names}"));
        }
    }
    Ok(())
}

fn of_entry(fields: &Map<String, Json>) -> Result<Companion, String> {
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let known = KEYS.join(", ");
        return Err(match did_you_mean(unknown, KEYS.into_iter()) {
            Some(guess) => format!("a process has no `{unknown}`; did you mean `{guess}`?"),
            None => format!("a process has no `{unknown}`; it has {known}"),
        });
    }
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("`{key}` of a process takes one value")),
    };
    let missing = |key: &str| {
        format!(
            "the process has no `{key}`; write [[process]] with name = \"jobs\" and command = \"bin/jobs\""
        )
    };
    Ok(Companion {
        name: name(text("name")?.ok_or_else(|| missing("name"))?)?,
        command: command(fields.get("command").ok_or_else(|| missing("command"))?)?,
        count: text("count")?
            .map_or(Ok(1), |text| value::count(text, &(1..=MOST as u16)))
            .map_err(of("count"))?,
        fork: fields.get("fork").map_or(Ok(false), switch).map_err(of("fork"))?,
        env: fields.get("env").map_or_else(|| Ok(BTreeMap::new()), variables).map_err(of("env"))?,
        directory: text("directory")?.map(directory).transpose()?,
        restart: text("restart")?.map_or(Ok(RestartRule::Always), restart)?,
        stop_timeout: text("stop_timeout")?
            .map_or(Ok(USUAL_STOP_TIME), |text| value::duration(text, &STOP_TIMES))
            .map_err(of("stop_timeout"))?,
        start_after: fields
            .get("start_after")
            .map_or_else(|| Ok(Vec::new()), names)
            .map_err(of("start_after"))?,
        memory_limit: text("memory_limit")?
            .map_or(Ok(MemoryBound::None), |text| value::memory_bound(text, false))
            .map_err(of("memory_limit"))?,
    })
}

fn of(key: &'static str) -> impl Fn(String) -> String {
    move |problem| format!("`{key}` of a process: {problem}")
}

fn name(text: &str) -> Result<String, String> {
    let may_stand =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let begins_well = text.starts_with(|first: char| first.is_ascii_lowercase());
    if !begins_well || text.len() > NAME_BYTES || !text.bytes().all(may_stand) {
        return Err(format!(
            "this is not a name for a process: at most {NAME_BYTES} small letters, digits, `-` and `_`, the first of them a letter"
        ));
    }
    if text == WEB {
        return Err("`web` is Highball itself: leave it out, or choose another name".into());
    }
    Ok(text.into())
}

fn command_text(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > COMMAND_BYTES || text.contains('\0') {
        return Err(format!("a command has 1 to {COMMAND_BYTES} bytes, and no zero byte"));
    }
    Ok(text.into())
}

fn command(value: &Json) -> Result<Command, String> {
    let wrong = || "`command` of a process is a text, or a list of a program and its arguments".to_owned();
    match value {
        Json::String(line) => command_text(line).map(Command::Shell),
        Json::Array(words) if !words.is_empty() => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(Into::into)).collect();
            let words = words.ok_or_else(wrong)?;
            command_text(&words[0])?;
            let is_fine = words.iter().map(String::len).sum::<usize>() <= COMMAND_BYTES;
            if !is_fine || words.iter().any(|word| word.contains('\0')) {
                return Err(format!("a command has 1 to {COMMAND_BYTES} bytes, and no zero byte"));
            }
            Ok(Command::Program(words))
        }
        _ => Err(wrong()),
    }
}

fn variables(value: &Json) -> Result<BTreeMap<String, String>, String> {
    let Json::Object(fields) = value else {
        return Err("it is a table, such as { QUEUES = \"mail\" }".into());
    };
    if fields.len() > MOST_VARIABLES {
        return Err(format!("there are more than {MOST_VARIABLES} variables"));
    }
    let variable = |(name, value): (&String, &Json)| {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Bool(switch) => switch.to_string(),
            _ => return Err(format!("{name} takes one value")),
        };
        value::variable(&format!("{name}={text}"))
    };
    fields.iter().map(variable).collect()
}

fn names(value: &Json) -> Result<Vec<String>, String> {
    let names = match value {
        Json::Array(names) => names.iter().map(Json::as_str).collect(),
        _ => value.as_str().map(|name| vec![name]),
    };
    let names = names.ok_or("it is the name of another, or a list of names")?;
    names.into_iter().map(name).collect()
}

fn switch(value: &Json) -> Result<bool, String> {
    match value {
        Json::Bool(is_on) => Ok(*is_on),
        Json::String(text) => value::switch(text),
        _ => Err("it is on or off".into()),
    }
}

fn directory(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err("`directory` of a process: a path is missing".into());
    }
    Ok(text.into())
}

fn restart(text: &str) -> Result<RestartRule, String> {
    let found = RESTARTS.iter().find(|(word, _)| *word == text).map(|(_, rule)| *rule);
    found.ok_or_else(|| {
        let words = RESTARTS.map(|(word, _)| word);
        format!("`restart` of a process is none of: {}{}", words.join(", "), guess(text, words.into_iter()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(text: &str) -> Result<Companion, String> {
        companion(&entry(DeTable::parse(text).unwrap().get_ref()))
    }

    #[test]
    fn a_name_and_a_command_are_enough() {
        let jobs = companion("jobs= bin/jobs --mode=async ").unwrap();
        assert_eq!((jobs.name.as_str(), jobs.count, jobs.restart), ("jobs", 1, RestartRule::Always));
        assert_eq!(jobs.command, Command::Shell("bin/jobs --mode=async".into()));
        assert_eq!(of_file("name = 'jobs'\ncommand = 'bin/jobs --mode=async'"), Ok(jobs));
    }

    #[test]
    fn an_entry_says_everything() {
        let text = "name = 'mail_2'\ncommand = ['bin/mail', 'a b']\ncount = 3\nrestart = 'on-failure'\n\
                    fork = 'on'\ndirectory = 'sub'\nstop_timeout = '2m'\nenv = { QUEUES = 'mail', N = '1', ON = true }\n\
                    start_after = ['schema', 'redis']\nmemory_limit = '512M'";
        let mail = of_file(text).unwrap();
        assert_eq!(mail.command, Command::Program(vec!["bin/mail".into(), "a b".into()]));
        assert_eq!((mail.count, mail.fork, mail.restart), (3, true, RestartRule::OnFailure));
        assert!(of_file("name = 'mail'\ncommand = 'x'\nfork = true").unwrap().fork);
        assert_eq!(mail.start_after, ["schema", "redis"]);
        assert_eq!(mail.memory_limit, MemoryBound::Bytes(512 << 20));
        assert_eq!((mail.directory, mail.stop_timeout), (Some("sub".into()), Duration::from_secs(120)));
        let env =
            [("N", "1"), ("ON", "true"), ("QUEUES", "mail")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(mail.env, BTreeMap::from(env));
    }

    #[test]
    fn a_procfile_has_commands_for_names() {
        let text =
            "# all\nweb: bin/rails server\n  worker : bin/jobs --mode=a:b \n\nclock: bin/clock\nRelease: x\n";
        let names = procfile_names("web, worker,clock").unwrap();
        assert_eq!(names, ["worker", "clock"]);
        let found = of_procfile(text, &names).unwrap();
        let commands: Vec<String> = found.iter().map(|companion| companion.command.to_string()).collect();
        assert_eq!(commands, ["bin/jobs --mode=a:b", "bin/clock"]);
        let missing = |name: &str| of_procfile(text, &[name.into()]).unwrap_err();
        assert_eq!(missing("workr"), "the Procfile has no `workr`; did you mean `worker`?");
        assert_eq!(missing("mail"), "the Procfile has no `mail`; it has worker, clock");
        assert!(of_procfile("worker:\n", &["worker".into()]).unwrap_err().contains("1 to 4096 bytes"));
        assert!(procfile_names("web,").is_err());
    }

    #[test]
    fn the_order_of_starts_has_a_beginning() {
        let of = |all: &[(&str, &[&str])]| {
            let companions = all.iter().map(|(name, start_after)| {
                let start_after = start_after.iter().map(|name| (*name).to_owned()).collect();
                Companion { start_after, ..companion(&format!("{name}=x")).unwrap() }
            });
            check_order(&companions.collect::<Vec<_>>())
        };
        assert_eq!(of(&[("jobs", &["schema", "redis"]), ("redis", &[]), ("schema", &["redis"])]), Ok(()));
        let problem = of(&[("jobs", &["schma"]), ("schema", &[])]).unwrap_err();
        assert!(problem.ends_with("there is no process `schma`; did you mean schema?"), "{problem}");
        let problem = of(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])]).unwrap_err();
        assert!(problem.ends_with("wait for one another: a, b, c"), "{problem}");
        assert!(of(&[("a", &["a"])]).is_err());
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, part) in [
            ("command = 'x'", "no `name`"),
            ("name = 'jobs'", "no `command`"),
            ("name = 'jobs'\ncomand = 'x'", "did you mean `command`"),
            ("name = 'jobs'\ncommand = []", "a program and its arguments"),
            ("name = 'jobs'\ncommand = ' '", "1 to 4096 bytes"),
            ("name = 'jobs'\ncommand = 'x'\ncount = 0", "`count` of a process"),
            ("name = 'jobs'\ncommand = 'x'\nfork = 'yes please'", "`fork` of a process"),
            ("name = 'jobs'\ncommand = 'x'\nfork = 2", "`fork` of a process"),
            ("name = 'jobs'\ncommand = 'x'\nrestart = 'alway'", "always, on-failure, never"),
            ("name = 'jobs'\ncommand = 'x'\nstop_timeout = 'soon'", "`stop_timeout` of a process"),
            ("name = 'jobs'\ncommand = 'x'\nenv = { '1' = 'x' }", "NAME=VALUE"),
            ("name = 'jobs'\ncommand = 'x'\nstart_after = {}", "a list of names"),
            ("name = 'jobs'\ncommand = 'x'\nstart_after = ['1']", "`start_after` of a process"),
            ("name = 'jobs'\ncommand = 'x'\nmemory_limit = 'auto'", "`memory_limit` of a process"),
            ("name = 'web'\ncommand = 'x'", "is Highball itself"),
            ("name = \"a\\u001b[2J\"\ncommand = 'x'", "not a name for a process"),
        ] {
            let problem = of_file(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        assert!(companion("bin/jobs").unwrap_err().contains("NAME=COMMAND"));
    }
}
