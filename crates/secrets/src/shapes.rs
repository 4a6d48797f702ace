//! Secrets that are known by their shape, wherever they stand: tokens with a prefix, JSON web tokens, PEM bodies,
//! webhooks, credentials behind `Bearer` and `Basic`.

use crate::tokens::is_unlike_a_word;
use std::ops::Range;

/// Letters that a token may consist of, beside ASCII letters and digits.
const SIGNS: &[u8] = b"-_";

/// Beginnings of tokens, and how many letters at least follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk_live_", 4),
    ("sk_test_", 4),
    ("rk_live_", 4),
    ("rk_test_", 4),
    ("whsec_", 4),
    ("ghp_", 8),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("gldt-", 12),
    ("glrt-", 12),
    ("glcbt-", 12),
    ("glptt-", 12),
    ("glft-", 12),
    ("glimt-", 12),
    ("glagent-", 12),
    ("gloas-", 12),
    ("glsoat-", 12),
    ("glffct-", 12),
    ("xoxa-", 6),
    ("xoxb-", 6),
    ("xoxe-", 6),
    ("xoxe.xox", 6),
    ("xoxp-", 6),
    ("xoxr-", 6),
    ("xoxs-", 6),
    ("xapp-", 6),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ABIA", 16),
    ("ACCA", 16),
    ("LTAI", 16),
    ("AIza", 30),
    ("ya29.", 16),
    ("GOCSPX-", 16),
    ("SG.", 30),
    ("npm_", 30),
    ("pypi-AgE", 16),
    ("rubygems_", 32),
    ("dop_v1_", 32),
    ("doo_v1_", 32),
    ("dor_v1_", 32),
    ("shpat_", 16),
    ("shpca_", 16),
    ("shppa_", 16),
    ("shpss_", 16),
    ("sq0atp-", 16),
    ("sq0csp-", 16),
    ("hvs.", 16),
    ("hvb.", 16),
    ("hvr.", 16),
    ("ATATT3", 16),
    ("ATCTT3", 16),
    ("lin_api_", 16),
    ("ntn_", 30),
    ("sk-proj-", 12),
    ("sk-ant-", 12),
    ("sk-svcacct-", 12),
    ("hf_", 30),
    ("dapi", 32),
    ("dp.pt.", 30),
    ("dp.st.", 30),
    ("HRKU-", 30),
    ("NRAK-", 20),
    ("NRII-", 20),
    ("pscale_tkn_", 16),
    ("pscale_pw_", 16),
    ("pscale_oauth_", 16),
    ("PMAK-", 24),
    ("pul-", 40),
    ("sntrys_", 16),
    ("sntryu_", 16),
    ("AGE-SECRET-KEY-1", 16),
    ("sbp_", 32),
    ("tskey-", 12),
    ("ops_eyJ", 16),
    ("glc_eyJ", 16),
    ("glsa_", 30),
    ("dckr_pat_", 16),
    ("figd_", 16),
    ("CCIPAT_", 16),
    ("dt0c01.", 24),
    ("bkua_", 24),
    ("nfp_", 30),
];
/// Prefixes with the number of hexadecimal digits that follow: Twilio's and Mailgun's.
const HEX_PREFIXES: &[(&str, usize)] = &[("SK", 32), ("AC", 32), ("key-", 32)];
/// First letters of tokens: most words need not be compared with all beginnings.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut at = 0;
    while at < PREFIXES.len() {
        first[PREFIXES[at].0.as_bytes()[0] as usize] = true;
        at += 1;
    }
    let mut at = 0;
    while at < HEX_PREFIXES.len() {
        first[HEX_PREFIXES[at].0.as_bytes()[0] as usize] = true;
        at += 1;
    }
    first[b'e' as usize] = true; // eyJ
    first
};
/// Places in URLs behind which all is secret.
const WEBHOOKS: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "api.telegram.org/bot",
    "api.telegram.org/file/bot",
    "webhook.office.com/",
    "outlook.office.com/webhook/",
    "hooks.zapier.com/hooks/catch/",
    "maker.ifttt.com/trigger/",
];
/// Schemes of credentials (RFC 9110, section 11).
const SCHEMES: &[&str] = &["bearer", "basic", "negotiate", "digest"];
const PEM_BEGIN: &str = "-----BEGIN ";
/// Longer labels are none.
const PEM_LABEL_BYTES: usize = 64;
/// What is looked at of one token, in bytes: it keeps the time linear.
const RUN_BYTES: usize = 16 * 1024;
/// A line of base 64 of this length is taken for one of a key.
const KEY_LINE_BYTES: usize = 40;

/// Adds the places of what is secret by its shape.
pub(crate) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    pem_bodies(text, spans);
    key_lines(text, spans);
    webhooks(text, spans);
    words(text, spans);
}

/// Bodies of PEM (RFC 7468), also in one line with `\n` written out, and also without an end.
fn pem_bodies(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = text[at..].find(PEM_BEGIN) {
        let label = at + found + PEM_BEGIN.len();
        let label_end = bytes.len().min(label + PEM_LABEL_BYTES);
        at = label;
        let Some(dashes) = bytes[label..label_end].windows(5).position(|five| five == b"-----") else {
            continue;
        };
        let body = label + dashes + 5;
        let end = text[body..].find("-----").map_or(text.len(), |length| body + length);
        let is_of_body =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \t\r\n:,-_\"'|#[]".contains(byte);
        let end =
            bytes[body..end].iter().position(|byte| !is_of_body(byte)).map_or(end, |length| body + length);
        let kept = bytes[body..end].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if kept < end - body {
            spans.push(body + kept..end);
        }
        at = end;
    }
}

