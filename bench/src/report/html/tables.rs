//! Tables; each scrolls in a separate box where it is wider than the page.

use super::{escape, Colours};
use crate::report::tables::{Cell, Kind, Table};

fn attribute(class: &str) -> String {
    if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    }
}

fn class(cell: &Cell) -> String {
    attribute(match cell.kind {
        Kind::Text | Kind::Command => "",
        Kind::Figure => "number",
        Kind::Errors => "errors",
        Kind::Wrapped => "wrap",
        Kind::Wide => "wide",
    })
}

fn inside(cell: &Cell) -> String {
    let mut html = escape(&cell.text);
    if cell.kind == Kind::Command {
        html = format!("<code>{html}</code>");
    }
    if !cell.strong.is_empty() {
        html += &format!(" <b>{}</b>", escape(&cell.strong));
    }
    if !cell.small.is_empty() {
        html += &format!("<small>{}</small>", escape(&cell.small));
    }
    html
}

/// The table; empty without lines. The first cell of a line is its head.
pub(super) fn table(table: &Table, colours: &Colours) -> String {
    let Some(first) = table.lines.first() else { return String::new() };
    let scrolls = if table.stacks { "scroll stack" } else { "scroll" };
    let mut html = format!("<div class=\"{scrolls}\" tabindex=\"0\"><table>\n<thead><tr>");
    for (head, cell) in table.heads.iter().zip(&first.cells) {
        // A head stands where the cells below it stand.
        html += &format!("<th scope=\"col\"{}>{}</th>", class(cell), escape(head));
    }
    html += "</tr></thead>\n<tbody>\n";
    for line in &table.lines {
        let of_scheme = line.scheme.as_ref().map(|(scheme, failed)| colours.class(scheme, *failed));
        html += &format!("<tr{}>", attribute(&of_scheme.unwrap_or_default()));
        for (index, (cell, head)) in line.cells.iter().zip(&table.heads).enumerate() {
            let (class, inside) = (class(cell), inside(cell));
            html += &match index {
                0 => format!("<th scope=\"row\">{inside}</th>"),
                _ if table.stacks => {
                    format!("<td{class} data-head=\"{}\"><div>{inside}</div></td>", escape(head))
                }
                _ => format!("<td{class}>{inside}</td>"),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}
