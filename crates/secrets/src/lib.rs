//! What nobody is shown: passwords, keys and tokens. They are known by where they stand: in variables and settings
//! with telling names, and in URLs; and are masked wherever they turn up. Shared by all who show or log what an
//! application says: the supervisor, and the worker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use highball_tenant::{Links, TenantFolder};
use highball_users::User;

/// What stands in the place of a secret.
pub const MASK: &str = "[masked]";

/// Parts of names whose values are secret.
const TELLING: [&str; 16] = [
    "secret",
    "authorization",
    "session_id",
    "passw",
    "passphrase",
    "pwd",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private",
    "credential",
    "master_key",
    "_dsn",
    "cookie",
    "salt",
];
/// Whole words of names whose values are secret.
const TELLING_WORDS: [&str; 6] = ["pass", "key", "auth", "dsn", "pgpass", "otp"];
/// Variables that only look like it: where a shell stands. (As the name of a parameter, `pwd` is telling.)
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];
/// Shorter values are masked where they are set, and not searched for elsewhere: `1` and `dev` stand everywhere.
const SEARCHED_BYTES: usize = 6;
/// Files of an application that hold secrets, and what is read of each, in bytes.
const FILES: [&str; 5] =
    ["config/database.yml", "config/secrets.yml", ".env", ".env.development", ".env.local"];
/// Files that are one.
const KEY_FILES: [&str; 3] =
    ["config/master.key", "config/credentials/production.key", "config/credentials/development.key"];
const FILE_BYTES: u64 = 64 * 1024;

/// The secrets of one application, as far as they can be known.
#[derive(Debug, Default)]
pub struct Secrets {
    values: BTreeSet<String>,
}

impl Secrets {
    /// Those of the environment, and of the files of the application that usually hold some. These are opened with the
    /// rights of `user`, if one is given: what the application itself cannot read is none of its secrets, and masking
    /// it would tell the application what stands there.
    pub fn of(environment: &BTreeMap<String, String>, folder: &Path, user: Option<&User>) -> Secrets {
        let mut secrets = Secrets::of_environment(environment);
        let Ok(folder) = TenantFolder::open(folder, user) else { return secrets }; // there are no files
        let read_start = |name| read_start(&folder, name);
        for name in KEY_FILES {
            secrets.add(read_start(name).trim());
        }
        for name in FILES {
            let text = read_start(name);
            for line in text.lines() {
                if let Some((start, end)) = secret_setting(line, 0) {
                    secrets.add(&line[start..end]);
                }
                secrets.add(password_of_url(line).unwrap_or_default());
            }
        }
        secrets
    }

    /// Those of the environment alone.
    pub fn of_environment(environment: &BTreeMap<String, String>) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in environment {
            if is_telling(name) {
                secrets.add(value);
            }
            secrets.add(password_of_url(value).unwrap_or_default());
        }
        secrets
    }

    /// One more value that is secret; short ones are not searched for.
    pub fn add(&mut self, value: &str) {
        if value.len() >= SEARCHED_BYTES && value != MASK {
            self.values.insert(value.to_string());
        }
    }

    /// The value of a variable as it may be shown.
    pub fn variable(&self, name: &str, value: &str) -> String {
        if is_telling(name) && !value.is_empty() {
            return MASK.into();
        }
        self.masked(value)
    }

    /// A text as it may be shown.
    pub fn masked(&self, text: &str) -> String {
        let text = self.known_masked(text);
        let lines: Vec<String> = text.split('\n').map(masked_line).collect();
        lines.join("\n")
    }

    /// A text of our own as it may be shown: what looks like a secret is none.
    pub fn known_masked(&self, text: &str) -> String {
        let mut text = text.to_string();
        // The longest first: one may be part of another.
        let mut values: Vec<&String> = self.values.iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MASK);
            }
        }
        text
    }
}

/// Masks what a line itself shows to be secret.
fn masked_line(line: &str) -> String {
    let mut line = line.to_string();
    let mut from = 0;
    while let Some((start, end)) = secret_setting(&line, from) {
        line.replace_range(start..end, MASK);
        from = start + MASK.len();
    }
    let mut from = 0;
    while let Some((start, end)) = userinfo(&line, from) {
        let secret = line[start..end].find(':').map_or(start, |colon| start + colon + 1);
        line.replace_range(secret..end, MASK);
        from = secret + MASK.len();
    }
    line
}

/// Whether what this is the name of is secret.
pub fn is_telling(name: &str) -> bool {
    if FOLDERS.contains(&name) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
        || name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| TELLING_WORDS.contains(&word))
}

/// The next `name: value` or `name=value` from this place on whose name is telling: where the value stands.
fn secret_setting(line: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = line.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut at = from;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_name(bytes[at]) {
            at += 1;
        }
        if !is_telling(&line[start..at]) {
            continue;
        }
        let Some(value) = value_after(bytes, at) else { continue };
        let end = value_end(bytes, value);
        if end > value && !line[value..end].starts_with(MASK) && !is_code(&line[value..]) {
            return Some((value, end));
        }
    }
    None
}

