//! Paths in reports, as serde writes them: as people see them ([`visible_path`]). What is read back is that text.
//!
//! `#[serde(with = "highball_text::shown")]` stands before each such field.

use crate::visible_path;
use serde::{Deserialize, Deserializer, Serializer};
use std::path::{Path, PathBuf};

/// Writes the path.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&visible_path(path))
}

/// Reads the text.
///
/// # Errors
/// Errors of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(PathBuf::from)
}
