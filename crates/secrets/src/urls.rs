//! Secrets in URLs, and in what looks like them: `scheme://user:password@host`, `user:password@host`, `-u user:password`
//! and parameters.

use crate::names::is_suspicious;
use crate::tokens::is_token;
use std::ops::Range;

/// What stands before a colon, and is no user: `mailto:me@example.org`, `email:me@example.org`.
const NO_USERS: &[&str] = &[
    "mailto", "email", "e-mail", "mail", "to", "from", "cc", "bcc", "user", "username", "login", "acct",
    "sip", "sips", "xmpp", "npm", "git", "ssh",
];
/// Options of commands that are followed by `user:password`.
const USER_OPTIONS: &[&str] = &["-u", "--user", "--proxy-user", "-U"];
/// Commands, and the option that is followed by a password.
const PASSWORD_OPTIONS: &[(&str, &str)] = &[
    ("ldap", "-w"),
    ("redis-cli", "-a"),
    ("sshpass", "-p"),
    ("mysql", "-p"),
    ("mariadb", "-p"),
    ("mongo", "-p"),
    ("login", "-p"),
    ("zip", "-P"),
    ("sqlcmd", "-P"),
];
/// How far a password in a URL is looked for, in bytes.
const URL_BYTES: usize = 2048;
/// Segments of paths that a token follows.
const BEFORE_TOKENS: &[&str] = &[
    "reset",
    "resets",
    "reset_password",
    "reset-password",
    "password",
    "passwords",
    "password_reset",
    "password_resets",
    "password-reset",
    "password-resets",
    "token",
    "tokens",
    "invite",
    "invites",
    "invitation",
    "invitations",
    "confirm",
    "confirmation",
    "confirmations",
    "unlock",
    "unlocks",
    "verify",
    "verification",
    "verifications",
    "activate",
    "activation",
    "activations",
    "magic",
    "magic_link",
    "magic-link",
    "magic_links",
    "share",
    "shares",
    "unsubscribe",
    "secret",
    "secrets",
];

/// Adds the places of secrets in URLs and the like.
pub(crate) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    user_informations(text, spans);
    users_without_scheme(text, spans);
    options(text, spans);
    parameters(text, spans);
    tokens_in_paths(text, spans);
}

/// The password of the first URL in this text.
pub(crate) fn password(text: &str) -> Option<&str> {
    let mut spans = Vec::new();
    user_informations(text, &mut spans);
    spans.into_iter().next().map(|span| &text[span])
}

/// `scheme://user:password@host`. Passwords may hold what had to be percent-encoded: `/`, `@` and quotes.
fn user_informations(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(found) = text[at..].find("://") {
        let start = at + found + 3;
        at = start;
        if let Some((secret, end)) = user_information(text, start) {
            at = end;
            spans.push(secret);
        }
    }
}

/// Of the URL whose authority begins here: the place of the secret, and where the host begins.
fn user_information(text: &str, start: usize) -> Option<(Range<usize>, usize)> {
    let run = &text[start..url_end(text, start)];
    let authority = run.find(['/', '?', '#', '"', '\'', '`', ',']).unwrap_or(run.len());
    let colon = run.find(':').filter(|colon| *colon < authority.max(1));
    let before_host =
        |at: usize| run[at + 1..].starts_with(|one: char| one.is_ascii_alphanumeric() || "[%/".contains(one));
    let last = run.rmatch_indices('@').map(|(at, _)| at).find(|at| before_host(*at));
    let secret = match (colon, last) {
        // The port of a web server and a path with `@`, or the name and password of a user?
        (Some(colon), Some(at)) if at > authority && !run[..authority].contains('@') => {
            let port = &run[colon + 1..authority];
            let is_web =
                ["http", "https", "ws", "wss"].iter().any(|scheme| text[..start - 3].ends_with(scheme));
            let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && is_web;
            (!is_port && !run.starts_with('[')).then_some(colon + 1..at)
        }
        (Some(colon), Some(at)) if colon < at => Some(colon + 1..at),
        (None | Some(_), _) => run[..authority].rfind('@').map(|at| 0..at),
    }?;
    // The token is the user where there is no password: https://TOKEN:@host, TOKEN:x-oauth-basic@host.
    let is_user = secret.is_empty() || ["x-oauth-basic", "x"].contains(&&run[secret.clone()]);
    let begin = if is_user { 0 } else { secret.start };
    let secret = start + begin..start + secret.end;
    (!secret.is_empty()).then_some((secret.clone(), secret.end))
}

/// Where the run without blanks ends that a URL may be. A quote or comma ends it only where something else follows.
fn url_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len().min(start + URL_BYTES) {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        match bytes[at] {
            b'<' | b'>' => break,
            byte if byte.is_ascii_whitespace() => break,
            b'"' | b'\'' | b'`' | b',' if next.is_ascii_whitespace() || b",;)]}\"':=".contains(&next) => {
                break
            }
            _ => at += 1,
        }
    }
    (start..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start)
}

