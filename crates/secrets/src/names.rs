//! Names of settings, variables, header fields and parameters, and what they tell about the values.

/// Parts of names whose values are secret wherever the name stands.
const TELLING: &[&str] = &[
    "secret",
    "authorization",
    "session_id",
    "passw",
    "passphrase",
    "passcode",
    "passkey",
    "pwd",
    "kennwort",
    "wachtwoord",
    "contrasena",
    "mot_de_passe",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "accesskey",
    "account_key",
    "accountkey",
    "private",
    "sshpriv",
    "credential",
    "master_key",
    "_dsn",
    "cookie",
    "salt",
    "pepper",
    "hmac",
    "signature",
    "csrf",
    "xsrf",
    "oauth",
    "bindpw",
    "ldap_bind",
    "sharedaccess",
];
/// Whole words of names whose values are secret wherever the name stands.
const TELLING_WORDS: &[&str] =
    &["pass", "key", "auth", "dsn", "otp", "totp", "mfa", "sig", "jwt", "cvc", "cvv", "psk", "senha"];
/// Words that end in `pass` and are about something else.
const OTHER_PASSES: &[&str] = &["compass", "bypass", "trespass", "encompass", "surpass", "underpass"];
/// Names that only look telling: keys of tables and caches, and where a shell stands.
const HARMLESS: &[&str] = &[
    "primary_key",
    "foreign_key",
    "cache_key",
    "sort_key",
    "partition_key",
    "public_key",
    "association_foreign_key",
    "foreign_key_exists",
    "if_foreign_key",
    "max_tokens",
    "min_tokens",
];
const FOLDERS: &[&str] = &["PWD", "OLDPWD"];
/// Whole words of names whose values may be secret. They mean other things in prose and in source code, and count
/// only for variables and for parameters of requests.
const SUSPICIOUS_WORDS: &[&str] = &[
    "access",
    "activation",
    "assertion",
    "bearer",
    "bind",
    "card",
    "cert",
    "certificate",
    "challenge",
    "cipher",
    "code",
    "confirmation",
    "coupon",
    "digest",
    "encryption",
    "hash",
    "hook",
    "iban",
    "invitation",
    "invite",
    "licence",
    "license",
    "mnemonic",
    "nonce",
    "pat",
    "pem",
    "pin",
    "reset",
    "saml",
    "sas",
    "seed",
    "session",
    "sid",
    "signed",
    "signing",
    "ssn",
    "sso",
    "state",
    "ticket",
    "unlock",
    "verification",
    "verifier",
    "voucher",
    "webhook",
    "webhooks",
];
/// Endings of words in the names of exceptions: what follows `InvalidPasswordError:` is a message.
const EXCEPTION_WORDS: &[&str] = &[
    "error",
    "exception",
    "invalid",
    "incorrect",
    "wrong",
    "missing",
    "found",
    "failed",
    "failure",
    "mismatch",
    "expired",
    "required",
    "denied",
    "unauthorized",
    "forbidden",
    "unknown",
    "bad",
    "not",
    "unpermitted",
    "malformed",
];

/// Whether the value of what has this name is secret.
pub fn is_telling(name: &str) -> bool {
    if FOLDERS.contains(&name) {
        return false;
    }
    let words = words(name);
    let joined = words.join("_");
    if HARMLESS.contains(&joined.as_str()) {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let is_pass = |word: &str| word.ends_with("pass") && !OTHER_PASSES.contains(&word);
    has_telling_part(&lower)
        || (joined != lower && has_telling_part(&joined))
        || words.iter().any(|word| TELLING_WORDS.contains(&word.as_str()) || is_pass(word))
}

/// Looks for all parts at once: to search for one after the other takes longer, and each sampled request has some names.
fn has_telling_part(name: &str) -> bool {
    let begins = |rest: &[u8], part: &[u8]| rest[0] == part[0] && rest.starts_with(part);
    (0..name.len()).any(|at| TELLING.iter().any(|part| begins(&name.as_bytes()[at..], part.as_bytes())))
}

/// Whether the value of the variable or parameter of this name may be secret.
pub fn is_suspicious(name: &str) -> bool {
    !FOLDERS.contains(&name)
        && (is_telling(name) || words(name).iter().any(|word| SUSPICIOUS_WORDS.contains(&word.as_str())))
}

/// Whether this is the name of an exception: `InvalidAuthenticityToken`, `PasswordError`.
pub(crate) fn is_exception(name: &str) -> bool {
    let is_class = name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && name.contains(|letter: char| letter.is_ascii_lowercase());
    let words = words(name);
    is_class && words.len() > 1 && words.iter().any(|word| EXCEPTION_WORDS.contains(&word.as_str()))
}

/// The words of a name in lower case: `user[accessToken]` has `user`, `access` and `token`; `APIKey` has `api` and `key`.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters = name.as_bytes();
    for (at, &letter) in letters.iter().enumerate() {
        let previous = at.checked_sub(1).map_or(b' ', |before| letters[before]);
        let next = letters.get(at + 1).copied().unwrap_or(b' ');
        let starts_word = letter.is_ascii_uppercase()
            && (previous.is_ascii_lowercase()
                || (previous.is_ascii_uppercase() && next.is_ascii_lowercase() && !is_plural(letters, at)));
        if !letter.is_ascii_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if letter.is_ascii_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(char::from(letter.to_ascii_lowercase()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the name ends with the `s` of a plural: `URLs`, `PINs`.
fn is_plural(letters: &[u8], at: usize) -> bool {
    letters.get(at + 1) == Some(&b's') && !letters.get(at + 2).is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        assert_eq!(words("user[accessToken]"), ["user", "access", "token"]);
        assert_eq!(words("APIKey"), ["api", "key"]);
        assert_eq!(words("X-Amz-Security-Token"), ["x", "amz", "security", "token"]);
        assert_eq!(words("PINGED"), ["pinged"]);
    }

    #[test]
    fn names_tell_that_values_are_secret() {
        for name in [
            "SECRET_KEY_BASE",
            "STRIPE_API_KEY",
            "PGPASSWORD",
            "DB_PASS",
            "DBPASS",
            "DB_PWD",
            "pwd",
            "GITHUB_TOKEN",
            "SENTRY_DSN",
            "AccountKey",
            "DEVISE_PEPPER",
            "HMAC",
            "SSHPRIV",
            "OAUTH",
            "X-CSRF",
            "X-Amz-Signature",
        ] {
            assert!(is_telling(name), "{name}");
        }
        for name in
            ["PATH", "PWD", "OLDPWD", "KEYBOARD", "RAILS_ENV", "COMPASS", "foreign_key", "PINGED", "monkey"]
        {
            assert!(!is_suspicious(name), "{name}");
        }
    }

    #[test]
    fn more_names_are_suspicious_where_only_variables_and_parameters_stand() {
        for name in [
            "GITHUB_PAT",
            "PAT",
            "ENCRYPTION",
            "SIGNING",
            "ROLLBAR_ACCESS",
            "CERT_PEM",
            "TWILIO_SID",
            "LICENSE",
            "PIN",
            "reset",
            "code",
            "state",
            "card",
        ] {
            assert!(is_suspicious(name), "{name}");
            assert!(!is_telling(name), "{name}");
        }
    }
}
