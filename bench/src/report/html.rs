//! One page that needs nothing else: no other file, no network, no JavaScript.
//!
//! `page` is the order of what people see. `charts` (bars, latencies, memory) and `rates` (latency over the offered
//! rate) draw SVG in percent of the width, so that a chart fills a desk and a phone alike and its text keeps its
//! size; `tables` writes the tables of `report::tables`; `tabs` switches between loads with radio buttons and CSS.

mod charts;
mod page;
mod rates;
mod tables;
mod tabs;

pub(super) use page::page;

use crate::results::{Results, SchemeInfo};

/// Colours of servers other than Highball, which has the first for itself; after the last they begin again.
const COLOURS: usize = 12;

/// Text that HTML and SVG show as it is, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if letter.is_control() => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Which server has which colour.
struct Colours {
    servers: Vec<String>,
}

impl Colours {
    fn of(results: &Results) -> Colours {
        let mut servers: Vec<String> = results
            .schemes
            .iter()
            .filter(|scheme| !scheme.floor && scheme.server != "Highball")
            .map(|scheme| scheme.server.clone())
            .collect();
        servers.sort();
        servers.dedup();
        Colours { servers }
    }

    /// The CSS classes that bring it, and mark a scheme that had errors.
    fn class(&self, scheme: &SchemeInfo, failed: bool) -> String {
        let place = self.servers.iter().position(|server| *server == scheme.server).unwrap_or(0);
        let class = match scheme.server.as_str() {
            _ if scheme.floor => "floor".into(),
            "Highball" => "c0 highball".into(),
            _ => format!("c{}", 1 + place % (COLOURS - 1)),
        };
        class + if failed { " failed" } else { "" }
    }

    /// Every server with its colour.
    fn legend(&self, results: &Results) -> String {
        let highball = results.schemes.iter().any(|scheme| scheme.server == "Highball");
        let floors = results.schemes.iter().any(|scheme| scheme.floor);
        let entry = |class: &str, title: &str| {
            format!("<li class=\"{class}\"><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect class=\"bar\" \
                     width=\"14\" height=\"14\" rx=\"3\"/></svg>{}</li>\n", escape(title))
        };
        let mut text = String::from("<ul class=\"legend\">\n");
        if highball {
            text += &entry("c0", "Highball");
        }
        for (place, server) in self.servers.iter().enumerate() {
            text += &entry(&format!("c{}", 1 + place % (COLOURS - 1)), server);
        }
        if floors {
            text += &entry("floor", "floor: runs no Ruby");
        }
        text += &entry("failed", "! had errors: does not compare");
        text + "<li><svg width=\"26\" height=\"14\" aria-hidden=\"true\"><path class=\"whisker\" \
                d=\"M2 7H24M2 3V11M24 3V11\"/></svg>smallest to largest of the rounds</li>\n</ul>\n"
    }
}
