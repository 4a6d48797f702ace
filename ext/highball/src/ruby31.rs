//! What Ruby 3.1 alone needs: its compiler begins late ([`compiler`]), and objects without a use take free slots
//! ([`heap_pages`]). To be removed with it, as are `lib/highball/ruby31` and the crate `yjit31`.

mod compiler;
mod heap_pages;

use magnus::{function, prelude::*, Error, RModule};

/// Defines the functions.
pub(crate) fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("free_unused_code", function!(compiler::free_unused_code, 0))?;
    native.define_singleton_method("hold_compiler", function!(compiler::hold, 2))?;
    native.define_singleton_method("release_compiler", function!(compiler::release, 1))?;
    native.define_singleton_method("by_page", function!(heap_pages::by_page, 2))
}
