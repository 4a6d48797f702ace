//! Highball's Ruby extension: the worker's end of the ring, as `Highball::Ring`, and the few system
//! calls that Ruby lacks, as `Highball::Native`.
//!
//! In reading order: [`ring`] (claim and env; how a method finds its ring), [`slot`] (what is kept of a request), [`env`] (a request becomes a
//! Rack env), [`places`] and [`hijack`] (parts of it), [`answer`] (a Rack response becomes frames), [`sending`] (frames go into the ring), [`left`] (answers that do not end soon), [`own_process`]
//! (the worker, and not what the app forks from it), [`nogvl`] (the one file that releases the GVL), [`turns`]
//! (CPU-bound threads yield), [`tending`] (how many threads serve), [`request_clock`] (what requests do with their time), [`ages`] (which requests are old), [`profile`] (samples of what threads do), [`clock`], [`signals`] (in native threads), [`native`], [`allocator`] (where malloc
//! puts things, in the mold and after a fork), [`fiber_stack`] (its memory), [`pstore`] (whether a store's file has changed), [`ruby31`] (what Ruby 3.1 alone needs).
//!
//! Programs that use `highball/pstore` load this crate, too. So loading it changes nothing else in the process.
//!
//! What a request does in Ruby stands in `lib/highball/server.rb`; this crate only makes it cheap.
//!
//! Ruby raises by `longjmp`, which does not run destructors. So every call into Ruby that may raise goes
//! through `protect` (magnus does that in its safe methods), or cannot raise.

// The only public function is the macro's, for Ruby's loader.
#![allow(missing_docs)]

mod ages;
mod allocator;
mod answer;
mod clock;
mod env;
mod fiber_stack;
mod hijack;
mod left;
mod native;
mod nogvl;
mod overlap;
mod own_process;
mod places;
mod profile;
mod pstore;
mod request_clock;
mod ring;
mod ruby31;
mod selector;
mod sending;
mod signals;
mod slot;
mod tending;
mod turns;

use magnus::{Error, Ruby};

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let highball = ruby.define_module("Highball")?;
    native::define(ruby, highball)?;
    selector::define(ruby, highball)?;
    ring::define(ruby, highball)
}
