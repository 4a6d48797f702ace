//! Whether anything in an application's folder has changed, in one number.

/// What a folder holds, as far as a change of it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderState(pub(crate) u64);
