//! What was meant by a word that there is not.

/// The name in `known` that `unknown` was most likely meant to be: a third of its letters may differ. A word that only begins
/// in the same way is another one.
pub fn did_you_mean<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_ascii_lowercase().replace('-', "_");
    let most = (unknown.chars().count() / 3).max(1);
    known
        .filter(|name| strsim::damerau_levenshtein(&unknown, name) <= most)
        .map(|name| (strsim::jaro_winkler(&unknown, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A question whether one of these words was meant, to stand at the end of an error; or nothing.
pub(crate) fn guess<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> String {
    did_you_mean(text, words).map(|word| format!("; did you mean {word}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options;

    #[test]
    fn misspelt_names_are_recognised() {
        let guess = |name| did_you_mean(name, options().map(|option| option.name));
        assert_eq!(guess("wokers"), Some("workers"));
        assert_eq!(guess("idle-timeout"), Some("idle_timeout"));
        assert_eq!(guess("Port"), Some("port"));
        assert_eq!(guess("ssl_certificate"), Some("tls_certificate"));
        for other in ["xyzzy", "server", "app", "log", "tls", "timeout", "max", "pool"] {
            assert_eq!(guess(other), None, "{other}");
        }
    }
}
