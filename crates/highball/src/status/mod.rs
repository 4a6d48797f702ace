//! What a running server reports: `reports` (what front and supervisor report, and one report of both), `table` (the same for people, as lines of a `page`),
//! `profile_report` (where the time goes), `processes` (what they take), `kernel_limits` (what applications use of them), `overview` (what the server does at this moment).

pub(crate) mod kernel_limits;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod processes;
pub(crate) mod profile_report;
pub(crate) mod reports;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod test_status;
