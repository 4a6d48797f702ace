//! Secrets that are known by their shape, wherever they stand: tokens with a prefix, JSON web tokens, PEM bodies,
//! webhooks, credentials behind `Bearer` and `Basic`.

use crate::tokens::{is_unlike_a_word, is_uuid};
use std::ops::Range;

/// Letters that a token may consist of, beside ASCII letters and digits.
const SIGNS: &[u8] = b"-_";

/// Beginnings of tokens, and how many letters at least follow, by who issues them.
const PREFIXES: &[(&str, usize)] = &[
    // Payments: Stripe, Square, PayPal, Flutterwave, Razorpay, Shippo, EasyPost, Paddle.
    ("sk_live_", 4),
    ("sk_test_", 4),
    ("rk_live_", 4),
    ("rk_test_", 4),
    ("sk_org_", 16),
    ("sk_prod_", 10),
    ("rk_prod_", 10),
    ("whsec_", 4),
    ("sq0atp-", 16),
    ("sq0csp-", 16),
    ("access_token$production$", 16),
    ("access_token$sandbox$", 16),
    ("FLWSECK-", 12),
    ("FLWSECK_TEST-", 12),
    ("rzp_live_", 14),
    ("rzp_test_", 14),
    ("shippo_live_", 24),
    ("shippo_test_", 24),
    ("EZAK", 54),
    ("EZTK", 54),
    ("pdl_live_apikey_", 16),
    ("pdl_sdbx_apikey_", 16),
    ("duffel_live_", 30),
    ("duffel_test_", 30),
    // Code: GitHub, GitLab, Atlassian, Sourcegraph, SonarQube, CircleCI, Buildkite, Snyk.
    ("ghp_", 8),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("gldt-", 12),
    ("glrt-", 12),
    ("glrtr-", 12),
    ("glcbt-", 12),
    ("glptt-", 12),
    ("glft-", 12),
    ("glimt-", 12),
    ("glagent-", 12),
    ("gloas-", 12),
    ("glsoat-", 12),
    ("glffct-", 12),
    ("glwt-", 12),
    ("GR1348941", 20),
    ("ATATT3", 16),
    ("ATCTT3", 16),
    ("ATSTT3", 16),
    ("ATBB", 24),
    ("ATTA", 60),
    ("sgp_", 40),
    ("sqp_", 40),
    ("sqa_", 40),
    ("squ_", 40),
    ("CCIPAT_", 16),
    ("CCIPRJ_", 16),
    ("bkua_", 24),
    ("bkaj_", 24),
    ("snyk_uat.", 16),
    // Chat: Slack.
    ("xoxa-", 6),
    ("xoxb-", 6),
    ("xoxc-", 6),
    ("xoxd-", 6),
    ("xoxe-", 6),
    ("xoxe.xox", 6),
    ("xoxo-", 6),
    ("xoxp-", 6),
    ("xoxr-", 6),
    ("xoxs-", 6),
    ("xapp-", 6),
    ("xwfp-", 6),
    // Clouds: AWS, Alibaba, Tencent, Yandex, Google, DigitalOcean, Heroku, Fly, Render, Netlify, Vercel, Cloudflare,
    // Aiven, OpenShift, Scalingo.
    ("AKIA", 16),
    ("ASIA", 16),
    ("ABIA", 16),
    ("ACCA", 16),
    ("ABSK", 100),
    ("bedrock-api-key-", 16),
    ("LTAI", 16),
    ("AKID", 32),
    ("AQVN", 35),
    ("AIza", 30),
    ("ya29.", 16),
    ("GOCSPX-", 16),
    ("dop_v1_", 32),
    ("doo_v1_", 32),
    ("dor_v1_", 32),
    ("HRKU-", 30),
    ("fo1_", 24),
    ("fm1a_", 16),
    ("fm1r_", 16),
    ("fm2_", 24),
    ("rnd_", 28),
    ("nfp_", 30),
    ("nfc_", 30),
    ("nfo_", 30),
    ("nfu_", 30),
    ("nfb_", 30),
    ("vcp_", 24),
    ("vci_", 24),
    ("vca_", 24),
    ("vcr_", 24),
    ("vck_", 24),
    ("v1.0-", 140),
    ("cfut_", 32),
    ("cfat_", 32),
    ("AVNS_", 16),
    ("sha256~", 43),
    ("tk-us-", 40),
    // Databases: PlanetScale, Databricks, Supabase, Neon, MongoDB Atlas, Pinecone.
    ("pscale_tkn_", 16),
    ("pscale_pw_", 16),
    ("pscale_oauth_", 16),
    ("dapi", 32),
    ("sbp_", 32),
    ("sb_secret_", 16),
    ("napi_", 40),
    ("mdb_sa_sk_", 24),
    ("pcsk_", 40),
    // Mail: SendGrid, Brevo, MailerSend.
    ("SG.", 30),
    ("xkeysib-", 32),
    ("xsmtpsib-", 32),
    ("mlsn.", 40),
    // Packages: npm, PyPI, RubyGems, crates.io, NuGet, Packagist, Clojars, Docker, Artifactory.
    ("npm_", 30),
    ("pypi-AgE", 16),
    ("rubygems_", 32),
    ("cio", 32),
    ("oy2", 43),
    ("packagist_ort_", 24),
    ("packagist_uut_", 24),
    ("packagist_oat_", 24),
    ("CLOJARS_", 40),
    ("dckr_pat_", 16),
    ("dckr_oat_", 16),
    ("AKCp", 60),
    ("cmVmd", 55),
    // Secrets: Vault, Doppler, 1Password, Pulumi, Infracost, age, Tailscale.
    ("hvs.", 16),
    ("hvb.", 16),
    ("hvr.", 16),
    ("dp.pt.", 30),
    ("dp.st.", 20),
    ("dp.ct.", 30),
    ("dp.sa.", 30),
    ("dp.scim.", 30),
    ("dp.audit.", 30),
    ("ops_eyJ", 16),
    ("A3-", 30),
    ("pul-", 40),
    ("ico-", 32),
    ("AGE-SECRET-KEY-1", 16),
    ("AGE-PLUGIN-", 24),
    ("tskey-", 12),
    // Models: OpenAI, OpenRouter, Anthropic, Hugging Face, Groq, Perplexity, xAI, Replicate, NVIDIA,
    // Together, LangSmith, Tavily, Fireworks, Cerebras.
    ("sk-proj-", 12),
    ("sk-svcacct-", 12),
    ("sk-admin-", 16),
    ("sk-None-", 16),
    ("sk-or-v1-", 16),
    ("sk-ant-", 12),
    ("hf_", 30),
    ("api_org_", 30),
    ("gsk_", 40),
    ("pplx-", 32),
    ("xai-", 60),
    ("r8_", 32),
    ("nvapi-", 40),
    ("tgp_v1_", 24),
    ("lsv2_pt_", 24),
    ("lsv2_sk_", 24),
    ("tvly-", 24),
    ("fw_", 24),
    ("csk-", 40),
    // Metrics and errors: New Relic, Sentry, Grafana, Honeycomb, Dynatrace, PostHog.
    ("NRAK-", 20),
    ("NRII-", 20),
    ("NRIQ-", 20),
    ("NRRA-", 20),
    ("NRSP-", 20),
    ("sntrys_", 16),
    ("sntryu_", 16),
    ("sntrya_", 16),
    ("glc_eyJ", 16),
    ("glsa_", 30),
    ("hcaik_", 40),
    ("dt0c01.", 24),
    ("phx_", 30),
    ("phs_", 30),
    // Everything else: Shopify, Linear, Notion, Figma, Postman, HubSpot, Contentful, Typeform, ReadMe, Prefect, Frame.io,
    // Lichess, Stytch, Endor, SettleMint, Polar, Ionic, Facebook.
    ("shpat_", 16),
    ("shpca_", 16),
    ("shppa_", 16),
    ("shpss_", 16),
    ("shptka_", 16),
    ("lin_api_", 16),
    ("lin_oauth_", 16),
    ("ntn_", 30),
    ("secret_", 43),
    ("figd_", 16),
    ("figu_", 16),
    ("PMAK-", 24),
    ("pat-na1-", 32),
    ("pat-na2-", 32),
    ("pat-eu1-", 32),
    ("CFPAT-", 40),
    ("tfp_", 40),
    ("rdme_", 40),
    ("pnu_", 30),
    ("fio-u-", 40),
    ("lip_", 20),
    ("secret-live-", 30),
    ("secret-test-", 30),
    ("endr+", 16),
    ("sm_aat_", 16),
    ("sm_pat_", 16),
    ("sm_sat_", 16),
    ("polar_oat_", 24),
    ("polar_pat_", 24),
    ("ion_", 40),
    ("EAA", 90),
];
/// Prefixes with the number of hexadecimal digits that follow: Twilio's and Mailgun's.
const HEX_PREFIXES: &[(&str, usize)] = &[("SK", 32), ("AC", 32), ("key-", 32), ("sk_", 48)];
/// In the middle of tokens: OpenAI's older keys; and behind 14 letters those of Terraform Cloud.
const OPENAI: &str = "T3BlbkFJ";
const TERRAFORM: &str = ".atlasv1.";
/// Parts of Azure's client secrets: what stands between, and how many letters before and behind.
const AZURE: (&str, usize, usize) = ("Q~", 4, 30);
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
const SCHEMES: &[&str] = &["bearer", "basic", "negotiate", "digest", "flyv1"];
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
    client_secrets(text, spans);
    words(text, spans);
}

