//! What a Ruby process reports about itself: its heap, its threads, an exception.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// The Ruby heap of a process, as its `GC.stat` has it. A worker's counters that only grow include those of its mold
/// before the fork.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RubyHeap {
    /// Slots that hold an object, garbage that was not collected yet included.
    pub live_slots: u64,
    /// Slots without one.
    pub free_slots: u64,
    /// Slots of the pages that hold at least one object. Ruby can only release pages that hold none.
    pub page_slots: u64,
    /// Pages of the heap, empty ones that were not released included.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Objects that were ever allocated.
    pub total_allocated_objects: u64,
    /// Objects that were ever collected.
    pub total_freed_objects: u64,
    /// Bytes allocated by malloc since the last collection.
    pub malloc_increase_bytes: u64,
    /// Collections.
    pub gc_count: u64,
    /// Collections of all objects.
    pub major_gc_count: u64,
    /// Time that collections took, in ms.
    pub gc_time_ms: u64,
}

/// Where a thread is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// Its name: `worker 1 thread 2`.
    pub name: String,
    /// The number by which the front knows the request that it is at; 0: none.
    #[serde(default)]
    pub ticket: u64,
    /// The number of its native thread, as `gettid` returns it.
    #[serde(default)]
    pub tid: Option<i32>,
    /// `run`, `sleep` or `sleep_forever`.
    #[serde(default)]
    pub state: Option<String>,
    /// The innermost file of the application.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// The calls that led to where it is, innermost first.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

/// A line of a backtrace: `/srv/shop/app.rb:12:in `call'`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The path of the file, or a name such as `(eval)`.
    pub file: &'a str,
    /// The line in that file, from 1.
    pub line: u32,
    /// `in `call'`, or nothing.
    pub label: &'a str,
}

impl<'a> Call<'a> {
    /// What this line names; `None` if it is no place.
    pub fn of(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(3, ':');
        let (file, line) = (parts.next()?, parts.next()?.parse().ok()?);
        Some(Call { file, line, label: parts.next().unwrap_or_default() })
    }

    /// Whether the file is the application's: in its folder, and not in `vendor`, where gems may be.
    pub fn is_of_application(&self, folder: &Path) -> bool {
        Path::new(self.file).strip_prefix(folder).is_ok_and(|within| !within.starts_with("vendor"))
    }
}

/// An exception, as Ruby reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RubyError {
    /// Its class, for example `SyntaxError`; empty where the error is not Ruby's.
    pub class: String,
    /// Its message, possibly of several lines.
    pub message: String,
    /// The file it points to.
    #[serde(default)]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The calls that led to it, innermost first; cut after some dozens.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

impl RubyError {
    /// An error that Ruby did not raise itself.
    pub fn of_ours(message: String) -> Self {
        RubyError { message, ..RubyError::default() }
    }

    /// The innermost calls, at most `lines`, one a line; `None` if there are none.
    pub fn calls(&self, lines: usize) -> Option<String> {
        let first = &self.backtrace[..self.backtrace.len().min(lines)];
        (!first.is_empty()).then(|| first.join("\n"))
    }

    /// `path:line`, if the error points to a place.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        })
    }
}

impl fmt::Display for RubyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.class.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.class, self.message)
        }
    }
}
