//! Finds passwords, keys and tokens in texts and masks them. The supervisor, the front and the worker use it for all
//! that they show or log of an application. Of variables and requests only what is known to be harmless is shown
//! (`allowed`). In all other texts secrets are known by what stands before them (`settings`, which asks `names` and `values`), by
//! where they stand in URLs and commands (`urls`), by their shape (`shapes`, `tokens`), and by their values, which the
//! environment, the request (`requests`) and the application's files (`files`) tell. Behind a telling name, `structures`
//! descends into brackets and elements. `spans` masks what was found.

#![cfg_attr(test, allow(clippy::disallowed_methods))] // the files are a test's own

mod allowed;
mod files;
mod names;
mod requests;
mod settings;
mod shapes;
mod spans;
mod structures;
mod tokens;
mod urls;
mod values;

pub use allowed::path_without_tokens;
pub use names::{is_suspicious, is_telling};
pub use requests::parameters;

use allowed::decoded;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use highball_tenant::TenantFolder;
use highball_users::User;

/// What replaces a secret.
pub const MASK: &str = "[masked]";
/// What replaces a value that may be one.
pub const WITHHELD: &str = "[withheld]";

/// Shorter values are not searched for elsewhere: `1` and `dev` stand everywhere.
const SEARCHED_BYTES: usize = 6;
/// The same for those of letters and digits.
const SEARCHED_MIXED_BYTES: usize = 5;
/// Values that are passwords of developers' databases, and words of many texts: who knows them needs no page.
const COMMON: &[&str] = &[
    "password",
    "secret",
    "postgres",
    "postgresql",
    "development",
    "production",
    "localhost",
    "example",
    "default",
    "masked",
];
/// How often a text is looked through again, as long as something is found.
const ROUNDS: usize = 8;

/// The secrets of one application, as far as they can be known.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    values: BTreeSet<String>,
}

impl Secrets {
    /// Secrets of the environment, and of files of the application that usually hold some. The files are opened with the
    /// rights of `user`, if one is given: what the application itself cannot read is none of its secrets, and masking
    /// it would tell the application what stands there.
    pub fn of(environment: &BTreeMap<String, String>, folder: &Path, user: Option<&User>) -> Secrets {
        match TenantFolder::open(folder, user) {
            Ok(folder) => Secrets::with_files(environment, |name| files::read_start(&folder, name)),
            Err(_) => Secrets::of_environment(environment), // there are no files
        }
    }

    /// Secrets of the environment alone.
    pub fn of_environment(environment: &BTreeMap<String, String>) -> Secrets {
        Secrets::with_files(environment, |_| String::new())
    }

    /// Secrets of the environment and of files. `read` gives the beginning of a file, named as seen from the application's
    /// folder; nothing where there is none.
    fn with_files(environment: &BTreeMap<String, String>, read: impl Fn(&str) -> String) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in environment {
            secrets.learn_variable(name, value);
        }
        for name in files::KEYS {
            secrets.add(read(name).trim());
        }
        for name in files::SETTINGS {
            for line in read(name).lines() {
                secrets.learn_settings(line);
            }
        }
        secrets
    }

    /// One more value that is secret, as it is and decoded; short ones are not searched for.
    pub fn add(&mut self, value: &str) {
        let decoded = decoded(value);
        let escaped = value.escape_debug().to_string();
        let lines =
            value.lines().filter(|line| line.len() >= SEARCHED_BYTES * 2 && !line.starts_with("-----"));
        let lines = lines.map(|line| line.trim().to_string());
        for value in [value.to_string(), decoded, escaped].into_iter().chain(lines) {
            let is_common = COMMON.contains(&value.to_ascii_lowercase().as_str());
            let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
            let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
            let least = if is_mixed { SEARCHED_MIXED_BYTES } else { SEARCHED_BYTES };
            if value.len() >= least && !is_common && !value.contains(MASK) {
                self.values.insert(value);
            }
        }
    }

    /// A variable, field or parameter: its value is searched for if its name or the value looks secret.
    pub fn learn(&mut self, name: &str, value: &str) {
        let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_drawn = tokens::is_token(value) || tokens::is_drawn_word(value);
        if is_telling(name) || (is_suspicious(name) && !is_word) || is_drawn {
            self.add(value);
        }
    }

    fn learn_variable(&mut self, name: &str, value: &str) {
        if !allowed::is_shown_variable(name) {
            self.learn(name, value);
        }
        self.add(urls::password(value).unwrap_or_default());
    }

    /// The secrets among the settings in a text: lines of `.env` and YAML, JSON.
    pub fn learn_settings(&mut self, text: &str) {
        let mut spans = Vec::new();
        settings::find(text, &mut spans);
        spans.extend(self.found(text, &[urls::find, shapes::find]));
        for span in spans {
            self.add(&text[span]);
        }
    }

    /// A text as it may be shown.
    pub fn masked(&self, text: &str) -> String {
        self.masked_by(text, &[settings::find, urls::find, shapes::find])
    }

    /// A text of our own as it may be shown: our words are never masked. `quoted`: what it holds of others.
    pub fn own_masked(&self, text: &str, quoted: &[String]) -> String {
        let secret = |part: &String| (!part.is_empty()).then(|| (part.clone(), self.known_masked(part)));
        let secrets = quoted.iter().filter_map(secret).filter(|(part, shown)| part != shown);
        secrets.fold(text.to_string(), |text, (part, shown)| text.replace(&part, &shown))
    }

    /// A short text of others, a name above all, as it may be shown: words that look like names of secrets are none.
    pub fn known_masked(&self, text: &str) -> String {
        self.masked_by(text, &[urls::find, shapes::find])
    }

    /// Masks until nothing more is found: what is masked no longer hides what stands beside it.
    fn masked_by(&self, text: &str, finders: &[Finder]) -> String {
        let mut text = text.to_string();
        for _ in 0..ROUNDS {
            match spans::masked(&text, self.found(&text, finders)) {
                Some(masked) => text = masked,
                None => break,
            }
        }
        text
    }

    fn found(&self, text: &str, finders: &[Finder]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        for value in &self.values {
            spans.extend(text.match_indices(value.as_str()).map(|(at, value)| at..at + value.len()));
        }
        for find in finders {
            find(text, &mut spans);
        }
        spans
    }
}

/// Adds the places of secrets in a text.
type Finder = fn(&str, &mut Vec<Range<usize>>);

#[cfg(test)]
mod tests;
