//! What a running server reports: `report` (how it is doing), `table` (the same for people), `reports` (asking front and supervisor),
//! `processes` (what they take), `kernel_limits` (what applications use of them), `overview` (what the server does at this moment).

pub(crate) mod kernel_limits;
pub(crate) mod overview;
pub(crate) mod processes;
pub(crate) mod reports;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod test_status;
