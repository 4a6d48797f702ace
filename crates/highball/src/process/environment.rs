//! The environment of this process.

/// A variable of this process. Bytes that are no text are replaced: what was given must not count as not given.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
