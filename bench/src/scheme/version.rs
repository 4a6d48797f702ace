//! Asking programs for their versions.

use super::root::Root;
use super::template::{self, Values};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a program may think about its own version, in seconds.
const SECONDS: &str = "20";

/// A program or library that a scheme uses, and how it tells its version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version {
    /// What people call it.
    pub(super) name: String,
    /// Prints the version; fails where the program or library is missing. The version is the first run of digits and
    /// dots in what it prints that holds a dot. Empty: it has none.
    pub(super) command: Vec<String>,
}

/// Versions that programs have printed, shared by schemes that ask the same.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownVersions(Arc<Mutex<BTreeMap<Vec<String>, String>>>);

impl KnownVersions {
    /// Name and version, such as "Puma 5.6.5"; where it cannot be asked, the words why. Only answers are kept: what
    /// is missing may be installed.
    pub(super) fn ask(
        &self,
        version: &Version,
        root: Option<&Root>,
        values: &Values,
        env: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        let words = version.command.iter().map(|word| template::fill(word, values));
        let Some(program) = version.command.first() else {
            return Ok(version.name.clone());
        };
        let command: Vec<String> = root.map(Root::enter).into_iter().flatten().chain(words).collect();
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = versions.get(&command) {
            return Ok(format!("{} {number}", version.name));
        }
        let printed =
            run(&command, env).map_err(|why| format!("{} did not tell its version: {why}", version.name))?;
        let number = first_version(&printed)
            .ok_or_else(|| format!("{program} printed no version of {}: {}", version.name, printed.trim()))?
            .to_owned();
        let words = format!("{} {number}", version.name);
        versions.insert(command, number);
        Ok(words)
    }
}

/// What a command prints, on both of its outputs.
fn run(command: &[String], env: &BTreeMap<String, String>) -> Result<String, String> {
    let output = Command::new("timeout")
        .arg(SECONDS)
        .args(command)
        .envs(env)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`timeout {}` could not be run: {error}", command.join(" ")))?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    match output.status.success() {
        true => Ok(printed.into_owned()),
        false => {
            Err(format!("{}: {}", output.status, printed.lines().next().unwrap_or("it printed nothing")))
        }
    }
}

/// The first run of digits and dots that begins with a digit and holds a dot.
fn first_version(printed: &str) -> Option<&str> {
    printed
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .map(|run| run.trim_matches('.'))
        .find(|run| run.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_kinds_of_programs() {
        for (printed, version) in [
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "2.6.12"),
            ("unicorn v6.0.0", "6.0.0"),
            ("Phusion Passenger(R) 6.0.17", "6.0.17"),
            ("puma version 8.0.0.beta1", "8.0.0"),
        ] {
            assert_eq!(first_version(printed), Some(version), "{printed}");
        }
        assert_eq!(first_version("no version at all. 7"), None);
    }
}
