//! Answers of the front's own to requests that cannot be answered otherwise: what they hold for developers and for others,
//! and what is known of the failure.
//!
//! In reading order: [`answers`] (a refusal as an answer), [`failure`] (what is known of a failed request),
//! [`failure_pages`] (who sees which page about it), [`error_pages`] (the application's own pages), [`page`] (the frame
//! of pages for developers).

pub(crate) mod answers;
pub(crate) mod error_pages;
pub mod failure;
pub(crate) mod failure_pages;
pub mod page;
