//! What the tests of several modules use.

pub(crate) mod answers;
pub(crate) mod heads;
pub(crate) mod limits;
pub(crate) mod openers;
pub(crate) mod readers;

/// An event loop as the front has one.
pub(crate) fn runtime() -> tokio::runtime::LocalRuntime {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap()
}
