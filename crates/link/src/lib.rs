//! What front, supervisor and binary tell each other, declared once. Front and supervisor do not know each other.
//!
//! In reading order:
//!
//! - `step`: the steps of a boot; `boot`: what an application reports when it has booted;
//! - `ruby`: what a Ruby process reports about itself;
//! - `diagnosis`: why a boot or a request failed, and what to do about it.

mod boot;
mod diagnosis;
mod ruby;
mod step;

pub use boot::{AssetPipeline, Assets, Booted, DigestScheme, Finding, PlainAsset, Tuning};
pub use diagnosis::{Diagnosis, Excerpt, FailedRequest};
pub use ruby::{RubyError, RubyHeap, ThreadPlace};
pub use step::Step;
