//! What `highball profile` is asked for.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A profile as the command line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileOptions {
    /// What is sampled.
    pub mode: ProfileMode,
    /// For how long.
    pub time: Duration,
    /// Only this worker; `None`: all of the application.
    pub worker: Option<u32>,
    /// Whether samples are grouped by the paths of requests.
    pub by_path: bool,
    /// The file to write; `-` is standard output. `None`: a new file in the current folder.
    pub output: Option<PathBuf>,
    /// In which form; `None`: as the name of the file has it, or as HTML.
    pub format: Option<ProfileFormat>,
}

impl ProfileOptions {
    /// Default of `time`.
    pub const TIME: Duration = Duration::from_secs(10);
}

/// What a profile samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileMode {
    /// Threads that compute.
    Cpu,
    /// All threads except idle ones.
    Wall,
    /// Threads that wait for the GVL.
    Gvl,
    /// Threads that allocate objects.
    Allocations,
}

/// The form of a profile's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// A page with a flame graph.
    Html,
    /// A line for each stack, for `flamegraph.pl` and the like.
    Folded,
    /// The protocol buffer of `go tool pprof`.
    Pprof,
    /// The JSON of speedscope.
    Speedscope,
}

impl ProfileMode {
    pub(crate) const NAMES: [&'static str; 4] = ["cpu", "wall", "gvl", "allocations"];

    pub(crate) fn named(name: &str) -> ProfileMode {
        match name {
            "wall" => ProfileMode::Wall,
            "gvl" => ProfileMode::Gvl,
            "allocations" => ProfileMode::Allocations,
            _ => ProfileMode::Cpu,
        }
    }
}

impl fmt::Display for ProfileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ProfileMode::NAMES[*self as usize])
    }
}

impl ProfileFormat {
    pub(crate) const NAMES: [&'static str; 4] = ["html", "folded", "pprof", "speedscope"];

    pub(crate) fn named(name: &str) -> ProfileFormat {
        match name {
            "folded" => ProfileFormat::Folded,
            "pprof" => ProfileFormat::Pprof,
            "speedscope" => ProfileFormat::Speedscope,
            _ => ProfileFormat::Html,
        }
    }
}
