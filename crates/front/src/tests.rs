//! What the tests of several modules use.

pub(crate) mod answers;
pub(crate) mod limits;
pub(crate) mod openers;
pub(crate) mod readers;
