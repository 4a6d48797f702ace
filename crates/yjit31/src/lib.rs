//! Two things that later Rubies do themselves and Ruby 3.1's compiler does not: it begins when the application has been
//! loaded ([`switch`]), and it gives back memory that it does not use ([`code_pages`]).
//!
//! The extension calls this in a process with Ruby 3.1. It is not part of the extension because the extension's functions
//! cannot run without a Ruby, and these have tests without one.

mod code_pages;
mod switch;

pub use code_pages::free_unused;
pub use switch::Switch;