/// `user:password@host`, without a scheme.
fn users_without_scheme(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let is_of_user = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%+-".contains(&byte);
    let mut at = 0;
    while at < bytes.len() {
        if !is_of_user(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_of_user(bytes[at]) {
            at += 1;
        }
        let before = start.checked_sub(1).map_or(b' ', |before| bytes[before]);
        if bytes.get(at) != Some(&b':') || b":/.@".contains(&before) {
            continue;
        }
        let secret = at + 1;
        let end = secret
            + bytes[secret..]
                .iter()
                .take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`<>,;()[]{}".contains(byte))
                .count();
        let name = text[start..at].to_ascii_lowercase();
        let host = text[secret..end].rfind('@').filter(|length| *length > 0);
        if let Some(length) = host.filter(|_| !NO_USERS.contains(&name.as_str())) {
            let is_host = bytes[secret + length + 1..end].first().is_some_and(u8::is_ascii_alphanumeric);
            if is_host && bytes[secret] != b'/' && bytes[secret] != b':' {
                spans.push(secret..secret + length);
            }
        }
        at = end.max(at + 1);
    }
}

/// `curl -u user:password`, `ldapsearch -w password`.
fn options(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut line_start = 0;
    for line in text.split('\n') {
        for option in USER_OPTIONS {
            for value in values_of_option(line, option, false) {
                if let Some(colon) = line[value.clone()].find(':') {
                    spans.push(line_start + value.start + colon + 1..line_start + value.end);
                }
            }
        }
        for &(command, option) in PASSWORD_OPTIONS {
            if line.contains(command) {
                let is_attached = command == "mysql" || command == "mariadb";
                let values = values_of_option(line, option, is_attached);
                spans
                    .extend(values.into_iter().map(|value| line_start + value.start..line_start + value.end));
            }
        }
        line_start += line.len() + 1;
    }
}

/// The values of an option in this line, without their quotes. `is_attached`: without a blank before (`-pPASSWORD`).
fn values_of_option(line: &str, option: &str, is_attached: bool) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let mut values = Vec::new();
    for (at, _) in line.match_indices(option) {
        let end = at + option.len();
        let is_option = at.checked_sub(1).is_none_or(|before| b" \t\"'`(,[".contains(&bytes[before]));
        let blanks = bytes[end..].iter().take_while(|byte| b" \t=\"',".contains(byte)).count();
        if !is_option || (blanks == 0) != is_attached {
            continue;
        }
        let quote = bytes[..end + blanks].last().filter(|byte| matches!(byte, b'"' | b'\''));
        let start = end + blanks;
        let ends = |byte: &u8| quote.map_or(byte.is_ascii_whitespace(), |quote| byte == quote);
        let length = bytes[start..].iter().position(ends).unwrap_or(bytes.len() - start);
        if length > 0 && bytes[start] != b'-' {
            values.push(start..start + length);
        }
    }
    values
}

/// `?code=…&sig=…`
fn parameters(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, _) in text.match_indices(['?', '&']) {
        let name = at + 1;
        if at < done {
            continue; // within a value
        }
        let length = bytes[name..]
            .iter()
            .take(128)
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.%[]".contains(byte))
            .count();
        if length == 0
            || bytes.get(name + length) != Some(&b'=')
            || !is_suspicious(&text[name..name + length])
        {
            continue;
        }
        let value = name + length + 1;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"&#\"'`<>".contains(byte);
        let end = bytes[value..].iter().position(ends).map_or(bytes.len(), |length| value + length);
        spans.push(value..end);
        done = end;
    }
}

/// Whether a segment of a path, behind another, is a secret.
pub(crate) fn is_secret_segment(before: &str, segment: &str) -> bool {
    if ["assets", "packs", "vite"].contains(&before) {
        return false;
    }
    let is_plain = segment.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte))
        || (segment.len() <= 9 && segment.bytes().all(|byte| byte.is_ascii_digit()));
    is_token(segment) || (BEFORE_TOKENS.contains(&before) && !is_plain)
}

/// `/reset/x7GkZqpLmN2vRs9tBa`: tokens behind what says that one follows. Files have endings.
fn tokens_in_paths(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let is_of_segment = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_~%=+".contains(byte);
    let mut before = 0..0;
    for (at, _) in text.match_indices('/') {
        let start = at + 1;
        let segment = start..start + bytes[start..].iter().take_while(is_of_segment).count();
        let is_next = before.end == at && BEFORE_TOKENS.contains(&&text[before]);
        let is_file = bytes.get(segment.end).is_some_and(|byte| matches!(byte, b'.' | b':'));
        if is_next && !is_file && is_token(&text[segment.clone()]) {
            spans.push(segment.clone());
        }
        before = segment;
    }
}
