//! What a running server reports: `reports` (of front and supervisor), `kernel_limits` (what applications use of them), `overview` (what
//! the server does at this moment).

pub(crate) mod kernel_limits;
pub(crate) mod overview;
pub(crate) mod reports;
