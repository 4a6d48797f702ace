//! What events and actions are about: processes by their numbers, and what connects an action with its answer.

/// A process of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Process {
    /// The mold of this boot, from 1.
    Mold(u32),
    /// The worker with this number, from 1.
    Worker(u32),
    /// The process of a companion with this number, from 1.
    Companion(u32),
}

/// Connects an order or an action with its answer. Each is used once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Receipt(pub(crate) u64);