/// Azure's: `abc8Q~…`.
fn client_secrets(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let (sign, before, behind) = AZURE;
    for (at, _) in text.match_indices(sign) {
        let start = at.saturating_sub(before);
        let is_of_secret = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.~-".contains(byte);
        let length = bytes[at + sign.len()..].iter().take(64).take_while(|byte| is_of_secret(byte)).count();
        let has_begin = bytes[start..at].len() == before
            && bytes[start..at].iter().all(is_of_secret)
            && bytes[at - 1].is_ascii_digit();
        if has_begin && length >= behind {
            spans.push(start..at + sign.len() + length);
        }
    }
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
    other_token(text, at, length).or_else(|| telegram(bytes, at)).or_else(|| signed_message(bytes, at))
}

/// Tokens that are known by their parts: those of OpenAI, Terraform, Discord, Mailchimp, Airtable, Google, Plaid, and older ones
/// of Vault.
fn other_token(text: &str, at: usize, length: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let (word, rest) = (&text[at..at + length], &text[at + length..]);
    let is_hex =
        |text: &str, digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has = |text: &str, kind: fn(&u8) -> bool| text.as_bytes().iter().any(kind);
    let is_mixed = |text: &str| {
        has(text, u8::is_ascii_digit)
            && has(text, u8::is_ascii_uppercase)
            && has(text, u8::is_ascii_lowercase)
    };
    if length >= 40 && word.contains(OPENAI) {
        return Some(at..at + length);
    }
    // `sk-` and one word: other ids, such as classes of CSS, have hyphens.
    if let Some(key) = word.strip_prefix("sk-") {
        let drawn = run(key.as_bytes(), b"");
        if drawn >= 32 && has(key, u8::is_ascii_digit) {
            return Some(at..at + 3 + drawn);
        }
    }
    if length == 14 && rest.starts_with(TERRAFORM) {
        let secret = run(&rest.as_bytes()[TERRAFORM.len()..], b"-_=");
        return (secret >= 40).then_some(at..at + length + TERRAFORM.len() + secret);
    }
    if let Some((hash, place)) = word.rsplit_once("-us") {
        if is_hex(hash, 32) && !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(at..at + length);
        }
    }
    let dotted = |least: [usize; 2], signs: &[u8]| {
        let first = rest.strip_prefix('.').map(|rest| run(rest.as_bytes(), signs)).unwrap_or_default();
        let second = rest
            .get(first + 1..)
            .and_then(|rest| rest.strip_prefix('.'))
            .map(|rest| run(rest.as_bytes(), signs));
        let second = second.unwrap_or_default();
        (first >= least[0] && second >= least[1]).then(|| at..at + length + 2 + first + second)
    };
    if (23..=28).contains(&length) && matches!(bytes[at], b'M' | b'N' | b'O') && is_mixed(word) {
        if let Some(bot) = dotted([6, 27], SIGNS).filter(|bot| bot.end - at <= length + 60) {
            return Some(bot);
        }
    }
    if length == 17 && word.starts_with("pat") && rest.starts_with('.') {
        let secret = run(&rest.as_bytes()[1..], b"");
        return (secret >= 60).then_some(at..at + length + 1 + secret);
    }
    if word == "1" && rest.starts_with("//0") {
        let secret = run(&rest.as_bytes()[2..], SIGNS);
        return (secret >= 40).then_some(at..at + 3 + secret);
    }
    if word == "s" && rest.starts_with('.') {
        let secret = run(&rest.as_bytes()[1..], b"");
        return (secret == 24 && is_mixed(&rest[1..25])).then_some(at..at + 26);
    }
    let plaid = ["access-production-", "access-development-", "access-sandbox-"];
    let id = plaid.iter().find_map(|prefix| word.strip_prefix(prefix))?;
    is_uuid(id).then_some(at..at + length)
}

/// The length of the token that the text begins with.
fn token_length(text: &str) -> Option<usize> {
    if !text.bytes().next().is_some_and(|letter| FIRST[usize::from(letter)]) {
        return None;
    }
    for &(prefix, least) in PREFIXES {
        if let Some(rest) = text.strip_prefix(prefix) {
            let length = run(rest.as_bytes(), b"-_.=");
            let is_drawn = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
            // Long words with underscores are names in source code.
            if length >= least && (least < 20 || rest.as_bytes()[..length].iter().any(is_drawn)) {
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
