//! What a server answers when it is asked for a profile.

use highball_config::ProfileMode;
use serde::{Deserialize, Serialize};

/// The name of what has no room, in every profile.
pub(crate) const OTHER: &str = "(other methods)";

/// A profile: names, and a tree of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProfileReport {
    pub(crate) mode: ProfileMode,
    /// The workers whose samples these are.
    pub(crate) workers: Vec<u32>,
    /// Workers without a profile, and why.
    pub(crate) problems: Vec<String>,
    pub(crate) names: Vec<ProfiledName>,
    /// Of each node its parent, its name and its weight, one after the other. The first node is number 1, after its parent; 0 is
    /// the root. Weights are nanoseconds, or objects with the mode `allocations`.
    pub(crate) nodes: Vec<(u32, u32, u64)>,
    pub(crate) samples: u64,
    /// Nanoseconds that threads have waited for requests.
    pub(crate) idle_ns: u64,
    /// What exceeded a limit.
    pub(crate) left_out: u64,
}

/// A method or block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProfiledName {
    pub(crate) label: String,
    /// Where it is; empty: it is native.
    pub(crate) file: String,
    /// Its first line; 0: not known.
    pub(crate) line: u32,
}

impl std::fmt::Display for ProfiledName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label)?;
        match (&self.file[..], self.line) {
            ("", _) => Ok(()),
            (file, 0) => write!(f, "  {file}"),
            (file, line) => write!(f, "  {file}:{line}"),
        }
    }
}
