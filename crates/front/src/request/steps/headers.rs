//! Finds the changes to the header fields of the response (option `response_headers`).

use crate::path_pattern::plain;
use crate::request::{Routed, Transaction};

/// Notes what changes in the head of any response to this request.
pub(in crate::request) fn choose(transaction: &mut Transaction, routed: Routed<'_>) {
    if !routed.app.settings().response_headers.is_empty() {
        let path = plain(routed.path(&transaction.head));
        transaction.header_changes = routed.app.header_changes(&path);
    }
}