/// Lines that consist of base 64 alone: of a key whose beginning is elsewhere. A shorter line behind them is the last.
fn key_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut start = 0;
    let mut is_within = false;
    for line in text.split('\n') {
        let content =
            line.trim_matches(|letter: char| letter.is_ascii_whitespace() || "\"',+\\".contains(letter));
        let content = content.strip_suffix("\\n").unwrap_or(content);
        let bytes = content.as_bytes();
        let is_base64 = !bytes.is_empty()
            && bytes[0] != b'/'
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
        let has = |kind: fn(&u8) -> bool| bytes.iter().any(kind);
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
        let is_rest = bytes.ends_with(b"=") || (bytes.len() >= 4 && has(u8::is_ascii_uppercase));
        is_within = is_base64 && ((bytes.len() >= KEY_LINE_BYTES && is_mixed) || (is_within && is_rest));
        if is_within {
            let begin = start + line.find(content).unwrap_or_default();
            spans.push(begin..begin + content.len());
        }
        start += line.len() + 1;
    }
}

fn webhooks(text: &str, spans: &mut Vec<Range<usize>>) {
    for place in WEBHOOKS {
        let mut done = 0;
        for (at, _) in text.match_indices(place) {
            if at < done {
                continue;
            }
            let start = at + place.len();
            let end = start + run(&text.as_bytes()[start..], b"-_/:.%?&=+~@");
            spans.push(start..end);
            done = end;
        }
    }
}

/// What is secret by how a word begins, by its parts, or by the scheme before it.
fn words(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let length = word_length(&bytes[at..]);
        let word = &text[at..at + length];
        if let Some(secret) = token(text, at, length) {
            at = secret.end;
            spans.push(secret);
            continue;
        }
        if SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme)) {
            spans.extend(credentials(text, at + length, word.eq_ignore_ascii_case("basic")));
        }
        at += length;
    }
}

/// A run of letters, digits, `-` and `_`.
fn word_length(bytes: &[u8]) -> usize {
    run(bytes, SIGNS)
}

fn run(bytes: &[u8], signs: &[u8]) -> usize {
    bytes
        .iter()
        .take(RUN_BYTES)
        .take_while(|byte| byte.is_ascii_alphanumeric() || signs.contains(byte))
        .count()
}

/// The token that begins at a word, or at a part of it: `_` may stand before (`key_sk_live_…`).
fn token(text: &str, at: usize, length: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let starts = std::iter::once(at)
        .chain((at + 1..at + length).filter(|start| matches!(bytes[start - 1], b'_' | b'-')).take(16));
    for start in starts {
        if let Some(length) = token_length(&text[start..]) {
            return Some(start..start + length);
        }
    }
    telegram(bytes, at).or_else(|| signed_message(bytes, at))
}

/// The length of the token that the text begins with.
fn token_length(text: &str) -> Option<usize> {
    if !text.bytes().next().is_some_and(|letter| FIRST[usize::from(letter)]) {
        return None;
    }
    for &(prefix, least) in PREFIXES {
        if let Some(rest) = text.strip_prefix(prefix) {
            let length = run(rest.as_bytes(), b"-_.=");
            if length >= least {
                return Some(prefix.len() + length);
            }
        }
    }
    for &(prefix, digits) in HEX_PREFIXES {
        if let Some(rest) = text.strip_prefix(prefix) {
            let length = run(rest.as_bytes(), b"");
            if length == digits && rest.bytes().take(digits).all(|byte| byte.is_ascii_hexdigit()) {
                return Some(prefix.len() + length);
            }
        }
    }
    // A JSON web token, or a message that Rails has signed: JSON in base 64.
    if text.starts_with("eyJ") {
        let length = run(text.as_bytes(), b"-_.=+/%");
        return (length >= 16).then_some(length);
    }
    None
}

/// A token of a bot: `123456789:AA…`.
fn telegram(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let digits = bytes[at..].iter().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let secret = at + digits + 1;
    let is_bot = (8..=10).contains(&digits) && bytes.get(at + digits) == Some(&b':');
    let length = if is_bot { word_length(&bytes[secret..]) } else { 0 };
    (length >= 30).then_some(at..secret + length)
}

/// A message that Rails has signed: base 64, `--`, and 40 hexadecimal digits or more.
fn signed_message(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if at > 0 && b"-_=+/%".contains(&bytes[at - 1]) {
        return None; // it would have begun before
    }
    let length = run(&bytes[at..], b"-_=+/%");
    let message = &bytes[at..at + length];
    let dashes = message.windows(2).rposition(|two| two == b"--")?;
    let digest = &message[dashes + 2..];
    let is_digest = digest.len() >= 40 && digest.iter().all(u8::is_ascii_hexdigit);
    (is_digest && dashes >= 8).then_some(at..at + length)
}

/// What stands behind a scheme, if it is no word of a sentence: `Basic authentication`.
fn credentials(text: &str, end: usize, is_basic: bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let blanks = bytes[end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b':')).count();
    let start = end + blanks;
    let signs: &[u8] = if is_basic { b"-_+/=" } else { b"-_+/=.~:" };
    let length = run(&bytes[start..], signs);
    let word = text[start..start + length].trim_end_matches(['.', ':']);
    let is_parameter = word.split_once('=').is_some_and(|(name, rest)| {
        !rest.trim_matches('=').is_empty() || ["realm", "error", "charset"].contains(&name)
    });
    let is_credential =
        is_unlike_a_word(word) && !is_parameter || word.len() >= 20 || (word.ends_with('=') && !is_parameter);
    (blanks > 0 && is_credential).then(|| start..start + word.len())
}