/// Where the value begins that is set by `:`, `=` or `=>`, behind a name that ends here.
fn value_after(bytes: &[u8], end: usize) -> Option<usize> {
    let is_blank = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'"' | b'\''));
    let mut at = end;
    while is_blank(bytes.get(at)) || bytes.get(at) == Some(&b']') {
        at += 1;
    }
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b':'), Some(b':' | b'/')) | (Some(b'='), Some(b'=' | b'~')) => return None,
        (Some(b'='), Some(b'>')) => at += 2,
        (Some(b':' | b'='), _) => at += 1,
        _ => return None,
    }
    while is_blank(bytes.get(at)) {
        at += 1;
    }
    Some(at)
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let ends =
        |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b',' | b';' | b'&' | b'\n' | b')' | b'}');
    bytes[start..].iter().position(ends).map_or(bytes.len(), |length| start + length)
}

/// Whether this fetches a secret, and is none.
fn is_code(value: &str) -> bool {
    ["ENV", "<%", "Rails.", "nil", "$(", "params"].iter().any(|code| value.starts_with(code))
}

/// The next `scheme://userinfo@` from this place on: where the user information stands.
fn userinfo(line: &str, from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    while let Some(found) = line[at..].find("://") {
        let start = at + found + 3;
        let authority =
            line[start..].find(['/', '?', '#', ' ', '"', '\'', '>']).map_or(line.len(), |end| start + end);
        match line[start..authority].rfind('@') {
            Some(length) if length > 0 && !line[start..start + length].ends_with(MASK) => {
                return Some((start, start + length));
            }
            _ => at = start,
        }
    }
    None
}

fn password_of_url(text: &str) -> Option<&str> {
    let (start, end) = userinfo(text, 0)?;
    let part = &text[start..end];
    Some(part.split_once(':').map_or(part, |(_, password)| password))
}

/// The beginning of a file; nothing of one that cannot be read, or is none.
fn read_start(folder: &TenantFolder, name: &str) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok((file, _)) = folder.file(name, Links::Anywhere) {
        let _ = file.take(FILE_BYTES).read_to_end(&mut bytes); // what could be read is what there is
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let environment =
            variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Secrets::of(&environment, Path::new("/no/such/folder"), None)
    }

    #[test]
    fn variables_are_masked_by_their_names() {
        let none = secrets(&[]);
        for name in [
            "SECRET_KEY_BASE",
            "STRIPE_API_KEY",
            "PGPASSWORD",
            "DB_PASS",
            "DB_PWD",
            "pwd",
            "GITHUB_TOKEN",
            "SENTRY_DSN",
        ] {
            assert_eq!(none.variable(name, "s3"), MASK, "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "KEYBOARD", "RAILS_ENV", "COMPASS"] {
            assert_eq!(none.variable(name, "plain"), "plain", "{name}");
        }
    }

    #[test]
    fn urls_keep_all_but_the_password() {
        let none = secrets(&[]);
        assert_eq!(none.masked("postgres://me:hunter2@db/blog"), "postgres://me:[masked]@db/blog");
        assert_eq!(none.masked("https://t0ken@example.org/x"), "https://[masked]@example.org/x");
        assert_eq!(none.masked("a://u:p@h and b://u:p@ss@h"), "a://u:[masked]@h and b://u:[masked]@h");
        assert_eq!(none.masked("http://localhost:3000/@me"), "http://localhost:3000/@me");
    }

    #[test]
    fn settings_are_masked_by_their_names() {
        let none = secrets(&[]);
        assert_eq!(none.masked("  password: hunter2"), "  password: [masked]");
        assert_eq!(
            none.masked("x = { \"api_key\" => \"abc\", b: 1 }"),
            "x = { \"api_key\" => \"[masked]\", b: 1 }"
        );
        assert_eq!(none.masked("/login?token=abc&x=1"), "/login?token=[masked]&x=1");
        assert_eq!(none.masked("password: ENV.fetch(\"DB\")"), "password: ENV.fetch(\"DB\")");
        assert_eq!(none.masked("a.token == b"), "a.token == b");
        assert_eq!(none.masked("ENV[\"STRIPE_KEY\"] = 'sk_live'"), "ENV[\"STRIPE_KEY\"] = '[masked]'");
        assert_eq!(none.masked("Missing `secret_key_base` for it"), "Missing `secret_key_base` for it");
    }

    #[test]
    fn values_are_masked_wherever_they_turn_up() {
        let some = secrets(&[("API_TOKEN", "hunter2-hunter2"), ("DATABASE_URL", "pg://me:opensesame@db/x")]);
        assert_eq!(some.masked("bad: hunter2-hunter2!"), "bad: [masked]!");
        assert_eq!(some.masked("no such user with opensesame"), "no such user with [masked]");
    }

    #[test]
    fn files_of_the_application_tell_secrets_too() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("config")).unwrap();
        std::fs::write(folder.path().join("config/master.key"), "0123456789abcdef\n").unwrap();
        std::fs::write(folder.path().join("config/database.yml"), "x:\n  password: 'opensesame'\n").unwrap();
        let some = Secrets::of(&BTreeMap::new(), folder.path(), None);
        assert_eq!(some.masked("0123456789abcdef / opensesame"), "[masked] / [masked]");
    }
}
