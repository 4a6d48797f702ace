//! What people get to read: a table in the terminal, JSON, Markdown, and one HTML page. All of them are made of
//! [`Results`] alone, so that a kept JSON can be shown again in any form.
//!
//! In reading order: `figure` (what is shown of a sample), `comparison` (the schemes under one load, best first,
//! and which of them are in no clear order), `bounds` (the most within a latency), `words` (numbers, loads, errors and the method in words), `remarks` (what to know before the figures), `origins`
//! (the schemes of 2006), `ratios` (Highball against the other servers), `weaknesses` (where Highball is not the best), `tables` (all tables of Markdown and HTML), and then
//! the forms: `table`, `markdown`, `html`.

mod bounds;
mod comparison;
mod figure;
mod html;
mod markdown;
mod origins;
mod ratios;
mod remarks;
mod table;
mod tables;
mod weaknesses;
mod words;

use crate::results::Results;
pub(crate) use html::escape;
pub(crate) use words::{count, errors as errors_in_words, number, time};

/// For the terminal: plain text of at most 100 columns.
pub fn table(results: &Results) -> String {
    table::table(results)
}

/// The results as they are, for programs. A figure that is no number (NaN, infinite) is `null`.
pub fn json(results: &Results) -> String {
    let text = serde_json::to_string_pretty(results);
    // Strings, numbers, lists and structs always have a form in JSON.
    text.expect("results are of plain types") + "\n"
}

/// One page that needs no other file, no network and no JavaScript.
pub fn html(results: &Results) -> String {
    html::page(results)
}

/// For `RESULTS.md`.
pub fn markdown(results: &Results) -> String {
    markdown::markdown(results)
}

/// Several runs one after the other, for `bench/RESULTS.md`.
pub fn markdown_of_all(all: &[Results]) -> String {
    all.iter().map(markdown::markdown).collect::<Vec<String>>().join("\n")
}
