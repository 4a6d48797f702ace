//! What reading a configuration has done by its caller.

use crate::puma::AskRuby;
use std::path::Path;

/// The functions that it calls.
#[derive(Clone, Copy)]
pub struct Callbacks<'a> {
    /// Evaluates Puma configurations, if that can be done.
    pub ask_ruby: Option<AskRuby<'a>>,
    /// Gets the path of one of several applications before its files are read: its file system may never answer. `false`: the
    /// files are not read, as it has not.
    pub may_look: &'a dyn Fn(&Path) -> bool,
}

impl Default for Callbacks<'_> {
    fn default() -> Self {
        Callbacks { ask_ruby: None, may_look: &|_| true }
    }
}
