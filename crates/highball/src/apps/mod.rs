//! The applications: where they come from (`source`), what a `config/puma.rb` configures (`puma`), and the cgroups by which the
//! kernel enforces their hard limits (`cgroups`).

pub(crate) mod cgroups;
pub(crate) mod puma;
pub(crate) mod source;
