//! The results as they are.

use crate::results::Results;

/// Pretty-printed, with a line feed at the end. A figure that is no number (NaN, infinite) is `null`.
pub(super) fn json(results: &Results) -> String {
    let text = serde_json::to_string_pretty(results);
    // Strings, numbers, lists and structs always have a form in JSON.
    text.expect("results are of plain types") + "\n"
}
