//! Answers of the front's own to requests that cannot be answered otherwise: what they hold for developers and for others,
//! and what is known of the failure.

pub(crate) mod answers;
pub(crate) mod error_pages;
pub mod failure;
pub(crate) mod failure_pages;
pub mod page;
